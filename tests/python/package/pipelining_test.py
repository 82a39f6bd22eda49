"""strait.pipelining.Stage in torch's schedules, against torch's own stage and against strait.Boundary."""

import json
from types import SimpleNamespace

import pytest
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

import strait
import strait.pipelining
from launch import free_port, torchrun
from torch_schedules import MICRO_BATCHES, ROWS, SCHEDULES, SCHEMES, STEPS, batches, make_modules


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    out = tmp_path_factory.mktemp("schedules") / "results.json"
    torchrun("torch_schedules.py", out, processes=2)
    return json.loads(out.read_text())


@pytest.mark.parametrize("name", SCHEDULES)
def test_without_compression_it_is_torchs_stage(results, name):
    for ours, theirs in zip(results[f"{name} none"], results[f"{name} torch"], strict=True):
        assert ours[:2] == theirs[:2]


def boundaries_in_one_process(name, scheme):
    """The losses of the same network with strait.Boundary at the cuts between processes."""
    layout = SCHEDULES[name]
    count = sum(map(len, layout))
    rank_of = {stage: rank for rank, stages in enumerate(layout) for stage in stages}
    modules = make_modules(count)
    parts = []
    for i, module in enumerate(modules):
        parts.append(module)
        if i + 1 < count and rank_of[i] != rank_of[i + 1]:
            parts.append(strait.Boundary(index=i, **scheme))
    network = nn.Sequential(*parts)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.3)
    losses = []
    for step, (x, y) in enumerate(batches()):
        optimizer.zero_grad()
        found = []
        rows = ROWS // MICRO_BATCHES
        for i in range(MICRO_BATCHES):
            part = slice(i * rows, (i + 1) * rows)
            with strait.batch(network, step=step, first_row=i * rows):
                loss = F.cross_entropy(network(x[part]), y[part])
                loss.backward()
            found.append(loss.item())
        for parameter in network.parameters():
            parameter.grad /= MICRO_BATCHES
        losses.append(found)
        optimizer.step()
    return losses


@pytest.mark.parametrize("scheme", ["quant", "ef", "pair"])
@pytest.mark.parametrize("name", SCHEDULES)
def test_compression_is_that_of_boundaries(results, name, scheme):
    by_rank = results[f"{name} {scheme}"]
    losses = next(each[0] for each in by_rank if each[0][0])
    expected = boundaries_in_one_process(name, SCHEMES[scheme])
    assert losses == [pytest.approx(each, rel=2e-3) for each in expected]
    assert losses[0] == pytest.approx(expected[0], rel=1e-6)
    assert losses != next(each[0] for each in results[f"{name} torch"] if each[0][0])


@pytest.mark.parametrize("name", SCHEDULES)
def test_bytes_are_counted(results, name):
    layout = SCHEDULES[name]
    rank_of = {stage: rank for rank, stages in enumerate(layout) for stage in stages}
    cuts = sum(rank_of[i] != rank_of[i + 1] for i in range(len(rank_of) - 1))
    sent = [stage for rank in results[f"{name} quant"] for stage in rank[2]]
    messages = 2 * cuts * MICRO_BATCHES * STEPS
    assert sum(each["messages"] for each in sent) == messages
    assert sum(each["raw"] for each in sent) == messages * ROWS // MICRO_BATCHES * 16 * 4
    assert sum(each["sent"] for each in sent) < messages * (64 + 32 + 32)


@pytest.fixture(scope="module")
def process_group():
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{free_port()}", rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def test_codecs_without_a_fixed_size_are_refused(process_group):
    for arguments, text in [
        ({"activations": "topk:0.1,index=rice"}, "the bytes of a message depend on its values"),
        ({"activations": "topk:0.1", "feedback": "ef-mixed"}, "the bytes of a message depend on its values"),
        ({"activations": "quant:4", "feedback": "aq-sgd"}, "keeps something per sample"),
        ({"activations": "quant:4", "feedback": ("ef", 3)}, "feedback: expected a spec, or a pair of them"),
        ({"activations": "quant:4", "feedback": "marina:0.5"}, "expected feedback that needs its message alone"),
        ({"activations": "topk:0.1,index=bitmap", "feedback": "ef-mixed"}, "the bytes of a message depend on its values"),
        ({"gradients": "topk:0.1,index=rice"}, "the bytes of a message depend on its values"),
        ({"activations": "quart:4"}, "did you mean"),
    ]:
        for stage in range(2):  # what a stage sends and what it receives
            with pytest.raises(ValueError, match=text):
                strait.pipelining.Stage(nn.Linear(2, 2), stage, 2, torch.device("cpu"), **arguments)
    with pytest.raises(TypeError, match='^gradients: expected a spec such as "quant:4", found int$'):
        strait.pipelining.Stage(nn.Linear(2, 2), 0, 2, torch.device("cpu"), gradients=4)


def test_what_is_served_does_not_depend_on_narrow_layers(process_group):
    strait.pipelining.Stage(nn.Linear(2, 2), 0, 2, torch.device("cpu"), activations="lowrank:2")
    with pytest.raises(ValueError, match="the bytes of a message depend on its values"):
        strait.pipelining.Stage(nn.Linear(2, 2), 0, 2, torch.device("cpu"), activations="topk:0.99")


def test_double_precision_crosses_as_it_is(process_group):
    stage = strait.pipelining.Stage(nn.Linear(2, 2), 0, 2, torch.device("cpu"), activations="quant:8")
    x = torch.randn(3, 2, dtype=torch.float64)
    assert stage._encoded(True, 0, 0, [SimpleNamespace(tensor=x, tag=0)])[0].tensor is x


def test_a_cut_has_so_many_tensors_at_most(process_group):
    sends = strait.pipelining.Stage(nn.Linear(2, 2), 0, 2, torch.device("cpu"))._sends[True]
    assert sends[63] is not None
    with pytest.raises(ValueError, match="at most 64 tensors at a cut"):
        sends[64]


def test_what_is_no_state_of_a_stage_is_refused_and_changes_nothing(process_group):

    def stage(index):
        stage = strait.pipelining.Stage(nn.Linear(2, 2), index, 2, torch.device("cpu"), activations="quant:4", gradients="quant:4",
                                        feedback="ef21")
        stage.has_backward = True
        return stage

    first, last = stage(0), stage(1)
    first._sends[True][0].encode(torch.randn(3, 4), first._place(0, 3))
    before = first.state_dict()
    for state, kind, text in [
        ({}, ValueError, "expected the state of a stage at the same place"),
        (last.state_dict(), ValueError, "expected the state of a stage at the same place"),
        ({**before, "step": "3"}, TypeError, "step: expected an integer, found str"),
        ({**before, "step": 5, "receives": {False: [{"what": torch.zeros(1)}]}}, ValueError, 'no tensor "what"'),
        ({**before, "step": 5, "sends": {True: [[1.0]]}}, ValueError, "expected tensors by name, found list"),
    ]:
        with pytest.raises(kind, match=text):
            first.load_state_dict(state)
        after = first.state_dict()
        assert after["step"] == before["step"]
        assert torch.equal(after["sends"][True][0]["estimate"], before["sends"][True][0]["estimate"])


def test_a_stage_resumes(process_group):
    stage = strait.pipelining.Stage(nn.Linear(2, 2), 0, 2, torch.device("cpu"), activations="quant:4", feedback="ef21")
    stage.has_backward = True
    first = stage._sends[True][0].encode(torch.randn(3, 4), stage._place(0, 3))
    other = strait.pipelining.Stage(nn.Linear(2, 2), 0, 2, torch.device("cpu"), activations="quant:4", feedback="ef21")
    other.has_backward = True
    other.load_state_dict(stage.state_dict())
    x = torch.randn(3, 4)
    ours, theirs = (each._sends[True][0].encode(x, each._place(0, 3)) for each in (stage, other))
    assert torch.equal(ours[64:], theirs[64:]) and not torch.equal(ours[64:], first[64:])
