"""Trains from Python over emulated slow links: torch.distributed.pipelining as it is, with strait's stage, and strait.Pipeline.

    sudo PYTHONPATH=build/python .venv/bin/python3 bench/slow_links/pipelining.py [--rates 100Mbps] [--repeat 3] [--seconds 15]

Writes docs/results/pipelining.md and .json. Ratios are those within a round.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from network import Network, parse_rate, run_main
from report import show
from results import machine, spread
from run import ROOT, run_ranks

WORKER = Path(__file__).resolve().parent / "pipelining_stage.py"
STAGES = 4
CODECS = ["none", "quant:8", "quant:4", "topk:0.1,index=bitmap"]
#: The first is what the others are compared with.
ROWS = [("torch", "none"), *(("stage", codec) for codec in CODECS), *(("pipeline", codec) for codec in CODECS)]
NAMES = {"torch": "torch.distributed.pipelining", "stage": "with strait.pipelining.Stage", "pipeline": "strait.Pipeline"}


def code_version() -> str:
    done = subprocess.run(["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"], cwd=ROOT, capture_output=True,
                          text=True, check=True)
    return done.stdout.strip()


def measure(rates: list[str], repeat: int, seconds: float) -> list[dict[str, object]]:
    found = []
    for turn in range(repeat):
        for rate in rates:
            with Network(STAGES, parse_rate(rate)) as network:
                for way, codec in ROWS:
                    arguments = [sys.executable, str(WORKER), "--way", way, "--codec", codec, "--seconds", str(seconds)]
                    with tempfile.TemporaryDirectory(prefix="strait-pipelining-") as folder:
                        figures = json.loads(run_ranks(network, rate, "pytorch", arguments, Path(folder)).splitlines()[-1])
                    found.append({"round": turn, "rate": rate, "way": way, "codec": codec} | figures)
                    print(f"{turn + 1}  {rate:>9}  {way:<8}  {codec:<22}  {figures['samples_per_second']:8.1f} samples/s", flush=True)
    return found


def table(found: list[dict[str, object]], rate: str) -> list[str]:
    rounds = sorted({entry["round"] for entry in found})

    def rates_of(way: str, codec: str) -> list[float]:
        at = {entry["round"]: entry["samples_per_second"] for entry in found
              if (entry["rate"], entry["way"], entry["codec"]) == (rate, way, codec)}
        return [at[turn] for turn in rounds]

    base = rates_of(*ROWS[0])
    lines = [f"## {rate}", "", "| | codec | samples per second | over torch's own |", "|---|---|---:|---:|"]
    for way, codec in ROWS:
        values = rates_of(way, codec)
        ratios = [value / other for value, other in zip(values, base)]
        lines.append(f"| {NAMES[way]} | `{codec}` | {show(spread(values), '.1f')} | {show(spread(ratios), '.2f')} |")
    return [*lines, ""]


def page(results: dict[str, object]) -> str:
    found = results["measurements"]
    rates = list(dict.fromkeys(entry["rate"] for entry in found))
    count = len({entry["round"] for entry in found})
    intro = f"""\
ResNet-18 of a quarter of the width in four stages, each a Python process on an emulated host of its own; batches of 100 random pictures in 4
micro-batches, GPipe, the same codec forward and backward. Links as in [slow_links.md](slow_links.md).

{count} {'round' if count == 1 else 'rounds'}: medians, and in brackets the extremes; a ratio is one within a round. Seed 0. torch {found[0]['torch']}, code {results['code']},
{results['cpu']}, {results['cores']} cores, {results['date']}. Made by bench/slow_links/pipelining.py."""
    notes = [results["note"], ""] if results["note"] else []
    return "\n".join(["# Python pipelines over slow links", "", intro, "", *[line for rate in rates for line in table(found, rate)], *notes])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rates", nargs="+", default=["100Mbps"])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "results")
    parser.add_argument("--note", default="", help="the last paragraph of the page: what else the machine did, say")
    flags = parser.parse_args()
    found = measure(flags.rates, flags.repeat, flags.seconds)
    results = {"date": time.strftime("%Y-%m-%d", time.gmtime()), "code": code_version(), "cpu": machine()["processor"], "cores": os.cpu_count(),
               "seconds": flags.seconds, "note": flags.note, "measurements": found}
    (flags.out / "pipelining.json").write_text(json.dumps(results, indent=1) + "\n")
    (flags.out / "pipelining.md").write_text(page(results))


if __name__ == "__main__":
    sys.exit(run_main("pipelining.py", main))
