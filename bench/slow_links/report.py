"""Writes the results as a Markdown table and a chart, and says which targets are met."""

from __future__ import annotations

from pathlib import Path

import chart
from results import Cell, Results, cell
from rows import FW4_BW8, RATES, ROWS, TOPK, TOPK_8BIT

BEGIN = "<!-- Written by bench/slow_links/run.py from here -->"
END = "<!-- to here -->"
TITLE = "# Training over slow links\n\n![Samples a second over link rate](slow_links.svg)\n\n"

IDEAL_SHARE = 0.85
# Least speed-up over raw fp32 at a rate.
SPEED_UPS = [("20Mbps", FW4_BW8, 4.0), ("20Mbps", TOPK, 6.0), ("20Mbps", TOPK_8BIT, 9.0), ("100Mbps", TOPK, 3.0)]
TOPK_OVER_TORCH = ("20Mbps", TOPK, 2.0)


def number(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)


def times(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}x"


def table(cells: list[Cell]) -> str:
    lines = ["| link | codec | samples/s | over raw | share of ideal | predicted step | PyTorch samples/s "
             "| over PyTorch |", "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |"]
    for c in cells:
        lines.append(f"| {c.rate} | {c.row} | {number(c.strait, '.1f')} | {times(c.speed_up)} "
                     f"| {number(c.ideal_share, '.0%')} | {number(c.prediction_error, '+.0%')} "
                     f"| {number(c.torch, '.1f')} | {times(c.over_torch)} |")
    return "\n".join(lines)


def targets(cells: list[Cell]) -> list[tuple[str, float, float]]:
    """What was aimed at, what was measured and the least that meets it; of measured cells only."""
    at = {(c.rate, c.row): c for c in cells}
    found = [(f"share of the ideal, {c.rate}, {c.row}", c.ideal_share, IDEAL_SHARE) for c in cells]
    found += [(f"over raw, {rate}, {row}", at[rate, row].speed_up, least) for rate, row, least in SPEED_UPS
              if (rate, row) in at]
    for c in cells:
        least = TOPK_OVER_TORCH[2] if (c.rate, c.row) == TOPK_OVER_TORCH[:2] else 1.0
        found.append((f"over PyTorch, {c.rate}, {c.row}", c.over_torch, least))
    return [(text, value, least) for text, value, least in found if value is not None]


def verdict(value: float, least: float) -> str:
    return "pass" if value >= least else "FAIL"


def target_table(cells: list[Cell]) -> str:
    lines = ["| target | at least | measured | |", "| --- | ---: | ---: | --- |"]
    lines += [f"| {text} | {least:.2f} | {value:.2f} | {verdict(value, least)} |"
              for text, value, least in targets(cells)]
    return "\n".join(lines)


def origin(results: Results) -> str:
    where = results.machine
    return (f"Medians of {results.rounds()} round(s) on {where['cores']} cores of {where['processor']}, "
            f"Linux {where['kernel']}; strait {', '.join(results.code_versions()) or '-'}, "
            f"PyTorch {', '.join(results.torch_versions()) or '-'}. Every figure: [slow_links.json](slow_links.json).")


def replace_between_markers(text: str, generated: str) -> str:
    if BEGIN not in text:
        text = (text or TITLE) + f"{BEGIN}\n{END}\n"
    head, rest = text.split(BEGIN, 1)
    return f"{head}{BEGIN}\n\n{generated}\n\n{rest[rest.index(END):]}"


def write(results: Results, folder: Path) -> None:
    """Writes slow_links.md and slow_links.svg into a folder and prints the targets."""
    cells = [cell(results, rate, row.name) for rate in RATES for row in ROWS]
    cells = [c for c in cells if c.strait is not None or c.torch is not None]
    page = folder / "slow_links.md"
    generated = f"{origin(results)}\n\n{table(cells)}\n\n{target_table(cells)}"
    page.write_text(replace_between_markers(page.read_text() if page.exists() else "", generated))
    (folder / "slow_links.svg").write_text(chart.draw(cells))
    for text, value, least in targets(cells):
        print(f"{verdict(value, least)}  {value:6.2f}  at least {least:.2f}  {text}")
