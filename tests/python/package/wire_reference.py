"""Decoders and encoders of every payload, in NumPy: written from the pages (docs/wire_format.md, docs/wire_format_field.md)
and never from the kernels."""

from typing import Callable, NamedTuple, Optional

import numpy as np

import wire_field as field
import wire_paper as paper
import wire_structures as structures
from wire_common import F32, Message, Reader, require_sendable


class Codec(NamedTuple):
    """The two ends of a codec; without an encoder where the pages do not determine the bytes."""

    decode: Callable
    encode: Optional[Callable]


# By id.
CODECS = {
    "none": Codec(paper.decode_none, paper.encode_none),
    "fp16": Codec(paper.decode_fp16, paper.encode_fp16),
    "bf16": Codec(paper.decode_bf16, paper.encode_bf16),
    "quant": Codec(paper.decode_quant, paper.encode_quant),
    "topk": Codec(paper.decode_topk, paper.encode_topk),
    "sign": Codec(field.decode_sign, field.encode_sign),
    "onebit": Codec(field.decode_onebit, field.encode_onebit),
    "qsgd": Codec(field.decode_levels, field.encode_levels),
    "natural": Codec(field.decode_natural, field.encode_natural),
    "exponential": Codec(field.decode_levels, field.encode_levels),
    "fp8": Codec(field.decode_fp8, field.encode_fp8),
    "mx": Codec(field.decode_mx, field.encode_mx),
    "fitted": Codec(field.decode_points, field.encode_points),
    "daq": Codec(field.decode_points, field.encode_points),
    "bounded": Codec(field.decode_bounded, field.encode_bounded),
    "tah": Codec(structures.decode_tah, structures.encode_tah),
    "outliers": Codec(structures.decode_outliers, structures.encode_outliers),
    "random": Codec(structures.decode_random, structures.encode_random),
    "columns": Codec(structures.decode_columns, structures.encode_columns),
    "lowrank": Codec(structures.decode_lowrank, structures.encode_lowrank),
    "atomo": Codec(structures.decode_atomo, None),
}


def decode(payload, spec, shape, place):
    """What the receiver sees, float32 of the shape; Damaged where the payload breaks a rule."""
    message, reader = Message(spec, shape, place, CODECS), Reader(payload)
    with np.errstate(all="ignore"):
        values = CODECS[message.name].decode(reader, message) if message.size else np.zeros(0, F32)
    reader.finish()
    return values.astype(F32).reshape(message.shape)


def encode(x, spec, place, sent):
    """The bytes that are sent; Unsendable where there are none. What the pages leave to the sender, the interlaced code
    or another one of `topk` with index=auto and the law of a group of `fitted`, is read from `sent`."""
    message = Message(spec, x.shape, place, CODECS, sent)
    require_sendable(x)
    with np.errstate(all="ignore"):
        return CODECS[message.name].encode(x.reshape(-1), message) if message.size else b""
