"""What is estimated on a grid of pixels: where cells are too many to draw, and how complex a network is around them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from regionscope.app.windows import Window
from regionscope.geometry.planes import Plane
from regionscope.machine import points_at_once, portions
from regionscope.measures.complexity import complexity_density
from regionscope.tracing.network import Network
from regionscope.types import Floats

SIDE = 96  # pixels
LEAST = 16
VALUES = 1 << 25  # that a network may have at all pixels together
DENSITY_SIDE, DENSITY_VALUES, DRAWS = 48, 1 << 20, 4  # the same where noise is drawn at each, and how often
PORTIONS = 4  # in which they are: it can be stopped between


def boundary_raster(net: Network, plane: Plane, window: Window, check: Callable[[], None]) -> dict[str, NDArray[Any]]:
    """The length of boundaries per area, in units of 1 / scale, and the classes: see docs/explorer-format.md.

    Boundaries in all directions alike cross a unit of length 2/π times as often as they are long per area. Over two
    perpendicular directions that is 4/π, so π/4 of the sum of both is their length: by Cauchy's formula.
    """
    side = _side(net, SIDE, VALUES)
    corners = window.grid(side, side)  # (rows + 1, columns + 1, 2)
    across, up = np.zeros((side + 1, side)), np.zeros((side, side + 1))
    rows_at_once = max(2, points_at_once(max(1, net.units)) // (side + 1))
    for start in range(0, side, rows_at_once - 1):  # the last row of a portion is the first of the next
        check()
        rows = corners[start : start + rows_at_once]
        pieces = net.patterns(_inputs(net, plane, rows)).numpy().reshape(len(rows), side + 1, -1)
        across[start : start + len(rows)] = (pieces[:, 1:] != pieces[:, :-1]).sum(axis=2)
        up[start : start + len(rows) - 1] = (pieces[1:] != pieces[:-1]).sum(axis=2)
    pixel = 2 * window.half / side / window.scale
    per_length = (across[1:] + across[:-1]) / 2 / pixel[0] + (up[:, 1:] + up[:, :-1]) / 2 / pixel[1]
    middles = (corners[1:, 1:] + corners[:-1, :-1]) / 2
    return {"values": (np.pi / 4 * per_length).astype(np.float32), "class": _classes(net, plane, middles, check)}


def complexity_raster(
    net: Network, plane: Plane, window: Window, sigma: float, check: Callable[[], None]
) -> dict[str, NDArray[Any]]:
    """The density of local complexity at the middle of each pixel, and the classes."""
    side = _side(net, DENSITY_SIDE, DENSITY_VALUES)
    corners = window.grid(side, side)
    middles = (corners[1:, 1:] + corners[:-1, :-1]) / 2
    single, found, drawn = net.frozen(torch.float32), [], torch.Generator().manual_seed(0)
    for rows in np.array_split(middles, PORTIONS):
        check()
        points = _inputs(single, plane, rows)
        found.append(complexity_density(single, points, sigma=sigma, draws=DRAWS, generator=drawn).per_point)
    values = np.concatenate(found).reshape(side, side).astype(np.float32)
    return {"values": values, "class": _classes(net, plane, middles, check)}


def _side(net: Network, most: int, values: int) -> int:
    """Pixels a side, fewer for larger networks."""
    return int(np.clip(np.sqrt(values / max(1, net.units)), LEAST, most))


def _inputs(net: Network, plane: Plane, places: Floats) -> torch.Tensor:
    return plane.points(places.reshape(-1, 2)).reshape(-1, *net.input_shape).to(net.dtype)


def _classes(net: Network, plane: Plane, places: Floats, check: Callable[[], None]) -> NDArray[np.int16]:
    """The largest output at places (rows, columns, 2)."""
    flat = places.reshape(-1, 2)
    found = []
    for some in portions(len(flat), points_at_once(max(1, net.units))):
        check()
        outputs = net(_inputs(net, plane, flat[some])).flatten(1)
        found.append(outputs.argmax(dim=1) if outputs.shape[1] > 1 else outputs[:, 0] > 0)
    return torch.cat(found).numpy().astype(np.int16).reshape(places.shape[:2])
