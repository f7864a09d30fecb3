"""The measures by name, and all that whoever asks for one by name has to know of it."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

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


@dataclass(frozen=True)
class Measure:
    """A measure as it is asked for by name; called, it is its function with the defaults.

    `defaults` are for options that have to be told. `watching` are those with which it can be taken again and again
    while a model trains, `points` among them how many are looked at; None if it is watched only when it is asked for.
    """

    function: Callable[..., Estimate]
    defaults: Mapping[str, Any] = field(default_factory=dict)
    watching: Mapping[str, Any] | None = None
    needs_labels: bool = False
    random: bool = False  # draws from a generator

    def __call__(self, model: Model | Network, data: Data, *labels: Any, **options: Any) -> Estimate:
        return self.function(model, data, *labels, **{**self.defaults, **options})

    def estimate(
        self, model: Model | Network, data: Data, labels: Any = None, *, seed: int = 0, **options: Any
    ) -> Estimate:
        """The measure with what it takes of labels and of a generator with this seed.

        >>> from torch import nn
        >>> model = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
        >>> MEASURES["boundary_crossings"].estimate(model, torch.zeros(4, 2), directions=2).n
        4
        """
        if self.random:
            options["generator"] = torch.Generator().manual_seed(seed)
        if self.needs_labels:
            if labels is None:
                raise ValueError(f"{self.function.__name__} needs labels; give points and labels together, as (x, y)")
            options["labels"] = labels
        return self(model, data, **options)

    def check(self, options: Mapping[str, Any]) -> None:
        """An error if there is no such option: told before anything is measured."""
        taken = inspect.signature(self.function).parameters
        own = [name for name in taken if name not in FILLED_IN]
        for name in options:
            if name not in own:
                raise TypeError(f"{self.function.__name__} has no option {name!r} here; it has {', '.join(own)}")


FILLED_IN = {"model", "data", "labels", "generator", "differentiable"}  # not for those who ask by name

# Averaged over many points, a few draws at each leave less error than the points do; singular values are dear.
MEASURES = {
    "local_complexity": Measure(
        local_complexity, watching={"draws": 2, "method": "random", "directions": 4}, random=True
    ),
    "boundary_crossings": Measure(boundary_crossings, defaults={"radius": 0.05}, watching={}, random=True),
    "local_rank": Measure(local_rank, defaults={"eps": 0.1}, watching={"points": 64}),
    "total_variation": Measure(total_variation, watching={}, random=True),
    "boundary_distance": Measure(boundary_distance),
    "good_units": Measure(good_units),
    "local_region_count": Measure(local_region_count, defaults={"radius": 0.05}, random=True),
    "robust_accuracy": Measure(robust_accuracy, watching={"restarts": 1, "steps": 10}, needs_labels=True, random=True),
    "certified_radius": Measure(certified_radius, needs_labels=True),
}


def measure_named(name: str) -> Measure:
    """A measure by its name; an error that says which there are, if there is none."""
    if name not in MEASURES:
        raise ValueError(f"there is no measure {name!r}; there are {', '.join(MEASURES)}")
    return MEASURES[name]
