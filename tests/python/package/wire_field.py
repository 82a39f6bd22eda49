"""The payloads of ids 5 to 14, in NumPy: written from the page (docs/wire_format_field.md, in its order) and never from the
kernels."""

import numpy as np

from wire_common import (F32, BitReader, Unsendable, biased_exponent, bits_of, floor_or_next, norm, or_one, packed,
                         packed_bits, range_codes, range_of, range_values, read_range_values, require, require_range,
                         require_sendable, sum_in_order)
from wire_points import fitted_points

# sign


def decode_sign(reader, message):
    groups = message.groups("sample")
    values = np.zeros(message.size, F32)
    for group, scale in zip(groups, reader.scales(len(groups))):
        values[group] = np.where(reader.codes(len(group), 1) == 1, -scale, scale)
    return values


def encode_sign(x, message):
    scales = bits = b""
    for group in message.groups("sample"):
        total = sum_in_order(np.abs(x[group]))
        require_sendable(total)
        scales += (total / F32(len(group))).tobytes()
        bits += packed(x[group] < 0, 1)
    return scales + bits


# onebit


def decode_onebit(reader, message):
    groups = message.groups("sample")
    means = reader.floats(2 * len(groups)).reshape(-1, 2)
    require(not ((means == 0) & np.signbit(means)).any(), "a mean is -0")
    values = np.zeros(message.size, F32)
    for group, (below, above) in zip(groups, means):
        require(below <= 0 <= above, "a mean is on the other side")
        bits = reader.codes(len(group), 1)
        require(below == 0 or bits.any(), "a mean of no element")
        values[group] = np.where(bits == 1, below, above)
    return values


def encode_onebit(x, message):
    means = bits = b""
    for group in message.groups("sample"):
        negative = x[group] < 0
        for side in (negative, ~negative):
            total = sum_in_order(np.where(side, x[group], F32(0)))
            require_sendable(total)
            mean = total / F32(max(side.sum(), 1)) + F32(0)
            means += mean.tobytes()
        bits += packed(negative, 1)
    return means + bits


# qsgd, exponential


def unit_of(levels, name, largest):
    if name == "qsgd":
        return levels.astype(F32) / F32(largest)
    powers = np.ldexp(F32(1), np.abs(levels) - largest)
    return np.where(levels == 0, F32(0), np.sign(levels).astype(F32) * powers)


def groups_of_levels(message):
    return message.groups("block:512" if message.name == "qsgd" else "sample")


def decode_levels(reader, message):
    groups = groups_of_levels(message)
    largest = 2**(message.bits - 1) - 1
    scales = reader.scales(len(groups))
    elias = message.option("code", "fixed") == "elias"
    stream = BitReader(reader.take(reader.left)) if elias else None
    values = np.zeros(message.size, F32)
    for group, scale in zip(groups, scales):
        levels = read_elias(stream, len(group)) if elias else reader.codes(len(group), message.bits) - largest
        require((np.abs(levels) <= largest).all(), "a level is past the last")
        values[group] = F32(0) + scale * unit_of(levels, message.name, largest)
    if elias:
        stream.finish()
    return values


def read_elias(stream, count):
    levels = []
    for _ in range(count):
        below = stream.zeros()
        require(below < 8, "a level is past the last")
        level = (1 << below | stream.number(below)) - 1
        levels.append(-level if level and stream.bit() else level)
    return np.array(levels, np.int64)


def elias_bits(level):
    number = abs(int(level)) + 1
    below = number.bit_length() - 1
    sign = [int(level < 0)] if level else []
    return [0] * below + [1] + bits_of(number, below) + sign


def encode_levels(x, message):
    largest = 2**(message.bits - 1) - 1
    level_of = qsgd_level if message.name == "qsgd" else exponential_level
    scales, all_levels = b"", []
    for group in groups_of_levels(message):
        scale, levels = level_of(np.abs(x[group]), largest, message.uniform(group))
        require_sendable(scale)
        scales += scale.tobytes()
        all_levels.append(np.where(np.signbit(x[group]), -levels, levels).astype(np.int64))
    if message.option("code", "fixed") == "elias":
        return scales + packed_bits([bit for levels in all_levels for level in levels for bit in elias_bits(level)])
    return scales + b"".join(packed(levels + largest, message.bits) for levels in all_levels)


def qsgd_level(magnitudes, largest, u):
    """The scale of a group, and the magnitudes of its levels."""
    scale = norm(magnitudes)
    require_sendable(scale)
    t = np.minimum(magnitudes / or_one(scale) * F32(largest), F32(largest))
    return scale, floor_or_next(t, u)


def exponential_level(magnitudes, largest, u):
    """The scale of a group, and the magnitudes of its levels."""
    scale = magnitudes.max()
    t = magnitudes / or_one(scale)
    half, exponent = np.frexp(t)  # from 1/2 on, where the page's 1 + m is from 1 on
    mantissa = half * F32(2) - F32(1)
    least = u < t * F32(2.0**(largest - 1))
    return scale, np.where(t < F32(2.0**(1 - largest)), least, largest + exponent - 1 + (u < mantissa))


# natural


def decode_natural(reader, message):
    signs = reader.codes(message.size, 1).astype(np.uint32)
    exponents = reader.array("u1", message.size).astype(np.uint32)
    require((exponents != 255).all(), "the exponent of no number")
    return (signs << np.uint32(31) | exponents << np.uint32(23)).view(F32)


def encode_natural(x, message):
    if (np.abs(x) > F32(2.0**127)).any():
        raise Unsendable("the power of two above is infinite")
    bits = x.view(np.uint32)
    mantissas = (bits & np.uint32(2**23 - 1)).astype(F32) / F32(2**23)
    exponents = (bits >> np.uint32(23) & np.uint32(255)) + (message.uniform(np.arange(message.size)) < mantissas)
    return packed(bits >> np.uint32(31), 1) + exponents.astype(np.uint8).tobytes()


# fp8, mx

# The bits of exponent and mantissa, the exponent's bias and the largest number (docs/operators.md, "fp8, mx").
FORMATS = {"e4m3": (4, 3, 7, 448.0), "e5m2": (5, 2, 15, 57344.0), "e3m2": (3, 2, 3, 28.0), "e2m3": (2, 3, 1, 7.5),
           "e2m1": (2, 1, 1, 6.0)}


class Format:
    """The numbers of a small format by their codes; NaN for a code that is never sent."""

    def __init__(self, name):
        self.is_integer = name == "int8"
        if self.is_integer:
            self.bits, self.largest = 8, F32(127 / 64)
            self.numbers = np.arange(256).astype(np.uint8).view(np.int8).astype(F32) / F32(64)
            self.numbers[128] = np.nan
            return
        exponent_bits, mantissa_bits, bias, largest = FORMATS[name]
        self.bits, self.largest = 1 + exponent_bits + mantissa_bits, F32(largest)
        code = np.arange(2**(self.bits - 1))
        exponent, mantissa = code >> mantissa_bits, (code & 2**mantissa_bits - 1) / 2**mantissa_bits
        positive = np.where(exponent == 0, mantissa * 2.0**(1 - bias), (1 + mantissa) * 2.0**(exponent - bias))
        positive[positive > largest] = np.nan
        self.numbers = np.concatenate([positive, -positive]).astype(F32)

    def values(self, codes):
        numbers = self.numbers[codes]
        require(not np.isnan(numbers).any(), "a code of no number")
        return numbers

    def codes(self, t):
        """Those of the nearest numbers to t, of two the even one; the largest is the last."""
        if self.is_integer:
            return np.clip(np.rint(t * 64), -127, 127).astype(np.int64) & 255
        positive = self.numbers[: 2**(self.bits - 1)].astype(np.float64)
        positive = positive[np.isfinite(positive)]
        t = t.astype(np.float64)
        magnitudes = np.minimum(np.abs(t), positive[-1])
        above = np.clip(np.searchsorted(positive, magnitudes), 1, len(positive) - 1)
        up, down = positive[above] - magnitudes, magnitudes - positive[above - 1]
        codes = above - ((down < up) | ((down == up) & (above % 2 == 1)))
        return codes | np.signbit(t).astype(np.int64) << (self.bits - 1)


def decode_fp8(reader, message):
    groups, kind = fp8_groups(message), Format(message.argument)
    scales = reader.scales(len(groups))
    require(np.isfinite(scales * kind.largest).all(), "a scale of numbers past float32")
    numbers = kind.values(reader.array("u1", message.size))
    values = np.zeros(message.size, F32)
    for group, scale in zip(groups, scales):
        values[group] = F32(0) + scale * numbers[group]
    return values


def encode_fp8(x, message):
    kind = Format(message.argument)
    scales, codes = b"", np.zeros(message.size, np.uint8)
    for group in fp8_groups(message):
        scale = np.abs(x[group]).max() / kind.largest
        scales += scale.tobytes()
        codes[group] = kind.codes(x[group] / or_one(scale))
    return scales + codes.tobytes()


def fp8_groups(message):
    return message.groups("block:128")


def decode_mx(reader, message):
    groups, kind = mx_groups(message), Format(message.argument)
    exponents = reader.array("u1", len(groups)).astype(int)
    scales = np.ldexp(F32(1), exponents - 127)
    require(np.isfinite(scales * kind.largest).all(), "a scale of numbers past float32")
    values = np.zeros(message.size, F32)
    for group, scale in zip(groups, scales):
        values[group] = F32(0) + scale * kind.values(reader.codes(len(group), kind.bits))
    return values


def encode_mx(x, message):
    kind = Format(message.argument)
    exponents = codes = b""
    for group in mx_groups(message):
        exponent = max(0, biased_exponent(np.abs(x[group]).max()) - (biased_exponent(kind.largest) - 127))
        exponents += bytes([exponent])
        codes += packed(kind.codes(np.ldexp(x[group].astype(np.float64), 127 - exponent)), kind.bits)
    return exponents + codes


def mx_groups(message):
    width = message.shape[-1] if len(message.shape) > 1 else 1
    rows = np.arange(message.size).reshape(-1, width)
    return [row[at : at + 32] for row in rows for at in range(0, width, 32)]


# fitted, daq

# The steps of 2^b levels, b from 1 on, that leave the least mean square error of N(0, 1) (Max 1960).
DAQ_STEPS = [1.59576913, 0.995686682, 0.586019428, 0.335200599, 0.188138786, 0.104063013, 0.0568676754, 0.0307623879]


def daq_points(bits):
    return (np.arange(2**bits).astype(F32) - F32((2**bits - 1) / 2)) * F32(DAQ_STEPS[bits - 1])


def points_of(message, law):
    """What the receiver sees of each code, about the mean and in units of the scale."""
    if message.name == "daq":
        return daq_points(message.bits)
    return fitted_points(message.bits, message.option("law", "normal"), law)


def groups_of_points(message):
    return message.groups("channel" if message.name == "daq" else "sample")


def decode_points(reader, message):
    groups, heads = groups_of_points(message), []
    for _ in groups:
        mean, scale = reader.floats(1)[0], reader.scales(1)[0]
        law = reader.take(1)[0] if message.option("law", "normal") == "weibull" else 0
        require(law < 16, "no such law")
        ends = mean + scale * points_of(message, law)[[0, -1]]
        require(np.isfinite(ends).all(), "an end is past float32")
        heads.append((mean, scale, law))
    values = np.zeros(message.size, F32)
    for group, (mean, scale, law) in zip(groups, heads):
        values[group] = mean + scale * points_of(message, law)[reader.codes(len(group), message.bits)]
    return values


def encode_points(x, message):
    """The law of a group with law=weibull is read from the payload that was sent."""
    option, heads, codes = message.option("law", "normal"), b"", b""
    for g, group in enumerate(groups_of_points(message)):
        mean, scale = mean_and_spread(x[group], option)
        law = message.sent[9 * g + 8] if option == "weibull" and message.sent else 0
        points = points_of(message, law)
        require_sendable(mean + scale * points[[0, -1]])
        heads += mean.tobytes() + scale.tobytes() + (bytes([law]) if option == "weibull" else b"")
        t = (x[group] - mean) / or_one(scale)
        if message.name == "daq":
            code = np.floor(t / F32(DAQ_STEPS[message.bits - 1])) + 2**(message.bits - 1)
            code = np.clip(code, 0, 2**message.bits - 1)
        else:
            code = fitted_codes(t, points, message.uniform(group))
        codes += packed(code, message.bits)
    return heads + codes


def mean_and_spread(x, law):
    mean = sum_in_order(x) / F32(len(x)) + F32(0)
    require_sendable(mean)
    if law == "laplace":
        spread = sum_in_order(np.abs(x - mean)) / F32(len(x))
    else:
        spread = norm(x - mean, np.abs(x).max()) / np.sqrt(F32(len(x)))
    require_sendable(spread)
    return mean, spread


def fitted_codes(t, points, u):
    t = np.clip(t, points[0], points[-1])
    lower = np.searchsorted(points[1:-1], t, side="right")
    share = (t - points[lower]) / (points[lower + 1] - points[lower])
    return lower + (u < share)


# bounded

WHOLE = 32  # stands for float32 where the bits of codes are expected


def decode_bounded(reader, message):
    groups, values = message.groups("sample"), np.zeros(message.size, F32)
    widths = reader.array("u1", len(groups)).tolist()
    for group, bits in zip(groups, widths):
        require(1 <= bits <= 8 or bits == WHOLE, "no such number of bits")
        if bits == WHOLE:
            values[group] = reader.floats(len(group))
        else:
            low, high = reader.floats(2)
            require_range(low, high)
            values[group] = read_range_values(reader, low, high, len(group), bits)
    return values


def encode_bounded(x, message):
    widths = bodies = b""
    for group in message.groups("sample"):
        bits = least_bits(x[group], F32(float(message.argument)))
        widths += bytes([bits])
        if bits == WHOLE:
            bodies += x[group].tobytes()
        else:
            low, high = range_of(x[group])
            bodies += low.tobytes() + high.tobytes() + packed(range_codes(x[group], low, high, bits), bits)
    return widths + bodies


def least_bits(x, share):
    low, high = range_of(x)
    bound = share * norm(x)
    if np.isfinite([high - low + bound, low + (high - low)]).all():
        for bits in range(1, 9):
            received = range_values(range_codes(x, low, high, bits), low, high, bits)
            if norm(x - received) <= bound:
                return bits
    return WHOLE
