"""The operators by their definitions (docs/operators.md) in plain PyTorch, written without a look at strait's code."""

import math
from fractions import Fraction

import torch


def topk(x, share, groups):
    """The ceil(share * d) largest magnitudes of each row of x as [groups, d], of equal ones the first."""
    rows = x.reshape(groups, -1)
    kept = math.ceil(Fraction(share) * rows.shape[1])
    order = torch.sort(rows.abs(), dim=1, descending=True, stable=True).indices[:, :kept]
    mask = torch.zeros_like(rows, dtype=torch.bool).scatter(1, order, True)
    return torch.where(mask, rows, torch.zeros_like(rows)).reshape(x.shape)


def quant(x, bits, groups=1):
    """The nearest of 2**bits equally spaced levels from each group's least to its greatest value, in float64."""
    rows = x.reshape(groups, -1).double()
    low, high = rows.min(1, keepdim=True).values, rows.max(1, keepdim=True).values
    levels = 2**bits - 1
    span = torch.where(high > low, high - low, torch.ones_like(low))
    return (low + torch.round((rows - low) / span * levels) * (high - low) / levels).reshape(x.shape)
