"""The code of docs/python.md and of the docstrings runs as it stands, after what a reader has: modules and data."""

import inspect
import pathlib
import re

import pytest
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.pipelining import Schedule1F1B
from torch.nn.parallel import DistributedDataParallel

import strait
from launch import free_port

PAGE = (pathlib.Path(__file__).parents[3] / "docs/python.md").read_text(encoding="utf-8")
# What is no Python, and what needs a run of the program.
OTHERS = {"strait from Python", "Runs of the program"}


def indented_code(text):
    """The lines that are indented by four columns, and the empty ones between them."""
    lines = text.splitlines()
    return "\n".join(line[4:] for line in lines if line.startswith("    ") or not line.strip())


def sections():
    parts = re.split(r"^#+ (.*)\n", PAGE, flags=re.MULTILINE)
    code = {title: indented_code(text) for title, text in zip(parts[1::2], parts[2::2])}
    return {title: lines for title, lines in code.items() if lines.strip()}


def docstring_code(documented):
    return indented_code(re.search(r"::\n\n((?:    .*\n|\n)+)", inspect.cleandoc(documented.__doc__) + "\n")[1])


@pytest.fixture
def names(monkeypatch):
    """What the code takes from its reader, in a process by itself that may make a process group."""
    for name, value in {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()),
                        "GLOO_SOCKET_IFNAME": "lo"}.items():
        monkeypatch.setenv(name, value)
    stem, body, head = nn.Linear(6, 20), nn.Linear(20, 20), nn.Linear(20, 3)
    x, y, ids = torch.randn(16, 6), torch.randint(3, (16, )), list(range(16))
    yield {
        "torch": torch, "nn": nn, "F": F, "dist": dist, "DistributedDataParallel": DistributedDataParallel,
        "Schedule1F1B": Schedule1F1B, "strait": strait, "stem": stem, "body": body, "head": head, "x": x, "y": y, "ids": ids,
        "loader": [(x, y)] * 3, "criterion": F.cross_entropy, "evaluate": lambda model: model.eval()(x),
        "model": nn.Sequential(stem, strait.Boundary("quant:4"), body, head), "submodule": stem, "index": 0, "count": 1,
        "device": torch.device("cpu")
    }
    if dist.is_initialized():
        dist.destroy_process_group()


def test_the_page_has_the_sections_that_this_file_names():
    assert OTHERS < sections().keys() and len(sections()) >= 6


@pytest.mark.parametrize("title", [title for title in sections() if title not in OTHERS])
def test_a_section_of_the_page_runs(title, names):
    if "DistributedDataParallel(" in sections()[title] or "Schedule1F1B(" in sections()[title]:
        dist.init_process_group("gloo")
    exec(compile(sections()[title], title, "exec"), names)
    if "ddp" in names:
        F.cross_entropy(names["ddp"](names["x"]), names["y"]).backward()


@pytest.mark.parametrize("documented", [strait.Boundary, strait.Pipeline, strait.DDPState], ids=lambda each: each.__name__)
def test_the_example_of_a_docstring_runs(documented, names):
    if documented is strait.DDPState:
        dist.init_process_group("gloo")
    exec(compile(docstring_code(documented), documented.__name__, "exec"), names)
