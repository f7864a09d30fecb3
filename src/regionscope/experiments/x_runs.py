"""One set of trainings for several questions beyond the papers: PD's perceptron on a thousand images of MNIST."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from regionscope.experiments.lab import Lab, Measurement
from regionscope.tracing.network import Network
from regionscope.tracing.trace import trace
from regionscope.training.config import Training, training_data
from regionscope.training.loop import run_model

SIGMA = 0.05  # of the noise on biases
RADIUS = 0.5  # that crossings and regions are counted within


@dataclass(frozen=True)
class SharedRuns:
    """What is trained, and for how long."""

    dataset: str = "mnist"
    size: int = 1000
    width: int = 200
    steps: int = 100_000
    records: int = 41


SMOKE = SharedRuns(dataset="mnist-sample", size=100, width=12, steps=20, records=3)
LAPTOP = SharedRuns(steps=20_000, records=25)


@dataclass(frozen=True)
class SharedSettings:
    """What all settings on these trainings begin with."""

    runs: SharedRuns = field(default_factory=SharedRuns)
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)


@dataclass(frozen=True)
class SampledSettings(SharedSettings):
    """Measured at so many points, with so many draws of noise at each."""

    points: int = 500
    draws: int = 8


@dataclass(frozen=True)
class Sampled:
    """One of the trainings, and how it is measured."""

    training: Training
    points: int
    draws: int


def sampled_measurements(
    settings: SampledSettings, function: Callable[[Sampled, Lab], Mapping[str, Any]]
) -> list[Measurement]:
    """A function of each of the trainings."""
    return [Measurement(function, Sampled(t, settings.points, settings.draws)) for t in shared_trainings(settings)]


def shared_trainings(settings: SharedSettings) -> list[Training]:
    """Three hidden layers, squared error, AdamW with 10^-3 and decay 0.01, batches of 200 (PD's code), a seed each."""
    runs = settings.runs
    return [
        Training(
            dataset=runs.dataset, size=runs.size, test_size=runs.size, depth=3, width=runs.width, loss="mse",
            steps=runs.steps, records=runs.records, measures=(), seed=seed,
        )
        for seed in settings.seeds
    ]  # fmt: skip


def networks_over_training(training: Training, lab: Lab) -> Iterator[tuple[int, Network]]:
    """Every record of a training, and the network there."""
    run, example = lab.run(training), training_data(training).test[0][:1]
    for step in run.steps:
        yield step, trace(run_model(run, step), example)
