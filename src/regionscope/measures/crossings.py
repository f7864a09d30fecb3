"""How many units switch somewhere near a point, told from the vertices of a neighbourhood."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from regionscope.geometry.predicates import EPS
from regionscope.machine import memory_told
from regionscope.measures.deformation import Deformation, add_squares, graph_sizes
from regionscope.measures.neighbourhoods import (
    Bundle,
    Passage,
    bundles,
    checked_radius,
    chosen_layers,
    extremes,
    passage,
    shared_frame_of,
)
from regionscope.measures.noise import value_errors
from regionscope.points import ARRAYS, as_array
from regionscope.progress import tqdm
from regionscope.results import Estimate
from regionscope.tracing.given import network_and_batches
from regionscope.tracing.network import Network, Site, as_rows
from regionscope.types import Array, Data, Floats, Model, Numbers

WATCHED = 64  # the deformation is looked at for the first of every so many points
ROUNDINGS = 64  # a unit that is nowhere larger than so many roundings of the largest values is looked at again


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Crossings(Estimate):
    """The crossings at each point; made by `boundary_crossings`.

    `boundaries` (layers,) is how many there are to cross: breakpoints times units. `deformation` is that of every 64th
    neighbourhood, None for a single direction.
    """

    boundaries: Floats
    deformation: Deformation | None

    @property
    def radius(self) -> float:
        """Of the neighbourhoods."""
        return float(self.options["radius"])

    @property
    def directions(self) -> int:
        """How many each neighbourhood has."""
        return int(self.options["directions"])

    @property
    def layers(self) -> tuple[int, ...]:
        """In which crossings were counted."""
        return tuple(self.options["layers"])

    @property
    def layer_numbers(self) -> tuple[int, ...]:
        """Those that were asked for."""
        return self.layers

    @property
    def fraction(self) -> Floats:
        """Of all boundaries of these layers, (n,)."""
        return np.asarray(self.per_point / max(1.0, self.boundaries.sum()))

    @property
    def layer_fraction(self) -> Floats:
        """Of the boundaries of each layer, (n, layers)."""
        assert self.per_layer is not None
        return np.asarray(self.per_layer / self.boundaries)

    @property
    def warning(self) -> str | None:
        """Where the neighbourhood is too deformed for its vertices to tell; None if nowhere."""
        return None if self.deformation is None else self.deformation.warning

    def to_dict(self) -> dict[str, Any]:
        """The summary, ready for JSON."""
        return {**super().to_dict(), "fraction": float(self.fraction.mean()), "warning": self.warning}


@overload
def boundary_crossings(
    model: Model | Network,
    data: Data,
    *,
    radius: float,
    directions: int = ...,
    frame: ArrayLike | None = ...,
    shared_frame: bool = ...,
    include_centre: bool = ...,
    layers: Sequence[int] | Array | None = ...,
    generator: torch.Generator | None = ...,
    batch_size: int | None = ...,
    allow_smooth: bool = ...,
    show_progress: bool = ...,
) -> Crossings: ...
@overload
def boundary_crossings(
    model: Model | Network,
    data: Data,
    *,
    radius: Sequence[float] | Array,
    directions: int = ...,
    frame: ArrayLike | None = ...,
    shared_frame: bool = ...,
    include_centre: bool = ...,
    layers: Sequence[int] | Array | None = ...,
    generator: torch.Generator | None = ...,
    batch_size: int | None = ...,
    allow_smooth: bool = ...,
    show_progress: bool = ...,
) -> list[Crossings]: ...
def boundary_crossings(
    model: Model | Network,
    data: Data,
    *,
    radius: Numbers,
    directions: int = 25,
    frame: ArrayLike | None = None,
    shared_frame: bool = True,
    include_centre: bool = False,
    layers: Sequence[int] | Array | None = None,
    generator: torch.Generator | None = None,
    batch_size: int | None = None,
    allow_smooth: bool = False,
    show_progress: bool = False,
) -> Crossings | list[Crossings]:
    """The number of units that do not keep one sign over the vertices x ± r v_p of a neighbourhood (PD 3.2).

    #{(i, b): min_p z_i(x ± r v_p) <= b < max_p z_i(x ± r v_p)}, over the units i and their breakpoints b: 0 for a ReLU
    or a smooth activation. In float64 a unit that is only rounding at all vertices is no crossing; in float32 that
    cannot be told, and radii that would be lost in the rounding of x are computed in float64. In max-pooling and its
    like the differences of two competitors are the units, and each of the two must be the larger one somewhere: pairs
    that are equal at x and differ around it, as on the blank background of an image, are crossings at every radius.
    Every layer has a column of `per_layer` (n, layers); `layers` picks some, and no deeper one is evaluated. Several
    radii give a list and share the frame and the affine part of the network.

    The frame v (P, d) has orthonormal rows: `frame`, to 1e-5, or `directions` of them drawn from `generator`, one frame
    for all points or, without `shared_frame`, one each. An input of fewer dimensions d has no more than d: P is the
    smaller of the two, and `directions` of the result. Without a `generator` calls differ. `include_centre` makes x
    itself a vertex. At most `batch_size` neighbourhoods at a time; by default so many that memory does not grow with
    the number of points.

    Exact, but for rounding, for units that are affine in the input (layer 1). Deeper every crossing counted is real, as
    the network is continuous, but a boundary may pass between the vertices: a lower bound on those that meet the
    neighbourhood; see `warning` and `confirmed_crossings`.

    >>> model = torch.nn.Sequential(torch.nn.Linear(2, 1), torch.nn.ReLU())
    >>> _ = model[0].weight.data.fill_(1.0), model[0].bias.data.zero_()
    >>> boundary_crossings(model, torch.tensor([[0.1, 0.1], [5.0, 5.0]]), radius=0.5, directions=2).per_point
    array([1., 0.])
    """
    radii = [checked_radius(r) for r in as_array(radius).ravel()]
    if not radii:
        raise ValueError("radius must be a number or several, got none")
    net, points = network_and_batches(model, data, batch_size, allow_smooth=allow_smooth)
    common, P = shared_frame_of(net, frame, directions, shared_frame, generator)
    numbers = chosen_layers(net, layers)
    tallies = [Tally(r, P, numbers, include_centre) for r in radii]
    total = len(data) if isinstance(data, ARRAYS) else None
    way = passage(net, numbers)
    with tqdm(total=total, desc="neighbourhoods", disable=not show_progress) as bar, torch.no_grad(), memory_told():
        ends = {"reach": max(radii), "finest": min(radii)}
        for bundle in bundles(way, points, common, P, **ends, generator=generator, batch_size=batch_size):
            for tally in tallies:
                tally.add(bundle)
            bar.update(len(bundle))
    drawn = {"shared_frame": shared_frame} if frame is None else {"frame": as_array(frame)}
    results = [tally.result(way, drawn) for tally in tallies]
    return results if as_array(radius).ndim else results[0]


class Tally:
    """The crossings at one radius, neighbourhood after neighbourhood."""

    def __init__(self, radius: float, directions: int, layers: tuple[int, ...], include_centre: bool) -> None:
        self.radius, self.directions, self.layers, self.include_centre = radius, directions, layers, include_centre
        self.column = {layer: i for i, layer in enumerate(layers)}
        self.counts: list[Floats] = []
        self.graphs: list[tuple[Floats, Floats, Floats]] = []
        self.points = 0

    def add(self, bundle: Bundle) -> None:
        """Count the crossings in these neighbourhoods."""
        for part in bundle.parts(self.radius, include_centre=self.include_centre):
            self._add(part)

    def _add(self, bundle: Bundle) -> None:
        n = len(bundle)
        counts = np.zeros((n, len(self.layers)))
        watched = slice(-self.points % WATCHED, n, WATCHED) if self.directions > 1 else slice(0)
        squares: dict[int, Tensor] = {}
        told = bundle.passage.net.piecewise_linear and bundle.passage.net.dtype is torch.float64
        doubtful, scale = np.zeros(n, bool), bundle.points.flatten(1).norm(dim=1).cpu().double().numpy()
        for site, low, high, some in bundle.extents(self.radius, include_centre=self.include_centre, watched=watched):
            crossed = _between(low, high, site)
            if told:
                size = np.maximum(np.abs(low), np.abs(high))
                scale = np.maximum(scale, np.linalg.norm(size, axis=1))
                doubtful |= (crossed & (size <= ROUNDINGS * EPS * scale[:, None])[:, None]).any(axis=(1, 2))
            counts[:, self.column[site.layer]] += crossed.sum(axis=(1, 2))
            if len(some):
                add_squares(squares, site.layer, some)
        for which in np.flatnonzero(doubtful):
            counts[which] = self.recounted(bundle, int(which))
        self.counts.append(counts)
        self.graphs += [graph_sizes(squares)] if squares else []
        self.points += n

    def recounted(self, bundle: Bundle, which: int) -> Floats:
        """The crossings in one neighbourhood; a unit that is only rounding at all vertices has none."""
        net, counts = bundle.passage.net, np.zeros(len(self.layers))
        x = net.checked(bundle.vertices(which, self.radius, include_centre=self.include_centre).cpu())
        values = [as_rows(v) for v in net.preactivations(x)]
        for site, z, error in zip(net.sites, values, value_errors(net, x, values), strict=True):
            if site.layer in self.column:
                real = torch.stack([((z - b).abs() > error).any(dim=0) for b in site.breakpoints]).numpy()
                counts[self.column[site.layer]] += (crossing_mask(z[None], site)[0] & real).sum()
        return counts

    def result(self, way: Passage, options: Mapping[str, Any]) -> Crossings:
        """What was counted; `options` are those that say where the directions come from."""
        counts = np.concatenate(self.counts)
        boundaries = [sum(len(s.breakpoints) * s.units for s in way.sites if s.layer == layer) for layer in self.layers]
        graphs = [np.concatenate(part) for part in zip(*self.graphs, strict=True)]
        return Crossings(
            name="boundary crossings",
            per_point=counts.sum(axis=1),
            per_layer=counts,
            quantity="boundaries across a neighbourhood (lower bound)",
            options={
                "radius": self.radius, "directions": self.directions, **options, "include_centre": self.include_centre,
                "layers": self.layers,
            },
            piecewise_linear=way.net.piecewise_linear,
            boundaries=np.array(boundaries, np.float64),
            deformation=Deformation(self.radius, self.directions, self.layers, *graphs) if graphs else None,
        )  # fmt: skip


def crossing_mask(vertices: Tensor, site: Site) -> NDArray[np.bool_]:
    """Which breakpoints each unit has vertices (n, 2P, units) on both sides of: (n, breakpoints, units)."""
    return _between(*extremes(vertices), site)


def _between(low: Floats, high: Floats, site: Site) -> NDArray[np.bool_]:
    """Which breakpoints lie between two values of each unit: (n, breakpoints, units).

    Competitors that are equal do not switch: where both are a closed ReLU's 0, it is that ReLU that bends.
    """
    return np.stack([((low < b) if site.competes else (low <= b)) & (high > b) for b in site.breakpoints], axis=1)
