"""The exact number of linear regions near a point."""

import numpy as np
import torch
from numpy.typing import ArrayLike

from regionscope.geometry.planes import Planes, check_size
from regionscope.geometry.subdivision import Subdivision, subdivide
from regionscope.geometry.sweep import exact
from regionscope.machine import in_threads, points_at_once
from regionscope.points import as_array
from regionscope.progress import tqdm
from regionscope.results import Estimate
from regionscope.tracing.given import network_and_points
from regionscope.tracing.network import Network
from regionscope.types import Data, Floats, Model

SHAPES = ("square", "disc")


def local_region_count(
    model: Model | Network,
    data: Data,
    *,
    radius: float,
    shape: str = "square",
    axes: ArrayLike | None = None,
    generator: torch.Generator | None = None,
    batch_size: int = 128,
    max_cells: int = 10_000_000,
    allow_smooth: bool = False,
    show_progress: bool = False,
) -> Estimate:
    """The number of linear regions that meet a square or disc of the given radius around each point (PD 3.3, Fig. 14).

    Exact at each point, on one plane through it: in a random direction drawn from `generator`, or along `axes` (2, d),
    orthonormal rows, the same for all points. A square has half-side `radius`. Without a `generator` calls differ.
    Planes are cut together, `batch_size` at a time, on all cores.

    >>> model = torch.nn.Sequential(torch.nn.Linear(2, 1), torch.nn.ReLU())
    >>> _ = model[0].weight.data.fill_(1.0), model[0].bias.data.zero_()
    >>> local_region_count(model, torch.tensor([[0.1, 0.1], [5.0, 5.0]]), radius=0.5).per_point
    array([2., 1.])
    """
    if shape not in SHAPES:
        raise ValueError(f"shape must be square or disc, got {shape!r}")
    check_size("radius", radius)
    net, points = network_and_points(model, data, allow_smooth=allow_smooth)
    points, net = points.cpu(), exact(net)
    at_once = points_at_once(1, batch_size)
    planes = Planes.around(points, radius, axes=axes, generator=generator)

    def counted(part: Planes) -> tuple[Floats, bool]:
        made, swept = subdivide(net, part, max_cells=max_cells)
        near = _meets_disc(made, radius) if shape == "disc" else np.ones(len(made), bool)
        return np.bincount(made.polygon[near], minlength=len(part)).astype(np.float64), swept.undecided == 0

    parts = [planes[i : i + at_once] for i in range(0, len(planes), at_once)]
    bar = tqdm(in_threads(counted, parts), total=len(parts), desc="planes", disable=not show_progress)
    counts, exactly = zip(*bar, strict=True)
    return Estimate(
        "local region count",
        np.concatenate(counts),
        exact=all(exactly),
        quantity=f"regions in a {shape}",
        options={"radius": float(radius), "shape": shape, **({} if axes is None else {"axes": as_array(axes)})},
        piecewise_linear=net.piecewise_linear,
    )


def _meets_disc(cells: Subdivision, radius: float) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which cells come nearer to the origin of the plane than the radius."""
    offsets, corners, sides = cells.loops()
    xy, origin = cells.mesh.xy, cells.mesh.origin
    a = xy[corners]
    along = xy[origin[sides ^ 1]] - a
    t = np.clip(-(a * along).sum(axis=1) / np.maximum((along**2).sum(axis=1), np.finfo(float).tiny), 0, 1)
    distance = np.minimum.reduceat(np.linalg.norm(a + t[:, None] * along, axis=1), offsets[:-1])
    left = along[:, 0] * -a[:, 1] + along[:, 1] * a[:, 0] >= 0  # the origin lies to the left of the side
    return np.asarray(np.logical_and.reduceat(left, offsets[:-1]) | (distance < radius))
