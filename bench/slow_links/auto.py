"""codec "auto" over links that tbf limits: one slow host among fast ones, and links that become faster in mid-run.

    sudo python3 bench/slow_links/auto.py --runs runs/auto-small [--seeds 0 1] [--codecs auto] [--targets loss=1.4 loss=1.25]
                                          [--slow 20Mbps] [--fast 500Mbps]

Every stage of ResNet-18 is trained on a host of its own. First all links are slow, and become fast after two epochs: what auto
chooses in each epoch. Then the second of the four hosts has a slow link and the others fast ones, and the test loss is to fall to a
target in the training of experiments/auto/resnet18_small.toml: for auto, which has to measure its links, the time that the first process
counts until then, evaluation left out. Of a codec by hand --runs, the folder of that sweep, knows after how many steps its training
gets there; over these links its first epoch alone is trained, which must be the same bits, and a step takes the mean of it. Writes
docs/results/auto/links.json after every training; rows of other --codecs and --seeds stay in it. Renews the tables of docs/results/auto.md.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

from network import Network, run_main
from report import replace_between_markers
from run import ROOT, STAGES, run_ranks, train_arguments
from rows import rate_of

CODECS = {"quant:8 by blocks": "quant:8,scope=block:64,ranges=bf16", "quant:4 by blocks": "quant:4,scope=block:64,ranges=bf16",
          "quant:2 by blocks": "quant:2,scope=block:64,ranges=bf16", "topk 10%, 8 bits": "topk:0.1,values=quant:8", "auto": "auto"}
VARIANTS = {"quant:8 by blocks": "quant8", "quant:4 by blocks": "quant4", "quant:2 by blocks": "quant2", "topk 10%, 8 bits": "topk10"}
TRAINING = {"data.train_limit": 10000, "train.schedule.kind": "cosine", "train.schedule.t_max": 6}
TO_TARGET = TRAINING | {"data.test_limit": 1000, "train.epochs": 6, "train.evaluate_every": 20, "train.log_every": 20}
FIRST_EPOCH = TRAINING | {"data.test_limit": 100, "train.epochs": 1}
CHANGING = {"data.train_limit": 4000, "data.test_limit": 100, "train.epochs": 5}
SLOW_HOST = 1
SLOW_EPOCHS = 2


def lines_of(file: Path) -> list[dict[str, object]]:
    """The file's lines, without a last one that is still being written."""
    return [json.loads(line) for line in file.read_bytes().split(b"\n")[:-1]] if file.exists() else []


def steps_until(epochs: list[dict[str, object]], target: float) -> int | None:
    """The steps after which a test loss is first at most the target; nothing where none is."""
    losses = [(found["step"], found["test"]["on"]["loss"]) for epoch in epochs for found in epoch["evaluations"]]
    return next((step for step, loss in losses if loss <= target), None)


def reached_by_auto(folder: Path, targets: list[float]) -> list[tuple[int, float] | None]:
    """Steps and seconds until each target."""
    steps = [steps_until(lines_of(folder / "metrics.jsonl"), target) for target in targets]
    return [one and (one, sum(line["seconds"] for line in lines_of(folder / "steps.jsonl") if line["step"] <= one)) for one in steps]


def reached_by_hand(folder: Path, run: Path, targets: list[float]) -> list[tuple[int, float] | None]:
    """The same of a training whose first epoch is in `folder`, and the whole of which in `run`."""
    first, epochs = lines_of(folder / "metrics.jsonl")[0], lines_of(run / "metrics.jsonl")
    if first["train_loss"] != epochs[0]["train_loss"]:
        raise RuntimeError(f"{run}: expected a training with the loss {first['train_loss']} in its first epoch, "
                           f"as over these links; found {epochs[0]['train_loss']}")
    steps = [steps_until(epochs, target) for target in targets]
    return [one and (one, one * first["seconds"] / first["steps"]) for one in steps]


def short(choice: dict[str, object]) -> str:
    """What was chosen, without the options of codecs."""
    return "; ".join(f"{boundary['activations']['codec'].split(',')[0]} / {boundary['gradients']['codec'].split(',')[0]}"
                     for boundary in choice["boundaries"])


def unequal(flags: argparse.Namespace, version: str, folder: Path) -> Iterator[dict[str, object]]:
    """The rows, each when its training has ended."""
    rates = [rate_of(flags.slow if host == SLOW_HOST else flags.fast) for host in range(STAGES)]
    for seed in flags.seeds:
        for at, name in enumerate(flags.codecs):
            codec = CODECS[name]
            out = folder / f"unequal-{seed}-{at}"
            settings = (TO_TARGET if codec == "auto" else FIRST_EPOCH) | {"seed": seed}
            with Network(STAGES, rates) as network:
                run_ranks(network, flags.slow, "strait", train_arguments(flags.strait, codec, out, settings), folder)
            reached = reached_by_auto(out, flags.targets) if codec == "auto" else \
                reached_by_hand(out, flags.runs / f"{VARIANTS[name]}-seed{seed}", flags.targets)
            row = {"codec": name, "seed": seed, "code_version": version, "reached": reached}
            if codec == "auto":
                row["choices"] = [choice for epoch in lines_of(out / "metrics.jsonl") for choice in epoch["choices"]]
            print(row | {"choices": ""}, flush=True)
            yield row


def changing(flags: argparse.Namespace, folder: Path) -> list[dict[str, object]]:
    out = folder / "changing"
    metrics = out / "metrics.jsonl"
    done = threading.Event()

    def speed_up(network: Network) -> None:
        while len(lines_of(metrics)) < SLOW_EPOCHS and not done.wait(0.05):
            pass
        for host in range(STAGES):
            network.change(host, rate_of(flags.fast))

    with Network(STAGES, rate_of(flags.slow)) as network:
        watcher = threading.Thread(target=speed_up, args=(network,))
        watcher.start()
        try:
            run_ranks(network, flags.slow, "strait", train_arguments(flags.strait, "auto", out, CHANGING), folder)
        finally:
            done.set()
            watcher.join()
    return [{"epoch": epoch["epoch"], "seconds": epoch["seconds"], "choice": epoch["choices"][-1]} for epoch in lines_of(metrics)]


def with_earlier(found: dict[str, object], before: dict[str, object] | None) -> list[dict[str, object]]:
    """The rows, and those that were measured before over the same links to the same targets and were not measured again."""
    if before is None:
        return found["unequal"]

    def place(row: dict[str, object]) -> tuple[int, int]:
        return row["seed"], list(CODECS).index(row["codec"])
    same = all(found[key] == before[key] for key in ("slow", "fast", "targets"))
    earlier = {place(row): {"code_version": before["code_version"]} | row for row in before["unequal"]} if same else {}
    rows = earlier | {place(row): row for row in found["unequal"]}
    return [rows[each] for each in sorted(rows)]


def tables(found: dict[str, object]) -> str:
    lines = ["| codec | seed |" + "".join(f" steps to {target} | seconds | over the best by hand |" for target in found["targets"]),
             "| --- | ---: |" + " ---: | ---: | ---: |" * len(found["targets"])]
    for row in found["unequal"]:
        line = f"| {row['codec']} | {row['seed']} |"
        for at, reached in enumerate(row["reached"]):
            by_hand = [other["reached"][at][1] for other in found["unequal"]
                       if other["seed"] == row["seed"] and other["codec"] != "auto" and other["reached"][at]]
            ratio = f"{reached[1] / min(by_hand):.3f}" if reached and by_hand else ""
            line += f" {reached[0]} | {reached[1]:.1f} | {ratio} |" if reached else " never | | |"
        lines.append(line)
    lines += ["", "| epoch | seconds | measured Mbit/s, slowest to fastest | chosen, forward / backward |", "| ---: | ---: | ---: | --- |"]
    for row in found["changing"]:
        rates = sorted(boundary[way]["bytes_per_second"] * 8e-6 for boundary in row["choice"]["boundaries"]
                       for way in ("activations", "gradients"))
        lines.append(f"| {row['epoch'] + 1} | {row['seconds']:.1f} | {rates[0]:.0f} to {rates[-1]:.0f} | {short(row['choice'])} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=Path, required=True)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1])
    parser.add_argument("--codecs", nargs="+", choices=list(CODECS), default=list(CODECS), metavar="CODEC")
    parser.add_argument("--targets", nargs="+", type=lambda text: float(text.removeprefix("loss=")), default=[1.4, 1.25])
    parser.add_argument("--slow", default="20Mbps")
    parser.add_argument("--fast", default="500Mbps")
    parser.add_argument("--strait", type=Path, default=ROOT / "build" / "strait")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "results")
    flags = parser.parse_args()
    version = subprocess.run([str(flags.strait), "--version"], capture_output=True, text=True, check=True).stdout.strip()
    file = flags.out / "auto" / "links.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    before = json.loads(file.read_text()) if file.exists() else None
    with tempfile.TemporaryDirectory() as folder:
        found = {"slow": flags.slow, "fast": flags.fast, "targets": flags.targets, "code_version": version,
                 "changing": changing(flags, Path(folder)), "unequal": []}
        for row in unequal(flags, version, Path(folder)):
            found["unequal"].append(row)
            file.write_text(json.dumps(found | {"unequal": with_earlier(found, before)}, indent=1) + "\n")
    page = flags.out / "auto.md"
    page.write_text(replace_between_markers(page.read_text() if page.exists() else "", tables(json.loads(file.read_text()))))


if __name__ == "__main__":
    sys.exit(run_main("auto.py", main))
