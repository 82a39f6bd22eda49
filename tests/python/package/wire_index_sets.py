"""The index sets of `topk`, in NumPy: written from the page (docs/wire_format.md, "topk") and never from the kernels."""

import math

import numpy as np

from wire_common import BitReader, bits_of, packed_bits, require

INTERLACED = 32


def rice_parameter(count, kept):
    """r, the least of 0 to 30 with the fewest expected bits of a gap."""
    share = (count - kept) / count
    costs = []
    for r in range(31):
        costs.append(1 + r + (share / (1 - share) if share < 1 else math.inf))
        share *= share
    return costs.index(min(costs))


# rice


def read_rice(stream, count, kept):
    """The kept indices of `count`, ascending."""
    r, previous, indices = rice_parameter(count, kept), -1, []
    for _ in range(kept):
        gap = stream.zeros() << r
        previous += 1 + gap + stream.number(r)
        require(previous < count, "an index is past the group")
        indices.append(previous)
    return indices


def rice_bits(indices, count):
    r, previous, bits = rice_parameter(count, len(indices)), -1, []
    for index in indices:
        gap = int(index) - previous - 1
        bits += [0] * (gap >> r) + [1] + bits_of(gap, r)
        previous = int(index)
    return bits


# interlaced


def lines_of(count, width):
    """The lines of a group's pictures in the order of the code: the positions of each, and of each position the neighbours in
    earlier lines. `count`, which is no position, stands for none; the first line has no neighbours."""
    return picture(2, np.arange(count), width, count)


def picture(level, positions, width, none):
    if level == 0:
        return [(positions, None)]
    index = np.arange(len(positions))
    row, place = index // width % 2, index % width % 2
    even, odd = (row == 0) & (place == 0), (row == 1) & (place == 1)
    lines = picture(level - 1, positions[even], -(-width // 2), none)
    for line, steps, earlier in ((odd, (-width - 1, -width + 1, width - 1, width + 1), even),
                                 (~even & ~odd, (-width, -1, 1, width), even | odd)):
        near = index[line][:, None] + np.array(steps)
        there = (near >= 0) & (near < len(positions))
        near = np.where(there, near, 0)
        there &= earlier[near]
        lines.append((positions[line], np.where(there, positions[near], none)))
    return lines


def classes_of(line, kept):
    """The positions of each class of a line, where those of earlier lines are kept or not already."""
    positions, neighbours = line
    if neighbours is None:
        return [positions]
    near = kept[neighbours].sum(1)
    return [positions[near == j] for j in range(5)]


def is_plain(count, fewer):
    return 8 * fewer >= 3 * count


def read_class(stream, count):
    """Which of the class's positions are kept."""
    kept = stream.number(count.bit_length())
    require(kept <= count, "a class keeps more than it has")
    fewer = min(kept, count - kept)
    if fewer and is_plain(count, fewer):
        mask = np.array([stream.bit() for _ in range(count)], bool)
        require(mask.sum() == kept, "a class keeps another number than it says")
        return mask
    mask = np.zeros(count, bool)
    if fewer:
        mask[read_rice(stream, count, fewer)] = True
    return ~mask if kept > count - kept else mask


def class_bits(mask):
    count, kept = len(mask), int(mask.sum())
    bits, fewer = bits_of(kept, count.bit_length()), min(kept, count - kept)
    if not fewer:
        return bits
    if is_plain(count, fewer):
        return bits + mask.astype(int).tolist()
    return bits + rice_bits(np.flatnonzero(~mask if kept > count - kept else mask), count)


def read_interlaced(stream, count, width):
    kept = np.zeros(count + 1, bool)
    for line in lines_of(count, width):
        for positions in classes_of(line, kept):
            if len(positions):
                kept[positions] = read_class(stream, len(positions))
    return kept[:count]


def interlaced_bits(mask, width):
    kept, bits = np.append(mask, False), []
    for line in lines_of(len(mask), width):
        for positions in classes_of(line, kept):
            if len(positions):
                bits += class_bits(kept[positions])
    return bits


# Sets of any code


def read_set(reader, code, size, count, kept, width):
    """Which of `count` elements are in the set of `size` bytes."""
    if code == 0:
        require(size == -(-count // 8), "a bitmap of another length")
        mask = reader.codes(count, 1).astype(bool)
    else:
        stream = BitReader(reader.take(size))
        if code == INTERLACED:
            mask = read_interlaced(stream, count, width)
        else:
            mask = np.zeros(count, bool)
            mask[read_rice(stream, count, kept)] = True
        stream.finish()
    require(mask.sum() == kept, "a set of another number of elements")
    return mask


def written_set(code, mask, width):
    if code == 0:
        return packed_bits(mask)
    return packed_bits(interlaced_bits(mask, width) if code == INTERLACED else rice_bits(np.flatnonzero(mask), len(mask)))
