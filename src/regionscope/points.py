"""Data as users have it, and points to measure a network at: the families that PD 4.1 watches, and two in between."""

from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regionscope.types import Array, Data, Floats

ARRAYS = (Tensor, np.ndarray)


def as_tensor(values: Any) -> Tensor:
    """A tensor without its gradients, or an array or list of numbers as one, in its own dtype."""
    if isinstance(values, np.ndarray):
        return torch.from_numpy(np.require(values, requirements=["C", "W"]))  # a copy where torch could not share it
    found: Tensor = torch.as_tensor(values)
    return found.detach()


def as_array(values: Any) -> Floats:
    """A tensor, an array, numbers or a number as an array of its own, in float64."""
    return np.array(values.detach().cpu().double().numpy() if isinstance(values, Tensor) else values, np.float64)


def digest_of(points: Tensor) -> bytes:
    """A hash of points, entry by entry: the same for the same points, another for others.

    >>> digest_of(torch.zeros(2)) == digest_of(torch.zeros(2)), digest_of(torch.zeros(2)) == digest_of(torch.ones(2))
    (True, False)
    """
    entries = points.detach().cpu().flatten().contiguous().view(torch.uint8)
    return sha256(entries.numpy().tobytes()).digest()


def first_array(batch: Any) -> Array:
    """The inputs in a batch as loaders give it: a tensor or array, or the first one of a tuple or dict."""
    if isinstance(batch, ARRAYS):
        return batch
    if isinstance(batch, Mapping | list | tuple):
        for entry in batch.values() if isinstance(batch, Mapping) else batch:
            if isinstance(entry, ARRAYS):
                return entry
    raise TypeError(f"a batch must be a tensor or array, or a tuple or dict that holds one, got {type(batch).__name__}")


def first_tensor(batch: Any) -> Tensor:
    """The same as a tensor."""
    return as_tensor(first_array(batch))


def batches(data: Data, batch_size: int | None = None) -> Iterator[Array]:
    """The points of a tensor or array, or of an iterable of batches (or tuples or dicts), at most so many at a time."""
    if batch_size is not None and batch_size < 1:
        raise ValueError(f"batch_size must be at least 1, got {batch_size}")
    found = False
    for batch in [data] if isinstance(data, ARRAYS) else data:
        points = first_array(batch)
        for start in range(0, len(points), batch_size or max(1, len(points))):
            found = True
            yield points if batch_size is None else points[start : start + batch_size]
    if not found:
        raise ValueError("there are no points in the data")


def _all_points(data: Data) -> Tensor:
    """All points of the data in one tensor (n, ...)."""
    parts = [as_tensor(part) for part in batches(data)]
    return parts[0] if len(parts) == 1 else torch.cat(parts)


# families of points


def sampled_points(data: Data, n: int, *, generator: torch.Generator | None = None) -> Tensor:
    """n different points of the data (N, ...), all of them in random order if n = N: (n, ...), for PD 4.1.

    Without a `generator` calls differ.

    >>> sampled_points(torch.arange(3.0)[:, None], 3).sort(dim=0).values.flatten()
    tensor([0., 1., 2.])
    """
    points = _all_points(data)
    if not 1 <= n <= len(points):
        raise ValueError(f"n must be from 1 to the {len(points)} points of the data, got {n}")
    return points[torch.randperm(len(points), generator=generator)[:n].to(points.device)]


def uniform_points(data: Data, n: int, *, per_entry: bool = False, generator: torch.Generator | None = None) -> Tensor:
    """n points uniformly from the box of the data (PD 4.1): (n, ...).

    The box is [a, b]^d with the smallest and largest entry of all points, such as [0, 1]^784 for MNIST; with
    `per_entry` each of the d entries has its own limits. Without a `generator` calls differ.

    >>> box = torch.tensor([[0.0, 5.0], [1.0, 9.0]])
    >>> bool((uniform_points(box, 100, per_entry=True)[:, 1] >= 5).all())
    True
    """
    points = _all_points(data)
    low, high = (points.amin(dim=0), points.amax(dim=0)) if per_entry else (points.min(), points.max())
    drawn = torch.rand((_checked_number(n), *points.shape[1:]), generator=generator, dtype=torch.float64)
    return low + (high - low) * drawn.to(points)


def noisy_points(data: Data, n: int, *, scale: float, generator: torch.Generator | None = None) -> Tensor:
    """n points x + scale * N(0, 1), x drawn from the data: (n, ...). Without a `generator` calls differ.

    >>> noisy_points(torch.zeros(1, 2), 3, scale=0.1).shape
    torch.Size([3, 2])
    """
    if not scale > 0:
        raise ValueError(f"scale must be positive, got {scale}")
    points = _all_points(data)
    chosen = points[_drawn_rows(points, n, generator)]
    noise = torch.randn(chosen.shape, generator=generator, dtype=torch.float64)
    return chosen + scale * noise.to(points)


def interpolated_points(data: Data, n: int, *, generator: torch.Generator | None = None) -> Tensor:
    """n points (1 - t) x + t y, x and y drawn from the data and t from [0, 1]: (n, ...).

    Without a `generator` calls differ.

    >>> line = interpolated_points(torch.tensor([[0.0, 0.0], [1.0, 1.0]]), 5)
    >>> bool((line[:, 0] == line[:, 1]).all())
    True
    """
    points = _all_points(data)
    x, y = (points[_drawn_rows(points, n, generator)] for _ in range(2))
    t = torch.rand((n, *[1] * (points.dim() - 1)), generator=generator, dtype=torch.float64).to(points)
    return torch.lerp(x, y, t)


def probe_points(
    train: Data, test: Data | None = None, *, n: int, noise: float = 0.1, generator: torch.Generator | None = None
) -> dict[str, Tensor]:
    """n points of every family by name: train, test if given, uniform, noisy, interpolated (the first three: PD 4.1).

    The same ones for a generator in the same state; without a `generator` calls differ. `noise` is a share of the
    data's range.

    >>> list(probe_points(torch.rand(9, 2), torch.rand(9, 2), n=4))
    ['train', 'test', 'uniform', 'noisy', 'interpolated']
    """
    points = _all_points(train)
    spread = float(points.max() - points.min())
    probes = {"train": sampled_points(points, n, generator=generator)}
    if test is not None:
        probes["test"] = sampled_points(test, n, generator=generator)
    probes["uniform"] = uniform_points(points, n, generator=generator)
    probes["noisy"] = noisy_points(points, n, scale=noise * spread, generator=generator)
    probes["interpolated"] = interpolated_points(points, n, generator=generator)
    return probes


def _checked_number(n: int) -> int:
    if n < 1:
        raise ValueError(f"n must be at least 1, got {n}")
    return n


def _drawn_rows(points: Tensor, n: int, generator: torch.Generator | None) -> Tensor:
    """The numbers of n points, drawn with replacement."""
    return torch.randint(len(points), (_checked_number(n),), generator=generator).to(points.device)
