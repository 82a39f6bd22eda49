"""Compression for torch.distributed.pipelining.

:class:`Stage` takes the place of ``torch.distributed.pipelining.PipelineStage`` and serves every schedule of torch's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Union

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.pipelining import PipelineStage
from torch.distributed.pipelining.stage import _RecvInfo

from . import _C
from ._arguments import codec_spec, feedback_of, integer, named_tensors
from .ddp import SentBytes

__all__ = ["Stage"]

_TENSORS_MOST = 64  # at a cut, that frames and tags tell apart


class _Channel:
    """The endpoints in this process of one direction of the cut behind stage `cut`, one for each tensor that crosses."""

    def __init__(self, endpoint: Any, cut: int, forward: bool, codec: str, feedback: str) -> None:
        self._make = lambda name, boundary: endpoint(name, boundary, forward, codec, feedback)
        self._cut = cut
        self._endpoints: list[Any] = []

    def _endpoint(self, number: int) -> Any:
        if number == _TENSORS_MOST:
            raise ValueError(f"stage {self._cut}: expected at most {_TENSORS_MOST} tensors at a cut")
        name = f"stage{self._cut}" if number == 0 else f"stage{self._cut}.{number}"
        return self._make(name, number << 10 | self._cut)

    def __getitem__(self, i: int) -> Any:
        while len(self._endpoints) <= i:
            self._endpoints.append(self._endpoint(len(self._endpoints)))
        return self._endpoints[i]

    def __iter__(self):
        return iter(self._endpoints)

    def state(self) -> list[dict[str, Tensor]]:
        return [endpoint.state() for endpoint in self._endpoints]

    def endpoints_of(self, states: list[dict[str, Tensor]]) -> list[Any]:
        """Endpoints with the states that state() gave."""
        endpoints = [self._endpoint(number) for number in range(len(states))]
        for endpoint, state in zip(endpoints, states):
            endpoint.load(named_tensors("the state of a stage", state))
        return endpoints

    def replace(self, endpoints: list[Any]) -> None:
        self._endpoints = endpoints


def _is_compressed(tensor: Tensor) -> bool:
    """A scalar has no rows, and crosses as it is."""
    return tensor.dim() > 0 and tensor.dtype in (torch.float32, torch.float16, torch.bfloat16)


def _check(forward: bool, codec: str, feedback: str) -> None:
    """Refuses what cannot be, and messages of unknown size."""
    _C.Receiver("a stage", 0, forward, codec, feedback).size([4096, 4096], _C.MessagePlace(0, 0, 0, 0, True, True))


class Stage(PipelineStage):
    """A ``PipelineStage`` whose activations and gradients are compressed on their way to other processes.

    ::

        stage = strait.pipelining.Stage(submodule, index, count, device, activations="quant:8", gradients="quant:8")
        schedule = Schedule1F1B(stage, n_microbatches=8, loss_fn=F.cross_entropy)

    Torch's schedules receive a message into memory of a size that they know beforehand. So the codecs have to be of
    exact size (``strait.codec(spec).exact``), such as "quant:4" or "topk:0.1,index=bitmap". Every process gives the
    same specs. Tensors of float32, float16 and bfloat16 are compressed, as float32 numbers; others cross as they are.
    Stages that a schedule puts next to each other in one process (ZBV, DualPipeV) hand tensors over without compression.
    Over Gloo all receives of a step begin with its first one, so that messages come while the stage computes; torch's own
    stage begins each when the schedule asks for it.

    Arguments:
        submodule, stage_index, num_stages, device: as of ``PipelineStage``, as are further keyword arguments.
        activations, gradients: codecs of what goes forward and backward.
        feedback: a feedback scheme around codecs that compress, such as "ef" or "ef21", or a pair, for activations and
            gradients.
        seed: of codecs that draw random numbers.

    Raises:
        ValueError: a wrong spec, or a codec whose messages have no fixed size.
    """

    def __init__(self, submodule: nn.Module, stage_index: int, num_stages: int, device: torch.device, *,
                 activations: str = "none", gradients: str = "none", feedback: Union[str, tuple[str, str]] = "none",
                 seed: int = 0, **kwargs: Any) -> None:
        feedback = feedback_of(feedback)
        of_activations, of_gradients = (feedback, feedback) if isinstance(feedback, str) else feedback
        _check(True, codec_spec("activations", activations), of_activations)  # every stage both, so that all of them refuse
        _check(False, codec_spec("gradients", gradients), of_gradients)
        super().__init__(submodule, stage_index, num_stages, device, **kwargs)
        self._seed = integer("seed", seed)
        self._step = 0
        self._trained = False
        self._sent = SentBytes(0, 0, 0)
        self.compressed = True  #: whether messages are compressed from now on
        self._arriving: dict[tuple[bool, int], list[tuple[Tensor, bool]]] = {}  # messages, whether each is a payload
        self._begun: dict[tuple[bool, int], list[dist.Work]] = {}  # receives that no schedule waits for
        self._receives_ahead = dist.get_backend(self.group) == "gloo"  # which tells messages apart by tags
        before, behind = stage_index - 1, stage_index
        self._sends: dict[bool, _Channel] = {}
        self._receives: dict[bool, _Channel] = {}
        if not self.is_last:
            self._sends[True] = _Channel(_C.Sender, behind, True, activations, of_activations)
            self._receives[False] = _Channel(_C.Receiver, behind, False, gradients, of_gradients)
        if not self.is_first:
            self._receives[True] = _Channel(_C.Receiver, before, True, activations, of_activations)
            self._sends[False] = _Channel(_C.Sender, before, False, gradients, of_gradients)

    # What crosses to other processes.

    def get_fwd_send_ops(self, fwd_chunk_id: int) -> list[dist.P2POp]:
        return self._encoded(True, self.stage_index, fwd_chunk_id, super().get_fwd_send_ops(fwd_chunk_id))

    def get_bwd_send_ops(self, bwd_chunk_id: int) -> list[dist.P2POp]:
        return self._encoded(False, self.stage_index - 1, bwd_chunk_id, super().get_bwd_send_ops(bwd_chunk_id))

    def get_fwd_recv_ops(self, fwd_chunk_id: int) -> list[dist.P2POp]:
        return self._expected(True, fwd_chunk_id, super().get_fwd_recv_ops, len(self.args_recv_info))

    def get_bwd_recv_ops(self, bwd_chunk_id: int) -> list[dist.P2POp]:
        return self._expected(False, bwd_chunk_id, super().get_bwd_recv_ops, len(self.grad_recv_info))

    def _retrieve_recv_activations(self, fwd_chunk_id: int):
        self._decode(True, fwd_chunk_id, self.args_recv_info[fwd_chunk_id])
        return super()._retrieve_recv_activations(fwd_chunk_id)

    def _retrieve_recv_grads(self, bwd_chunk_id: int):
        self._decode(False, bwd_chunk_id, self.grad_recv_info[bwd_chunk_id])
        return super()._retrieve_recv_grads(bwd_chunk_id)

    def clear_runtime_states(self) -> None:
        super().clear_runtime_states()
        self._step += self._trained
        self._trained = False
        self._arriving.clear()
        self._begun.clear()

    def _place(self, micro_batch: int, rows: int) -> _C.MessagePlace:
        training = self.has_backward and torch.is_grad_enabled()
        return _C.MessagePlace(self._seed, self._step, micro_batch, micro_batch * rows, training, self.compressed)

    def _tag(self, forward: bool, cut: int, chunk: int, i: int) -> int:
        """Tells the messages between two processes apart, where they are received in another order than they are sent."""
        if not self._receives_ahead:
            return 0
        return ((chunk * _TENSORS_MOST + i) * 2 + forward) * self.num_stages + cut + 1

    def _encoded(self, forward: bool, cut: int, chunk: int, ops: list[dist.P2POp]) -> list[dist.P2POp]:
        for i, op in enumerate(ops):
            op.tag = self._tag(forward, cut, chunk, i)
            if not _is_compressed(op.tensor):
                continue
            place = self._place(chunk, op.tensor.size(0))
            op.tensor = self._sends[forward][i].encode(op.tensor.detach(), place)
            self._trained |= self.has_backward
        return ops

    def _expected(self, forward: bool, chunk: int, ops_of: Callable[[int], list[dist.P2POp]],
                  chunks: int) -> list[dist.P2POp]:
        """The receives that the schedule is to begin for a micro-batch. Those of the others begin here, where messages
        have tags: a message then comes while the stage computes, where torch would let its sender wait."""
        if (forward, chunk) in self._arriving:
            return []
        ops = self._receives_of(forward, chunk, ops_of(chunk))
        if self._receives_ahead:
            for other in range(chunks):
                if (forward, other) not in self._arriving:
                    others = self._receives_of(forward, other, ops_of(other))
                    self._begun[forward, other] = dist.batch_isend_irecv(others) if others else []
        return ops

    def _receives_of(self, forward: bool, chunk: int, ops: list[dist.P2POp]) -> list[dist.P2POp]:
        arriving: list[tuple[Tensor, bool]] = []
        cut = self.stage_index - 1 if forward else self.stage_index
        for i, op in enumerate(ops):
            op.tag = self._tag(forward, cut, chunk, i)
            is_payload = _is_compressed(op.tensor)
            if is_payload:
                size = self._receives[forward][i].size(list(op.tensor.shape), self._place(chunk, op.tensor.size(0)))
                op.tensor = torch.empty(size, dtype=torch.uint8, device=op.tensor.device)
            arriving.append((op.tensor, is_payload))
        self._arriving[forward, chunk] = arriving
        return ops

    def _decode(self, forward: bool, chunk: int, infos: tuple[Any, ...]) -> None:
        for work in self._begun.pop((forward, chunk), []):
            work.wait()
        arrived = enumerate(self._arriving.get((forward, chunk), []))
        for info in infos:
            if not isinstance(info, _RecvInfo) or getattr(info, "is_root_arg", False) or info.buffer is None:
                continue
            i, (payload, is_payload) = next(arrived, (0, (None, False)))
            if not is_payload:
                continue
            place = self._place(chunk, info.buffer.size(0))
            info.buffer = self._receives[forward][i].decode(payload, info.buffer, place)
            self._trained |= self.has_backward

    # For programs.

    def bytes(self, reset: bool = False) -> SentBytes:
        """What this stage has sent in training so far, or since the last reset; ``reset`` begins anew."""
        for channel in self._sends.values():
            for endpoint in channel:
                messages, raw, sent = endpoint.take_traffic()
                self._sent = SentBytes(self._sent.sent + sent, self._sent.raw + raw, self._sent.messages + messages)
        sent = self._sent
        if reset:
            self._sent = SentBytes(0, 0, 0)
        return sent

    def state_dict(self) -> dict[str, Any]:
        """The step and the feedback's state of this stage; the submodule has a state_dict of its own."""
        return {
            "step": self._step + self._trained,
            "sends": {forward: channel.state() for forward, channel in self._sends.items()},
            "receives": {forward: channel.state() for forward, channel in self._receives.items()}
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resumes from what :meth:`state_dict` gave for the stage of the same index.

        Raises:
            ValueError: no such state. The stage goes on as it was.
        """
        channels = {"sends": self._sends, "receives": self._receives}
        if not isinstance(state, dict) or set(state) != {"step", *channels} or any(
                not isinstance(state[name], dict) or set(state[name]) != set(own) for name, own in channels.items()):
            raise ValueError("strait.pipelining.Stage: expected the state of a stage at the same place, a dictionary of \"step\", "
                             "\"sends\" and \"receives\"")
        step = integer("the state of a stage: step", state["step"], 0)
        self.bytes()  # takes what the endpoints that go have counted
        loaded = [(channel, channel.endpoints_of(state[name][forward]))
                  for name, own in channels.items() for forward, channel in own.items()]
        self._step, self._trained = step, False
        for channel, endpoints in loaded:
            channel.replace(endpoints)
