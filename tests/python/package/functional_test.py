"""Codecs on tensors, against plain PyTorch."""

import datetime
import pickle

import hypothesis
import pytest
import torch
from hypothesis import strategies as st

import formulas
import strait

SAMPLES = [sample.spec for info in strait.codecs() for sample in info.samples]
OPERATORS = torch.ops.strait


def test_errors_of_torch_stay_its_own():
    with pytest.raises(torch.distributed.DistNetworkError):
        torch.distributed.TCPStore("127.0.0.1", 1, is_master=False, timeout=datetime.timedelta(seconds=1))


@st.composite
def tensors(draw, limit=60000.0):
    """float32 tensors of up to four dimensions, with all values from 0 to `limit`, of every size and often equal."""
    shape = draw(st.lists(st.integers(0, 7), min_size=1, max_size=4))
    value = st.floats(-limit, limit, width=32) | st.sampled_from([0.0, -0.0, 1.0, -1.0])
    count = torch.Size(shape).numel()
    values = draw(st.lists(value, min_size=count, max_size=count))
    return torch.tensor(values, dtype=torch.float32).reshape(shape)


def equal_bits(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and torch.equal(a.view(torch.int32), b.view(torch.int32))


@hypothesis.given(x=tensors())
@pytest.mark.parametrize("spec, formula", [
    ("none", lambda x: x),
    ("fp16", lambda x: x.half().float()),
    ("bf16", lambda x: x.bfloat16().float()),
    ("topk:0.1", lambda x: formulas.topk(x, "0.1", len(x))),
    ("topk:0.3,scope=tensor", lambda x: formulas.topk(x, "0.3", 1)),
])
def test_the_receiver_sees_what_the_definition_says(spec, formula, x):
    expected = formula(x) if x.numel() else x
    assert torch.equal(strait.reconstruct(x, spec), expected)


@hypothesis.given(x=tensors(), bits=st.integers(1, 8))
def test_quant_sends_a_nearest_level(x, bits):
    y = strait.reconstruct(x, f"quant:{bits}")
    if not x.numel():
        assert y.shape == x.shape
        return
    span = (x.max().double() - x.min().double()).item()
    expected = formulas.quant(x, bits)
    # A value in the middle of two levels may go to the other one in float32.
    slack = 1e-5 * max(span, x.abs().max().item()) + 1e-37
    off = (y.double() - expected).abs()
    assert ((off <= slack) | ((off - span / (2**bits - 1)).abs() <= slack)).all()
    assert ((y.double() - x.double()).abs() <= span / (2**bits - 1) / 2 + slack).all()


@hypothesis.given(x=tensors())
@pytest.mark.parametrize("name, dtype", [("e4m3", torch.float8_e4m3fn), ("e5m2", torch.float8_e5m2)])
def test_fp8_is_torchs_cast_over_the_scale_of_128_elements(name, dtype, x):
    blocks = x.reshape(len(x), -1).split(128, 1) if x.numel() else []
    seen = []
    for block in blocks:
        scale = block.abs().amax(1, keepdim=True) / torch.tensor(torch.finfo(dtype).max)
        seen.append((block / scale.where(scale != 0, 1)).to(dtype).float() * scale)
    expected = torch.cat(seen, 1).reshape(x.shape) if seen else x
    assert torch.equal(strait.reconstruct(x, f"fp8:{name}"), expected)


@hypothesis.given(x=tensors(), spec=st.sampled_from(SAMPLES))
def test_bytes_lead_to_what_reconstruct_gives(x, spec):
    try:
        strait.wire_bytes(spec, x.shape)
    except ValueError:  # a codec that does not take this shape
        for operator in (strait.compress, strait.reconstruct):
            with pytest.raises(ValueError):
                operator(x, spec)
        return
    payload = strait.compress(x, spec, seed=3, step=5, boundary=2, direction="gradient", first_row=9)
    y = strait.decompress(payload, spec, x.shape, seed=3, step=5, boundary=2, direction="gradient", first_row=9)
    same = strait.reconstruct(x, spec, seed=3, step=5, boundary=2, direction="gradient", first_row=9)
    assert payload.dtype == torch.uint8 and payload.dim() == 1
    assert equal_bits(y, same) and y.is_contiguous() and same.is_contiguous()
    bound = strait.wire_bytes(spec, x.shape)
    assert payload.numel() == bound if strait.codec(spec).exact else payload.numel() <= bound


@pytest.mark.parametrize("spec", SAMPLES)
def test_strides_do_not_count_and_inputs_stay(spec):
    x = torch.randn(6, 8, 5, 64)
    for other in (x.to(memory_format=torch.channels_last), x.permute(3, 1, 0, 2).contiguous().permute(2, 1, 3, 0),
                  torch.stack([x, x], -1)[..., 0]):
        before = other.clone()
        assert torch.equal(strait.compress(other, spec), strait.compress(x, spec))
        assert equal_bits(strait.reconstruct(other, spec), strait.reconstruct(x, spec))
        assert torch.equal(other, before)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("spec", ["none", "quant:4", "topk:0.25"])
def test_halves_are_sent_as_the_floats_that_they_are(dtype, spec):
    x = torch.randn(4, 32).to(dtype)
    assert torch.equal(strait.compress(x, spec), strait.compress(x.float(), spec))
    y = strait.reconstruct(x, spec)
    assert y.dtype == dtype and torch.equal(y, strait.reconstruct(x.float(), spec).to(dtype))


def test_what_is_past_a_half_is_refused():
    x = torch.full((4, 32), 60000.0)
    assert strait.reconstruct(x, "natural").max() == 65536 and strait.reconstruct(x.bfloat16(), "natural").max() == 65536
    with pytest.raises(strait.NumericError, match="reconstruct: a value that the receiver sees is past the range of Half"):
        strait.reconstruct(x.half(), "natural")


def test_draws_depend_on_their_place():
    x, spec = torch.randn(8, 64), "quant:2,rounding=stochastic,scope=sample"
    first = strait.reconstruct(x, spec, seed=1)
    assert torch.equal(first, strait.reconstruct(x, spec, seed=1))
    for place in ({"seed": 2}, {"seed": 1, "step": 1}, {"seed": 1, "boundary": 1}, {"seed": 1, "direction": "gradient"}):
        assert not torch.equal(first, strait.reconstruct(x, spec, **place))
    assert torch.equal(first[3:], strait.reconstruct(x[3:], spec, seed=1, first_row=3))
    mean = torch.stack([strait.reconstruct(x, spec, step=step) for step in range(600)]).mean(0)
    step = (x.max(1).values - x.min(1).values) / 3
    assert ((mean - x).abs() <= 0.13 * step[:, None]).all()  # 6 deviations of a mean of 600


def test_gradients_end_at_reconstruct():
    x = torch.randn(4, 6, requires_grad=True)
    assert not strait.reconstruct(x, "quant:4").requires_grad
    assert not strait.decompress(strait.compress(x, "none"), "none", x.shape).requires_grad
    (x + (strait.reconstruct(x, "quant:4") - x).detach()).sum().backward()
    assert torch.equal(x.grad, torch.ones_like(x))


@pytest.mark.parametrize("spec", ["none", "fp16", "quant:4", "quant:3,scope=sample,rounding=stochastic", "topk:0.1"])
@pytest.mark.parametrize("needs_grad", [False, True])
def test_operators_are_what_torch_expects(spec, needs_grad):
    x = torch.randn(3, 4, 10, requires_grad=needs_grad)
    place = {"seed": 1, "step": 2}
    torch.library.opcheck(OPERATORS.compress.default, (x, spec), place)
    torch.library.opcheck(OPERATORS.reconstruct.default, (x, spec), place)
    torch.library.opcheck(OPERATORS.decompress.default, (strait.compress(x, spec, **place), spec, [3, 4, 10]), place)


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("dynamic", [False, True])
def test_compiled_functions_give_the_same_bits(backend, dynamic):
    def function(x):
        y = strait.reconstruct(x * 2, "quant:4") + 1
        bytes_of = strait.compress(y, "topk:0.2")
        back = strait.decompress(strait.compress(y, "quant:8"), "quant:8", y.shape)
        return y, bytes_of, back

    torch._dynamo.reset()
    compiled = torch.compile(function, backend=backend, fullgraph=True, dynamic=dynamic)
    for rows in (4, 7):
        x = torch.randn(rows, 30)
        for ours, expected in zip(compiled(x), function(x), strict=True):
            assert torch.equal(ours, expected)


@pytest.mark.parametrize("one", [True, torch.tensor(1), torch.tensor([1], dtype=torch.uint8)])
def test_what_has_an_index_is_an_integer(one):
    spec = "quant:4,rounding=stochastic"
    assert torch.equal(strait.compress(X, spec, seed=one, step=one), strait.compress(X, spec, seed=1, step=1))


def test_a_compiled_function_serves_every_step_and_seed():
    """torch compiles a function at most 8 times, and then gives up."""

    def function(x, number):
        payload = strait.compress(x, "quant:4,rounding=stochastic", seed=number, step=number, first_row=number)
        return strait.decompress(payload, "quant:4,rounding=stochastic", x.shape, seed=number, step=number, first_row=number)

    torch._dynamo.reset()
    compiled = torch.compile(function, backend="aot_eager", fullgraph=True)
    x = torch.randn(4, 30)
    for number in range(12):
        assert torch.equal(compiled(x, number), function(x, number))


@pytest.mark.parametrize("spec", ["qsgd:4,scope=sample", "quant:4,scope=sample,spikes=1", "onebit"])
def test_the_last_element_of_a_long_sample_counts(spec):
    x = torch.zeros(1, 2**24 + 1)  # float32 does not tell this number from the one before
    x[0, -1] = -1
    payload = strait.compress(x, spec)
    received = strait.decompress(payload, spec, x.shape)
    assert received[0, -1] == -1 and torch.equal(strait.reconstruct(x, spec), received)


def test_lists_tell_what_there_is():
    by_name = {info.name: info for info in strait.codecs()}
    assert [sample.spec for sample in by_name["none"].samples] == ["none"]
    assert by_name["quant"].grammar.startswith("quant:b")
    assert strait.codec("topk:0.1") == ("topk:0.1", False, True, True)
    assert strait.codec("quant:4") == ("quant:4", True, False, False)
    assert strait.codec("quant:4,scope=sample").row_wise
    assert strait.codec("lowrank:8").exact and strait.codec("atomo:8").selects is False
    assert not strait.codec("topk:0.99").exact
    schemes = {info.name: info for info in strait.feedbacks()}
    assert schemes["none"].state == "none"
    assert schemes["ef21"].state == schemes["diana"].state == schemes["ef21-sgdm"].state == "rows"
    assert [name for name, info in schemes.items() if not info.boundaries] == ["marina"]
    assert schemes["aq-sgd"].state == "samples" and not schemes["aq-sgd"].gradients
    assert not schemes["ef-mixed"].any_codec and schemes["ef"].any_codec
    assert strait.wire_bytes("quant:4", (8, 64)) == 8 + 8 * 64 // 2
    assert strait.wire_bytes("none", torch.Size([8, 64])) == 4 * 8 * 64


def test_a_vector_has_rows_of_one_element():
    x = torch.randn(1000)
    for spec, rows_of_one, one_row in [("fp8:e4m3", 5 * 1000, 8 * 4 + 1000), ("mx:e4m3", 2 * 1000, 32 + 1000)]:
        assert strait.wire_bytes(spec, x.shape) == len(strait.compress(x, spec)) == rows_of_one
        assert strait.wire_bytes(spec, (1, 1000)) == len(strait.compress(x.view(1, -1), spec)) == one_row
    assert torch.equal(strait.reconstruct(x, "topk:0.1"), x)
    assert strait.reconstruct(x.view(1, -1), "topk:0.1").count_nonzero() == 100


X = torch.randn(3, 8)
PAYLOAD = strait.compress(X, "none")


@pytest.mark.parametrize("call, kind, text", [
    (lambda: strait.compress(X, "qunat:4"), ValueError, 'did you mean "quant"'),
    (lambda: strait.compress(X, "quant:9"), ValueError, 'codec "quant:9": the bits of a quantised value must be'),
    (lambda: strait.compress(X, 4), TypeError, "codec: expected a spec"),
    (lambda: strait.compress([1.0], "none"), TypeError, "expected a tensor, found list"),
    (lambda: strait.compress(X.double(), "none"), TypeError, "found Double"),
    (lambda: strait.reconstruct(X.long(), "none"), TypeError, "found Long"),
    (lambda: strait.compress(X.to_sparse(), "none"), TypeError, "dense"),
    (lambda: strait.compress(X / 0, "quant:4"), strait.NumericError, "codec quant:4: a value is not finite"),
    (lambda: strait.reconstruct(X / 0, "topk:0.1"), strait.NumericError, "codec topk:0.1: a value is not finite"),
    (lambda: strait.reconstruct(X * 1e6, "fp16"), strait.NumericError, "fp16"),
    (lambda: strait.compress(X, "none", step=-1), ValueError, "step"),
    (lambda: strait.compress(X, "none", step=1.5), TypeError, "step: expected an integer, found float"),
    (lambda: strait.reconstruct(X, "none", first_row=2**64), ValueError, "first_row: expected a number"),
    (lambda: strait.compress(X, "none", seed=2**63), ValueError, "seed: expected a number"),
    (lambda: strait.reconstruct(X, "none", seed=1.5), TypeError, "seed: expected an integer, found float"),
    (lambda: strait.decompress(PAYLOAD, "none", X.shape, seed="1"), TypeError, "seed: expected an integer, found str"),
    (lambda: strait.compress(X, "none", boundary=65536), ValueError, "boundary"),
    (lambda: strait.compress(X, "none", first_row=-1), ValueError, "first_row"),
    (lambda: strait.compress(X, "none", direction="up"), ValueError, "direction"),
    (lambda: strait.decompress(PAYLOAD.float(), "none", X.shape), TypeError, "uint8"),
    (lambda: strait.decompress(PAYLOAD.view(2, -1), "none", X.shape), ValueError, "one dimension"),
    (lambda: strait.decompress(PAYLOAD[1:], "none", X.shape), strait.WireError, "bytes"),
    (lambda: strait.decompress(PAYLOAD, "none", (3, -8)), ValueError, "shape"),
    (lambda: strait.decompress(PAYLOAD, "none", 24), TypeError, "shape: expected the shape of a tensor, found int"),
    (lambda: strait.decompress(PAYLOAD, "none", "3x8"), TypeError, "shape: expected the shape of a tensor, found str"),
    (lambda: strait.decompress(PAYLOAD, "none", (2**62, 2**62)), ValueError, "shape"),
    (lambda: strait.decompress(PAYLOAD * 0 + 255, "none", X.shape), strait.WireError, "codec none: a float32 value is not finite"),
    (lambda: strait.decompress(PAYLOAD, "topk:0.1", (10**6, 10**6)), (strait.WireError, RuntimeError), ""),
    (lambda: strait.wire_bytes("quant:0", X.shape), ValueError, "quant"),
    (lambda: strait.wire_bytes("none", (-1,)), ValueError, "shape"),
    (lambda: strait.wire_bytes("none", 32), TypeError, "shape: expected the shape of a tensor, found int"),
    (lambda: strait.wire_bytes("none", "8x64"), TypeError, "shape: expected the shape of a tensor, found str"),
    (lambda: strait.codec("topk:2"), ValueError, "topk"),
    (lambda: strait.codec(4), TypeError, "codec: expected a spec such as \"quant:4\", found int"),
    (lambda: strait.wire_bytes(None, (1,)), TypeError, "codec: expected a spec such as \"quant:4\", found NoneType"),
    (lambda: strait.compress(X, "none", direction=1), TypeError, "direction: expected a string, found int"),
    (lambda: strait.wire_bytes("topk:0.1", (1, 2**32)), ValueError, "expected at most 4294967295 elements"),
])
def test_bad_input_is_one_clear_line(call, kind, text):
    with pytest.raises(kind) as error:
        call()
    assert text in str(error.value) and "\n" not in str(error.value)


def test_errors_are_where_users_look_for_them():
    assert issubclass(strait.WireError, ValueError) and issubclass(strait.NumericError, ArithmeticError)
    for kind in (strait.WireError, strait.NumericError):
        assert pickle.loads(pickle.dumps(kind("text"))).args == ("text",)
