"""How much is done at once, and how freed memory is kept for the next use, or given back."""

import ctypes
import os
from functools import cache

import torch

LARGEST = 31 << 20  # bytes; the C library takes no chunk above 32 MB for an example
FLOATS_AT_ONCE = 1 << 21  # in float64 half of that: such an array stays in the heap


def points_at_once(floats_per_point: int, batch_size: int | None = None, *, floats: int = FLOATS_AT_ONCE) -> int:
    """How many points to take together: `batch_size`, or so many that an array for all has about so many floats.

    >>> points_at_once(1000, floats=8000), points_at_once(1000, 5), points_at_once(1 << 30)
    (8, 5, 1)
    """
    if batch_size is not None and batch_size < 1:
        raise ValueError(f"batch_size must be at least 1, got {batch_size}")
    return batch_size or max(1, floats // max(1, floats_per_point))


@cache
def keep_freed_memory() -> None:
    """Let the C library keep freed blocks of up to 31 MB: fetching each anew, page by page, can double running times.

    It raises its threshold to the size of any block of its own that is freed, so one is made, untouched, and freed.
    """
    torch.empty(LARGEST, dtype=torch.uint8)


def return_freed_memory() -> None:
    """Have the C library give back what it keeps, where it knows how to: glibc does."""
    library = ctypes.CDLL(None) if os.name == "posix" else None
    if library is not None and hasattr(library, "malloc_trim"):
        library.malloc_trim(0)
