"""What is compared: the codecs, and how long a measurement with each must be at a rate."""

from __future__ import annotations

import math
from dataclasses import dataclass

RATES = ["unlimited", "1Gbps", "500Mbps", "100Mbps", "20Mbps"]
BATCH = 100  # as in resnet18.toml
EPOCH_SECONDS = 10.0
LEAST_STEPS = 3

# What the busiest link carries for a sample: stage 2 sends layer2's activations on and layer1's gradients back.
ELEMENTS = 8192 + 16384
COMPUTE_RATE = 250.0  # samples a second that two cores train without links; only sizes the runs


@dataclass(frozen=True)
class Row:
    name: str
    activations: str
    gradients: str
    bits: float  # an element, about; only sizes the runs
    torch: str = ""  # the PyTorch pipeline's codec that sends the same, if it has one

    def steps(self, rate: float | None) -> int:
        """Training steps that take about EPOCH_SECONDS."""
        seconds = 1 / COMPUTE_RATE + (ELEMENTS * self.bits / rate if rate else 0)
        return max(LEAST_STEPS, math.ceil(EPOCH_SECONDS / seconds / BATCH))


RAW = "raw fp32"
FW4_BW8 = "fw4-bw8"
TOPK = "topk 10%"
TOPK_8BIT = "topk 10%, 8-bit values"
ROWS = [
    Row(RAW, "none", "none", 32, "raw"),
    Row("fp16", "fp16", "fp16", 16, "fp16"),
    Row(FW4_BW8, "quant:4", "quant:8", 6.7),
    Row("fw2-bw8", "quant:2", "quant:8", 6),
    Row(TOPK, "topk:0.1", "topk:0.1", 3.7, "topk"),
    Row(TOPK_8BIT, "topk:0.1,values=quant:8", "topk:0.1,values=quant:8", 1.3),
]
