"""The same training in plain PyTorch, for comparison: one process per stage, GPipe, send and receive over Gloo.

Start one process for each of the four stages with the variables that torchrun sets. Rank 0 prints
{"samples_per_second": ..., "seconds": ..., "steps": ..., "loss": ..., "torch": ...}; steps of the warm-up are not counted.

What a careful user would write: all receives of a step are posted at its start and sends do not block, so that
messages travel while a stage computes. raw sends fp32, fp16 half of that, topk the largest tenth of each sample
as fp32 values and int64 indices, in both directions.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn

WIDTH = 16
CODECS = ("raw", "fp16", "topk")
KEPT = 0.1


def convolution(inputs: int, outputs: int, kernel: int, stride: int) -> nn.Conv2d:
    return nn.Conv2d(inputs, outputs, kernel, stride=stride, padding=kernel // 2, bias=False)


class Block(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.residual = nn.Sequential(convolution(inputs, outputs, 3, stride), nn.BatchNorm2d(outputs),
                                      nn.ReLU(inplace=True), convolution(outputs, outputs, 3, 1),
                                      nn.BatchNorm2d(outputs))
        same = stride == 1 and inputs == outputs
        self.shortcut = nn.Identity() if same else nn.Sequential(convolution(inputs, outputs, 1, stride),
                                                                 nn.BatchNorm2d(outputs))

    def forward(self, x: Tensor) -> Tensor:
        return F.relu_(self.residual(x).add_(self.shortcut(x)))


def make_stage(rank: int) -> nn.Sequential:
    """ResNet-18 for 32 x 32 pictures, cut after layer1, layer2 and layer3."""
    outputs = WIDTH << rank
    if rank == 0:
        stem = [convolution(3, WIDTH, 3, 1), nn.BatchNorm2d(WIDTH), nn.ReLU(inplace=True)]
        return nn.Sequential(*stem, Block(WIDTH, WIDTH, 1), Block(WIDTH, WIDTH, 1))
    layers: list[nn.Module] = [Block(outputs // 2, outputs, 2), Block(outputs, outputs, 1)]
    if rank == 3:
        layers += [nn.AvgPool2d(4), nn.Flatten(), nn.Linear(outputs, 10)]
    return nn.Sequential(*layers)


def output_shape(rank: int, samples: int) -> tuple[int, int, int, int]:
    return samples, WIDTH << rank, 32 >> rank, 32 >> rank


def encode(codec: str, x: Tensor) -> list[Tensor]:
    """The tensors that are sent for x."""
    if codec == "raw":
        return [x]
    if codec == "fp16":
        return [x.half()]
    rows = x.flatten(1)
    indices = rows.abs().topk(math.ceil(KEPT * rows.shape[1]), dim=1, sorted=False).indices
    return [rows.gather(1, indices), indices]


def room_for(codec: str, shape: tuple[int, ...]) -> list[Tensor]:
    """Tensors to receive what encode() made of one of this shape."""
    if codec == "raw":
        return [torch.empty(shape)]
    if codec == "fp16":
        return [torch.empty(shape, dtype=torch.half)]
    sent = shape[0], math.ceil(KEPT * math.prod(shape[1:]))
    return [torch.empty(sent), torch.empty(sent, dtype=torch.int64)]


def decode(codec: str, parts: list[Tensor], shape: tuple[int, ...]) -> Tensor:
    if codec == "raw":
        return parts[0]
    if codec == "fp16":
        return parts[0].float()
    values, indices = parts
    return torch.zeros(shape).flatten(1).scatter_(1, indices, values).view(shape)


class Message:
    """A tensor on its way to this process. It is received from the beginning on, get() waits for it."""

    def __init__(self, codec: str, shape: tuple[int, ...], source: int, tag: int) -> None:
        self._codec = codec
        self._shape = shape
        self._parts = room_for(codec, shape)
        self._pending = [dist.irecv(part, source, tag=2 * tag + i) for i, part in enumerate(self._parts)]

    def get(self) -> Tensor:
        for work in self._pending:
            work.wait()
        return decode(self._codec, self._parts, self._shape)


class Outbox:
    """Sends without blocking and keeps what is sent until flush() has seen it go."""

    def __init__(self, codec: str) -> None:
        self._codec = codec
        self._pending: list[tuple[dist.Work, Tensor]] = []

    def send(self, x: Tensor, target: int, tag: int) -> None:
        for i, part in enumerate(encode(self._codec, x)):
            self._pending.append((dist.isend(part, target, tag=2 * tag + i), part))

    def flush(self) -> None:
        for work, _ in self._pending:
            work.wait()
        self._pending.clear()


class Stage:
    def __init__(self, rank: int, codec: str, pictures: list[Tensor], labels: list[Tensor]) -> None:
        self._rank, self._codec = rank, codec
        self._pictures, self._labels = pictures, labels
        self._first, self._last = rank == 0, rank == 3
        self._layers = make_stage(rank)
        self._optimizer = torch.optim.SGD(self._layers.parameters(), lr=0.01, momentum=0.9, weight_decay=5e-4)
        self._outbox = Outbox(codec)

    def step(self) -> float:
        """GPipe: every micro-batch forward, then every one backward. The last stage returns the loss."""
        count = len(self._pictures)
        inputs = [] if self._first else self._expect(self._rank - 1, self._rank - 1)
        gradients = [] if self._last else self._expect(self._rank, self._rank + 1)
        pairs = []
        for i in range(count):
            x = self._pictures[i] if self._first else inputs[i].get().requires_grad_()
            y = self._layers(x)
            if self._last:
                y = F.cross_entropy(y, self._labels[i]) / count
            else:
                self._outbox.send(y.detach(), self._rank + 1, i)
            pairs.append((x, y))
        for i, (x, y) in enumerate(pairs):
            y.backward(None if self._last else gradients[i].get())
            if not self._first:
                self._outbox.send(x.grad, self._rank - 1, i)
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)
        self._outbox.flush()
        return sum(y.item() for _, y in pairs) if self._last else 0.0

    def _expect(self, boundary: int, source: int) -> list[Message]:
        shapes = [output_shape(boundary, len(pictures)) for pictures in self._pictures]
        return [Message(self._codec, shape, source, i) for i, shape in enumerate(shapes)]


def main() -> None:
    parser = argparse.ArgumentParser(description="Pipeline training in plain PyTorch")
    parser.add_argument("--codec", choices=CODECS, default="raw")
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument("--micro-batches", type=int, default=4)
    parser.add_argument("--warm-up", type=int, default=2, help="steps before the clock starts")
    parser.add_argument("--steps", type=int, default=10, help="steps that are timed")
    flags = parser.parse_args()

    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    torch.manual_seed(0)
    pictures = list(torch.randn(flags.batch, 3, 32, 32).chunk(flags.micro_batches))
    labels = list(torch.randint(10, (flags.batch,)).chunk(flags.micro_batches))
    dist.init_process_group("gloo")
    stage = Stage(dist.get_rank(), flags.codec, pictures, labels)
    for _ in range(flags.warm_up):
        stage.step()
    dist.barrier()
    start = time.monotonic()
    for _ in range(flags.steps):
        loss = stage.step()
    dist.barrier()
    seconds = time.monotonic() - start
    shown = torch.tensor([loss])
    dist.broadcast(shown, src=3)
    if dist.get_rank() == 0:
        print(json.dumps({"samples_per_second": flags.steps * flags.batch / seconds, "seconds": seconds,
                          "steps": flags.steps, "loss": shown.item(), "torch": torch.__version__}))
    dist.barrier()
    # The ordered end is skipped: in it PyTorch 2.13 aborts now and then, "terminate called without an active
    # exception", with its process group destroyed and without.
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
