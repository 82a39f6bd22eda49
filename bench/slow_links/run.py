"""Trains over emulated slow links, with strait and with plain PyTorch, and writes a table, a chart and all figures.

    sudo python3 bench/slow_links/run.py [--rates 100Mbps 20Mbps] [--rows "raw fp32" fp16] [--repeat 3] [--seconds 15]

What the results already hold for the same programs and seconds is not measured again; --fresh measures all anew.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import report
from network import INTERFACE, Network, address, exit_on_sigterm, wait_all
from results import Measurement, Results
from rows import (BATCH, EPOCHS, ONE_MACHINE, QUARTER, RATES, ROWS, SECONDS, SIDES, TORCH_BITS, TRAININGS, Row, Training,
                  rate_of)

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TORCH_PIPELINE = HERE / "torch_pipeline.py"
STAGES = QUARTER.stages
CONFIG = HERE / QUARTER.config
SMALL_CONFIG = ROOT / "experiments" / "small" / "resnet18.toml"  # of what trains to a target, with these settings
SMALL_SETTINGS = {"pipeline.micro_batches": 4, "train.schedule.kind": "constant", "train.threads": 1,
                  "checkpoint.every_epochs": 0, "checkpoint.copies": 0}
SECRET = "of the hosts of this benchmark"
TIMEOUT = 900.0
PLAN_KEYS = {"ideal_step_seconds", "predicted_step_seconds", "measured_step_seconds"}


def fingerprint(seconds: float, *files: Path) -> str:
    """Names the programs and the length that a measurement depends on; the links belong to every one."""
    digest = hashlib.sha256(f"{seconds:g}".encode())
    for file in (HERE / "network.py", HERE / "rows.py", *files):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


def rank_environment(rank: int, ranks: int, rate: str, side: str) -> dict[str, str]:
    local = rate == ONE_MACHINE
    environment = os.environ | {"RANK": str(rank), "WORLD_SIZE": str(ranks), "MASTER_PORT": "29500",
                                "LOCAL_RANK": str(rank if local else 0), "LOCAL_WORLD_SIZE": str(ranks if local else 1),
                                "MASTER_ADDR": "127.0.0.1" if local else address(0),
                                "GLOO_SOCKET_IFNAME": "lo" if local else INTERFACE, "OMP_NUM_THREADS": "1"}
    return environment if local and side != "tls" else environment | {"STRAIT_SECRET": SECRET}


def set_flags(settings: dict[str, object]) -> list[str]:
    """The flags with which strait train takes them."""
    return [text for key, value in settings.items() for text in ("--set", f"{key}={value}")]


def train_arguments(strait: Path, codec: str, folder: Path, settings: dict[str, object]) -> list[str]:
    """Trains SMALL_CONFIG with the codec both ways."""
    flags = set_flags(SMALL_SETTINGS | settings | {"compression.activations.codec": codec, "compression.gradients.codec": codec})
    return [str(strait), "train", str(SMALL_CONFIG), *flags, "--out", str(folder)]


def run_ranks(network: Network, rate: str, side: str, arguments: list[str], folder: Path) -> str:
    """Runs a process of each rank, on one host or on one each, and returns what rank 0 prints. Raises RuntimeError
    when one fails."""
    processes = []
    for rank in range(network.hosts):
        with (folder / f"{rank}.out").open("w") as out, (folder / f"{rank}.err").open("w") as err:
            processes.append(network.start(0 if rate == ONE_MACHINE else rank, arguments,
                                           env=rank_environment(rank, network.hosts, rate, side), stdout=out, stderr=err))
    statuses = wait_all(processes, TIMEOUT)
    if any(statuses):
        said = [f"  rank {rank}, status {status}: {last_line(folder / f'{rank}.err')}"
                for rank, status in enumerate(statuses)]
        raise RuntimeError("\n".join([" ".join(arguments), *said]))
    return (folder / "0.out").read_text()


def last_line(file: Path) -> str:
    return (file.read_text().strip().splitlines() or ["nothing on standard error"])[-1]


def plan_of_run(node: object) -> dict[str, float]:
    """What `strait plan --json` says of the measured run: the object in it that holds PLAN_KEYS."""
    if isinstance(node, dict) and PLAN_KEYS <= node.keys():
        return {key: node[key] for key in sorted(PLAN_KEYS)}
    children = node.values() if isinstance(node, dict) else node if isinstance(node, list) else []
    return next((found for child in children if (found := plan_of_run(child))), {})


def plan(strait: Path, run: Path, rate: str) -> dict[str, float]:
    bandwidth = "unlimited" if rate == ONE_MACHINE else rate
    arguments = [str(strait), "plan", "--measured", str(run), "--bandwidth", bandwidth, "--json"]
    done = subprocess.run(arguments, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(arguments)}\n  {done.stderr.strip()}")
    found = plan_of_run(json.loads(done.stdout))
    if not found:
        raise RuntimeError(f"{' '.join(arguments)}\n  printed no {', '.join(sorted(PLAN_KEYS))}")
    return found


def measure_strait(strait: Path, network: Network, training: Training, rate: str, side: str, row: Row, seconds: float,
                   folder: Path) -> dict[str, object]:
    run = folder / "run"
    settings = {"compression.activations.codec": row.activations, "compression.gradients.codec": row.gradients,
                "data.train_limit": BATCH * training.steps_an_epoch(seconds, row.bits, rate_of(rate)),
                "train.epochs": EPOCHS, "data.root": "data", "pipeline.transport": "c10d" if side == "c10d" else "tcp"}
    overrides = set_flags(settings)
    run_ranks(network, rate, side, [str(strait), "train", str(HERE / training.config), *overrides, "--out", str(run)], folder)
    epochs = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    status = json.loads((run / "status.json").read_text())
    timed = epochs[1:]
    taken = sum(epoch["seconds"] for epoch in timed)
    steps = sum(epoch["steps"] for epoch in timed)
    return {"samples_per_second": steps * BATCH / taken, "seconds": taken, "steps": steps,
            "epochs": [epoch["samples_per_second"] for epoch in epochs], "last_epoch": epochs[-1],
            "plan": plan(strait, run, rate), "config": (run / "config.toml").read_text(),
            "code_version": status["code_version"], "machine": status["machine"]}


def measure_torch(python: str, network: Network, rate: str, row: Row, seconds: float,
                  folder: Path) -> dict[str, object]:
    steps = QUARTER.steps_an_epoch(seconds, TORCH_BITS[row.torch], rate_of(rate))
    arguments = [python, str(TORCH_PIPELINE), "--codec", row.torch, "--batch", str(BATCH),
                 "--warm-up", str(steps), "--steps", str((EPOCHS - 1) * steps)]
    figures: dict[str, object] = json.loads(run_ranks(network, rate, "pytorch", arguments, folder))
    return figures


class Bench:
    def __init__(self, flags: argparse.Namespace) -> None:
        self._flags = flags
        self._training = TRAININGS[flags.training]
        self._results = Results(flags.out / f"{flags.training}.json")
        self._versions = {"pytorch": fingerprint(flags.seconds, TORCH_PIPELINE)}
        if flags.sides != ["pytorch"]:
            own = fingerprint(flags.seconds, HERE / "resnet18.toml", HERE / self._training.config, flags.strait)  # the first is a base
            self._versions |= {side: own for side in SIDES if side != "pytorch"}
        self._results.keep(self._versions)

    def run(self) -> None:
        for turn in range(self._flags.repeat):
            for rate in self._flags.rates:
                with Network(self._training.stages, rate_of(rate)) as network:
                    for row in self._training.rows:
                        if row.name in self._flags.rows:
                            self._measure_row(network, rate, row, turn)
        report.write(self._results, self._flags.out, self._training)

    def _measure_row(self, network: Network, rate: str, row: Row, turn: int) -> None:
        for side in self._flags.sides:
            if side not in self._training.sides or not row.has(side, rate):
                continue
            at = Measurement(side, rate, row.name, turn, self._versions[side])
            if at in self._results and not self._flags.fresh:
                continue
            with tempfile.TemporaryDirectory(prefix="strait-slow-links-") as name:
                if side == "pytorch":
                    figures = measure_torch(self._flags.python, network, rate, row, self._flags.seconds, Path(name))
                else:
                    figures = measure_strait(self._flags.strait, network, self._training, rate, side, row,
                                             self._flags.seconds, Path(name))
            self._results.add(at, figures | {"date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())})
            print(f"{turn + 1}  {rate:>11}  {row.name:<22}  {side:<7}  "
                  f"{figures['samples_per_second']:8.1f} samples/s", flush=True)


def parse_flags() -> argparse.Namespace:
    names = [row.name for row in ROWS]
    parser = argparse.ArgumentParser(description="Training over emulated slow links")
    parser.add_argument("--training", choices=TRAININGS, default=QUARTER.page, help=f"and the name of its page (default {QUARTER.page})")
    parser.add_argument("--rates", nargs="+", choices=RATES, default=RATES)
    parser.add_argument("--rows", nargs="+", choices=names, default=names, metavar="ROW", help=", ".join(names).replace("%", "%%"))
    parser.add_argument("--repeat", type=int, default=1, help="rounds; the table shows medians and the spread")
    parser.add_argument("--seconds", type=float, default=SECONDS,
                        help=f"how long a measurement trains, about, a third of it to warm up (default {SECONDS:g})")
    parser.add_argument("--sides", nargs="+", choices=SIDES, default=SIDES)
    parser.add_argument("--strait", type=Path, default=ROOT / "build" / "strait")
    parser.add_argument("--python", default="/usr/bin/python3", help="one that has torch")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "results", help="folder of the results")
    parser.add_argument("--fresh", action="store_true", help="measure again what is there")
    flags = parser.parse_args()
    flags.strait, flags.out = flags.strait.resolve(), flags.out.resolve()
    if flags.sides != ["pytorch"] and not flags.strait.is_file():
        parser.error(f"{flags.strait} is not there; build it or name another with --strait")
    return flags


def main() -> int:
    exit_on_sigterm()
    flags = parse_flags()
    try:
        Bench(flags).run()
    except (RuntimeError, OSError) as error:
        print(f"run.py: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("stopped; the same command resumes", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
