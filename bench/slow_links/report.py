"""Writes the results as a Markdown table and a chart, and says which targets are met.

    python3 bench/slow_links/report.py docs/results [slow_links_full]     # again from slow_links.json there, without measuring
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

import chart
from network import run_main
from results import Cell, Results, Spread, cell
from rows import ONE_MACHINE, QUARTER, RATES, TOPK, TRAININGS, Training

BEGIN = "<!-- Written by bench/slow_links from here -->"
END = "<!-- to here -->"

IDEAL_SHARE = 0.9
OVER_C10D = {ONE_MACHINE: 0.9, "unlimited": 0.9}  # elsewhere:
OVER_C10D_AT_A_RATE = 0.97
TOPK_OVER_TORCH = ("20Mbps", TOPK, 2.0)

Target = tuple[str, Spread, float]


def show(value: Spread | None, form: str, unit: str = "") -> str:
    """The median, and over several rounds the least and the greatest behind it."""
    if value is None:
        return ""
    low, median, high = (format(v, form) for v in (value.low, value.median, value.high))
    return f"{median}{unit}" if value.rounds == 1 else f"{median}{unit} ({low} to {high})"


Column = tuple[str, Callable[[Cell], str]]


def lines_of(named: list[Column], figures: list[Column], cells: list[Cell]) -> str:
    """A table with these columns; figures that no cell has make none."""
    columns = [(name, text) for name, text in figures if any(text(c) for c in cells)]
    lines = [f"| {' | '.join(name for name, _ in named + columns)} |",
             f"|{' --- |' * len(named)}{' ---: |' * len(columns)}"]
    lines += [f"| {' | '.join(text(c) for _, text in named + columns)} |" for c in cells]
    return "\n".join(lines)


def table(cells: list[Cell]) -> str:
    """Those over links."""
    columns: list[Column] = [
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
    return lines_of([("link", lambda c: c.rate), ("codec", lambda c: c.row)], columns,
                    [c for c in cells if c.rate != ONE_MACHINE])


def one_machine_table(cells: list[Cell]) -> str:
    """With its heading; empty where nothing was measured."""
    cells = [c for c in cells if c.rate == ONE_MACHINE]
    if not cells:
        return ""
    columns: list[Column] = [
        ("sockets, samples/s", lambda c: show(c.strait, ".1f")),
        ("share of ideal", lambda c: show(c.ideal_share, ".0%")),
        ("cores at work", lambda c: show(c.cores, ".0%")),
        ("c10d samples/s", lambda c: show(c.c10d, ".1f")),
        ("c10d share of ideal", lambda c: show(c.c10d_ideal_share, ".0%")),
        ("sockets over c10d", lambda c: show(c.over_c10d, ".2f", "x")),
        ("TLS, samples/s", lambda c: show(c.tls, ".1f")),
        ("TLS over sockets", lambda c: show(c.tls_share, ".2f", "x")),
    ]
    return f"All ranks on one machine, without a limit:\n\n{lines_of([('codec', lambda c: c.row)], columns, cells)}\n\n"


def targets(cells: list[Cell], training: Training) -> list[Target]:
    """What was aimed at, what was measured and the least that meets it; of measured cells only."""
    at = {(c.rate, c.row): c for c in cells}
    found = [(f"share of the ideal, {c.rate}, {c.row}", c.ideal_share, IDEAL_SHARE) for c in cells]
    found += [(f"over raw, {rate}, {row}", at[rate, row].speed_up, least) for rate, row, least in training.speed_ups
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


def target_table(cells: list[Cell], training: Training) -> str:
    lines = ["| target | at least | measured | |", "| --- | ---: | ---: | --- |"]
    lines += [f"| {text} | {least:.2f} | {show(value, '.2f')} | {verdict(value, least)} |"
              for text, value, least in targets(cells, training)]
    return "\n".join(lines)


def extent(values: list[float], form: str) -> str:
    ends = [format(v, form) for v in (min(values), max(values))] if values else ["-"]
    return " to ".join(dict.fromkeys(ends))


def origin(results: Results, cells: list[Cell], training: Training) -> str:
    """Configuration, seed, versions, machine and protocol of everything on the page."""
    where = results.machine
    rounds = extent([s.rounds for c in cells for s in (c.strait, c.torch) if s], "d")
    seeds = sorted({seed for config in results.all_of("config") for seed in re.findall(r"(?m)^seed = (\d+)$", config)})
    torch = results.all_of("torch", "pytorch")
    lines = [
        f"Rounds: {rounds}. Medians over the rounds" + ("" if rounds == "1" else ", in brackets the least and the greatest")
        + "; a ratio is taken within a round.",
        f"Code: strait {', '.join(results.all_of('code_version')) or '-'} "
        f"({', '.join(results.all_of('machine')) or 'LibTorch not recorded'})"
        + (f"; PyTorch {', '.join(torch) or '-'} for its pipeline." if "pytorch" in training.sides else "."),
        f"Machine: {where['cores']} cores of {where['processor']}, Linux {where['kernel']}.",
        f"Configuration: [{training.config}](../../bench/slow_links/{training.config}) with the codecs of "
        f"[rows.py](../../bench/slow_links/rows.py), seed {', '.join(seeds) or '-'}; "
        f"resolved for every row, beside every figure, in [{training.page}.json]({training.page}.json).",
        f"Protocol: three epochs of strait per row, of which the first warms up and the others are timed: "
        f"{extent(results.all_of('steps'), 'd')} steps of 100 samples in {extent(results.all_of('seconds'), '.1f')} s"
        + (f"; of PyTorch {extent(results.all_of('steps', 'pytorch'), 'd')} steps in "
           f"{extent(results.all_of('seconds', 'pytorch'), '.1f')} s" if "pytorch" in training.sides else "")
        + ". Share of ideal and predicted step are of the last epoch.",
    ]
    return "\n".join(f"- {line}" for line in lines)


def replace_between_markers(text: str, generated: str, begin: str = BEGIN) -> str:
    """The text with what is generated between the markers, at its end where it has none."""
    if begin not in text:
        text += f"{begin}\n{END}\n"
    head, rest = text.split(begin, 1)
    return f"{head}{begin}\n\n{generated}\n\n{rest[rest.index(END):]}"


def write(results: Results, folder: Path, training: Training = QUARTER) -> None:
    """Writes the page and its picture into a folder and prints the targets. Raises RuntimeError where nothing was measured."""
    cells = [cell(results, rate, row.name) for rate in RATES for row in training.rows]
    cells = [c for c in cells if c.strait is not None or c.torch is not None]
    if not cells:
        raise RuntimeError(f"{folder / training.page}.json: expected figures, found none")
    page = folder / f"{training.page}.md"
    generated = f"{origin(results, cells, training)}\n\n{table(cells)}\n\n{one_machine_table(cells)}{target_table(cells, training)}"
    head = f"# {training.title}\n\n![Samples per second over link rate]({training.page}.svg)\n\n"
    page.write_text(replace_between_markers(page.read_text() if page.exists() else head, generated))
    (folder / f"{training.page}.svg").write_text(chart.draw(cells))
    for text, value, least in targets(cells, training):
        print(f"{verdict(value, least)}  {show(value, '.2f')}  at least {least:.2f}  {text}")


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3) or sys.argv[2:3] and sys.argv[2] not in TRAININGS:
        sys.exit(__doc__)
    of = TRAININGS[sys.argv[2]] if len(sys.argv) == 3 else QUARTER
    at = Path(sys.argv[1])
    sys.exit(run_main("report.py", lambda: write(Results(at / f"{of.page}.json"), at, of)))
