"""What is True or False: no text is taken for its truth."""

import numpy
import pytest
import torch
from torch import nn

import strait

SWITCHES = [(on, True) for on in (True, 1, numpy.True_, numpy.int64(1), torch.tensor(True), torch.tensor([1]))]
SWITCHES += [(off, False) for off in (False, 0, numpy.False_, numpy.array(0), torch.tensor(False), torch.tensor(0))]
OTHERS = [("off", "'off'"), ("", "''"), (2, "2"), (-1, "-1"), (1.0, "float"), (None, "NoneType"), ([], "list"), (torch.ones(2), "Tensor"),
          (numpy.float32(1), "float32"), (torch.tensor(0.0), "Tensor")]


def pipeline(**arguments):
    return strait.Pipeline([nn.Linear(6, 40), nn.Linear(40, 3)], nn.functional.cross_entropy, activations="topk:0.1",
                           gradients="topk:0.1", **arguments)


@pytest.mark.parametrize("value, on", SWITCHES, ids=str)
def test_a_switch_is_true_or_false(value, on):
    model, x = strait.Boundary("quant:4"), torch.randn(4, 40)
    with strait.compression(model, enabled=value):
        assert torch.equal(model(x), x) != on
    pipe = pipeline(reuse_indices=value)
    pipe.compress(value)
    result = pipe.train(torch.randn(4, 6), torch.zeros(4, dtype=torch.long))
    assert (result.wire_bytes < result.raw_bytes) == on
    assert strait.Boundary("topk:0.1", "topk:0.1", reuse_indices=value)._ends.form()["reuse_indices"] is on


@pytest.mark.parametrize("value, found", OTHERS, ids=str)
def test_what_is_no_switch_is_refused(value, found):
    model, pipe = nn.Sequential(strait.Boundary("quant:4")), pipeline()
    for name, call in [
        ("enabled", lambda: strait.compression(model, value).__enter__()),
        ("on", lambda: pipe.compress(value)),
        ("reuse_indices", lambda: pipeline(reuse_indices=value)),
        ("reuse_indices", lambda: strait.Boundary("topk:0.1", "topk:0.1", reuse_indices=value)),
    ]:
        with pytest.raises(TypeError) as error:
            call()
        assert str(error.value) == f"{name}: expected True or False, found {found}"
