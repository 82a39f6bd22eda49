"""A small network with a boundary, a step of it, and what the boundary keeps."""

import io

import torch
import torch.nn.functional as F
from torch import nn

import strait


def network(*boundary, **options):
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(6, 16), nn.Tanh(), strait.Boundary(*boundary, **options), nn.Linear(16, 3))


def data(rows=8):
    generator = torch.Generator().manual_seed(4)
    return torch.randn(rows, 6, generator=generator), torch.randint(3, (rows,), generator=generator)


def gradients(model):
    return [parameter.grad.clone() for parameter in model.parameters()]


def boundary_step(model, x, y, **place):
    model.zero_grad()
    with strait.batch(model, **place):
        loss = F.cross_entropy(model(x), y)
    loss.backward()
    return gradients(model)


def state_of(boundary):
    """The step, and the tensors that its links keep."""
    return torch.load(io.BytesIO(boundary.get_extra_state().numpy().tobytes()), weights_only=True)


def equal(ours, expected):
    return all(torch.equal(a, b) for a, b in zip(ours, expected, strict=True))
