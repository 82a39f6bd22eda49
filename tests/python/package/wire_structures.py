"""The payloads of ids 15 to 20, in NumPy: written from the page (docs/wire_format_field.md, in its order) and never from the
kernels."""

import math
from fractions import Fraction

import numpy as np

import wire_draws
from wire_common import (F32, LEAST_NORMAL, Unsendable, biased_exponent, channels_of, hadamard, in_rows_of_16, kept_of, or_one,
                         packed, read_values, require, require_sendable, sum_in_order, sum_of_neighbours, write_values)
from wire_paper import Selection

# tah

TILE = 64


class Tokens:
    """How the tokens and tiles of a message lie, and how many tokens of a sample take a bit less."""

    def __init__(self, message):
        self.width = message.shape[-1]
        self.count, self.tiles = message.size // self.width, message.size // TILE
        self.per_sample = self.count // message.rows
        self.narrow = math.floor(Fraction(message.option("share", "0.2")) * self.per_sample)

    def bits_of_tiles(self, bits, narrow):
        return np.repeat(bits - narrow.astype(int), self.width // TILE).tolist()


def decode_tah(reader, message):
    tokens = Tokens(message)
    narrow, pivots = reader.codes(tokens.count, 1), reader.codes(tokens.tiles, 1)
    require((narrow.reshape(message.rows, -1).sum(1) == tokens.narrow).all(), "another number of tokens takes a bit less")
    ranges = reader.halves(2 * tokens.tiles).reshape(-1, 2)
    require(not np.signbit(ranges[:, 1]).any(), "a step is negative")
    tiles = np.zeros((tokens.tiles, TILE), F32)
    for tile, (least, step), bits in zip(tiles, ranges, tokens.bits_of_tiles(message.bits, narrow)):
        codes = reader.codes(TILE, bits)
        require(step != 0 or not codes.any(), "a code without a step")
        tile[:] = least + codes.astype(F32) * step
    with_pivot = np.flatnonzero(pivots)
    for index, place in zip(with_pivot, reader.codes(len(with_pivot), 6)):
        tile = hadamard(tiles[index] / F32(8))[0]
        tile[[0, place]] = tile[[place, 0]]
        tiles[index] = tile
    return tiles.reshape(-1)


def encode_tah(x, message):
    tokens = Tokens(message)
    narrow = narrow_tokens(x, message, tokens)
    pivots, places, ranges, codes = [], [], b"", b""
    for tile, bits in zip(x.reshape(-1, TILE).copy(), tokens.bits_of_tiles(message.bits, narrow)):
        place = pivot_of(tile, F32(float(message.option("factor", "2"))))
        pivots.append(place is not None)
        if place is not None:
            places.append(place)
            tile[[0, place]] = tile[[place, 0]]
            tile = hadamard(tile / F32(8))[0]
        least, greatest = tile.min() + F32(0), tile.max() + F32(0)
        ends = np.array([least, (greatest - least) / F32(2**bits - 1)], F32).astype("<f2")
        require_sendable(ends)
        ranges += ends.tobytes()
        least, step = ends.astype(F32)
        code = np.clip(np.rint((tile - least) / step), 0, 2**bits - 1) if step != 0 else np.zeros(TILE)
        codes += packed(code, bits)
    return packed(narrow, 1) + packed(pivots, 1) + ranges + codes + packed(places, 6)


def narrow_tokens(x, message, tokens):
    entropies = entropy(x.reshape(message.rows, tokens.per_sample, tokens.width))
    narrow = np.zeros(entropies.shape, bool)
    for sample, of_tokens in zip(narrow, entropies):
        sample[np.argsort(of_tokens, kind="stable")[: tokens.narrow]] = True
    return narrow.reshape(-1)


# Of P, the highest first, which the page leaves to kernels/sums.h, and the bits of about sqrt(1/2).
LOGARITHM = [-0.146203533, 0.23420985, -0.24882181, 0.287075609, -0.360241979, 0.48092404, -0.721352756, 1.4426949]
SPLIT = 0x3F3504F3


def entropy(x):
    """Of the magnitudes over the last dimension."""
    magnitudes = np.abs(x)
    total = sum_in_order(magnitudes)[..., None]
    share = magnitudes * (F32(1) / np.maximum(total, LEAST_NORMAL))
    counts = share >= LEAST_NORMAL
    bits = np.where(counts, share, F32(1)).view(np.int32)
    exponent = bits - SPLIT >> 23
    part = (bits - (exponent << 23)).view(F32) - F32(1)
    polynomial = np.zeros_like(part)
    for term in LOGARITHM:
        polynomial = polynomial * part + F32(term)
    logarithm = exponent.astype(F32) + part * polynomial
    return sum_in_order(np.where(counts, share * -logarithm, F32(0)))


def pivot_of(tile, factor):
    """The place of the tile's pivot, or None."""
    magnitudes = np.abs(tile)
    place = int(np.argmax(magnitudes))
    second = np.delete(magnitudes, place).max()
    return place if magnitudes[place] > 0 and magnitudes[place] >= factor * second else None


# outliers


class Channels:
    """The rows of a message, the channel of each of its elements, and the threshold."""

    def __init__(self, message):
        parts, self.count, inner = channels_of(message)
        channel = np.repeat(np.arange(self.count), inner)
        self.of_elements = np.tile(channel, (parts, 1))
        self.rows = parts
        self.threshold = F32(float(message.option("threshold", "6")))


def decode_outliers(reader, message):
    channels, half = Channels(message), 2**(message.bits - 1)
    bitmap = reader.codes(channels.count, 1).astype(bool)
    scales = reader.scales(channels.rows)
    require((scales < channels.threshold).all(), "a scale of the threshold or more")
    outlying = bitmap[channels.of_elements]
    values = np.zeros(outlying.shape, F32)
    for row, scale, others in zip(values, scales, ~outlying):
        require(others.any() or scale == 0, "a scale of no elements")
        codes = reader.codes(int(others.sum()), message.bits)
        row[others] = F32(0) + scale * ((codes.astype(F32) + F32(0.5) - F32(half)) / F32(half))
    values[outlying] = reader.halves(int(outlying.sum()))
    least = channels.threshold.astype(np.float16).astype(F32)
    for channel in np.flatnonzero(bitmap):
        require((np.abs(values[channels.of_elements == channel]) >= least).any(), "a channel without an outlier")
    return values.reshape(-1)


def encode_outliers(x, message):
    channels, half = Channels(message), 2**(message.bits - 1)
    x = x.reshape(channels.of_elements.shape)
    bitmap = np.zeros(channels.count, bool)
    bitmap[channels.of_elements[np.abs(x) >= channels.threshold]] = True
    outlying = bitmap[channels.of_elements]
    scales = codes = b""
    for row, others in zip(x, ~outlying):
        scale = np.abs(row[others]).max(initial=F32(0))
        steps = np.clip(np.floor(row[others] / or_one(scale) * F32(half)), -half, half - 1)
        scales += scale.tobytes()
        codes += packed(steps + half, message.bits)
    halves = x[outlying].astype("<f2")
    require_sendable(halves)
    return packed(bitmap, 1) + scales + codes + halves.tobytes()


# random


def drawn_masks(message, selection):
    """The kept elements are those with the least draws."""
    place = message.place
    indices = np.arange(message.size) + place.first_row * message.row_size
    draws = wire_draws.draws(wire_draws.key_of(place.seed, place.boundary, place.step), indices) >> np.uint32(1)
    masks = np.zeros((selection.count, selection.size), bool)
    for mask, group in zip(masks, draws.reshape(masks.shape)):
        mask[np.argsort(group, kind="stable")[: selection.kept]] = True
    return masks


def decode_random(reader, message):
    selection = Selection(message)
    return selection.read(reader, drawn_masks(message, selection))


def encode_random(x, message):
    selection = Selection(message)
    groups = selection.groups_of(x)
    if message.option("scale", "none") == "unbiased" and selection.kept < selection.size:
        groups = groups * F32(selection.size / selection.kept)
    return selection.write(groups, drawn_masks(message, selection))


# columns


def column_shape(message):
    """[G, O, C, I], and the number of channels that are kept."""
    parts, channels, inner = channels_of(message)
    groups = message.rows if message.option("scope", "tensor") == "sample" else 1
    return (groups, parts // groups, channels, inner), kept_of(message.argument, channels)


def decode_columns(reader, message):
    (groups, parts, channels, inner), kept = column_shape(message)
    masks = np.ones((groups, channels), bool)
    if kept < channels:
        masks = np.array([reader.codes(channels, 1) for _ in range(groups)]).astype(bool)
        require((masks.sum(1) == kept).all(), "another number of channels")
    values = np.zeros((groups, parts, channels, inner), F32)
    for g, mask in enumerate(masks):
        kept_values = read_values(reader, message, kept * parts * inner, message.place.first_row + g)
        values[g][:, mask] = kept_values.reshape(parts, kept, inner)
    return values.reshape(-1)


def encode_columns(x, message):
    shape, kept = column_shape(message)
    bitmaps = lists = b""
    for g, group in enumerate(x.reshape(shape)):
        mask = np.ones(shape[2], bool)
        if kept < shape[2]:
            scaled = group * F32(2.0**min(45 + 127 - biased_exponent(np.abs(group).max()), 127))
            sums = sum_of_neighbours(sum_in_order(scaled * scaled).T)
            mask[np.argsort(-sums, kind="stable")[kept:]] = False
            bitmaps += packed(mask, 1)
        lists += write_values(group[:, mask].reshape(-1), message, message.place.first_row + g)
    return bitmaps + lists


# lowrank


def matrix_shape(message):
    """The rows and the columns of the message as a matrix."""
    columns = math.prod(message.shape[-2:]) if len(message.shape) == 4 else message.shape[-1]
    if message.option("matrix", "dimensions") == "square" or 1 in (columns, message.size // columns):
        columns = math.isqrt(message.size - 1) + 1
    return -(-message.size // columns), columns


def product(left, right):
    """The matrix of the vectors of P and Q, term by term."""
    matrix = np.zeros((left.shape[1], right.shape[1]), F32)
    for p, q in zip(left, right):
        matrix = matrix + q[None, :] * p[:, None]
    return matrix


def read_factors(reader, message, rank):
    rows, columns = matrix_shape(message)
    left = reader.floats(rows * rank).reshape(rank, rows)
    right = reader.floats(columns * rank).reshape(rank, columns)
    matrix = product(left, right)
    require(np.isfinite(matrix).all(), "a sum is not finite")
    return matrix.reshape(-1)[: message.size]


def decode_lowrank(reader, message):
    return read_factors(reader, message, message.bits)


def encode_lowrank(x, message):
    """Of a cold start."""
    (rows, columns), rank = matrix_shape(message), int(message.argument)
    matrix = np.pad(x, (0, rows * columns - len(x))).reshape(rows, columns)
    exponent = biased_exponent(np.abs(x).max()) - 127 if x.any() else 0
    key = wire_draws.key_of(*message.place.words)
    start = F32(2) * wire_draws.uniform(key, np.arange(rank * columns)) - F32(1)
    start = (start * F32(2.0**-min(max(exponent, -100), 100))).reshape(rank, columns)
    left = orthonormal([lane_products(matrix, vector) for vector in start])
    right = np.zeros((rank, columns), F32)
    for vector, sums in zip(left, right):
        for row, factor in zip(matrix, vector):
            sums += row * factor
    require_sendable(left)
    require_sendable(right)
    largest = np.abs(left).max(1).astype(np.float64) * np.abs(right).max(1)
    if largest.sum() >= float(np.finfo(F32).max) / 2:
        raise Unsendable("a sum may overflow")
    return left.tobytes() + right.tobytes()


def lane_products(rows, vector):
    """The product of each row and the vector, in 16 lanes."""
    terms = in_rows_of_16(rows * vector)
    lanes = np.zeros((len(rows), 16), F32)
    for step in range(terms.shape[1]):
        lanes = lanes + terms[:, step]
    return sum_of_neighbours(lanes)


def orthonormal(vectors):
    basis = []
    for vector in vectors:
        first = left = length(vector)
        for _ in range(2 if basis else 0):
            if left > first * F32(2.0**-16):
                for other in basis:
                    vector = vector - lane_products(other[None], vector)[0] * other
                left = length(vector)
        basis.append(vector / left if left > first * F32(2.0**-16) else np.zeros_like(vector))
    return np.array(basis)


def length(vector):
    return np.sqrt(lane_products(vector[None], vector)[0])


# atomo, whose encoder depends on the library that decomposes


def decode_atomo(reader, message):
    (rows, columns), triples = matrix_shape(message), int(reader.array("<u4", 1)[0])
    if triples == 2**32 - 1:
        return reader.floats(message.size)
    require(triples <= min(rows, columns), "more triples than there are")
    require(triples * (rows + columns) < message.size, "more than the elements would take")
    return read_factors(reader, message, triples)
