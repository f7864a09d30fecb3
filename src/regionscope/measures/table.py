"""The measures by name, and all that whoever asks for one by name has to know of it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from regionscope.measures.attacks import UNBOUNDED
from regionscope.measures.complexity import DIRECTIONS, DRAWS, local_complexity
from regionscope.measures.costs import (
    CostFunction,
    attack_effort,
    complexity_effort,
    crossings_effort,
    distance_effort,
    good_effort,
    radius_effort,
    rank_effort,
    regions_effort,
    variation_effort,
)
from regionscope.measures.crossings import boundary_crossings
from regionscope.measures.distance import boundary_distance, certified_radius
from regionscope.measures.draws import part_generator
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

    `defaults` are all options that decide what is measured, and what they are if they are not told. `watching` are
    those with which it can be taken again and again while a model trains, `points` among them how many are looked at;
    None if it is watched only when it is asked for. `cost` is what a point costs with some options; `cheaper` are
    options that cost less and only make the error larger, by and by. `between` are some between the usual ones and
    those, for which it is not worth while to leave out points.
    """

    function: Callable[..., Estimate]
    cost: CostFunction
    defaults: Mapping[str, Any]
    watching: Mapping[str, Any] | None = None
    needs_labels: bool = False
    needs_regions: bool = False  # there is none of a network that is not piecewise linear
    random: bool = False  # draws from a generator
    sharing: str | None = None  # the option with which all points share what is drawn
    share: bool = False  # of points
    cheaper: tuple[Mapping[str, Any], ...] = ()
    between: tuple[Mapping[str, Any], ...] = ()

    @property
    def options(self) -> tuple[str, ...]:
        """All that can be told by name."""
        return (*self.defaults, *_NO_MATTER)

    def __call__(self, model: Model | Network, data: Data, *labels: Any, **options: Any) -> Estimate:
        return self.function(model, data, *labels, **{**self.defaults, **options})

    def estimate(
        self, model: Model | Network, data: Data, labels: Any = None, *, seed: int = 0, part: int = 0, **options: Any
    ) -> Estimate:
        """The measure with what it takes of labels and of a generator with this seed.

        Points that are measured in several parts, each with its number, do not have the noise of those in the other
        parts. What all points share, such as one frame, the parts share too.

        >>> import torch
        >>> from torch import nn
        >>> model = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
        >>> MEASURES["boundary_crossings"].estimate(model, torch.zeros(4, 2), directions=2).n
        4
        """
        if self.random:
            shared = self.sharing is not None and self.effective(options)[self.sharing]
            options["generator"] = part_generator(seed, 0 if shared else part)
        if self.needs_labels:
            if labels is None:
                raise ValueError(f"{self.function.__name__} needs labels; give points and labels together, as (x, y)")
            options["labels"] = labels
        return self(model, data, **options)

    def check(self, options: Mapping[str, Any]) -> None:
        """An error if there is no such option: told before anything is measured."""
        for name in options:
            if name not in self.options:
                there = ", ".join(self.options)
                raise TypeError(f"{self.function.__name__} has no option {name!r} here; it has {there}")

    def effective(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """All that decides what is measured: these options, and what the others are if they are not told.

        >>> MEASURES["local_rank"].effective({"eps": 0.5})
        {'eps': 0.5, 'relative': False, 'method': 'auto', 'directions': 16}
        """
        return {**self.defaults, **options}


_NO_MATTER = ("batch_size", "allow_smooth", "show_progress")  # they change no number that is measured

# Averaged over many points, a few draws at each leave less error than the points do; singular values are dear.
MEASURES = {
    "local_complexity": Measure(
        local_complexity,
        complexity_effort,
        defaults={
            "sigma": 0.05, "draws": DRAWS, "good": True, "weight_noise": False, "density": True, "method": "auto",
            "directions": DIRECTIONS, "per_unit": False,
        },
        watching={"draws": 2, "method": "random", "directions": 4},
        random=True,
        cheaper=tuple({"draws": 2, "method": "random", "directions": r} for r in (16, 4)),
        between=tuple({"draws": k, "method": "random", "directions": DIRECTIONS} for k in (DRAWS, 8)),
    ),
    "boundary_crossings": Measure(
        boundary_crossings,
        crossings_effort,
        defaults={
            "radius": 0.05, "directions": 25, "frame": None, "shared_frame": True, "include_centre": False,
            "layers": None,
        },
        watching={},
        random=True,
        sharing="shared_frame",
    ),
    "local_rank": Measure(
        local_rank,
        rank_effort,
        defaults={"eps": 0.1, "relative": False, "method": "auto", "directions": 16},
        watching={"points": 64},
        random=True,
        cheaper=({"method": "random"},),
    ),
    "total_variation": Measure(
        total_variation,
        variation_effort,
        defaults={"target": None, "method": "auto", "directions": 32},
        watching={},
        random=True,
        cheaper=tuple({"method": "combinations", "directions": r} for r in (32, 8)),
    ),
    "boundary_distance": Measure(boundary_distance, distance_effort, defaults={"norm": "l2", "good": False}),
    "good_units": Measure(good_units, good_effort, defaults={"per_unit": False}),
    "local_region_count": Measure(
        local_region_count,
        regions_effort,
        defaults={"radius": 0.05, "shape": "square", "axes": None, "max_cells": 10_000_000},
        needs_regions=True,
        random=True,
    ),
    "robust_accuracy": Measure(
        robust_accuracy,
        attack_effort,
        defaults={
            "attack": None, "radius": 8 / 255, "steps": 20, "step_size": None, "norm": "Linf", "bounds": UNBOUNDED,
            "restarts": 5, "loss": "margin",
        },
        watching={"restarts": 1, "steps": 10},
        needs_labels=True,
        random=True,
        share=True,
    ),
    "certified_radius": Measure(
        certified_radius, radius_effort, defaults={}, needs_labels=True, needs_regions=True
    ),
}  # fmt: skip

# of the inequalities, which measure several of these at once
BOUNDS_DEFAULTS: Mapping[str, Any] = {
    "sigma": MEASURES["local_complexity"].defaults["sigma"], "eta": None, "eps": MEASURES["local_rank"].defaults["eps"],
    "draws": 4, "constants_from": "product",
}  # fmt: skip


def measure_named(name: str) -> Measure:
    """A measure by its name; an error that says which there are, if there is none."""
    if name not in MEASURES:
        raise ValueError(f"there is no measure {name!r}; there are {', '.join(MEASURES)}")
    return MEASURES[name]
