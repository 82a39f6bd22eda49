"""One small network in four stages, its batches, and its training in several ways; under torchrun: by Pipeline.

small_network.py FOLDER trains with every scheme in SCHEMES over the processes that there are, and leaves in FOLDER what
each process trained.
"""

import pathlib
import sys

import torch
import torch.nn.functional as F
from torch import nn

import strait

STEPS = 20
ROWS = 12
#: Arguments of Pipeline and of Boundary.
SCHEMES = {
    "none": {},
    "quant": {"activations": "quant:4", "gradients": "quant:4"},
    "one-way": {"activations": "quant:4", "gradients": "topk:0.2", "feedback": ("none", "ef")},
    "topk-ef21": {"activations": "topk:0.1", "gradients": "topk:0.1", "feedback": "ef21"},
    "aq-sgd": {"activations": "quant:4", "gradients": "quant:8", "feedback": "aq-sgd"},
    "reuse": {"activations": "topk:0.3", "gradients": "topk:0.3", "reuse_indices": True},
    "stochastic": {"activations": "quant:4,rounding=stochastic", "gradients": "quant:4,rounding=stochastic"},
}


def make_stages():
    torch.manual_seed(11)
    return [
        nn.Sequential(nn.Linear(6, 20), nn.Tanh()),
        nn.Sequential(nn.Linear(20, 24), nn.GELU()),
        nn.Sequential(nn.Linear(24, 16), nn.ReLU()),
        nn.Linear(16, 3),
    ]


def batches():
    """Inputs, targets and ids of every step: three batches in turn, the last one short."""
    generator = torch.Generator().manual_seed(5)
    inputs = torch.randn(3 * ROWS - 4, 6, generator=generator)
    targets = torch.randint(3, (len(inputs),), generator=generator)
    for step in range(STEPS):
        ids = torch.arange(step % 3 * ROWS, min((step % 3 + 1) * ROWS, len(inputs)))
        yield inputs[ids], targets[ids], ids


def make_optimizer(parameters):
    return torch.optim.SGD(parameters, lr=0.05, momentum=0.9)


def train_pipeline(scheme, stages, **arguments):
    """Trains by strait.Pipeline; gives the losses that this process knows of."""
    pipe = strait.Pipeline(stages, F.cross_entropy, seed=3, **scheme, **arguments)
    optimizer = make_optimizer(pipe.parameters())
    losses = []
    for inputs, targets, ids in batches():
        optimizer.zero_grad()
        losses.append(pipe.train(inputs, targets, ids).loss)
        optimizer.step()
    return losses


def main():
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo")
    rank = torch.distributed.get_rank()
    processes = torch.distributed.get_world_size()
    for micro_batches in (1, 3):
        for name, scheme in SCHEMES.items():
            stages = make_stages()
            train_pipeline(scheme, stages, micro_batches=micro_batches,
                           schedule="1f1b" if processes == len(stages) else "interleaved")
            for number in range(rank, len(stages), processes):
                torch.save(stages[number].state_dict(),
                           pathlib.Path(sys.argv[1]) / f"{name}-{micro_batches}-stage{number}.pt")
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
