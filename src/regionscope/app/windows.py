"""The part of a plane that is looked at."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from regionscope.app.problems import Problem
from regionscope.geometry.planes import SQUARE, Plane
from regionscope.geometry.predicates import EPS, RESOLVED
from regionscope.types import Floats

MOST = 1e3  # how much larger than the domain a window may be, and how far away
SLIM = 100.0  # how much wider than high, or higher than wide


@dataclass(frozen=True)
class Window:
    """A rectangle in plane coordinates: its centre, and half of its width and height."""

    x: float
    y: float
    hx: float
    hy: float

    @staticmethod
    def of(plane: Plane) -> "Window":
        """The bounding box of a plane's domain."""
        low, high = plane.domain.min(axis=0), plane.domain.max(axis=0)
        return Window(*((low + high) / 2).tolist(), *((high - low) / 2).tolist())

    @property
    def centre(self) -> Floats:
        return np.array([self.x, self.y])

    @property
    def half(self) -> Floats:
        return np.array([self.hx, self.hy])

    @property
    def scale(self) -> float:
        """The unit of what is sent."""
        return max(self.hx, self.hy)

    def relative(self, places: Floats) -> Floats:
        """Plane coordinates (..., 2) as they are sent: from the centre, in units of `scale`."""
        return np.asarray((places - self.centre) / self.scale)

    def on(self, plane: Plane) -> Plane:
        """The plane with this window as its domain."""
        return Plane(plane.origin, plane.axes, self.centre + self.half * SQUARE, plane.anchors)

    def grid(self, columns: int, rows: int) -> Floats:
        """The corners of so many pixels, row by row from the lowest: (rows + 1, columns + 1, 2)."""
        across, up = (np.linspace(-1, 1, n + 1) for n in (columns, rows))
        return self.centre + self.half * np.stack(np.meshgrid(across, up), axis=-1)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"scale": self.scale}

    def check(self, plane: Plane) -> None:
        """A problem if float64, or patience, does not reach so far on a plane."""
        whole, (least, most) = Window.of(plane), limits(plane)
        if not least <= min(self.hx, self.hy):
            raise Problem(
                "refused",
                f"so small a window is lost in the rounding of float64: hx and hy must be at least {least:.2g}",
            )
        if not max(self.hx, self.hy, *np.abs(self.centre - whole.centre)) <= most:
            raise Problem("refused", f"so large, or far, a window is not looked at: it must be within {most:.4g}")
        if not 1 / SLIM <= self.hx / self.hy <= SLIM:
            raise Problem("refused", f"a window may be {SLIM:g} times as wide as high, or high as wide, not more")


def limits(plane: Plane) -> tuple[float, float]:
    """The half-sides of the smallest and the largest window on a plane."""
    reach = float(plane.origin.norm()) + float(np.linalg.norm(plane.domain, axis=1).max())
    return RESOLVED * EPS * reach, MOST * Window.of(plane).scale
