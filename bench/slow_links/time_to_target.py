"""What `strait frontier` predicts of a run in one process against the same training over emulated slow links.

    sudo python3 bench/slow_links/time_to_target.py [--rates 100Mbps 20Mbps] [--codecs none] [--hosts 4] [--micro-batches 4]
                                                    [--latency 10ms] [--target loss=2.05]

For each codec ResNet-18 is trained in one process, and `strait frontier` says what its time to the target would be over each
rate. Then every stage is trained on a host of its own, whose link tbf limits to that rate; the latency is that of
pipeline.link, since nothing else here makes one. The time is the training time that the first process counts, evaluation left
out. Both trainings have the same bits, and so the same steps to the target, which is checked. A second forecast has the times that
the stages took over these links, where processes share the machine's cores: what it is off by is the network's alone. Adds to
the rows of docs/results/time_to_target.json, or replaces them where they have another target or latency, and renews the table of
docs/results/time_to_target.md.
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
MICRO_BATCHES = SMALL_SETTINGS["pipeline.micro_batches"]
CUTS = {STAGES: ["layer1", "layer2", "layer3"], 2: ["layer2"]}  # of so many hosts, a stage on each


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
    settings = TO_TARGET | {"model.cuts": json.dumps(CUTS[flags.hosts]), "pipeline.micro_batches": flags.micro_batches}
    run(train_arguments(flags.strait, codec, alone, settings))
    rows = []
    for rate in flags.rates:
        forecast = predicted(flags.strait, alone, flags, rate)
        steps = int(forecast["steps"])
        out = folder / rate
        with Network(flags.hosts, rate_of(rate)) as network:
            run_ranks(network, rate, "strait",
                      train_arguments(flags.strait, codec, out, settings | {"pipeline.link": f"unlimited,{flags.latency}"}), folder)
        status = json.loads((out / "status.json").read_text())
        seconds, lines = steps_of(out, steps)
        if lines != steps_of(alone, steps)[1]:
            raise RuntimeError(f"{out}: its losses and bytes are not those of one process")
        shared = predicted(flags.strait, out, flags, rate)
        rows.append({"codec": name, "rate": rate, "hosts": flags.hosts, "micro_batches": flags.micro_batches,
                     "steps": steps, "bytes": sum(sent for _, sent in lines),
                     "predicted": forecast["seconds"], "measured": seconds, "predicted_sharing_cores": shared["seconds"],
                     "code_version": status["code_version"], "machine": status["machine"]})
        print(f"{name:>20} {rate:>8}  {steps} steps, predicted {forecast['seconds']:.1f} and {shared['seconds']:.1f} s, "
              f"measured {seconds:.1f} s", flush=True)
    return rows


def table(rows: list[dict[str, object]]) -> str:
    lines = ["| code | hosts | micro-batches | codec, both ways | link | steps | MB | predicted s | measured s | predicted over measured | "
             "with stage times there |",
             "| --- | ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"]
    for row in rows:
        shared = row.get("predicted_sharing_cores")
        lines.append(f"| {row['code_version']} | {row.get('hosts', STAGES)} | {row.get('micro_batches', MICRO_BATCHES)} | "
                     f"{row['codec']} | {row['rate']} | {row['steps']} | {row['bytes'] / 1e6:.1f} | "
                     f"{row['predicted']:.1f} | {row['measured']:.1f} | {row['predicted'] / row['measured']:.3f} | "
                     f"{'' if shared is None else format(shared / row['measured'], '.3f')} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rates", nargs="+", default=["100Mbps", "20Mbps"])
    parser.add_argument("--codecs", nargs="+", choices=list(CODECS), default=list(CODECS), metavar="CODEC")
    parser.add_argument("--hosts", type=int, choices=list(CUTS), default=STAGES)
    parser.add_argument("--micro-batches", type=int, default=MICRO_BATCHES)
    parser.add_argument("--latency", default="10ms")
    parser.add_argument("--target", default="loss=2.05")
    parser.add_argument("--strait", type=Path, default=ROOT / "build" / "strait")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "results")
    flags = parser.parse_args()
    file = flags.out / "time_to_target.json"
    about = {"latency": flags.latency, "target": flags.target, "settings": SMALL_SETTINGS | TO_TARGET}
    before = json.loads(file.read_text()) if file.exists() else about
    rows = before.get("rows", []) if all(before[key] == about[key] for key in about) else []
    with tempfile.TemporaryDirectory() as folder:
        for name in flags.codecs:
            rows += measure(flags, name, CODECS[name], Path(folder) / name.replace(" ", "-").replace(",", ""))
            file.write_text(json.dumps(about | {"rows": rows}, indent=1) + "\n")
    page = flags.out / "time_to_target.md"
    page.write_text(replace_between_markers(page.read_text() if page.exists() else "", table(rows)))


if __name__ == "__main__":
    sys.exit(run_main("time_to_target.py", main))
