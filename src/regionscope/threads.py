"""How compiled kernels and torch share the machine's threads."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def torch_threads_kept() -> Iterator[None]:
    """Around a compiled kernel: the first that runs in parallel starts numba's threads and sets torch's number too."""
    threads = torch.get_num_threads()
    try:
        yield
    finally:
        if torch.get_num_threads() != threads:
            torch.set_num_threads(threads)
