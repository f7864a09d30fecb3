"""What questions beyond the papers share: their scales, and trainings of PD's perceptron on a thousand images."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from regionscope.experiments.experiment import Experiment, Scale
from regionscope.experiments.lab import Lab, Measurement
from regionscope.tracing.network import Network
from regionscope.tracing.trace import trace
from regionscope.training.config import Training, training_data
from regionscope.training.loop import run_model

S = TypeVar("S")
SIGMA = 0.05  # of the noise on biases
RADIUS = 0.5  # that crossings and regions are counted within


def beyond_scales(kind: type[S], smoke: Mapping[str, Any], laptop: Mapping[str, Any]) -> dict[Scale, S]:
    """Settings of a kind: those that are told with two and three seeds, if nothing else is said, and the defaults."""
    return {
        "smoke": kind(**{"seeds": (0, 1), **smoke}),
        "laptop": kind(**{"seeds": (0, 1, 2), **laptop}),
        "paper": kind(),
    }


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


Measuring = Callable[[Sampled, Lab], Mapping[str, Any]]


def sampled_measurements(settings: SampledSettings, function: Measuring) -> list[Measurement]:
    """A function of each of the trainings."""
    return [Measurement(function, Sampled(t, settings.points, settings.draws)) for t in shared_trainings(settings)]


def sampled_experiment(
    function: Measuring, *, smoke: tuple[int, int], laptop: tuple[int, int], **others: Any
) -> Experiment[SampledSettings]:
    """One that measures this function of each of the trainings; scales are told as (points, draws)."""

    def scale(runs: SharedRuns, points: int, draws: int) -> dict[str, Any]:
        return {"runs": runs, "points": points, "draws": draws}

    return Experiment(
        scales=beyond_scales(SampledSettings, scale(SMOKE, *smoke), scale(LAPTOP, *laptop)),
        trainings=shared_trainings,
        measurements=lambda settings: sampled_measurements(settings, function),
        **others,
    )


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
