"""What a monitor watches: measures at probes and exact regions on planes; and what it sees there at one step."""

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from torch import Tensor, nn

from regionscope.files import check_name
from regionscope.geometry.plane_cells import PlaneCells, plane_cells
from regionscope.geometry.planes import Plane
from regionscope.inequalities.bound import Bound
from regionscope.machine import one_core_each
from regionscope.measures.attacks import box_of
from regionscope.measures.plans import Plan, planned_measures
from regionscope.measures.table import MEASURES, measure_named
from regionscope.points import ARRAYS, as_tensor, digest_of
from regionscope.results import Estimate, Share, joint_estimate
from regionscope.runs.processes import from_every_process, leaders, leads, own_number, own_part
from regionscope.runs.record import Finding, Record, finding, number
from regionscope.tables import how_many
from regionscope.tracing.network import BATCH_ADVICE, Network
from regionscope.tracing.trace import trace
from regionscope.tracing.undisturbed import contents_kept, evaluated, unwrapped
from regionscope.types import Array, Model

Probe = Array | tuple[Array, Array | None]  # points, perhaps with labels
Function = Callable[..., Any]  # of the model and points: numbers, an Estimate, or anything with to_dict
Place = tuple[str, str]  # a probe and a measure
OWN = "a measure of your own returns a number, one a point, or an Estimate"
SMALL = 1 << 14  # values at a point, of a network that does not keep several cores busy
USUAL = tuple(name for name, m in MEASURES.items() if m.watching is not None and not m.needs_labels)


@dataclass(frozen=True)
class Watched:
    """Measures, by name with their options or as functions, at probes; planes; the seed of all that is drawn."""

    probes: Mapping[str, tuple[Tensor, Tensor | None]]
    measures: Mapping[str, Mapping[str, Any] | Function]
    planes: Mapping[str, Plane]
    seed: int
    given: Mapping[str, Collection[str]] = field(default_factory=dict)  # the options of measures that the user gave
    limit: float | None = None  # seconds that a record may take, if that is still to be seen to
    allow_smooth: bool = True

    @staticmethod
    def of(
        probes: Mapping[str, Probe],
        measures: Iterable[str] | Mapping[str, Mapping[str, Any] | Function],
        planes: Mapping[str, Plane],
        seed: int,
    ) -> "Watched":
        """What a user asks for, if it makes sense, with the options that suit watching."""
        if not isinstance(probes, Mapping):
            raise TypeError(f'probes are sets of points by name, such as {{"train": x}}, got {type(probes).__name__}')
        if not probes and not planes:
            raise ValueError("there is nothing to watch: give probes, sets of points by name, or planes")
        for kind, names in {"probe": probes, "plane": planes}.items():
            for name in names:
                check_name(kind, name)
        points = {name: _points_and_labels(name, probe) for name, probe in probes.items()}
        found = _measures_with_options(measures, points)
        told = measures if isinstance(measures, Mapping) else {}
        given = {name: tuple(options) for name, options in told.items() if not callable(options)}
        return Watched(points, found, dict(planes), seed, given)

    def as_planned(self, plan: Mapping[str, Any]) -> "Watched":
        """The same with what a plan chose, as `Plan.to_dict` tells it."""
        measures = dict(self.measures)
        for name, planned in plan["measures"].items():
            options = measures.get(name)
            if isinstance(options, Mapping):
                stay = self.given.get(name, ())
                measures[name] = {**options, **{o: v for o, v in planned["chosen"].items() if o not in stay}}
                if not planned["points"]:
                    del measures[name]
        return replace(self, measures=measures, limit=None)

    def to_dict(self) -> dict[str, Any]:
        """In words and numbers, for the configuration of a run."""
        return {
            "probes": {name: _description(points) for name, (points, _) in self.probes.items()},
            "measures": {name: self._options_in_effect(name, told) for name, told in self.measures.items()},
            "planes": list(self.planes),
            "seed": self.seed,
        }

    def _options_in_effect(self, name: str, told: Mapping[str, Any] | Function) -> Any:
        """All options with which a measure is taken; of a function, its name."""
        if callable(told):
            return getattr(told, "__name__", "function")
        options = measure_named(name).effective(told)
        if "frame" in options:  # which has no more directions than the points have dimensions
            options["directions"] = min(
                options["directions"], *(points[0].numel() for points, _ in self.probes.values())
            )
        return options


@dataclass(frozen=True)
class Observation:
    """What was seen at a step: its record, the regions on the planes, and what could not be measured and why."""

    record: Record
    cells: Mapping[str, PlaneCells]
    failures: Mapping[str, Exception]  # by "probe/measure" or "planes/name"


def observation(
    model: Model | Network, watched: Watched, step: int, scalars: Mapping[str, float | Tensor],
    tell: Callable[[str], None] = lambda what: None,
    on_plan: Callable[[Plan], None] = lambda plan: None,
) -> Observation:  # fmt: skip
    """Look at a model once; it is left as it was. Each process measures its part of the points, the first all planes.

    The model is traced once for all measures and planes (once a shape, if points have several). `tell` hears what is
    being measured. If the time that it may take is still to be seen to, `on_plan` hears how before it is measured.
    """
    start, model = time.perf_counter(), unwrapped(model)
    told = {name: _outcome(partial(number, value)) for name, value in scalars.items()}
    if nan := _where_nan(model):  # only functions of the user's may make something of that
        own = {name: told for name, told in watched.measures.items() if callable(told)}
        watched = replace(watched, measures=own, planes={}, limit=None)
    found: dict[Place, Any] = {}  # what each measure found at each probe, or why it did not
    with evaluated(model):
        network = _networks_of(model, watched.allow_smooth)
        plan = leaders(_plan(model, watched, network)) if watched.limit is not None else None
        if plan is not None:
            on_plan(plan)
            watched = watched.as_planned(plan.to_dict())
        probes = {probe: _on_its_device(model, *points) for probe, points in watched.probes.items()}
        for (probe, (x, _)), (name, options) in product(probes.items(), watched.measures.items()):
            if callable(options):
                tell(f"measuring {name} at {probe}")
                found[probe, name] = _outcome(partial(_own_finding, name, options, model, x))
        shared = _parts_found(watched, probes, network, tell)
        cells = {}
        for name, plane in watched.planes.items() if leads() else ():
            tell(f"cutting plane {name}")
            cells[name] = _outcome(partial(_cells, model, network, plane))
    everyone = from_every_process(shared)
    found |= {place: _together([parts[place] for parts in everyone]) for place in shared}
    outcomes = {f"{probe}/{name}": outcome for (probe, name), outcome in found.items()}
    outcomes |= {f"planes/{name}": outcome for name, outcome in cells.items()}
    outcomes |= {f"scalars/{name}": outcome for name, outcome in told.items()}
    outcomes |= {"weights": ValueError(f"{nan} holds NaN: there is nothing to measure")} if nan else {}
    failures = {what: outcome for what, outcome in outcomes.items() if isinstance(outcome, Exception)}
    regions = {name: outcome for name, outcome in cells.items() if isinstance(outcome, PlaneCells)}
    record = Record(
        step=step,
        scalars={name: None if isinstance(value, Exception) else value for name, value in told.items()},
        probes={
            probe: {name: found[probe, name] for name in watched.measures if isinstance(found[probe, name], Mapping)}
            for probe in watched.probes
        },
        planes={name: len(outcome) for name, outcome in regions.items()},
        errors={what: f"{type(error).__name__}: {error}" for what, error in failures.items()},
        seconds=time.perf_counter() - start,
    )
    return Observation(record, regions, failures)


def _parts_found(
    watched: Watched, probes: Mapping[str, tuple[Tensor, Tensor | None]], network: Callable[[Tensor], Network],
    tell: Callable[[str], None],
) -> dict[Place, Any]:  # fmt: skip
    """What the library's own measures found at the points of this process, or why they did not.

    The model itself is called here only, before they begin. At a small network they are taken several at a time, each
    on one core; a large one keeps all cores busy, and has memory for one.
    """
    own = {name: options for name, options in watched.measures.items() if not callable(options)}
    networks = {probe: _outcome(partial(network, x)) for probe, (x, _) in probes.items() if own}
    tasks = {
        (probe, name): partial(_outcome, partial(_part, name, networks[probe], x, y, watched.seed, options))
        for name, options in own.items()  # the first takes longest: it is begun first at all probes
        for probe, (x, y) in probes.items()
    }

    def places() -> Iterator[Place]:
        for probe, name in tasks:
            tell(f"measuring {name} at {probe}")
            yield probe, name

    small = all(_is_light(net) for net in networks.values() if isinstance(net, Network))
    outcomes = one_core_each(list(tasks.values())) if small else (task() for task in tasks.values())
    found = dict(zip(places(), outcomes, strict=True))
    return {place: found[place] for place in product(probes, own)}


def _is_light(net: Network) -> bool:
    return net.device.type == "cpu" and net.program.entries <= SMALL


# one measure


def _outcome(function: Callable[[], Any]) -> Any:
    """What a function returns, or the exception that it raises."""
    try:
        return function()
    except Exception as error:
        return error


def _plan(model: Model | Network, watched: Watched, network: Callable[[Tensor], Network]) -> Plan | None:
    """How the measures keep within their time; None if the model cannot be run at any probe."""
    measures = {name: options for name, options in watched.measures.items() if not callable(options)}
    sizes = [len(points) for points, _ in watched.probes.values()]
    usual = tuple(watched.measures) == USUAL and not any(watched.given.values())

    def plan(points: Tensor) -> Plan:
        x, _ = _on_its_device(model, points, None)
        options: dict[str, Any] = {"seconds": watched.limit, "given": watched.given, "sizes": sizes}
        return planned_measures(network(x), x, measures, optional=usual, **options)

    plans = (_outcome(partial(plan, points)) for points, _ in watched.probes.values() if measures)
    return next((found for found in plans if isinstance(found, Plan)), None)


def _where_nan(model: Model | Network) -> str | None:
    """The first of the model's weights that holds NaN, by its name."""
    weights = dict(model.named_parameters()) if isinstance(model, nn.Module) else getattr(model, "weights", {})
    return next((name for name, w in weights.items() if w.is_floating_point() and bool(w.detach().isnan().any())), None)


def _networks_of(model: Model | Network, allow_smooth: bool) -> Callable[[Tensor], Network]:
    """A function that gives the network for points, or raises why there is none; of a shape it is traced once."""
    if isinstance(model, Network):
        return lambda x: model
    networks: dict[object, Network | Exception] = {}

    def network(x: Tensor) -> Network:
        kind = tuple(x.shape[1:]), x.dtype, x.device
        first = partial(trace, model, x[:1], allow_smooth=allow_smooth)
        found = networks[kind] if kind in networks else _outcome(first)
        if isinstance(found, Network) or x[:1].isfinite().all():  # what fails at no number may do elsewhere
            networks[kind] = found
        if isinstance(found, Exception):
            raise found
        return found

    return network


def _part(
    name: str, network: Network | Exception, points: Tensor, labels: Tensor | None, seed: int,
    options: Mapping[str, Any],
) -> Any:  # fmt: skip
    """The estimate at those of the points that are for this process, if any; None also if labels are missing.

    Every process has a noise of its own, so what is drawn at a point depends on how many there are.
    """
    if labels is None and MEASURES[name].needs_labels:
        return None  # another probe has them
    options = dict(options)
    first = options.pop("points", None)
    x, y = points[:first][own_part()], None if labels is None else labels[:first][own_part()]
    if not len(x):
        return None
    if isinstance(network, Exception):  # the model cannot be traced at this probe
        raise network
    return MEASURES[name].estimate(network, x, y, seed=seed, part=own_number(), **options)


def _together(parts: list[Any]) -> Finding | Exception | None:
    """What the processes found together, or the first failure; None if there was nothing to measure."""
    failures = [part for part in parts if isinstance(part, Exception)]
    if failures:
        return failures[0]
    estimates = [part for part in parts if part is not None]
    return joint_estimate(estimates, interleaved=True).to_dict() if estimates else None


def _own_finding(name: str, function: Function, model: Model | Network, points: Tensor) -> Finding | None:
    """What a function of the user's returns: an estimate or its like, inequalities, numbers, or None."""
    with contents_kept(model):
        found = function(model, points)
    if found is None or hasattr(found, "to_dict"):
        return None if found is None else finding(found.to_dict(), name)
    if isinstance(found, list) and found and isinstance(found[0], Bound):
        return {bound.form: bound.to_dict() for bound in found}
    try:
        array = np.asarray(_as_numpy_has_it(found) if isinstance(found, Tensor) else found)
        if array.dtype.kind in "USc":  # text that looks like a number is none, and of a complex one half would go
            raise TypeError
        values = array.astype(np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"{OWN}; {name} returned {type(found).__name__}") from None
    if values.size == 1:
        return {"mean": float(values.item()), "stderr": None}
    if values.shape not in {(len(points),), (len(points), 1)}:
        raise ValueError(f"{OWN}; {name} returned shape {values.shape} at {how_many(len(points), 'point')}")
    kind = Share if array.dtype == np.bool_ else Estimate
    return kind(name, values.ravel()).to_dict()


def _as_numpy_has_it(found: Tensor) -> Tensor:
    """A tensor without its gradients, on the CPU, in a dtype that numpy knows."""
    found = found.detach().cpu()
    return found.double() if found.is_floating_point() else found


def _cells(model: Model | Network, network: Callable[[Tensor], Network], plane: Plane) -> PlaneCells:
    return plane_cells(network(_on_its_device(model, plane.origin[None], None)[0]), plane)


def _on_its_device(model: Model | Network, points: Tensor, labels: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """The probe where the model is by now, in its dtype: trainers move models about."""
    tensors: Iterable[Tensor] = model.parameters() if isinstance(model, nn.Module) else ()
    tensors = model.weights.values() if isinstance(model, Network) else tensors
    parameter = next((p for p in tensors if p.is_floating_point()), None)
    if parameter is None:
        return points, labels
    return points.to(parameter.device, parameter.dtype), None if labels is None else labels.to(parameter.device)


# what the user gives


def _points_and_labels(name: str, probe: Probe) -> tuple[Tensor, Tensor | None]:
    points, labels = probe if isinstance(probe, tuple | list) and len(probe) == 2 else (probe, None)
    if not isinstance(points, ARRAYS) or not len(points):
        raise ValueError(f"probe {name!r} must be a tensor of points or (points, labels), got {type(probe).__name__}")
    if points.ndim < 2:
        raise ValueError(f"probe {name!r} must be a batch (n, ...), got shape {tuple(points.shape)}; {BATCH_ADVICE}")
    if labels is not None and len(labels) != len(points):
        raise ValueError(f"probe {name!r} has {how_many(len(points), 'point')} and {how_many(len(labels), 'label')}")
    return as_tensor(points), None if labels is None else as_tensor(labels)


def _measures_with_options(
    measures: Iterable[str] | Mapping[str, Mapping[str, Any] | Function],
    probes: Mapping[str, tuple[Tensor, Tensor | None]],
) -> dict[str, Mapping[str, Any] | Function]:
    if isinstance(measures, str):
        raise TypeError(f"measures must be several names or a dict, got the text {measures!r}; write [{measures!r}]")
    given = dict(measures) if isinstance(measures, Mapping) else {name: {} for name in measures}
    found: dict[str, Mapping[str, Any] | Function] = {}
    for name, options in given.items():
        if callable(options):
            check_name("measure", name)
            found[name] = options
            continue
        measure = measure_named(name)
        if measure.needs_labels and all(labels is None for _, labels in probes.values()):
            raise ValueError(f"{name} needs labels; give a probe as (points, labels)")
        measure.check({option: value for option, value in options.items() if option != "points"})
        if options.get("points", 1) < 1:
            raise ValueError(f"{name} must be measured at one of the points at least, got points {options['points']}")
        # attacks stay where there can be data, and at every record in the same box
        box = {"bounds": box_of([points for points, _ in probes.values()])} if "bounds" in measure.options else {}
        found[name] = {**measure.defaults, **box, **(measure.watching or {}), **options}
    return found


def _description(points: Tensor) -> dict[str, Any]:
    return {"points": len(points), "shape": list(points.shape[1:]), "sha256": digest_of(points).hex()[:16]}
