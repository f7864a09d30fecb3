"""How many crossings exact geometry confirms, and how many boundaries the vertices of a neighbourhood miss."""

from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from regionscope.geometry.planes import Planes, check_resolved
from regionscope.geometry.subdivision import subdivide
from regionscope.geometry.sweep import exact
from regionscope.measures.crossings import crossing_mask
from regionscope.measures.deformation import check_graph
from regionscope.measures.neighbourhoods import (
    Bundle,
    checked_radius,
    chosen_layers,
    passage,
    shared_frame_of,
)
from regionscope.progress import tqdm
from regionscope.tables import Facts
from regionscope.tracing.given import network_and_points
from regionscope.tracing.network import Network
from regionscope.types import Data, Floats, Model

DIAMOND = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Confirmation(Facts):
    """Boundaries counted by crossings, met by exact geometry, and both, at each point and layer: (n, layers) each.

    `directions` is how many each neighbourhood has.
    """

    directions: int
    counted: Floats
    exact: Floats
    both: Floats

    @property
    def confirmed(self) -> float:
        """The share of the crossings counted whose boundary really meets the sections; 1 if there are none."""
        return _share(self.both, self.counted)

    @property
    def found(self) -> float:
        """The share of the boundaries that meet the sections that was counted as crossings; 1 if there are none."""
        return _share(self.both, self.exact)

    @property
    def found_by_layer(self) -> Floats:
        """The same for each layer, (layers,)."""
        return np.array([_share(self.both[:, i], self.exact[:, i]) for i in range(self.exact.shape[1])])

    def _facts(self) -> dict[str, object]:
        return {
            "points": len(self.counted), "crossings counted": f"{self.counted.sum():g}",
            "confirmed": f"{self.confirmed:.1%}", "found of all": f"{self.found:.1%}",
        }  # fmt: skip

    def __repr__(self) -> str:
        return (
            f"Confirmation({self.confirmed:.1%} of {self.counted.sum():g} crossings, which are {self.found:.1%} of all)"
        )


def _share(part: Floats, whole: Floats) -> float:
    return float(part.sum() / whole.sum()) if whole.any() else 1.0


@torch.no_grad()
def confirmed_crossings(
    model: Model | Network,
    data: Data,
    *,
    radius: float,
    directions: int = 25,
    frame: ArrayLike | None = None,
    generator: torch.Generator | None = None,
    max_cells: int = 10_000_000,
    show_progress: bool = False,
) -> Confirmation:
    """The crossings that exact geometry confirms on two-dimensional sections of the neighbourhoods (PD 3.2, 3.3).

    The plane of v_p and v_q cuts the neighbourhood conv{x ± r v_p} in the square with corners x ± r v_p, x ± r v_q.
    A boundary meets the sections if its unit is on different sides in two cells of the squares (v_1, v_2), (v_3, v_4),
    … around x, which hold all vertices: exact, in float64. The squares hang together at x and pre-activations are
    continuous, so every crossing that the vertices show is met on them: `confirmed` is 1 but for rounding. What
    vertices can do is miss some: `found`. Meant for a few points, as each costs P / 2 planes. Without a `frame` and
    without a `generator` calls differ.

    >>> model = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
    >>> confirmed_crossings(model, torch.zeros(3, 2), radius=1.0, directions=2).found  # one layer: none is missed
    1.0
    """
    radius = checked_radius(radius)
    net, points = network_and_points(model, data)
    points = points.double().cpu()
    check_resolved(radius, points)
    net = _without_winners(exact(net))  # so that cells are cut by the differences of losers too, and stay so
    shared, P = shared_frame_of(net, frame, directions, True, generator)
    assert shared is not None
    check_graph(P)
    way = passage(net, chosen_layers(net, None))
    arms = way.arms(shared[None], radius)
    counts = np.zeros((3, len(points), net.layers))
    for row, x in enumerate(tqdm(points, desc="points", disable=not show_progress)):
        crossed = Bundle(way, x[None], shared[None], way.centres(x[None]), arms).embedded(radius)
        met = _boundaries_met(net, x, shared, radius, max_cells)
        for site, vertices in crossed:
            counted, meets = crossing_mask(vertices, site).ravel(), met[site.name]
            counts[:, row, site.layer - 1] += counted.sum(), meets.sum(), (counted & meets).sum()
    return Confirmation(P, *counts)


def _without_winners(net: Network) -> Network:
    """A network that plays the same tournaments without saying who wins."""
    sites = (replace(s, tournament=s.tournament and replace(s.tournament, winners=None)) for s in net.sites)
    return replace(net, sites=tuple(sites))


def _boundaries_met(net: Network, x: Tensor, frame: Tensor, radius: float, max_cells: int) -> dict[str, Mask]:
    """Which boundaries of each site, by its name, meet the sections of the neighbourhood of x."""
    pairs = [(p, p + 1 if p + 1 < len(frame) else 0) for p in range(0, len(frame), 2)]
    axes = torch.stack([frame[list(pair)] for pair in pairs])
    planes = Planes(x.flatten().expand(len(pairs), -1), axes, radius * DIAMOND)
    cells, _ = subdivide(net, planes, max_cells=max_cells)
    inside = cells.inside().reshape(-1, *net.input_shape)
    values = zip(net.sites, net.preactivations(inside), strict=True)
    return {site.name: crossing_mask(v.reshape(1, len(v), -1), site).ravel() for site, v in values}
