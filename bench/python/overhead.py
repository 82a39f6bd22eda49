#!/usr/bin/env python3
"""What calls from Python cost beside the work that they ask for. The whole time for a tensor of one element is above what
Python, PyTorch's dispatch and the reading of the spec take; it is set against the message of the paper's first boundary.

    PYTHONPATH=build/python .venv/bin/python3 bench/python/overhead.py [ROUNDS]
"""

import statistics
import sys
import time

import torch

import strait


def median_seconds(call, rounds):
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    x, element = torch.randn(100, 64, 32, 32), torch.zeros(1, 1)
    print(f"{'codec':10} {'message ms':>10} {'element us':>10} {'overhead':>9}")
    for spec in ("none", "fp16", "quant:4", "topk:0.1"):
        assert torch.equal(strait.reconstruct(x, spec), strait.decompress(strait.compress(x, spec), spec, x.shape))
        message = median_seconds(lambda: strait.reconstruct(x, spec), rounds)
        call = median_seconds(lambda: strait.reconstruct(element, spec), 100 * rounds)
        print(f"{spec:10} {message * 1e3:10.2f} {call * 1e6:10.1f} {call / message:9.2%}")


if __name__ == "__main__":
    main()
