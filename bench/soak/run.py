#!/usr/bin/env python3
"""Trains with four processes for a given time and watches their memory.

    bench/soak/run.py --hours 1 --out FOLDER [--strait build/strait]

Every epoch the processes compare checksums of the state that both endpoints of each link keep, and end with an error when
two differ; so a run that is stopped in order (exit status 130) has not drifted. Memory is the resident set of each
process, sampled every ten seconds. Writes FOLDER/soak.json (samples, configuration, code version, machine) and
FOLDER/soak.md, a table: memory after the first tenth of the time, at the end, the largest, and the growth an hour as
the slope of a line through the samples after that tenth. The run itself lies in FOLDER/run.
"""

import argparse
import json
import pathlib
import signal
import subprocess
import sys
import time
from typing import Any

STOPPED = 130
SECONDS_BETWEEN_SAMPLES = 10


def rank_of(pid: int) -> int | None:
    """The rank in a process's variables, if it is a child that trains."""
    try:
        variables = pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return None
    return next((int(v[5:]) for v in variables if v.startswith(b"RANK=")), None)


def resident_megabytes(pid: int) -> float:
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS")) / 1024


def children(parent: int) -> dict[int, int]:
    """Process ids by rank."""
    pids = pathlib.Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return {rank: int(pid) for pid in pids if (rank := rank_of(int(pid))) is not None}


def slope(points: list[tuple[float, float]]) -> float:
    """Of the least-squares line through (x, y)."""
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / spread


def watch(launcher: subprocess.Popen, seconds: float) -> dict[int, list[tuple[float, float]]]:
    """Samples (hours, megabytes) of each rank until the time is over or the launcher has ended."""
    samples: dict[int, list[tuple[float, float]]] = {}
    begin = time.monotonic()
    while time.monotonic() - begin < seconds and launcher.poll() is None:
        time.sleep(SECONDS_BETWEEN_SAMPLES)
        for rank, pid in children(launcher.pid).items():
            samples.setdefault(rank, []).append(((time.monotonic() - begin) / 3600, resident_megabytes(pid)))
    return samples


def table(result: dict[str, Any]) -> str:
    lines = ["# Soak", "",
             f"Four processes of strait {result['run']['code_version']} for {result['hours']:.2f} hours, "
             f"{result['epochs']} epochs, `ef21` in both directions ({result['run']['machine']}, each process). "
             f"Exit status {result['exit_status']}: {STOPPED} means stopped in order, with the state of the two "
             "endpoints of every link equal after each epoch. Configuration and all samples: [soak.json](soak.json).", "",
             "| rank | settled MB | last MB | largest MB | growth MB/h |", "| ---: | ---: | ---: | ---: | ---: |"]
    for rank, points in sorted(result["samples"].items()):
        settled = points[len(points) // 10:]
        lines.append(f"| {rank} | {settled[0][1]:.1f} | {settled[-1][1]:.1f} | {max(y for _, y in points):.1f} | "
                     f"{slope(settled):.2f} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hours", type=float, default=1.0)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--strait", default="build/strait")
    flags = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # which ends what was launched
    config = pathlib.Path(__file__).with_name("resnet18.toml")
    run = flags.out / "run"
    launcher = subprocess.Popen([flags.strait, "launch", "-n", "4", "--", "train", config, "--out", run, "--overwrite"],
                                stdout=subprocess.DEVNULL)
    try:
        samples = watch(launcher, flags.hours * 3600)
    finally:
        if launcher.poll() is None:
            launcher.send_signal(signal.SIGINT)
        status = launcher.wait()
    if not samples or not (run / "metrics.jsonl").exists():
        print(f"run.py: {' '.join(map(str, launcher.args))}: exit status {status} before the first epoch and sample", file=sys.stderr)
        return 1
    result = {"exit_status": status, "epochs": sum(1 for _ in (run / "metrics.jsonl").open(encoding="utf-8")),
              "hours": max(points[-1][0] for points in samples.values()),
              "config": (run / "config.toml").read_text(encoding="utf-8"),
              "run": json.loads((run / "status.json").read_text(encoding="utf-8")), "samples": samples}
    (flags.out / "soak.json").write_text(json.dumps(result) + "\n", encoding="utf-8")
    text = table(result)
    (flags.out / "soak.md").write_text(text, encoding="utf-8")
    print(text)
    return 0 if status == STOPPED else 1


if __name__ == "__main__":
    sys.exit(main())
