"""Processes for tests: a script of this folder under torchrun, the program."""

import contextlib
import json
import os
import pathlib
import random
import socket
import subprocess
import sys

import torch

import safetensors_file

FOLDER = pathlib.Path(__file__).parent
PROGRAM = os.environ.get("STRAIT_PROGRAM", "build/strait")


def free_port():
    """None that the kernel gives to sockets that name none, so that no such socket takes it first."""
    end = int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text(encoding="ascii").split()[0])
    while True:
        with socket.socket() as free, contextlib.suppress(OSError):
            free.bind(("127.0.0.1", random.randrange(16384, end) if end > 16384 else 0))
            return free.getsockname()[1]


def torchrun(script, *arguments, processes, timeout=300, check=True):
    """Runs it in so many processes and gives the ended subprocess, with all that they printed."""
    environment = dict(os.environ, OMP_NUM_THREADS="1", GLOO_SOCKET_IFNAME="lo", TOKENIZERS_PARALLELISM="false")
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(processes), "--master-addr", "127.0.0.1",
               "--master-port", str(free_port()), str(FOLDER / script), *map(str, arguments)]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=timeout,
                          check=False)
    assert not check or done.returncode == 0, done.stdout
    return done


def train_by_program(folder, keys, data, weights=None, out="run"):
    """The folder of a run of the program on these samples, from these weights."""
    safetensors_file.write(folder / "data.safetensors", {"inputs": data[0], "targets": data[1]})
    keys = {"data.kind": "tensors", "data.train_file": str(folder / "data.safetensors"), "train.threads": 1,
            "data.test_file": str(folder / "data.safetensors"), "pipeline.micro_batches": 1,
            "train.schedule": {"kind": "constant"}, "checkpoint.every_epochs": 0, **keys}
    if weights:
        safetensors_file.write(folder / "init.safetensors", weights)
        keys["model.init"] = str(folder / "init.safetensors")
    (folder / "config.toml").write_text("", encoding="utf-8")
    sets = [f"--set={key}={toml(value)}" for key, value in keys.items()]
    result = subprocess.run([PROGRAM, "train", folder / "config.toml", "--out", folder / out, *sets], text=True,
                            capture_output=True, check=False)
    assert result.returncode == 0, result.stderr
    return folder / out


def toml(value):
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {toml(part)}" for key, part in value.items()) + " }"
    return json.dumps(value)


def expect_equal(run, weights):
    ours = safetensors_file.read(run / "model.safetensors")[0]
    assert ours.keys() == weights.keys()
    for name, tensor in weights.items():
        assert ours[name].flatten().view(torch.uint8).tolist() == tensor.flatten().view(torch.uint8).tolist(), name
