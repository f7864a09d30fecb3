"""What watching a training run costs."""

from collections.abc import Iterator
from itertools import count

import torch
from networks import he_mlp, images, steps_of_training
from timing import Ratio, cost, seconds

import regionscope as rs

STEPS, RECORDS, SAMPLE = 100_000, 50, 300


def ratios() -> Iterator[Ratio]:
    yield share_of_training()
    yield usual_record()


def share_of_training() -> Ratio:
    model, x = he_mlp(784, 200, 200, 200, 200, 10), images(1000)
    train = steps_of_training(model, x, SAMPLE, fused=False)
    monitor = rs.Monitor(model, {"train": x}, measures=["boundary_crossings", "local_complexity"])

    train()
    monitor(0)
    training = recording = 0.0
    for step in range(1, 6):
        training += seconds(train) / SAMPLE
        recording += seconds(lambda: monitor(step))  # noqa: B023  (called at once)
    name = f"{RECORDS} records of crossings and LC, 1000 points, in the time of {STEPS:,} steps of 784-200x4"
    return Ratio(name, RECORDS * recording / (STEPS * training), 0.05)


def usual_record() -> Ratio:
    """Before a model was traced once a record it took 4.6 units on two threads, and 3.1 on one: twice the limit."""
    model, x, steps = he_mlp(784, 64, 64, 64, 64, 10), images(900), count()
    monitor = rs.Monitor(model, dict(zip(("train", "test", "uniform"), x.split(300), strict=True)), strict=True)

    @torch.no_grad()
    def hundred_passes() -> None:
        for _ in range(100):
            model(x)

    value, limit = cost(lambda: monitor(next(steps)), hundred_passes), 1.5 if torch.get_num_threads() == 1 else 2.3
    return Ratio("a record of the usual measures, 3 x 300 points, 784-64x4, in 100 forward passes there", value, limit)
