"""The vertices of neighbourhoods on their way through a network: what crossings and deformation are told from.

A neighbourhood of x is the convex hull of x ± r v_p for P orthonormal directions v_p, a cross-polytope (PD 3.2). Up to
its first activation a network is affine, head(x ± r v) = head(x) ± r J v, and J v is the same for every x:
with one frame for all points only the rest of the network is run at the 2P vertices of each. Of dense ReLU layers not
even that has to be run, see `crosspolytopes`.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import repeat
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from regionscope.geometry.planes import check_resolved
from regionscope.geometry.predicates import FRAME, RESOLVED
from regionscope.machine import points_at_once, portions
from regionscope.measures.crosspolytopes import Layer, dense_layers, extremes_of
from regionscope.points import ARRAYS
from regionscope.tracing.network import Network, Site, as_rows
from regionscope.tracing.operations import bend
from regionscope.tracing.program import Program
from regionscope.types import Array, Floats

COARSE = 1 << 13  # roundings of a point: with a radius of so many, distances are told in any dtype
FEW = 8  # directions; with fewer, it is not worth it to pick the products that are needed,
MANY = 0.05  # nor if more than this share of the units of the first layer switch


@dataclass(frozen=True)
class Passage:
    """A network that stands still, cut into a head that is affine in the input and one part for each of the sites."""

    net: Network
    sites: tuple[Site, ...]  # in the order in which their values are made
    head: Program
    parts: tuple[Program, ...]
    layers: tuple[Layer, ...]  # the parts, if all are dense layers behind ReLUs

    @cached_property
    def precise(self) -> "Passage":
        """The same in float64."""
        return passage(self.net.frozen(), [site.layer for site in self.sites])

    @property
    def widest(self) -> int:
        """The number of floats of the largest value that is kept at a vertex."""
        shapes = [self.head.shapes[value] for value in self.head.outputs]
        return max(math.prod(shape) for shape in (*shapes, *(site.shape for site in self.sites)))

    def at_vertices(self) -> "Passage":
        """The same, with no other way than that of all vertices."""
        return replace(self, layers=())

    def centres(self, x: Tensor) -> list[Tensor]:
        """What the head makes of points x (n, *input_shape), one tensor (n, k) a value."""
        return [as_rows(value) for value in self.head.run(x)]

    def arms(self, frames: Tensor, reach: float) -> list[Tensor]:
        """How the same changes along the directions of frames (f, P, d): one tensor (f, P, k) a value.

        J v = (head(R v) - head(0)) / R: for radii up to the reach R it rounds no worse than the head at the vertices.
        """
        ends = reach * frames.reshape(-1, *self.net.input_shape)
        changes = zip(self.centres(ends), self.centres(torch.zeros_like(ends[:1])), strict=True)
        return [((end - start) / reach).view(*frames.shape[:2], -1) for end, start in changes]


class _Extent(NamedTuple):
    """A site at the vertices of n neighbourhoods."""

    site: Site
    low: Floats  # (n, units), the smallest value of each unit
    high: Floats  # (n, units), the largest; of a unit that keeps its sign perhaps any two values of that sign
    watched: Tensor  # (some, 2P, units), all values in some of the neighbourhoods, in float64


@dataclass(frozen=True)
class Bundle:
    """The neighbourhoods of some points, as far as the head of the network."""

    passage: Passage
    points: Tensor  # (n, *input_shape)
    frames: Tensor  # (n, P, d), or (1, P, d) with one frame for all points
    centres: list[Tensor]  # (n, k)
    arms: list[Tensor]  # (n, P, k), or (1, P, k)

    def __len__(self) -> int:
        return len(self.centres[0])

    @property
    def at_once(self) -> int:
        """How many neighbourhoods to take together, by a site at all vertices."""
        return points_at_once(2 * self.frames.shape[1] * self.passage.widest)

    def vertices(self, which: int, radius: float, *, include_centre: bool) -> Tensor:
        """The vertices of one neighbourhood in float64, (vertices, *input_shape), in the same order."""
        arms = radius * self.frames[which if len(self.frames) > 1 else 0].double().view(-1, *self.points.shape[1:])
        centre = self.points[which].double()
        return torch.cat([centre + arms, centre - arms, *([centre[None]] if include_centre else [])])

    def chosen(self, which: slice) -> "Bundle":
        """Some of the neighbourhoods."""
        frames, *arms = (a if len(a) == 1 else a[which] for a in (self.frames, *self.arms))
        return Bundle(self.passage, self.points[which], frames, [c[which] for c in self.centres], arms)

    def precisely(self, which: Tensor | slice, radius: float) -> "Bundle":
        """Some of the neighbourhoods in float64."""
        frames = (self.frames if len(self.frames) == 1 else self.frames[which]).double()
        way, x = self.passage.precise, self.points[which].double()
        return Bundle(way, x, frames, way.centres(x), way.arms(frames, radius))

    def parts(self, radius: float, *, include_centre: bool = False) -> Iterator["Bundle"]:
        """The neighbourhoods in as many parts as have to be gone through apart, each in the way that costs least."""
        P = self.frames.shape[1]
        if self.passage.layers and not include_centre and P >= FEW and self.switching_share(radius) <= MANY:
            yield self
            return
        plain = replace(self, passage=self.passage.at_vertices())
        for part in portions(len(self), self.at_once):
            yield plain.chosen(part)

    def extents(self, radius: float, *, include_centre: bool = False, watched: slice = slice(0)) -> Iterator[_Extent]:
        """Every site at the vertices x ± r v_p, and perhaps x; those `watched` in float64 if rounding may matter."""
        P, some = self.frames.shape[1], self.points[watched]
        values: Iterable[Tensor] = repeat(torch.empty(0))
        if len(some) and _roundings(radius, some) < COARSE:
            values = (v for _, v in self.precisely(watched, radius).embedded(radius))
        elif len(some) and self.passage.layers:
            values = (v.double() for _, v in self.chosen(watched).embedded(radius))
        if self.passage.layers:
            ends = zip(*self.extremes_in_chain(radius), strict=True)
            for site, (low, high), near in zip(self.passage.sites, ends, values, strict=False):
                yield _Extent(site, low, high, near)
            return
        for (site, vertices), near in zip(self.embedded(radius, include_centre=include_centre), values, strict=False):
            watched_here = vertices[watched, : 2 * P].double() if len(some) and not len(near) else near
            yield _Extent(site, *extremes(vertices), watched_here)

    def switching_share(self, radius: float) -> float:
        """The share of the units behind the head that switch."""
        reach = radius * self.arms[0].abs().amax(dim=1).numpy()
        return float((np.abs(self.centres[0].numpy()) <= reach).mean())

    def extremes_in_chain(self, radius: float) -> tuple[list[Floats], list[Floats]]:
        """The smallest and largest values behind dense layers; what may be rounding has the sign it has in float64."""
        units = [site.units for site in self.passage.sites]
        size = torch.maximum(self.points.flatten(1).norm(dim=1), self.centres[0].norm(dim=1))
        found = extremes_of(self.passage.layers, self.centres[0], radius * self.arms[0], size)
        low, high = (torch.from_numpy(a).split(units, dim=1) for a in found[:2])
        doubtful = torch.from_numpy(found.doubtful).nonzero()[:, 0]
        for which in doubtful.split(self.at_once) if len(doubtful) else ():
            for number, (_, vertices) in enumerate(self.precisely(which, radius).embedded(radius)):
                low[number][which], high[number][which] = (a.to(low[0].dtype) for a in vertices.aminmax(dim=1))
        return [a.numpy() for a in low], [a.numpy() for a in high]

    def embedded(self, radius: float, *, include_centre: bool = False) -> Iterator[tuple[Site, Tensor]]:
        """Every site with its pre-activations at the vertices x + r v_p, x - r v_p, perhaps x: (n, vertices, units)."""
        head, n = self.passage.head, len(self)
        state: dict[int, Tensor] = {}
        for value, centre, arm in zip(head.outputs, self.centres, self.arms, strict=True):
            arm = radius * arm
            arm = torch.cat([arm, -arm, *([torch.zeros_like(arm[:, :1])] if include_centre else [])], dim=1)
            vertices = arm.shape[1]
            state[value] = (centre[:, None] + arm).reshape(-1, *head.shapes[value])
        for site, part in zip(self.passage.sites, self.passage.parts, strict=True):
            state = dict(zip(part.outputs, part.resume(state), strict=True))
            yield site, state[site.entry].reshape(n, vertices, -1)


def passage(net: Network, layers: Sequence[int]) -> Passage:
    """The way through a network to the sites of these layers."""
    net = net.frozen(net.dtype)
    made = {value: place for place, step in enumerate(net.program.steps) for value in step.results}
    sites = sorted((s for s in net.sites if s.layer in layers), key=lambda site: made.get(site.entry, -1))
    entries = [site.entry for site in sites]
    program = replace(net.program.pruned(entries), outputs=())
    head, *parts = program.segments([bend(program, set(net.exits)), *entries])[:-1]
    switches = {site.breakpoints for site in sites} <= {(0.0,)} and len(head.outputs) == 1
    return Passage(net, tuple(sites), head, tuple(parts), dense_layers(parts) if switches else ())


def extremes(vertices: Tensor) -> tuple[Floats, Floats]:
    """The smallest and largest value of each unit at vertices (n, vertices, units): (n, units)."""
    # numpy, as little is left by now: starting torch's threads would cost more than the work
    return vertices.amin(dim=1).cpu().numpy(), vertices.amax(dim=1).cpu().numpy()


def chosen_layers(net: Network, layers: Sequence[int] | Array | None) -> tuple[int, ...]:
    """The numbers of the layers to look at, in order; all without a choice."""
    if layers is None:
        return tuple(range(1, net.layers + 1))
    numbers = [layer.item() if isinstance(layer, ARRAYS) else layer for layer in layers]
    if not numbers or not all(1 <= layer <= net.layers for layer in numbers):
        raise ValueError(f"layers must be numbers from 1 to {net.layers}, got {numbers}")
    return tuple(sorted({int(layer) for layer in numbers}))


@torch.no_grad()
def bundles(
    way: Passage,
    points: Iterable[Tensor],
    frame: Tensor | None,
    directions: int,
    *,
    reach: float,
    finest: float | None = None,
    generator: torch.Generator | None = None,
    batch_size: int | None = None,
) -> Iterator[Bundle]:
    """The neighbourhoods of all points for radii up to `reach`, a limited number at a time; no frame: each its own.

    Points in whose rounding the `finest` radius, or the reach, would be lost are taken in float64.
    """
    dimension = math.prod(way.net.input_shape)
    if frame is not None and way.layers:
        floats = max(dimension, sum(site.units for site in way.sites))  # each site has two values of a neighbourhood
    else:
        floats = 2 * directions * (way.widest if frame is not None else max(way.widest, dimension))
    at_once = points_at_once(floats, batch_size)
    shared = None if frame is None else (frame[None], way.arms(frame[None], reach))
    for batch in points:
        for x in batch.split(at_once):
            frames, arms = shared or _own_frames(way, x, directions, reach, generator)
            bundle = Bundle(way, x, frames, way.centres(x), arms)
            lost = is_lost(reach if finest is None else finest, x)
            yield bundle.precisely(torch.arange(len(x)), reach) if lost else bundle


def is_lost(radius: float, points: Tensor) -> bool:
    """Whether a radius is lost in the rounding of points (n, ...), and not in float64; an error if there too."""
    if _roundings(radius, points) >= RESOLVED:
        return False
    check_resolved(radius, points)
    return points.dtype is not torch.float64


def _roundings(radius: float, points: Tensor) -> float:
    """How many roundings of points (n, ...) a radius is; those near zero count as of norm 1, as there are biases."""
    size = max(1.0, float(points.flatten(1).norm(dim=1).max()))
    return radius / (torch.finfo(points.dtype).eps * size)


def _own_frames(
    way: Passage, x: Tensor, directions: int, reach: float, generator: torch.Generator | None
) -> tuple[Tensor, list[Tensor]]:
    """A frame for each of the points, (n, P, d), and how the head changes along them."""
    own = [random_frame(directions, math.prod(way.net.input_shape), generator) for _ in range(len(x))]
    frames = torch.stack(own).to(x)
    return frames, way.arms(frames, reach)


# what the caller says of neighbourhoods


def random_frame(directions: int, dimension: int, generator: torch.Generator | None = None) -> Tensor:
    """Orthonormal rows (directions, dimension), uniformly distributed, in float64."""
    normal = torch.randn(dimension, directions, generator=generator, dtype=torch.float64)
    frame: Tensor = torch.linalg.qr(normal).Q.T
    return frame.contiguous()


def shared_frame_of(
    net: Network, frame: ArrayLike | None, directions: int, shared: bool, generator: torch.Generator | None
) -> tuple[Tensor | None, int]:
    """The frame (P, d) of all points, None if each has its own, and P: `directions`, or as many as the input has."""
    dimension = math.prod(net.input_shape)
    if frame is not None:
        if not shared:
            raise ValueError("shared_frame=False draws a frame for each point; leave frame out")
        given = _checked_frame(torch.as_tensor(frame, dtype=torch.float64, device="cpu").detach(), dimension)
        return given.to(net.device, net.dtype), len(given)
    if directions < 1:
        raise ValueError(f"directions must be at least 1, got {directions}")
    directions = min(directions, dimension)
    drawn = random_frame(directions, dimension, generator).to(net.device, net.dtype) if shared else None
    return drawn, directions


def _checked_frame(frame: Tensor, dimension: int) -> Tensor:
    """The frame (P, d), if its rows are orthonormal to `FRAME`."""
    if frame.dim() < 2 or not 1 <= len(frame) <= dimension or frame[0].numel() != dimension:
        wanted = f"(P, {dimension}) with 1 <= P <= {dimension}"
        raise ValueError(f"frame must be {wanted}, got {tuple(frame.shape)}")
    frame = frame.flatten(1)
    error = (frame @ frame.T - torch.eye(len(frame), dtype=frame.dtype)).abs().max()
    if not error <= FRAME:  # NaN too
        raise ValueError(
            f"frame must have orthonormal rows to {FRAME:g}, got an error of {float(error):.2g};"
            " make them with torch.linalg.qr"
        )
    return frame


def checked_radius(radius: float) -> float:
    """The radius of neighbourhoods, if there are such; otherwise an error."""
    if not 0 < radius < math.inf:
        raise ValueError(f"radius must be positive and finite, got {radius}")
    return float(radius)
