"""What watching a training run costs."""

from collections.abc import Iterator

import torch
from networks import he_mlp, images
from timing import Ratio, seconds
from torch import nn

import regionscope as rs

STEPS, RECORDS, SAMPLE = 100_000, 50, 300


def ratios() -> Iterator[Ratio]:
    model, x = he_mlp(784, 200, 200, 200, 200, 10), images(1000)
    y = torch.randint(10, (1000,), generator=torch.Generator().manual_seed(0))
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3)
    monitor = rs.Monitor(model, {"train": x}, measures=["boundary_crossings", "local_complexity"])

    def train() -> None:
        for step in range(SAMPLE):
            rows = torch.arange(200) + 200 * (step % 5)
            loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()

    train()
    monitor(0)
    training = recording = 0.0
    for step in range(1, 6):
        training += seconds(train) / SAMPLE
        recording += seconds(lambda: monitor(step))  # noqa: B023  (called at once)
    name = f"{RECORDS} records of crossings and LC, 1000 points, in the time of {STEPS:,} steps of 784-200x4"
    yield Ratio(name, RECORDS * recording / (STEPS * training), 0.05)
