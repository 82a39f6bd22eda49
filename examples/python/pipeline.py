"""A network of one's own in four stages, one for each process, with compressed messages between them.

    torchrun --nproc-per-node 4 examples/python/pipeline.py [--activations quant:4] [--gradients quant:8] [--feedback ef21]

Without torchrun one process runs all stages, with the same losses.
"""

import argparse

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

import strait


def spirals(points: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Points of the plane, of which the class is that of the spiral they lie on."""
    classes = torch.randint(3, (points,))
    radius = torch.rand(points) + 0.1
    angle = radius * 5 + classes * 2.1 + torch.randn(points) * 0.1
    return torch.stack([radius * angle.cos(), radius * angle.sin()], 1), classes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--activations", default="quant:4")
    parser.add_argument("--gradients", default="quant:8")
    parser.add_argument("--feedback", default="none")
    parser.add_argument("--steps", type=int, default=100)
    flags = parser.parse_args()
    torch.set_num_threads(1)
    if dist.is_torchelastic_launched():
        dist.init_process_group("gloo")

    torch.manual_seed(7)  # the same weights and batches in every process
    stages = [
        nn.Sequential(nn.Linear(2, 64), nn.Tanh()),
        nn.Sequential(nn.Linear(64, 64), nn.GELU()),
        nn.Sequential(nn.Linear(64, 32), nn.ReLU()),
        nn.Linear(32, 3),
    ]
    inputs, classes = spirals(512)
    pipe = strait.Pipeline(stages, F.cross_entropy, activations=flags.activations, gradients=flags.gradients,
                           feedback=flags.feedback, correct=lambda scores, y: (scores.argmax(1) == y).sum())
    optimizer = torch.optim.Adam(pipe.parameters(), lr=0.005)
    for step in range(1, flags.steps + 1):
        optimizer.zero_grad()
        result = pipe.train(inputs, classes)
        optimizer.step()
        if step % 20 == 0:
            everywhere = pipe.gather(result)
            if pipe.rank == 0:
                print(f"step {step:3}  loss {everywhere.loss:.6f}  right {everywhere.correct / everywhere.rows:.1%}  "
                      f"{everywhere.raw_bytes / everywhere.wire_bytes:.1f} times fewer bytes")
    if dist.is_initialized():
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
