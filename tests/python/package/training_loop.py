"""What a loop does besides training a batch, over two processes: accumulation, clipping, prediction, frozen parameters, a
loader that shuffles, states, targets and batches that processes do not share.

training_loop.py FOLDER replicas|halves|stages|shuffled|apart|targets|elsewhere|rows leaves in FOLDER what each process saw; see pipeline_loop_test.py.
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


def with_halves(rank):
    """Each process has all stages, in bfloat16, and every second batch."""
    stages = [stage.bfloat16() for stage in make_stages()]
    pipe = strait.Pipeline(stages, F.cross_entropy, replicas=2)
    inputs, targets, _ = next(itertools.islice(batches(), rank, None))
    pipe.train(inputs.bfloat16(), targets)
    return gradients(stages)


def with_stages():
    """Each process has two stages of four."""
    stages = make_stages()
    pipe = strait.Pipeline(stages, F.cross_entropy, schedule="interleaved", micro_batches=2)
    inputs, targets, _ = next(batches())
    predicted = pipe.predict(inputs)
    pipe.train(inputs, targets)
    return {"predicted": predicted, "norm": pipe.clip_grad_norm_(LIMIT), "clipped": gradients(stages),
            "again": pipe.clip_grad_norm_(1e3), "names": [name for name, _ in pipe.named_parameters()]}


def refused(call):
    try:
        call()
    except (RuntimeError, ValueError) as error:
        return {"refusal": str(error)}
    return {}


def shuffled(rank):
    """Batches in one order, then the second process has the same samples in another one."""
    pipe = strait.Pipeline(make_stages(), F.cross_entropy, schedule="interleaved", micro_batches=2)
    inputs, targets, _ = next(batches())
    pipe.train(inputs, targets if rank == 1 else None)
    pipe.train(inputs, targets)
    pipe.evaluate(inputs, targets)
    pipe.predict(inputs)
    order = torch.arange(len(targets)) if rank == 0 else torch.arange(len(targets)).flip(0)
    return refused(lambda: pipe.train(inputs[order], targets[order]))


def apart(rank):
    """The first process alone loads a state of before."""
    pipe = strait.Pipeline(make_stages(), F.cross_entropy, schedule="interleaved")
    inputs, targets, _ = next(batches())
    pipe.train(inputs, targets)
    state = pipe.state_dict()
    pipe.train(inputs, targets)
    if rank == 0:
        pipe.load_state_dict(state)
    return refused(lambda: pipe.train(inputs, targets))


def targets_of_others(rank):
    """Several targets, of which the second one is another in every process; before, in the first process there are none."""
    pipe = strait.Pipeline(make_stages(), lambda scores, y: F.cross_entropy(scores, y["label"]), schedule="interleaved")
    inputs, targets, _ = next(batches())
    for second in targets, targets.flip(0):
        pipe.train(inputs, {"label": targets, "second": second} if rank == 1 else None)
        pipe.train(inputs, {"label": targets, "second": second})
    return refused(lambda: pipe.train(inputs, {"label": targets, "second": targets + rank}))


def elsewhere(rank):
    """Each process has the other's stages on meta, as the first of all may be."""
    stages = [stage if number % 2 == rank else stage.to("meta") for number, stage in enumerate(make_stages())]
    pipe = strait.Pipeline(stages, F.cross_entropy, schedule="interleaved")
    inputs, targets, _ = next(batches())
    pipe.train(inputs, targets)
    return {"gradients": gradients(stages)}


def rows(rank):
    """The first batch has another size in every process."""
    pipe = strait.Pipeline(make_stages(), F.cross_entropy, schedule="interleaved")
    inputs, targets, _ = next(batches())
    return refused(lambda: pipe.train(inputs[rank:], targets[rank:]))


def main():
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo")
    rank = torch.distributed.get_rank()
    works = {"replicas": with_replicas, "halves": with_halves, "stages": lambda rank: with_stages(), "shuffled": shuffled, "apart": apart,
             "targets": targets_of_others, "elsewhere": elsewhere, "rows": rows}
    result = works[sys.argv[2]](rank)
    torch.save(result, pathlib.Path(sys.argv[1]) / f"{rank}.pt")
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
