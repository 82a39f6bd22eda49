"""Compressed messages between the stages of a neural network, in PyTorch.

Tensors
    compress, decompress   a tensor into bytes and back
    reconstruct            what the receiver of a tensor would see
    wire_bytes             how many bytes that takes
    codecs, feedbacks      what there is; codec() says what one spec can do

A network in one process
    Boundary               a module that stands where a network would be cut into stages
    boundaries             those of a model; number_boundaries() numbers them
    batch                  which samples and which step a forward pass is of
    compression            off and on

A network over processes
    Pipeline               trains stages over the processes of torch.distributed
    pipelining.Stage       compression in torch.distributed.pipelining

Data parallel
    DDPState, ddp_hook     a communication hook for DistributedDataParallel

Runs
    load_run               configuration, metrics and weights of a run of the program `strait`

A codec is named by a spec such as "quant:4", "topk:0.1,values=fp16" or "none"; docs/operators.md says what each computes.

Errors: ValueError for a wrong spec or number, TypeError for a tensor of a wrong type, WireError for bytes that are no
payload, NumericError for values that cannot be sent. Each is one line.
"""

from . import _load  # noqa: F401  the extension module, or why there is none
from ._C import NumericError, WireError
from .boundary import Boundary, Bytes, batch, boundaries, compression, number_boundaries
from .ddp import DDPState, SentBytes, ddp_hook
from .functional import (CodecInfo, CodecSpec, FeedbackInfo, codec, codecs, compress, decompress, feedbacks, reconstruct,
                         wire_bytes)
from .pipeline import Pipeline, StepResult
from .runs import Metrics, Run, load_run

__all__ = [
    "Boundary", "Bytes", "CodecInfo", "CodecSpec", "DDPState", "FeedbackInfo", "Metrics", "NumericError", "Pipeline",
    "Run", "SentBytes", "StepResult", "WireError", "batch", "boundaries", "codec", "codecs", "compress", "compression",
    "ddp_hook", "decompress", "feedbacks", "load_run", "number_boundaries", "reconstruct", "wire_bytes"
]
__version__ = "0.1.0"


def __getattr__(name):
    if name == "pipelining":  # on demand: not every build of torch has what it stands on
        import importlib
        return importlib.import_module(".pipelining", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
