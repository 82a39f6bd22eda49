"""The points of `fitted`, which docs/wire_format_field.md leaves to the code: as the package gives them, and held to the laws
that docs/operators.md names."""

import functools
import math
import statistics

import numpy as np
import torch

import strait
from wire_common import F32, packed


@functools.lru_cache(maxsize=None)
def fitted_points(bits, law, number):
    """What the receiver sees of each code for the mean 0 and the scale 1; `number` is the law of law=weibull."""
    count = 2**bits
    head = F32([0, 1]).tobytes() + (bytes([number]) if law == "weibull" else b"")
    payload = torch.frombuffer(bytearray(head + packed(np.arange(count), bits)), dtype=torch.uint8)
    points = strait.decompress(payload, f"fitted:{bits},law={law}", (1, count)).numpy()[0]
    assert (np.diff(points) > 0).all()
    np.testing.assert_allclose(points, -points[::-1], rtol=1e-6)
    if law in QUANTILES:
        middles = (np.arange(count) + 0.5) / count
        np.testing.assert_allclose(points, [QUANTILES[law](middle) for middle in middles], rtol=1e-5, atol=1e-6)
    return points


def normal_quantile(share):
    """Of the cube root of the normal density, whose deviation is sqrt(3)."""
    return math.sqrt(3) * statistics.NormalDist().inv_cdf(share)


def laplace_quantile(share):
    """Of the cube root of Laplace's density, whose mean magnitude is 3."""
    return 3 * math.log(2 * share) if share < 0.5 else -3 * math.log(2 - 2 * share)


QUANTILES = {"normal": normal_quantile, "laplace": laplace_quantile}
