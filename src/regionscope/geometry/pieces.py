"""The pieces of activations as affine maps, exactly."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import torch
from torch import Tensor

from regionscope.tracing.activations import PAIRWISE
from regionscope.tracing.lifting import sides_of
from regionscope.tracing.steps import Step

Pieces = list[tuple[Fraction | Tensor, Fraction]]  # slope and offset of each, from left to right

ONE, NOTHING = Fraction(1), Fraction(0)
IDENTITY = (ONE, NOTHING)
RELU: Pieces = [(NOTHING, NOTHING), IDENTITY]


def pieces(step: Step, constants: Mapping[int, Any]) -> Pieces | None:
    """The maps x -> slope x + offset that an activation is made of; None if the step is none that is known here.

    A slope of PReLU is a tensor. hardsigmoid has the slope 1/6, which no float is.
    """
    given = {p.name: p.default_value for p in step.operation._schema.arguments if p.has_default_value()} | step.named
    match step.name:
        case "relu":
            return RELU
        case "leaky_relu":
            return joined((Fraction(given["negative_slope"]), NOTHING), IDENTITY)
        case "_prelu_kernel":
            return [(constants[given["weight"].index], NOTHING), IDENTITY]
        case "threshold":
            return [(NOTHING, Fraction(given["value"])), IDENTITY]
        case "abs":
            return [(-ONE, NOTHING), IDENTITY]
        case "hardsigmoid":
            return [(NOTHING, NOTHING), (Fraction(1, 6), Fraction(1, 2)), (NOTHING, ONE)]
        case "softshrink":
            width = Fraction(given["lambd"])
            return joined((ONE, width), (NOTHING, NOTHING), (ONE, -width)) if width else [IDENTITY]
        case "hardtanh":
            return _limited(given["min_val"], given["max_val"])
        case "clamp" | "clamp_min" | "clamp_max":
            return _limited(given.get("min"), given.get("max"))
    return None


def better(step: Step, over: Tensor, values: Mapping[int, Any], shapes: Mapping[int, tuple[int, ...]]) -> Tensor:
    """The larger or smaller of two, as the side of their difference says: whether the first is `over` the second."""
    a, b = sides_of(step, values, shapes)
    over = over.reshape(-1, *shapes[step.results[0]]).bool()
    return torch.where(over, a, b) if PAIRWISE[step.name] == "maximum" else torch.where(over, b, a)


def joined(*parts: tuple[Fraction, Fraction]) -> Pieces:
    """Pieces of which neighbours that are the same map are one."""
    return [part for i, part in enumerate(parts) if i == 0 or part != parts[i - 1]]


def _limited(low: float | None, high: float | None) -> Pieces:
    """x between two limits, of which one may be missing; torch takes the upper one if they are in the wrong order."""
    if low is not None and high is not None and low >= high:
        return [(NOTHING, Fraction(high))]
    below = [] if low is None or low == float("-inf") else [(NOTHING, Fraction(low))]
    above = [] if high is None or high == float("inf") else [(NOTHING, Fraction(high))]
    return [*below, IDENTITY, *above]
