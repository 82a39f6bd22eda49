"""What strait.Boundary refuses: with an error that says why in a line, and nothing changed."""

import copy

import pytest
import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

import strait
from boundary_network import boundary_step, data, equal, gradients, network, state_of

X = torch.randn(4, 3)


@pytest.mark.parametrize("use_reentrant", [False, True])
@pytest.mark.parametrize("codecs", [("none", "none"), ("quant:4", "quant:4")])
def test_checkpointed_regions_are_refused(use_reentrant, codecs):
    model = network(*codecs)
    x, y = data()
    x.requires_grad_()
    with pytest.raises(RuntimeError, match="outside of checkpointed regions"):
        checkpoint(model, x, use_reentrant=use_reentrant)
    assert model[2].step == 0 and model[2].bytes().messages == 0
    # Between checkpointed regions it is right.
    model.zero_grad()
    hidden = checkpoint(model[:2], x, use_reentrant=use_reentrant)
    out = checkpoint(model[3:], model[2](hidden), use_reentrant=use_reentrant)
    F.cross_entropy(out, y).backward()
    expected = gradients(model)
    assert equal(boundary_step(model, x, y), expected)
    model.eval()
    checkpoint(model, x, use_reentrant=use_reentrant)  # sends nothing


def test_recomputation_of_another_kind_is_refused():
    class Recomputed(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, function):
            ctx.x, ctx.function = x, function
            return function(x)

        @staticmethod
        def backward(ctx, gradient):
            with torch.enable_grad():
                ctx.function(ctx.x.detach().requires_grad_()).backward(gradient)
            return gradient, None

    x = torch.randn(2, 3, requires_grad=True)
    with pytest.raises(RuntimeError, match="outside of checkpointed regions"):
        Recomputed.apply(x, strait.Boundary("quant:4")).sum().backward()


def test_backward_passes_that_are_none_of_a_pipeline_are_refused():
    model = network("quant:4", "quant:4")
    x, y = data()
    loss = F.cross_entropy(model(x), y)
    loss.backward(retain_graph=True)
    sent = model[2].bytes()
    with pytest.raises(RuntimeError, match="has crossed already"):
        loss.backward()
    assert model[2].bytes() == sent
    model.eval()
    with pytest.raises(RuntimeError, match="evaluation mode"):
        F.cross_entropy(model(x), y).backward()
    leaf = torch.randn(2, 3, requires_grad=True)
    (gradient,) = torch.autograd.grad(strait.Boundary()(leaf).pow(2).sum(), leaf, create_graph=True)
    with pytest.raises(RuntimeError, match="differentiate twice"):
        gradient.sum().backward()


def test_a_refused_message_changes_nothing():
    x, y = data()
    ours, other = network("topk:0.25", "topk:0.25", feedback="ef21"), network("topk:0.25", "topk:0.25", feedback="ef21")
    boundary_step(ours, x, y), boundary_step(other, x, y)
    with pytest.raises(strait.NumericError, match="boundary boundary, activation, micro-batch 0, step 1"):
        ours[2](torch.full((8, 16), torch.nan))
    hidden = ours[:2](x).detach().requires_grad_()
    frozen = copy.deepcopy(ours)
    with pytest.raises(strait.NumericError, match="gradient"):
        frozen[2](hidden).backward(torch.full((8, 16), torch.inf))
    assert ours[2].step == 1
    assert equal(boundary_step(ours, x, y), boundary_step(other, x, y))


@pytest.mark.parametrize("call, kind, text", [
    (lambda: strait.Boundary("quant"), ValueError, "bits"),
    (lambda: strait.Boundary("topk:0.1", feedback="ef22"), ValueError, 'did you mean "ef2'),
    (lambda: strait.Boundary("quant:4", feedback="ef-mixed"), ValueError, "quant:4"),
    (lambda: strait.Boundary("quant:4", feedback="marina:0.5")(X), ValueError, "needs its message alone"),
    (lambda: strait.Boundary(feedback="aq"), ValueError, "unknown feedback"),
    (lambda: strait.Boundary("topk:0.1", "topk:0.1", feedback=("none", "aq-sgd")), ValueError, "serves no gradients"),
    (lambda: strait.Boundary("topk:0.1", "topk:0.2", reuse_indices=True), ValueError, "gradients.codec"),
    (lambda: strait.Boundary("quant:4", "quant:4", reuse_indices=True), ValueError, "a codec that selects"),
    (lambda: strait.Boundary(evaluation="live"), ValueError, "off, plain or frozen"),
    (lambda: strait.Boundary(index=-1), ValueError, "index: expected"),
    (lambda: strait.Boundary(reuse_indices="no"), TypeError, "reuse_indices: expected True or False, found 'no'"),
    (lambda: strait.Boundary(slots=0), ValueError, "slots: expected"),
    (lambda: strait.Boundary(4), TypeError, "activations: expected a spec"),
    (lambda: strait.Boundary(feedback=("ef", "ef", "ef")), ValueError, "feedback: expected a spec, or a pair of them"),
    (lambda: strait.Boundary(seed=2**63), ValueError, "seed: expected a number"),
    (lambda: strait.Boundary(seed=1.5), TypeError, "seed: expected an integer, found float"),
    (lambda: setattr(strait.Boundary(), "step", 2**63), ValueError, "step: expected"),
    (lambda: strait.Boundary()(X.double()), TypeError, "found Double"),
    (lambda: strait.Boundary()([1.0]), TypeError, "found list"),
    (lambda: strait.Boundary()(torch.tensor(1.0)), ValueError, "scalar"),
    (lambda: strait.Boundary(slots=3)(X), ValueError, "at most slots = 3 rows, found 4"),
    (lambda: strait.Boundary("topk:0.5", feedback="aq-sgd")(X), ValueError, "strait.batch(model, ids=...)"),
    (lambda: setattr(strait.Boundary(), "step", -1), ValueError, "step: expected"),
    (lambda: strait.batch(X, step=1).__enter__(), TypeError, "model: expected a module, found Tensor"),
    (lambda: strait.compression(False).__enter__(), TypeError, "model: expected a module, found bool"),
    (lambda: strait.batch(strait.Boundary(), step=1.5).__enter__(), TypeError, "step: expected an integer, found float"),
    (lambda: strait.batch(strait.Boundary(), first_row="1").__enter__(), TypeError, "first_row: expected an integer, found str"),
    (lambda: strait.batch(strait.Boundary(), next_ids=7).__enter__(), TypeError, "next_ids: expected integers, found int"),
])
def test_bad_input_is_one_clear_line(call, kind, text):
    with pytest.raises(kind) as error:
        call()
    assert text in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize("call, text", [
    (lambda model: torch.func.vmap(model)(X[None]), "outside of the transforms of torch.func"),
    (lambda model: torch.func.grad(lambda x: model(x).sum())(X), "outside of the transforms of torch.func"),
    (lambda model: torch.export.export(model.eval(), (X, ), strict=False), "expected a tensor with data"),
    (lambda model: model(X.to("meta")), "expected a tensor with data"),
])
def test_what_gives_no_message_is_refused(call, text):
    with pytest.raises(RuntimeError, match=f"^strait.Boundary: [^\n]*{text}[^\n]*$"):
        call(strait.Boundary("quant:4"))


@pytest.mark.parametrize("change", [strait.number_boundaries, lambda model: model.load_state_dict(model.state_dict())])
def test_indices_that_are_gone_are_named(change):
    model = torch.nn.Sequential(strait.Boundary("topk:0.5", "topk:0.5", reuse_indices=True))
    y = model(X.clone().requires_grad_())
    change(model)
    with pytest.raises(RuntimeError, match="^boundary .*: it was numbered or given a state since this forward pass"):
        y.sum().backward()
    model(X.clone().requires_grad_()).sum().backward()


def test_batches_that_do_not_fit_are_named():
    model = strait.Boundary("topk:0.5", feedback="aq-sgd")
    for ids, kind, text in [([1, 2, 3], ValueError, "expected the ids of 4"), ([1, 2, 2, 3], ValueError, "id 2 twice"),
                            (torch.rand(4), TypeError, "ids: expected integers"),
                            ([0, 1.5, 2.7, 3], TypeError, "ids: expected an integer, found float"),
                            ([0, 1, 2, 2**63], ValueError, "ids: expected a number"),
                            (torch.tensor([0, 1, 2, 2**63], dtype=torch.uint64), ValueError, "ids: expected a number"),
                            (torch.tensor([1j, 2, 3, 4]), TypeError, "ids: expected an integer, found complex"),
                            (7, TypeError, "ids: expected integers, found int")]:
        with pytest.raises(kind, match=text), strait.batch(model, ids=ids):
            model(X)
    with pytest.raises(RuntimeError, match="in a batch already"), strait.batch(model), strait.batch(model):
        pass
    with pytest.raises(ValueError, match="first_row"), strait.batch(model, first_row=-1):
        pass
    with strait.batch(model, ids=range(4)):  # what went wrong before has left nothing behind
        model(X)
    other = strait.Boundary("topk:0.5", feedback="ef")
    other(X)
    with pytest.raises(ValueError, match=r"samples of shape \[3\], found \[5\]"):
        other(torch.randn(4, 5))


@pytest.mark.parametrize("state, text", [
    (torch.arange(9, dtype=torch.uint8), "the state of a boundary cannot be read: "),
    ({}, "expected the state of a boundary"),
    ({"step": 0, "state": {"activations.sender.estimat": X}}, 'tensor "activations.sender.estimat"'),
    ({"step": 0, "state": {"activations.sender.estimate": X.double()}}, "is not what a link keeps"),
    ({"step": 0, "state": {"sample_shape": X}}, "is no shape"),
    ({"step": -1, "state": {}}, "step: expected"),
    ({"step": 0, "state": {"activations.sender.estimate": 3}}, "expected tensors by name, found int"),
    ({"step": 0, "state": [X]}, "expected tensors by name, found list"),
])
def test_states_of_others_are_refused(state, text):
    boundary = strait.Boundary("topk:0.5", feedback="ef21")
    boundary(X)
    before = state_of(boundary)
    with pytest.raises(ValueError, match=text) as error:
        boundary.set_extra_state(state)
    assert "\n" not in str(error.value)
    after = state_of(boundary)
    assert after["step"] == before["step"] and after["state"].keys() == before["state"].keys()
    assert all(torch.equal(before["state"][name], tensor) for name, tensor in after["state"].items())
