"""Whether networks of everyday size are measured in a time that one waits for, and how well."""

from collections.abc import Callable, Iterator

import torch
from networks import gpt2, small_cnn
from timing import Ratio, seconds
from torch import Tensor

import regionscope as rs
from regionscope.datasets.sets import mnist_sample
from regionscope.measures.plans import Plan, planned_measures, usual_measures
from regionscope.training import models
from regionscope.types import Model

PROBES = ("train", "test", "uniform")


def ratios() -> Iterator[Ratio]:
    torch.manual_seed(0)
    resnet, pictures = models.resnet18(width=16).eval(), torch.randn(600, 3, 32, 32)
    yield Ratio("seconds of a default record of ResNet18 of width 16, 3 x 200 points", record(resnet, pictures), 20)
    yield Ratio("seconds of `measure` with its defaults, CNN of 11,956 units, 1000 points", seconds(measure_cnn), 60)
    for name, error in errors_of_plan().items():
        yield Ratio(f"the same: error of {name} at 8 points, relative to the exact number", error, 0.05)
    for activation in ("relu", "gelu_new"):
        words = torch.randn(30, 16, 768)
        took = record(gpt2(activation), words)
        yield Ratio(f"seconds of a default record of GPT-2, 2 layers, {activation}, 3 x 10 points", took, 30)


def record(model: Model, points: Tensor) -> float:
    """How long the first record takes, with its plan."""
    monitor = rs.Monitor(model, dict(zip(PROBES, points.chunk(3), strict=True)), strict=True)
    return seconds(lambda: monitor(0))


def planned(net: rs.Network, x: Tensor) -> Plan:
    return planned_measures(net, x, {name: rs.MEASURES[name].defaults for name in usual_measures(net)}, seconds=60.0)


def measure_cnn() -> None:
    images, labels = mnist_sample("train")
    net = rs.trace(small_cnn(), images[:1])
    for name, how in planned(net, images).measures.items():
        rs.MEASURES[name].estimate(net, images[: how.points], labels[: how.points], **how.options)


def errors_of_plan() -> dict[str, float]:
    """How far the means of the usual measures at some points are from the exact ones."""
    images = mnist_sample("train")[0]
    net = rs.trace(small_cnn(), images[:1])
    plan, x = planned(net, images), images[:8]
    exact: dict[str, Callable[[], rs.Estimate]] = {
        "local_complexity": lambda: rs.local_complexity(net, x, generator=torch.Generator().manual_seed(1)),
        "local_rank": lambda: rs.local_rank(net, x, eps=0.1),
        "total_variation": lambda: rs.total_variation(net, x),
    }
    found = {}
    for name, function in exact.items():
        true, near = function().mean, rs.MEASURES[name].estimate(net, x, **plan.measures[name].options).mean
        found[name] = abs(near - true) / true
    return found
