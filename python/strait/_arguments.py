"""What the extension module takes, said in one line where it is not that; its own refusal of a type takes several."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any, Union

from torch import Tensor

_LEAST, _MOST = -2**63, 2**63 - 1


def integer(name: str, value: Any, least: int = _LEAST) -> int:
    """Any integer from `least` on that 64 bits hold, NumPy's and torch's too, and no number that would be rounded."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name}: expected an integer, found {type(value).__name__}") from None
    if not least <= number <= _MOST:
        raise ValueError(f"{name}: expected a number from {least} to {_MOST}, found {number}")
    return number


def feedback_of(value: Any) -> Union[str, tuple[str, str]]:
    """A feedback spec, or those of activations and gradients."""
    if isinstance(value, str):
        return value
    if isinstance(value, (tuple, list)) and len(value) == 2 and all(isinstance(each, str) for each in value):
        return value[0], value[1]
    raise ValueError(f"feedback: expected a spec, or a pair of them for activations and gradients, found {value!r}")


def named_tensors(what: str, state: Any) -> dict[str, Tensor]:
    """The tensors that links keep, by name."""
    if not isinstance(state, Mapping):
        raise ValueError(f"{what}: expected tensors by name, found {type(state).__name__}")
    for name, tensor in state.items():
        if not isinstance(name, str) or not isinstance(tensor, Tensor):
            raise ValueError(f"{what}: expected tensors by name, found {type(tensor).__name__} by {name!r}")
    return dict(state)
