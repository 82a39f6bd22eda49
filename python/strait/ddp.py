"""Compressed gradients between the ranks of a DistributedDataParallel."""

# Without `from __future__ import annotations`: DistributedDataParallel looks at the annotations of a hook.
from typing import Any, NamedTuple, Optional

import torch
import torch.distributed as dist

from . import _C, _load  # noqa: F401
from ._arguments import codec_spec, integer, string


_PASSES_TO_ARRANGE = 3  # after so many of a process DistributedDataParallel's buckets stay as they are


class SentBytes(NamedTuple):
    """What a process has sent in compressed messages: a rank's to each of the others, or a stage's."""

    sent: int  #: with headers, and with the room that makes messages of different sizes alike
    raw: int  #: the same gradients without compression: 4 bytes an element
    messages: int  #: one a bucket and step, or one a tensor at a cut and micro-batch

    @property
    def ratio(self) -> float:
        """Uncompressed over sent bytes; 1 where nothing was sent."""
        return self.raw / self.sent if self.sent else 1.0


class DDPState:
    """The state of :func:`ddp_hook`: what compresses the gradients, and what its feedback keeps, bucket by bucket.

    ::

        ddp = DistributedDataParallel(model)
        ddp.register_comm_hook(strait.DDPState("topk:0.01", feedback="ef"), strait.ddp_hook)

    A process's first step crosses without compression, because DistributedDataParallel arranges its buckets anew after it;
    with ``static_graph=True`` it does so after the second, and what feedback keeps of a bucket that changes begins anew.
    Pickles hold everything but the process group, each rank its own; a process that goes on with one sends its first step
    uncompressed likewise, and buckets until they are arranged as they were. Where they are not after the third step, because the
    model or its buckets have changed, what feedback keeps of them begins anew.

    Args:
        codec: a codec spec, see :func:`codecs`. A bucket is one sample, so that ``topk:0.01`` keeps a hundredth of it.
        feedback: a feedback spec that serves gradients, see :func:`feedbacks`. With ``ef21`` or ``diana`` each rank keeps an
            estimate of every other's gradient.
        process_group: that of the model; None is the default group.
        warmup_steps: steps before compression begins.
        seed: of the draws of codecs that round at random. Ranks, buckets and steps draw apart.

    Raises:
        ValueError: a wrong spec.
    """

    def __init__(self, codec: str, *, feedback: str = "none", process_group: Optional[dist.ProcessGroup] = None,
                 warmup_steps: int = 0, seed: int = 0):
        warmup_steps = integer("warmup_steps", warmup_steps, 0)
        seed = integer("seed", seed)
        _C.BucketExchange(codec_spec("codec", codec), string("feedback", feedback), 0, 1, seed)  # says what is wrong with them
        self.codec, self.feedback, self.warmup_steps, self.seed = codec, feedback, warmup_steps, seed
        self.process_group = process_group
        self.step = 0  #: backward passes so far; keys random draws
        self._passes = 0  # backward passes of this process
        self._parameters: dict[int, list[int]] = {}  # of each bucket that was compressed here, their ids
        self._shapes: dict[int, list[tuple[int, ...]]] = {}  # of the parameters that each bucket's state is of
        self._place: Optional[tuple[int, int]] = None  # rank and ranks
        self._exchange: Optional[_C.BucketExchange] = None
        self._loaded: Optional[dict[str, Any]] = None  # a state that waits for the process group
        self._sent_before = SentBytes(0, 0, 0)  # by the process that was pickled

    def bytes(self) -> SentBytes:
        """What this rank has sent to each of the others so far, compressed."""
        if self._exchange is None:
            return self._sent_before
        messages, raw, sent = self._exchange.traffic()
        before = self._sent_before
        return SentBytes(before.sent + sent, before.raw + raw, before.messages + messages)

    def __getstate__(self) -> dict[str, Any]:
        exchange = self._loaded
        if self._exchange is not None and self._place is not None:
            exchange = {"rank": self._place[0], "ranks": self._place[1], "buckets": self._exchange.state(),
                        "shapes": self._shapes}
        names = ("codec", "feedback", "warmup_steps", "seed", "step")
        return {name: getattr(self, name) for name in names} | {"exchange": exchange, "sent": self.bytes()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["codec"], feedback=state["feedback"], warmup_steps=state["warmup_steps"], seed=state["seed"])
        self.step, self._loaded, self._sent_before = state["step"], state["exchange"], state["sent"]

    def _ready(self) -> _C.BucketExchange:
        if self._exchange is None:
            rank, ranks = dist.get_rank(self.process_group), dist.get_world_size(self.process_group)
            exchange = _C.BucketExchange(self.codec, self.feedback, rank, ranks, self.seed)
            if self._loaded is not None:
                was = self._loaded["rank"], self._loaded["ranks"]
                if was != (rank, ranks):
                    raise ValueError(f"DDPState: it was saved by rank {was[0]} of {was[1]}, this is rank {rank} of {ranks}")
                exchange.load_state(self._loaded["buckets"])
                self._shapes = dict(self._loaded.get("shapes", {}))
            self._exchange, self._loaded, self._place = exchange, None, (rank, ranks)
        return self._exchange

    def _compresses(self, bucket: dist.GradBucket) -> bool:
        if self._passes == 0 or self.step < self.warmup_steps:
            return False
        exchange, index, parameters = self._ready(), bucket.index(), bucket.parameters()
        ids, shapes = [id(each) for each in parameters], [tuple(each.shape) for each in parameters]
        if index in self._parameters:
            if self._parameters[index] != ids:
                exchange.forget(index)
        elif self._shapes.get(index, shapes) != shapes:
            if self._passes < _PASSES_TO_ARRANGE:
                return False  # not arranged yet as when the state was saved
            exchange.forget(index)  # and never will be
        self._parameters[index], self._shapes[index] = ids, shapes
        return True

    def _end_bucket(self, is_last: bool) -> None:
        if is_last:
            self.step += 1
            self._passes += 1


def ddp_hook(state: DDPState, bucket: dist.GradBucket, *others: Any) -> torch.futures.Future[torch.Tensor]:
    """A communication hook: the mean over ranks of what their compressed gradients come to, added in the order of ranks, so
    that all ranks get the same bits.

    Each rank compresses a bucket as soon as it is full; messages travel while the backward pass goes on (one all_gather a
    bucket) and are decoded when all have come. Where the size of a codec's messages varies, they take as much as the largest
    possible one. Gradients of float16 and bfloat16 cross as float32 and are rounded to again.

    Raises:
        TypeError: gradients of another type, another state, or a call of FullyShardedDataParallel, whose hooks have other
            arguments.
        NumericError: of the future, on every rank, where the gradients of one cannot be sent. From ``backward()``
            DistributedDataParallel raises it as RuntimeError.
    """
    if not isinstance(state, DDPState):
        raise TypeError(f"ddp_hook: expected a DDPState, found {type(state).__name__}")
    if others or isinstance(bucket, torch.Tensor):
        raise TypeError("ddp_hook: expected the state and a bucket of DistributedDataParallel; FullyShardedDataParallel, which "
                        "gives its hooks tensors, needs one of its own")
    group = state.process_group if state.process_group is not None else dist.group.WORLD
    exchange, step, compresses = state._ready(), state.step, state._compresses(bucket)
    state._end_bucket(bucket.is_last())
    return exchange.mean(group, bucket.index(), bucket.buffer(), step, compresses)
