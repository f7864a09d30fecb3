"""Prints every speed that is promised, as a ratio of two times measured in one run; `run.py NAME` takes one file.

`large` is not among those that are taken without a name: it takes too long.
"""

import importlib
import sys
from pathlib import Path

import torch

FILES = (
    "importing", "tracing", "geometry", "jacobians", "penalties", "crossings", "monitor", "saving", "everyday",
    "explorer",
)  # fmt: skip
HELPERS = Path(__file__).parents[1] / "tests" / "helpers"  # where the browser of the tests is


def main() -> int:
    names = sys.argv[1:] or FILES
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads")
    sys.path.append(str(HELPERS))
    missed = 0
    for name in names:
        for ratio in importlib.import_module(name).ratios():
            print(ratio, flush=True)
            missed += not ratio.holds
    return min(missed, 1)


if __name__ == "__main__":
    sys.exit(main())
