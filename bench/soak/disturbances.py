#!/usr/bin/env python3
"""Cuts links or kills machines at random while four ranks train, and compares with a run that nothing happened to.

    sudo bench/soak/disturbances.py --cuts 50 --out FOLDER [--seed 0] [--strait build/strait]
    sudo bench/soak/disturbances.py --deaths 20 --out FOLDER

Each rank is on an emulated host of its own (bench/slow_links/network.py), with a link of 100 Mbit/s and a disk of its
own. A cut takes a host's link away for 1, 5 or 20 s: no process may end or start again. A death kills a rank with
SIGKILL, every third time with its disk; the same line starts it again, and the others keep their processes
(pipeline.rejoin). The next death comes after the next checkpoint. The run must end with the model and the metrics (but
for the times) of an undisturbed run of one process. Writes FOLDER/disturbances.json (events, what the metrics say of
links, configuration, code version) and ends with status 1 at the first difference.
"""

import argparse
import json
import os
import pathlib
import random
import subprocess
import sys
import time
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "slow_links"))

from losses import CONFIG, RANKS, Disks, result_of  # noqa: E402
from network import Network, address, exit_on_sigterm  # noqa: E402

RATE = 100e6
STEPS_AN_EPOCH = 8


class Ranks(Disks):
    """A process per host, each with a folder of its own."""

    def __init__(self, network: Network, strait: pathlib.Path, config: pathlib.Path, folder: pathlib.Path) -> None:
        super().__init__(folder)
        self.network = network
        self.words = [str(strait), "train", str(config)]
        self.processes = [self.start(rank) for rank in range(RANKS)]

    def start(self, rank: int) -> subprocess.Popen[str]:
        variables = {"RANK": str(rank), "WORLD_SIZE": str(RANKS), "MASTER_ADDR": address(0), "MASTER_PORT": "29500",
                     "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1", "STRAIT_SECRET": "a secret of this soak"}
        with open(self.folder / f"log-{rank}", "ab") as log:
            return self.network.start(rank, [*self.words, "--out", str(self.disk(rank))], env=os.environ | variables,
                                      stdout=log, stderr=log)

    def replace(self, rank: int, with_disk: bool) -> None:
        self.processes[rank].kill()
        self.processes[rank].wait()
        if with_disk:
            self.lose(rank)
        self.processes[rank] = self.start(rank)

    def done(self) -> bool:
        return any(process.poll() is not None for process in self.processes)

    def checkpoints(self) -> str:
        return max((p.name for p in (self.disk(0) / "checkpoint").glob("epoch-*") if "." not in p.name), default="")

    def wait_for_checkpoint_after(self, name: str) -> str:
        while self.checkpoints() <= name and not self.done():
            time.sleep(0.02)
        return self.checkpoints()


def cut(ranks: Ranks, draws: random.Random) -> dict[str, Any]:
    time.sleep(draws.uniform(0, 5))
    event = {"rank": draws.randrange(RANKS), "seconds": draws.choice([1, 5, 20])}
    ranks.network.down(event["rank"])
    time.sleep(event["seconds"])
    ranks.network.up(event["rank"])
    return event


def kill(ranks: Ranks, draws: random.Random, before: str) -> dict[str, Any]:
    checkpoint = ranks.wait_for_checkpoint_after(before)
    time.sleep(draws.uniform(0, 1))
    event = {"rank": draws.randrange(RANKS), "checkpoint": checkpoint, "disk": draws.random() < 1 / 3}
    ranks.replace(event["rank"], event["disk"])
    return event


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--cuts", type=int, default=0)
    what.add_argument("--deaths", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--strait", type=pathlib.Path, default=pathlib.Path("build/strait"))
    flags = parser.parse_args()
    exit_on_sigterm()
    strait = flags.strait.resolve()
    out = flags.out.resolve()
    out.mkdir(parents=True)
    text = CONFIG.replace("epochs = 3", f"epochs = {flags.epochs}\nevaluate_epochs = 50")
    text = text.replace("every_steps = 1", f"every_steps = {STEPS_AN_EPOCH}")
    rejoin = '\nrejoin = "5m"' if flags.deaths else ""
    text = text.replace('timeout = "20s"', f'timeout = "90s"{rejoin}')
    config = out / "disturbances.toml"
    config.write_text(text)
    subprocess.run([strait, "train", config, "--out", out / "whole"], check=True, stdout=subprocess.DEVNULL)
    draws = random.Random(flags.seed)
    events: list[dict[str, Any]] = []
    with Network(RANKS, RATE) as network:
        ranks = Ranks(network, strait, config, out)
        before = ranks.wait_for_checkpoint_after("")
        for _ in range(flags.cuts or flags.deaths):
            event = cut(ranks, draws) if flags.cuts else kill(ranks, draws, before)
            before = event.get("checkpoint", before)
            if ranks.done():
                print("a process has ended: too few epochs, or a failure; see the log files", file=sys.stderr)
                return 1
            events.append(event)
            print(event, flush=True)
        statuses = [process.wait() for process in ranks.processes]
    if any(statuses):
        print(f"statuses {statuses}; see the log files", file=sys.stderr)
        return 1
    lines = (ranks.disk(0) / "metrics.jsonl").read_text().splitlines()
    links = [link for line in lines for link in json.loads(line).get("links", [])]
    version = subprocess.run([strait, "--version"], check=True, capture_output=True, text=True).stdout.strip()
    record = {"events": events, "links": links, "config": text, "version": version, "seed": flags.seed}
    (out / "disturbances.json").write_text(json.dumps(record, indent=2) + "\n")
    if result_of(ranks.disk(0)) != result_of(out / "whole"):
        print(f"{ranks.disk(0)} differs from {out / 'whole'}", file=sys.stderr)
        return 1
    outages = sum(link["outages"] for link in links)
    print(f"{len(events)} events, {outages} outages of links in the metrics: the same bits")
    return 0


if __name__ == "__main__":
    sys.exit(main())
