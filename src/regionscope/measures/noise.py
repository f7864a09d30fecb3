"""What is only rounding: values and slopes that are zero in exact arithmetic."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from regionscope.geometry.laws import usual_errors
from regionscope.geometry.predicates import EPS
from regionscope.tracing.network import Network


def value_errors(net: Network, x: Tensor, values: Sequence[Tensor]) -> list[Tensor]:
    """How far from the true numbers what enters each site of a frozen network usually is, (n, units)."""
    norm, *entering = (v.flatten(1).norm(dim=1).numpy() for v in (x, *values))
    return [torch.from_numpy(e) for e in usual_errors(net, norm, 0 * norm, entering)]


def slope_errors(net: Network, norms: Sequence[Tensor]) -> list[Tensor]:
    """How far from the true ones the gradients of all units of a frozen network usually are, (n, units) a site.

    `norms` (n,) are those of the Jacobians of the sites, as the root of their sum of squares. Their dtype is the one
    that rounds.
    """
    first = norms[0]
    share = torch.finfo(first.dtype).eps / EPS
    size = torch.full((len(first),), math.sqrt(math.prod(net.input_shape))).double().numpy()
    entering = [n.detach().double().cpu().numpy() for n in norms]
    errors = usual_errors(net, size, 0 * size, entering, linear=True)
    return [share * torch.from_numpy(e).to(first) for e in errors]
