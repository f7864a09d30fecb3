"""LC Prop. 6: what the total variation of a function of one variable certifies, against the truth."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from regionscope.geometry.line_cells import line_cells
from regionscope.tables import Facts
from regionscope.tracing.given import network_and_points
from regionscope.tracing.network import Network
from regionscope.types import Data, Floats, Model


@dataclass(frozen=True, eq=False, repr=False)
class UnivariateCertificate(Facts):
    """At every point: the radius that Prop. 6 certifies, and the distance to the nearest adversarial point."""

    points: Floats  # (n,)
    margin: Floats  # (n,) |N(x)|
    certified: Floats  # (n,) 0 if nothing is certified
    distance: Floats  # (n,) infinite if the sign is the same on the whole domain
    total_variation: float  # E_p |N'|
    domain: tuple[float, float]

    @property
    def holds(self) -> bool:
        """Whether no certified radius is beyond the true distance, to rounding."""
        return bool((self.certified <= self.distance + 1e-9 * (self.domain[1] - self.domain[0])).all())

    @property
    def tightness(self) -> float:
        """The mean of certified over true radius, the latter taken to the edge of the domain if it lies beyond."""
        edge = np.minimum(self.points - self.domain[0], self.domain[1] - self.points)
        true = np.minimum(self.distance, edge)
        return float(np.mean(self.certified[true > 0] / true[true > 0])) if (true > 0).any() else 1.0

    def _facts(self) -> dict[str, object]:
        return {
            "verdict": "holds" if self.holds else "violated", "points": len(self.points),
            "certified": int((self.certified > 0).sum()), "mean radius": f"{self.certified.mean():.4g}",
            "tightness": f"{self.tightness:.3g}", "total variation": f"{self.total_variation:.4g}",
        }  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        """The summary, ready for JSON."""
        return {
            "total_variation": self.total_variation, "certified": float(self.certified.mean()),
            "tightness": self.tightness, "holds": self.holds,
        }  # fmt: skip


def univariate_certificate(
    model: Model | Network, data: Data, *, density: tuple[Any, Any] | None = None
) -> UnivariateCertificate:
    """Radii certified by TV <= c_eps gamma (LC Prop. 6) for a network of one input and one output, and the true ones.

    If N(x) < 0 < gamma <= N(x0) at distance below eps, then gamma < N(x0) - N(x) <= int_B |N'| <= TV/c_eps, where c_eps
    is the least density p on the ball B_eps(x0). So a ball inside the support with c_eps >= TV/|N(x0)| holds no
    adversarial point; the largest such ball is reported. TV here is that of the network itself: LC's is a mean over
    noisy biases and certifies nothing for one network. `density` is what `numpy.histogram(..., density=True)` returns,
    by default uniform on the range of the data. TV, densities and the true distance, from line cells, are exact.

    >>> model = torch.nn.Linear(1, 1)
    >>> _ = model.weight.data.fill_(1.0), model.bias.data.fill_(2.0)
    >>> found = univariate_certificate(model, torch.tensor([[-1.0], [0.5], [1.0]]))
    >>> found.certified, found.distance  # N = x + 2 on [-1, 1] rises by 2 in all
    (array([0. , 0.5, 0. ]), array([inf, inf, inf]))
    """
    net, points = network_and_points(model, data)
    if int(np.prod(net.input_shape)) != 1 or int(np.prod(net.output_shape)) != 1:
        raise ValueError(f"one input and one output are needed, got {net.input_shape} and {net.output_shape}")
    x = points.double().cpu().numpy().reshape(-1)
    heights, edges = (np.ones(1), np.array([x.min(), x.max()])) if density is None else map(np.asarray, density)
    if len(edges) != len(heights) + 1 or not (np.diff(edges) > 0).all():
        raise ValueError(f"density must be heights (k,) and rising edges (k + 1,), got {heights.shape}, {edges.shape}")
    if x.min() < edges[0] or x.max() > edges[-1]:
        raise ValueError("points lie outside the support of the density")
    heights = heights / (heights * np.diff(edges)).sum()
    places, values = _corners(net, float(edges[0]), float(edges[-1]))
    weight = np.interp(places, edges, np.concatenate([[0.0], np.cumsum(heights * np.diff(edges))]))  # P(up to there)
    rise, run = np.diff(values), np.diff(places)
    variation = float((np.abs(rise) / np.where(run > 0, run, 1.0) * np.diff(weight)).sum())
    there = np.interp(x, places, values)
    least = [variation / abs(v) if v else np.inf for v in there]  # the density that certifies
    found = [_ball_radius(x0, low, heights, edges) for x0, low in zip(x, least, strict=True)]
    return UnivariateCertificate(
        x, np.abs(there), np.array(found), _distances_to_other_sign(x, there, places, values), variation,
        (float(edges[0]), float(edges[-1])),
    )  # fmt: skip


def _corners(net: Network, low: float, high: float) -> tuple[Floats, Floats]:
    """Where the network bends between two inputs, and its values there."""
    start, end = (torch.full(net.input_shape, t, dtype=torch.float64) for t in (low, high))
    cells = line_cells(net, start, end)
    places = np.concatenate([[0.0], cells.breakpoints, [1.0]])
    return low + places * (high - low), np.asarray(cells.outputs[:, 0])


def _ball_radius(x0: float, least: float, heights: Floats, edges: Floats) -> float:
    """The radius of the largest ball around x0 on which the density is at least so much."""
    if least == np.inf:
        return 0.0
    low = heights < least * (1 - 1e-12)
    walls = np.concatenate([[edges[0], edges[-1]], edges[:-1][low], edges[1:][low]])
    inside = bool((low & (edges[:-1] <= x0) & (x0 <= edges[1:])).any())
    return 0.0 if inside else float(np.abs(walls - x0).min())


def _distances_to_other_sign(x: Floats, there: Floats, places: Floats, values: Floats) -> Floats:
    """The distance from each x to the nearest point where the network has the other sign."""
    wrong = np.where(there[:, None] >= 0, values[None] < 0, values[None] > 0)  # (n, corners)
    best = np.full(len(x), np.inf)
    for i in range(len(places) - 1):
        a, b, p, q = values[i], values[i + 1], places[i], places[i + 1]
        root = p + (q - p) * a / (a - b) if a != b else p
        some = wrong[:, i] | wrong[:, i + 1]  # this piece has points of the other sign
        near_end = np.where(wrong[:, i], p, np.clip(root, p, q))
        far_end = np.where(wrong[:, i + 1], q, np.clip(root, p, q))
        gap = np.maximum(0.0, np.maximum(near_end - x, x - far_end))
        best = np.where(some, np.minimum(best, gap), best)
    return best
