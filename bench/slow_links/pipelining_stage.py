"""One of four processes that train ResNet-18 from Python, a stage each: by torch.distributed.pipelining with torch's stage or
with strait's, or by strait.Pipeline. Rank 0 prints {"samples_per_second": ..., "steps": ..., "seconds": ..., "loss": ...}.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe

import strait
import strait.pipelining
from torch_pipeline import make_stage

Step = Callable[[], float]


def pipelining_step(stage_type: Callable[..., PipelineStage], module: torch.nn.Module, x: Tensor, y: Tensor,
                    micro_batches: int) -> Step:
    rank = dist.get_rank()
    stage = stage_type(module, rank, dist.get_world_size(), torch.device("cpu"))
    schedule = ScheduleGPipe(stage, micro_batches, loss_fn=F.cross_entropy)

    def step() -> float:
        losses: list[Tensor] = []
        if rank == 0:
            schedule.step(x)
        elif stage.is_last:
            schedule.step(target=y, losses=losses)
        else:
            schedule.step()
        return torch.stack(losses).mean().item() if losses else 0.0

    return step


def pipeline_step(modules: list[torch.nn.Module | None], x: Tensor, y: Tensor, micro_batches: int, scheme: dict[str, str]) -> Step:
    pipe = strait.Pipeline(modules, F.cross_entropy, schedule="gpipe", micro_batches=micro_batches, **scheme)
    return lambda: pipe.train(x, y).loss or 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--way", choices=["torch", "stage", "pipeline"], required=True)
    parser.add_argument("--codec", default="none")
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument("--micro-batches", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=15.0, help="to train after the warm-up, at least two steps")
    flags = parser.parse_args()

    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    dist.init_process_group("gloo")
    rank, count = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    x, y = torch.randn(flags.batch, 3, 32, 32), torch.randint(10, (flags.batch,))
    module = make_stage(rank)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.01, momentum=0.9, weight_decay=5e-4)
    scheme = {"activations": flags.codec, "gradients": flags.codec}
    if flags.way == "pipeline":
        step = pipeline_step([module if i == rank else None for i in range(count)], x, y, flags.micro_batches, scheme)
    else:
        kind = PipelineStage if flags.way == "torch" else lambda *each: strait.pipelining.Stage(*each, **scheme)
        step = pipelining_step(kind, module, x, y, flags.micro_batches)

    def train() -> float:
        loss = step()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    for _ in range(2):  # the first step finds the shapes
        train()
    dist.barrier()
    begin = time.monotonic()
    train()
    dist.barrier()
    steps = torch.tensor([max(2, round(flags.seconds / (time.monotonic() - begin)))])
    dist.broadcast(steps, src=0)
    begin = time.monotonic()
    for _ in range(int(steps)):
        loss = train()
    dist.barrier()
    seconds = time.monotonic() - begin
    shown = torch.tensor([loss])
    dist.broadcast(shown, src=count - 1)
    if rank == 0:
        print(json.dumps({"samples_per_second": int(steps) * flags.batch / seconds, "steps": int(steps), "seconds": seconds,
                          "loss": shown.item(), "torch": torch.__version__}))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
