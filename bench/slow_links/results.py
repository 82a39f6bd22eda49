"""Every figure of the benchmark in one JSON file, and what follows from them."""

from __future__ import annotations

import json
import os
import platform
import statistics
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rows import BATCH, RAW

Figures = dict[str, Any]


@dataclass(frozen=True)
class Measurement:
    """What was measured: a program (strait or pytorch, of a version), a rate, a row, and in which round."""

    side: str
    rate: str
    row: str
    turn: int
    version: str


def machine() -> dict[str, object]:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")
    return {"processor": model, "cores": os.cpu_count(), "kernel": platform.release()}


class Results:
    def __init__(self, file: Path) -> None:
        self._file = file
        self._figures: dict[Measurement, Figures] = {}
        self.machine = machine()
        if file.exists():
            stored = json.loads(file.read_text())
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
        partial = self._file.with_suffix(".partial")
        partial.write_text(json.dumps({"machine": self.machine, "measurements": entries}, indent=1) + "\n")
        partial.replace(self._file)

    def of(self, side: str, rate: str, row: str) -> dict[int, Figures]:
        """The figures of each round."""
        return {at.turn: figures for at, figures in self._figures.items()
                if (at.side, at.rate, at.row) == (side, rate, row)}

    def code_versions(self) -> list[str]:
        return sorted({figures["code_version"] for figures in self._figures.values() if "code_version" in figures})

    def torch_versions(self) -> list[str]:
        return sorted({figures["torch"] for figures in self._figures.values() if "torch" in figures})

    def rounds(self) -> int:
        return 1 + max((at.turn for at in self._figures), default=-1)


def median(figures: dict[int, Figures], value: Callable[[Figures], float]) -> float | None:
    return statistics.median(map(value, figures.values())) if figures else None


def ratio(over: dict[int, Figures], under: dict[int, Figures]) -> float | None:
    """The median over rounds that both have: within a round the machine's speed drifts least."""
    ratios = [over[turn]["samples_per_second"] / under[turn]["samples_per_second"]
              for turn in over.keys() & under.keys()]
    return statistics.median(ratios) if ratios else None


@dataclass(frozen=True)
class Cell:
    """A rate and a codec. Rates in samples a second; None where it was not measured."""

    rate: str
    row: str
    strait: float | None
    speed_up: float | None  # over strait's raw fp32
    ideal_share: float | None
    prediction_error: float | None  # of the time of a step, relative
    torch: float | None
    over_torch: float | None


def cell(results: Results, rate: str, row: str) -> Cell:
    strait, torch = results.of("strait", rate, row), results.of("pytorch", rate, row)
    return Cell(
        rate, row,
        strait=median(strait, lambda f: f["samples_per_second"]),
        speed_up=ratio(strait, results.of("strait", rate, RAW)),
        ideal_share=median(strait, lambda f: f["plan"]["ideal_step_seconds"] * f["samples_per_second"] / BATCH),
        prediction_error=median(strait, lambda f: f["plan"]["predicted_step_seconds"] *
                                f["samples_per_second"] / BATCH - 1),
        torch=median(torch, lambda f: f["samples_per_second"]),
        over_torch=ratio(strait, torch))
