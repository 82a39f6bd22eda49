"""What a training loop does with strait.Pipeline besides train(), against plain PyTorch."""

import collections
import concurrent.futures
import gc
import itertools
import math
import re
import threading
import weakref

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import strait
from launch import torchrun
from small_network import SCHEMES, batches, make_stages
from training_loop import LIMIT, gradients

pytestmark = pytest.mark.usefixtures("one_thread")


def plain_gradients(some_batches, frozen=0):
    """Those of the sum of the batches' mean losses."""
    stages = make_stages()
    for stage in stages[:frozen]:
        stage.requires_grad_(False)
    for inputs, targets, _ in some_batches:
        F.cross_entropy(nn.Sequential(*stages)(inputs), targets).backward()
    return gradients(stages)


def assert_close(ours, expected):
    assert ours.keys() == expected.keys()
    for name, tensor in expected.items():
        torch.testing.assert_close(ours[name], tensor, rtol=1e-4, atol=1e-7, msg=name)


def test_replicas_accumulate_gradients_over_batches(tmp_path):
    torchrun("training_loop.py", tmp_path, "replicas", processes=2)
    results = [torch.load(tmp_path / f"{rank}.pt") for rank in range(2)]
    own = [list(itertools.islice(batches(), 2 * rank, 2 * rank + 2)) for rank in range(2)]
    for calls in 1, 2:
        parts = [plain_gradients(of_rank[:calls], frozen=1) for of_rank in own]
        expected = {name: (parts[0][name] + parts[1][name]) / 2 for name in parts[0]}
        for result in results:
            assert_close(result[f"after {calls}"], expected)
    assert [result["replica"] for result in results] == [0, 1]
    assert all(result["parameters"] == 6 for result in results)
    for result in results:
        assert "is trained since the first batch; replicas expect a new pipeline then" in result["refusal"]


def test_replicas_of_halves_send_floats(tmp_path):
    torchrun("training_loop.py", tmp_path, "halves", processes=2)
    results = [torch.load(tmp_path / f"{rank}.pt") for rank in range(2)]
    parts = []
    for inputs, targets, _ in itertools.islice(batches(), 2):
        stages = [stage.bfloat16() for stage in make_stages()]
        F.cross_entropy(nn.Sequential(*stages)(inputs.bfloat16()), targets).backward()
        parts.append({f"{i}.{name}": each.grad for i, stage in enumerate(stages) for name, each in stage.named_parameters()})
    for name, gradient in results[0].items():
        assert gradient.dtype == torch.bfloat16 and torch.equal(gradient, results[1][name])
        expected = (parts[0][name].float() + parts[1][name].float()) / 2
        torch.testing.assert_close(gradient.float(), expected, rtol=0.02, atol=1e-3, msg=name)


def test_a_norm_is_of_what_is_trained():
    stages = make_stages()
    pipe = strait.Pipeline(stages, F.cross_entropy)
    inputs, targets, _ = next(batches())
    pipe.train(inputs, targets)
    stages[0].requires_grad_(False)  # whose gradients are left behind
    pipe.parameters_changed()
    for stage in stages[1:]:
        stage.zero_grad()
    pipe.train(inputs, targets)
    left = stages[0][0].weight.grad.clone()
    norm = torch.cat([parameter.grad.flatten() for stage in stages[1:] for parameter in stage.parameters()]).norm().item()
    assert pipe.clip_grad_norm_(LIMIT) == pytest.approx(norm, rel=1e-5) and norm > LIMIT
    assert torch.equal(stages[0][0].weight.grad, left)


def test_clipping_and_prediction_are_those_of_one_process(tmp_path):
    torchrun("training_loop.py", tmp_path, "stages", processes=2)
    first, last = (torch.load(tmp_path / f"{rank}.pt") for rank in range(2))
    stages = make_stages()
    inputs, targets, _ = next(batches())
    assert first["predicted"] is None
    with torch.no_grad():
        torch.testing.assert_close(last["predicted"], nn.Sequential(*stages)(inputs))
    F.cross_entropy(nn.Sequential(*stages)(inputs), targets).backward()
    norm = nn.utils.clip_grad_norm_([parameter for stage in stages for parameter in stage.parameters()], LIMIT)
    assert norm.item() > LIMIT
    assert first["norm"] == last["norm"] == pytest.approx(norm.item(), rel=1e-5)
    assert first["again"] == last["again"] == pytest.approx(LIMIT, rel=1e-3)
    assert_close({**first["clipped"], **last["clipped"]}, gradients(stages))
    for result in first, last:
        assert result["names"] == list(result["clipped"])  # each its own


@pytest.mark.parametrize(("difference", "complaint"), [
    ("shuffled", "frame is of another batch than the receiver's"), ("apart", "frame has step "),
    ("targets", "frame is of another batch than the receiver's"),
    ("rows", "process 1 has a batch of 11 rows, process 0 one of 12"),
])
def test_processes_that_do_not_train_the_same_hear_of_it(tmp_path, difference, complaint):
    torchrun("training_loop.py", tmp_path, difference, processes=2)
    for rank in range(2):
        assert complaint in torch.load(tmp_path / f"{rank}.pt")["refusal"]


def test_stages_of_other_processes_may_be_on_meta(tmp_path):
    torchrun("training_loop.py", tmp_path, "elsewhere", processes=2)
    first, second = (torch.load(tmp_path / f"{rank}.pt")["gradients"] for rank in range(2))
    assert {name[0] for name in first} == {"0", "2"} and {name[0] for name in second} == {"1", "3"}
    assert_close(first | second, plain_gradients(itertools.islice(batches(), 1)))


def padded(targets):
    """Half of the first rows have no label."""
    return targets.masked_fill(torch.arange(len(targets)) < len(targets) // 2, -100)


@pytest.mark.parametrize("micro_batches", [1, 2, 4])
def test_a_loss_over_what_is_no_padding_is_that_of_the_batch(micro_batches):
    inputs, targets, _ = next(batches())
    targets = padded(targets)
    stages, plain = make_stages(), make_stages()
    pipe = strait.Pipeline(stages, F.cross_entropy, micro_batches=micro_batches, count=lambda y: (y != -100).sum())
    loss = F.cross_entropy(nn.Sequential(*plain)(inputs), targets)
    loss.backward()
    assert pipe.train(inputs, targets).loss == pytest.approx(loss.item(), rel=1e-6)
    assert_close(gradients(stages), gradients(plain))
    assert pipe.evaluate(inputs, targets).loss == pytest.approx(loss.item(), rel=1e-6)
    assert pipe.evaluate(inputs, torch.full_like(targets, -100)).loss is None
    with pytest.raises(ValueError, match="expected targets that the loss counts, found none"):
        pipe.train(inputs, torch.full_like(targets, -100))


@pytest.mark.parametrize("micro_batches", [1, 2, 4])
def test_a_loss_that_is_a_sum_gives_the_gradients_of_the_sum_where_each_part_counts_1(micro_batches):
    inputs, targets, _ = next(batches())
    stages, plain = make_stages(), make_stages()
    loss = nn.CrossEntropyLoss(reduction="sum")
    pipe = strait.Pipeline(stages, loss, micro_batches=micro_batches, count=lambda y: 1)
    whole = loss(nn.Sequential(*plain)(inputs), targets)
    whole.backward()
    assert pipe.train(inputs, targets).loss == pytest.approx(whole.item() / micro_batches, rel=1e-6)
    assert_close(gradients(stages), gradients(plain))


@pytest.mark.parametrize("micro_batches", [1, 2, 4])
def test_a_mean_by_class_weights_is_that_of_the_batch_where_weights_are_counted(micro_batches):
    inputs, targets, _ = next(batches())
    weights = torch.tensor([0.2, 1.7, 0.35])
    stages, plain = make_stages(), make_stages()
    criterion = nn.CrossEntropyLoss(weight=weights)
    pipe = strait.Pipeline(stages, criterion, micro_batches=micro_batches, count=lambda y: (weights[y] * 2**20).sum().long())
    loss = criterion(nn.Sequential(*plain)(inputs), targets)
    loss.backward()
    assert pipe.train(inputs, targets).loss == pytest.approx(loss.item(), rel=1e-5)
    assert_close(gradients(stages), gradients(plain))


Answer = collections.namedtuple("Answer", ["start", "end", "is_known", "weight", "nothing"])


def answer_loss(scores, answer):
    """A mean over rows, weighted, of several targets of several types and shapes."""
    assert (answer.start.dtype, answer.end.dtype, answer.is_known.dtype) == (torch.int64, torch.uint8, torch.bool)
    assert (answer.weight.dtype, answer.nothing.shape) == (torch.float64, (len(scores), 0, 2))
    both = F.cross_entropy(scores, answer.start, reduction="none") + F.cross_entropy(scores, answer.end[:, 1].long(), reduction="none")
    return (both * answer.is_known * answer.weight.sum((1, 2)).float()).mean()


@pytest.mark.parametrize("micro_batches", [1, 4, 12])
def test_several_targets_are_given_to_the_loss_as_they_are(micro_batches):
    inputs, targets, _ = next(batches())
    rows = len(targets)
    answer = Answer(targets, torch.randint(3, (rows, 3), dtype=torch.uint8), torch.rand(rows) > 0.3,
                    torch.rand(rows, 2, 5, dtype=torch.float64).transpose(1, 2), torch.zeros(rows, 0, 2))
    stages, plain = make_stages(), make_stages()
    loss = answer_loss(nn.Sequential(*plain)(inputs), answer)
    loss.backward()

    def count_right(scores, answer):
        return (scores.argmax(1) == answer.start).sum()

    pipe = strait.Pipeline(stages, answer_loss, micro_batches=micro_batches, correct=count_right)
    result = pipe.train(inputs, answer)
    assert result.loss == pytest.approx(loss.item(), rel=1e-6)
    assert_close(gradients(stages), gradients(plain))
    assert result.correct == count_right(nn.Sequential(*plain)(inputs), answer) == pipe.evaluate(inputs, answer).correct


@pytest.mark.parametrize("kind", [tuple, list, dict])
def test_several_targets_keep_their_kind(kind):
    inputs, targets, _ = next(batches())
    names = ["label", 1] if kind is dict else [0, 1]
    given = {"label": padded(targets), 1: targets} if kind is dict else kind([padded(targets), targets])

    def loss(scores, both):
        assert type(both) is kind and (kind is not dict or list(both) == names)
        return F.cross_entropy(scores, both[names[0]])

    stages, plain = make_stages(), make_stages()
    pipe = strait.Pipeline(stages, loss, micro_batches=3, count=lambda both: (both[names[0]] != -100).sum())
    pipe.train(inputs, given)
    F.cross_entropy(nn.Sequential(*plain)(inputs), padded(targets)).backward()
    assert_close(gradients(stages), gradients(plain))
    single = strait.Pipeline(make_stages(), lambda scores, y: F.cross_entropy(scores, y if isinstance(y, torch.Tensor) else y[0]))
    assert single.train(inputs, (targets,)).loss == single.evaluate(inputs, targets).loss


def test_gradients_add_up_in_one_process():
    stages = make_stages()
    pipe = strait.Pipeline(stages, F.cross_entropy, batch_size=12)
    some = list(itertools.islice(batches(), 3))
    for inputs, targets, _ in some:
        pipe.train(inputs, targets)
    assert_close(gradients(stages), plain_gradients(some))


def test_prediction_crosses_boundaries_as_evaluation_does():
    stages = make_stages()
    pipe = strait.Pipeline(stages, F.cross_entropy, micro_batches=3, **SCHEMES["quant"])
    inputs, targets, _ = next(batches())
    for mode in "off", "plain":
        predicted = pipe.predict(inputs, mode)
        assert F.cross_entropy(predicted, targets).item() == pytest.approx(pipe.evaluate(inputs, targets, mode).loss, rel=1e-6)
        assert not predicted.requires_grad
    assert not torch.equal(pipe.predict(inputs, "off"), pipe.predict(inputs, "plain"))
    fork = strait.Pipeline([nn.Linear(6, 4), lambda x: (x, -x)], lambda both, y: F.mse_loss(both[0], both[1]))
    left, right = fork.predict(inputs)
    assert torch.equal(left, -right)
    with pytest.raises(ValueError, match="expected inputs"):
        pipe.predict(None)


def test_a_pipeline_without_a_loss_predicts():
    stages = make_stages()
    inputs, targets, _ = next(batches())
    pipe = strait.Pipeline(stages, micro_batches=3)
    torch.testing.assert_close(pipe.predict(inputs), nn.Sequential(*stages)(inputs))
    for method in pipe.train, pipe.evaluate:
        with pytest.raises(ValueError, match=r"^a batch: expected a pipeline with a loss, or predict\(\)$"):
            method(inputs, targets)
    assert torch.equal(pipe.predict(inputs), strait.Pipeline(stages, F.cross_entropy, micro_batches=3).predict(inputs))


def test_parameters_are_those_that_are_trained_now():
    stages = make_stages()
    stages[0].requires_grad_(False)
    pipe = strait.Pipeline(stages, F.cross_entropy)
    inputs, targets, _ = next(batches())
    messages = pipe.train(inputs, targets).messages
    assert messages == 2 * (len(stages) - 1) - 1  # no gradient for the first stage
    assert len(pipe.parameters()) == 6 and stages[0][0].weight.grad is None
    stages[0].requires_grad_(True)
    assert pipe.train(inputs, targets).messages == messages + 1
    assert len(pipe.parameters()) == 8 and stages[0][0].weight.grad is not None


def test_a_mask_of_floats_has_no_gradient():

    class Stem(nn.Linear):

        def forward(self, x):
            return super().forward(x), (x > 0).float()

    def gate(x, mask):
        assert not mask.requires_grad
        return x.tanh(), mask

    stages = [Stem(6, 6), gate, lambda x, mask: x * mask, nn.Linear(6, 3)]
    torch.manual_seed(0)
    x, y = torch.randn(10, 6), torch.randint(3, (10,))
    pipe = strait.Pipeline(stages, F.cross_entropy)
    assert pipe.train(x, y).messages == 5 + 3
    ours = stages[0].weight.grad.clone()
    stages[0].zero_grad()
    F.cross_entropy(stages[3](stages[2](*gate(*stages[0](x)))), y).backward()
    assert torch.equal(ours, stages[0].weight.grad)


def test_sentences_of_any_length_cross():
    torch.manual_seed(0)
    stages = [nn.Embedding(20, 8), nn.Sequential(nn.Linear(8, 8), nn.Tanh()), nn.Linear(8, 3)]

    def loss(output, targets):
        return F.cross_entropy(output.flatten(0, 1), targets.flatten())

    pipe = strait.Pipeline(stages, loss)
    lengths = 4, 7, 4
    data = [(torch.randint(20, (5, length)), torch.randint(3, (5, length))) for length in lengths]
    for x, y in data:
        pipe.train(x, y)
    ours = [parameter.grad.clone() for parameter in pipe.parameters()]
    network = nn.Sequential(*stages)
    network.zero_grad()
    for x, y in data:
        loss(network(x), y).backward()
    assert all(torch.equal(mine, parameter.grad) for mine, parameter in zip(ours, network.parameters(), strict=True))
    feedback = strait.Pipeline(stages, loss, activations="quant:4", feedback="ef")
    feedback.train(*data[0])
    with pytest.raises(ValueError, match=re.escape("its feedback keeps rows of shape [4, 8], found [7, 8]")):
        feedback.train(*data[1])


def test_what_is_frozen_is_found_under_no_grad_and_inference_mode():
    for context in torch.no_grad, torch.inference_mode:
        stages = make_stages()
        stages[0].requires_grad_(False)
        pipe = strait.Pipeline(stages, F.cross_entropy)
        inputs, targets, _ = next(batches())
        with context():
            pipe.evaluate(inputs, targets)
        assert pipe.train(inputs, targets).messages == 2 * (len(stages) - 1) - 1
        assert all(parameter.grad is not None for parameter in pipe.parameters())


def test_parameters_have_the_names_of_a_sequential():
    stages = make_stages()
    stages[1][0].bias.requires_grad_(False)
    pipe = strait.Pipeline([stages[0], stages[1], torch.tanh, *stages[2:]], F.cross_entropy)
    network = nn.Sequential(stages[0], stages[1], nn.Tanh(), *stages[2:])
    expected = [(name, parameter) for name, parameter in network.named_parameters() if name != "1.0.bias"]
    found = pipe.named_parameters()
    assert [name for name, _ in found] == [name for name, _ in expected] and "4.weight" in dict(found)
    assert all(mine is theirs for (_, mine), (_, theirs) in zip(found, expected, strict=True))
    assert all(mine is theirs for mine, (_, theirs) in zip(pipe.parameters(), expected, strict=True))
    stages[0][0].bias = nn.Parameter(torch.zeros_like(stages[0][0].bias))
    assert dict(pipe.named_parameters())["0.0.bias"] is stages[0][0].bias


def test_what_would_be_wrong_in_silence_is_refused(monkeypatch):
    inputs, targets, _ = next(batches())
    pipe = strait.Pipeline(make_stages(), F.cross_entropy)
    with torch.no_grad(), pytest.raises(RuntimeError, match=r"train\(\) needs gradients, which are disabled here"):
        pipe.train(inputs, targets)
    share = strait.Pipeline(make_stages(), F.cross_entropy, correct=lambda out, y: (out.argmax(1) == y).float().mean() / 3)
    with pytest.raises(ValueError, match="^correct: expected a count, found 0[.]"):
        share.train(inputs, targets)
    for found, text in (math.nan, "nan"), (None, "NoneType"), (targets, "Tensor"), ("many", "str"):
        with pytest.raises(ValueError, match=f"^count: expected a count, found {text}$"):
            strait.Pipeline(make_stages(), F.cross_entropy, count=lambda y: found).train(inputs, targets)
    with pytest.raises(ValueError, match="expected a limit above 0, found 0"):
        pipe.clip_grad_norm_(0)
    pipe.train(inputs, targets)
    pipe.parameters()[0].grad.fill_(torch.inf)
    with pytest.raises(strait.NumericError, match="the norm of the gradients is not finite"):
        pipe.clip_grad_norm_(1)
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(RuntimeError, match=re.escape("expected torch.distributed.init_process_group() before")):
        strait.Pipeline(make_stages(), F.cross_entropy)


def test_one_call_at_a_time():
    at_work, may_go_on = threading.Event(), threading.Event()

    def waits(x):
        at_work.set()
        assert may_go_on.wait(60)
        return x

    def loss(output, targets):
        return F.mse_loss(output * targets["scale"], targets["start"])

    pipe = strait.Pipeline([nn.Linear(6, 3), waits], loss=loss)
    inputs, targets = torch.ones(4, 6), {"start": torch.zeros(4, 3), "scale": torch.ones(4, 1)}
    with concurrent.futures.ThreadPoolExecutor(1) as other:
        first = other.submit(pipe.train, inputs, targets)
        try:
            assert at_work.wait(60)
            others = torch.zeros(4, 3), torch.ones(4, 1)
            for call in lambda: pipe.train(inputs, others), lambda: pipe.predict(inputs), pipe.state_dict:
                with pytest.raises(RuntimeError, match="^strait.Pipeline: expected one call at a time, found another under way"):
                    call()
        finally:
            may_go_on.set()
        assert first.result().rows == 4
    assert pipe.train(inputs, targets).rows == 4
    assert pipe.step == 2


def test_a_pipeline_that_its_owner_is_reached_from_is_freed():
    class Trainer:
        def __init__(self):
            self.module = nn.Linear(6, 3)
            self.pipe = strait.Pipeline([self.module, self.double], self.loss, correct=self.correct, count=lambda y: len(self.ones) + 3)
            self.ones = [1]

        def double(self, x):
            return 2 * x

        def loss(self, output, targets):
            return F.mse_loss(output, targets)

        def correct(self, output, targets):
            return len(self.ones)

    trainer = Trainer()
    assert trainer.pipe.train(torch.ones(4, 6), torch.zeros(4, 3)).correct == 1
    module = weakref.ref(trainer.module)
    del trainer
    gc.collect()
    assert module() is None
