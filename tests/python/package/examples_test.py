"""The programs of examples/python run, learn and say what they promise."""

import pathlib
import re
import subprocess
import sys

import pytest

EXAMPLES = pathlib.Path(__file__).resolve().parents[3] / "examples" / "python"


def run(*words):
    result = subprocess.run(list(map(str, words)), capture_output=True, text=True, check=False, timeout=300)
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.parametrize("options", [(), ("--activations", "topk:0.25", "--gradients", "none", "--feedback", "aq-sgd")])
def test_boundary(options):
    said = run(sys.executable, EXAMPLES / "boundary.py", *options)
    on, off = map(float, re.search(r"accuracy ([\d.]+) with compression, ([\d.]+) without", said).groups())
    assert min(on, off) > 0.75, said
    assert len(re.findall(r"^epoch \d: loss", said, re.MULTILINE)) == 4
    forward, backward, ratio, raw = re.search(r"bytes: (\d+) forward, (\d+) backward, ([\d.]+) times fewer than (\d+)",
                                              said).groups()
    assert int(raw) == 4 * 1024 * 2 * 4 * 8 * 8 * 8
    assert float(ratio) == pytest.approx(int(raw) / (int(forward) + int(backward)), abs=0.06)


def test_ddp():
    said = run(sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", 2, "--master-port", 0, "--standalone",
               EXAMPLES / "ddp.py", "--steps", 50)
    losses = [float(loss) for loss in re.findall(r"step +\d+  loss ([\d.]+)", said)]
    assert len(losses) == 2 and losses[1] < losses[0], said
    assert float(re.search(r"([\d.]+) times fewer", said).group(1)) > 5
