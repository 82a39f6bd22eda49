"""A pipeline in which one process fails; each says what it heard. failing_pipeline.py CASE, under torchrun."""

import os
import signal
import sys
import threading
import time
import traceback

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

import strait

CASE = sys.argv[1]


class Raising(torch.autograd.Function):

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        raise LookupError("no such word")


def raising_hook(gradient):
    raise LookupError("no such word")


def interrupting_hook(gradient):
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(8)


def once(x):
    if torch._C._current_graph_task_id() != -1:
        raise LookupError("no such word")
    return x.tanh()


class Failing(nn.Linear):

    def forward(self, x):
        if self.training and CASE == "raises":
            raise LookupError("no such word")
        if self.training and CASE == "vanishes":
            os._exit(0)
        if self.training and CASE == "interrupts":
            time.sleep(8)
        y = super().forward(x) * (float("nan") if self.training and CASE == "diverges" else 1.0)
        if CASE == "raises in backward":
            return Raising.apply(y)
        if self.training and CASE in ("raises in a hook", "interrupts itself"):
            y.register_hook(raising_hook if CASE == "raises in a hook" else interrupting_hook)
        return checkpoint(once, y, use_reentrant=False) if CASE == "raises in a recomputation" else y


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
        names = ["other", "boundary1"] if CASE == "name" and rank == 1 else None
        if CASE == "longer" and rank == 1:
            stages += [nn.Linear(3, 3) for _ in range(3)]
        activations = {"spec": "quant:99", "list": ["quant:4"]}.get(CASE, "quant:4") if rank == 1 else "quant:4"
        pipe = strait.Pipeline(stages, F.cross_entropy, activations=activations, names=names, timeout=30,
                               micro_batches=2 if CASE == "differs" and rank == 1 else 1)
        if CASE == "state" and rank == 1:
            pipe.load_state_dict({"step": 0, "links": {"no link's": torch.zeros(1)}})
        for _ in range(3):
            pipe.train(torch.ones(4, 6), "zeros" if CASE == "targets" and rank == 1 else torch.zeros(4, dtype=torch.long))
            pipe.clip_grad_norm_({"limit": "one", "low limit": 0.0}.get(CASE, 1.0) if rank == 1 else 1.0)
            pipe.predict(torch.ones(4, 6), {"mode": 3, "odd mode": "on"}.get(CASE, "plain") if rank == 1 else "plain")
    except KeyboardInterrupt:
        say(f"rank {rank}: KeyboardInterrupt after {time.monotonic() - began:.1f} s")
    except Exception as error:
        say(f"rank {rank}: {type(error).__name__} {error} in {traceback.extract_tb(error.__traceback__)[-1].name}")
    else:
        say(f"rank {rank}: trained")
    time.sleep(2)  # torchrun ends the others as soon as one has gone
    os._exit(0)


if __name__ == "__main__":
    main()
