"""Three definitions of local complexity on the same points."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
import scipy
import torch
from numpy.typing import NDArray

from regionscope.measures.complexity import local_complexity
from regionscope.measures.crossings import boundary_crossings
from regionscope.measures.region_count import local_region_count
from regionscope.results import Estimate
from regionscope.tables import Facts
from regionscope.tracing.given import network_and_points
from regionscope.tracing.network import Network
from regionscope.types import Data, Model

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Facts):
    """The same points by three measures, and how alike they rank them."""

    measures: tuple[Estimate, ...]  # density, crossings, exact count
    rank_correlation: NDArray[np.float64]  # (3, 3), Spearman's; NaN if a measure is the same at all points
    p_values: NDArray[np.float64]  # (3, 3), of no correlation

    def _facts(self) -> dict[str, object]:
        pairs = combinations(range(len(self.measures)), 2)
        names = [measure.name for measure in self.measures]
        found = {f"{names[i]} and {names[j]}": f"{self.rank_correlation[i, j]:.3f}" for i, j in pairs}
        return {"points": self.measures[0].n, **found}

    def plot(self, axes: "Sequence[Axes] | None" = None) -> "Sequence[Axes]":
        """A scatter plot of each pair; see `regionscope.plots.pairs`."""
        from regionscope.plots.scatter import pairs

        return pairs(self, axes)


def compare_complexities(
    model: Model | Network,
    data: Data,
    *,
    radius: float,
    sigma: float = 0.05,
    draws: int = 32,
    directions: int = 25,
    generator: torch.Generator | None = None,
) -> Comparison:
    """Density (LC Thm 2), boundary crossings (PD 3.2) and exact region count (PD 3.3) at each point, compared.

    Spearman's rank correlation of each pair over the points. The count is exact on one random plane a point, crossings
    are a lower bound, the density is estimated from `draws`: its error weakens the correlations with it.
    Without a `generator` calls differ.

    >>> model = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
    >>> compare_complexities(model, torch.randn(10, 4), radius=0.5).rank_correlation.shape
    (3, 3)
    """
    net, points = network_and_points(model, data)
    if len(points) < 3:
        raise ValueError(f"a rank correlation needs at least 3 points, got {len(points)}")
    crossings = boundary_crossings(net, points, radius=radius, directions=directions, generator=generator)
    measures = (
        local_complexity(net, points, sigma=sigma, draws=draws, generator=generator),
        crossings,
        local_region_count(net, points, radius=radius, generator=generator),
    )
    correlation, p_values = np.eye(3), np.zeros((3, 3))
    for i in range(3):
        for j in range(3):
            a, b = measures[i].per_point, measures[j].per_point
            varies = np.ptp(a) > 0 and np.ptp(b) > 0
            correlation[i, j], p_values[i, j] = scipy.stats.spearmanr(a, b) if varies else (np.nan, np.nan)
    return Comparison(measures, correlation, p_values)
