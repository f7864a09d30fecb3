"""Where to look: a convex piece of a two-dimensional plane in input space."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from regionscope.geometry.predicates import COLLINEAR, CONVEX, EPS, ORTHONORMAL, RESOLVED
from regionscope.points import as_array, as_tensor
from regionscope.tables import Facts
from regionscope.types import Array, Floats

ROUNDED = 8  # a point between two others, computed from them, is no farther off their line than so many roundings
USUAL_MARGIN = 1.2  # of planes through three points that are looked at, so that none lies at the rim
SQUARE = np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])


@dataclass(frozen=True, repr=False)
class Plane(Facts):
    """The points `origin + u[0] * axes[0] + u[1] * axes[1]` for u in a convex polygon.

    `origin` has the shape of an input, `axes` (2, d) are orthonormal rows, d the number of entries of an input, and
    `domain` (k, 2) are the corners of the polygon in plane coordinates u, in order around it. `anchors` (n, 2) are the
    points that it was laid through, if any: pictures mark them.

    >>> plane = Plane(torch.zeros(3), [[1, 0, 0], [0, 1, 0]], [[0, 0], [2, 0], [0, 2]])
    >>> plane.area, plane.points([[1.0, 0.5]])
    (2.0, tensor([[1.0000, 0.5000, 0.0000]], dtype=torch.float64))
    """

    origin: Tensor
    axes: Any
    domain: Any
    anchors: Any = ()

    def __post_init__(self) -> None:
        origin = as_tensor(self.origin).cpu().double()
        axes, domain = as_array(self.axes), as_array(self.domain)
        if axes.shape != (2, origin.numel()):
            raise ValueError(f"axes must be (2, {origin.numel()}) for this origin, got {axes.shape}")
        if not (np.isfinite(axes).all() and np.isfinite(domain).all() and torch.isfinite(origin).all()):
            raise ValueError("a plane must not hold NaN or infinite values")
        if np.abs(axes @ axes.T - np.eye(2)).max() > ORTHONORMAL:
            raise ValueError("axes must be two orthonormal rows; Plane.through and Plane.around make them")
        object.__setattr__(self, "origin", origin)
        object.__setattr__(self, "axes", axes)
        object.__setattr__(self, "domain", _convex(domain))
        object.__setattr__(self, "anchors", as_array(self.anchors).reshape(-1, 2))

    def _facts(self) -> dict[str, object]:
        ends = zip(self.domain.min(axis=0), self.domain.max(axis=0), strict=True)
        return {
            "inputs": tuple(self.origin.shape), "domain": " × ".join(f"[{low:.4g}, {high:.4g}]" for low, high in ends),
            "corners": len(self.domain), "marked points": len(self.anchors),
        }  # fmt: skip

    @staticmethod
    def through(a: Array, b: Array, c: Array, *, margin: float = 1.0, centre: str = "circumcentre") -> "Plane":
        """Through three points: a square centred at their circumcentre, its half-side `margin` circumradii (HR 3.3).

        With the "centroid" for its `centre`, as in SplineCam and PD figure 1, the half-side is `margin` times the
        distance from there to the farthest of the three, so a triangle that is nearly flat leaves no huge square.
        Points on one line, to the rounding of the dtype that they come in, are refused.
        """
        check_size("margin", margin)
        if centre not in ("circumcentre", "centroid"):
            raise ValueError(f"centre must be circumcentre or centroid, got {centre!r}")
        p, q, r = (as_array(point).ravel() for point in (a, b, c))
        first, second = q - p, r - p
        sides = [float(np.linalg.norm(v)) for v in (first, second, r - q)]
        axis = first / max(sides[0], 1e-300)
        across = second - (second @ axis) * axis
        height = np.linalg.norm(across)
        flat = max(COLLINEAR * max(sides) ** 2, sides[0] * ROUNDED * max(_rounding_error(point) for point in (a, b, c)))
        if not np.isfinite(height) or sides[0] * height <= flat:
            raise ValueError(
                "the three points lie on one line, but for rounding (or hold NaN): they span no plane; take another"
            )
        axes = np.stack([axis, across / height])
        axes[1] -= (axes[1] @ axes[0]) * axes[0]
        axes[1] /= np.linalg.norm(axes[1])
        u, (v, w) = sides[0], (second @ axes[0], height)
        corners = np.array([(0.0, 0.0), (u, 0.0), (v, w)])
        middle = np.array([u / 2, (v * v + w * w - u * v) / (2 * w)])
        middle = middle if centre == "circumcentre" else corners.mean(axis=0)
        anchors = corners - middle
        radius = np.linalg.norm(middle) if centre == "circumcentre" else np.linalg.norm(anchors, axis=1).max()
        origin = (p + middle @ axes).reshape(as_array(a).shape)
        return Plane(torch.from_numpy(origin), axes, margin * radius * SQUARE, anchors)

    @staticmethod
    def around(x: Array, radius: float, *, generator: torch.Generator | None = None) -> "Plane":
        """A square of half-side `radius` around a point, in a random direction; without a `generator` calls differ."""
        check_size("radius", radius)
        x = as_tensor(x)
        planes = Planes.around(x[None], radius, generator=generator)
        return Plane(x, planes.axes[0].numpy(), planes.domain, np.zeros((1, 2)))

    @staticmethod
    def coordinates(x: Array, axes: tuple[int, int] = (0, 1), *, radius: float = 1.0) -> "Plane":
        """A square of half-side `radius` around a point, along two entries of the input: the whole of a 2-D input."""
        check_size("radius", radius)
        x = as_tensor(x)
        if axes[0] == axes[1] or not all(0 <= axis < x.numel() for axis in axes):
            raise ValueError(f"axes must be two different entries of an input with {x.numel()}, got {axes}")
        check_resolved(radius, x[None])
        return Plane(x, np.eye(x.numel())[list(axes)], radius * SQUARE)

    @property
    def area(self) -> float:
        """Of the domain."""
        return float(_polygon_area(self.domain))

    def points(self, u: ArrayLike) -> Tensor:
        """Plane coordinates (n, 2) -> points in input space (n, *shape of the origin), in float64."""
        flat = self.origin.flatten() + torch.from_numpy(as_array(u) @ self.axes)
        return flat.reshape(-1, *self.origin.shape)

    def project(self, x: Array) -> Floats:
        """Points (n, ...) -> the coordinates (n, 2) of their nearest points on the plane."""
        flat = as_array(x).reshape(len(x), self.origin.numel()) - self.origin.flatten().numpy()
        return np.asarray(flat @ self.axes.T)


def check_size(name: str, size: float) -> None:
    if not 0 < size < np.inf:  # NaN neither
        raise ValueError(f"{name} must be positive and finite, got {size}")


def check_resolved(radius: float, points: Tensor) -> None:
    """An error if float64 has too few numbers within a radius of one of the points (n, ...)."""
    least = RESOLVED * EPS * float(points.detach().double().flatten(1).norm(dim=1).max())
    if radius < least:
        raise ValueError(
            f"radius {radius:g} is lost in the rounding of these points, even in float64: take at least {least:.2g}"
        )


def _rounding_error(point: Any) -> float:
    """How far from a true point its rounding to its dtype may be."""
    dtype = as_tensor(point).dtype
    return float(np.linalg.norm(as_array(point)) * torch.finfo(dtype if dtype.is_floating_point else torch.float64).eps)


def _polygon_area(corners: Floats) -> float:
    x, y = (corners - corners[0]).T
    return float((x * np.roll(y, -1) - y * np.roll(x, -1)).sum() / 2)


def _convex(corners: Floats) -> Floats:
    """The corners counter-clockwise; an error if they are not those of a convex polygon."""
    if corners.ndim != 2 or corners.shape[1] != 2 or len(corners) < 3:
        raise ValueError(f"domain must be the corners of a polygon, (k, 2) with k >= 3, got {corners.shape}")
    area = _polygon_area(corners)
    size = np.ptp(corners, axis=0).max()
    if not abs(area) > CONVEX * size**2:
        raise ValueError("domain is empty: its corners lie on one line")
    corners = corners if area > 0 else corners[::-1].copy()
    before, after = np.roll(corners, 1, axis=0), np.roll(corners, -1, axis=0)
    (ax, ay), (bx, by) = (corners - before).T, (after - corners).T
    turns = ax * by - ay * bx
    full_turns = np.arctan2(turns, ax * bx + ay * by).sum() / (2 * np.pi)
    if turns.min() < -CONVEX * size**2 or abs(full_turns - 1) > 0.1 or min(np.hypot(ax, ay)) == 0:
        raise ValueError("domain must be a convex polygon with different corners in order; take its convex hull")
    return corners


@dataclass(frozen=True)
class Planes:
    """Many planes with the same domain (k, 2): origins (n, d) and axes (n, 2, d) in float64."""

    origins: Tensor
    axes: Tensor
    domain: Floats

    @staticmethod
    def of(plane: Plane) -> "Planes":
        """One plane."""
        return Planes(plane.origin.reshape(1, -1), torch.from_numpy(plane.axes)[None], plane.domain)

    @staticmethod
    def around(
        x: Tensor, radius: float, *, axes: ArrayLike | None = None, generator: torch.Generator | None = None
    ) -> "Planes":
        """Squares of half-side `radius` around points (n, ...), along `axes` (2, d) or each in a random direction.

        One plane is drawn after the other: those of the first points do not depend on how many come behind them.
        """
        origins = x.detach().cpu().double().flatten(1)
        check_resolved(radius, origins)
        if axes is not None:
            plane = Plane(origins[0], as_array(axes), radius * SQUARE)
            frames = torch.from_numpy(plane.axes).expand(len(origins), -1, -1)
            return Planes(origins, frames, plane.domain)
        if origins.shape[1] < 2:
            raise ValueError("an input with one entry has no planes; use line_cells")
        # point by point: of more numbers at once torch draws others, the last of them twice
        drawn = [torch.randn(2, origins.shape[1], generator=generator, dtype=torch.float64) for _ in origins]
        first, second = torch.stack(drawn, dim=1)  # (n, d)
        first = first / first.norm(dim=1, keepdim=True)
        for _ in range(2):  # twice is enough for orthogonality to rounding
            second = second - (second * first).sum(dim=1, keepdim=True) * first
            second = second / second.norm(dim=1, keepdim=True)
        return Planes(origins, torch.stack([first, second], dim=1), radius * SQUARE)

    def __len__(self) -> int:
        return len(self.origins)

    def __getitem__(self, part: slice) -> "Planes":
        return Planes(self.origins[part], self.axes[part], self.domain)

    def corners(self) -> Tensor:
        """The corners of all domains, plane after plane: (n * k, d)."""
        flat = self.origins[:, None] + torch.from_numpy(self.domain) @ self.axes
        return flat.reshape(-1, self.origins.shape[1])

    def points(self, u: Floats, plane: NDArray[np.int64] | NDArray[np.int32]) -> Tensor:
        """The points with coordinates u (m, 2) on the planes with these numbers (m,): (m, d)."""
        return self.origins[plane] + (torch.from_numpy(u)[:, None] @ self.axes[plane])[:, 0]
