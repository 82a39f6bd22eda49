"""Networks of the program's in PyTorch, and the order in which it reads its samples."""

import torch
from torch import nn


class Mlp(nn.Module):
    """The model kind "mlp" of the program: the same names, shapes and operations. What stands in `cuts`, by the name of the
    layer before it, is called on the activations behind that layer, such as a Boundary."""

    def __init__(self, width, layers, sample_shape, classes, cuts=None):
        super().__init__()
        sizes = [torch.Size(sample_shape).numel()] + [width] * layers
        self.hidden = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:]))
        self.head = nn.Linear(sizes[-1], classes)
        self.cuts = nn.ModuleDict({name.replace(".", "_"): module for name, module in (cuts or {}).items()})

    def stage(self, number):
        """The layers between two cuts where each hidden layer ends a stage."""
        if number < len(self.hidden):
            layer = self.hidden[number]
            return lambda x: layer(x.flatten(1)).relu_()
        return lambda x: self.head(x.flatten(1))

    def forward(self, x):
        for number in range(len(self.hidden)):
            x = self.stage(number)(x)
            cut = f"hidden_{number}"
            if cut in self.cuts:
                x = self.cuts[cut](x)
        return self.stage(len(self.hidden))(x)

    def weights(self):
        """By name, as a file of the program's has them."""
        return {name: tensor for name, tensor in self.state_dict().items() if not name.startswith("cuts.")}


_MASK = 2**64 - 1
_GOLDEN = 0x9E3779B97F4A7C15


def _mix(x):
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB & _MASK
    return x ^ (x >> 31)


def _key(first, *words):
    key = _mix(first + _GOLDEN & _MASK)
    for word in words:
        key = _mix(key ^ (word + _GOLDEN + (key << 6) & _MASK))
    return key


def epoch_order(seed, epoch, size):
    """The samples of an epoch in the program's order: a shuffle by Fisher and Yates with SplitMix64 (data/epoch_order.cpp)."""
    key = _key(0x6F72646572, seed, epoch)
    order = list(range(size))
    for draw, left in enumerate(range(size, 1, -1), start=1):
        other = _mix(key + draw * _GOLDEN & _MASK) * left >> 64
        order[left - 1], order[other] = order[other], order[left - 1]
    return order
