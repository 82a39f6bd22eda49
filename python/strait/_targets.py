"""The targets of a batch, several of which cross the library as one tensor."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Optional, Union

import torch
from torch import Tensor

Targets = Union[Tensor, Sequence[Tensor], Mapping[str, Tensor], None]

_EXPECTED = "targets: expected a tensor, or a tuple or dictionary of them"


class TargetRows:
    """What the library cuts into micro-batches and compares between processes is one tensor. Of several targets that is the
    bytes of all, row by row; functions of targets are given them as the user gave them."""

    def __init__(self) -> None:
        self._types: list[tuple[torch.dtype, torch.Size]] = []  # of a row of each in the present batch; none: one tensor
        self._make: Callable[[list[Tensor]], Any] = list

    def pack(self, targets: Targets) -> Optional[Tensor]:
        """The one tensor, which :meth:`unpack` takes apart until the next batch."""
        self._types = []
        if targets is None or isinstance(targets, Tensor):
            return targets
        if isinstance(targets, Mapping):
            names = list(targets)
            tensors = [targets[name] for name in names]
            self._make = lambda parts: dict(zip(names, parts))
        elif isinstance(targets, (tuple, list)):
            names, tensors = list(range(len(targets))), list(targets)
            self._make = getattr(targets, "_make", type(targets))  # a named tuple takes its fields one by one
        else:
            raise TypeError(f"{_EXPECTED}, found {type(targets).__name__}")
        if not tensors:
            raise ValueError(f"{_EXPECTED}, found none")
        for name, tensor in zip(names, tensors):
            if not isinstance(tensor, Tensor):
                raise TypeError(f"{_EXPECTED}, found {type(tensor).__name__} for {name!r}")
            if tensor.dim() == 0 or len(tensor) != len(tensors[0]) or tensor.device != tensors[0].device:
                raise ValueError(f"targets: expected tensors of as many rows on one device, found {list(tensor.shape)} on "
                                 f"{tensor.device} for {name!r}")
        self._types = [(tensor.dtype, tensor.shape[1:]) for tensor in tensors]
        rows = [tensor.detach().reshape(len(tensor), math.prod(tensor.shape[1:])).contiguous() for tensor in tensors]
        return torch.cat([each.view(torch.uint8) for each in rows], dim=1)

    def unpack(self, packed: Tensor) -> Any:
        """The targets of some rows of what :meth:`pack` gave."""
        if not self._types:
            return packed
        parts, end = [], 0
        for dtype, shape in self._types:
            begin, end = end, end + math.prod(shape) * dtype.itemsize
            own = packed[:, begin:end].clone(memory_format=torch.contiguous_format)  # where a number may begin
            parts.append(own.flatten().view(dtype).view(len(packed), *shape))
        return self._make(parts)

    def given(self, function: Optional[Callable[..., Any]]) -> Optional[Callable[..., Any]]:
        """A function whose last argument are targets, for the library, which has them packed."""
        if function is None:
            return None
        return lambda *arguments: function(*arguments[:-1], self.unpack(arguments[-1]))
