"""strait.Boundary between modules, against plain PyTorch, and its life: state, copies, modes."""

import copy
import io
import pickle

import pytest
import safetensors.torch
import torch
import torch.nn.functional as F
from torch import nn

import formulas
import strait
from boundary_network import boundary_step, data, equal, gradients, network, state_of


def plain_step(model, x, y, forward, backward):
    """The gradients of the same network in two halves, with functions for what crosses in between."""
    model.zero_grad()
    sent = model[:2](x)
    leaf = forward(sent.detach()).requires_grad_()
    F.cross_entropy(model[3](leaf), y).backward()
    sent.backward(backward(leaf.grad))
    return gradients(model)


def close(ours, expected):
    return all(torch.allclose(a, b, atol=1e-6) for a, b in zip(ours, expected, strict=True))


class Ef21:
    def __init__(self, apply):
        self.apply, self.estimate = apply, 0

    def __call__(self, x):
        self.estimate = self.estimate + self.apply(x - self.estimate)
        return self.estimate.clone()


class Ef:
    def __init__(self, apply):
        self.apply, self.residual = apply, 0

    def __call__(self, x):
        sent = self.apply(x + self.residual)
        self.residual = x + self.residual - sent
        return sent


def top(share):
    return lambda x: formulas.topk(x, share, len(x))


@pytest.mark.parametrize("codecs, options, forward, backward", [
    (("none", "none"), {}, lambda x: x.clone(), lambda x: x),
    (("bf16", "fp16"), {}, lambda x: x.bfloat16().float(), lambda x: x.half().float()),
    (("topk:0.25", "topk:0.5"), {}, top("0.25"), top("0.5")),
    (("topk:0.25", "topk:0.25"), {"feedback": "ef21"}, Ef21(top("0.25")), Ef21(top("0.25"))),
    (("topk:0.25", "topk:0.5"), {"feedback": ("ef", "ef21"), "slots": 8}, Ef(top("0.25")), Ef21(top("0.5"))),
    (("topk:0.25", "none"), {"feedback": "ef"}, Ef(top("0.25")), lambda x: x),
])
def test_exact_operators_give_the_gradients_of_two_halves(codecs, options, forward, backward):
    model = network(*codecs, **options)
    for step in range(4):
        x, y = data()
        expected = plain_step(model, x + step, y, forward, backward)
        assert equal(boundary_step(model, x + step, y), expected), f"step {step}"


def test_quantised_messages_give_the_gradients_of_two_halves():
    model = network("quant:4", "quant:8,scope=sample")
    x, y = data()
    expected = plain_step(model, x, y, lambda x: formulas.quant(x, 4).float(),
                          lambda x: formulas.quant(x, 8, len(x)).float())
    assert close(boundary_step(model, x, y), expected)


def test_indices_are_reused():
    model = network("topk:0.25", "topk:0.25", reuse_indices=True)
    masks = []

    def forward(x):
        masks.append(formulas.topk(x, "0.25", len(x)) != 0)
        return x * masks[-1]

    x, y = data()
    expected = [plain_step(model, x + i, y, forward, lambda g: g * masks[-1]) for i in range(2)]
    model.zero_grad()
    losses = [F.cross_entropy(model(x + i), y) for i in range(2)]  # both are under way
    for loss, gradient in reversed(list(zip(losses, expected))):
        model.zero_grad()
        loss.backward()
        assert equal(gradients(model), gradient)


def test_samples_are_kept_by_their_ids():
    model = network("topk:0.25", "none", feedback="aq-sgd")
    x, y = data()
    kept = {}

    def forward(ids):
        def apply(x):
            rows = []
            for i, row in zip(ids, x):
                kept[i] = kept[i] + formulas.topk((row - kept[i])[None], "0.25", 1)[0] if i in kept else row
                rows.append(kept[i])
            return torch.stack(rows)
        return apply

    for step, ids in enumerate([[5, 3, 9, 0, 1, 2, 7, 8], [1, 3, 5, 7, 9, 11, 13, 15], [5, 1, 9, 0, 3, 2, 15, 8]]):
        expected = plain_step(model, x + step, y, forward(ids), lambda g: g)
        place = {"ids": torch.tensor(ids) if step % 2 else ids, "next_ids": ids}
        assert equal(boundary_step(model, x + step, y, **place), expected)


@pytest.mark.parametrize("feedback, scheme", [("ef,slots=sample", Ef), ("ef21,slots=sample", Ef21)])
def test_each_sample_has_a_scheme_of_its_own_in_both_directions(feedback, scheme):
    model = network("topk:0.25", "topk:0.5", feedback=feedback)
    x, y = data()
    forward, backward = {}, {}

    def by_sample(ids, share, schemes):
        def apply(x):
            return torch.cat([schemes.setdefault(i, scheme(top(share)))(row[None]) for i, row in zip(ids, x)])
        return apply

    for step, ids in enumerate([[5, 3, 9, 0, 1, 2, 7, 8], [1, 3, 5, 7, 9, 11, 13, 15], [5, 1, 9, 0, 3, 2, 15, 8]]):
        expected = plain_step(model, x + step, y, by_sample(ids, "0.25", forward), by_sample(ids, "0.5", backward))
        assert equal(boundary_step(model, x + step, y, ids=ids, next_ids=ids), expected), f"step {step}"
    with pytest.raises(ValueError, match="expected the ids of 8"):
        strait.Boundary("none", "topk:0.5", feedback=feedback)(x)


def test_each_class_has_the_mean_of_its_rows_for_state():
    model = network("topk:0.25", "topk:0.5", feedback=("ef21,slots=class", "none"))
    x, y = data()
    kept = {}

    def forward(labels):
        def apply(x):
            states = [kept.setdefault(label, torch.zeros_like(x[0])) for label in labels]
            seen = torch.stack(states) + top("0.25")(x - torch.stack(states))
            for label in set(labels):
                alike = torch.tensor([other == label for other in labels])
                kept[label] = seen[alike].double().mean(0).float()
            return seen
        return apply

    for step, labels in enumerate([[1, 0, 1, 1, 0, 2, 2, 1], [0, 0, 0, 0, 3, 3, 1, 2], [2, 3, 1, 0, 1, 0, 3, 2]]):
        expected = plain_step(model, x + step, y, forward(labels), top("0.5"))
        assert equal(boundary_step(model, x + step, y, classes=torch.tensor(labels)), expected), f"step {step}"
    with pytest.raises(ValueError, match=r"classes: expected those of 8 samples, found 0; strait.batch\(model, classes="):
        strait.Boundary("none", "topk:0.5", feedback=("none", "ef,slots=class"))(x)
    with pytest.raises(TypeError, match="classes: expected integers"):
        boundary_step(model, x, y, classes=torch.rand(8))


def test_several_forward_passes_are_one_batch():
    spec = "topk:0.25,values=quant:4"
    whole, parts = network(spec, spec, feedback="ef21", slots=8), network(spec, spec, feedback="ef21", slots=8)
    for step in range(3):
        x, y = data()
        x = x + step
        ours, expected = [], []
        handle = whole[2].register_forward_hook(lambda module, inputs, out: expected.append(out))
        boundary_step(whole, x, y)
        handle.remove()
        for row in (0, 4):
            with strait.batch(parts, step=step, first_row=row):
                ours.append(parts[:3](x[row:row + 4]))
        assert torch.equal(torch.cat(ours), expected[0])
        assert whole[2].step == parts[2].step == step + 1


def test_draws_follow_step_index_and_seed():
    spec = "quant:2,rounding=stochastic"
    x = torch.randn(4, 8)

    def draw(step, **options):
        boundary = strait.Boundary(spec, **options)
        boundary.step = step
        return boundary(x)

    assert torch.equal(draw(7, index=2, seed=5), strait.reconstruct(x, spec, seed=5, step=7, boundary=2))
    boundary = strait.Boundary(spec)
    assert torch.equal(boundary(x), draw(0)) and torch.equal(boundary(x), draw(1)) and boundary.step == 2
    boundary.eval()
    assert torch.equal(boundary(x), draw(2)) and torch.equal(boundary(x), draw(2)) and boundary.step == 2
    leaf = x.clone().requires_grad_()
    crossing = strait.Boundary("none", spec, index=1)
    crossing(leaf).backward(x)
    assert torch.equal(leaf.grad, strait.reconstruct(x, spec, boundary=1, direction="gradient"))


def test_boundaries_of_a_model_are_numbered():
    model = nn.Sequential(strait.Boundary("topk:0.5", feedback="ef"), nn.Identity(), strait.Boundary("quant:1"))
    model(torch.randn(2, 8))
    state = state_of(model[0])["state"]
    assert strait.number_boundaries(model) == strait.boundaries(model) == [model[0], model[2]]
    assert "index=0" in repr(model[0]) and "index=1" in repr(model[2])
    assert all(torch.equal(state[name], tensor) for name, tensor in state_of(model[0])["state"].items())
    with pytest.raises(strait.NumericError, match="boundary 2, activation"):
        model[2](torch.full((2, 2), torch.inf))


def test_bytes_are_counted_in_training():
    model = network("quant:4", "topk:0.5,index=bitmap")
    boundary = model[2]
    x, y = data()
    assert boundary.bytes() == (0, 0, 0, 0) and boundary.bytes().ratio == 1
    boundary_step(model, x, y)
    shape = (8, 16)
    assert boundary.bytes().forward == 64 + strait.wire_bytes("quant:4", shape)
    assert boundary.bytes().backward == 64 + strait.wire_bytes("topk:0.5,index=bitmap", shape)
    assert boundary.bytes().raw == 2 * 4 * 8 * 16 and boundary.bytes().messages == 2
    assert boundary.bytes().ratio == boundary.bytes().raw / (boundary.bytes().forward + boundary.bytes().backward)
    before = boundary.bytes(reset=True)
    model.eval()
    model(x)
    assert boundary.bytes() == (0, 0, 0, 0) and before.forward > 0


def test_evaluation_changes_nothing():
    x, y = data()
    model = network("topk:0.25", "topk:0.25", feedback="ef21")
    boundary_step(model, x, y)
    before = state_of(model[2])
    sent = model[:2](x)
    estimate = before["state"]["activations.receiver.estimate"]
    expected = {"plain": formulas.topk(sent, "0.25", 8), "off": sent,
                "frozen": estimate + formulas.topk(sent - estimate, "0.25", 8)}
    for evaluation, result in expected.items():
        other = network("topk:0.25", "topk:0.25", feedback="ef21", evaluation=evaluation)
        other.load_state_dict(model.state_dict())
        other.eval()
        for _ in range(2):
            assert torch.equal(other[:3](x), result), evaluation
        with strait.batch(other):
            assert torch.equal(other[:3](x), result), evaluation
        with strait.compression(other, enabled=False):
            assert torch.equal(other[:3](x), sent)
        after = state_of(other[2])
        assert after["step"] == before["step"] == 1
        assert all(torch.equal(after["state"][name], tensor) for name, tensor in before["state"].items())


def test_compression_can_be_off():
    x, y = data()
    model = network("topk:0.25", "topk:0.25", feedback="ef21")
    uncompressed = plain_step(model, x, y, lambda x: x.clone(), lambda g: g)
    with pytest.raises(KeyError), strait.compression(model, enabled=False):
        assert equal(boundary_step(model, x, y), uncompressed)
        with strait.compression(model):
            assert not equal(boundary_step(model, x, y), uncompressed)
        raise KeyError
    assert model[2].step == 2
    assert not equal(boundary_step(model, x, y), uncompressed)


def test_a_warm_up_fills_the_store():
    x, y = data()
    model = network("topk:0.25", "none", feedback="aq-sgd,fill=warmup,format=bf16,place=file")
    with strait.compression(model, enabled=False):
        boundary_step(model, x, y, ids=range(8))
    sent = model[:2](x).detach()
    with strait.batch(model, ids=range(8)):
        received = model[:3](x)
    buffers = sent.bfloat16().float()
    assert torch.equal(received, buffers + formulas.topk(sent - buffers, "0.25", 8))


KINDS = [(("quant:3,rounding=stochastic", "topk:0.25"), {"feedback": "ef21", "seed": 3}),
         (("topk:0.25", "topk:0.25"), {"reuse_indices": True}), (("topk:0.25", "quant:4"), {"feedback": "aq-sgd"}),
         (("topk:0.25", "topk:0.5"), {"feedback": ("ef-mixed", "ef")})]


def copies(model, make):
    """The model again, by several ways."""
    yield copy.deepcopy(model)
    yield pickle.loads(pickle.dumps(model))
    loaded = make()
    loaded.load_state_dict(model.state_dict())
    yield loaded
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    loaded = make()
    boundary_step(loaded, *data(), ids=range(100, 108))  # with a state of its own, which must go
    loaded.load_state_dict(torch.load(file, weights_only=True))
    yield loaded


@pytest.mark.parametrize("codecs, options", KINDS)
def test_copies_go_on_as_the_original(codecs, options):
    def train(model, steps):
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for step in steps:
            x, y = data()
            boundary_step(model, x + step % 3, y, ids=[(i + step) % 12 for i in range(8)])
            optimizer.step()

    def make():
        return network(*codecs, **options)

    whole = make()
    train(whole, range(6))
    half = make()
    train(half, range(3))
    again = list(copies(half, make))
    train(half, range(3, 6))  # the copies share nothing with it
    for other in [*again, half]:
        train(other, range(3, 6)) if other is not half else None
        assert other[2].step == 6
        assert equal(list(other.parameters()), list(whole.parameters()))


def test_pickles_keep_the_rest():
    model = network("quant:4", "quant:8", evaluation="off", index=3, slots=8, name="cut")
    boundary_step(model, *data())
    again = pickle.loads(pickle.dumps(model[2]))
    assert again.bytes() == model[2].bytes() and repr(again) == repr(model[2])
    assert again._ends.form() == model[2]._ends.form()
    # Pickles of before have the seconds of encoding and decoding behind what was counted.
    *rest, forward, backward = model[2]._ends.__getstate__()
    assert len(forward) == 3
    older = type(model[2]._ends).__new__(type(model[2]._ends))
    older.__setstate__((*rest, (*forward, 0.5, 0.25), (*backward, 0.5, 0.25)))
    assert older.traffic() == model[2]._ends.traffic()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_halves_cross(dtype):
    boundary = strait.Boundary("quant:4", "none")
    x = torch.randn(4, 8).to(dtype).requires_grad_()
    y = boundary(x)
    assert y.dtype == dtype and torch.equal(y, strait.reconstruct(x, "quant:4"))
    y.backward(torch.ones_like(y))
    assert x.grad.dtype == dtype and torch.equal(x.grad, torch.ones_like(x))


def test_evaluation_in_a_batch_leaves_its_number():
    boundary = strait.Boundary("quant:4", "quant:4")
    with strait.batch(boundary, step=7):
        boundary.eval()(torch.ones(4, 8))
    assert boundary.step == 0
    with strait.batch(boundary, step=7):
        boundary.train()(torch.ones(4, 8, requires_grad=True))
    assert boundary.step == 8


def test_what_is_past_a_half_is_refused():
    x = torch.full((4, 8), 60000.0, dtype=torch.float16, requires_grad=True)
    with pytest.raises(strait.NumericError, match="boundary boundary: a value that the receiver sees is past the range of Half"):
        strait.Boundary("natural")(x)
    y = strait.Boundary("none", "natural")(x)
    with pytest.raises(strait.NumericError, match="boundary boundary, gradients: a value"):
        y.backward(x.detach())


def test_autocast_and_compile():
    x, y = data()
    model = network("quant:4", "quant:8")
    with torch.autocast("cpu", torch.bfloat16):
        loss = F.cross_entropy(model(x), y)
    loss.backward()
    assert all(torch.isfinite(gradient).all() for gradient in gradients(model))
    plain, other = network("quant:4", "topk:0.5", feedback="ef21"), network("quant:4", "topk:0.5", feedback="ef21")
    compiled = torch.compile(other, backend="aot_eager")
    for _ in range(3):
        expected = boundary_step(plain, x, y)
        other.zero_grad()
        F.cross_entropy(compiled(x), y).backward()
        assert close(gradients(other), expected) and other[2].step == plain[2].step


def test_channels_last_and_layers_without_gradients():
    boundary = strait.Boundary("topk:0.25", "topk:0.25", feedback="ef")
    x = torch.randn(2, 4, 3, 3)
    y = boundary(x.to(memory_format=torch.channels_last))
    assert not y.requires_grad and torch.equal(y, formulas.topk(x, "0.25", 2))
    with torch.no_grad():
        boundary(x)
    assert boundary.step == 2 and boundary.bytes().backward == 0


def test_a_model_with_a_boundary_is_saved_by_safetensors(tmp_path):
    model = network("quant:3,rounding=stochastic", "topk:0.25", feedback="ef21")
    boundary_step(model, *data())
    safetensors.torch.save_model(model, str(tmp_path / "model.safetensors"))
    other = network("quant:3,rounding=stochastic", "topk:0.25", feedback="ef21")
    assert safetensors.torch.load_model(other, str(tmp_path / "model.safetensors")) == (set(), [])
    assert equal(boundary_step(other, *data()), boundary_step(model, *data()))
    plain = nn.Sequential(*(module for module in network() if not isinstance(module, strait.Boundary)))
    state = {name.replace("3.", "2."): tensor for name, tensor in model.state_dict().items()}
    assert plain.load_state_dict(state, strict=False).unexpected_keys == ["2._extra_state"]


def test_a_tensor_that_torch_negates_when_it_is_read_crosses_as_it_is():
    x = torch.tensor([1 + 2j]).conj().imag
    assert x.is_neg() and strait.Boundary()(x).tolist() == [-2.0]
