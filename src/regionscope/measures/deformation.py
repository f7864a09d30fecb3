"""How a network deforms the neighbourhoods of points on the way through its layers."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from regionscope.machine import memory_told
from regionscope.measures.neighbourhoods import (
    bundles,
    checked_radius,
    chosen_layers,
    passage,
    shared_frame_of,
)
from regionscope.points import ARRAYS
from regionscope.progress import tqdm
from regionscope.tables import Facts
from regionscope.tracing.given import network_and_batches
from regionscope.tracing.network import Network
from regionscope.types import Array, Data, Floats, Model

# in random networks about a tenth of a layer's boundaries was missed at most below this defect, three tenths above
DEFORMED = 0.5


@dataclass(frozen=True, eq=False)
class Deformation(Facts):
    """The graph on the embedded vertices of each neighbourhood, layer by layer; made by `neighbourhood_deformation`."""

    radius: float
    directions: int  # of each neighbourhood
    layers: tuple[int, ...]
    eccentricity: Floats  # (n, layers), the mean over the vertices
    diameter: Floats  # (n, layers)
    defect: Floats  # (n, layers): how far from affine, 0 for an affine map

    @property
    def n(self) -> int:
        """The number of points."""
        return len(self.eccentricity)

    @property
    def input_eccentricity(self) -> float:
        """Of every vertex of the neighbourhood itself, and its diameter: 2√2 r, layer 0 of PD Fig. 18."""
        return 2 * math.sqrt(2) * self.radius

    @property
    def stretch(self) -> Floats:
        """The mean eccentricity relative to the input's, (n, layers)."""
        return self.eccentricity / self.input_eccentricity

    @property
    def warning(self) -> str | None:
        """From which layer on crossings should not be trusted, if there is one."""
        defect, stretch = self.defect.mean(axis=0), self.stretch.mean(axis=0)
        bad = np.flatnonzero(defect > DEFORMED)
        if not len(bad):
            return None
        i = bad[0]
        return (
            f"from layer {self.layers[i]} on neighbourhoods of radius {self.radius:g} are deformed (defect"
            f" {defect[i]:.2g}, above {DEFORMED:g}; eccentricity {stretch[i]:.2g} times the input's): crossings there"
            " are a lower bound; take a smaller radius"
        )

    def __repr__(self) -> str:
        pairs = zip(self.stretch.mean(axis=0), self.defect.mean(axis=0), strict=True)
        layers = ", ".join(f"{stretch:.3g} ({defect:.2g})" for stretch, defect in pairs)
        return f"Deformation(n = {self.n}, eccentricity relative to the input (defect) by layer: {layers})"

    def _facts(self) -> dict[str, object]:
        pairs = zip(self.layers, self.stretch.mean(axis=0), self.defect.mean(axis=0), strict=True)
        layers = {f"layer {k}": f"eccentricity {s:.3g} times the input's, defect {d:.2g}" for k, s, d in pairs}
        return {"points": self.n, "radius": self.radius, "directions": self.directions, **layers}

    def to_dict(self) -> dict[str, Any]:
        """The means over points, ready for JSON."""
        means = {name: getattr(self, name).mean(axis=0).tolist() for name in ("eccentricity", "diameter", "defect")}
        about = {"radius": self.radius, "directions": self.directions, "layers": list(self.layers), "n": self.n}
        return {**about, **means, "warning": self.warning}


def neighbourhood_deformation(
    model: Model | Network,
    data: Data,
    *,
    radius: float,
    directions: int = 25,
    frame: ArrayLike | None = None,
    shared_frame: bool = True,
    layers: Sequence[int] | Array | None = None,
    generator: torch.Generator | None = None,
    batch_size: int | None = None,
    allow_smooth: bool = False,
    show_progress: bool = False,
) -> Deformation:
    """How large the graph on the embedded vertices x ± r v_p is at each layer (PD App. C, Figs 18–19).

    Vertices are embedded by the pre-activations of a layer; all pairs are joined except antipodes, an edge is as long
    as its ends are apart. ecc(i) = max_j path(i, j), and by the triangle inequality path(i, j) = |i - j| for joined
    pairs and min_k |i - k| + |k - i'| for antipodes i, i'. The mean of ecc and the diameter, its maximum, are exact to
    rounding; all is computed in float64, as the differences of a small neighbourhood are lost in float32. An affine map
    lets the middles m_p of all antipodes coincide: `defect` is the root mean square of |m_p - m_q| over that of half
    the diagonals. The frame is drawn or given as in `boundary_crossings`, P >= 2.
    Without a `generator` calls differ.

    >>> identity = torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Linear(2, 1))
    >>> neighbourhood_deformation(identity, torch.ones(1, 2), radius=0.5, directions=2).diameter.round(4)
    array([[1.4142]])
    """
    radius = checked_radius(radius)
    net, points = network_and_batches(model, data, batch_size, allow_smooth=allow_smooth)
    net, precise = net.frozen(), (x.double() for x in points)
    common, P = shared_frame_of(net, frame, directions, shared_frame, generator)
    check_graph(P)
    numbers = chosen_layers(net, layers)
    if not numbers:
        raise ValueError("the network has no activation sites: it deforms nothing")
    way = passage(net, numbers).at_vertices()
    found = []
    total = len(data) if isinstance(data, ARRAYS) else None
    with tqdm(total=total, desc="neighbourhoods", disable=not show_progress) as bar, torch.no_grad(), memory_told():
        for bundle in bundles(way, precise, common, P, reach=radius, generator=generator, batch_size=batch_size):
            squares: dict[int, Tensor] = {}
            for site, vertices in bundle.embedded(radius):
                add_squares(squares, site.layer, vertices)
            found.append(graph_sizes(squares))
            bar.update(len(bundle))
    return Deformation(radius, P, numbers, *(np.concatenate(part) for part in zip(*found, strict=True)))


def check_graph(directions: int) -> None:
    """An error if the graph does not hold together."""
    if directions < 2:
        raise ValueError(f"the two vertices of one direction are not joined: take at least 2, got {directions}")


def add_squares(squares: dict[int, Tensor], layer: int, vertices: Tensor) -> None:
    """Add the squared distances of vertices (n, 2P, units) at one site to those of its layer, (n, 2P, 2P)."""
    v = vertices - vertices.mean(dim=1, keepdim=True)  # so that little is lost in the difference below
    gram = v @ v.mT
    norms = gram.diagonal(dim1=1, dim2=2)
    distances = (norms[:, :, None] + norms[:, None] - 2 * gram).clamp_min(0)
    squares[layer] = squares[layer] + distances if layer in squares else distances


def graph_sizes(squares: Mapping[int, Tensor]) -> tuple[Floats, Floats, Floats]:
    """Mean eccentricity, diameter and defect at each layer, (n, layers) each."""
    by_layer = []
    for layer in sorted(squares):
        ecc = _eccentricities(squares[layer].sqrt())
        by_layer.append((ecc.mean(dim=1), ecc.amax(dim=1), _affine_defect(squares[layer])))
    mean, diameter, defect = (torch.stack(part, dim=1).double().cpu().numpy() for part in zip(*by_layer, strict=True))
    return mean, diameter, defect


def _eccentricities(distances: Tensor) -> Tensor:
    """Of every vertex, from distances (n, 2P, 2P) in which p and P + p are antipodes: (n, 2P)."""
    P = distances.shape[1] // 2
    p, own = torch.arange(P), distances.clone()
    around = distances[:, :P] + distances[:, P:]  # from p to its antipode by way of k
    around[:, p, p] = around[:, p, P + p] = math.inf
    own[:, p, P + p] = own[:, P + p, p] = around.amin(dim=2)
    return own.amax(dim=2)


def _affine_defect(squares: Tensor) -> Tensor:
    """How far the middles of antipodes lie apart, relative to half the diagonals, from squared distances: (n,)."""
    P = squares.shape[1] // 2
    diagonals = squares[:, :P, P:].diagonal(dim1=1, dim2=2)  # (n, P)
    sides = squares[:, :P, :P] + squares[:, :P, P:] + squares[:, P:, :P] + squares[:, P:, P:]
    middles = (sides - diagonals[:, :, None] - diagonals[:, None]).clamp_min(0) / 4  # parallelogram law
    middles.diagonal(dim1=1, dim2=2).zero_()
    apart = middles.sum(dim=(1, 2)) / (P * (P - 1))
    half = diagonals.mean(dim=1) / 4
    return torch.where(half > 0, apart / half.clamp_min(torch.finfo(half.dtype).tiny), 0.0).sqrt()
