"""Random numbers that belong to points: the same whatever batches the points are taken in."""

from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from regionscope.points import digest_of


class Draws:
    """Streams of random numbers, each with its own key; a stream gives to one point after another.

    All follow from one number that is drawn from the generator, so that points of the same place in the data have the
    same noise whenever the generator was in the same state.
    """

    def __init__(self, generator: torch.Generator | None) -> None:
        self.generator = generator
        self.streams: dict[tuple[int, ...], np.random.Generator] = {}

    @cached_property
    def seed(self) -> int:
        """Drawn when the first number is asked for: what needs none leaves the generator alone."""
        return int(torch.randint(2**62, (), generator=self.generator))

    def _stream(self, key: tuple[int, ...]) -> np.random.Generator:
        if key not in self.streams:
            self.streams[key] = np.random.Generator(np.random.PCG64(np.random.SeedSequence(self.seed, spawn_key=key)))
        return self.streams[key]

    def normal(self, key: tuple[int, ...], like: Tensor, *shape: int) -> Tensor:
        """Standard normal numbers (n, *shape) for the next n points, n, dtype and device those of `like`."""
        dtype = np.float64 if like.dtype == torch.float64 else np.float32
        drawn = self._stream(key).standard_normal((len(like), *shape), dtype=dtype)
        return torch.from_numpy(drawn).to(like.device, like.dtype)

    def uniform(self, key: tuple[int, ...], like: Tensor, *shape: int) -> Tensor:
        """Numbers (n, *shape) between 0 and 1 for the next n points."""
        return torch.from_numpy(self._stream(key).random((len(like), *shape))).to(like.device, like.dtype)


def part_generator(seed: int, part: int) -> torch.Generator:
    """A generator for one part of points that are measured apart: of part 0 that with the seed, of others their own.

    With one generator for all parts, the first point of each would have the same noise, and so on: errors that chance
    leaves at single points would stay in the mean over all of them.
    """
    if part:
        seed = int(np.random.SeedSequence([seed % 2**64, part]).generate_state(1, np.uint64)[0] >> np.uint64(1))
    return torch.Generator().manual_seed(seed)


def part_number(points: Tensor) -> int:
    """A number for some points: the same for the same points, another for others."""
    return int.from_bytes(digest_of(points)[:8], "big")
