"""What a measure of a random program has to be, from plain evaluations of the model and of its watched twin."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch
from random_programs import Program
from torch import Tensor

import regionscope as rs

STEP = 1e-5  # of differences
STRAIGHT = 1e-12  # a second difference above this share of the values says that a boundary is nearer than a step
SAME = 1e-9  # values that differ by less than this share are equal but for rounding
PROVED = 1e-7  # bounds that are proved of rounding are at most this share, however deep a program is
FLAT = 1e-7  # slopes below this may be the rounding of differences
TIED = 1e-12  # the same for values that one line of a model computes


@dataclass(frozen=True)
class Differences:
    """Central differences at points x, exact but for rounding where no boundary is near."""

    values: Tensor  # (n, k)
    slopes: Tensor  # (n, k, d)
    straight: Tensor  # (n,) whether every value is affine within a step


def differences(function: Callable[[Tensor], Tensor], x: Tensor) -> Differences:
    """Of a function with values (n, k)."""
    n, d = len(x), x[0].numel()
    moves = STEP * torch.eye(d, dtype=x.dtype).reshape(d, *x.shape[1:])
    around = torch.cat([(x[:, None] + moves).flatten(0, 1), (x[:, None] - moves).flatten(0, 1), x])
    values = function(around)
    ahead, behind = values[: n * d].view(n, d, -1), values[n * d : 2 * n * d].view(n, d, -1)
    middle = values[2 * n * d :]
    bent = (ahead - 2 * middle[:, None] + behind).abs().amax(1)
    straight = (bent <= STRAIGHT * (1 + middle.abs().max())).all(dim=1)
    return Differences(middle, ((ahead - behind) / (2 * STEP)).transpose(1, 2), straight)


def flat_preactivations(net: rs.Network, x: Tensor) -> Tensor:
    """All pre-activations (n, units), site after site."""
    return torch.cat([x.new_zeros(len(x), 0), *(v.reshape(len(x), -1) for v in net.preactivations(x))], dim=1)


def symbols(program: Program, x: Tensor) -> Tensor:
    """A pattern by the watched model: for each breakpoint below, on or above it, for each competitor if it wins."""
    _, watch = program.watched(x)
    found = []
    for z, breakpoints, _ in watch.preactivations:
        near = TIED * (1 + z.abs().max())
        found += [torch.where((z - b).abs() <= near, 0, (z - b).sign()) for b in breakpoints]
    for values in watch.competitors:
        best = values.amax(dim=2, keepdim=True)
        found.append((values >= best - TIED * (1 + best.abs().max())).flatten(1))
    return torch.cat([f.to(torch.int8) for f in found], dim=1)


def changes(program: Program, start: Tensor, end: Tensor, grid: int) -> Tensor:
    """Where the pattern changes between two points: one place for each step of a grid where it does, by bisection."""

    def pattern(t: Tensor) -> Tensor:
        return symbols(program, start + t.view(-1, *[1] * start.dim()) * (end - start))

    places = torch.linspace(0, 1, grid + 1, dtype=start.dtype)
    at_places = pattern(places)
    changed = (at_places[1:] != at_places[:-1]).any(dim=1)
    low, high, before = places[:-1][changed], places[1:][changed], at_places[:-1][changed]
    for _ in range(30):
        middle = (low + high) / 2
        same = (pattern(middle) == before).all(dim=1) if len(middle) else changed[:0]
        low, high = torch.where(same, middle, low), torch.where(same, high, middle)
    return (low + high) / 2


@dataclass(frozen=True)
class Trial:
    """A program, the network it is traced to, and what differences say of both at some points."""

    program: Program
    n: int = 7

    @cached_property
    def x(self) -> Tensor:
        return self.program.points(self.n)

    @cached_property
    def net(self) -> rs.Network:
        return rs.trace(self.program, self.program.points(1 + self.program.seed % 3, seed=1))

    @cached_property
    def outputs(self) -> Differences:
        return differences(self.program, self.x)

    @cached_property
    def sites(self) -> Differences:
        return differences(lambda x: flat_preactivations(self.net, x), self.x)

    @cached_property
    def inside(self) -> Tensor:
        """The points that have no boundary within a step."""
        return (self.outputs.straight & self.sites.straight).nonzero().flatten()

    @cached_property
    def breakpoints(self) -> list[tuple[int, float]]:
        """Unit, counted over all sites, and breakpoint: one entry a boundary."""
        found, first = [], 0
        for site in self.net.sites:
            found += [(first + i, b) for b in site.breakpoints for i in range(site.units)]
            first += site.units
        return found

    @cached_property
    def distances(self) -> Tensor:
        """To each boundary (n, boundaries); infinite for a unit that does not move."""
        return self._distances(0.0)

    @cached_property
    def proved_distances(self) -> Tensor:
        """The same less what rounding may add to the gaps."""
        return self._distances(PROVED)

    def _distances(self, share: float) -> Tensor:
        units = [unit for unit, _ in self.breakpoints]
        gaps = (self.sites.values[:, units] - self.x.new_tensor([b for _, b in self.breakpoints])).abs()
        gaps = (gaps - share * (1 + self.sites.values.abs().amax(dim=1, keepdim=True))).clamp_min(0)
        slopes = self.sites.slopes[:, units].norm(dim=2)
        return torch.where(slopes > FLAT, gaps / slopes.clamp_min(FLAT), torch.inf)

    @cached_property
    def layers(self) -> list[list[int]]:
        """The units of each layer, counted over all sites."""
        found: list[list[int]] = [[] for _ in range(self.net.layers)]
        first = 0
        for site in self.net.sites:
            found[site.layer - 1] += range(first, first + site.units)
            first += site.units
        return found
