"""Loads the extension module, which works with the PyTorch that it was built with."""

import re

import torch  # brings the libraries that the extension module uses

try:
    from . import _built_with
except ImportError as error:
    raise ImportError("strait: this folder holds its sources; install it (pip install .) or name the folder python of a "
                      "build in PYTHONPATH") from error

# The build records the three numbers of a version; alphas and nightlies have letters behind them ("2.13.0a0+git").
_found = re.match(r"\d+\.\d+\.\d+", torch.__version__)
if _found is None or _found[0] != _built_with.torch:
    raise ImportError(f"strait was built with torch {_built_with.torch}, found {torch.__version__}; install it again")

from . import _C  # noqa: E402, F401
