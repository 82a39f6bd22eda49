"""A boundary between two parts of a network in one process."""

from __future__ import annotations

import contextlib
import io
import sys
import types
from typing import Any, Iterator, NamedTuple, Optional, Sequence, Union

import torch
from torch import nn
from torch._subclasses import FakeTensor

from . import _C, _load  # noqa: F401
from ._arguments import boolean, codec_spec, feedback_of, integer, list_of, named_tensors, string

Ids = Union[torch.Tensor, Sequence[int]]


class Bytes(NamedTuple):
    """What has crossed a boundary in training: everything that would go over a wire, headers included."""

    forward: int  #: activations
    backward: int  #: gradients
    raw: int  #: both, without compression: 4 bytes an element
    messages: int  #: both

    @property
    def ratio(self) -> float:
        """Uncompressed over compressed bytes; 1 where nothing has crossed."""
        sent = self.forward + self.backward
        return self.raw / sent if sent else 1.0


class _Cross(torch.autograd.Function):
    """Forward an activation, backward a gradient."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, boundary: _C.LocalBoundary, training: bool) -> torch.Tensor:
        y, ctx.crossing = boundary.forward(x, training)
        ctx.boundary = boundary
        return y

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        if ctx.crossing is None:
            raise RuntimeError("strait.Boundary: no gradient crosses it in evaluation mode; call train() before the "
                               "forward pass")
        return ctx.boundary.backward(ctx.crossing, gradient), None, None


def _is_recomputed() -> bool:
    """Whether a forward pass is one of several of the same batch: in a region of torch.utils.checkpoint, of either kind,
    whose functions are then below us on the stack; or within a backward pass, where any other recomputation happens."""
    if torch._C._current_graph_task_id() != -1:
        return True
    frame: Optional[types.FrameType] = sys._getframe(1)
    while frame is not None:
        if frame.f_globals.get("__name__") == "torch.utils.checkpoint":
            return True
        frame = frame.f_back
    return False


def _unpacked(packed: torch.Tensor) -> Any:
    """What the bytes of a boundary's state hold."""
    try:
        return torch.load(io.BytesIO(packed.detach().cpu().contiguous().numpy().tobytes()), weights_only=True)
    except Exception as error:  # of many kinds, by how the bytes are broken
        reason = str(error).partition("\n")[0]
        raise ValueError(f"strait.Boundary: the state of a boundary cannot be read: {reason}") from error


class Boundary(nn.Module):
    """Stands between two modules as a cut between two pipeline stages would: the forward pass compresses activations, the
    backward pass gradients, with the very bits of a pipeline that is cut here (one micro-batch; :func:`batch` for more).

    ::

        model = nn.Sequential(stem, strait.Boundary("quant:4,scope=block:64", "quant:4,scope=block:64"), head)

    Input and output: [rows, ...] of float32, or of float16 or bfloat16, which cross as float32 and are rounded to again.
    The output is contiguous and of the input's type and device.

    In training mode every forward pass is a message: it moves the state of the feedback and counts as a step, also where
    gradients are disabled, as BatchNorm has it. Its gradient crosses once; a second backward pass through it, and one
    through a backward pass, are refused. In evaluation mode nothing is counted or changed, activations cross as
    ``evaluation`` says, and a backward pass is refused. So is training in a region of ``torch.utils.checkpoint``, which
    would send every message twice: put the boundary between such regions.

    ``state_dict()`` holds the state and the step, so that a resumed training gives the bits of one that was not
    interrupted; pickling and ``copy.deepcopy`` keep all. Under ``torch.compile`` a boundary stands between two graphs.

    Args:
        activations, gradients: codec specs, see :func:`codecs`. ``"none"`` compresses nothing.
        feedback: a feedback spec such as ``"ef21"`` or ``"aq-sgd,format=bf16"``, see :func:`feedbacks`, or a pair of them
            for activations and gradients. A single one serves the directions that compress, and ``aq-sgd``
            activations alone.
        slots: rows of a full batch. The state has a row for each row of the batch; a batch with more than ``slots`` is
            refused, and the state grows where ``slots`` is not given.
        reuse_indices: gradients are sent at the indices that their activations kept; both codecs select, and alike.
        evaluation: how activations cross in evaluation mode: ``"plain"``, through the codec alone; ``"frozen"``, with the
            feedback's state as training left it; ``"off"``, as they are.
        index: the number of the boundary among those of the model, from 0 at the input. With ``seed`` it keys the draws of
            codecs that round at random. :func:`number_boundaries` sets it in a whole model.
        name: for messages.
        seed: of the draws.

    Raises:
        ValueError: a wrong spec, links that do not fit, and later a batch that does not fit the state.
        TypeError: later, a tensor of another type.
        NumericError: later, a tensor with a value that cannot be sent; no state has changed, unless what cannot hold it is the
            receiver's float16.
    """

    def __init__(self, activations: str = "none", gradients: str = "none", *,
                 feedback: Union[str, tuple[str, str]] = "none", slots: Optional[int] = None, reuse_indices: bool = False,
                 evaluation: str = "plain", index: int = 0, name: str = "boundary", seed: int = 0):
        super().__init__()
        self._ends = _C.LocalBoundary(codec_spec("activations", activations), codec_spec("gradients", gradients),
                                      feedback_of(feedback), boolean("reuse_indices", reuse_indices),
                                      string("evaluation", evaluation), string("name", name),
                                      integer("index", index, 0, 2**16 - 1), integer("seed", seed),
                                      None if slots is None else integer("slots", slots))

    @torch.compiler.disable
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """What the downstream stage receives of ``x``."""
        if not isinstance(x, torch.Tensor):
            raise TypeError(f"strait.Boundary: expected a tensor, found {type(x).__name__}")
        if x.is_meta or isinstance(x, FakeTensor):
            raise RuntimeError("strait.Boundary: expected a tensor with data, which meta tensors and those of torch.export do "
                               "not have; put nn.Identity() in its place there")
        if torch._C._are_functorch_transforms_active():
            raise RuntimeError("strait.Boundary: expected a call outside of the transforms of torch.func (vmap, grad and so on); "
                               "an ordinary backward pass gives its gradients")
        if self.training and _is_recomputed():
            raise RuntimeError("strait.Boundary: expected a place outside of checkpointed regions, which compute a forward "
                               "pass twice and would send its message twice")
        return _Cross.apply(x, self._ends, self.training)

    @property
    def step(self) -> int:
        """The step of the next forward pass of training: how many there were, unless it was set. It keys random draws."""
        return self._ends.step

    @step.setter
    def step(self, step: int) -> None:
        self._ends.step = integer("step", step, 0)

    def bytes(self, reset: bool = False) -> Bytes:
        """What has crossed in training so far, or since the last reset; ``reset`` begins anew."""
        forward, backward = self._ends.traffic()
        if reset:
            self._ends.reset_traffic()
        return Bytes(forward[2], backward[2], forward[1] + backward[1], forward[0] + backward[0])

    def get_extra_state(self) -> torch.Tensor:
        """The part of ``state_dict()`` that is the boundary's: the bytes of what ``torch.save`` makes of the step and the
        feedback's state, as a tensor, because safetensors and ``save_pretrained`` take nothing else."""
        file = io.BytesIO()
        torch.save({"step": self._ends.step, "state": self._ends.state()}, file)
        return torch.frombuffer(file.getbuffer(), dtype=torch.uint8).clone()

    def set_extra_state(self, state: Union[torch.Tensor, dict[str, Any]]) -> None:
        """Takes what :meth:`get_extra_state` gave, of a boundary with the same codecs and feedback, or the dictionary in it."""
        if isinstance(state, torch.Tensor):
            state = _unpacked(state)
        if not isinstance(state, dict) or set(state) != {"step", "state"}:
            raise ValueError("strait.Boundary: expected the state of a boundary, a dictionary of \"step\" and \"state\"")
        step = integer("the state of a boundary: step", state["step"], 0)
        self._ends.load_state(named_tensors("the state of a boundary", state["state"]))
        self._ends.step = step

    def extra_repr(self) -> str:
        form = self._ends.form()
        text = f"{form['activations']!r}, {form['gradients']!r}, feedback={form['feedback']!r}, index={form['index']}"
        for name, usual in (("slots", None), ("reuse_indices", False), ("evaluation", "plain"), ("seed", 0)):
            if form[name] != usual:
                text += f", {name}={form[name]!r}"
        return text


def boundaries(model: nn.Module) -> list[Boundary]:
    """The boundaries of a model, or of a part of it, in the order of ``model.modules()``."""
    if not isinstance(model, nn.Module):
        raise TypeError(f"model: expected a module, found {type(model).__name__}")
    return [module for module in model.modules() if isinstance(module, Boundary)]


def number_boundaries(model: nn.Module) -> list[Boundary]:
    """Numbers the boundaries of a model 0, 1, 2... in the order of ``model.modules()``, as a pipeline does from the input
    on, and names them as the model does. With codecs that round at random boundaries then draw apart.

    Returns:
        the boundaries.
    """
    found = [(name, module) for name, module in model.named_modules() if isinstance(module, Boundary)]
    for index, (name, module) in enumerate(found):
        module._ends.set_place(index, name or "boundary")
    return [module for _, module in found]


def int_list(ids: Optional[Ids], name: str = "ids") -> list[int]:
    """Numbers of samples, or their classes, as a list, empty where there are none."""
    if ids is None:
        return []
    if isinstance(ids, torch.Tensor):
        if ids.is_floating_point() or ids.dim() != 1:
            raise TypeError(f"{name}: expected integers of one dimension, found {ids.dtype} of {ids.dim()}")
        ids = ids.tolist()
    return [integer(name, i) for i in list_of(name, ids, "integers")]


@contextlib.contextmanager
def batch(model: nn.Module, *, ids: Optional[Ids] = None, classes: Optional[Ids] = None, step: Optional[int] = None, first_row: int = 0,
          next_ids: Optional[Ids] = None) -> Iterator[None]:
    """Says of which batch the forward passes in its body are, for all boundaries of a model::

        for x, y, ids in loader:
            with strait.batch(model, ids=ids):
                loss = criterion(model(x), y)
            loss.backward()

    Args:
        ids: the samples' numbers in the training set, one a row of ``x``; feedback that keeps something per sample
            (``aq-sgd``, ``slots=sample``) needs them, and gradients are those of the same.
        classes: the samples' labels, one a row; feedback that keeps something per class (``slots=class``) needs them.
        step: optimizer steps taken before; else each boundary counts the batches.
        first_row: row of the batch at which ``x`` begins, where a batch is cut into several forward passes: they then use
            the state's rows, and draw, as the parts of the whole. Give all of them the same ``step``.
        next_ids: the samples of the batch after this one, for a store in a file, which reads ahead.

    Raises:
        ValueError: a number that cannot be. Later, ids or classes that are not as many as rows, or the same id twice.
        TypeError: what is no integer.
    """
    inside = []
    ids, classes, next_ids = int_list(ids), int_list(classes, "classes"), int_list(next_ids, "next_ids")
    step = None if step is None else integer("step", step, 0)
    first_row = integer("first_row", first_row, 0)
    try:
        for boundary in boundaries(model):
            boundary._ends.begin_batch(step, first_row, ids, classes, next_ids)
            inside.append(boundary)
        yield
    finally:
        for boundary in inside:
            boundary._ends.end_batch()


@contextlib.contextmanager
def compression(model: nn.Module, enabled: bool = True) -> Iterator[None]:
    """Switches the compression of all boundaries of a model on or off in its body::

        with strait.compression(model, enabled=False):
            evaluate(model)

    Off, tensors cross as they are, in training and evaluation. Training still counts steps and bytes; feedback rests, but
    a store with ``fill=warmup`` keeps what it sees.
    """
    enabled = boolean("enabled", enabled)
    found = boundaries(model)
    before = [boundary._ends.compressed for boundary in found]
    try:
        for boundary in found:
            boundary._ends.compressed = enabled
        yield
    finally:
        for boundary, on in zip(found, before):
            boundary._ends.compressed = on
