"""A pipeline in which one process fails; each says what it heard. failing_pipeline.py CASE, under torchrun."""

import os
import signal
import sys
import threading
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

import strait

CASE = sys.argv[1]


class Failing(nn.Linear):

    def forward(self, x):
        if self.training and CASE == "raises":
            raise LookupError("no such word")
        if self.training and CASE == "vanishes":
            os._exit(0)
        if self.training and CASE == "interrupts":
            time.sleep(8)
        return super().forward(x) * (float("nan") if self.training and CASE == "diverges" else 1.0)


def say(text):
    """In one piece: torchrun's processes write without a buffer, where print() writes the end of the line by itself."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    began = time.monotonic()
    if CASE == "interrupts" and rank == 0:

        def interrupt():
            nonlocal began
            time.sleep(4)
            began = time.monotonic()
            os.kill(os.getpid(), signal.SIGINT)

        threading.Thread(target=interrupt, daemon=True).start()
    try:
        stages = [nn.Linear(6, 8), Failing(8, 8), nn.Linear(8, 3)][:dist.get_world_size()]
        pipe = strait.Pipeline(stages, F.cross_entropy, activations="quant:4", timeout=30,
                               micro_batches=2 if CASE == "differs" and rank == 1 else 1)
        for _ in range(3):
            pipe.train(torch.ones(4, 6), torch.zeros(4, dtype=torch.long))
    except KeyboardInterrupt:
        say(f"rank {rank}: KeyboardInterrupt after {time.monotonic() - began:.1f} s")
    except Exception as error:
        say(f"rank {rank}: {type(error).__name__} {error}")
    else:
        say(f"rank {rank}: trained")
    time.sleep(2)  # torchrun ends the others as soon as one has gone
    os._exit(0)


if __name__ == "__main__":
    main()
