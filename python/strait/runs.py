"""What ``strait train`` has left in a run's folder."""

from __future__ import annotations

import json
import os
import pathlib
from typing import Any, Union

import torch

from . import _C, _load  # noqa: F401


class Metrics(list[dict[str, Any]]):
    """A run's epochs, each a dictionary as docs/runs.md says; null, where something was not measured, is None."""

    def to_pandas(self) -> Any:
        """A DataFrame with a row an epoch. Names of nested values are joined by dots, such as ``test.off.loss``; lists, such
        as that of the boundaries, stay what they are. Needs pandas."""
        import pandas

        return pandas.json_normalize(list(self), sep=".")


class Run:
    """A run that :func:`load_run` has read."""

    def __init__(self, folder: pathlib.Path):
        if not folder.is_dir():
            raise FileNotFoundError(f"{folder}: expected the folder of a run")
        self.folder = folder  #: where it is
        self.config: dict[str, Any] = _C.read_config(self._file("config.toml"))  #: as resolved; tables are dictionaries
        self.status: dict[str, Any] = {"status": "running"}  #: of status.json: how far it has come, best and last results
        if (folder / "status.json").exists():
            self.status = json.loads(_C.read_status(self._file("status.json")))
        is_done = self.status["status"] == "done"
        self.metrics = Metrics()  #: its epochs so far
        if is_done or (folder / "metrics.jsonl").exists():
            self.metrics += map(json.loads, _C.read_metrics(self._file("metrics.jsonl"), is_done))

    def _file(self, name: str) -> str:
        path = self.folder / name
        if not path.is_file():
            raise FileNotFoundError(f"{path}: expected a file of a run")
        return str(path)

    @property
    def weights(self) -> dict[str, torch.Tensor]:
        """The weights at the end, or where the run was stopped, as a ``state_dict`` under PyTorch's names; read at each call.

        Raises:
            FileNotFoundError: the run has not come so far.
            ValueError: the file is damaged.
        """
        return dict(_C.read_tensors(self._file("model.safetensors")))

    def __repr__(self) -> str:
        return f"<strait run {str(self.folder)!r}: {self.status['status']}, {len(self.metrics)} epochs>"


def load_run(folder: Union[str, os.PathLike[str]]) -> Run:
    """Reads the folder of a run, finished or not, without changing it.

    Returns:
        configuration (``config``), ``status``, ``metrics`` and ``weights``.

    Raises:
        FileNotFoundError: there is no such folder, or no run in it.
        ValueError: a file is not what a run writes; the message names it, the line and the key.
    """
    return Run(pathlib.Path(folder))
