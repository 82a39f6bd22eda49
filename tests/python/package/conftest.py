"""What all tests of the package share."""

import pathlib
import sys

import hypothesis
import pytest
import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))  # safetensors_file
hypothesis.settings.register_profile("strait", deadline=None, derandomize=True, database=None, max_examples=60)
hypothesis.settings.load_profile("strait")


@pytest.fixture(autouse=True)
def equal_draws():
    torch.manual_seed(1)


@pytest.fixture
def one_thread():
    """Sums of several threads depend on their number."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
