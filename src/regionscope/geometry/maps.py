"""The affine map of a network inside a cell, from its value and derivatives at one point there."""

import numpy as np
import torch
from torch import Tensor

from regionscope.geometry.predicates import SAME_MAP
from regionscope.machine import forward_derivative
from regionscope.tracing.given import points_kept_at_once
from regionscope.tracing.network import Network
from regionscope.types import Floats


def derivatives(net: Network, x: Tensor, directions: Tensor) -> tuple[Floats, Floats]:
    """Outputs (n, k) and their derivatives along each direction (m, *input_shape) or (m, n, *input_shape): (n, k, m).

    By forward differentiation, so exact to rounding however small the cell is.
    """
    each = directions if directions.dim() == x.dim() + 1 else directions[:, None].expand(-1, *x.shape)
    values, slopes, at_once = [], [], points_kept_at_once(net)
    for start in range(0, len(x), at_once):
        part = slice(start, start + at_once)
        along = []
        for u in each:
            f, df = forward_derivative(net.outputs, (x[part],), (u[part].contiguous(),))[:2]
            along.append(df.detach().reshape(len(df), -1))
        values.append(f.detach().reshape(len(f), -1))
        slopes.append(torch.stack(along, dim=-1))
    return torch.cat(values).numpy(), torch.cat(slopes).numpy()


def same_maps(a: Floats, b: Floats) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which rows of two lists of slopes (n, ...) are equal but for rounding.

    Neighbouring cells have the same values on their common border, so equal slopes mean equal maps.
    """
    entries = tuple(range(1, a.ndim))
    size = np.maximum(np.abs(a).max(axis=entries, initial=0), np.abs(b).max(axis=entries, initial=0))
    return np.asarray(np.abs(a - b).max(axis=entries, initial=0) <= SAME_MAP * size)
