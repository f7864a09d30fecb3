"""Which measures are taken at how many points with which options, so that they keep within a time."""

import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from regionscope.machine import FLOATS_AT_ONCE, busy_seconds, points_at_once, threads_for
from regionscope.measures.costs import Effort, bounds_effort
from regionscope.measures.directions import (
    Directions,
    affine_width,
    chosen_directions,
    exact_directions,
    tangent_floats,
)
from regionscope.measures.draws import Draws
from regionscope.measures.routes import Route, dense
from regionscope.measures.table import BOUNDS_DEFAULTS, MEASURES, Measure
from regionscope.tables import text_table
from regionscope.tracing.network import Network

SMALL = 1 << 21  # numbers in the gradients of all units: perceptrons with no more are measured as asked for
MIXING = frozenset("mm addmm bmm baddbmm addbmm convolution".split())  # what is most of the work in other networks
UNPLANNED = {"local_region_count": "it takes as long as there are regions, and how many there are nobody knows before"}
ENOUGH = 64  # points that are worth more than a better number at each
FEWEST = 2  # points: fewer have no standard error
TIMED = 1 << 18  # units of all points of the forward pass that is timed
FEWEST_TIMES, MOST_TIMES = 5, 500  # that it is timed
TIMING = 0.3  # seconds that this takes, if that is often enough
TIMED_DIRECTIONS = 16  # random ones, of tangents that are timed
SHORTEST = 1e-9  # seconds that are told from none
OPERATIONS = 3e10  # of linear algebra in a second


@dataclass(frozen=True)
class Planned:
    """A measure with the options it will be taken with, at how many points of each set, and the seconds that takes.

    `chosen` are those of its options that were chosen to save time. A measure that is left out has no points.
    """

    name: str
    options: Mapping[str, Any]
    points: int
    seconds: float
    chosen: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """In words and numbers."""
        return {"points": self.points, "seconds": round(self.seconds, 3), "chosen": dict(self.chosen)}


@dataclass(frozen=True)
class Plan:
    """What will be measured how, to keep within `limit` seconds; `whole` is how many seconds all of it would take.

    >>> from regionscope.tracing.trace import trace
    >>> model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU())
    >>> plan = planned_measures(trace(model, torch.zeros(1, 2)), torch.zeros(9, 2), {"good_units": {}}, seconds=60)
    >>> plan.measures["good_units"].points, plan.changed
    (9, False)
    """

    measures: Mapping[str, Planned]
    sets: int  # of points
    limit: float | None
    whole: float

    @property
    def seconds(self) -> float:
        """How long it takes, about."""
        return sum(planned.seconds for planned in self.measures.values())

    @property
    def changed(self) -> bool:
        """Whether anything is other than it would be without a limit."""
        return any(planned.chosen for planned in self.measures.values())

    def to_dict(self) -> dict[str, Any]:
        """In words and numbers, for the configuration of a run."""
        measures = {name: planned.to_dict() for name, planned in self.measures.items()}
        return {"seconds": round(self.seconds, 3), "limit": self.limit, "measures": measures}

    def __str__(self) -> str:
        """A table with a row a measure, and the sum."""
        each = " of each set" if self.sets > 1 else ""
        rows = [["measure", f"points{each}", "seconds", "chosen to save time"]]
        for name, planned in self.measures.items():
            words = ", ".join(f"{option} {value}" for option, value in planned.chosen.items())
            rows.append([name, str(planned.points), f"{planned.seconds:.1f}", words if planned.points else "left out"])
        end = f"about {self.seconds:.1f} s in all"
        if self.changed and self.limit is not None:
            aim = "to keep within" if self.seconds <= self.limit else "more than the"
            end += f", {aim} {self.limit:g} s; as asked for it would take about {self.whole:.0f} s"
        elif self.limit is not None and self.seconds > self.limit:
            end += f", more than the {self.limit:g} s: perceptrons of a usual size are measured as asked for"
        return f"{text_table(rows)}\n{end}"


def planned_measures(
    net: Network,
    points: Tensor,
    measures: Mapping[str, Mapping[str, Any]],
    *,
    seconds: float | None,
    given: Mapping[str, Collection[str]] | None = None,
    sizes: Sequence[int] | None = None,
    optional: bool = False,
) -> Plan:
    """The measures as they are taken in so many seconds at sets of points of these sizes, by default `points` alone.

    `measures` are the options that they would be taken with; `points` among them is how many of each set are looked at.
    Those that are `given` stay as they are. Others are chosen if the time is too short: there are fewer points, and
    random directions take the place of all directions. No number means anything else by that, only its error is larger.
    If the measures are `optional`, those are left out that cannot be taken at two points. A perceptron of a usual size
    is measured as asked for, however long it takes: what is found of it does not depend on the machine.

    Times come from the cost of each measure in forward passes and tangents, and from some that are timed here, at some
    of the points, in the time of the processor and with a clock so coarse that a busy machine rarely makes another
    plan.
    """
    sizes = [len(points)] if sizes is None else list(sizes)
    speeds, fixed = _Speeds(net, points), given or {}
    ways = {
        name: _ways(MEASURES[name], net, options, fixed.get(name, ()), speeds, max(sizes))
        for name, options in measures.items()
    }
    found = {name: way[0].planned(name, sizes) for name, way in ways.items()}
    whole = sum(planned.seconds for planned in found.values())
    if seconds is not None and whole > seconds and not _is_small(net):
        fitted = _ways_in_time(ways, sizes, seconds, optional)
        found = {name: fitted[name].planned(name, sizes, chosen_from=way[0]) for name, way in ways.items()}
    return Plan(found, len(sizes), seconds, whole)


def planned_bounds(net: Network, points: Tensor, *, draws: int | None, seconds: float) -> Plan:
    """How the inequalities are held against a network in so many seconds; `draws` are chosen too if not given.

    They hold for means over any points and draws, so with fewer only errors are larger.
    """
    speeds, ways = _Speeds(net, points), list[_Way]()
    for number in (BOUNDS_DEFAULTS["draws"], 1) if draws is None else (draws,):
        each = speeds.seconds(bounds_effort(net, {"draws": number}))
        ways.append(_Way({"draws": number}, len(points), each, False))
    asked, sizes = ways[0].planned("bounds", [len(points)]), [len(points)]
    if asked.seconds <= seconds or _is_small(net):
        return Plan({"bounds": asked}, 1, seconds, asked.seconds)
    fitted = _ways_in_time({"bounds": ways}, sizes, seconds, False)["bounds"].planned(
        "bounds", sizes, chosen_from=ways[0]
    )
    return Plan({"bounds": fitted}, 1, seconds, asked.seconds)


def usual_plans(net: Network, points: int, seconds: float, seconds_per_record: float) -> tuple[Plan, Plan]:
    """The usual measures at so many points: measured once, as far as they keep to a time, and watched."""
    x = torch.zeros(min(points, 256), *net.input_shape, dtype=net.dtype, device=net.device)
    once = {name: measure.defaults for name, measure in MEASURES.items() if name in usual_measures(net)}
    again = {
        name: {**measure.defaults, **measure.watching}
        for name, measure in MEASURES.items()
        if measure.watching is not None and not measure.needs_labels
    }
    return (
        planned_measures(net, x, once, seconds=seconds, sizes=[points], optional=True),
        planned_measures(net, x, again, seconds=seconds_per_record, sizes=[points], optional=True),
    )


def usual_measures(net: Network, labels: bool = True) -> list[str]:
    """The measures that are taken if none is named: all that there are of it but those whose cost nobody knows."""
    return [
        name
        for name, measure in MEASURES.items()
        if name not in UNPLANNED
        and (labels or not measure.needs_labels)
        and (net.piecewise_linear or not measure.needs_regions)
    ]


def _ways_in_time(
    ways: Mapping[str, "list[_Way]"], sizes: list[int], seconds: float, optional: bool
) -> "dict[str, _Way]":
    """The way each measure is taken, so that all together take so many seconds."""
    least = {name: _with_points(way[-1], min(FEWEST, way[-1].points)) for name, way in ways.items()}
    needed = {name: way.seconds * _number(sizes, way.points) for name, way in least.items()}
    kept: list[str] = []
    found: dict[str, _Way] = {}
    left = seconds
    for name in sorted(ways, key=lambda name: needed[name]):
        if optional and kept and left < needed[name]:
            found[name] = _with_points(least[name], 0)
        else:
            kept.append(name)
            left -= needed[name]
    for turn, name in enumerate(kept):  # what a cheap one does not need is for the dear ones
        share = needed[name] + max(0.0, left) / (len(kept) - turn)
        found[name] = _way_in_time(ways[name], least[name], sizes, share)
        left -= found[name].seconds * _number(sizes, found[name].points) - needed[name]
    return found


@dataclass(frozen=True)
class _Way:
    """A measure with some options, at how many points of each set, and how long one point takes."""

    options: Mapping[str, Any]
    points: int
    seconds: float
    points_given: bool
    all_points: bool = False  # only worth while at all of them

    def planned(self, name: str, sizes: list[int], chosen_from: "_Way | None" = None) -> Planned:
        usual = chosen_from or self
        chosen = {option: value for option, value in self.options.items() if usual.options.get(option) != value}
        if self.points < usual.points:
            chosen["points"] = self.points
        return Planned(name, self.options, self.points, self.seconds * _number(sizes, self.points), chosen)


def _ways(
    measure: Measure, net: Network, usual: Mapping[str, Any], given: Collection[str], speeds: "_Speeds", most: int
) -> list[_Way]:
    """The ways to take a measure, the usual one first, each cheaper than the one before."""
    points = min(most, usual.get("points", most))
    found: list[_Way] = []
    usual = {option: value for option, value in usual.items() if option != "points"}
    for some in ({}, *measure.between, *measure.cheaper):
        options = {**usual, **{option: value for option, value in some.items() if option not in given}}
        seconds = speeds.seconds(measure.cost(net, measure.effective(options)))
        if not found or seconds < found[-1].seconds / 2:
            found.append(_Way(options, points, seconds, "points" in given, some in measure.between))
    return found


def _way_in_time(ways: list[_Way], least: _Way, sizes: list[int], seconds: float) -> _Way:
    """The first way that leaves enough points in so many seconds, or else the last, at as many points as it can."""
    for way in ways:
        points = _affordable(sizes, way.points, seconds / way.seconds)
        if points >= (way.points if way.points_given or way.all_points else min(way.points, ENOUGH)):
            break
    return _with_points(way, points) if points >= least.points else least


def _with_points(way: _Way, points: int) -> _Way:
    """The same at so many points, unless their number was given."""
    return way if way.points_given and points else replace(way, points=points)


def _affordable(sizes: list[int], most: int, number: float) -> int:
    """How many points of each set there may be for so many in all: a power of two, or as many as there are."""
    if _number(sizes, most) <= number:
        return most
    powers = [2**k for k in range(math.ceil(math.log2(max(most, 2))) + 1)]
    return max((p for p in powers if p < most and _number(sizes, p) <= number), default=0)


def _number(sizes: list[int], points: int) -> int:
    """How many points are looked at in all."""
    return sum(min(size, points) for size in sizes)


def _is_small(net: Network) -> bool:
    """Whether it is a perceptron of a usual size.

    The gradients of its units tell what dense layers cost. A convolution does far more with as many of them.
    """
    if net.units * min(affine_width(net), math.prod(net.input_shape)) > SMALL:
        return False
    program = net.program.folded()
    mixing = [step for step in program.steps if step.name in MIXING]
    return all(dense(step, step.arguments_with(program.shapes), program) for step in mixing)


@dataclass(frozen=True)
class _Speeds:
    """How long what measures are made of takes at one point; only that is timed that one of them needs."""

    net: Network
    points: Tensor

    def seconds(self, effort: Effort) -> float:
        """How long a measure takes at one point."""
        numbers = effort._asdict()
        operations = numbers.pop("operations") / OPERATIONS
        return float(operations + sum(number * getattr(self, kind) for kind, number in numbers.items() if number))

    @cached_property
    def passes(self) -> float:
        """A forward pass."""
        return _coarse(self._a_pass)

    @cached_property
    def random(self) -> float:
        """A tangent along a random direction."""
        return self._tangent(self.net, self.points, chosen_directions(self.net, "random", TIMED_DIRECTIONS))

    @cached_property
    def exact(self) -> float:
        """One along a direction of those that exact gradients need."""
        return self._tangent(self.net, self.points, exact_directions(self.net))

    @cached_property
    def double(self) -> float:
        """The same in float64."""
        precise = self.net.frozen()
        return self._tangent(precise, self.points.to(precise.device).double(), exact_directions(precise))

    @cached_property
    def _a_pass(self) -> float:
        return _seconds_a_pass(self.net, self.points)

    def _tangent(self, net: Network, points: Tensor, along: Directions) -> float:
        """How long a tangent takes: so many passes, to the nearest power of the root of two."""
        ratio = _seconds_a_tangent(net, points, along) / max(self._a_pass, SHORTEST)
        return float(self.passes * 2.0 ** (round(2 * math.log2(max(ratio, SHORTEST))) / 2))


@torch.no_grad()
def _seconds_a_tangent(net: Network, points: Tensor, along: Directions) -> float:
    """How long a tangent of all values of one point takes, among others, with what draws it and the pass it needs.

    Of as many directions and points as measures take at once, or as many of them as make no larger array.
    """
    widest = max((site.units for site in net.sites), default=1)
    some = along if len(along.vectors) else next(along.chunks())
    some = replace(some, vectors=some.vectors[: max(1, FLOATS_AT_ONCE // widest)])
    x, route, numbers = points[: points_at_once(tangent_floats(net, some))], Route(net, some), Draws(torch.Generator())

    def visit(number: int, z: Tensor, tangents: Tensor) -> None:
        some.norms(tangents)

    def once() -> None:
        vectors = None if some.exact else some.drawn(x, (0,), numbers).transpose(0, 1)
        route.follow(x, visit, vectors=vectors)

    together = _seconds_of(once, fewest=FEWEST_TIMES // 2)
    return together / (len(x) * len(some.vectors))


@torch.no_grad()
def _seconds_a_pass(net: Network, points: Tensor) -> float:
    """How long the forward pass of one point takes, of some together."""
    x = points[: min(max(4, TIMED // max(1, net.units)), 256)]
    return _seconds_of(lambda: net.outputs(x).sum().item(), fewest=FEWEST_TIMES) / len(x)


def _seconds_of(once: Callable[[], object], fewest: int) -> float:
    """How long it takes.

    On one thread, the best of many: several that wait for each other on busy cores take a hundred times as long now and
    then, and are rarely twice as fast at so few points.
    """
    with threads_for(0):
        once()  # the first is slower
        times = [busy_seconds(once, time.thread_time)]
        for _ in range(min(MOST_TIMES, max(fewest, int(TIMING / max(times[0], SHORTEST))))):
            times.append(busy_seconds(once, time.thread_time))
    return min(times)


def _coarse(seconds: float) -> float:
    """The next larger power of the root of two; none is shorter than a nanosecond."""
    return float(2.0 ** (math.ceil(2 * math.log2(max(seconds, SHORTEST))) / 2))
