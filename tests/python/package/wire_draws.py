"""The random numbers of the wire formats, in NumPy: written from the pages (docs/wire_format.md, "Links" and "quant";
docs/wire_format_field.md, "random") and never from the kernels. All integers wrap at their size.
"""

from typing import NamedTuple

import numpy as np

C = 0x9E3779B97F4A7C15
LOW_64 = 2**64 - 1


class Place(NamedTuple):
    """Where a message stands in a run, by the names of strait.compress: what draws depend on."""

    seed: int = 0
    step: int = 0
    boundary: int = 0
    direction: str = "activation"
    first_row: int = 0

    @property
    def words(self):
        """The words of the keys that depend on the direction."""
        return self.seed, self.boundary, ("activation", "gradient").index(self.direction), self.step


def mix64(x):
    x &= LOW_64
    x ^= x >> 30
    x = x * 0xBF58476D1CE4E5B9 & LOW_64
    x ^= x >> 27
    x = x * 0x94D049BB133111EB & LOW_64
    return x ^ (x >> 31)


def key_of(seed, *words):
    key = mix64(seed + C)
    for word in words:
        key = mix64(key ^ (word + C + (key << 6) & LOW_64))
    return key


def word_of(key, position):
    """64 bits of the counter, for what needs whole words."""
    return mix64(key + (position + 1) * C)


def mix32(x):
    x = x ^ x >> np.uint32(16)
    x = x * np.uint32(0x7FEB352D)
    x = x ^ x >> np.uint32(15)
    x = x * np.uint32(0x846CA68B)
    return x ^ x >> np.uint32(16)


def draws(key, indices):
    """32 bits for each index of an element in the batch."""
    indices = np.asarray(indices, np.uint64)
    low, high = indices.astype(np.uint32), (indices >> np.uint64(32)).astype(np.uint32)
    mixed = mix32(low ^ np.uint32(key & 0xFFFFFFFF))
    return mix32(mixed + np.uint32(key >> 32) + high * np.uint32(C >> 32))


def uniform(key, indices):
    """The numbers u in [0, 1), of 24 bits."""
    return (draws(key, indices) >> np.uint32(8)).astype(np.float32) * np.float32(2.0**-24)
