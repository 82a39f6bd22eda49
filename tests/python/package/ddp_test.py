"""The communication hook, in several processes over Gloo: against plain formulas on what DistributedDataParallel hands to it,
and against training without one."""

import copy
import datetime
import math
import pickle

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import formulas
import strait

STEPS = 5


def network():
    torch.manual_seed(5)
    return nn.Sequential(nn.Linear(8, 40), nn.Tanh(), nn.Linear(40, 40), nn.Tanh(), nn.Linear(40, 3))


def batch(rank, step):
    generator = torch.Generator().manual_seed(100 * rank + step)
    return torch.randn(6, 8, generator=generator), torch.randn(6, 3, generator=generator)


def recording(calls):
    """The hook; `calls` gets, of each call, step, bucket, the gradients before and the mean after."""
    def hook(state, bucket):
        step, index, before = state.step, bucket.index(), bucket.buffer().clone()

        def record(future):
            calls.append((step, index, before, future.value().clone()))
            return future.value()
        return strait.ddp_hook(state, bucket).then(record)
    return hook


def train(rank, steps, state=None, model=None, static_graph=False):
    """Trains; gives the model and the calls of the hook."""
    calls = []
    model = model or network()
    ddp = DistributedDataParallel(model, bucket_cap_mb=0.004, static_graph=static_graph)
    if state is not None:
        ddp.register_comm_hook(state, recording(calls))
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
    dtype = model[0].weight.dtype
    for step in steps:
        x, y = batch(rank, step)
        optimizer.zero_grad()
        nn.functional.mse_loss(ddp(x.to(dtype)), y.to(dtype)).backward()
        optimizer.step()
    return model, sorted(calls, key=lambda call: call[:2])  # messages that are under way at once come in any order


def resumed(rank):
    """Three steps, then two with a pickle of the state in another DistributedDataParallel."""
    state = strait.DDPState("topk:0.1", feedback="ef21")
    model, calls = train(rank, range(3), state)
    again = pickle.loads(pickle.dumps(state))
    twice = pickle.loads(pickle.dumps(again))  # before it has been used
    assert again.step == twice.step == 3 and copy.deepcopy(state).step == 3
    before = state.bytes()
    assert before.sent > 0 and again.bytes() == twice.bytes() == before
    _, more = train(rank, range(3, STEPS), twice, model)
    assert twice.bytes().messages > before.messages and state.bytes() == before
    return calls + more


def static(rank):
    """A static graph, whose buckets are arranged anew after the second step; then once more with a pickle of the state."""
    state = strait.DDPState("topk:0.1", feedback="ef")
    model, calls = train(rank, range(STEPS), state, static_graph=True)
    _, more = train(rank, range(STEPS, 2 * STEPS), pickle.loads(pickle.dumps(state)), model, static_graph=True)
    return calls + more


def other_buckets(rank):
    """A pickle of the state goes on with a model whose buckets are others, because a layer is frozen."""
    state = strait.DDPState("topk:0.1", feedback="ef")
    model, calls = train(rank, range(STEPS), state)
    model[2].requires_grad_(False)
    _, more = train(rank, range(STEPS, STEPS + 5), pickle.loads(pickle.dumps(state)), model)
    return calls + more


def failing(rank):
    """What every rank hears when the gradients of rank 1 are not finite in the second of three steps."""
    state, model = strait.DDPState("quant:4"), network()
    ddp = DistributedDataParallel(model)
    ddp.register_comm_hook(state, strait.ddp_hook)
    heard = []
    for step in range(3):
        x, y = batch(rank, step)
        ddp.zero_grad()
        try:
            nn.functional.mse_loss(ddp(x * (torch.inf if step == 1 and rank == 1 else 1)), y).backward()
        except Exception as error:  # what DistributedDataParallel makes of it
            heard.append(str(error))
    return heard


STATES = {
    "none": lambda: strait.DDPState("none"),
    "topk": lambda: strait.DDPState("topk:0.1"),
    "ef": lambda: strait.DDPState("topk:0.05", feedback="ef"),
    "ef21": lambda: strait.DDPState("topk:0.05,values=bf16", feedback="ef21"),
    "quant": lambda: strait.DDPState("quant:4"),
    "late": lambda: strait.DDPState("topk:0.1", feedback="ef", warmup_steps=3),
    "draws": lambda: strait.DDPState("quant:4,rounding=stochastic", seed=2),
    "powersgd": lambda: strait.DDPState("lowrank:1,warm=yes", feedback="ef"),
}


def work(rank, ranks, folder):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=ranks,
                            timeout=datetime.timedelta(seconds=120))
    results = {"plain": train(rank, range(STEPS))[0].state_dict()}
    for name, make in STATES.items():
        state = make()
        model, calls = train(rank, range(STEPS), state)
        results[name] = {"weights": model.state_dict(), "calls": calls, "bytes": tuple(state.bytes())}
    results["resumed"] = {"calls": resumed(rank)}
    results["static"] = {"calls": static(rank)}
    results["other buckets"] = {"calls": other_buckets(rank)}
    results["half"] = {"calls": train(rank, range(2), strait.DDPState("topk:0.5"), network().bfloat16())[1]}
    results["failing"] = failing(rank)
    torch.save(results, f"{folder}/{rank}.pt")
    dist.destroy_process_group()
    pickle.dumps(state)


@pytest.fixture(scope="module", params=[2, 4])
def results(request, tmp_path_factory):
    """By rank what work() has found."""
    folder = tmp_path_factory.mktemp("ranks")
    mp.spawn(work, (request.param, str(folder)), nprocs=request.param)
    return [torch.load(folder / f"{rank}.pt") for rank in range(request.param)]


def seen(formula):
    return lambda: formula


def with_ef(formula):
    def make():
        residual = 0

        def sent(x):
            nonlocal residual
            message = formula(x + residual)
            residual = x + residual - message
            return message
        return sent
    return make


def with_ef21(formula):
    def make():
        estimate = 0

        def sent(x):
            nonlocal estimate
            estimate = estimate + formula(x - estimate)
            return estimate
        return sent
    return make


def top(share):
    return lambda x: formulas.topk(x, share, 1)


def top_bf16(share):
    return lambda x: formulas.topk(x, share, 1).bfloat16().float()


FORMULAS = {
    "none": (seen(lambda x: x), 1), "topk": (seen(top("0.1")), 1), "ef": (with_ef(top("0.05")), 1),
    "ef21": (with_ef21(top_bf16("0.05")), 1), "late": (with_ef(top("0.1")), 3),
}


def check_calls(calls_of_ranks, formula, compressed_from, arranged_at=0):
    """Every mean is that of the formula on what the ranks had, added in their order. From the step `arranged_at` on buckets
    are of other parameters."""
    states = {}
    compressed = 0
    for calls in zip(*calls_of_ranks, strict=True):
        step, index = calls[0][:2]
        assert all(call[:2] == (step, index) for call in calls)
        before, after = [call[2] for call in calls], [call[3] for call in calls]
        assert all(torch.equal(mean, after[0]) for mean in after), f"step {step}: the ranks have different means"
        if not compressed_from(step):
            torch.testing.assert_close(after[0], torch.stack(before).mean(0))
            continue
        compressed += 1
        total = 0
        for rank, gradient in enumerate(before):
            key = (rank, index, step < arranged_at)
            sent = states.setdefault(key, formula() if key not in states else None)
            total = total + sent(gradient)
        assert torch.equal(after[0], total / len(calls)), f"step {step}, bucket {index}"
    return compressed


def compressed_calls(results, name):
    """Those behind the first step, of each bucket the calls of all ranks."""
    found = [calls for calls in zip(*[rank[name]["calls"] for rank in results], strict=True) if calls[0][0] > 0]
    assert found
    return found


@pytest.mark.parametrize("name", FORMULAS)
def test_means_are_those_of_the_formula(results, name):
    formula, first = FORMULAS[name]
    calls = [rank[name]["calls"] for rank in results]
    buckets = len({call[1] for call in calls[0] if call[0] == STEPS - 1})
    assert buckets > 1, "the gradients are all in one bucket"
    assert check_calls(calls, formula, lambda step: step >= first) == buckets * (STEPS - first)


def test_quantised_means(results):
    for calls in compressed_calls(results, "quant"):
        expected = sum(formulas.quant(call[2], 4) for call in calls) / len(calls)
        torch.testing.assert_close(calls[0][3], expected.float(), atol=1e-5, rtol=0)


def test_drawn_means_are_near(results):
    for calls in compressed_calls(results, "draws"):
        mean = calls[0][3]
        assert all(torch.equal(call[3], mean) for call in calls)
        exact = sum(call[2] for call in calls) / len(calls)
        worst = sum((call[2].max() - call[2].min()) / 15 for call in calls) / len(calls)
        assert 0 < (mean - exact).abs().max() <= 1.001 * worst


def test_factors_of_a_bucket_are_those_of_a_square(results):
    """Every rank's message is a product of two vectors, so that their mean has no more of them than there are ranks."""
    for calls in compressed_calls(results, "powersgd"):
        step, _, _, mean = calls[0]
        side = math.isqrt(len(mean) - 1) + 1
        whole = mean[: len(mean) // side * side].view(-1, side).double()  # rows that end within the bucket are none of the product
        assert 1 <= torch.linalg.matrix_rank(whole, rtol=1e-5) <= len(results)
        if step == 1:  # the first message is a projection, which is no longer than the gradient
            assert 0 < mean.norm() < sum(call[2].norm() for call in calls) / len(calls)
    assert results[0]["powersgd"]["bytes"][0] < results[0]["none"]["bytes"][0]


def test_ranks_buckets_and_steps_draw_apart():
    gradient = torch.randn(2000)

    def payload(rank, bucket=0, step=0, seed=0):
        message = strait._C.BucketExchange("quant:4,rounding=stochastic", "none", rank, 2, seed).encode(bucket, gradient, step)
        return message[64:].tolist()  # behind the header

    first = payload(0)
    assert first == payload(0)
    for other in (payload(1), payload(0, bucket=1), payload(0, step=1), payload(0, seed=1)):
        assert sum(a != b for a, b in zip(first, other)) > 100


def test_ranks_end_with_the_same_weights(results):
    for name in STATES:
        first = results[0][name]["weights"]
        for rank in results[1:]:
            assert all(torch.equal(first[key], tensor) for key, tensor in rank[name]["weights"].items()), name


def test_without_compression_it_trains_as_without_a_hook(results):
    for key, tensor in results[0]["plain"].items():
        torch.testing.assert_close(results[0]["none"]["weights"][key], tensor, atol=1e-6, rtol=1e-5)
        assert not torch.equal(results[0]["topk"]["weights"][key], tensor)


def test_bytes_are_counted(results):
    calls = [call for call in results[0]["none"]["calls"] if call[0] > 0]
    raw = sum(4 * call[2].numel() for call in calls)
    sent = sum(max(512, 64 + 4 * call[2].numel()) for call in calls)
    assert results[0]["none"]["bytes"] == (sent, raw, len(calls))
    assert results[0]["topk"]["bytes"][0] < raw / 4


def test_a_pickle_goes_on(results):
    calls = [rank["resumed"]["calls"] for rank in results]
    # The first step of each DistributedDataParallel crosses as it is, and the state waits.
    assert check_calls(calls, with_ef21(top("0.1")), lambda step: step not in (0, 3)) > 0


def test_buckets_that_change_begin_anew(results):
    calls = [rank["static"]["calls"] for rank in results]
    not_compressed = (0, STEPS, STEPS + 1)  # the last is before the buckets are those of the state
    assert check_calls(calls, with_ef(top("0.1")), lambda step: step not in not_compressed, arranged_at=2) > 0


def test_buckets_that_stay_others_begin_anew_after_three_steps(results):
    calls = [rank["other buckets"]["calls"] for rank in results]
    not_compressed = (0, STEPS, STEPS + 1, STEPS + 2)
    assert check_calls(calls, with_ef(top("0.1")), lambda step: step not in not_compressed, arranged_at=STEPS) > 0
    assert any(call[0] >= STEPS + 3 for call in calls[0])


def test_halves_cross_as_floats(results):
    for calls in compressed_calls(results, "half"):
        expected = sum(formulas.topk(call[2].float(), "0.5", 1) for call in calls) / len(calls)
        assert all(torch.equal(call[3], expected.bfloat16()) for call in calls)


def test_every_rank_hears_of_a_gradient_that_is_not_finite_and_goes_on(results):
    for rank in results:
        (heard,) = rank["failing"]
        assert "bucket 0 of rank 1, gradient" in heard and "not finite" in heard


@pytest.mark.parametrize("call, kind, text", [
    (lambda: strait.DDPState("qant:4"), ValueError, 'did you mean "quant"'),
    (lambda: strait.DDPState("quant:4", feedback="aq-sgd"), ValueError, "serves no gradients of weights"),
    (lambda: strait.DDPState("quant:4", feedback="marina:0.5"), ValueError,
     'feedback "marina:0.5": expected feedback that needs its message alone'),
    (lambda: strait.DDPState("quant:4", feedback="ef-mixed"), ValueError, "quant:4"),
    (lambda: strait.DDPState("quant:4", warmup_steps=-1), ValueError, "warmup_steps"),
    (lambda: strait.DDPState("quant:4", warmup_steps="1"), TypeError, "warmup_steps: expected an integer, found str"),
    (lambda: strait.DDPState(4), TypeError, "codec: expected a spec such as \"quant:4\", found int"),
    (lambda: strait.DDPState("quant:4", feedback=("ef", "ef")), TypeError, "feedback: expected a string, found tuple"),
    (lambda: strait.ddp_hook(None, None), TypeError, "expected a DDPState, found NoneType"),
    (lambda: strait.ddp_hook(strait.DDPState("quant:4"), torch.ones(4), torch.ones(2)), TypeError,
     "ddp_hook: expected the state and a bucket of DistributedDataParallel; FullyShardedDataParallel, which"),
    (lambda: strait.ddp_hook(strait.DDPState("quant:4"), torch.ones(4)), TypeError, "bucket of DistributedDataParallel"),
])
def test_bad_input_is_one_clear_line(call, kind, text):
    with pytest.raises(kind) as error:
        call()
    assert text in str(error.value) and "\n" not in str(error.value)


def test_a_step_that_one_rank_cannot_send_leaves_both_ends_alike():
    ranks = [strait._C.BucketExchange("topk:0.5", "ef21", rank, 2, 0) for rank in range(2)]
    for step in range(3):
        gradients = [torch.randn(8), torch.randn(8) * (torch.nan if step == 1 else 1)]
        messages = torch.stack([rank.encode(0, gradient, step) for rank, gradient in zip(ranks, gradients)])
        if step == 1:
            for rank in ranks:
                with pytest.raises(strait.NumericError, match="bucket 0 of rank 1, gradient"):
                    rank.decode(0, messages, step)
        else:
            first, second = (rank.decode(0, messages, step) for rank in ranks)
            assert torch.equal(first, second)
    states = [rank.state()[0] for rank in ranks]
    for number, state in enumerate(states):
        for other in states:
            assert torch.equal(state["sender.estimate"], other[f"receiver-{number}.estimate"])


def test_states_of_others_are_refused():
    exchange = strait._C.BucketExchange("topk:0.5", "ef21", 0, 1, 0)
    frames = exchange.encode(0, torch.randn(8), 0)
    exchange.decode(0, frames[None], 0)
    state = exchange.state()
    assert set(state[0]) == {"elements", "sender.estimate", "receiver-0.estimate"}
    with pytest.raises(ValueError, match="bucket 0: its links have no tensor"):
        strait._C.BucketExchange("topk:0.5", "none", 0, 1, 0).load_state(state)
    with pytest.raises(ValueError, match="number of elements"):
        exchange.load_state({0: {}})
    with pytest.raises(ValueError, match="expected the messages of 1 ranks"):
        exchange.decode(0, frames[1:], 1)
    with pytest.raises(strait.WireError):
        exchange.decode(0, (frames * 0 + 1)[None], 1)
