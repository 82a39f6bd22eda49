"""Codecs on tensors: functions without state."""

from __future__ import annotations

from typing import NamedTuple, Sequence, Union

import torch

from . import _C, _load  # noqa: F401
from ._arguments import check_shape, codec_spec, integer, shape_of, string

Shape = Union[torch.Size, Sequence[int]]


def _check(tensor: torch.Tensor, codec: str) -> None:
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"expected a tensor, found {type(tensor).__name__}")
    codec_spec("codec", codec)


def _place(seed: int, step: int, boundary: int, direction: str, first_row: int) -> dict[str, Union[int, str]]:
    return {
        "seed": integer("seed", seed),
        "step": integer("step", step),
        "boundary": integer("boundary", boundary),
        "direction": string("direction", direction),
        "first_row": integer("first_row", first_row)
    }


def compress(x: torch.Tensor, codec: str, *, seed: int = 0, step: int = 0, boundary: int = 0,
             direction: str = "activation", first_row: int = 0) -> torch.Tensor:
    """Compresses a tensor into bytes.

    Args:
        x: float32, or float16 or bfloat16, whose values are float32 values too; any shape, strides and device. The first
            dimension counts samples: a vector, whose rows would have one element each, is best given as
            ``x.view(1, -1)``.
        codec: a spec, such as ``"topk:0.1"``; see :func:`codecs`.
        seed, step, boundary, direction, first_row: where the message stands in a run. They key the draws of codecs that
            round or select at random, such as ``"quant:4,rounding=stochastic"``: equal numbers give equal bytes, and the
            rows from ``first_row`` on draw what they draw as part of a whole batch, where the codec treats rows by
            themselves (``strait.codec(spec).row_wise``). ``direction`` is ``"activation"`` or ``"gradient"``. Other codecs do
            not look at them.

    Returns:
        uint8 of one dimension on x's device, with :func:`wire_bytes` elements, or fewer where that is a bound. It has no
        gradient.

    Raises:
        TypeError: x has another type, or is sparse.
        ValueError: no such codec.
        NumericError: a value is not finite, or out of the codec's range.
    """
    _check(x, codec)
    return torch.ops.strait.compress(x, codec, **_place(seed, step, boundary, direction, first_row))


def decompress(payload: torch.Tensor, codec: str, shape: Shape, *, seed: int = 0, step: int = 0, boundary: int = 0,
               direction: str = "activation", first_row: int = 0) -> torch.Tensor:
    """What the receiver sees of a payload: the inverse of :func:`compress` with the same arguments.

    Args:
        payload: uint8 of one dimension, on any device.
        codec: the spec that it was compressed with.
        shape: that of the tensor that was compressed.

    Returns:
        float32 of that shape, contiguous, on the payload's device.

    Raises:
        TypeError: the payload is not uint8.
        ValueError: no such codec, or no such shape.
        WireError: compress() cannot have made these bytes of a tensor of that shape.
    """
    _check(payload, codec)
    check_shape(shape)
    return torch.ops.strait.decompress(payload, codec, shape, **_place(seed, step, boundary, direction, first_row))


def reconstruct(x: torch.Tensor, codec: str, *, seed: int = 0, step: int = 0, boundary: int = 0,
                direction: str = "activation", first_row: int = 0) -> torch.Tensor:
    """What the receiver of a tensor would see: ``decompress(compress(x))`` without the bytes, bit for bit.

    The result is contiguous, of x's shape, type and device; float16 and bfloat16 are rounded to from the float32 that the
    receiver sees, and a value past their range is a NumericError. It requires no gradient, whatever x does: compression has no useful derivative. ``x + (reconstruct(x,
    codec) - x).detach()`` lets gradients through as they are; :class:`Boundary` does that and compresses them too.

    Arguments and errors are those of :func:`compress`.
    """
    _check(x, codec)
    return torch.ops.strait.reconstruct(x, codec, **_place(seed, step, boundary, direction, first_row))


def wire_bytes(codec: str, shape: Shape) -> int:
    """Bytes that :func:`compress` makes of a tensor of that shape: exact where ``strait.codec(spec).exact``, otherwise the
    most that it can. Between processes each message has a header of 64 bytes besides.

    Raises:
        ValueError: no such codec, or no such shape.
        TypeError: something else than a shape.
    """
    return _C.payload_size(codec_spec("codec", codec), shape_of(shape))[0]


class CodecSpec(NamedTuple):
    """What a spec can do."""

    spec: str  #: such as ``"topk:0.1"``
    exact: bool  #: every payload of a shape has the same size
    row_wise: bool  #: what is seen of a row depends on that row alone, so that micro-batches change nothing
    selects: bool  #: keeps some elements of each sample, or of the tensor, and gives the others as 0


class CodecInfo(NamedTuple):
    """A codec and how its specs are written."""

    name: str
    grammar: str  #: such as ``"quant:b[,scope=...]..., b = 1..8"``
    samples: tuple[CodecSpec, ...]  #: specs worth a try


class FeedbackInfo(NamedTuple):
    """A feedback scheme: what a link keeps from message to message."""

    name: str
    state: str  #: what each piece of its state serves: ``"none"``, ``"rows"`` of the batch (with the option
    #: ``slots=sample`` samples and with ``slots=class`` classes, where it has it), or ``"samples"``, by their ids
    any_codec: bool  #: False: ``topk`` alone, and not by blocks
    gradients: bool  #: serves gradients too, not activations alone
    boundaries: bool  #: serves boundaries; False: only what replicas of a ``strait train`` exchange


def codec(spec: str) -> CodecSpec:
    """What the codec of a spec can do.

    Raises:
        ValueError: no such codec.
    """
    row_wise, selects = _C.codec_properties(codec_spec("codec", spec))
    return CodecSpec(spec, _C.payload_size(spec, [4096, 4096])[1], row_wise, selects)


def codecs() -> list[CodecInfo]:
    """All codecs, each with its grammar and sample specs."""
    return [CodecInfo(name, name + parameters, tuple(map(codec, samples))) for name, parameters, samples in _C.codecs()]


def feedbacks() -> list[FeedbackInfo]:
    """All feedback schemes, for :class:`Boundary` and others."""
    return [FeedbackInfo(*row) for row in _C.feedbacks()]


# What torch.compile and torch.export need to know without running an operator.


@torch.library.register_fake("strait::compress")
def _(x, codec, *, seed=0, step=0, boundary=0, direction="activation", first_row=0):
    if all(isinstance(size, int) for size in x.shape):
        size, exact = _C.payload_size(codec, list(x.shape))
        if exact:
            return x.new_empty([size], dtype=torch.uint8)
    return x.new_empty([torch.library.get_ctx().new_dynamic_size()], dtype=torch.uint8)


@torch.library.register_fake("strait::decompress")
def _(payload, codec, shape, *, seed=0, step=0, boundary=0, direction="activation", first_row=0):
    return payload.new_empty(shape, dtype=torch.float32)


@torch.library.register_fake("strait::reconstruct")
def _(x, codec, *, seed=0, step=0, boundary=0, direction="activation", first_row=0):
    return x.new_empty(x.shape)
