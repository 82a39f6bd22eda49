"""Data parallelism with compressed gradients.

    torchrun --nproc-per-node 4 examples/python/ddp.py --codec topk:0.05 --feedback ef

Rank 0 prints the loss and what each rank has sent to each of the others.
"""

import argparse

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import strait


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--codec", default="topk:0.05")
    parser.add_argument("--feedback", default="ef")
    parser.add_argument("--steps", type=int, default=100)
    options = parser.parse_args()

    dist.init_process_group("gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(7)  # the same weights and data everywhere
    model = nn.Sequential(nn.Linear(32, 128), nn.ReLU(), nn.Linear(128, 8))
    inputs = torch.randn(4096, 32)
    targets = (inputs @ (0.2 * torch.randn(32, 8))).tanh()

    ddp = DistributedDataParallel(model)
    state = strait.DDPState(options.codec, feedback=options.feedback)
    ddp.register_comm_hook(state, strait.ddp_hook)
    optimizer = torch.optim.Adam(ddp.parameters(), 0.003)
    for step in range(options.steps):
        first = step * 256 % len(inputs)
        mine = slice(first + rank, first + 256, ranks)
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(ddp(inputs[mine]), targets[mine])
        loss.backward()
        optimizer.step()
        if rank == 0 and step % 25 == 24:
            print(f"step {step + 1:3}  loss {loss.item():.6f}", flush=True)

    if rank == 0:
        sent = state.bytes()
        print(f"gradients: {sent.sent} bytes to each of {ranks - 1} others, {sent.ratio:.1f} times fewer than {sent.raw}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
