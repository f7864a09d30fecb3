"""What can be measured of a network at points of its input space."""

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from regionscope.measures.complexity import local_complexity
from regionscope.measures.crossings import boundary_crossings
from regionscope.measures.distance import boundary_distance, certified_radius
from regionscope.measures.good import good_units
from regionscope.measures.rank import local_rank
from regionscope.measures.region_count import local_region_count
from regionscope.measures.robustness import robust_accuracy
from regionscope.measures.variation import total_variation
from regionscope.results import Estimate
from regionscope.tracing.network import Network
from regionscope.types import Data, Model

# what `regionscope measure` and the monitor can be asked for by name
MEASURES: dict[str, Callable[..., Estimate]] = {
    "local_complexity": local_complexity,
    "boundary_crossings": boundary_crossings,
    "local_rank": local_rank,
    "total_variation": total_variation,
    "boundary_distance": boundary_distance,
    "good_units": good_units,
    "local_region_count": local_region_count,
    "robust_accuracy": robust_accuracy,
    "certified_radius": certified_radius,
}

# for those that have to be told something
DEFAULTS: dict[str, dict[str, Any]] = {
    "boundary_crossings": {"radius": 0.05},
    "local_rank": {"eps": 0.1},
    "local_region_count": {"radius": 0.05},
}


def measured(
    name: str, model: Model | Network, data: Data, labels: Tensor | None = None, *, seed: int = 0, **options: Any
) -> Estimate:
    """A measure by its name, with what it takes of labels and a generator with this seed.

    >>> from torch import nn
    >>> measured("boundary_crossings", nn.Sequential(nn.Linear(2, 3), nn.ReLU()), torch.zeros(4, 2), directions=2).n
    4
    """
    if name not in MEASURES:
        raise ValueError(f"there is no measure {name!r}; there are {', '.join(MEASURES)}")
    taken = inspect.signature(MEASURES[name]).parameters
    if "generator" in taken:
        options["generator"] = torch.Generator().manual_seed(seed)
    if "show_progress" not in taken:
        options.pop("show_progress", None)
    if "labels" in taken:
        if labels is None:
            raise ValueError(f"{name} needs labels; give points and labels together, as (x, y)")
        options["labels"] = labels
    return MEASURES[name](model, data, **DEFAULTS.get(name, {}) | options)


def needs_labels(name: str) -> bool:
    return "labels" in inspect.signature(MEASURES[name]).parameters
