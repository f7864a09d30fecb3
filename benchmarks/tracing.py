"""What tracing, and reading all pre-activations, cost in plain forward passes."""

from collections.abc import Iterator

import torch
from networks import he_mlp, images
from timing import Ratio, cost
from torch import nn

import regionscope as rs


def cnn() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(32 * 49, 10),
    ).eval()  # fmt: skip


def trace_cost() -> float:
    model, x = he_mlp(784, 64, 64, 64, 10), images(1000)
    with torch.no_grad():
        return cost(lambda: rs.trace(model, x[:1]), lambda: model(x), rounds=51)


def ratios() -> Iterator[Ratio]:
    torch.manual_seed(0)
    yield Ratio("trace of 784-64x3-10, in plain forward passes at 1000 points", trace_cost(), 3)
    for name, model, x in (
        ("784-200x4-10", he_mlp(784, 200, 200, 200, 200, 10), images(1000)),
        ("CNN", cnn(), images(1000).view(-1, 1, 28, 28)),
    ):
        net = rs.trace(model, x[:1])
        with torch.no_grad():
            value = cost(lambda: net.preactivations(x), lambda: model(x))  # noqa: B023  (called at once)
        yield Ratio(f"preactivations of {name}, 1000 points, in plain forward passes", value, 1.3)
