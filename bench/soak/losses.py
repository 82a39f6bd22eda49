#!/usr/bin/env python3
"""Kills ranks and loses disks at random, resumes, and compares with a run that nothing happened to.

    bench/soak/losses.py --events 40 --out FOLDER [--seed 0] [--strait build/strait]

Four processes train a narrow network on drawn pictures, with a checkpoint after every step and checkpoint.copies = 1,
each in a folder of its own that stands for a machine's disk. Again and again some or all of them are killed with
SIGKILL, a quarter of the times soon after the start, otherwise within a second of a new checkpoint's first part. Every
second time a machine then loses its disk, or two swap theirs; a second disk goes only once a checkpoint has been made
since the first, because until then the first one's copies are missing. Every run must come to its end with the model
and the metrics (but for the times) of an undisturbed run of one process. Writes FOLDER/losses.json (events,
configuration, code version) and ends with status 1 at the first difference.
"""

import argparse
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
from typing import Any

RANKS = 4
CONFIG = """name = "losses"
seed = 7
[model]
width = 4
[data]
kind = "shapes"
train_limit = 160
test_limit = 40
batch_size = 20
[train]
epochs = 3
threads = 1
[pipeline]
micro_batches = 2
timeout = "20s"
[compression]
activations = { codec = "quant:4,scope=sample", feedback = "ef21" }
gradients = { codec = "topk:0.2", feedback = "ef" }
[checkpoint]
every_steps = 1
copies = 1
"""
TIMES = {
    "seconds",
    "samples_per_second",
    "evaluation_seconds",
    "data_wait_seconds",
    "encode_seconds",
    "decode_seconds",
    "bubble_share",
    "stages",
    "links",
}


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_times(item) for key, item in value.items() if key not in TIMES}
    return [without_times(item) for item in value] if isinstance(value, list) else value


def result_of(run: pathlib.Path) -> tuple[bytes, list[Any]]:
    lines = (run / "metrics.jsonl").read_text().splitlines()
    return (run / "model.safetensors").read_bytes(), [without_times(json.loads(line)) for line in lines]


class Disks:
    """A folder for each machine, which stands for its disk."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder

    def disk(self, rank: int) -> pathlib.Path:
        return self.folder / f"machine-{rank}"

    def lose(self, rank: int) -> None:
        shutil.rmtree(self.disk(rank), ignore_errors=True)


class Machines(Disks):
    """Four disks, and the ranks that train on them."""

    def __init__(self, strait: pathlib.Path, config: pathlib.Path, folder: pathlib.Path) -> None:
        super().__init__(folder)
        self.strait = strait
        self.config = config

    def start(self) -> list[subprocess.Popen]:
        port = str(free_port())
        started = []
        for rank in range(RANKS):
            variables = {"RANK": str(rank), "WORLD_SIZE": str(RANKS), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
            words = [self.strait, "train", self.config, "--resume", "--out", self.disk(rank)]
            with open(self.folder / f"log-{rank}", "ab") as log:
                started.append(subprocess.Popen(words, env=os.environ | variables, stdout=log, stderr=log))
        return started

    def latest(self) -> str:
        """The name of the newest checkpoint of which any part has its name; empty where there is none."""
        folders = [name for _, names, _ in os.walk(self.folder) for name in names]  # passes over what goes meanwhile
        return max((name for name in folders if name.startswith("epoch-") and "." not in name), default="")

    def newest(self) -> str:
        """The name of the newest checkpoint of which every rank has its part; empty where there is none."""
        names = []
        for rank in range(RANKS):
            parts = self.disk(rank) / "checkpoint"
            if rank > 0:
                parts /= f"rank-{rank}"
            names.append(max((p.name for p in parts.glob("epoch-*") if p.suffix != ".partial"), default=""))
        return min(names)

    def swap(self, a: int, b: int) -> None:
        between = self.folder / "between"
        for rank in (a, b):
            self.disk(rank).mkdir(exist_ok=True)
        self.disk(a).rename(between)
        self.disk(b).rename(self.disk(a))
        between.rename(self.disk(b))


def disturb(machines: Machines, draws: random.Random, lost_at: str) -> tuple[dict[str, Any], str]:
    """Starts all ranks and kills some of them, perhaps with a disk; says what happened."""
    before = machines.latest()
    ranks = machines.start()
    if draws.random() < 0.75:
        while machines.latest() <= before and all(process.poll() is None for process in ranks):
            time.sleep(0.002)
    time.sleep(draws.uniform(0, 1))
    victims = draws.sample(range(RANKS), draws.choice([1, 1, 2, RANKS]))
    for rank in victims:
        ranks[rank].send_signal(signal.SIGKILL)
    statuses = [process.wait() for process in ranks]
    event: dict[str, Any] = {"killed": victims, "statuses": statuses, "checkpoint": machines.newest()}
    if 2 in statuses:
        raise RuntimeError(f"a rank refused to resume: {event}")
    if draws.random() < 0.5 or statuses == [0] * RANKS:
        return event, lost_at
    if draws.random() < 0.3:
        event["swapped"] = draws.sample(range(RANKS), 2)
        machines.swap(*event["swapped"])
        # Until the next checkpoint some parts are where nobody looks for their copies, and count as lost with a disk.
        return event, event["checkpoint"]
    if event["checkpoint"] > lost_at:
        event["lost"] = draws.randrange(RANKS)
        machines.lose(event["lost"])
        return event, event["checkpoint"]
    return event, lost_at


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--events", type=int, default=40, help="kills, each with or without a lost disk")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--strait", type=pathlib.Path, default=pathlib.Path("build/strait"))
    flags = parser.parse_args()
    strait = flags.strait.resolve()
    flags.out.mkdir(parents=True)
    config = flags.out / "losses.toml"
    config.write_text(CONFIG)
    subprocess.run([strait, "train", config, "--out", flags.out / "whole"], check=True, stdout=subprocess.DEVNULL)
    whole = result_of(flags.out / "whole")
    draws = random.Random(flags.seed)
    events: list[dict[str, Any]] = []
    runs = 0
    while len(events) < flags.events:
        folder = flags.out / f"run-{runs}"
        folder.mkdir()
        machines = Machines(strait, config, folder)
        lost_at = ""
        limit = len(events) + 12  # then let it come to its end
        while len(events) < min(limit, flags.events):
            event, lost_at = disturb(machines, draws, lost_at)
            print(f"run {runs}: {event}", flush=True)
            if event["statuses"] == [0] * RANKS:
                break  # it was done before the kill
            events.append(event | {"run": runs})
        if any(process.wait() != 0 for process in machines.start()):
            raise RuntimeError(f"the last part of {folder} failed; see its log files")
        if result_of(machines.disk(0)) != whole:
            print(f"{machines.disk(0)} differs from {flags.out / 'whole'}", file=sys.stderr)
            return 1
        runs += 1
    lost = sum("lost" in event for event in events)
    swapped = sum("swapped" in event for event in events)
    version = subprocess.run([strait, "--version"], check=True, capture_output=True, text=True).stdout.strip()
    record = {"events": events, "runs": runs, "lost": lost, "swapped": swapped, "config": CONFIG, "version": version}
    (flags.out / "losses.json").write_text(json.dumps(record, indent=2) + "\n")
    print(f"{len(events)} kills, {lost} lost disks, {swapped} swaps in {runs} runs: the same bits")
    return 0


if __name__ == "__main__":
    sys.exit(main())
