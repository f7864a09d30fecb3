"""Training runs that can be stopped at any moment and go on as if nothing had happened."""

import math
import signal
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from tqdm.auto import tqdm

from regionscope.datasets.sets import Dataset, Split
from regionscope.runs.monitor import Logger, Monitor, log_steps
from regionscope.runs.run import Run, RunLocked, writer_lock
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


class TrainingFailed(RuntimeError):
    """The loss is no number any more."""


def train(
    config: Training, path: str | Path, *, save_every: float = 60.0, device: str = "cpu",
    loggers: Sequence[Logger] = (), show_progress: bool = False,
) -> Run:  # fmt: skip
    """Train as the configuration says, recording into a new run directory.

    What going on needs is saved before every record, and every `save_every` seconds. SIGINT and SIGTERM stop between
    two steps. On the CPU of one machine the result is the same bit for bit however often a run is stopped and resumed.

    >>> from tempfile import mkdtemp
    >>> small = Training(size=50, depth=1, width=5, steps=3, records=3, measures=("total_variation",), points=5)
    >>> train(small, mkdtemp() + "/run").steps
    [0, 1, 3]
    """
    data = training_data(config)
    built = Architecture(config.model, config.activation, data.shape)
    about = {
        "training": asdict(config), "architecture": asdict(built), "shape": data.shape, "outputs": data.outputs,
        "data": digest(data),
    }  # fmt: skip
    with closing(Run.create(path, about)) as run:
        _go_on(run, config, data, save_every, device, loggers, show_progress)
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
        data = training_data(config)
        if digest(data) != run.config["data"]:
            raise ValueError(
                f"{config.dataset} is not what {run.path} was begun with; going on would mix two data sets"
            )
        _go_on(run, config, data, save_every, device, loggers, show_progress)
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


def run_state(run: Run) -> str:
    """running, finished, stopped, failed, or killed if it says that it runs but nobody writes to it."""
    state = str(run.status.get("state", "running"))
    if state != "running":
        return state
    try:
        writer_lock(run.path).release()
    except RunLocked:
        return "running"
    return "killed"


# the loop


def _go_on(
    run: Run, config: Training, data: Dataset, save_every: float, device: str, loggers: Sequence[Logger],
    show_progress: bool,
) -> None:  # fmt: skip
    """Train from where the run is to its end, or to a signal."""
    model = new_model(config, data.shape, data.outputs).to(device)
    optimiser = new_optimiser(config, model)
    train_split, test_split = ((x.to(device), y.to(device)) for x, y in (data.train, data.test))
    monitor = Monitor(
        model, probes(config, data), measures={name: config.options.get(name, {}) for name in config.measures},
        steps=log_steps(config.steps, config.records), run=run, loggers=loggers, seed=config.seed,
        planes=planes(config, data),
    )  # fmt: skip
    with monitor, torch.random.fork_rng(devices=[]), _stop_signals() as signals:
        torch.manual_seed(config.seed)
        saved = _restore(run, model, optimiser)
        step, loss, clock = max(saved, 0), 0.0, time.monotonic()
        shown = {name: value for name, value in run.status.items() if name in SCORES}
        run.set_status(state="running", step=step, steps=config.steps)
        with tqdm(total=config.steps, initial=step, disable=not show_progress) as bar:
            while True:
                due = monitor.due(step)
                if due:
                    shown = _scores(model, config, train_split, test_split)
                    loss = shown["loss"]
                if not math.isfinite(loss):
                    raise _failure(run, step, loss)
                if step != saved and (due or signals or time.monotonic() - clock > save_every):
                    save_or_warn(run, step, _state_tensors(model, optimiser), shown)
                    saved, clock = step, time.monotonic()
                if due:
                    monitor(step, **shown)
                if step == config.steps or signals:
                    break
                loss = _take_step(model, optimiser, config, batch(train_split, config, step))
                step += 1
                _show_progress(bar, loss, shown)
        run.set_status(state="finished" if step == config.steps else "stopped", step=step, **shown)


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


def _show_progress(bar: "tqdm[Any]", loss: float, shown: Mapping[str, float]) -> None:
    """The bar tells steps and time left, and here also the batch's loss and the accuracies of the last record."""
    if not bar.disable:
        names = {"train": "train_accuracy", "test": "test_accuracy"}
        bar.set_postfix(
            {"loss": f"{loss:.3g}"} | {k: f"{shown[n]:.1%}" for k, n in names.items() if n in shown}, refresh=False
        )
    bar.update()


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
def _stop_signals() -> Iterator[list[int]]:
    """Collects SIGINT and SIGTERM, so that no step is left half done; the second of them ends the process."""
    came: list[int] = []

    def note(number: int, _: object) -> None:
        if came:
            sys.exit(128 + number)
        came.append(number)

    here = threading.current_thread() is threading.main_thread()  # only there Python lets signals be handled
    usual = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM) if here}
    try:
        yield came
    finally:
        for number, handler in usual.items():
            signal.signal(number, handler)
