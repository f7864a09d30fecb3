"""Training runs that can be stopped at any moment and go on as if nothing had happened."""

import math
import signal
import threading
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from regionscope.datasets.sets import Dataset, Split
from regionscope.runs.monitor import Logger, Monitor, log_steps
from regionscope.runs.run import Run, check_no_run
from regionscope.runs.watched import Watched, observation
from regionscope.training.checkpoints import Architecture
from regionscope.training.config import (
    LOSSES,
    Training,
    digest,
    new_model,
    new_optimiser,
    planes,
    probes,
    training_data,
)
from regionscope.training.progress import Progress


class TrainingFailed(RuntimeError):
    """The loss is no number any more."""


def train(
    config: Training, path: str | Path, *, save_every: float = 60.0, device: str = "cpu",
    loggers: Sequence[Logger] = (), overwrite: bool = False, show_progress: bool = False,
) -> Run:  # fmt: skip
    """Train as the configuration says, recording into a new run directory; `overwrite` removes the run that is there.

    What cannot be trained or measured is refused before there is a run. What going on needs is saved before every
    record, and every `save_every` seconds. SIGINT and SIGTERM stop between two steps, a second one at once. On the CPU
    of one machine the result is the same bit for bit however often a run is stopped and resumed.

    >>> from tempfile import mkdtemp
    >>> small = Training(size=50, depth=1, width=5, steps=3, records=3, measures=("total_variation",), points=5)
    >>> train(small, mkdtemp() + "/run").steps
    [0, 1, 3]
    """
    if not overwrite:
        check_no_run(path)
    where = _usable_device(device)
    data = training_data(config)
    parts = _parts(config, data, where)
    _try(parts, config)
    built = Architecture(config.model, config.activation, data.shape)
    about = {
        "training": asdict(config), "architecture": asdict(built), "shape": data.shape, "outputs": data.outputs,
        "data": digest(data), **parts.watched.to_dict(),
    }  # fmt: skip
    with closing(Run.create(path, about, overwrite=overwrite)) as run:
        _go_on(run, config, data, parts, save_every, loggers, show_progress)
    return run


def resume(
    path: str | Path, *, save_every: float = 60.0, device: str = "cpu", loggers: Sequence[Logger] = (),
    show_progress: bool = False,
) -> Run:  # fmt: skip
    """Go on with a run that was stopped, killed or lost its machine; a finished one stays as it is."""
    with closing(Run.resume(path)) as run:
        config = run_config(run)
        if run.status.get("state") == "finished":
            return run
        if run.status.get("state") == "failed":
            raise TrainingFailed(f"{run.path} failed: {run.status['reason']}")
        where, data = _usable_device(device), training_data(config)
        if digest(data) != run.config["data"]:
            raise ValueError(
                f"{config.dataset} is not what {run.path} was begun with; going on would mix two data sets"
            )
        _go_on(run, config, data, _parts(config, data, where), save_every, loggers, show_progress)
    return run


def run_config(run: Run) -> Training:
    """The configuration a run was begun with."""
    if "training" not in run.config:
        raise ValueError(f"{run.path} was not begun by regionscope train; only its own loop can go on with it")
    given: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in run.config["training"].items()}
    return Training(**given)


def run_model(run: Run, step: int | None = None) -> nn.Module:
    """The network of a run as it was at a recorded step, the last if not given; in eval mode."""
    network = new_model(run_config(run), tuple(run.config["shape"]), run.config["outputs"])
    network.load_state_dict(run.weights(run.steps[-1] if step is None else step))
    return network.eval()


# the loop


@dataclass(frozen=True)
class _Parts:
    """What trains, how it is watched, and when."""

    model: nn.Module
    optimiser: Optimizer
    watched: Watched
    steps: Sequence[int]


def _parts(config: Training, data: Dataset, device: torch.device) -> _Parts:
    """All that a configuration asks for, or an error that says what cannot be had."""
    model = new_model(config, data.shape, data.outputs).to(device)
    watched = Watched.of(probes(config, data), _measures(config), planes(config, data), config.seed)
    return _Parts(model, new_optimiser(config, model), watched, log_steps(config.steps, config.records))


def _measures(config: Training) -> dict[str, dict[str, Any]]:
    """What is measured, with the options that were given."""
    return {name: config.options.get(name, {}) for name in config.measures}


def _try(parts: _Parts, config: Training) -> None:
    """Measure what has options of its own at one point: an error that would be in all records is raised here."""
    (probe, (points, labels)), *_ = parts.watched.probes.items()
    one = {probe: (points[:1], None if labels is None else labels[:1])}
    told = {name: parts.watched.measures[name] for name in config.options}
    for what, error in observation(parts.model, Watched(one, told, {}, config.seed), 0, {}).failures.items():
        raise ValueError(f"{what} cannot be measured so: {error}") from error


def _usable_device(name: str) -> torch.device:
    """A device by its name, if it can hold a number."""
    try:
        device = torch.device(name)
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise ValueError(f"device {name!r} cannot be used here: {reason}") from error
    return device


def _go_on(
    run: Run, config: Training, data: Dataset, parts: _Parts, save_every: float, loggers: Sequence[Logger],
    show_progress: bool,
) -> None:  # fmt: skip
    """Train from where the run is to its end, or to a signal."""
    model, optimiser = parts.model, parts.optimiser
    device = next(model.parameters()).device
    train_split, test_split = ((x.to(device), y.to(device)) for x, y in (data.train, data.test))
    monitor = Monitor(
        model, parts.watched.probes, measures=_measures(config), steps=parts.steps, run=run, loggers=loggers,
        seed=config.seed, planes=parts.watched.planes, seconds_per_record=config.seconds_per_record,
    )  # fmt: skip
    with monitor, torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        saved = _restore(run, model, optimiser)
        step, loss, clock = max(saved, 0), 0.0, time.monotonic()
        shown = {name: value for name, value in run.status.items() if name in SCORES}
        run.set_status(state="running", step=step, steps=config.steps)
        with Progress(step, config.steps, shown=show_progress) as progress, _stop_signals(progress) as signals:
            monitor.tell = progress.measuring
            while True:
                due, stop = monitor.due(step), bool(signals)  # a signal that comes after this is for the next step
                if due:
                    shown = _scores(model, config, train_split, test_split)
                    loss = shown["loss"]
                if not math.isfinite(loss):
                    raise _failure(run, step, loss)
                if step != saved and (due or stop or time.monotonic() - clock > save_every):
                    save_or_warn(run, step, _state_tensors(model, optimiser), shown)
                    saved, clock = step, time.monotonic()
                if due:
                    monitor(step, **shown)
                    progress.measuring("")
                if stop or step == config.steps:
                    break
                loss = _take_step(model, optimiser, config, batch(train_split, config, step))
                step += 1
                progress.step(loss, shown)
            if not due:  # a signal came between two records: the scores are those of this step too
                shown = _scores(model, config, train_split, test_split)
        stopped_by = None if step == config.steps else signals[0]
        run.set_status(state="stopped" if stopped_by else "finished", step=step, signal=stopped_by, **shown)


SCORES = ("loss", "train_accuracy", "test_loss", "test_accuracy")


def batch(split: Split, config: Training, step: int) -> Split:
    """The points of a step: every epoch visits all, in an order that depends on seed and epoch alone."""
    x, y = split
    epoch, k = divmod(step, -(-len(x) // config.batch_size))
    rows = _order(config.seed, epoch, len(x))[k * config.batch_size : (k + 1) * config.batch_size].to(x.device)
    return x[rows], y[rows]


@lru_cache(maxsize=1)
def _order(seed: int, epoch: int, n: int) -> Tensor:
    return torch.from_numpy(np.random.default_rng([seed, epoch]).permutation(n))


def _take_step(model: nn.Module, optimiser: Optimizer, config: Training, points: Split) -> float:
    """Make one step; the loss before it. A loss that is no number moves nothing."""
    model.train()
    loss = LOSSES[config.loss](model(points[0]), points[1])
    found = float(loss.detach())
    if math.isfinite(found):
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return found


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
    run.set_status(state="failed", step=step, reason=reason)
    return TrainingFailed(f"{run.path} failed: {reason} (the {len(run.steps)} records made so far stay)")


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


def save_or_warn(run: Run, step: int, tensors: Mapping[str, Tensor], shown: Mapping[str, float]) -> None:
    """Save what going on needs; if that fails, the state before stays and training goes on."""
    try:
        run.save_state(step, tensors, {"step": step})
        run.set_status(step=step, **shown)
    except OSError as error:
        warnings.warn(f"step {step} could not be saved, training goes on: {error}", stacklevel=2)


def _restore(run: Run, model: nn.Module, optimiser: Optimizer) -> int:
    """Put a saved state back and say of which step it is; -1 if there is none."""
    found = run.latest_state()
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


@contextmanager
def _stop_signals(progress: Progress) -> Iterator[list[int]]:
    """Collects SIGINT and SIGTERM, so that no step is left half done; the second of them ends the process."""
    came: list[int] = []

    def note(number: int, _: object) -> None:
        came.append(number)
        if len(came) > 1:
            raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(128 + number)
        progress.say(f"finishing step {progress.current:,}, once more to stop now")

    here = threading.current_thread() is threading.main_thread()  # only there Python lets signals be handled
    usual = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM) if here}
    try:
        yield came
    finally:
        for number, handler in usual.items():
            signal.signal(number, handler)
