"""Which torch the package is loaded with."""

import subprocess
import sys

import pytest

IMPORT = """
import sys, types, torch
torch.__version__ = {found!r}
built = types.ModuleType("strait._built_with")
built.torch = {built!r}
sys.modules["strait._built_with"] = built
import strait
"""


@pytest.mark.parametrize("found, built", [("2.13.0a0+5228986c39.nv25.05", "2.13.0"), ("2.14.0.dev20260101+cpu", "2.14.0"),
                                          ("2.13.0", "2.13.0"), ("2.13.1+cpu", "2.13.0")])
def test_it_is_that_of_the_same_three_numbers(found, built):
    done = subprocess.run([sys.executable, "-c", IMPORT.format(found=found, built=built)], capture_output=True, text=True,
                          check=False)
    if found.startswith(built):
        assert done.returncode == 0, done.stderr
    else:
        assert f"ImportError: strait was built with torch {built}, found {found}; install it again" in done.stderr
