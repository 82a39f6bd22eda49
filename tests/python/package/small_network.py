"""One small network in four stages, an "mlp" of the program's, its batches, and its training by Pipeline, in one process or
under torchrun.

small_network.py FOLDER trains with every scheme in SCHEMES over the processes that there are, and leaves in FOLDER what
each process trained.
"""

import pathlib
import sys

import torch
import torch.nn.functional as F
from torch import nn

import networks
import strait

SEED = 3
EPOCHS = 10
SAMPLES = 20
ROWS = 12
WIDTH = 20
SAMPLE_SHAPE = (6,)
CLASSES = 3
#: Arguments of Pipeline and of Boundary.
SCHEMES = {
    "none": {},
    "quant": {"activations": "quant:4", "gradients": "quant:4"},
    "one-way": {"activations": "quant:4", "gradients": "topk:0.2", "feedback": ("none", "ef")},
    "topk-ef21": {"activations": "topk:0.1", "gradients": "topk:0.1", "feedback": "ef21"},
    "aq-sgd": {"activations": "quant:4", "gradients": "quant:8", "feedback": "aq-sgd"},
    "by-sample": {"activations": "topk:0.1", "gradients": "quant:4",
                  "feedback": ("diana:0.5,slots=sample", "ef:0.5,slots=sample,format=quant:4")},
    "reuse": {"activations": "topk:0.3", "gradients": "topk:0.3", "reuse_indices": True},
    "stochastic": {"activations": "quant:4,rounding=stochastic", "gradients": "quant:4,rounding=stochastic"},
}


def make_stages():
    torch.manual_seed(11)
    stages = [nn.Sequential(nn.Linear(inputs, WIDTH), nn.ReLU()) for inputs in (*SAMPLE_SHAPE, WIDTH, WIDTH)]
    return [*stages, nn.Linear(WIDTH, CLASSES)]


def weights_of(stages):
    """By their names in a file of the program's."""
    named = {f"hidden.{i}.{name}": tensor for i in range(3) for name, tensor in stages[i][0].state_dict().items()}
    return named | {f"head.{name}": tensor for name, tensor in stages[3].state_dict().items()}


def samples():
    """Inputs and targets of the data set."""
    generator = torch.Generator().manual_seed(5)
    return (torch.randn(SAMPLES, *SAMPLE_SHAPE, generator=generator),
            torch.randint(CLASSES, (SAMPLES,), generator=generator))


def batches():
    """Inputs, targets and ids of every step, in the program's order: two batches an epoch, the second one short."""
    inputs, targets = samples()
    for epoch in range(EPOCHS):
        for ids in torch.tensor(networks.epoch_order(SEED, epoch, SAMPLES)).split(ROWS):
            yield inputs[ids], targets[ids], ids


def make_optimizer(parameters):
    return torch.optim.SGD(parameters, lr=0.05, momentum=0.9)


def train_pipeline(scheme, stages, **arguments):
    """Trains by strait.Pipeline; gives the losses that this process knows of."""
    pipe = strait.Pipeline(stages, F.cross_entropy, seed=SEED, **scheme, **arguments)
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
