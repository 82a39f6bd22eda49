"""What strait.Pipeline takes as stages and loss, and what it does with them."""

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
