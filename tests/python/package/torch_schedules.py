"""One network by torch.distributed.pipelining: with torch's stages, with strait's, with compression.

torch_schedules.py OUT, under torchrun with two processes: rank 0 writes what all schedules gave as JSON.
"""

import json
import sys
import zlib

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed import pipelining
from torch.distributed.pipelining.schedules import get_schedule_class

import strait
import strait.pipelining

MICRO_BATCHES = 4
ROWS = 8
STEPS = 4
#: Schedules by their names, and how stages lie on two processes: by turns, or in a V.
SCHEDULES = {
    "GPipe": [[0], [1]],
    "1F1B": [[0], [1]],
    "Interleaved1F1B": [[0, 2], [1, 3]],
    "LoopedBFS": [[0, 2], [1, 3]],
    "InterleavedZeroBubble": [[0, 2], [1, 3]],
    "ZBVZeroBubble": [[0, 3], [1, 2]],
    "DualPipeV": [[0, 3], [1, 2]],
}
SCHEMES = {
    "none": {},
    "quant": {"activations": "quant:8", "gradients": "quant:8"},
    "ef": {"activations": "quant:4", "gradients": "topk:0.5,index=bitmap", "feedback": "ef"},
    "pair": {"activations": "quant:4", "gradients": "topk:0.5,index=bitmap", "feedback": ("ef21", "ef")},
}


def make_modules(count):
    torch.manual_seed(4)
    sizes = [6] + [16] * (count - 1) + [3]
    return [nn.Sequential(nn.Linear(a, b), nn.Tanh()) for a, b in zip(sizes, sizes[1:])]


def batches():
    """Inputs and classes, step by step."""
    generator = torch.Generator().manual_seed(1)
    for _ in range(STEPS):
        yield torch.randn(ROWS, 6, generator=generator), torch.randint(3, (ROWS,), generator=generator)


def train(name, make_stage):
    """The losses and the checksum of the weights of this process's stages."""
    layout = SCHEDULES[name]
    count = sum(map(len, layout))
    modules = make_modules(count)
    mine = layout[dist.get_rank()]
    stages = [make_stage(modules[i], i, count, torch.device("cpu")) for i in mine]
    kind = get_schedule_class(name)
    several = len(mine) > 1
    schedule = kind(stages if several else stages[0], n_microbatches=MICRO_BATCHES, loss_fn=F.cross_entropy)
    parameters = [parameter for i in mine for parameter in modules[i].parameters()]
    optimizer = torch.optim.SGD(parameters, lr=0.3)
    losses = []
    for x, y in batches():
        optimizer.zero_grad()
        found = []
        arguments = (x,) if 0 in mine else ()
        if count - 1 in mine:
            schedule.step(*arguments, target=y, losses=found)
        else:
            schedule.step(*arguments)
        losses.append([loss.item() for loss in found])
        optimizer.step()
    sums = [zlib.crc32(parameter.detach().numpy().tobytes()) for parameter in parameters]
    if not hasattr(stages[0], "bytes"):
        return losses, sums, []
    sent = [stage.bytes()._asdict() for stage in stages]
    assert [stage.bytes(reset=True)._asdict() for stage in stages] == sent
    assert all(stage.bytes() == (0, 0, 0) for stage in stages)
    return losses, sums, sent


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    results = {}
    for name in SCHEDULES:
        results[name, "torch"] = train(name, pipelining.PipelineStage)
        for scheme, arguments in SCHEMES.items():
            results[name, scheme] = train(name, lambda *each: strait.pipelining.Stage(*each, **arguments))
    everything = [None] * dist.get_world_size()
    dist.all_gather_object(everything, results)
    if dist.get_rank() == 0:
        with open(sys.argv[1], "w") as out:
            json.dump({" ".join(key): [each[key] for each in everything] for key in results}, out)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
