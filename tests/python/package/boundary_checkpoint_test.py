"""A model with boundaries in a checkpoint of torch.distributed.checkpoint, as docs/python.md has it."""

import pytest
import torch
import torch.distributed.checkpoint as dcp
from torch import nn

import strait

pytestmark = [pytest.mark.usefixtures("one_thread"), pytest.mark.filterwarnings("ignore")]
X = torch.randn(4, 8, generator=torch.Generator().manual_seed(3))


def network():
    return nn.Sequential(nn.Linear(8, 16), strait.Boundary("topk:0.3", "topk:0.3", feedback="ef21"), nn.Linear(16, 4))


def train(model):
    model.zero_grad()
    model(X).square().sum().backward()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter -= 0.01 * parameter.grad


def weights(model):
    return {n: t for n, t in model.state_dict().items() if not n.endswith("_extra_state")}


def test_weights_and_the_boundaries_states_are_kept_apart(tmp_path):
    model, other = network(), network()
    for _ in range(3):
        train(model)
    dcp.save(weights(model), checkpoint_id=str(tmp_path / "weights"))
    torch.save([b.state_dict() for b in strait.boundaries(model)], tmp_path / "boundaries.pt")
    loaded = weights(other)
    dcp.load(loaded, checkpoint_id=str(tmp_path / "weights"))
    assert other.load_state_dict(loaded, strict=False).missing_keys == ["1._extra_state"]
    for boundary, state in zip(strait.boundaries(other), torch.load(tmp_path / "boundaries.pt"), strict=True):
        boundary.load_state_dict(state)
    assert other[1].step == 3
    for _ in range(2):
        train(model)
        train(other)
    assert all(map(torch.equal, weights(model).values(), weights(other).values()))
