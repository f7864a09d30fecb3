"""How freed memory is kept for the next use."""

from functools import cache

import torch

LARGEST = 31 << 20  # bytes; the C library takes no chunk above 32 MB for an example


@cache
def keep_freed_memory() -> None:
    """Let the C library keep freed blocks of up to 31 MB: fetching each anew, page by page, can double running times.

    It raises its threshold to the size of any block of its own that is freed, so one is made, untouched, and freed.
    """
    torch.empty(LARGEST, dtype=torch.uint8)
