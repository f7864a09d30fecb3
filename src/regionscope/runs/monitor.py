"""Records measures while a model trains, without disturbing it."""

import logging
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

import numpy as np
from torch import Tensor, nn

from regionscope.disk import one_line, reading
from regionscope.geometry.planes import Plane
from regionscope.measures.plans import Plan
from regionscope.progress import tqdm
from regionscope.runs.processes import leaders, leads
from regionscope.runs.record import Record, whole_step
from regionscope.runs.run import Run
from regionscope.runs.watched import USUAL, Function, Observation, Probe, Watched, observation
from regionscope.tables import Facts, Text, how_many
from regionscope.tracing.network import Network
from regionscope.tracing.undisturbed import unwrapped
from regionscope.types import Model

_log = logging.getLogger(__name__)
LONG = 5.0  # seconds; of a record that takes less nobody is told that it took longer than planned


class Logger(Protocol):
    """Where else the numbers go."""

    def log(self, step: int, values: dict[str, float]) -> None:
        """Take the numbers of a step by name."""

    def close(self) -> None:
        """Nothing more will come."""


@dataclass(frozen=True)
class Cost:
    """What monitoring has cost so far: seconds, what they are of the rest, records made and left out.

    `share` is seconds by those that training took without them, as a `budget` is: 0.25 is a fifth of the whole time,
    which is what is printed. Of a run that was resumed, since then: `earlier` records were there before.

    >>> str(Cost(2.0, share=0.25, records=3, left_out=0))
    '3 records in 2.0 s, 20.0% of the time'
    """

    seconds: float
    share: float
    records: int
    left_out: int
    earlier: int = 0

    def __str__(self) -> str:
        thinned = f", {self.left_out} left out to keep the budget" if self.left_out else ""
        new = "new " if self.earlier else ""
        made = how_many(self.records, f"{new}record")
        return f"{made} in {self.seconds:.1f} s, {self.share / (1 + self.share):.1%} of the time{thinned}"

    def _repr_html_(self) -> str:
        """The same for notebooks."""
        return Text(self)._repr_html_()


def log_steps(total: int, count: int) -> list[int]:
    """About `count` steps from 0 to `total`, evenly spaced on a logarithmic scale: fewer where they would coincide.

    Both ends are always among them.

    >>> log_steps(1000, 10)
    [0, 1, 2, 6, 13, 32, 75, 178, 422, 1000]
    """
    if total < 1 or count < 2:
        raise ValueError(f"total must be at least 1 and count at least 2, got {total} and {count}")
    return [0, *sorted({round(step) for step in np.geomspace(total, 1, count - 1)})]  # of a single one, the end


def _name_of(logger: Logger) -> str:
    return f"the logger {type(logger).__name__}"


def _warn(message: str) -> None:
    """A warning at the line that called the library; Python would give it once a line, not to a second run there."""
    frame: FrameType = sys._getframe()
    while _is_inside(frame) and frame.f_back is not None:
        frame = frame.f_back
    warnings.warn_explicit(message, UserWarning, frame.f_code.co_filename, frame.f_lineno, registry={})


def _is_inside(frame: FrameType) -> bool:
    """Whether it is the library's own, or that of a `with` between two of its frames."""
    return str(frame.f_globals.get("__name__")).partition(".")[0] in ("regionscope", "contextlib")


class Monitor(Facts):
    """Records measures of a model at some steps of its training: `monitor(step, loss=...)` in any loop.

    The model may be a `Network` of it, made by `rs.trace`. `probes` are named sets of points, a tensor or array each or
    (points, labels). `measures` are names from `rs.MEASURES`, or {name: options}, or {name: function of the model and
    points}, which returns a number, one a point (their mean is recorded with its error), or what has `to_dict`, such as
    {"bounds": rs.bounds}. Such a function is given the model itself: one that calls several functions of the library
    traces it once, `net = rs.trace(model, points[:1])`, and gives them `net`. The option `points` takes only the first
    so many, and by default local complexity is estimated with few draws and directions at each point. `steps` says
    when: numbers such as `rs.log_steps` gives, or a function of the step; always if not given. `planes` are named
    planes on which the exact regions are recorded, `checkpoints` keeps the weights of each record. All goes to the
    directory `run`, and as flat numbers to the `loggers`. `resume` goes on with the run that is there, `overwrite`
    removes it.

    Training is the same bit for bit with a monitor and without: measures draw from generators of their own (`seed`),
    in evaluation mode, and leave gradients, buffers, modes and random states alone; hooks of yours are called as in any
    forward pass, and what they keep outside the model is not put back. With a `budget`, a share of the training time,
    records that would exceed it are left out. What fails (a measure, a logger, a full disk) is recorded as an error and
    said once, and training goes on, unless `strict`. A model that uses autocast is measured in the dtype of its
    weights. Under torch.distributed each rank measures its part of the points and rank 0 writes.

    Large networks are measured at fewer points and along random directions, so that a record takes about
    `seconds_per_record` (None sets no limit): the plan is said on standard error before the first record, and kept in
    the run; that a record took more than twice as long is said, once. How many points a plan takes depends on the speed
    of the machine: options that are given, `points` among them, stay as they are, and networks of the size of usual
    perceptrons are measured as ever. Without `allow_smooth` a model that is not piecewise linear is an error.

    >>> import torch
    >>> model = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1))
    >>> monitor = Monitor(model, {"grid": torch.randn(5, 2)}, measures=["total_variation"], steps=[0, 10])
    >>> [step for step in range(20) if monitor(step) is not None]
    [0, 10]
    """

    def __init__(
        self,
        model: Model | Network,
        probes: Mapping[str, Probe],
        *,
        measures: Iterable[str] | Mapping[str, Mapping[str, Any] | Function] = USUAL,
        steps: Iterable[int] | Callable[[int], bool] | None = None,
        run: str | Path | Run | None = None,
        resume: bool = False,
        overwrite: bool = False,
        loggers: Sequence[Logger] = (),
        planes: Mapping[str, Plane] | None = None,
        checkpoints: bool = True,
        budget: float | None = None,
        seconds_per_record: float | None = 20.0,
        allow_smooth: bool = True,
        strict: bool = False,
        seed: int = 0,
        show_progress: bool = False,
    ) -> None:
        self.model, self.strict, self.show_progress = model, strict, show_progress
        watched = Watched.of(probes, measures, planes or {}, seed)
        self.watched = replace(watched, limit=seconds_per_record, allow_smooth=allow_smooth)
        self.checkpoints, self.loggers = checkpoints, list(loggers)
        self.steps = steps if callable(steps) or steps is None else sorted({whole_step(step) for step in steps})
        if budget is not None and not budget > 0:
            raise ValueError(f"budget must be a positive share of the training time, got {budget}")
        if seconds_per_record is not None and not seconds_per_record > 0:
            raise ValueError(f"seconds_per_record must be positive or None, got {seconds_per_record}")
        if resume and overwrite:
            raise ValueError("resume goes on with the run that is there and overwrite removes it; say one of them")
        self.budget = budget
        self.run = self._run_at(run, resume, overwrite) if leads() else None
        self._owns = not isinstance(run, Run)
        missing = set(self.run.missing) if self.run else set()
        self.unwritten = missing & set(self.run.status.get("unwritten", ())) if self.run else set()
        self._lacked = bool(self.unwritten)  # when it began, and so does its status
        self._known = set(self.run.steps) - missing if self.run else set()
        self._errors: dict[str, str] = {}  # what failed beside the records, and how
        self._told: set[str] = set()  # what it was said of that it failed
        self._earlier = len(self._known)
        self._spent = self._dearest = 0.0
        self._planned = float("inf")  # seconds of a record, as long as nobody has planned
        self._began: float | None = None
        self.tell: Callable[[str], None] = lambda what: None  # hears what is being measured
        self._records = self._left_out = 0

    def _facts(self) -> dict[str, object]:
        steps = f"{len(self.steps)}, up to {max(self.steps, default=0)}" if isinstance(self.steps, list) else "chosen"
        probes = {name: how_many(len(points), "point") for name, (points, _) in self.watched.probes.items()}
        return {
            "model": type(unwrapped(self.model)).__name__,
            "probes": ", ".join(f"{name} ({size})" for name, size in probes.items()),
            "measures": ", ".join(self.watched.measures), "steps": "all" if self.steps is None else steps,
            "run": "none" if self.run is None else self.run.path, "so far": self.cost,
        }  # fmt: skip

    def due(self, step: int) -> bool:
        """Whether this step is to be recorded, as far as the steps say."""
        if step in self._known:
            return False
        if self.steps is None:
            return True
        return self.steps(step) if callable(self.steps) else step in self.steps

    def __call__(self, step: int, **scalars: float | Tensor) -> Record | None:
        """Record a step with these numbers if it is due; what was recorded, or None."""
        start, step = time.perf_counter(), whole_step(step)
        self._began = start if self._began is None else self._began
        if not leaders(self.due(step)) or not leaders(self._affordable(step, start)):
            return None
        try:
            self._follow_plan_of_run()
            seen = observation(self.model, self.watched, step, scalars, self.tell, self._begin_plan)
            self._tell_once(seen.failures)
            if leads():
                self._write(seen)
        finally:
            taken = time.perf_counter() - start
            self._spent += taken
            self._dearest = max(self._dearest, taken)
        self._known.add(step)
        self._records += 1
        _log.info("step %d was recorded in %.2g s", step, taken)
        self._tell_if_overrun(taken)
        return seen.record

    def _follow_plan_of_run(self) -> None:
        """Measure as in the records that the run has: numbers of one run belong together."""
        if self.watched.limit is not None:
            plan = leaders(self.run.config.get("plan") if self.run else None)
            with reading("the plan in run.json"):
                self.watched = self.watched if plan is None else self.watched.as_planned(plan)
                self._planned = self._planned if plan is None else float(plan["seconds"])

    def _begin_plan(self, plan: Plan) -> None:
        """From now on measure as planned; say so if that is not as usual."""
        self.watched, self._planned = self.watched.as_planned(plan.to_dict()), plan.seconds
        if plan.changed and leads():
            _log.warning("regionscope: a record of this network\n%s", plan)
        if self.run is not None:
            with self._forgiven("the plan", "be written"):
                now = {"measures": self.watched.to_dict()["measures"]} if "measures" in self.run.config else {}
                self.run.add_to_config(plan=plan.to_dict(), **now)

    def _tell_if_overrun(self, taken: float) -> None:
        """Say once that a record has taken far longer than planned, and what to do; the first one may have compiled."""
        if self._records == 1 or taken <= max(LONG, 2 * self._planned) or not leads():
            return
        own = [*self.watched.planes, *(name for name, told in self.watched.measures.items() if callable(told))]
        unplanned = f" and {', '.join(map(repr, own))} not planned for" if own else ""
        _log.warning(
            "regionscope: a record took %.2g s, planned were %.2g: the machine may be busy, times are estimates%s."
            " To take less time, give measures fewer points, as in measures={%r: {'points': 16}}, name fewer of them,"
            " or plan with a smaller seconds_per_record; a budget leaves records out. This is said once",
            taken, self._planned, unplanned, next(iter(self.watched.measures), "local_rank"),
        )  # fmt: skip
        self._planned = float("inf")

    def _tell_once(self, failures: Mapping[str, Exception]) -> None:
        """Warn of the first failure of what has not failed before; if strict, raise it."""
        new = [what for what in failures if what not in self._told]
        self._told |= failures.keys()
        if failures and self.strict:
            raise next(iter(failures.values()))
        if new:
            more = f" (and {len(new) - 1} more, which the record names)" if len(new) > 1 else ""
            error = failures[new[0]]
            _warn(f"{new[0]} could not be measured, training goes on: {type(error).__name__}: {error}{more}")

    @property
    def cost(self) -> Cost:
        """What monitoring has cost so far."""
        training = self._training_time(time.perf_counter())
        share = self._spent / training if training > 0 else 0.0
        return Cost(self._spent, share, self._records, self._left_out, self._earlier)

    def close(self) -> None:
        """Nothing more will be recorded; what fails now is said, and keeps nobody from the run."""
        try:
            for logger in self.loggers:
                with self._forgiven(_name_of(logger), "close"):
                    logger.close()
            if self.run is not None:
                self._close_run(self.run)
        finally:
            if self.run is not None and self._owns:
                self.run.close()

    def _close_run(self, run: Run) -> None:
        """Write down what is known of the whole."""
        told: dict[str, Any] = {"monitoring": str(self.cost)}
        with self._forgiven("the phases", "be told"):
            told |= {"phases": run.phases().to_dict()} if run.has_phases() else {}
        told |= {"errors": self._errors} if self._errors else {}
        told |= {"unwritten": sorted(self.unwritten)} if self.unwritten or self._lacked else {}
        with self._forgiven("what monitoring cost", "be written"):
            run.set_status(**told)

    def __enter__(self) -> "Monitor":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # writing

    def _run_at(self, run: str | Path | Run | None, resume: bool, overwrite: bool) -> Run | None:
        if run is None or isinstance(run, Run):
            return run
        if not resume:
            return Run.create(run, self.config, overwrite=overwrite)
        found, own = Run.resume(run), self.config
        kept = {"model": "another model", "probes": "other probes"}
        differ = [said for what, said in kept.items() if found.config.get(what, own[what]) != own[what]]
        if differ:
            found.close()
            raise ValueError(f"the run in {run} is of {' and '.join(differ)}; name another directory")
        return found

    @property
    def config(self) -> dict[str, Any]:
        """What is recorded, and where."""
        steps = self.steps if isinstance(self.steps, list) else None
        return {"model": str(unwrapped(self.model)), **self.watched.to_dict(), "steps": steps}

    def _write(self, seen: Observation) -> None:
        record, weights = seen.record, self._weights() if self.checkpoints else None
        if self.run is not None:
            self.unwritten.add(record.step)
            with self._forgiven(f"step {record.step}", "be written"):
                self.run.record(record, weights=weights, planes=seen.cells)
                self.unwritten.discard(record.step)
        values = {name: value for name, value in record.flat().items() if value is not None}
        for logger in self.loggers:
            with self._forgiven(_name_of(logger), "log"):
                logger.log(record.step, values)
        if self.show_progress:
            shown = ", ".join(f"{name} {value:.4g}" for name, value in values.items() if name.count("/") < 2)
            tqdm.write(f"step {record.step}: {shown}")

    def _weights(self) -> Mapping[str, Tensor] | None:
        model = unwrapped(self.model)
        if isinstance(model, Network):
            return model.weights or None
        if not isinstance(model, nn.Module):
            return None
        return {name: held for name, held in model.state_dict().items() if isinstance(held, Tensor)}

    @contextmanager
    def _forgiven(self, what: str, done: str) -> Iterator[None]:
        """A full disk, or a part of the user's that fails, does not end training, unless strict; it is said once."""
        try:
            yield
        except Exception as error:
            if self.strict:
                raise
            message = f"{what} could not {done}"
            if message not in self._told:
                _warn(f"{message}, training goes on: {one_line(error)}")
            self._told.add(message)
            self._errors.setdefault(what, f"{type(error).__name__}: {one_line(error)}")

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
            _warn(
                f"monitoring would take more than {self.budget:.0%} of the training time;"
                f" records from step {step} on are thinned"
            )
        self._left_out += 1
        return False
