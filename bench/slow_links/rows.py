"""What is compared: the codecs, and how long a measurement with each must be at a rate."""

from __future__ import annotations

from dataclasses import dataclass

from network import parse_rate

ONE_MACHINE = "one machine"  # all ranks on one host, as `strait launch` starts them
RATES = [ONE_MACHINE, "unlimited", "1Gbps", "500Mbps", "100Mbps", "20Mbps"]
BATCH = 100  # as in resnet18.toml
EPOCHS = 3  # as in resnet18.toml; the first warms up, the others are timed
SECONDS = 5.0  # of training that a measurement aims at, the warm-up included

# This only sizes the runs: how much longer a step takes than the busiest link is busy, because the pipeline fills and drains.
FILL = 1.4
TORCH_BITS = {"raw": 32, "fp16": 16, "topk": 9.6}  # an element; a tenth as fp32 values and int64 indices


def rate_of(name: str) -> float | None:
    """Bits per second of one of RATES; None without a limit."""
    return None if name == ONE_MACHINE else parse_rate(name)


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


@dataclass(frozen=True)
class Training:
    """What is trained, and what is compared over it."""

    page: str  # among the results, and the figures beside it
    title: str
    config: str  # beside this file
    stages: int
    elements: int  # that the busiest link carries for a sample; with the next one only sizes the runs
    compute_rate: float  # samples per second that two cores train without links
    rows: list[Row]
    sides: list[str]
    speed_ups: list[tuple[str, str, float]]  # the least over raw fp32 at a rate

    def steps_an_epoch(self, seconds: float, bits: float, rate: float | None) -> int:
        """Training steps, so that EPOCHS epochs take about that long; one at least."""
        sample = 1 / self.compute_rate + (FILL * self.elements * bits / rate if rate else 0)
        return max(1, round(seconds / EPOCHS / (sample * BATCH)))


# Stage 2 sends layer2's activations on and layer1's gradients back.
QUARTER = Training("slow_links", "Training over slow links", "resnet18.toml", 4, 8192 + 16384, 400.0, ROWS, SIDES,
                   [("20Mbps", FW4_BW8, 4.0), ("20Mbps", TOPK, 6.0), ("20Mbps", TOPK_8BIT, 9.0), ("100Mbps", TOPK, 3.0)])
# A core for each stage, and as much work for a byte as the paper has.
FULL = Training("slow_links_full", "Training over slow links, a core a stage", "resnet18_full.toml", 2, 32768, 50.0,
                [row for row in ROWS if row.carriers], ["strait", "c10d"], [])
TRAININGS = {training.page: training for training in (QUARTER, FULL)}
