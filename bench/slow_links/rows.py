"""What is compared: the codecs, and how long a measurement with each must be at a rate."""

from __future__ import annotations

from dataclasses import dataclass

from network import parse_rate

ONE_MACHINE = "one machine"  # all ranks on one host, as `strait launch` starts them
RATES = [ONE_MACHINE, "unlimited", "1Gbps", "500Mbps", "100Mbps", "20Mbps"]
BATCH = 100  # as in resnet18.toml
EPOCHS = 3  # as in resnet18.toml; the first warms up, the others are timed
SECONDS = 5.0  # of training that a measurement aims at, the warm-up included

# What the busiest link carries for a sample: stage 2 sends layer2's activations on and layer1's gradients back.
ELEMENTS = 8192 + 16384
# These only size the runs: samples per second that two cores train without links, and how much longer a step takes
# than the busiest link is busy, because the pipeline fills and drains.
COMPUTE_RATE = 400.0
FILL = 1.4
TORCH_BITS = {"raw": 32, "fp16": 16, "topk": 9.6}  # an element; a tenth as fp32 values and int64 indices


def rate_of(name: str) -> float | None:
    """Bits per second of one of RATES; None without a limit."""
    return None if name == ONE_MACHINE else parse_rate(name)


def steps_an_epoch(seconds: float, bits: float, rate: float | None) -> int:
    """Training steps, so that EPOCHS epochs take about that long; one at least."""
    sample = 1 / COMPUTE_RATE + (FILL * ELEMENTS * bits / rate if rate else 0)
    return max(1, round(seconds / EPOCHS / (sample * BATCH)))


# Who trains. "strait" speaks as it does by default: over TLS between hosts, over sockets of the file system on one
# machine, where "tls" has a secret all the same. "c10d" is strait over LibTorch's Gloo.
SIDES = ["strait", "tls", "c10d", "pytorch"]


@dataclass(frozen=True)
class Row:
    name: str
    activations: str
    gradients: str
    bits: float  # an element, about; only sizes the runs
    torch: str = ""  # the PyTorch pipeline's codec that sends the same, if it has one
    carriers: bool = False  # strait's own transports are compared

    def has(self, side: str, rate: str) -> bool:
        """Whether the side is measured at that rate."""
        if side == "pytorch":
            return bool(self.torch) and rate != ONE_MACHINE
        if side == "strait":
            return self.carriers or rate != ONE_MACHINE
        return self.carriers and (side == "c10d" or rate == ONE_MACHINE)


RAW = "raw fp32"
FW4_BW8 = "fw4-bw8"
TOPK = "topk 10%"
TOPK_8BIT = "topk 10%, 8-bit values"
ROWS = [
    Row(RAW, "none", "none", 32, "raw", carriers=True),
    Row("fp16", "fp16", "fp16", 16, "fp16"),
    Row(FW4_BW8, "quant:4", "quant:8", 6.7, carriers=True),
    Row("fw2-bw8", "quant:2", "quant:8", 6),
    Row(TOPK, "topk:0.1", "topk:0.1", 3.7, "topk", carriers=True),
    Row(TOPK_8BIT, "topk:0.1,values=quant:8", "topk:0.1,values=quant:8", 1.3),
]
