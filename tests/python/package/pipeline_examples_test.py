"""The examples that train over processes, as a reader would start them."""

import pathlib
import re
import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F
from transformers import AutoModelForCausalLM

from launch import torchrun

EXAMPLES = pathlib.Path(__file__).parents[3] / "examples/python"


def alone(script, *arguments):
    command = [sys.executable, str(EXAMPLES / script), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout


def test_pipeline_learns_and_prints_the_same_in_one_process_and_four():
    arguments = ("--steps", "60")
    one = alone("pipeline.py", *arguments)
    four = torchrun(EXAMPLES / "pipeline.py", *arguments, processes=4).stdout
    steps = re.findall(r"step .*", one)
    assert steps == re.findall(r"step .*", four) and len(steps) == 3
    losses = [float(re.search(r"loss (\S+)", step)[1]) for step in steps]
    assert losses[2] < 0.2 * losses[0]
    assert all(float(re.search(r"([\d.]+) times", step)[1]) > 3 for step in steps)


@pytest.mark.parametrize("model", ["gpt2", "llama"])
def test_a_model_of_transformers_trains_and_loads_again(model, tmp_path):
    text = pathlib.Path(__file__).parents[3] / "docs/operators.md"
    done = torchrun(EXAMPLES / "gpt2_transformers.py", "--text", text, "--out", tmp_path, "--model", model, "--steps", 40,
                    processes=4).stdout
    losses = [float(loss) for loss in re.findall(r"step +\d+  loss (\S+)", done)]
    assert len(losses) == 2 and max(losses) < 4  # it begins at log 256, which is 5.55
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path).eval()
    tokens = torch.tensor(list(text.read_bytes()[:8 * 64])).view(8, 64)
    with torch.no_grad():
        scores = loaded(tokens).logits
    loss = F.cross_entropy(scores[:, :-1].flatten(0, 1), tokens[:, 1:].flatten()).item()
    assert loss == pytest.approx(float(re.search(r"first 8 blocks (\S+)", done)[1]), abs=1e-5)
    assert float(re.search(r"(\d+) bytes of", done)[1]) < 0.3 * float(re.search(r"bytes of (\d+)", done)[1])
