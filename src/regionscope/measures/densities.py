"""Densities of the noise on biases."""

import math

import torch
from torch import Tensor
from torch.nn.functional import threshold

SPARE = 7.0  # of the exponents: slopes that a density is multiplied by may be so much smaller than 1


def gaussian(z: Tensor, sigma: float) -> Tensor:
    """The density of N(0, sigma^2) at z, as far as `exponential` has it."""
    return exponential(-0.5 * (z / sigma) ** 2) / (sigma * math.sqrt(2 * math.pi))


def exponential(exponents: Tensor) -> Tensor:
    """exp; 0 where it is so small that it could not be multiplied at full precision.

    Processors take very long for such numbers, and many units are that far from their breakpoint.

    >>> exponential(torch.tensor([0.0, -80.0, -85.0]))
    tensor([1.0000e+00, 1.8049e-35, 0.0000e+00])
    """
    least = math.log(torch.finfo(exponents.dtype).tiny) + SPARE
    return threshold(exponents, least, -math.inf).exp()
