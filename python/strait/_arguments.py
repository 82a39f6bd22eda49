"""What the extension module takes, said in one line where it is not that; its own refusal of a type takes several."""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Iterable, Mapping
from typing import Any, Optional, Union

from torch import Tensor, nn

_LEAST, _MOST = -2**63, 2**63 - 1


def integer(name: str, value: Any, least: int = _LEAST, most: int = _MOST) -> int:
    """Any integer from `least` to `most`, within 64 bits, NumPy's and torch's too, and no number that would be rounded."""
    try:  # torch.compile would take the index of an int for a constant, and compile anew for each
        number = value if type(value) is int else operator.index(value)
    except TypeError:
        raise TypeError(f"{name}: expected an integer, found {type(value).__name__}") from None
    if not least <= number <= most:
        raise ValueError(f"{name}: expected a number from {least} to {most}, found {number}")
    return number


def number(name: str, value: Any) -> float:
    """Any real number, NumPy's and torch's too."""
    if not isinstance(value, str):
        with contextlib.suppress(TypeError, ValueError, RuntimeError):
            return float(value)
    raise TypeError(f"{name}: expected a number, found {type(value).__name__}")


def boolean(name: str, value: Any) -> bool:
    """True or False, NumPy's and torch's too, or 1 or 0."""
    if isinstance(value, bool):
        return value
    found = value
    if hasattr(value, "item"):
        with contextlib.suppress(ValueError, RuntimeError):  # of more than one element
            found = value.item()
    if isinstance(found, int) and found in (0, 1):
        return bool(found)
    text = repr(found) if isinstance(found, (int, str)) else type(value).__name__
    raise TypeError(f"{name}: expected True or False, found {text}")


def string(name: str, value: Any) -> str:
    """A string."""
    if isinstance(value, str):
        return value
    raise TypeError(f"{name}: expected a string, found {type(value).__name__}")


def codec_spec(name: str, value: Any) -> str:
    """The spec of a codec."""
    if isinstance(value, str):
        return value
    raise TypeError(f"{name}: expected a spec such as \"quant:4\", found {type(value).__name__}")


def feedback_of(value: Any) -> Union[str, tuple[str, str]]:
    """A feedback spec, or those of activations and gradients."""
    if isinstance(value, str):
        return value
    if isinstance(value, (tuple, list)) and len(value) == 2 and all(isinstance(each, str) for each in value):
        return value[0], value[1]
    raise ValueError(f"feedback: expected a spec, or a pair of them for activations and gradients, found {value!r}")


def check_shape(value: Any) -> None:
    """Refuses what has no sizes, of which the operators themselves say it in several lines."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise TypeError(f"shape: expected the shape of a tensor, found {type(value).__name__}")


def shape_of(value: Any) -> list[int]:
    """The sizes of a tensor's dimensions."""
    check_shape(value)
    return [integer("shape", size) for size in value]


def tensors_of(name: str, value: Any) -> list[Tensor]:
    """A tensor, several, or none, as a list."""
    if value is None:
        return []
    tensors = [value] if isinstance(value, Tensor) else list_of(name, value, "a tensor or several")
    for tensor in tensors:
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{name}: expected a tensor or several, found {type(tensor).__name__} among them")
    return tensors


def function_or_none(name: str, value: Any) -> Any:
    """What can be called, or None; a class of modules makes a module of what it is called with."""
    if isinstance(value, type) and issubclass(value, nn.Module):
        raise TypeError(f"{name}: expected a function, found a class; a module of it is {value.__name__}()")
    if value is None or callable(value):
        return value
    raise TypeError(f"{name}: expected a function, found {type(value).__name__}")


def list_of(name: str, value: Any, expected: str) -> list[Any]:
    """The elements of a sequence, of which `expected` says what was to be there; not the letters of a string, nor the names
    of a dictionary."""
    if not isinstance(value, Iterable) or isinstance(value, (str, Mapping)):
        raise TypeError(f"{name}: expected {expected}, found {type(value).__name__}")
    return list(value)


def named_tensors(what: str, state: Any) -> dict[str, Tensor]:
    """The tensors that links keep, by name."""
    if not isinstance(state, Mapping):
        raise ValueError(f"{what}: expected tensors by name, found {type(state).__name__}")
    for name, tensor in state.items():
        if not isinstance(name, str) or not isinstance(tensor, Tensor):
            raise ValueError(f"{what}: expected tensors by name, found {type(tensor).__name__} by {name!r}")
    return dict(state)
