"""Data as users have it, as batches of points."""

from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import Tensor

from regionscope.tracing.trace import first_tensor

Data = Tensor | Iterable[Any]


def batches(data: Data, batch_size: int | None = None) -> Iterator[Tensor]:
    """The points of a tensor or of an iterable of batches (tensor, tuple or dict), at most `batch_size` at a time."""
    if batch_size is not None and batch_size < 1:
        raise ValueError(f"batch_size must be at least 1, got {batch_size}")
    found = False
    for batch in [data] if isinstance(data, Tensor) else data:
        points = first_tensor(batch).detach()
        for part in points.split(batch_size or max(1, len(points))) if len(points) else ():
            found = True
            yield part
    if not found:
        raise ValueError("there are no points in the data")


def all_points(data: Data) -> Tensor:
    """All points of the data in one tensor (n, ...)."""
    return data.detach() if isinstance(data, Tensor) and len(data) else torch.cat(list(batches(data)))
