"""Training a network in stages, over the processes of torch.distributed or in one."""

from __future__ import annotations

import contextlib
import datetime
import inspect
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Optional, Union

import torch
import torch.distributed as dist
from torch import Tensor, nn

from . import _C
from ._arguments import boolean, feedback_of, function_or_none, integer, list_of, named_tensors, number, string, tensors_of
from ._C import StepResult
from ._targets import TargetRows, Targets
from .boundary import Ids, int_list

__all__ = ["Pipeline", "StepResult"]

Stage = Union[nn.Module, Callable[..., Any], None]
Inputs = Union[Tensor, Sequence[Tensor], None]
PerBoundary = Union[str, Sequence[str]]
Feedback = Union[str, tuple[str, str]]
PerBoundaryFeedback = Union[Feedback, list[Feedback]]


def _per_boundary(what: str, value: PerBoundary, count: int) -> list[str]:
    if isinstance(value, str):
        return [value] * count
    values = list_of(what, value, "a spec, or one for each boundary")
    if len(values) != count or not all(isinstance(each, str) for each in values):
        raise ValueError(f"{what}: expected one spec, or one for each of {count} boundaries, found {value!r}")
    return values


def _feedback_per_boundary(value: PerBoundaryFeedback, count: int) -> list[Feedback]:
    if isinstance(value, (str, tuple)):
        return [feedback_of(value)] * count
    values = list_of("feedback", value, "a spec, a pair of them, or a list of one for each boundary")
    if len(values) != count:
        raise ValueError(f"feedback: expected a spec, a pair of them, or a list of one for each of {count} boundaries, "
                         f"found {value!r}")
    return [feedback_of(each) for each in values]


def _arguments_of(stage: Stage) -> Optional[set[str]]:
    """The names of the arguments that a stage takes, a compiled one those of its module; None where it takes any."""
    try:
        call = getattr(stage, "_orig_mod", stage).forward if isinstance(stage, nn.Module) else stage
        parameters = inspect.signature(call).parameters.values()
    except (TypeError, ValueError):  # None, or written in C
        return set()
    if any(each.kind is each.VAR_KEYWORD for each in parameters):
        return None
    return {each.name for each in parameters if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)}


def _referable(stage: Stage) -> Stage:
    """One that a weak reference can be made to: not every callable is."""
    if isinstance(stage, nn.Module) or not callable(stage):
        return stage
    return lambda *arguments, **named: stage(*arguments, **named)


def _check_stages(stages: list[Stage]) -> None:
    for number, stage in enumerate(stages):
        if isinstance(stage, type) and issubclass(stage, nn.Module):
            raise TypeError(f"stages: stage {number} is a class, {stage.__name__}; expected a module, {stage.__name__}()")
        owner = None if isinstance(stage, nn.Module) else getattr(stage, "__self__", None)
        if isinstance(owner, nn.Module):
            raise ValueError(f"stages: stage {number} is a method of a module, {type(owner).__name__}.{stage.__name__}, whose "
                             "parameters stay unknown; expected a module with those of this stage, whose forward is that method")


def _check_shared(stages: list[Stage]) -> None:
    first: dict[Tensor, tuple[int, str]] = {}
    for number, stage in enumerate(stages):
        for name, parameter in stage.named_parameters() if isinstance(stage, nn.Module) else ():
            owner, first_name = first.setdefault(parameter, (number, name))
            if owner != number and parameter.requires_grad:
                raise ValueError(f"stages: {number}.{name} is the same parameter as {owner}.{first_name}; expected each that is "
                                 "trained in one stage: untie them, or freeze it")


def _check_loss(loss: Any) -> None:
    if isinstance(loss, nn.Module):
        for name, parameter in loss.named_parameters():
            if parameter.requires_grad:
                raise ValueError(f"loss: its parameter {name} requires a gradient and would not be trained; expected it in "
                                 "the last stage")


def _device_of(stages: list[Stage], group: Optional[_C.Group], replicas: int) -> torch.device:
    """That of the first parameter of this process's stages, else of any: others may keep theirs elsewhere."""
    processes = 1 if group is None else max(1, group.size // replicas)
    own = stages[group.rank % processes::processes] if group is not None else []
    for stage in own + stages:
        if isinstance(stage, nn.Module):
            for parameter in stage.parameters():
                if not parameter.is_meta:
                    return parameter.device
    return torch.device("cpu")


_SECONDS_MOST = 100 * 365 * 24 * 3600.0


def _seconds(timeout: Union[float, datetime.timedelta]) -> float:
    seconds = timeout.total_seconds() if isinstance(timeout, datetime.timedelta) else number("timeout", timeout)
    if not 1e-3 <= seconds <= _SECONDS_MOST:
        raise ValueError(f"timeout: expected 1 ms to 100 years, found {seconds:g} s")
    return seconds


def group_of(group: Optional[dist.ProcessGroup], timeout: Union[float, datetime.timedelta]) -> Optional[_C.Group]:
    """The processes that a pipeline spans: those of `group`, else all of torch.distributed; None is this one alone."""
    seconds = _seconds(timeout)
    if group is None:
        if not (dist.is_available() and dist.is_initialized()):
            if os.environ.get("WORLD_SIZE", "1") not in ("", "1"):  # else each would train a network of its own
                raise RuntimeError("strait.Pipeline: WORLD_SIZE says that there are other processes; expected "
                                   "torch.distributed.init_process_group() before")
            return None
        group = dist.group.WORLD
    if not isinstance(group, dist.ProcessGroup):  # such as what new_group() gives who is not in it
        raise TypeError(f"group: expected a process group that this process is in, found {type(group).__name__}")
    if group.size() == 1:
        return None
    store = dist.PrefixStore(f"strait/{group.group_name}", dist.distributed_c10d._get_default_store())
    return _C.group_over(group, store, seconds)


@contextlib.contextmanager
def _heard_by(group: Optional[_C.Group]) -> Iterator[None]:
    """The other processes hear of what is raised in its body: they would wait for this one."""
    try:
        yield
    except Exception as error:
        if group is not None:
            group.fail(str(error).partition("\n")[0])
        raise


class Pipeline:
    """A network cut into stages, each of which a process runs; what crosses the cuts is compressed.

    You keep modules, loss, optimizer and loop. The pipeline cuts batches into micro-batches, runs the stages in the
    order of a schedule, and carries activations forward and gradients backward::

        dist.init_process_group("gloo")                      # under torchrun; without it one process runs all stages
        pipe = strait.Pipeline([stem, body, head], F.cross_entropy, micro_batches=8,
                               activations="quant:4,scope=block:64", gradients="quant:4,scope=block:64")
        optimizer = torch.optim.SGD(pipe.parameters(), lr=0.1)
        for x, y in loader:                                  # the same batches in every process
            optimizer.zero_grad()
            result = pipe.train(x, y)
            optimizer.step()

    Stage `s` runs in process `s mod P` of `P` processes, and the bits are those of one process that runs all, where the
    modules draw no random numbers. With codec "none" and one micro-batch, losses and gradients are those of the unsplit
    network. All methods that talk to other processes (the constructor, train, evaluate, predict, clip_grad_norm_, gather) are
    to be called by every process in the same order. Where one fails, the others raise RuntimeError that says which and why.

    Arguments:
        stages: modules, or callables without parameters, in order. A stage takes the tensors that the one before it
            gives (one, or several as arguments), and by name the extras of :meth:`train` that it has an argument for; it
            gives a float32 tensor or a tuple of them, rows first. Every process lists all stages; None may stand for one
            that another process runs. A callable that uses parameters which are trained is refused, because they would
            neither be clipped nor averaged: a bound method of a module here, others in the first batch. One that closes
            over a module has no mode either.
        loss: called with the last stage's output (a tuple where it gives several tensors) and the targets of a
            micro-batch, gives the mean over its rows, a scalar tensor, or over what `count` counts. Gradients of a loss that
            is a sum would be divided by the micro-batches: with ``count=lambda y: 1`` they are those of the sum, and
            :attr:`StepResult.loss` is the mean over micro-batches. It has no parameters of its own that are trained; a module
            that has them is refused. A pipeline without a loss predicts, and does nothing else.
        schedule: "gpipe", "1f1b" or "interleaved", which several processes need where each has more than one stage.
        micro_batches: at most so many parts into which a batch of batch_size rows is cut, all but the last of one size, as
            torch.chunk cuts it. Shorter batches are cut into parts of that size.
        activations, gradients: the codec of what crosses forward and backward, such as "quant:4"; a list has one for
            each boundary.
        feedback: the feedback scheme around codecs that compress, such as "ef21", or a pair, for activations and
            gradients; a list has one of either for each boundary.
        reuse_indices: send gradients at the indices of their activations.
        correct: called as the loss is, counts predictions that were right, for :attr:`StepResult.correct`.
        count: called with the targets of a micro-batch, gives how many the loss is a mean over, where these are not its
            rows: ``lambda y: (y != -100).sum()`` for labels of which some are padding. Gradients are then those of the
            batch's mean, into however many micro-batches it is cut. The loss is not called where it gives 0.
        batch_size: rows of a full batch; those of the first one where it is None. A batch may be shorter.
        replicas: pipelines side by side, each with batches of its own, that average their gradients; divides the
            processes. `replica_codec` and `replica_feedback` compress those gradients; not by `marina`, which needs a
            loop that runs every batch twice.
        seed: of codecs that draw random numbers.
        names: of the boundaries, for messages and state; "boundary0" and so on where it is None.
        group: the processes; all of torch.distributed where it is None. It has to have Gloo for tensors on the CPU.
        timeout: seconds, or a timedelta, that a process waits for another.
        device: of this process's stages and batches; that of their first parameter where it is None. Stages that other
            processes run may be elsewhere, such as on "meta".

    Raises:
        ValueError: stages, codecs and processes that do not fit together, a parameter in two stages or on another device.
        TypeError: a loss that cannot be called, codecs that are no specs.
        RuntimeError: another process has other arguments, or is gone.
    """

    def __init__(self, stages: Sequence[Stage], loss: Optional[Callable[..., Tensor]] = None, *, schedule: str = "1f1b",
                 micro_batches: int = 1, activations: PerBoundary = "none", gradients: PerBoundary = "none",
                 feedback: PerBoundaryFeedback = "none", reuse_indices: bool = False,
                 correct: Optional[Callable[..., Any]] = None, count: Optional[Callable[[Any], Any]] = None,
                 batch_size: Optional[int] = None, replicas: int = 1,
                 replica_codec: str = "none", replica_feedback: str = "none", seed: int = 0,
                 names: Optional[Sequence[str]] = None, group: Optional[dist.ProcessGroup] = None,
                 timeout: Union[float, datetime.timedelta] = 300.0,
                 device: Union[torch.device, str, None] = None) -> None:
        spanned = group_of(group, timeout)
        rows = TargetRows()
        with _heard_by(spanned):
            stages = list_of("stages", stages, "a list of modules, callables or None")
            if not stages:
                raise ValueError("stages: expected at least one, found none")
            _check_stages(stages)
            _check_shared(stages)
            _check_loss(loss)
            cuts = len(stages) - 1
            names = [f"boundary{i}" for i in range(cuts)] if names is None else list_of("names", names, "one for each boundary")
            if len(names) != cuts:
                raise ValueError(f"names: expected one for each of {cuts} boundaries, found {len(names)}")
            boundaries = list(
                zip([string("names", name) for name in names], _per_boundary("activations", activations, cuts),
                    _per_boundary("gradients", gradients, cuts), _feedback_per_boundary(feedback, cuts),
                    [boolean("reuse_indices", reuse_indices)] * cuts))
            arguments = [_arguments_of(stage) for stage in stages]
            functions = [rows.given(function_or_none(name, function))
                         for name, function in (("loss", loss), ("correct", correct), ("count", count))]
            # The library refers to these weakly: the collector finds cycles through a pipeline's own attributes alone.
            self._called = [_referable(stage) for stage in stages] + functions
            replicas = integer("replicas", replicas, 1, 2**31 - 1)
            setup = _C.PipelineSetup(self._called[:len(stages)], arguments, boundaries, *functions, string("schedule", schedule),
                                     integer("micro_batches", micro_batches, 1, 2**31 - 1),
                                     0 if batch_size is None else integer("batch_size", batch_size, 1),
                                     replicas,
                                     (string("replica_codec", replica_codec), string("replica_feedback", replica_feedback)),
                                     integer("seed", seed),
                                     _device_of(stages, spanned, replicas) if device is None else torch.empty(0, device=device).device)
        # of all extras that a stage may take; None where another process may have one that takes more
        self._names = None if None in stages or None in arguments else set().union(*arguments)
        self._modules = [stage if isinstance(stage, nn.Module) else None for stage in stages]
        self._target_rows, self._group, self._lock = rows, spanned, threading.Lock()
        self._pipeline = _C.Pipeline(setup, spanned)

    @contextlib.contextmanager
    def _turn(self) -> Iterator[None]:
        """The one call at a time: another, of a second thread or around a stage that calls its own pipeline, would meet half
        a step."""
        if not self._lock.acquire(blocking=False):
            raise RuntimeError("strait.Pipeline: expected one call at a time, found another under way (of another thread, or around "
                               "this stage)")
        try:
            yield
        finally:
            self._lock.release()

    def _extras(self, extras: dict[str, Any], *batch: Optional[Tensor]) -> list[tuple[str, Tensor]]:
        """Those that are not None, with as many rows as the tensors of the batch, by name."""
        for name in extras:
            if self._names is not None and name not in self._names:
                raise TypeError(f"{name}: expected an argument of a stage's, found none of that name")
        given = {name: tensor for name, tensor in extras.items() if tensor is not None}
        rows = next((len(tensor) for tensor in batch if tensor is not None and tensor.dim() > 0), None)
        for name, tensor in given.items():
            if not isinstance(tensor, Tensor):
                raise TypeError(f"{name}: expected a tensor, found {type(tensor).__name__}")
            if rows is not None and tensor.shape[:1] != (rows,):
                raise ValueError(f"{name}: expected a row for each of the batch's {rows}, found a tensor of shape {list(tensor.shape)}")
        return sorted(given.items())

    def train(self, inputs: Inputs, targets: Targets = None,
              ids: Optional[Ids] = None, classes: Optional[Ids] = None, **extras: Optional[Tensor]) -> StepResult:
        """Forward and backward over a batch: adds the gradients of its mean loss to the parameters' `grad`.

        Arguments:
            inputs: tensor [B, ...] or several, read in the process of the first stage.
            targets: tensor [B, ...], or a tuple or dictionary of some, which loss, `correct` and `count` are given with the
                rows of a micro-batch; read in the process of the last stage. Elsewhere inputs and targets may be None, but one
                of the first three arguments must say how many rows there are.
            ids: numbers of the samples in the training set, for feedback that keeps something per sample.
            classes: the samples' labels, in every process, for feedback that keeps something per class.
            extras: tensors [B, ...] in every process, such as ``attention_mask=mask``: each stage is given those that its
                `forward` has an argument for. They cross no cut, and have no gradient. One that is None is not given.

        Raises:
            ValueError: a batch, or what a stage gives, does not fit.
            strait.NumericError: a message or the loss is not finite.
            RuntimeError: another process failed, or gradients are disabled. What a module or the loss raises is raised as it is; in the first call, which
                tries what each stage gives, an Exception of a module is the cause of a ValueError that names the stage.
        """
        with self._turn():
            with _heard_by(self._group):
                if not torch.is_grad_enabled():
                    raise RuntimeError("strait.Pipeline: train() needs gradients, which are disabled here; evaluate() does not")
                tensors, packed = tensors_of("inputs", inputs), self._target_rows.pack(targets)
                arguments = (tensors, packed, int_list(ids), int_list(classes, "classes"), self._extras(extras, *tensors, packed))
            return self._pipeline.train(*arguments)

    def evaluate(self, inputs: Inputs, targets: Targets = None, mode: str = "plain",
                 **extras: Optional[Tensor]) -> StepResult:
        """Forward alone, without gradients, and without a change to the feedback's state.

        Call `.eval()` of your modules before, as always. `mode` says how activations cross: "off" as they are, "plain"
        through the codec alone, "frozen" through the feedback scheme with its state as training left it. `extras` are those
        of :meth:`train`.
        """
        with self._turn():
            with _heard_by(self._group):
                tensors, packed = tensors_of("inputs", inputs), self._target_rows.pack(targets)
                arguments = (tensors, packed, string("mode", mode), self._extras(extras, *tensors, packed))
            return self._pipeline.evaluate(*arguments)

    def predict(self, inputs: Inputs, mode: str = "plain", **extras: Optional[Tensor]) -> Union[Tensor, tuple[Tensor, ...], None]:
        """The last stage's output for a batch, [B, ...], in the process of that stage, and None elsewhere.

        Forward alone, as :meth:`evaluate`, without targets and loss; every process gives the inputs, which say how many
        rows there are, and the extras. A tuple where the stage gives several tensors.
        """
        with self._turn():
            with _heard_by(self._group):
                tensors = tensors_of("inputs", inputs)
                arguments = (tensors, string("mode", mode), self._extras(extras, *tensors))
            outputs = self._pipeline.predict(*arguments)
        if outputs is None:
            return None
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def clip_grad_norm_(self, max_norm: float) -> float:
        """Scales the gradients so that their 2-norm over the stages of all processes is at most `max_norm`, and gives the norm
        that they had: `torch.nn.utils.clip_grad_norm_` would see those of this process alone.

        Raises:
            strait.NumericError: that norm is not finite; no gradient has changed.
        """
        with self._turn():
            with _heard_by(self._group):
                limit = number("max_norm", max_norm)
            return self._pipeline.clip_grad_norm(limit)

    def gather(self, result: StepResult) -> StepResult:
        """What all processes know of a batch: its loss, all rows, the bytes of every process, the longest time."""
        with _heard_by(self._group):
            if not isinstance(result, StepResult):
                raise TypeError(f"result: expected a StepResult, found {type(result).__name__}")
        with self._turn():
            return self._pipeline.gather(result)

    def parameters(self) -> list[Tensor]:
        """The parameters of this process's stages that require gradients, for its optimizer; there may be none."""
        return [parameter for _, parameter in self.named_parameters()]

    def named_parameters(self) -> list[tuple[str, Tensor]]:
        """Those of :meth:`parameters`, by the names that they have in ``nn.Sequential(*stages)``: ``0.weight`` of stage 0."""
        return [(f"{stage}.{name}", parameter) for stage, module in enumerate(self._modules)
                if module is not None and self.runs(stage)
                for name, parameter in module.named_parameters() if parameter.requires_grad]

    def modules(self) -> list[nn.Module]:
        """The modules of this process's stages."""
        return [module for stage, module in enumerate(self._modules) if module is not None and self.runs(stage)]

    def runs(self, stage: int) -> bool:
        """Whether this process runs the stage."""
        return self._pipeline.runs(integer("stage", stage, 0, len(self._modules) - 1))

    def compress(self, on: bool) -> None:
        """Whether training compresses from now on; it does from the beginning."""
        self._pipeline.compress(boolean("on", on))

    def parameters_changed(self) -> None:
        """Says that parameters were frozen or unfrozen since the first batch: the next one finds anew which tensors need a
        gradient, and no others come back over the cuts. Every process calls it; a single one sees that by itself. With
        replicas a new pipeline is needed."""
        self._pipeline.parameters_changed()

    def prefetch(self, ids: Ids) -> None:
        """Says which samples the call of :meth:`train` after the next will have, for what is kept per sample on a disk:
        the next call reads it ahead."""
        self._pipeline.prefetch(int_list(ids))

    @property
    def step(self) -> int:
        """Calls of :meth:`train` so far, which seed the random draws of codecs. Set it to resume."""
        return self._pipeline.step

    @step.setter
    def step(self, step: int) -> None:
        self._pipeline.step = integer("step", step, 0)

    @property
    def rank(self) -> int:
        """The number of this process among those of the pipeline."""
        return self._pipeline.rank

    @property
    def replica(self) -> int:
        """Which of the replicas this process belongs to: which part of the data it trains with."""
        return self._pipeline.replica

    def state_dict(self) -> dict[str, Any]:
        """The step and the feedback's state at this process's ends of the boundaries. Each process saves its own."""
        with self._turn():
            return {"step": self.step, "links": self._pipeline.state()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resumes from what :meth:`state_dict` gave in the process of the same rank.

        Raises:
            ValueError: no such state, or a tensor of no link of this process. The pipeline goes on as it was. Where no batch
                has been trained yet, the next call raises it.
        """
        if not isinstance(state, dict) or set(state) != {"step", "links"}:
            raise ValueError("strait.Pipeline: expected the state of a pipeline, a dictionary of \"step\" and \"links\"")
        step = integer("the state of the pipeline: step", state["step"], 0)
        links = named_tensors("the state of the pipeline", state["links"])
        with self._turn():
            self._pipeline.load_state(step, links)
