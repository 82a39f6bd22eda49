"""Every figure of the benchmark in one JSON file, and what follows from them."""

from __future__ import annotations

import json
import os
import platform
import re
import statistics
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rows import RAW

Figures = dict[str, Any]


@dataclass(frozen=True)
class Measurement:
    """What was measured: a side (of rows.SIDES, of a version), a rate, a row, and in which round."""

    side: str
    rate: str
    row: str
    turn: int
    version: str


def machine() -> dict[str, object]:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")
    return {"processor": model, "cores": os.cpu_count(), "kernel": platform.release()}


def replace(file: Path, figures: Figures) -> None:
    """Writes a JSON file in one step: what it held stays where that fails."""
    partial = file.with_suffix(".partial")
    partial.write_text(json.dumps(figures, indent=1) + "\n")
    partial.replace(file)


class Results:
    def __init__(self, file: Path) -> None:
        self._file = file
        self._figures: dict[Measurement, Figures] = {}
        self.machine = machine()
        if file.exists():
            try:
                stored = json.loads(file.read_text())
            except ValueError as error:
                raise RuntimeError(f"{file}: {error}") from error
            self.machine = stored["machine"]
            for entry in stored["measurements"]:
                figures = entry.pop("figures")
                self._figures[Measurement(**entry)] = figures

    def keep(self, versions: dict[str, str]) -> None:
        """Forgets what was measured on another machine or with another version of a program than named."""
        same_machine = self.machine == machine()
        self.machine = machine()
        self._figures = {at: figures for at, figures in self._figures.items()
                         if same_machine and versions.get(at.side, at.version) == at.version}

    def __contains__(self, at: Measurement) -> bool:
        return at in self._figures

    def add(self, at: Measurement, figures: Figures) -> None:
        """Takes a measurement in and writes the file, replacing it in one step."""
        self._figures[at] = figures
        entries = [asdict(at) | {"figures": figures} for at, figures in self._figures.items()]
        self._file.parent.mkdir(parents=True, exist_ok=True)
        replace(self._file, {"machine": self.machine, "measurements": entries})

    def of(self, side: str, rate: str, row: str) -> dict[int, Figures]:
        """The figures of each round."""
        return {at.turn: figures for at, figures in self._figures.items()
                if (at.side, at.rate, at.row) == (side, rate, row)}

    def all_of(self, key: str, side: str = "strait") -> list[Any]:
        """The different values that the figures of a side have under a key, sorted."""
        return sorted({figures[key] for at, figures in self._figures.items() if at.side == side and key in figures})


@dataclass(frozen=True)
class Spread:
    """The same figure of several rounds."""

    low: float
    median: float
    high: float
    rounds: int


def spread(values: Iterable[float]) -> Spread | None:
    found = sorted(values)
    return Spread(found[0], statistics.median(found), found[-1], len(found)) if found else None


def of_rounds(figures: dict[int, Figures], value: Callable[[Figures], float]) -> Spread | None:
    return spread(value(f) for f in figures.values())


def samples_per_second(figures: Figures) -> float:
    return float(figures["samples_per_second"])


def ratio(over: dict[int, Figures], under: dict[int, Figures]) -> Spread | None:
    """Over the rounds that both have: each ratio is of one round, within which the machine's speed drifts least."""
    return spread(samples_per_second(over[turn]) / samples_per_second(under[turn])
                  for turn in over.keys() & under.keys())


def of_measured_step(key: str) -> Callable[[Figures], float]:
    """A time that `strait plan` gives over the time of a measured step; both are of the run's last epoch."""
    return lambda figures: float(figures["plan"][key] / figures["plan"]["measured_step_seconds"])


def cores_at_work(cores: int) -> Callable[[Figures], float]:
    """The time of all stages' passes in a step over what the cores have in that time. A pass that waits for a core
    counts all the same."""
    def share(figures: Figures) -> float:
        micro_batches = int(re.search(r"(?m)^micro_batches = (\d+)$", figures["config"])[1])
        passes = sum(stage["forward_seconds"] + stage["backward_seconds"] for stage in figures["last_epoch"]["stages"])
        return float(micro_batches * passes / figures["plan"]["measured_step_seconds"] / cores)
    return share


def byte_ratio(figures: Figures) -> float:
    """Bytes of float32 over bytes sent, all boundaries and both directions of the last epoch."""
    traffic = [boundary[direction] for boundary in figures["last_epoch"]["boundaries"]
               for direction in ("activations", "gradients")]
    return float(sum(t["raw_bytes"] for t in traffic) / sum(t["wire_bytes"] for t in traffic))


@dataclass(frozen=True)
class Cell:
    """A rate and a codec. Rates in samples per second; None where it was not measured."""

    rate: str
    row: str
    byte_ratio: Spread | None
    strait: Spread | None
    speed_up: Spread | None  # over strait's raw fp32
    ideal_share: Spread | None
    cores: Spread | None  # cores_at_work()
    predicted: Spread | None  # the predicted time of a step over the measured one
    torch: Spread | None
    over_torch: Spread | None
    c10d: Spread | None
    c10d_ideal_share: Spread | None
    over_c10d: Spread | None
    tls: Spread | None  # on one machine, where strait needs none
    tls_share: Spread | None  # of what it makes without


def cell(results: Results, rate: str, row: str) -> Cell:
    strait, torch, c10d, tls = (results.of(side, rate, row) for side in ("strait", "pytorch", "c10d", "tls"))
    return Cell(
        rate, row,
        byte_ratio=of_rounds(strait, byte_ratio),
        strait=of_rounds(strait, samples_per_second),
        speed_up=ratio(strait, results.of("strait", rate, RAW)),
        ideal_share=of_rounds(strait, of_measured_step("ideal_step_seconds")),
        cores=of_rounds(strait, cores_at_work(results.machine["cores"])),
        predicted=of_rounds(strait, of_measured_step("predicted_step_seconds")),
        torch=of_rounds(torch, samples_per_second),
        over_torch=ratio(strait, torch),
        c10d=of_rounds(c10d, samples_per_second),
        c10d_ideal_share=of_rounds(c10d, of_measured_step("ideal_step_seconds")),
        over_c10d=ratio(strait, c10d),
        tls=of_rounds(tls, samples_per_second),
        tls_share=ratio(tls, strait))
