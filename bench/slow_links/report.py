"""Writes the results as a Markdown table and a chart, and says which targets are met.

    python3 bench/slow_links/report.py docs/results      # again from slow_links.json there, without measuring
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

import chart
from results import Cell, Results, Spread, cell
from rows import FW4_BW8, ONE_MACHINE, RATES, ROWS, TOPK, TOPK_8BIT

BEGIN = "<!-- Written by bench/slow_links from here -->"
END = "<!-- to here -->"
TITLE = "# Training over slow links\n\n![Samples per second over link rate](slow_links.svg)\n\n"

IDEAL_SHARE = 0.9
OVER_C10D = {ONE_MACHINE: 0.9, "unlimited": 0.9}  # elsewhere:
OVER_C10D_AT_A_RATE = 0.97
# Least speed-up over raw fp32 at a rate.
SPEED_UPS = [("20Mbps", FW4_BW8, 4.0), ("20Mbps", TOPK, 6.0), ("20Mbps", TOPK_8BIT, 9.0), ("100Mbps", TOPK, 3.0)]
TOPK_OVER_TORCH = ("20Mbps", TOPK, 2.0)

Target = tuple[str, Spread, float]


def show(value: Spread | None, form: str, unit: str = "") -> str:
    """The median, and over several rounds the least and the greatest behind it."""
    if value is None:
        return ""
    low, median, high = (format(v, form) for v in (value.low, value.median, value.high))
    return f"{median}{unit}" if value.rounds == 1 else f"{median}{unit} ({low} to {high})"


def table(cells: list[Cell]) -> str:
    """Those over links; what was not measured at all has no column."""
    cells = [c for c in cells if c.rate != ONE_MACHINE]
    columns: list[tuple[str, Callable[[Cell], str]]] = [
        ("bytes, ratio", lambda c: f"{c.byte_ratio.median:.1f}" if c.byte_ratio else ""),
        ("samples/s", lambda c: show(c.strait, ".1f")),
        ("over raw", lambda c: show(c.speed_up, ".2f", "x")),
        ("share of ideal", lambda c: show(c.ideal_share, ".0%")),
        ("cores at work", lambda c: show(c.cores, ".0%")),
        ("predicted step", lambda c: show(c.predicted, ".2f", "x")),
        ("c10d samples/s", lambda c: show(c.c10d, ".1f")),
        ("c10d share of ideal", lambda c: show(c.c10d_ideal_share, ".0%")),
        ("over c10d", lambda c: show(c.over_c10d, ".2f", "x")),
        ("PyTorch samples/s", lambda c: show(c.torch, ".1f")),
        ("over PyTorch", lambda c: show(c.over_torch, ".2f", "x")),
    ]
    columns = [(name, text) for name, text in columns if "c10d" not in name or any(text(c) for c in cells)]
    lines = [f"| link | codec | {' | '.join(name for name, _ in columns)} |", "| --- | --- |" + " ---: |" * len(columns)]
    lines += [f"| {c.rate} | {c.row} | {' | '.join(text(c) for _, text in columns)} |" for c in cells]
    return "\n".join(lines)


def one_machine_table(cells: list[Cell]) -> str:
    """With its heading; empty where nothing was measured."""
    cells = [c for c in cells if c.rate == ONE_MACHINE]
    if not cells:
        return ""
    lines = ["All ranks on one machine, without a limit:\n",
             "| codec | sockets, samples/s | share of ideal | cores at work | c10d samples/s | c10d share of ideal "
             "| sockets over c10d | TLS, samples/s | TLS over sockets |",
             "| --- |" + " ---: |" * 8]
    lines += [f"| {c.row} | {show(c.strait, '.1f')} | {show(c.ideal_share, '.0%')} | {show(c.cores, '.0%')} "
              f"| {show(c.c10d, '.1f')} | {show(c.c10d_ideal_share, '.0%')} | {show(c.over_c10d, '.2f', 'x')} "
              f"| {show(c.tls, '.1f')} | {show(c.tls_share, '.2f', 'x')} |" for c in cells]
    return "\n".join(lines) + "\n\n"


def targets(cells: list[Cell]) -> list[Target]:
    """What was aimed at, what was measured and the least that meets it; of measured cells only."""
    at = {(c.rate, c.row): c for c in cells}
    found = [(f"share of the ideal, {c.rate}, {c.row}", c.ideal_share, IDEAL_SHARE) for c in cells]
    found += [(f"over raw, {rate}, {row}", at[rate, row].speed_up, least) for rate, row, least in SPEED_UPS
              if (rate, row) in at]
    found += [(f"over c10d, {c.rate}, {c.row}", c.over_c10d, OVER_C10D.get(c.rate, OVER_C10D_AT_A_RATE))
              for c in cells]
    for c in cells:
        least = TOPK_OVER_TORCH[2] if (c.rate, c.row) == TOPK_OVER_TORCH[:2] else 1.0
        found.append((f"over PyTorch, {c.rate}, {c.row}", c.over_torch, least))
    return [(text, value, least) for text, value, least in found if value is not None]


def verdict(value: Spread, least: float) -> str:
    """A target is passed or missed only where every one of several rounds says so."""
    if value.rounds == 1:
        return "one round: no verdict"
    if value.low >= least:
        return "pass"
    return "FAIL" if value.high < least else "within noise"


def target_table(cells: list[Cell]) -> str:
    lines = ["| target | at least | measured | |", "| --- | ---: | ---: | --- |"]
    lines += [f"| {text} | {least:.2f} | {show(value, '.2f')} | {verdict(value, least)} |"
              for text, value, least in targets(cells)]
    return "\n".join(lines)


def extent(values: list[float], form: str) -> str:
    ends = [format(v, form) for v in (min(values), max(values))] if values else ["-"]
    return " to ".join(dict.fromkeys(ends))


def origin(results: Results, cells: list[Cell]) -> str:
    """Configuration, seed, versions, machine and protocol of everything on the page."""
    where = results.machine
    rounds = extent([s.rounds for c in cells for s in (c.strait, c.torch) if s], "d")
    seeds = sorted({seed for config in results.all_of("config") for seed in re.findall(r"(?m)^seed = (\d+)$", config)})
    torch = results.all_of("torch", "pytorch")
    lines = [
        f"Rounds: {rounds}. Medians over the rounds" + ("" if rounds == "1" else ", in brackets the least and the greatest")
        + "; a ratio is taken within a round.",
        f"Code: strait {', '.join(results.all_of('code_version')) or '-'} "
        f"({', '.join(results.all_of('machine')) or 'LibTorch not recorded'}); "
        f"PyTorch {', '.join(torch) or '-'} for its pipeline.",
        f"Machine: {where['cores']} cores of {where['processor']}, Linux {where['kernel']}.",
        "Configuration: [resnet18.toml](../../bench/slow_links/resnet18.toml) with the codecs of "
        f"[rows.py](../../bench/slow_links/rows.py), seed {', '.join(seeds) or '-'}; "
        "resolved for every row, beside every figure, in [slow_links.json](slow_links.json).",
        f"Protocol: three epochs of strait per row, of which the first warms up and the others are timed: "
        f"{extent(results.all_of('steps'), 'd')} steps of 100 samples in {extent(results.all_of('seconds'), '.1f')} s; of "
        f"PyTorch {extent(results.all_of('steps', 'pytorch'), 'd')} steps in "
        f"{extent(results.all_of('seconds', 'pytorch'), '.1f')} s. Share of ideal and predicted step are of the last epoch.",
    ]
    return "\n".join(f"- {line}" for line in lines)


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
    generated = f"{origin(results, cells)}\n\n{table(cells)}\n\n{one_machine_table(cells)}{target_table(cells)}"
    page.write_text(replace_between_markers(page.read_text() if page.exists() else "", generated))
    (folder / "slow_links.svg").write_text(chart.draw(cells))
    for text, value, least in targets(cells):
        print(f"{verdict(value, least)}  {show(value, '.2f')}  at least {least:.2f}  {text}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    write(Results(Path(sys.argv[1]) / "slow_links.json"), Path(sys.argv[1]))
