"""What every function is given: a model or its network, and points as users have them."""

import math
from collections.abc import Iterator
from itertools import chain

import torch
from torch import Tensor

from regionscope.machine import points_at_once
from regionscope.points import batches
from regionscope.tracing.network import BATCH_ADVICE, Network
from regionscope.tracing.trace import as_network
from regionscope.types import Data, Model

HALVES = (torch.float16, torch.bfloat16)
KEPT_AT_ONCE = 1 << 26  # floats


def network_and_batches(
    model: Model | Network, data: Data, batch_size: int | None = None, *, allow_smooth: bool = False
) -> tuple[Network, Iterator[Tensor]]:
    """The traced model, and its points batch by batch: tensors as they are, arrays in the network's dtype.

    In half precision torch has neither factorisations nor singular values: what is computed of such a network is that
    of its weights in float32, with gradients.
    """
    parts = batches(data, batch_size)
    first = next(parts)
    if first.ndim < 2:
        raise ValueError(f"points must be a batch (n, ...), got shape {tuple(first.shape)}; {BATCH_ADVICE}")
    given = as_network(model, first[:1], allow_smooth=allow_smooth)
    net = given.recast(torch.float32) if given.dtype in HALVES else given
    checked = (given.checked(part).detach().to(net.dtype) for part in chain([first], parts))
    return net, (part.clone() if part.is_inference() else part for part in checked)  # so that it can be differentiated


def network_and_points(model: Model | Network, data: Data, *, allow_smooth: bool = False) -> tuple[Network, Tensor]:
    """The same with all points in one tensor (n, *input_shape)."""
    net, parts = network_and_batches(model, data, allow_smooth=allow_smooth)
    points = list(parts)
    return net, points[0] if len(points) == 1 else torch.cat(points)


def check_bends(net: Network) -> None:
    """An error if there is nothing to measure."""
    if not net.sites:
        raise ValueError("the network has no activation sites: nothing bends")


def points_kept_at_once(net: Network, batch_size: int | None = None) -> int:
    """How many points to take together where all values on the way are kept: `batch_size` if given."""
    largest, all_ = max(map(math.prod, net.program.shapes.values())), net.program.entries
    return min(points_at_once(largest, batch_size), points_at_once(all_, batch_size, floats=KEPT_AT_ONCE))
