"""Records measures while a model trains, without disturbing it."""

import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from torch import Tensor, nn
from tqdm.auto import tqdm

from regionscope.geometry.plane_cells import PlaneCells, plane_cells
from regionscope.geometry.planes import Plane
from regionscope.measures.table import MEASURES, measure_named
from regionscope.points import ARRAYS, as_tensor
from regionscope.results import joint_estimate
from regionscope.runs.processes import agreed, gathered, leads, own_part
from regionscope.runs.run import Run, flat
from regionscope.tracing.trace import trace
from regionscope.tracing.undisturbed import evaluated, unwrapped
from regionscope.types import Array, Model

Probe = Array | tuple[Array, Array]  # points, perhaps with labels
Measure = Callable[..., Any]  # of the model and points: an Estimate, or anything with to_dict
USUAL = tuple(name for name, m in MEASURES.items() if m.watching is not None and not m.needs_labels)


class Logger(Protocol):
    """Where else the numbers go."""

    def log(self, step: int, values: dict[str, float]) -> None:
        """Take the numbers of a step by name."""

    def close(self) -> None:
        """Nothing more will come."""


@dataclass(frozen=True)
class Cost:
    """What monitoring has cost so far: seconds, their share of the training time, records made and left out."""

    seconds: float
    share: float
    records: int
    left_out: int

    def __str__(self) -> str:
        thinned = f", {self.left_out} left out to keep the budget" if self.left_out else ""
        return f"{self.records} records in {self.seconds:.1f} s, {self.share:.1%} of the training time{thinned}"


def log_steps(total: int, count: int) -> list[int]:
    """About `count` steps from 0 to `total`, evenly spaced on a logarithmic scale: fewer where they would coincide.

    >>> log_steps(1000, 10)
    [0, 1, 2, 6, 13, 32, 75, 178, 422, 1000]
    """
    if total < 1 or count < 2:
        raise ValueError(f"total must be at least 1 and count at least 2, got {total} and {count}")
    return [0, *sorted({round(step) for step in np.geomspace(1, total, count - 1)})]


class Monitor:
    """Records measures of a model at some steps of its training: `monitor(step, loss=...)` in any loop.

    `probes` are named sets of points, a tensor or array each or (points, labels). `measures` are names from
    `rs.MEASURES`, or {name: options}, or {name: function of the model and points}, such as {"bounds": rs.bounds}; the
    option `points` takes only the first so many, and by default local complexity is estimated with few draws and
    directions at each point. `steps` says when: numbers such as `rs.log_steps` gives, or a function of the step; always
    if not given.
    `planes` are named planes on which the exact regions are recorded, `checkpoints` keeps the weights of each record.
    All goes to the directory `run`, and as flat numbers to the `loggers`. `resume` goes on with the run that is there.

    Training is the same bit for bit with a monitor and without: measures draw from generators of their own (`seed`),
    in evaluation mode, and leave gradients, buffers, modes and random states alone. With a `budget`, a share of the
    training time, records that would exceed it are left out. A measure that fails is recorded as an error and training
    goes on, unless `strict`. Under torch.distributed each rank measures its part of the points and rank 0 writes.

    >>> import torch
    >>> model = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1))
    >>> monitor = Monitor(model, {"grid": torch.randn(5, 2)}, measures=["total_variation"], steps=[0, 10])
    >>> [step for step in range(20) if monitor(step) is not None]
    [0, 10]
    """

    def __init__(
        self,
        model: Model,
        probes: Mapping[str, Probe],
        *,
        measures: Iterable[str] | Mapping[str, Mapping[str, Any] | Measure] = USUAL,
        steps: Iterable[int] | Callable[[int], bool] | None = None,
        run: str | Path | Run | None = None,
        resume: bool = False,
        loggers: Sequence[Logger] = (),
        planes: Mapping[str, Plane] | None = None,
        checkpoints: bool = True,
        budget: float | None = None,
        strict: bool = False,
        seed: int = 0,
        show_progress: bool = False,
    ) -> None:
        self.model, self.strict, self.seed, self.show_progress = model, strict, seed, show_progress
        self.probes = {name: checked_probe(name, probe) for name, probe in probes.items()}
        self.measures = checked_measures(measures, self.probes)
        self.planes, self.checkpoints, self.loggers = dict(planes or {}), checkpoints, list(loggers)
        self.steps = steps if callable(steps) or steps is None else sorted({int(step) for step in steps})
        if budget is not None and not budget > 0:
            raise ValueError(f"budget must be a positive share of the training time, got {budget}")
        self.budget = budget
        self.run = self._opened(run, resume) if leads() else None
        self._known = set(self.run.steps) if self.run else set()
        self._spent = self._dearest = 0.0
        self._began: float | None = None
        self._records = self._left_out = 0
        self._cells: dict[str, PlaneCells] = {}
        self._errors: dict[str, Exception] = {}

    def due(self, step: int) -> bool:
        """Whether this step is to be recorded, as far as the steps say."""
        if step in self._known:
            return False
        if self.steps is None:
            return True
        return self.steps(step) if callable(self.steps) else step in self.steps

    def __call__(self, step: int, **scalars: float) -> dict[str, Any] | None:
        """Record a step with these numbers if it is due; what was recorded, or None."""
        start = time.perf_counter()
        self._began = start if self._began is None else self._began
        if not agreed(self.due(step)) or not agreed(self._affordable(step, start)):
            return None
        try:
            record = self.measured(scalars)
            if leads():
                self._write(step, record)
        finally:
            taken = time.perf_counter() - start
            self._spent += taken
            self._dearest = max(self._dearest, taken)
        self._known.add(step)
        self._records += 1
        return record

    def measured(self, scalars: Mapping[str, float] | None = None) -> dict[str, Any]:
        """What a record holds: scalars, measures at the probes, counts on planes, errors, seconds."""
        start = time.perf_counter()
        record: dict[str, Any] = {"scalars": {n: float(v) for n, v in (scalars or {}).items()}, "probes": {}}
        self._cells, self._errors = {}, {}
        with evaluated(self.model):
            for name, probe in self.probes.items():
                points, labels = placed(unwrapped(self.model), *probe)
                found = {m: self._one(m, name, points, labels) for m in self.measures}
                record["probes"][name] = {m: f for m, f in found.items() if f is not None}
            for name, plane in self.planes.items() if leads() else ():
                with self._forgiven(f"planes/{name}"):
                    self._cells[name] = plane_cells(unwrapped(self.model), plane)
        record["planes"] = {name: len(cells) for name, cells in self._cells.items()}
        if self._errors:
            if self.strict:
                raise next(iter(self._errors.values()))
            record["errors"] = {what: f"{type(error).__name__}: {error}" for what, error in self._errors.items()}
            what, message = next(iter(record["errors"].items()))
            warnings.warn(f"{what} could not be measured, training goes on: {message}", stacklevel=3)
        return record | {"seconds": time.perf_counter() - start}

    @property
    def cost(self) -> Cost:
        """What monitoring has cost so far."""
        training = self._training_time(time.perf_counter())
        return Cost(self._spent, self._spent / training if training > 0 else 0.0, self._records, self._left_out)

    def close(self) -> None:
        """Nothing more will be recorded."""
        for logger in self.loggers:
            logger.close()
        if self.run is None:
            return
        told = {"phases": self.run.phases().to_dict()} if self.run.has_phases() else {}
        try:
            with self._written("what monitoring cost"):
                self.run.set_status(monitoring=str(self.cost), **told)
        finally:
            self.run.close()

    def __enter__(self) -> "Monitor":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # one measure

    def _one(self, measure: str, probe: str, points: Tensor, labels: Tensor | None) -> dict[str, Any] | None:
        options = self.measures[measure]
        if callable(options):
            found: Any = None
            with self._forgiven(f"{probe}/{measure}"):
                found = options(unwrapped(self.model), points)
            return None if found is None else as_dict(found)
        if labels is None and MEASURES[measure].needs_labels:
            return None  # another probe has labels
        part, error = None, None
        options = dict(options)
        first = options.pop("points", None)
        x, y = (None if values is None else values[:first][own_part()] for values in (points, labels))
        try:
            if x is not None and len(x):
                net = trace(unwrapped(self.model), x[:1], allow_smooth=True)
                part = MEASURES[measure].estimate(net, x, y, seed=self.seed, **options)
        except Exception as failure:
            error = failure
        parts = gathered((part, error))
        failures = [failure for _, failure in parts if failure is not None]
        if failures:
            self._errors[f"{probe}/{measure}"] = failures[0]
            return None
        return joint_estimate([part for part, _ in parts if part is not None], interleaved=True).to_dict()

    @contextmanager
    def _forgiven(self, what: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            self._errors[what] = error

    # writing

    def _opened(self, run: str | Path | Run | None, resume: bool) -> Run | None:
        if run is None or isinstance(run, Run):
            return run
        return Run.resume(run) if resume else Run.create(run, self.config)

    @property
    def config(self) -> dict[str, Any]:
        """What is recorded, and where."""
        return {
            "model": str(unwrapped(self.model)),
            "probes": {name: describe(points) for name, (points, _) in self.probes.items()},
            "measures": {n: getattr(o, "__name__", "function") if callable(o) else o for n, o in self.measures.items()},
            "planes": list(self.planes),
            "steps": self.steps if isinstance(self.steps, list) else None,
            "seed": self.seed,
        }

    def _write(self, step: int, record: dict[str, Any]) -> None:
        model = unwrapped(self.model)
        weights = model.state_dict() if self.checkpoints and isinstance(model, nn.Module) else None
        if self.run is not None:
            with self._written(f"step {step}"):
                self.run.record(step, record, weights=weights, planes=self._cells)
        values = {name: value for name, value in flat(record).items() if value is not None}
        for logger in self.loggers:
            logger.log(step, values)
        if self.show_progress:
            tqdm.write(f"step {step}: " + ", ".join(f"{n} {v:.4g}" for n, v in values.items() if n.count("/") < 2))

    @contextmanager
    def _written(self, what: str) -> Iterator[None]:
        """A full disk does not end the training, unless strict."""
        try:
            yield
        except OSError as error:
            if self.strict:
                raise
            warnings.warn(f"{what} could not be written, training goes on: {error}", stacklevel=6)

    # the budget

    def _training_time(self, now: float) -> float:
        return 0.0 if self._began is None else now - self._began - self._spent

    def _affordable(self, step: int, now: float) -> bool:
        """Whether the dearest record so far still fits; the first is always made."""
        if self.budget is None or not self._records:
            return True
        if self._spent + self._dearest <= self.budget * self._training_time(now):
            return True
        if not self._left_out:
            warnings.warn(
                f"monitoring would take more than {self.budget:.0%} of the training time;"
                f" records from step {step} on are thinned",
                stacklevel=3,
            )
        self._left_out += 1
        return False


# what the user gives


def checked_probe(name: str, probe: Probe) -> tuple[Tensor, Tensor | None]:
    points, labels = probe if isinstance(probe, tuple | list) else (probe, None)
    if not isinstance(points, ARRAYS) or not len(points):
        raise ValueError(f"probe {name!r} must be a tensor of points or (points, labels), got {type(probe).__name__}")
    if labels is not None and len(labels) != len(points):
        raise ValueError(f"probe {name!r} has {len(points)} points and {len(labels)} labels")
    return as_tensor(points), None if labels is None else as_tensor(labels)


def placed(model: Model, points: Tensor, labels: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """The probe where the model is by now, in its dtype: trainers move models about."""
    parameters = model.parameters() if isinstance(model, nn.Module) else ()
    parameter = next((p for p in parameters if p.is_floating_point()), None)
    if parameter is None:
        return points, labels
    return points.to(parameter.device, parameter.dtype), None if labels is None else labels.to(parameter.device)


def checked_measures(
    measures: Iterable[str] | Mapping[str, Mapping[str, Any] | Measure],
    probes: Mapping[str, tuple[Tensor, Tensor | None]],
) -> dict[str, dict[str, Any] | Measure]:
    if isinstance(measures, str):
        raise TypeError(f"measures must be several names or a dict, got the text {measures!r}; write [{measures!r}]")
    given = dict(measures) if isinstance(measures, Mapping) else {name: {} for name in measures}
    found: dict[str, dict[str, Any] | Measure] = {}
    for name, options in given.items():
        if callable(options):
            found[name] = options
            continue
        measure = measure_named(name)
        if measure.needs_labels and all(labels is None for _, labels in probes.values()):
            raise ValueError(f"{name} needs labels; give a probe as (points, labels)")
        measure.check({n: o for n, o in options.items() if n != "points"})
        found[name] = {**measure.defaults, **(measure.watching or {}), **options}
    return found


def describe(points: Tensor) -> dict[str, Any]:
    digest = sha256(points.detach().cpu().contiguous().numpy().tobytes()).hexdigest()[:16]
    return {"points": len(points), "shape": list(points.shape[1:]), "sha256": digest}


def as_dict(found: Any) -> dict[str, Any]:
    """What a function of the user's returned: an estimate or its like, inequalities, or a number."""
    if isinstance(found, list):
        return {bound.form: bound.to_dict() for bound in found}
    return dict(found.to_dict()) if hasattr(found, "to_dict") else {"mean": float(found), "stderr": None}
