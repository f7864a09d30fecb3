"""When a classifier is right: decided here, once, for every measure that needs labels."""

import math
from typing import Any

import torch
from torch import Tensor

from regionscope.points import as_tensor
from regionscope.tracing.network import Network


def label_leads(outputs: Tensor, labels: Tensor) -> Tensor:
    """How far the output of its label is above the largest other, (n,): a point is right where that is positive.

    A tie for the largest output is a mistake, whatever the label: no class has won, and `argmax` would name one by its
    place in the list.
    """
    own = outputs.gather(1, labels[:, None])
    others = outputs.scatter(1, labels[:, None], -torch.inf)
    return own[:, 0] - others.amax(dim=1)


def checked_labels(labels: Any, net: Network, points: Tensor) -> Tensor:
    """Labels as integers (n,) where the points are, if they name outputs of the network; otherwise an error."""
    try:
        found = as_tensor(labels)
    except (TypeError, ValueError) as error:
        raise TypeError(f"labels must be integers, the numbers of outputs: {error}") from None
    classes = math.prod(net.output_shape)
    if classes < 2:
        raise ValueError("a classifier has at least two outputs, one a class; this network has one")
    if found.shape != (len(points),):
        columns = {1: "; take labels.flatten()", classes: "; take labels.argmax(1)"}
        hint = columns.get(found[0].numel(), "") if found.dim() == 2 and len(found) == len(points) else ""
        raise ValueError(f"labels must be ({len(points)},), one a point, got {tuple(found.shape)}{hint}")
    if found.dtype == torch.bool or found.is_floating_point() or found.is_complex():
        raise ValueError(f"labels must be integers, the numbers of outputs, got {found.dtype}; convert them first")
    found = found.to(points.device, torch.int64)
    low, high = int(found.min()), int(found.max())
    if low < 0 or high >= classes:
        hint = "; do they begin at 1, or is the network for other data?" if low >= 0 else ""
        raise ValueError(f"labels must be from 0 to {classes - 1}, one an output, got {low if low < 0 else high}{hint}")
    return found
