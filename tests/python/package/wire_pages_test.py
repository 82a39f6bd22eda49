"""The package sends and receives what the pages say (docs/wire_format.md, docs/wire_format_field.md), by the decoders and
encoders of wire_reference.py."""

import functools
import itertools
import math

import numpy as np
import pytest
import torch

import strait
import wire_reference
from wire_common import Damaged, Unsendable
from wire_draws import Place

SAMPLES = [sample.spec for info in strait.codecs() for sample in info.samples]
# Whose last group is shorter than places in the others need; and those that draw with channels first.
SPECS = [*SAMPLES, "quant:2,scope=block:264,spikes=1", "quant:3,scope=channel,rounding=stochastic", "exponential:3,scope=channel",
         "qsgd:4,scope=channel,code=elias", "fitted:3,scope=channel"]
SHAPES = [(1, 1), (3, 1), (1, ), (5, ), (2, 63), (2, 64), (1, 16), (3, 65), (2, 191), (1, 192), (2, 193), (1, 255), (2, 256),
          (1, 257), (2, 3, 4, 5), (1, 2, 8, 8), (2, 8, 3, 3), (2, 2, 64), (2, 3, 128), (3, 1, 192), (4, 4, 4)]
EMPTY_SHAPES = [(0, ), (0, 5), (3, 0), (0, 2, 64)]
SMALL_SHAPES = [(1, 1), (2, 9), (3, 65), (2, 3, 64), (2, 4, 3, 5), (1, 64), (1, 130), (4, 4, 4)]
LARGEST = float(np.finfo(np.float32).max)
LEAST = 2.0**-149


def one_of(rng, count, a, b):
    return np.where(rng.random(count) < 0.5, a, b)


def with_one(values, rng, number):
    values = values.copy()
    values[rng.integers(len(values))] = number
    return values


# Elements of so many as asked for, by what is hard about them.
INPUTS = {
    "normal": lambda rng, n: rng.standard_normal(n),
    "zeros": lambda rng, n: np.zeros(n),
    "-0.0": lambda rng, n: -np.zeros(n),
    "zeros of both signs": lambda rng, n: one_of(rng, n, -0.0, 0.0),
    "all equal": lambda rng, n: np.full(n, 1.7),
    "all equal and denormal": lambda rng, n: np.full(n, -1e-40),
    "a few denormals": lambda rng, n: rng.integers(-50, 50, n) * LEAST,
    "denormals": lambda rng, n: rng.standard_normal(n) * 1e-39,
    "ties": lambda rng, n: rng.integers(-3, 4, n) * 0.5,
    "whole numbers": lambda rng, n: rng.integers(-100, 100, n),
    "powers of two": lambda rng, n: np.exp2(rng.integers(-20, 20, n)) * one_of(rng, n, -1, 1),
    "one huge": lambda rng, n: with_one(rng.standard_normal(n), rng, 1e30),
    "one largest": lambda rng, n: with_one(np.zeros(n), rng, LARGEST),
    "one least": lambda rng, n: with_one(np.zeros(n), rng, -LEAST),
    "one not finite": lambda rng, n: with_one(rng.standard_normal(n), rng, np.nan),
    "largest": lambda rng, n: np.full(n, LARGEST),
    "largest of both signs": lambda rng, n: one_of(rng, n, -LARGEST, LARGEST),
    "next to the largest": lambda rng, n: one_of(rng, n, 0.999999, 1) * np.nextafter(np.float32(LARGEST), np.float32(0)),
    "up to half the largest": lambda rng, n: rng.uniform(-1, 1, n) * LARGEST * 0.4999,
    "up to the largest": lambda rng, n: rng.uniform(0, 1, n) * LARGEST,
    "about half a step of the largest": lambda rng, n: one_of(rng, n, LARGEST, 2.0**103 * rng.integers(1, 6)),
    "tiny and huge": lambda rng, n: rng.standard_normal(n) * one_of(rng, n, 1e-30, 1e30),
    "of any exponent": lambda rng, n: np.exp2(rng.uniform(-140, 120, n)) * one_of(rng, n, -1, 1),
    "not negative": lambda rng, n: np.maximum(rng.standard_normal(n), 0),
    "few that are not 0": lambda rng, n: rng.standard_normal(n) * (rng.random(n) < 0.05),
}
ROUND = 4  # inputs of each shape: none in common with the number of inputs, so that each comes with several shapes


def takes(spec, shape):
    """Whether the codec takes this shape."""
    try:
        strait.wire_bytes(spec, shape)
    except ValueError:
        return False
    return True


@functools.lru_cache(maxsize=None)
def messages(spec):
    """Hostile messages of every shape that the codec takes, their places, and what the package sends."""
    rng, turn = np.random.default_rng(1), itertools.cycle(INPUTS.items())
    shapes = [shape for shape in SHAPES if takes(spec, shape)]
    assert len(shapes) >= 3
    found = []
    for shape in shapes:
        for name, values in itertools.islice(turn, ROUND):
            x, place = values(rng, math.prod(shape)).astype(np.float32).reshape(shape), place_from(rng)
            found.append((f"{name}, {shape}", x, place, sent_by_package(x, spec, place)))
    return found


def place_from(rng):
    seed, step, boundary, first_row = (int(rng.integers(limit)) for limit in (2**40, 100, 9, 40))
    return Place(seed, step, boundary, ("activation", "gradient")[rng.integers(2)], first_row)


def sent_by_package(x, spec, place):
    """The payload, or None where the package refuses the elements."""
    try:
        return strait.compress(torch.from_numpy(x), spec, **place._asdict()).numpy().tobytes()
    except strait.NumericError:
        return None


def sent_by_pages(x, spec, place, sent):
    try:
        return wire_reference.encode(x, spec, place, sent)
    except Unsendable:
        return None


def received_by_package(payload, spec, shape, place):
    """The elements, or None where the package refuses the payload."""
    payload = torch.from_numpy(np.frombuffer(payload, np.uint8).copy())
    try:
        return strait.decompress(payload, spec, shape, **place._asdict()).numpy()
    except strait.WireError:
        return None


def received_by_pages(payload, spec, shape, place):
    try:
        return wire_reference.decode(payload, spec, shape, place)
    except Damaged:
        return None


def equal_bits(a, b):
    return a.shape == b.shape and a.tobytes() == b.tobytes()


@pytest.mark.parametrize("name", [info.name for info in strait.codecs()])
def test_every_codec_has_a_reference(name):
    assert name in wire_reference.CODECS, f"{name} has neither decoder nor encoder in wire_reference.py"
    assert wire_reference.CODECS[name].encode or name == "atomo"


@pytest.mark.parametrize("spec", SPECS)
def test_payloads_arrive_as_the_pages_say(spec):
    for what, x, place, sent in messages(spec):
        if sent is not None:
            received = wire_reference.decode(sent, spec, x.shape, place)
            assert equal_bits(received, received_by_package(sent, spec, x.shape, place)), what
            seen = strait.reconstruct(torch.from_numpy(x), spec, **place._asdict())
            assert equal_bits(received, seen.numpy()) and np.isfinite(received).all(), what


@pytest.mark.parametrize("spec", [spec for spec in SPECS if not spec.startswith("atomo")])
def test_payloads_have_the_bytes_of_the_pages(spec):
    """Of elements that cannot be sent there are none, here and there."""
    for what, x, place, sent in messages(spec):
        assert sent_by_pages(x, spec, place, sent) == sent, what


@pytest.mark.parametrize("spec", SPECS)
def test_empty_messages_have_empty_payloads(spec):
    for shape in EMPTY_SHAPES:
        if takes(spec, shape):
            assert sent_by_package(np.zeros(shape, np.float32), spec, Place()) == b""
            for payload in (b"", b"\0"):
                ours = received_by_pages(payload, spec, shape, Place())
                theirs = received_by_package(payload, spec, shape, Place())
                assert (ours is None) == (theirs is None) == bool(payload)
                assert ours is None or ours.shape == theirs.shape == shape


HOSTILE_FLOATS = np.array([np.nan, np.inf, -0.0, -1, 0, 1e38, LARGEST, -3e38], "<f4")


def flipped(payload, rng, at):
    payload[at] ^= 1 << int(rng.integers(8))
    return payload


def with_a_float(payload, rng):
    at = int(rng.integers(max(1, len(payload) - 3)))
    number = rng.choice(HOSTILE_FLOATS).tobytes()
    return np.append(payload[:at], [*number, *payload[at + 4 :]])[: len(payload)]


def with_noise(payload, rng):
    for at in rng.integers(len(payload), size=3):
        payload[at] = rng.integers(256)
    return payload


# What becomes of a copy of a payload, as an array of bytes.
DAMAGES = [
    lambda payload, rng: flipped(payload, rng, rng.integers(len(payload))),
    lambda payload, rng: flipped(payload, rng, -1),
    lambda payload, rng: flipped(payload, rng, 0),
    with_noise,
    with_a_float,
    lambda payload, rng: payload[: rng.integers(len(payload))],
    lambda payload, rng: np.append(payload, rng.integers(2)),
    lambda payload, rng: rng.integers(256, size=len(payload)),
]
DAMAGED_MESSAGES, ROUNDS_OF_DAMAGES = 8, 1


def damaged_payloads(spec):
    rng = np.random.default_rng(7)
    shapes = itertools.cycle([shape for shape in SMALL_SHAPES if takes(spec, shape)])
    for number, shape in enumerate(itertools.islice(shapes, DAMAGED_MESSAGES)):
        x, place = rng.standard_normal(shape).astype(np.float32), place_from(rng)
        x = np.maximum(x, 0) if number % 3 == 2 else x
        payload = np.frombuffer(sent_by_package(x, spec, place), np.uint8)
        for damage in DAMAGES * ROUNDS_OF_DAMAGES:
            yield damage(payload.copy(), rng).astype(np.uint8).tobytes(), shape, place


@pytest.mark.parametrize("spec", SPECS)
def test_damaged_payloads_are_refused_by_the_checks_of_the_pages(spec):
    """What is accepted arrives as the pages say."""
    outcomes = set()
    for payload, shape, place in damaged_payloads(spec):
        ours, theirs = (received(payload, spec, shape, place) for received in (received_by_pages, received_by_package))
        assert (ours is None) == (theirs is None), (payload.hex(), shape, place)
        assert ours is None or equal_bits(ours, theirs), (payload.hex(), shape, place)
        outcomes.add(ours is None)
    assert outcomes == {True, False}


def floats(*numbers):
    return np.array(numbers, "<f4").tobytes()


@pytest.mark.parametrize("spec, shape, payload, rule", [
    ("quant:4", (1, 2), floats(-0.0, 1) + b"\xf0", "is -0"),
    ("quant:4", (1, 2), floats(-LARGEST, LARGEST) + b"\xf0", "no range"),
    ("quant:4,scope=block:64,rotate=hadamard", (1, 64), floats(-1e38, 1e38) + b"\xff" * 32, "comes back is not finite"),
    ("quant:4,spikes=1", (1, 4), floats(1) + b"\2" + floats(2) + b"\2" + bytes(10), "two spikes"),
    ("tah:4", (1, 1, 64), bytes(6) + b"\1" + bytes(31), "without a step"),
    ("tah:4", (1, 1, 64), bytes(5) + b"\x80" + bytes(32), "a step is negative"),
    ("outliers:4", (1, 1), b"\0" + floats(7) + b"\0", "the threshold or more"),
    ("natural", (1, 1), b"\0\xff", "exponent of no number"),
])
def test_rules_that_random_damages_rarely_break(spec, shape, payload, rule):
    with pytest.raises(Damaged, match=rule):
        wire_reference.decode(payload, spec, shape, Place())
    assert received_by_package(payload, spec, shape, Place()) is None
