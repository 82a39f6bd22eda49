"""The package on the CPU and, where torch has one, on a GPU: what a GPU sends is what the CPU sends."""

import pytest
import torch
import torch.nn.functional as F

import strait
from small_network import ROWS, SEED, batches, make_optimizer, make_stages, train_pipeline

DEVICES = ["cpu"] + (["cuda"] if torch.cuda.is_available() else [])
SPECS = ["none", "bf16", "fp8:e4m3", "mx:e4m3", "quant:4", "quant:2,scope=block:64", "quant:4,rounding=stochastic",
         "quant:4,levels=symmetric", "topk:0.1", "topk:0.1,scope=tensor,values=bf16", "sign"]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("spec", SPECS)
def test_payloads_are_those_of_the_cpu(device, spec):
    x = torch.randn(6, 40, 33)
    there = x.to(device)
    payload = strait.compress(there, spec, seed=4, step=7)
    expected = strait.compress(x, spec, seed=4, step=7)
    assert payload.device == there.device
    assert torch.equal(payload.cpu(), expected)
    received = strait.decompress(payload, spec, x.shape, seed=4, step=7)
    assert received.device == there.device
    assert torch.equal(received.cpu(), strait.decompress(expected, spec, x.shape, seed=4, step=7))
    assert torch.equal(strait.reconstruct(there, spec, seed=4, step=7), received)


@pytest.mark.parametrize("device", DEVICES)
def test_a_boundary_passes_what_it_passes_on_the_cpu(device):
    def passed(place):
        generator = torch.Generator().manual_seed(3)
        boundary = strait.Boundary("quant:4", "topk:0.1", feedback="ef21", slots=8)
        both = []
        for _ in range(4):
            x, gradient = (torch.randn(8, 50, generator=generator).to(place) for _ in range(2))
            x.requires_grad_()
            y = boundary(x)
            assert y.device == x.device
            y.backward(gradient)
            both += [y.detach().cpu(), x.grad.cpu()]
        return both

    for one, other in zip(passed(device), passed("cpu"), strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("device", DEVICES)
def test_a_pipeline_trains_there(device):
    scheme = {"activations": "quant:8", "gradients": "quant:8", "feedback": "ef"}
    stages = [stage.to(device) for stage in make_stages()]
    pipe = strait.Pipeline(stages, F.cross_entropy, seed=SEED, **scheme)
    optimizer = make_optimizer(pipe.parameters())
    losses = []
    for inputs, targets, ids in batches():
        optimizer.zero_grad()
        losses.append(pipe.train(inputs.to(device), targets.to(device), ids).loss)
        optimizer.step()
    assert len(inputs) < ROWS, "the last batch is short"
    assert losses == pytest.approx(train_pipeline(scheme, make_stages()), rel=0.02)
    assert all(parameter.device.type == device for parameter in pipe.parameters())
