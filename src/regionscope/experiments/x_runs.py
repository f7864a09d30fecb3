"""One set of trainings for several questions beyond the papers: PD's perceptron on a thousand images of MNIST."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from regionscope.experiments.lab import Lab
from regionscope.tracing.network import Network
from regionscope.tracing.trace import trace
from regionscope.training.config import Training, training_data
from regionscope.training.loop import run_model


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
