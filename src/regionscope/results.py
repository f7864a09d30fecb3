"""What a measure returns."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False)
class Estimate:
    """A measure at points: one number a point, and its mean with the standard error over points.

    `exact` says that the number at each point has no error of its own; otherwise `point_stderr` is that error, if it
    can be told. `quantity` says what the number is. `tensor` is the mean with its gradients, if asked for; copies and
    pickles have it without.
    """

    name: str
    per_point: NDArray[np.float64]  # (n,)
    per_layer: NDArray[np.float64] | None = None  # (n, layers)
    exact: bool = False
    quantity: str = ""
    point_stderr: NDArray[np.float64] | None = None  # (n,)
    per_unit: NDArray[Any] | None = None  # (n, units), if asked for
    tensor: Tensor | None = field(default=None, repr=False)

    POINTWISE: ClassVar[tuple[str, ...]] = ("per_point", "per_layer", "point_stderr", "per_unit")  # with a row a point

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"tensor": None if self.tensor is None else self.tensor.detach()}

    @property
    def n(self) -> int:
        """The number of points."""
        return len(self.per_point)

    @property
    def mean(self) -> float:
        """Over the points."""
        return float(self.per_point.mean())

    @property
    def stderr(self) -> float:
        """The standard error of the mean over points, with the error at each point in it.

        Of a single point, the error there; NaN if that is not known, or if a point is infinite.
        """
        if not np.isfinite(self.per_point).all():
            return float("nan")
        if self.n > 1:
            return float(self.per_point.std(ddof=1) / np.sqrt(self.n))
        if self.exact:
            return 0.0
        return float("nan") if self.point_stderr is None else float(self.point_stderr[0])

    def __repr__(self) -> str:
        kind = "exact at each point" if self.exact else "estimated"
        return f"Estimate({self.name} = {self.mean:.6g} ± {self.stderr:.2g}, n = {self.n}, {kind})"

    def to_dict(self) -> dict[str, Any]:
        """The summary, ready for JSON."""
        layers = None if self.per_layer is None else self.per_layer.mean(axis=0).tolist()
        return {
            "name": self.name, "mean": self.mean, "stderr": self.stderr, "n": self.n, "exact": self.exact,
            "quantity": self.quantity, "per_layer": layers,
        }  # fmt: skip

    @property
    def layer_numbers(self) -> tuple[int, ...]:
        """Of the columns of `per_layer`."""
        return () if self.per_layer is None else tuple(range(1, self.per_layer.shape[1] + 1))

    def columns(self) -> dict[str, NDArray[Any]]:
        """What is known of each point, (n,) each: the number by the name of the measure, its error, every layer."""
        found = {self.name: self.per_point}
        if self.point_stderr is not None:
            found["stderr"] = self.point_stderr
        for number, layer in enumerate(self.layer_numbers):
            assert self.per_layer is not None
            found[f"layer {layer}"] = self.per_layer[:, number]
        return found

    def to_pandas(self) -> Any:
        """A table with one row a point and the `columns`."""
        try:
            import pandas
        except ImportError as error:
            raise ImportError("to_pandas needs pandas: pip install 'regionscope[pandas]'") from error
        return pandas.DataFrame(self.columns()).rename_axis("point")

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """The mean of each layer, or how the points are spread if there is one; see `regionscope.plots.estimate`."""
        from regionscope.plots.estimates import estimate

        return estimate(self, ax)


def joint_estimate(parts: Sequence[Estimate], *, interleaved: bool = False) -> Estimate:
    """The estimate at the points of all parts: one part after the other, or taking turns, as slices x[k::m] do.

    What is not told point by point, such as the deformation of crossings, is that of the first part.
    """

    def together(arrays: list[NDArray[Any] | None]) -> NDArray[Any] | None:
        given = [array for array in arrays if array is not None]
        if len(given) < len(arrays):
            return None
        whole = np.concatenate(given)
        if interleaved:
            place = np.concatenate([np.arange(len(array)) * len(given) + k for k, array in enumerate(given)])
            whole = whole[np.argsort(place)]
        return whole

    arrays: dict[str, Any] = {name: together([getattr(part, name) for part in parts]) for name in parts[0].POINTWISE}
    return replace(parts[0], **arrays, tensor=None)
