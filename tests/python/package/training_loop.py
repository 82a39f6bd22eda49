"""What a loop does besides training a batch, over two processes: accumulation, clipping, prediction, frozen parameters.

training_loop.py FOLDER replicas|stages leaves in FOLDER what each process saw; see pipeline_loop_test.py.
"""

import itertools
import pathlib
import sys

import torch
import torch.nn.functional as F

import strait
from small_network import batches, make_stages

LIMIT = 0.05


def gradients(stages):
    return {f"{i}.{name}": parameter.grad.clone() for i, stage in enumerate(stages)
            for name, parameter in stage.named_parameters() if parameter.grad is not None}


def with_replicas(rank):
    """Each process has all stages and every second batch."""
    stages = make_stages()
    stages[0].requires_grad_(False)
    pipe = strait.Pipeline(stages, F.cross_entropy, replicas=2, micro_batches=2, batch_size=12)
    result = {"replica": pipe.replica, "parameters": len(pipe.parameters())}
    for call, (inputs, targets, _) in enumerate(itertools.islice(batches(), 2 * rank, 2 * rank + 2)):
        pipe.train(inputs, targets)
        result[f"after {call + 1}"] = gradients(stages)
    stages[0].requires_grad_(True)
    try:
        pipe.train(inputs, targets)
    except (ValueError, RuntimeError) as error:
        result["refusal"] = str(error)
    return result


def with_stages():
    """Each process has two stages of four."""
    stages = make_stages()
    pipe = strait.Pipeline(stages, F.cross_entropy, schedule="interleaved", micro_batches=2)
    inputs, targets, _ = next(batches())
    predicted = pipe.predict(inputs)
    pipe.train(inputs, targets)
    return {"predicted": predicted, "norm": pipe.clip_grad_norm_(LIMIT), "clipped": gradients(stages),
            "again": pipe.clip_grad_norm_(1e3)}


def main():
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo")
    rank = torch.distributed.get_rank()
    result = with_replicas(rank) if sys.argv[2] == "replicas" else with_stages()
    torch.save(result, pathlib.Path(sys.argv[1]) / f"{rank}.pt")
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
