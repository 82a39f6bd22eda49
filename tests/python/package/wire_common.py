"""What the payloads of several codecs share, in NumPy: written from the pages (docs/wire_format.md,
docs/wire_format_field.md, and docs/operators.md for the defaults) and never from the kernels.

A decoder takes a Reader and a Message and gives the message's elements; an encoder takes the elements and a Message and
gives the payload. Both are plain rather than fast. wire_reference.py has the list of them.
"""

import math
from fractions import Fraction

import numpy as np

import wire_draws

F32 = np.float32
LEAST_NORMAL = F32(2.0**-126)


class Damaged(Exception):
    """A payload that breaks a rule of the pages."""


class Unsendable(Exception):
    """Elements that the format cannot hold."""


def require(condition, rule):
    if not condition:
        raise Damaged(rule)


def require_sendable(values):
    if not np.isfinite(values).all():
        raise Unsendable("a number is not finite")


# Bytes and bits


class Reader:
    """The bytes of a payload, from the first to the last."""

    def __init__(self, payload):
        self.payload = bytes(payload)
        self.at = 0

    def take(self, count):
        require(count <= self.left, "the payload ends early")
        self.at += count
        return self.payload[self.at - count : self.at]

    def array(self, dtype, count):
        return np.frombuffer(self.take(count * np.dtype(dtype).itemsize), dtype)

    def floats(self, count):
        """float32 that are finite."""
        values = self.array("<f4", count).astype(F32)
        require(np.isfinite(values).all(), "a float32 is not finite")
        return values

    def halves(self, count):
        """fp16 that are finite, as float32."""
        values = self.array("<f2", count).astype(F32)
        require(np.isfinite(values).all(), "an fp16 is not finite")
        return values

    def scales(self, count):
        """float32 that are finite and not negative, nor -0."""
        values = self.floats(count)
        require(not np.signbit(values).any(), "a scale is negative")
        return values

    def codes(self, count, bits):
        """Codes of so many bits each, from a byte on, behind which the padding is zero."""
        stream = np.unpackbits(np.frombuffer(self.take(bytes_of(count * bits)), np.uint8), bitorder="little")
        require(not stream[count * bits :].any(), "padding is not zero")
        return (stream[: count * bits].reshape(count, bits).astype(np.int64) << np.arange(bits)).sum(1)

    @property
    def left(self):
        return len(self.payload) - self.at

    def finish(self):
        require(not self.left, "bytes follow the payload")


class BitReader:
    """The bits of a stream, of which the last lies in the last byte."""

    def __init__(self, data):
        self.bits = np.unpackbits(np.frombuffer(data, np.uint8), bitorder="little").tolist()
        self.at = 0

    def bit(self):
        require(self.at < len(self.bits), "the bits end early")
        self.at += 1
        return self.bits[self.at - 1]

    def zeros(self):
        """The number of zeros before the next one, which is taken too."""
        count = 0
        while not self.bit():
            count += 1
        return count

    def number(self, count):
        return sum(self.bit() << i for i in range(count))

    def finish(self):
        rest = self.bits[self.at :]
        require(len(rest) < 8 and not any(rest), "more than padding follows the bits")


def bytes_of(bits):
    return -(-bits // 8)


def bits_of(number, count):
    return [int(number) >> i & 1 for i in range(count)]


def packed_bits(bits):
    return np.packbits(np.asarray(bits, np.uint8), bitorder="little").tobytes()


def packed(codes, bits):
    codes = np.asarray(codes).astype(np.int64)
    return packed_bits((codes[:, None] >> np.arange(bits) & 1).reshape(-1))


# Messages and their groups


class Message:
    """What both ends know of a message: its codec's parameters, its shape and its place."""

    def __init__(self, spec, shape, place, codecs, sent=None):
        head, *options = spec.split(",")
        self.name, _, self.argument = head.partition(":")
        self.options = dict(option.split("=", 1) for option in options)
        self.shape, self.place, self.codecs = tuple(shape), place, codecs
        self.rows, self.row_size = self.shape[0], math.prod(self.shape[1:])
        self.size = self.rows * self.row_size
        # The payload of another sender, of which an encoder takes what the pages leave open.
        self.sent = sent

    @property
    def bits(self):
        return int(self.argument)

    def option(self, name, default):
        return self.options.get(name, default)

    def groups(self, default):
        """The indices of the elements of each group of `quant`, by the option `scope`."""
        scope = self.option("scope", default)
        indices = np.arange(self.size)
        if scope == "tensor":
            return [indices]
        if scope == "sample":
            return list(indices.reshape(self.rows, self.row_size))
        if scope == "channel":
            channels = indices.reshape(self.shape)
            channels = np.moveaxis(channels, 1 if len(self.shape) == 4 else -1, 0)
            return list(channels.reshape(len(channels), -1))
        size = int(scope[len("block:") :])
        return [row[at : at + size] for row in indices.reshape(self.rows, self.row_size)
                for at in range(0, self.row_size, size)]

    def uniform(self, indices):
        """The numbers u of elements of the message, which counts with its channels first where they are the groups."""
        first = self.place.first_row * self.row_size
        if self.options.get("scope") == "channel":
            indices = np.argsort(np.concatenate(self.groups("channel")))[indices]
        return wire_draws.uniform(wire_draws.key_of(*self.place.words), indices + first)

    def with_spec(self, spec, count, row):
        """A value list of so many elements as a message of its own."""
        place = self.place._replace(seed=self.place.seed ^ 0x76616C756573, first_row=row)
        return Message(spec, (1, count), place, self.codecs)


# Sums


def add_neighbours(terms):
    """Neighbours 2 i and 2 i + 1 of the last dimension are added, a last one without a neighbour stays."""
    even = terms.shape[-1] // 2 * 2
    sums = terms[..., 0:even:2] + terms[..., 1:even:2]
    return sums if even == terms.shape[-1] else np.concatenate([sums, terms[..., even:]], -1)


def sum_of_neighbours(terms):
    while terms.shape[-1] > 1:
        terms = add_neighbours(terms)
    return terms[..., 0]


def in_rows_of_16(terms):
    """[..., rows, 16] of the last dimension, filled up with zeros."""
    rows = np.zeros((*terms.shape[:-1], -(-terms.shape[-1] // 16), 16), F32)
    rows.reshape(*terms.shape[:-1], -1)[..., : terms.shape[-1]] = terms
    return rows


def sum_in_order(terms):
    """The sums over the last dimension, in the order of `sign`."""
    return sum_of_neighbours(sum_of_neighbours(np.swapaxes(in_rows_of_16(terms), -1, -2)))


def biased_exponent(value):
    """The exponent of a float32 as its bits have it, 0 for zero and denormal numbers."""
    return int(F32(value).view(np.uint32) >> 23 & 255)


def norm(x, largest=None):
    """The norm of `qsgd`, by the power of two of the largest magnitude: of x, where no other one is given."""
    largest = np.abs(x).max() if largest is None else largest
    power = max(F32(2.0**(biased_exponent(largest) - 127)), LEAST_NORMAL)
    scaled = x * (F32(1) / power)
    return np.sqrt(sum_in_order(scaled * scaled)) * power


# Rounding


def floor_or_next(t, u):
    """The next whole number with the chance of the part of t behind the point, else the one below."""
    return np.floor(t) + (u < t - np.floor(t))


def or_one(scale):
    """What elements are divided by: 1 where the scale is 0."""
    return scale if scale != 0 else F32(1)


# Ranges of `quant`, which `bounded` has too


def range_of(x):
    """The least and the greatest element, where a zero is +0."""
    return x.min() + F32(0), x.max() + F32(0)


def range_codes(x, low, high, bits, u=None):
    """To nearest, or by the numbers u at random."""
    if low == high:
        return np.zeros(len(x), np.int64)
    t = (x - low) / (high - low) * F32(2**bits - 1)
    return (np.rint(t) if u is None else floor_or_next(t, u)).astype(np.int64)


def range_values(codes, low, high, bits):
    return low + codes.astype(F32) / F32(2**bits - 1) * (high - low)


def require_range(low, high):
    for end in (low, high):
        require(not (end == 0 and np.signbit(end)), "an end of the range is -0")
    require(low <= high and np.isfinite(low + (high - low)), "no range")


def read_range_values(reader, low, high, count, bits):
    codes = reader.codes(count, bits)
    require(low != high or not codes.any(), "a code in a range of one value")
    return range_values(codes, low, high, bits)


# Shares and value lists of `topk`, `random` and `columns`


def kept_of(share, count):
    """ceil(share * count), exactly."""
    return math.ceil(Fraction(share) * count)


def read_values(reader, message, count, row):
    """A value list; `row` is that of its group, counted in the batch."""
    part = value_list(message, count, row)
    return part.codecs[part.name].decode(reader, part)


def write_values(x, message, row):
    part = value_list(message, len(x), row)
    require_sendable(x)
    return part.codecs[part.name].encode(x, part)


def value_list(message, count, row):
    spec = message.option("values", "fp32")
    return message.with_spec("none" if spec == "fp32" else spec, count, row)


# Channels and rotations


def channels_of(message):
    """How many parts, channels and elements of one channel in one part the message has, as [parts, channels, elements]."""
    channels = message.shape[1 if len(message.shape) == 4 else -1]
    inner = math.prod(message.shape[2:]) if len(message.shape) == 4 else 1
    return message.size // (channels * inner), channels, inner


def hadamard(blocks):
    """The steps of `rotate=hadamard` but for the division and the signs, of blocks of 64 elements."""
    for half in (1, 2, 4, 8, 16, 32):
        pairs = blocks.reshape(-1, 32 // half, 2, half)
        a, b = pairs[:, :, 0], pairs[:, :, 1]
        blocks = np.stack([a + b, a - b], 2)
    return blocks.reshape(-1, 64)
