"""strait.Pipeline against plain PyTorch, against strait.Boundary, and over processes against one."""

import copy
import pickle
import re

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import strait
from launch import expect_equal, torchrun, train_by_program
from small_network import (EPOCHS, ROWS, SCHEMES, SEED, WIDTH, batches, make_optimizer, make_stages, samples,
                           train_pipeline, weights_of)

pytestmark = pytest.mark.usefixtures("one_thread")


def weights(stages):
    return [{name: tensor.clone() for name, tensor in stage.state_dict().items()} for stage in stages]


def assert_same_bits(some, others):
    for one, other in zip(some, others, strict=True):
        assert one.keys() == other.keys()
        for name in one:
            assert one[name].numpy().tobytes() == other[name].numpy().tobytes(), name


def train_plainly(stages):
    network = nn.Sequential(*stages)
    optimizer = make_optimizer(network.parameters())
    losses = []
    for inputs, targets, _ in batches():
        optimizer.zero_grad()
        loss = F.cross_entropy(network(inputs), targets)
        loss.backward()
        losses.append(loss.item())
        optimizer.step()
    return losses


def test_without_compression_it_is_the_unsplit_network():
    stages, plain = make_stages(), make_stages()
    assert train_pipeline({}, stages) == train_plainly(plain)
    assert_same_bits(weights(stages), weights(plain))


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
def test_micro_batches_give_the_same_gradients(schedule):
    stages, plain = make_stages(), make_stages()
    losses = train_pipeline({}, stages, micro_batches=4, schedule=schedule)
    assert losses == pytest.approx(train_plainly(plain), rel=1e-5)
    for some, others in zip(weights(stages), weights(plain), strict=True):
        for name in some:
            torch.testing.assert_close(some[name], others[name], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", SCHEMES)
def test_boundaries_in_a_sequential_give_the_same_bits(name):
    scheme = SCHEMES[name]
    stages, others = make_stages(), make_stages()
    losses = train_pipeline(scheme, stages)
    cuts = [strait.Boundary(index=i, seed=SEED, **scheme) for i in range(3)]
    network = nn.Sequential(others[0], cuts[0], others[1], cuts[1], others[2], cuts[2], others[3])
    optimizer = make_optimizer(network.parameters())
    for step, (inputs, targets, ids) in enumerate(batches()):
        optimizer.zero_grad()
        with strait.batch(network, ids=ids):
            loss = F.cross_entropy(network(inputs), targets)
            loss.backward()
        assert loss.item() == losses[step]
        optimizer.step()
    assert_same_bits(weights(stages), weights(others))


@pytest.mark.parametrize("processes", [2, 4])
def test_processes_give_the_bits_of_one(processes, tmp_path):
    torchrun("small_network.py", tmp_path, processes=processes)
    found = sorted({path.name.rsplit("-stage", 1)[0] for path in tmp_path.iterdir()})
    assert len(found) == 2 * len(SCHEMES)
    for case in found:
        name, micro_batches = case.rsplit("-", 1)
        stages = make_stages()
        train_pipeline(SCHEMES[name], stages, micro_batches=int(micro_batches))
        theirs = [torch.load(tmp_path / f"{case}-stage{i}.pt") for i in range(4)]
        assert_same_bits(weights(stages), theirs)


def link(codec, feedback):
    """A direction in the program's configuration."""
    return {"codec": codec, "feedback": feedback if codec != "none" else "none"}


@pytest.mark.parametrize("name", SCHEMES)
def test_the_program_trains_the_same_bits(name, tmp_path):
    """With the tests above: the program, one process, several, and Boundary in a loop train the same network alike."""
    stages, scheme = make_stages(), SCHEMES[name]
    feedback = scheme.get("feedback", "none")
    if feedback == "aq-sgd":
        feedback = ("aq-sgd", "none")  # it serves no gradients
    forward, backward = (feedback, feedback) if isinstance(feedback, str) else feedback
    run = train_by_program(tmp_path, {
        "model.kind": "mlp", "model.width": WIDTH, "model.layers": 3, "model.cuts": [f"hidden.{i}" for i in range(3)],
        "seed": SEED, "data.batch_size": ROWS, "train.epochs": EPOCHS,
        "train.optimizer": {"kind": "sgd", "lr": 0.05, "momentum": 0.9, "weight_decay": 0.0},
        "compression.activations": link(scheme.get("activations", "none"), forward),
        "compression.gradients": link(scheme.get("gradients", "none"), backward),
        "compression.reuse_indices": scheme.get("reuse_indices", False)}, samples(), weights_of(stages))
    train_pipeline(scheme, stages)
    expect_equal(run, weights_of(stages))


def test_several_tensors_cross_a_cut():

    class Fork(nn.Module):

        def __init__(self):
            super().__init__()
            self.left, self.right = nn.Linear(6, 8), nn.Linear(6, 5)

        def forward(self, x):
            return self.left(x), self.right(x)

    class Join(nn.Module):

        def __init__(self):
            super().__init__()
            self.out = nn.Linear(13, 3)

        def forward(self, left, right):
            return self.out(torch.cat([left, right], 1))

    torch.manual_seed(0)
    stages = [Fork(), lambda left, right: (left.tanh(), right), Join()]
    x, y = torch.randn(10, 6), torch.randint(3, (10,))
    result = strait.Pipeline(stages, F.cross_entropy).train(x, y)
    mine = [parameter.grad.clone() for stage in (stages[0], stages[2]) for parameter in stage.parameters()]
    for stage in (stages[0], stages[2]):
        stage.zero_grad()
    loss = F.cross_entropy(stages[2](*stages[1](*stages[0](x))), y)
    loss.backward()
    assert result.loss == loss.item()
    theirs = [parameter.grad for stage in (stages[0], stages[2]) for parameter in stage.parameters()]
    assert all(map(torch.equal, mine, theirs))


def test_a_result_counts():
    stages = make_stages()
    pipe = strait.Pipeline(stages, F.cross_entropy, activations="quant:8", gradients="none", micro_batches=3,
                           correct=lambda scores, targets: (scores.argmax(1) == targets).sum())
    inputs, targets, _ = next(batches())
    result = pipe.train(inputs, targets)
    assert (result.rows, result.messages) == (ROWS, 2 * 3 * 3)
    raw = 4 * ROWS * 3 * WIDTH
    assert result.raw_bytes == 2 * raw
    assert raw + raw // 4 < result.wire_bytes < 2 * raw
    assert repr(pickle.loads(pickle.dumps(result))) == repr(result)
    assert repr(result).startswith(f"StepResult(loss={result.loss:.6g}, rows={ROWS}, correct={result.correct}, seconds=")
    assert repr(result).endswith(f", messages=18, raw_bytes={2 * raw}, wire_bytes={result.wire_bytes})")
    assert pipe.step == 1
    with torch.no_grad():
        expected = (nn.Sequential(*stages)(inputs).argmax(1) == targets).sum().item()
    assert pipe.evaluate(inputs, targets, mode="off").correct == expected
    assert pipe.step == 1 and pipe.gather(result).loss == result.loss


def test_evaluation_changes_nothing():
    stages = make_stages()
    pipe = strait.Pipeline(stages, F.cross_entropy, **SCHEMES["topk-ef21"])
    inputs, targets, _ = next(batches())
    pipe.train(inputs, targets)
    before, gradients = pipe.state_dict(), [parameter.grad.clone() for parameter in pipe.parameters()]
    losses = {mode: pipe.evaluate(inputs, targets, mode=mode).loss for mode in ("off", "plain", "frozen")}
    assert len(set(losses.values())) == 3
    assert losses["off"] == F.cross_entropy(nn.Sequential(*stages)(inputs), targets).item()
    after = pipe.state_dict()
    assert after["step"] == before["step"] and after["links"].keys() == before["links"].keys() and before["links"]
    assert all(torch.equal(after["links"][name], before["links"][name]) for name in before["links"])
    assert all(map(torch.equal, gradients, [parameter.grad for parameter in pipe.parameters()]))


@pytest.mark.parametrize("name", ["topk-ef21", "aq-sgd", "by-sample", "stochastic"])
def test_resuming_gives_the_uninterrupted_bits(name):
    stages = make_stages()
    train_pipeline(SCHEMES[name], stages)
    halves = make_stages()
    saved = None
    for begin, end in ((0, 8), (8, 20)):
        pipe = strait.Pipeline(halves, F.cross_entropy, seed=3, batch_size=ROWS, **SCHEMES[name])
        optimizer = make_optimizer(pipe.parameters())
        if saved:
            pipe.load_state_dict(saved[0])
            optimizer.load_state_dict(saved[1])
        for inputs, targets, ids in list(batches())[begin:end]:
            optimizer.zero_grad()
            pipe.train(inputs, targets, ids)
            optimizer.step()
        saved = copy.deepcopy((pipe.state_dict(), optimizer.state_dict()))
    assert_same_bits(weights(stages), weights(halves))


@pytest.mark.parametrize("name", ["topk-ef21", "aq-sgd", "by-sample"])
def test_a_state_replaces_all_of_the_one_before(name):
    results = []
    for trained_before in False, True:
        stages = make_stages()
        pipe = strait.Pipeline(stages, F.cross_entropy, seed=3, batch_size=ROWS, **SCHEMES[name])
        first = copy.deepcopy((pipe.state_dict(), [stage.state_dict() for stage in stages]))
        optimizer = make_optimizer(pipe.parameters())
        for run in range(2 if trained_before else 1):
            if run == 1:
                pipe.load_state_dict(first[0])
                for stage, state in zip(stages, first[1]):
                    stage.load_state_dict(state)
                optimizer = make_optimizer(pipe.parameters())
            for inputs, targets, ids in list(batches())[:4]:
                optimizer.zero_grad()
                pipe.train(inputs, targets, ids)
                optimizer.step()
        results.append(weights(stages))
    assert_same_bits(*results)


@pytest.mark.parametrize("trained_before", [True, False])
def test_a_state_that_does_not_fit_is_refused_and_changes_nothing(trained_before):
    """Where nothing has been trained, the next call says so."""
    results = []
    for refuses in False, True:
        stages = make_stages()
        pipe = strait.Pipeline(stages, F.cross_entropy, seed=3, batch_size=ROWS, **SCHEMES["topk-ef21"])
        optimizer = make_optimizer(pipe.parameters())
        if not trained_before:
            pipe.step = 5
        for number, (inputs, targets, ids) in enumerate(list(batches())[:4]):
            optimizer.zero_grad()
            if refuses and number == (2 if trained_before else 0):
                step, links = pipe.step, pipe.state_dict()["links"]
                bad = {**links, "boundary0.what": torch.zeros(3)}
                with pytest.raises(ValueError, match='its links have no tensor "boundary0.what"'):
                    pipe.load_state_dict({"step": 77, "links": bad})
                    pipe.load_state_dict({"step": 78, "links": bad})
                    pipe.train(inputs, targets, ids)
                assert pipe.step == step and pipe.state_dict()["links"].keys() == links.keys()
            pipe.train(inputs, targets, ids)
            optimizer.step()
        results.append(weights(stages))
    assert_same_bits(*results)


@pytest.mark.parametrize("feedback", ["ef", "ef21", "ef21,slots=sample", "aq-sgd"])
def test_a_state_of_other_shapes_is_named(feedback):
    x, y, ids = next(batches())

    def pipe(width):
        stages = [nn.Linear(6, width), nn.Linear(width, 3)]
        return strait.Pipeline(stages, F.cross_entropy, activations="topk:0.5", feedback=(feedback, "none"))

    trained, other = pipe(8), pipe(10)
    trained.train(x, y, ids)
    other.load_state_dict(trained.state_dict())
    with pytest.raises(ValueError, match="^boundary boundary0, activation, .*: its feedback keeps .*, found"):
        other.train(x, y, ids)


@pytest.mark.parametrize("state, kind, text", [
    ({}, ValueError, 'expected the state of a pipeline, a dictionary of "step" and "links"'),
    ({"step": "3", "links": {}}, TypeError, "step: expected an integer, found str"),
    ({"step": -1, "links": {}}, ValueError, "step: expected a number from 0 to 9223372036854775807, found -1"),
    ({"step": 3, "links": {"boundary0.estimate": [1.0]}}, ValueError,
     "expected tensors by name, found list by 'boundary0.estimate'"),
])
def test_what_is_no_state_is_refused(state, kind, text):
    pipe = strait.Pipeline(make_stages(), F.cross_entropy)
    with pytest.raises(kind, match=text) as error:
        pipe.load_state_dict(state)
    assert "\n" not in str(error.value)
    assert pipe.step == 0 and not pipe.state_dict()["links"]


def test_modules_keep_their_modes():
    stages = make_stages()
    stages[1].append(nn.Dropout(0.5))
    stages[1][0].eval()
    modes = [module.training for stage in stages for module in stage.modules()]
    pipe = strait.Pipeline(stages, F.cross_entropy)
    inputs, targets, _ = next(batches())
    pipe.train(inputs, targets)
    assert [module.training for stage in stages for module in stage.modules()] == modes


class Broken(nn.Linear):

    def forward(self, x):
        if self.training:
            raise LookupError("no such word\nand more")
        return super().forward(x)


def test_bad_input_is_refused():
    stages = make_stages()
    x, y, _ = next(batches())
    for arguments, error, text in [
        ({"activations": "quant:99"}, ValueError, "quant"),
        ({"activations": ["quant:4"]}, ValueError, "activations: expected one spec, or one for each of 3 boundaries"),
        ({"activations": lambda x: x}, TypeError, "activations: expected a spec, or one for each boundary, found function"),
        ({"feedback": 3}, TypeError, "feedback: expected a spec, a pair of them, or a list"),
        ({"correct": 3}, TypeError, "correct: expected a function, found int"),
        ({"correct": nn.Flatten}, TypeError, "correct: expected a function, found a class; a module of it is Flatten()"),
        ({"group": "gloo"}, TypeError, "group: expected a process group that this process is in, found str"),
        ({"timeout": "1 s"}, TypeError, "timeout: expected a number, found str"),
        ({"timeout": 0}, ValueError, "timeout: expected 1 ms to 100 years, found 0 s"),
        ({"names": "abc"}, TypeError, "names: expected one for each boundary, found str"),
        ({"feedback": "ef22"}, ValueError, "did you mean"),
        ({"schedule": "2f2b"}, ValueError, "2f2b"),
        ({"micro_batches": 0}, ValueError, "micro_batches: expected a number from 1 to 2147483647, found 0"),
        ({"micro_batches": "4"}, TypeError, "micro_batches: expected an integer, found str"),
        ({"batch_size": 1.5}, TypeError, "batch_size: expected an integer, found float"),
        ({"schedule": 3}, TypeError, "schedule: expected a string, found int"),
        ({"replica_codec": None}, TypeError, "replica_codec: expected a string, found NoneType"),
        ({"count": 3}, TypeError, "count: expected a function, found int"),
        ({"names": ["a", "a", "b"]}, ValueError, "expected a name of its own"),
        ({"names": ["a", "b", 3]}, TypeError, "names: expected a string, found int"),
        ({"replicas": 2}, ValueError, "replicas: expected a number that divides the 1 processes, found 2"),
        ({"activations": "quant:4", "feedback": "ef", "micro_batches": 2}, ValueError, "micro-batches"),
        ({"device": "meta"}, ValueError, "expected meta"),
        ({"seed": 2**63}, ValueError, "seed: expected a number from -9223372036854775808 to 9223372036854775807"),
        ({"feedback": ("ef", "ef", "ef")}, ValueError, "feedback: expected a spec, or a pair of them"),
        ({"feedback": ["ef", ("ef", 3), "ef"]}, ValueError, "found ('ef', 3)"),
    ]:
        with pytest.raises(error, match=re.escape(text)) as raised:
            strait.Pipeline(stages, F.cross_entropy, **arguments)
        assert "\n" not in str(raised.value)
    with pytest.raises(ValueError, match="^stages: expected at least one, found none$"):
        strait.Pipeline([], F.cross_entropy)
    with pytest.raises(TypeError, match="^loss: expected a function, found str$"):
        strait.Pipeline(stages, "cross_entropy")
    with pytest.raises(TypeError, match=r"^loss: expected a function, found a class; a module of it is CrossEntropyLoss\(\)$"):
        strait.Pipeline(stages, nn.CrossEntropyLoss)
    for wrong, text in [
        (stages[0][0], "stages: expected a list of modules, callables or None, found Linear"),
        (dict(enumerate(stages)), "stages: expected a list of modules, callables or None, found dict"),
        ([stages[0], nn.Tanh], r"stages: stage 1 is a class, Tanh; expected a module, Tanh\(\)"),
    ]:
        with pytest.raises(TypeError, match=f"^{text}$"):
            strait.Pipeline(wrong, F.cross_entropy)
    for inputs, targets, text in [
        ([[1.0] * WIDTH], y, "inputs: expected a tensor or several, found list among them"),
        (3, y, "inputs: expected a tensor or several, found int"),
        ({"x": x}, y, "inputs: expected a tensor or several, found dict"),
        (x, y.tolist(), "targets: expected a tensor, or a tuple or dictionary of them, found int for 0"),
        (x, "y", "targets: expected a tensor, or a tuple or dictionary of them, found str"),
        (x, {"label": y, "mask": None}, "targets: expected a tensor, or a tuple or dictionary of them, found NoneType for 'mask'"),
    ]:
        for run in strait.Pipeline(stages, F.cross_entropy).train, strait.Pipeline(stages, F.cross_entropy).evaluate:
            with pytest.raises(TypeError, match=f"^{text}$"):
                run(inputs, targets)
    for targets, text in [
        ((), "targets: expected a tensor, or a tuple or dictionary of them, found none"),
        ({"label": y, "box": torch.zeros(4, 2)}, "targets: expected tensors of as many rows on one device, found [4, 2] on cpu for 'box'"),
        ((y, torch.zeros(())), "targets: expected tensors of as many rows on one device, found [] on cpu for 1"),
    ]:
        with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
            strait.Pipeline(stages, F.cross_entropy).train(x, targets)
    for step in -1, 2**63:
        with pytest.raises(ValueError, match=f"^step: expected a number from 0 to 9223372036854775807, found {step}$"):
            strait.Pipeline(stages, F.cross_entropy).step = step
    for schedule in "2f2b", "foo":
        with pytest.raises(ValueError, match=f'unknown schedule "{schedule}".*; expected one of: gpipe, 1f1b, interleaved$'):
            strait.Pipeline(stages, F.cross_entropy, schedule=schedule)
    with pytest.raises(ValueError, match=r"^stages: 1\.1\.weight is the same parameter as 0\.0\.weight; expected each that is trained "):
        strait.Pipeline([stages[0], nn.Sequential(stages[1], stages[0][0])], F.cross_entropy)
    with pytest.raises(ValueError, match="expected modules, callables or None, found int"):
        strait.Pipeline([stages[0], 3], F.cross_entropy)
    with pytest.raises(ValueError, match="stage 1 cannot run on what stage 0 gives"):
        strait.Pipeline([stages[0], nn.Linear(WIDTH + 1, 3)], F.cross_entropy).train(x, y)
    with pytest.raises(ValueError, match="expected a tensor or a tuple of tensors, found str"):
        strait.Pipeline([stages[0], lambda x: "text", stages[1]], F.cross_entropy).train(x, y)
    with pytest.raises(ValueError, match="expected a tensor or a tuple of tensors, found dict: return those of its tensors that are needed$"):
        strait.Pipeline([stages[0], lambda x: {"logits": x}, stages[1]], F.cross_entropy).train(x, y)
    with pytest.raises(ValueError, match="expected a tensor or a tuple of tensors, found NoneType in a tuple$"):
        strait.Pipeline([stages[0], lambda x: (x, None), stages[1]], F.cross_entropy).train(x, y)
    with pytest.raises(ValueError, match="scalar"):
        strait.Pipeline(stages, lambda out, y: out).train(x, y)
    with pytest.raises(ValueError, match="the targets of a batch of 12 rows"):
        strait.Pipeline(stages, F.cross_entropy).train(x, y[:5])
    with pytest.raises(ValueError, match="expected each sample once in a batch, found id 7 twice"):
        strait.Pipeline(stages, F.cross_entropy, activations="topk:0.5", feedback="aq-sgd").train(x, y, [7] * len(x))
    with pytest.raises(ValueError, match="ids"):
        strait.Pipeline(stages, F.cross_entropy, **SCHEMES["aq-sgd"]).train(x, y)
    marina = "marina:0.5"
    for arguments in {"replica_codec": "quant:4", "replica_feedback": marina}, {"gradients": "quant:4", "feedback": marina}:
        with pytest.raises(ValueError, match="expected feedback that needs its message alone"):
            strait.Pipeline(stages, F.cross_entropy, **arguments)
    with pytest.raises(TypeError):
        strait.Pipeline(stages, F.cross_entropy).train(x, y.tolist())
    with pytest.raises(ValueError, match="mode: expected off, plain or frozen"):
        strait.Pipeline(stages, F.cross_entropy).evaluate(x, y, mode="on")
    pipe = strait.Pipeline(stages, F.cross_entropy)
    for call, text in [
        (lambda: pipe.evaluate(x, y, mode=3), "mode: expected a string, found int"),
        (lambda: pipe.predict(x, mode=None), "mode: expected a string, found NoneType"),
        (lambda: pipe.gather(3), "result: expected a StepResult, found int"),
        (lambda: pipe.runs("0"), "stage: expected an integer, found str"),
        (lambda: pipe.clip_grad_norm_("1"), "max_norm: expected a number, found str"),
        (lambda: pipe.clip_grad_norm_(None), "max_norm: expected a number, found NoneType"),
    ]:
        with pytest.raises(TypeError, match=f"^{text}$"):
            call()
    with pytest.raises(ValueError, match="^stage: expected a number from 0 to 3, found 4$"):
        pipe.runs(4)


def test_what_python_raises_comes_back_as_it_is():
    x, y, _ = next(batches())
    with pytest.raises(LookupError, match="no such word") as raised:
        strait.Pipeline([Broken(6, 4), nn.Linear(4, 3)], F.cross_entropy).train(x, y)
    assert any(entry.name == "forward" for entry in raised.traceback)

    class Backward(torch.autograd.Function):

        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, gradient):
            raise LookupError("on the way back")

    with pytest.raises(LookupError, match="on the way back") as raised:
        strait.Pipeline([nn.Linear(6, 4), Backward.apply, nn.Linear(4, 3)], F.cross_entropy).train(x, y)
    assert any(entry.name == "backward" for entry in raised.traceback)
    with pytest.raises(strait.NumericError, match="boundary0"):
        strait.Pipeline(make_stages(), F.cross_entropy, activations="quant:4").train(x * float("inf"), y)


def test_one_process_goes_on_after_a_batch_that_failed():
    x, y, _ = next(batches())

    class Diverging(nn.Linear):
        diverges = False

        def forward(self, x):
            return super().forward(x) * (torch.nan if self.diverges else 1)

    middle = Diverging(4, 4)
    pipe = strait.Pipeline([nn.Linear(6, 4), middle, nn.Linear(4, 3)], F.cross_entropy, micro_batches=3,
                           activations="quant:4,scope=sample", feedback=("ef21", "none"))
    pipe.train(x, y)
    middle.diverges = True
    with pytest.raises(strait.NumericError, match="boundary1, activation, micro-batch 0"):  # boundary0 is ahead
        pipe.train(x, y)
    middle.diverges = False
    pipe.train(x, y)
    links = pipe.state_dict()["links"]
    for name, tensor in links.items():
        assert torch.equal(tensor, links[name.replace("sender", "receiver")]), name


def test_what_a_module_raises_in_the_first_batch_is_the_cause():
    """Before it the stages are tried on a row of zeros."""
    x, y, _ = next(batches())

    def fails(error):

        def stage(x):
            raise error

        return strait.Pipeline([stage, nn.Linear(4, 3)], F.cross_entropy)

    missing = KeyError("word")
    with pytest.raises(ValueError, match=r"stage 0 cannot run on a row of the inputs, .*: KeyError: 'word'$") as raised:
        fails(missing).train(x, y)
    assert raised.value.__cause__ is missing
    assert missing.__traceback__ is not None
    with pytest.raises(ValueError, match="found str") as raised:
        strait.Pipeline([lambda x: "text", nn.Linear(4, 3)], F.cross_entropy).train(x, y)
    assert raised.value.__cause__ is None
    for no_exception in KeyboardInterrupt, SystemExit:
        with pytest.raises(no_exception):
            fails(no_exception()).train(x, y)


@pytest.mark.parametrize("case", ["raises", "diverges", "differs", "name", "longer", "spec", "list", "targets", "limit", "mode",
                                  "low limit", "odd mode", "state", "vanishes"])
def test_the_others_hear_of_a_process_that_fails(case):
    done = torchrun("failing_pipeline.py", case, processes=3, check=False, timeout=120)
    heard = dict(re.findall(r"rank (\d): (.*)", done.stdout))
    assert heard.keys() >= {"0", "2"}, done.stdout
    expected = {
        "raises": ("LookupError no such word", "RuntimeError .*the first to fail was rank 1: LookupError: no such word"),
        "diverges": ("NumericError .*boundary1", "NumericError .*rank 1: .*boundary1"),
        "differs": ("RuntimeError .*micro_batches", "RuntimeError .*micro_batches"),
        "name": ("RuntimeError .*has name of boundary 0 = boundary0, this one other", "RuntimeError .*has name of boundary 0 = other"),
        "longer": ("RuntimeError .*has stages = 3, this one 6", "RuntimeError .*has stages = 6"),
        "spec": ('ValueError codec "quant:99": ', 'RuntimeError .*the first to fail was rank 1: codec "quant:99": '),
        "list": ("ValueError activations: expected one spec", "RuntimeError .*the first to fail was rank 1: activations: expected"),
        "targets": ("TypeError targets: expected a tensor", "RuntimeError .*the first to fail was rank 1: targets: expected"),
        "limit": ("TypeError max_norm: expected a number, found str", "RuntimeError .*the first to fail was rank 1: max_norm: expected"),
        "mode": ("TypeError mode: expected a string, found int", "RuntimeError .*the first to fail was rank 1: mode: expected"),
        "low limit": ("ValueError a norm of gradients: expected a limit above 0", "RuntimeError .*the first to fail was rank 1: a norm of"),
        "odd mode": ('ValueError mode: expected off, plain or frozen, found "on"', "RuntimeError .*the first to fail was rank 1: mode: expected"),
        "state": ("ValueError .*no link's", "RuntimeError .*the first to fail was rank 1: .*no link's"),
        "vanishes": (None, "RuntimeError .*rank 1 is gone|RuntimeError .*the first to fail was"),
    }[case]
    for rank, text in heard.items():
        assert re.match(expected[0 if rank == "1" else 1], text), done.stdout
    assert ("1" in heard) == (case != "vanishes")


@pytest.mark.parametrize("place, function", [("backward", "backward"), ("a hook", "raising_hook"), ("a recomputation", "once")])
def test_what_python_raises_in_a_backward_pass_comes_back_as_it_is(place, function):
    done = torchrun("failing_pipeline.py", f"raises in {place}", processes=2, check=False, timeout=120)
    assert re.search(f"rank 1: LookupError no such word in {function}$", done.stdout, re.MULTILINE), done.stdout
    assert re.search("rank 0: RuntimeError .*the first to fail was rank 1: no such word", done.stdout), done.stdout


def test_ctrl_c_in_a_backward_pass_of_pythons_ends_it():
    done = torchrun("failing_pipeline.py", "interrupts itself", processes=2, check=False, timeout=120)
    assert re.search(r"rank 1: KeyboardInterrupt after [0-6]\.\d s", done.stdout), done.stdout
    assert re.search("rank 0: RuntimeError .*the first to fail was rank 1", done.stdout), done.stdout


def test_ctrl_c_ends_a_wait():
    done = torchrun("failing_pipeline.py", "interrupts", processes=2, check=False, timeout=120)
    assert re.search(r"rank 0: KeyboardInterrupt after [0-3]\.\d s", done.stdout), done.stdout
    assert re.search(r"rank 1: RuntimeError .*rank 0.*interrupted", done.stdout), done.stdout
