"""What strait.Pipeline takes as stages and loss, and what it does with them."""

import functools

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import strait
from small_network import batches

pytestmark = pytest.mark.usefixtures("one_thread")


class Merging(nn.Linear):
    """Low-rank adaptation as loralib has it: out of training the product of two small matrices is in the weights."""

    def __init__(self, inputs, outputs):
        super().__init__(inputs, outputs)
        self.weight.requires_grad_(False)
        self.a, self.b = nn.Parameter(torch.randn(2, inputs)), nn.Parameter(torch.randn(outputs, 2))
        self.merged = False

    def train(self, mode=True):
        super().train(mode)
        if mode == self.merged:
            self.weight.data += (-1 if mode else 1) * self.b.data @ self.a.data
            self.merged = not mode
        return self

    def forward(self, x):
        return super().forward(x) + (0 if self.merged else x @ self.a.T @ self.b.T)


def test_a_train_of_the_modules_own_is_left_alone():
    x, y, _ = next(batches())
    stages = [Merging(6, 4), nn.Linear(4, 3)]
    weight = stages[0].weight.clone()
    F.cross_entropy(stages[1](stages[0](x)), y).backward()
    expected = stages[0].a.grad
    stages[0].zero_grad()
    strait.Pipeline(stages, F.cross_entropy).train(x, y)
    assert stages[0].training and not stages[0].merged and torch.equal(stages[0].weight, weight)
    assert torch.equal(stages[0].a.grad, expected)
    stages[0].eval()
    merged = stages[0].weight.clone()
    strait.Pipeline(stages, F.cross_entropy).evaluate(x, y)
    assert not stages[0].training and stages[0].merged and torch.equal(stages[0].weight, merged)


class Halves(nn.Module):

    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(6, 4), nn.Linear(4, 3)

    def first(self, x):
        return self.body(x).tanh()

    def second(self, x):
        return self.head(x)


def test_stages_whose_parameters_are_hidden_are_refused():
    x, y, _ = next(batches())
    model = Halves()
    with pytest.raises(ValueError, match="^stages: stage 1 is a method of a module, Halves.second, .*; expected a module with"):
        strait.Pipeline([model.body, model.second], F.cross_entropy)
    for stages, text in [
        ([lambda x: model.body(x), model.head], r"^stage 0 cannot run on a row of the inputs, \[1, 6\]: it is a function that uses"),
        ([model.body, functools.partial(Halves.second, model)], "^stage 1 cannot run on what stage 0 gives, .*; expected a module"),
    ]:
        pipe = strait.Pipeline(stages, F.cross_entropy)
        for call in pipe.train, pipe.evaluate:
            with pytest.raises(ValueError, match=text) as raised:
                call(x, y)
            assert "\n" not in str(raised.value)


def test_functions_without_parameters_are_stages():
    x, y, _ = next(batches())
    model = Halves()
    frozen = nn.Linear(4, 4).requires_grad_(False)
    pipe = strait.Pipeline([model.body, lambda x: frozen(x).tanh(), torch.tanh, model.head], F.cross_entropy)
    loss = pipe.train(x, y).loss
    mine = [parameter.grad.clone() for parameter in model.parameters()]
    model.zero_grad()
    expected = F.cross_entropy(model.head(frozen(model.body(x)).tanh().tanh()), y)
    expected.backward()
    assert loss == expected.item() and all(map(torch.equal, mine, [parameter.grad for parameter in model.parameters()]))


@pytest.mark.parametrize("where", ["activations", "gradients"])
def test_what_is_past_a_half_is_refused(where):

    class Large(nn.Linear):

        def forward(self, x):
            return super().forward(x) * 0 + (60000 if where == "activations" else 0)

    x, y = torch.ones(4, 6).half(), torch.zeros(4, dtype=torch.long)
    stages = [Large(6, 4).half(), nn.Identity()]
    pipe = strait.Pipeline(stages, lambda output, _: (60000 * output.float()).sum(), **{where: "natural"})
    what = {"activations": "tensor 0 that stage 1 gets", "gradients": "the gradient of tensor 0 that stage 0 gives"}[where]
    with pytest.raises(strait.NumericError, match=f"{what}: a value that the receiver sees is past the range of Half"):
        pipe.train(x, y)


def test_a_stage_that_gives_more_in_training_is_refused():

    class Auxiliary(nn.Linear):

        def forward(self, x):
            y = super().forward(x)
            return (y, y.tanh()) if self.training else y

    x, y, _ = next(batches())
    pipe = strait.Pipeline([Auxiliary(6, 4), nn.Linear(4, 3)], F.cross_entropy)
    with pytest.raises(ValueError, match="stage 0 gives 2 tensors, expected 1, as of the first batch in evaluation mode"):
        pipe.train(x, y)


def test_a_compiled_stage_is_given_what_its_module_takes():

    class Masked(nn.Linear):

        def forward(self, x, mask):
            return super().forward(x) * mask

    x, y, _ = next(batches())
    stages = [nn.Linear(6, 4), Masked(4, 3)]
    mask = torch.ones(len(x), 1)
    expected = strait.Pipeline(stages, F.cross_entropy).train(x, y, mask=mask).loss
    compiled = [torch.compile(stage, backend="eager") for stage in stages]
    assert strait.Pipeline(compiled, F.cross_entropy).train(x, y, mask=mask).loss == expected


class Scaled(nn.CrossEntropyLoss):

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(2.0))

    def forward(self, x, y):
        return super().forward(x * self.scale, y)


def test_every_stage_is_given_the_extras_that_it_has_arguments_for():

    class Masked(nn.Linear):

        def forward(self, x, *, mask, scale=None):
            assert not mask.requires_grad
            y = super().forward(x) * mask
            return y if scale is None else y * scale

    class Anything(nn.Linear):

        def forward(self, x, **extras):
            assert set(extras) == ({"mask", "scale"} if "scale" in extras else {"mask"})
            return super().forward(x)

    torch.manual_seed(0)
    stages = [Masked(6, 6), nn.Tanh(), lambda x, mask: x + mask, Anything(6, 6), nn.Linear(6, 3)]
    x, y = torch.randn(10, 6), torch.randint(3, (10,))
    mask, scale = (torch.rand(10, 6) > 0.5).float(), torch.rand(10, 1)
    pipe = strait.Pipeline(stages, F.cross_entropy)
    assert pipe.train(x, y, mask=mask, scale=scale).messages == 2 * 4
    ours = [parameter.grad.clone() for parameter in pipe.parameters()]
    for parameter in pipe.parameters():
        parameter.grad = None
    output = stages[4](stages[3](stages[2](stages[1](stages[0](x, mask=mask, scale=scale)), mask), mask=mask, scale=scale))
    loss = F.cross_entropy(output, y)
    loss.backward()
    assert all(map(torch.equal, ours, (parameter.grad for parameter in pipe.parameters())))
    assert pipe.evaluate(x, y, mask=mask, scale=scale).loss == loss.item()
    assert torch.equal(pipe.predict(x, mask=mask, scale=scale), output)
    pipe.train(x[:6], y[:6], mask=mask[:6], scale=None)
    for run in (pipe.train, pipe.evaluate):
        with pytest.raises(ValueError, match=r"^mask: expected a row for each of the batch's 10, found a tensor of shape \[9, 6\]$"):
            run(x, y, mask=mask[:9])
    with pytest.raises(ValueError, match=r"^mask: expected a row for each of the batch's 10, found a tensor of shape \[\]$"):
        pipe.predict(x, mask=torch.tensor(1.0))
    with pytest.raises(TypeError, match="^mask: expected a tensor, found bool$"):
        pipe.train(x, y, mask=True)
    few = strait.Pipeline([stages[0], *stages[4:]], F.cross_entropy)
    with pytest.raises(TypeError, match="^msk: expected an argument of a stage's, found none of that name$"):
        few.train(x, y, msk=mask)


def test_a_loss_with_parameters_that_are_trained_is_refused():
    x, y, _ = next(batches())
    model = Halves()
    with pytest.raises(ValueError, match="^loss: its parameter scale requires a gradient .*; expected it in the last stage$"):
        strait.Pipeline([model.body, model.head], Scaled())
    frozen = Scaled().requires_grad_(False)
    expected = F.cross_entropy(2 * model.head(model.body(x)), y).item()
    assert strait.Pipeline([model.body, model.head], frozen).train(x, y).loss == expected
