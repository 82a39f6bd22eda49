"""The payloads of ids 0 to 4, in NumPy: written from the page (docs/wire_format.md, in its order) and never from the
kernels."""

import numpy as np

import wire_draws
from wire_common import (F32, Unsendable, bytes_of, floor_or_next, hadamard, kept_of, or_one, packed, range_codes, range_of,
                         read_range_values, read_values, require, require_range, require_sendable, write_values)
from wire_index_sets import INTERLACED, read_set, rice_parameter, written_set

# none, fp16, bf16


def decode_none(reader, message):
    return reader.floats(message.size)


def encode_none(x, message):
    return x.tobytes()


def decode_fp16(reader, message):
    return reader.halves(message.size)


def encode_fp16(x, message):
    halves = x.astype("<f2")
    require_sendable(halves)
    return halves.tobytes()


def decode_bf16(reader, message):
    return bf16_values(reader, message.size)


def bf16_values(reader, count):
    values = (reader.array("<u2", count).astype(np.uint32) << np.uint32(16)).view(F32)
    require(np.isfinite(values).all(), "a bf16 is not finite")
    return values


def bf16_below(x):
    """The greatest bf16 that is at most x: without its lower half a float32 is nearer to zero."""
    cut = np.array([x], F32).view(np.uint32) & np.uint32(0xFFFF0000)
    return (cut if cut.view(F32)[0] <= x else cut + np.uint32(0x10000)).view(F32)[0]


def encode_bf16(x, message):
    bits = x.view(np.uint32)
    last = bits >> np.uint32(16) & np.uint32(1)  # rounds the middle to even
    upper = (bits + np.uint32(0x7FFF) + last) >> np.uint32(16)
    require_sendable((upper << np.uint32(16)).view(F32))
    return upper.astype("<u2").tobytes()


# quant


def decode_quant(reader, message):
    groups = message.groups("tensor")
    spikes = read_spikes(reader, groups) if message.option("spikes", "0") == "1" else []
    read = read_symmetric if message.option("levels", "range") == "symmetric" else read_ranges
    values = read(reader, message, groups)
    if message.option("rotate", "none") == "hadamard":
        values = rotated(values, message, back=True)
        require(np.isfinite(values).all(), "what comes back is not finite")
    for group, (least, least_place, greatest, greatest_place) in zip(groups, spikes):
        values[group[least_place]] = least
        values[group[greatest_place]] = greatest
    return values


def encode_quant(x, message):
    groups = message.groups("tensor")
    spikes = b""
    if message.option("spikes", "0") == "1":
        x, spikes = without_spikes(x, groups)
    if message.option("rotate", "none") == "hadamard":
        if np.abs(x).max() >= 2.0**121:
            raise Unsendable("a sum may overflow")
        x = rotated(x, message, back=False)
    write = write_symmetric if message.option("levels", "range") == "symmetric" else write_ranges
    return spikes + write(x, message, groups)


def read_ranges(reader, message, groups):
    is_short = message.option("ranges", "fp32") == "bf16"
    ends = bf16_values(reader, 2 * len(groups)) if is_short else reader.floats(2 * len(groups))
    values = np.zeros(message.size, F32)
    for group, (low, high) in zip(groups, ends.reshape(-1, 2)):
        require_range(low, high)
        values[group] = read_range_values(reader, low, high, len(group), message.bits)
    return values


def write_ranges(x, message, groups):
    ranges = codes = b""
    for group in groups:
        low, high = range_of(x[group])
        if message.option("ranges", "fp32") == "bf16":
            low, high = bf16_below(low) + F32(0), F32(0) - bf16_below(-high)
            ranges += low.tobytes()[2:] + high.tobytes()[2:]
        else:
            ranges += low.tobytes() + high.tobytes()
        require_sendable(low + (high - low))
        codes += packed(range_codes(x[group], low, high, message.bits, dither_of(message, group)), message.bits)
    return ranges + codes


def dither_of(message, group):
    """The numbers u of a group, or None where codes are the nearest ones."""
    return message.uniform(group) if message.option("rounding", "nearest") == "stochastic" else None


# quant with levels=symmetric


def read_symmetric(reader, message, groups):
    largest = 2**(message.bits - 1) - 1
    values = np.zeros(message.size, F32)
    for group, scale in zip(groups, reader.scales(len(groups))):
        codes = reader.codes(len(group), message.bits)
        require((codes <= 2 * largest).all(), "a level is past the last")
        values[group] = F32(0) + scale * ((codes - largest).astype(F32) / F32(largest))
    return values


def write_symmetric(x, message, groups):
    largest = F32(2**(message.bits - 1) - 1)
    scales = codes = b""
    for group in groups:
        scale, u = np.abs(x[group]).max(), dither_of(message, group)
        if u is None:
            levels = np.rint(x[group] / or_one(scale) * largest)
        else:
            levels = np.sign(x[group]) * floor_or_next(np.abs(x[group]) / or_one(scale) * largest, u)
        scales += scale.tobytes()
        codes += packed(levels + largest, message.bits)
    return scales + codes


# quant with rotate=hadamard


def rotated(x, message, back):
    """Whole blocks of 64 elements of each row; fewer at its end stay."""
    word = wire_draws.word_of(wire_draws.key_of(*message.place.words, 1), 0)
    signs = np.array([-1 if word >> i & 1 else 1 for i in range(64)], F32)
    whole = message.row_size // 64 * 64
    rows = x.reshape(message.rows, message.row_size).copy()
    blocks = rows[:, :whole].reshape(-1, 64) / F32(8)
    blocks = hadamard(blocks) * signs if back else hadamard(blocks * signs)
    rows[:, :whole] = blocks.reshape(message.rows, whole)
    return rows.reshape(-1)


# quant with spikes=1


def place_bytes(groups):
    """The bytes of a place in a group, by the longest group."""
    size = max(map(len, groups))
    return 1 if size <= 2**8 else 2 if size <= 2**16 else 4


def read_spikes(reader, groups):
    size = place_bytes(groups)
    spikes = []
    for group in groups:
        least, least_place = reader.floats(1)[0], int.from_bytes(reader.take(size), "little")
        greatest, greatest_place = reader.floats(1)[0], int.from_bytes(reader.take(size), "little")
        require(least <= greatest, "the least spike is above the greatest")
        require(max(least_place, greatest_place) < len(group), "a spike is past its group")
        require(least_place != greatest_place or len(group) == 1, "two spikes in one place")
        spikes.append((least, least_place, greatest, greatest_place))
    return spikes


def without_spikes(x, groups):
    """The message with the spikes' places filled up, and the bytes of the spikes."""
    size = place_bytes(groups)
    x, spikes = x.copy(), b""
    for group in groups:
        least = int(np.argmin(x[group]))
        others = np.delete(np.arange(len(group)), least)
        greatest = int(others[np.argmax(x[group][others])]) if len(others) else least
        for place in (least, greatest):
            spikes += x[group[place]].tobytes() + place.to_bytes(size, "little")
        rest = np.delete(x[group], [least, greatest])
        x[group[[least, greatest]]] = rest.min() if len(rest) else F32(0)
    return x, spikes


# topk


class Selection:
    """The groups of a message as rows of n elements, of which k are kept."""

    def __init__(self, message):
        self.message, scope = message, message.option("scope", "sample")
        self.per_row = 1
        if scope == "tensor":
            self.count, self.size = 1, message.size
        else:
            self.size = min(int(scope[len("block:") :]), message.row_size) if scope.startswith("block:") else message.row_size
            self.per_row = -(-message.row_size // self.size)
            self.count = message.rows * self.per_row
        self.kept = kept_of(message.argument, self.size)
        self.first = message.place.first_row * self.per_row

    def groups_of(self, x):
        """[groups, n], with zeros behind the end of a row."""
        if self.count == 1:
            return x.reshape(1, -1)
        rows = x.reshape(self.message.rows, self.message.row_size)
        return np.pad(rows, [(0, 0), (0, self.per_row * self.size - rows.shape[1])]).reshape(self.count, self.size)

    def elements_of(self, groups):
        if self.count == 1:
            return groups.reshape(-1)[: self.message.size]
        return groups.reshape(self.message.rows, -1)[:, : self.message.row_size].reshape(-1)

    def read(self, reader, masks):
        """The message's elements, from the value lists of all groups."""
        groups = np.zeros((self.count, self.size), F32)
        for g, mask in enumerate(masks):
            groups[g, mask] = read_values(reader, self.message, self.kept, self.first + g)
        return self.elements_of(groups)

    def write(self, groups, masks):
        lists = [write_values(group[mask], self.message, self.first + g) for g, (group, mask) in enumerate(zip(groups, masks))]
        return b"".join(lists)


def picture_width(message, selection):
    if message.option("scope", "sample").startswith("block:"):
        return selection.size
    return message.shape[-1] if len(message.shape) > 1 else selection.size


def decode_topk(reader, message):
    selection = Selection(message)
    masks = np.ones((selection.count, selection.size), bool)
    if selection.kept < selection.size:
        codes, sizes = reader.array("u1", selection.count), reader.array("<u4", selection.count)
        allowed, bitmap = allowed_codes(message, selection), bytes_of(selection.size)
        for g, (code, size) in enumerate(zip(codes.tolist(), sizes.tolist())):
            require(code in allowed, "a code that is not the receiver's")
            require(code == 0 or size < bitmap or len(allowed) == 1, "a set that is longer than the bitmap")
            masks[g] = read_set(reader, code, size, selection.size, selection.kept, picture_width(message, selection))
    return selection.read(reader, masks)


def allowed_codes(message, selection):
    codes = {"bitmap": 0, "rice": 1 + rice_parameter(selection.size, selection.kept), "interlaced": INTERLACED}
    option = message.option("index", "auto")
    return set(codes.values()) if option == "auto" else {codes[option]}


def encode_topk(x, message):
    """Which groups have the interlaced code with index=auto is read from the payload that was sent."""
    selection = Selection(message)
    groups = selection.groups_of(x)
    masks = np.zeros((selection.count, selection.size), bool)
    for group, mask in zip(groups, masks):
        mask[np.argsort(-np.abs(group), kind="stable")[: selection.kept]] = True
    codes, sizes, sets = [], [], []
    width = picture_width(message, selection)
    for g, mask in enumerate(masks if selection.kept < selection.size else []):
        allowed = allowed_codes(message, selection)
        if len(allowed) > 1:
            rice = max(allowed - {INTERLACED})
            shorter = len(written_set(rice, mask, width)) < len(written_set(0, mask, width))
            interlaced = (message.sent or b"")[g : g + 1] == bytes([INTERLACED])
            allowed = {INTERLACED if interlaced else rice if shorter else 0}
        codes += allowed
        sets.append(written_set(codes[-1], mask, width))
        sizes.append(len(sets[-1]))
    index = np.array(codes, "u1").tobytes() + np.array(sizes, "<u4").tobytes() + b"".join(sets)
    return index + selection.write(groups, masks)
