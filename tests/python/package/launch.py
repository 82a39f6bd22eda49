"""Processes for tests: a script of this folder under torchrun."""

import os
import pathlib
import socket
import subprocess
import sys

FOLDER = pathlib.Path(__file__).parent


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
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
