"""What `strait frontier` predicts of a run in one process against the same training over emulated slow links.

    sudo python3 bench/slow_links/time_to_target.py [--rates 100Mbps 20Mbps] [--latency 10ms] [--target loss=2.05]

For each codec ResNet-18 is trained in one process, and `strait frontier` says what its time to the target would be over each
rate. Then every stage is trained on a host of its own, whose link tbf limits to that rate; the latency is that of
pipeline.link, since nothing else here makes one. The time is the training time that the first process counts, evaluation left
out. Both trainings have the same bits, and so the same steps to the target, which is checked. Writes
docs/results/time_to_target.json and renews the table of docs/results/time_to_target.md.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from network import Network, run_main
from report import replace_between_markers
from run import ROOT, SMALL_SETTINGS, STAGES, run_ranks, train_arguments
from rows import rate_of

CODECS = {"none": "none", "quant:4 by blocks": "quant:4,scope=block:64", "topk 10%, 8 bits": "topk:0.1,values=quant:8"}
TO_TARGET = {"data.train_limit": 5000, "data.test_limit": 200, "train.epochs": 1, "train.log_every": 5,
             "train.evaluate_every": 5}


def run(arguments: list[str]) -> str:
    done = subprocess.run(arguments, capture_output=True, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout


def predicted(strait: Path, folder: Path, flags: argparse.Namespace, rate: str) -> dict[str, float]:
    row = json.loads(run([str(strait), "frontier", str(folder), "--network", f"{rate},{flags.latency}", "--target", flags.target,
                          "--json"]))["rows"][0]
    if not row["reached"]:
        raise RuntimeError(f"{folder}: never reaches {flags.target}")
    return row


def steps_of(folder: Path, steps: int) -> tuple[float, list[tuple[float, float]]]:
    """The time of so many steps, and the losses and bytes of what they are counted in."""
    lines = [json.loads(line) for line in (folder / "steps.jsonl").read_text().splitlines()]
    counted = [line for line in lines if line["step"] <= steps]
    return sum(line["seconds"] for line in counted), [(line["train_loss"], line["wire_bytes"]) for line in counted]


def measure(flags: argparse.Namespace, name: str, codec: str, folder: Path) -> list[dict[str, object]]:
    alone = folder / "alone"
    run(train_arguments(flags.strait, codec, alone, TO_TARGET))
    rows = []
    for rate in flags.rates:
        forecast = predicted(flags.strait, alone, flags, rate)
        steps = int(forecast["steps"])
        out = folder / rate
        with Network(STAGES, rate_of(rate)) as network:
            run_ranks(network, rate, "strait",
                      train_arguments(flags.strait, codec, out, TO_TARGET | {"pipeline.link": f"unlimited,{flags.latency}"}), folder)
        status = json.loads((out / "status.json").read_text())
        seconds, lines = steps_of(out, steps)
        if lines != steps_of(alone, steps)[1]:
            raise RuntimeError(f"{out}: its losses and bytes are not those of one process")
        rows.append({"codec": name, "rate": rate, "steps": steps, "bytes": sum(sent for _, sent in lines),
                     "predicted": forecast["seconds"], "measured": seconds, "code_version": status["code_version"],
                     "machine": status["machine"]})
        print(f"{name:>20} {rate:>8}  {steps} steps, predicted {forecast['seconds']:.1f} s, measured {seconds:.1f} s",
              flush=True)
    return rows


def table(rows: list[dict[str, object]]) -> str:
    lines = ["| codec, both ways | link | steps | MB | predicted s | measured s | predicted over measured |",
             "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"]
    lines += [f"| {row['codec']} | {row['rate']} | {row['steps']} | {row['bytes'] / 1e6:.1f} | {row['predicted']:.1f} | "
              f"{row['measured']:.1f} | {row['predicted'] / row['measured']:.3f} |" for row in rows]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rates", nargs="+", default=["100Mbps", "20Mbps"])
    parser.add_argument("--latency", default="10ms")
    parser.add_argument("--target", default="loss=2.05")
    parser.add_argument("--strait", type=Path, default=ROOT / "build" / "strait")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "results")
    flags = parser.parse_args()
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as folder:
        for name, codec in CODECS.items():
            rows += measure(flags, name, codec, Path(folder) / name.replace(" ", "-").replace(",", ""))
    found = {"latency": flags.latency, "target": flags.target, "settings": SMALL_SETTINGS | TO_TARGET, "rows": rows}
    (flags.out / "time_to_target.json").write_text(json.dumps(found, indent=1) + "\n")
    page = flags.out / "time_to_target.md"
    page.write_text(replace_between_markers(page.read_text() if page.exists() else "", table(rows)))


if __name__ == "__main__":
    sys.exit(run_main("time_to_target.py", main))
