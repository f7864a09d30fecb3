"""Training runs that can be stopped at any moment and go on as if nothing had happened."""

import math
import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from regionscope.datasets.sets import Dataset, Split
from regionscope.disk import one_line, reading
from regionscope.measures.table import measure_named
from regionscope.runs.monitor import Logger, Monitor, log_steps
from regionscope.runs.run import PROMISED, Run, check_no_run
from regionscope.runs.watched import Watched, observation
from regionscope.tables import how_many
from regionscope.tracing.trace import trace
from regionscope.training.checkpoints import Architecture, with_weights
from regionscope.training.config import (
    LOSSES,
    Penalty,
    Training,
    digest,
    new_model,
    new_optimiser,
    new_penalty,
    planes,
    probes,
    training_data,
)
from regionscope.training.progress import Progress
from regionscope.training.signals import stop_signals


class TrainingFailed(RuntimeError):
    """The loss is no number any more."""


def train(
    config: Training, path: str | Path, *, save_every: float = 60.0, device: str = "cpu",
    loggers: Sequence[Logger] = (), overwrite: bool = False, show_progress: bool = False,
) -> Run:  # fmt: skip
    """Train as the configuration says, recording into a new run directory; `overwrite` removes the run that is there.

    What cannot be trained or measured is refused before there is a run. What going on needs is saved every `save_every`
    seconds, and before a record unless that would take more than a hundredth of the time. SIGINT and SIGTERM stop
    between two steps, a second one at once. On the CPU of one machine the result is the same bit for bit however often
    a run is stopped, killed or loses power, and is resumed. Records that could not be written make it *incomplete*.

    >>> from tempfile import mkdtemp
    >>> small = Training(size=50, depth=1, width=5, steps=3, records=3, measures=("total_variation",), points=5)
    >>> train(small, mkdtemp() + "/run").steps
    [0, 1, 3]
    """
    if not overwrite:
        check_no_run(path)
    _check_save_every(save_every)
    where = usable_device(device)
    data = training_data(config)
    parts = _parts(config, data, where)
    _try(parts, config)
    built = Architecture(config.model, config.activation, data.shape)
    about = {
        "training": asdict(config), "architecture": asdict(built), "shape": data.shape, "outputs": data.outputs,
        "data": digest(data), **parts.watched.to_dict(), PROMISED: parts.steps,
    }  # fmt: skip
    with closing(Run.create(path, about, overwrite=overwrite)) as run:
        _go_on(run, config, data, parts, save_every, loggers, show_progress)
    return run


def resume(
    path: str | Path, *, save_every: float = 60.0, device: str = "cpu", loggers: Sequence[Logger] = (),
    show_progress: bool = False,
) -> Run:  # fmt: skip
    """Go on with a run that was stopped, killed or lost its machine; a finished one stays as it is.

    Records that are missing or damaged are measured again at the weights that were kept, or trained again for.
    """
    _check_save_every(save_every)
    with closing(Run.resume(path)) as run:
        config, status = run_config(run), run.status
        if status.get("state") == "finished" and not run.missing:
            run.keep_states(run.states[-1:])  # a power cut may have brought older ones back
            return run
        if status.get("state") == "failed":
            raise TrainingFailed(f"{run.path} failed: {status.get('reason', 'nobody knows why')}")
        where, data = usable_device(device), training_data(config)
        if digest(data) != run.config.get("data"):
            raise ValueError(
                f"{config.dataset} is not what {run.path} was begun with; going on would mix two data sets"
            )
        _go_on(run, config, data, _parts(config, data, where), save_every, loggers, show_progress)
    return run


def run_config(run: Run) -> Training:
    """The configuration a run was begun with."""
    if "training" not in run.config:
        raise ValueError(f"{run.path} was not begun by regionscope train; only its own loop can go on with it")
    with reading(run.path / "run.json", "does not say what is trained"):
        given: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in run.config["training"].items()}
        return Training(**given)


def run_model(run: Run, step: int | None = None) -> nn.Module:
    """The network of a run as it was at a recorded step, the last if not given; in eval mode."""
    config = run_config(run)
    with reading(run.path / "run.json", "does not say what is trained"):
        network = new_model(config, tuple(run.config["shape"]), run.config["outputs"])
    if step is None and not run.steps:
        raise ValueError(f"nothing was recorded in {run.path} yet")
    return with_weights(network, run.weights(run.steps[-1] if step is None else step), run.path).eval()


# the loop


@dataclass(frozen=True)
class _Parts:
    """What trains, how it is watched, and when."""

    model: nn.Module
    optimiser: Optimizer
    penalty: Penalty | None
    watched: Watched
    steps: Sequence[int]


def _parts(config: Training, data: Dataset, device: torch.device) -> _Parts:
    """All that a configuration asks for, or an error that says what cannot be had."""
    model = new_model(config, data.shape, data.outputs).to(device)
    watched = Watched.of(probes(config, data), _measures(config), planes(config, data), config.seed)
    optimiser, penalty = new_optimiser(config, model), new_penalty(config, model, data.train[0][:1].to(device))
    return _Parts(model, optimiser, penalty, watched, log_steps(config.steps, config.records))


def _measures(config: Training) -> dict[str, dict[str, Any]]:
    """What is measured, with the options that were given."""
    return {name: config.options.get(name, {}) for name in config.measures}


def _try(parts: _Parts, config: Training) -> None:
    """Measure what has options of its own at one point: an error that would be in all records is raised here."""
    (probe, (points, labels)), *_ = parts.watched.probes.items()
    regions = [name for name in config.measures if measure_named(name).needs_regions] + ["plane"] * config.plane
    here = next(parts.model.parameters()).device
    if regions and not trace(parts.model.eval(), points[:1].to(here), allow_smooth=True).piecewise_linear:
        raise ValueError(f"the network is smooth and has no linear regions: leave {', '.join(regions)} out")
    one = {probe: (points[:1], None if labels is None else labels[:1])}
    told = {name: parts.watched.measures[name] for name in config.options}
    for what, error in observation(parts.model, Watched(one, told, {}, config.seed), 0, {}).failures.items():
        options = ", ".join(f"{name} {value!r}" for name, value in config.options[what.split("/")[1]].items())
        raise ValueError(f"{what} cannot be measured so: {error} ({options})") from error


def _check_save_every(seconds: float) -> None:
    if not seconds >= 0:  # NaN neither
        raise ValueError(f"save_every must be so many seconds, not {seconds:g}")


def usable_device(name: str) -> torch.device:
    """A device by its name, if it can hold a number."""
    try:
        device = torch.device(name)
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise ValueError(f"device {name!r} cannot be used here: {one_line(error)}") from error
    return device


def _go_on(
    run: Run, config: Training, data: Dataset, parts: _Parts, save_every: float, loggers: Sequence[Logger],
    show_progress: bool,
) -> None:  # fmt: skip
    """Train from where the run is to its end, or to a signal; first bring back the records that it should have."""
    device = next(parts.model.parameters()).device
    splits = [(x.to(device), y.to(device)) for x, y in (data.train, data.test)]
    monitor = Monitor(
        parts.model, parts.watched.probes, measures=_measures(config), steps=parts.steps, run=run, loggers=loggers,
        seed=config.seed, planes=parts.watched.planes, seconds_per_record=config.seconds_per_record,
    )  # fmt: skip
    with monitor, torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        loop = _Loop(run, config, parts, monitor, splits, save_every, show_progress)
        missing = run.missing
        newest = run.latest_state()  # states beyond are damaged
        run.keep_states([step for step in run.states if newest is not None and step <= newest[0]])
        run.set_status(state="running", steps=config.steps)
        if lost := loop.measured_again(missing):  # no weights are left of these: train again for them
            loop.restore(at_most=min(lost))
            loop.train_until(max(lost))
        if not loop.signals:
            loop.restore()
            loop.train_until(config.steps)
    stopped_by = loop.signals[0] if loop.signals and loop.step < config.steps else None
    state = "stopped" if stopped_by else "incomplete" if loop.lost else "finished"
    try:
        run.set_status(state=state, step=loop.step, signal=stopped_by, scored=loop.scored, **loop.shown)
    except OSError as error:
        raise OSError(f"training is over, but {error}; make room, then: regionscope resume {run.path}") from error


@dataclass
class _Loop:
    """Where training is, and what it lacks."""

    run: Run
    config: Training
    parts: _Parts
    monitor: Monitor
    splits: Sequence[Split]  # to train and to test on, where the model is
    save_every: float
    show_progress: bool
    step: int = 0
    saved: int = -1  # the step of the state that training is at or comes from
    shown: Mapping[str, float] = field(default_factory=dict)  # the last scores
    scored: int | None = None  # the step that they are of
    lost: set[int] = field(default_factory=set)  # steps whose records are missing
    signals: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.initial = {name: tensor.clone() for name, tensor in self.parts.model.state_dict().items()}

    def measured_again(self, missing: Iterable[int]) -> set[int]:
        """Measure what is missing at the weights that were kept; the steps that have none."""
        model, self.lost = self.parts.model, set(missing)
        for step in sorted(self.lost):
            with suppress(OSError, ValueError, RuntimeError):  # weights that are gone, damaged, or of another network
                model.load_state_dict(self.run.weights(step))
                self._record(step, self._scores())
        model.load_state_dict(self.initial)
        return self.lost

    def restore(self, at_most: int | None = None) -> None:
        """Go to the newest state, perhaps of `at_most` a step; without one, to where training begins."""
        newest, optimiser = self.run.states[-1:], self.parts.optimiser
        self.parts.model.load_state_dict(self.initial)
        optimiser.load_state_dict({"state": {}, "param_groups": optimiser.state_dict()["param_groups"]})
        torch.manual_seed(self.config.seed)
        self.saved = _restore(self.run, self.parts.model, self.parts.optimiser, at_most)
        self.step = max(self.saved, 0)
        self.run.keep_states({self.saved, *(newest if at_most is not None else ())})
        status = self.run.status
        self.shown, self.scored = {name: status[name] for name in SCORES if name in status}, status.get("scored")

    def train_until(self, last: int) -> None:
        """Train to a step, or to a signal."""
        loss, clock, cost = 0.0, time.monotonic(), 0.0
        progress = Progress(self.step, self.config.steps, shown=self.show_progress)
        with progress, stop_signals(progress) as self.signals:
            self.monitor.tell = progress.tell
            while True:
                due, stop = self.monitor.due(self.step), bool(self.signals)  # one that comes after is for the next step
                if due:
                    self.shown, self.scored = self._scores(), self.step
                    loss = self.shown["loss"]
                if not math.isfinite(loss):
                    raise _failure(self.run, self.step, loss)
                patience = min(self.save_every, SELDOM * cost) if due else self.save_every
                if self.step != self.saved and (stop or self.step == last or time.monotonic() - clock >= patience):
                    cost = self._save()
                    clock = time.monotonic()
                if due:
                    self._record(self.step, self.shown)
                    progress.tell("")
                if stop or self.step == last:
                    break
                points = batch(self.splits[0], self.config, self.step)
                loss = _take_step(self.parts, self.config, points, self.step)
                self.step += 1
                progress.step(loss, self.shown)
            if not due:  # a signal came between two records: the scores are those of this step too
                self.shown, self.scored = self._scores(), self.step

    def _scores(self) -> dict[str, float]:
        return _scores(self.parts.model, self.config, *self.splits)

    def _save(self) -> float:
        """Save what going on needs; the seconds that it took."""
        start, tensors = time.monotonic(), _state_tensors(self.parts.model, self.parts.optimiser)
        shown = {**self.shown, "scored": self.scored}
        save_or_warn(self.run, self.step, tensors, shown, needed=min(self.lost, default=None))
        self.saved = self.step
        return time.monotonic() - start

    def _record(self, step: int, scores: Mapping[str, float]) -> None:
        self.monitor(step, **scores)
        self.lost = self.lost - {step} | (self.monitor.unwritten & {step})


SCORES = ("loss", "train_accuracy", "test_loss", "test_accuracy")
FLUSHES, FAINT = 100, 1e-30  # so many steps apart, weights below this become zero
SELDOM = 100  # before a record a state is saved only if so many times as long has passed since the last as that took


def batch(split: Split, config: Training, step: int) -> Split:
    """The points of a step: every epoch visits all, in an order that depends on seed and epoch alone."""
    x, y = split
    epoch, k = divmod(step, -(-len(x) // config.batch_size))
    rows = _order(config.seed, epoch, len(x))[k * config.batch_size : (k + 1) * config.batch_size].to(x.device)
    return x[rows], y[rows]


@lru_cache(maxsize=1)
def _order(seed: int, epoch: int, n: int) -> Tensor:
    return torch.from_numpy(np.random.default_rng([seed, epoch]).permutation(n))


def _take_step(parts: _Parts, config: Training, points: Split, step: int) -> float:
    """Make one step; the loss before it, with the penalty if there is one."""
    parts.model.train()
    loss = LOSSES[config.loss](parts.model(points[0]), points[1])
    if parts.penalty is not None:
        loss = loss + parts.penalty(points[0], step)
    parts.optimiser.zero_grad()
    loss.backward()
    parts.optimiser.step()
    if step % FLUSHES == 0:
        _flush(parts.model)
    return float(loss.detach())


@torch.no_grad()
def _flush(model: nn.Module) -> None:
    """Put weights that are as good as zero to zero.

    Decay brings those of dead units below the smallest normal float, with which processors compute ten times slower.
    Here and not by the processor's own mode, which each of torch's threads may have or not.
    """
    for weights in model.parameters():
        weights.masked_fill_(weights.abs() < FAINT, 0.0)


@torch.no_grad()
def _scores(model: nn.Module, config: Training, train: Split, test: Split) -> dict[str, float]:
    """Loss and, where there are classes, accuracy on up to 10,000 training and test points."""
    model.eval()
    found = {}
    for name, (x, y) in (("", train), ("test_", test)):
        outputs, targets = torch.cat([model(part) for part in x[:10_000].split(1000)]), y[:10_000]
        found[f"{name}loss"] = float(LOSSES[config.loss](outputs, targets))
        if not targets.is_floating_point():
            found[f"{name or 'train_'}accuracy"] = float((outputs.argmax(dim=1) == targets).float().mean())
    return found


def _failure(run: Run, step: int, loss: float) -> TrainingFailed:
    reason = f"the loss is {loss} at step {step}; try a smaller lr or init_scale"
    with suppress(OSError):  # the reason is told in any case
        run.set_status(state="failed", step=step, reason=reason)
    kept = how_many(len(run.steps), "record")
    return TrainingFailed(f"{run.path} failed: {reason} (what was recorded stays: {kept})")


# stopping and going on


def _state_tensors(model: nn.Module, optimiser: Optimizer) -> dict[str, Tensor]:
    """All that changes while training; the order of the data follows from the step."""
    moments = {
        f"optimiser/{k}/{name}": value
        for k, values in optimiser.state_dict()["state"].items()
        for name, value in values.items()
        if value is not None
    }
    weights = {f"model/{name}": value for name, value in model.state_dict().items()}
    return {**weights, **moments, "random": torch.get_rng_state()}


def save_or_warn(
    run: Run, step: int, tensors: Mapping[str, Tensor], shown: Mapping[str, Any], *, needed: int | None = None
) -> None:
    """Save what going on needs; if that fails, the state before stays and training goes on."""
    try:
        run.save_state(step, tensors, {"step": step}, needed=needed)
        run.set_status(step=step, **shown)
    except OSError as error:
        warnings.warn(f"step {step} could not be saved, training goes on: {error}", stacklevel=2)


def _restore(run: Run, model: nn.Module, optimiser: Optimizer, at_most: int | None = None) -> int:
    """Put a saved state back and say of which step it is; -1 if there is none."""
    found = run.latest_state(at_most)
    if found is None:
        return -1
    # copies, because arithmetic on memory that is aligned otherwise may round otherwise
    tensors = {name: tensor.clone() for name, tensor in found[1].items()}
    model.load_state_dict({name.removeprefix("model/"): t for name, t in tensors.items() if name.startswith("model/")})
    state: dict[int, dict[str, Tensor]] = {}
    for name in tensors:
        if name.startswith("optimiser/"):
            _, k, entry = name.split("/")
            state.setdefault(int(k), {})[entry] = tensors[name]
    optimiser.load_state_dict({"state": state, "param_groups": optimiser.state_dict()["param_groups"]})
    torch.set_rng_state(tensors["random"])
    return found[0]
