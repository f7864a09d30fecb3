"""What a measure returns."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from regionscope.files import plain
from regionscope.tables import how_many, html_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes


ROUNDING = 1e-12  # of a number: an error below that is made by floats
SMOOTH_IN_SHORT = "smooth network"
SMOOTH = "the network is smooth: it has no linear regions, and boundaries are only where its units switch"
_TOLD = ("sigma", "eps", "radius", "norm", "bounds", "draws", "directions")  # what a number means little without


@dataclass(frozen=True, eq=False)
class Estimate:
    """A measure at points: one number a point, and its mean with the standard error over points.

    `float` of it is the mean; printed, the mean and its error have the digits that the error leaves, and a format such
    as `f"{estimate:.3f}"` is for both.

    `exact` says that the number at each point has no error of its own; otherwise `point_stderr` is that error, if it
    can be told, and `resolution` the part of it that may be on one side at all points: no mean makes that less.
    `quantity` says what the number is. `tensor` is the mean with its gradients, if asked for; copies and pickles have
    it without.

    `options` are those of the measure that had a say, as they were really used: the method that "auto" chose, no more
    directions than the input has. Called with them and the same generator, the measure gives the same, but for
    penalties, whose points share one draw (`drawn_together`), and attacks that are functions. Printed are those that a
    number means little without. A number of a network that is not `piecewise_linear` is printed as one of
    a smooth network: its boundaries are only where units switch, and no linear regions meet there.
    """

    name: str
    per_point: NDArray[np.float64]  # (n,)
    per_layer: NDArray[np.float64] | None = None  # (n, layers)
    exact: bool = False
    quantity: str = ""
    point_stderr: NDArray[np.float64] | None = None  # (n,)
    per_unit: NDArray[Any] | None = None  # (n, units), if asked for
    tensor: Tensor | None = field(default=None, repr=False)
    resolution: NDArray[np.float64] | None = None  # (n,)
    drawn_together: bool = False  # the points share what was drawn: their spread does not tell the error of the mean
    layer_resolution: NDArray[np.float64] | None = None  # (n, layers): `resolution` at each layer
    options: Mapping[str, Any] = field(default_factory=dict)
    piecewise_linear: bool | None = None  # whether the network is; None if that is not known

    # with a row a point
    POINTWISE: ClassVar[tuple[str, ...]] = (
        "per_point", "per_layer", "point_stderr", "per_unit", "resolution", "layer_resolution",
    )  # fmt: skip

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

        Of a single point, the error there. NaN, shown as "?", if there is none to tell (how far other points would be
        from an exact number, one point cannot say), if a point is infinite, or if the points share what was drawn.
        """
        if self.drawn_together or not np.isfinite(self.per_point).all():
            return float("nan")
        if self.n > 1:
            shared = 0.0 if self.resolution is None else float(self.resolution.mean())
            return float(np.hypot(self.per_point.std(ddof=1) / np.sqrt(self.n), shared))
        return float("nan") if self.point_stderr is None else float(self.point_stderr[0])

    @property
    def layer_stderr(self) -> NDArray[np.float64]:
        """The standard error of the mean of each layer, (layers,); NaN where there is none to tell."""
        if self.per_layer is None:
            return np.zeros(0)
        n, layers = self.per_layer.shape
        untold = self.resolution is not None and self.layer_resolution is None
        if self.drawn_together or untold or n < 2:
            return np.full(layers, np.nan)
        shared = 0.0 if self.layer_resolution is None else self.layer_resolution.mean(axis=0)
        finite = np.isfinite(self.per_layer).all(axis=0)
        spread = np.where(finite, self.per_layer, 0.0).std(axis=0, ddof=1) / np.sqrt(n)
        return np.where(finite, np.hypot(spread, shared), np.nan)

    @property
    def label(self) -> str:
        """What the number is called: its name, and that it is a sum if it is one over several layers."""
        return f"{self.name}, sum over layers" if len(self.layer_numbers) > 1 else self.name

    @property
    def _number(self) -> str:
        """The mean with its error, in words."""
        return with_error(self.mean, self.stderr)

    @property
    def _kind(self) -> str:
        return kind_in_words(self.exact, self.quantity, self.piecewise_linear)

    def __float__(self) -> float:
        return self.mean

    def __format__(self, spec: str) -> str:
        if not spec:
            return str(self)
        return f"{self.mean:{spec}} ± {'?' if math.isnan(self.stderr) else format(self.stderr, spec)}"

    def __repr__(self) -> str:
        told = [f"{self.label} = {self._number}", *options_in_words(self.options), f"n = {self.n}", self._kind]
        return f"Estimate({', '.join(told)})"

    def _repr_html_(self) -> str:
        """For notebooks."""
        rows = [["", "mean ± s.e."], [self.label, self._number]]
        if self.per_layer is not None and len(self.layer_numbers) > 1:
            means = self.per_layer.mean(axis=0)
            for number, mean, error in zip(self.layer_numbers, means, self.layer_stderr, strict=True):
                rows.append([f"layer {number}", with_error(float(mean), float(error))])
        about = [*options_in_words(self.options), how_many(self.n, "point"), self._kind, self.quantity]
        return html_table(rows, ", ".join(filter(None, about)))

    def to_dict(self) -> dict[str, Any]:
        """The summary, ready for JSON; with the mean `resolution`, if there is one."""
        layers = None if self.per_layer is None else self.per_layer.mean(axis=0).tolist()
        shared = {} if self.resolution is None else {"resolution": float(self.resolution.mean())}
        return {
            "name": self.name, "label": self.label, "mean": self.mean, "stderr": self.stderr, "n": self.n,
            "exact": self.exact, "quantity": self.quantity, "per_layer": layers, "options": self._plain_options,
            "piecewise_linear": self.piecewise_linear, **shared,
        }  # fmt: skip

    @property
    def _plain_options(self) -> dict[str, Any]:
        """For JSON, but for matrices, such as a frame: a summary is no place for them."""
        return {name: plain(value) for name, value in self.options.items() if getattr(value, "ndim", 0) < 2}

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


@dataclass(frozen=True, eq=False, repr=False)
class Share(Estimate):
    """The share of points that something is true of: 1 where it is, 0 elsewhere.

    Where it is true of all points, or of none, the points do not differ, and a standard error from their spread would
    be 0. So it is Wilson's (1927): half the length of his interval at one standard deviation.

    >>> Share("accuracy", np.ones(10))
    Estimate(accuracy = 1 (0.722 to 1 at 95 %), n = 10, estimated)
    """

    @property
    def stderr(self) -> float:
        """Half the length of Wilson's interval at one standard deviation."""
        low, high = self.interval(1.0)
        return (high - low) / 2

    def interval(self, deviations: float = 1.96) -> tuple[float, float]:
        """Wilson's confidence interval at so many standard deviations: 95 % by default."""
        return wilson_interval(self.mean, self.n, deviations)

    @property
    def _number(self) -> str:
        return with_interval(self.mean, *self.interval())

    def to_dict(self) -> dict[str, Any]:
        """With the interval at 95 %."""
        return {**super().to_dict(), "interval": list(self.interval())}


def options_in_words(options: object) -> list[str]:
    """Those options of a measure that its numbers mean little without.

    >>> options_in_words({"radius": 0.05, "directions": 25, "layers": None})
    ['radius 0.05', 'directions 25']
    """
    told = dict(options) if isinstance(options, Mapping) else {}
    if told.get("method", "random") not in ("random", "combinations"):
        told.pop("directions", None)  # none are drawn
    return [f"{option} {_in_words(told[option])}" for option in _TOLD if told.get(option) is not None]


def _in_words(value: object) -> str:
    if isinstance(value, np.ndarray | Tensor):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return " to ".join(map(_in_words, value))
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def kind_in_words(exact: bool, quantity: str, piecewise_linear: bool | None) -> str:
    """What numbers at points are: exact, bounds or estimated, and whether the network is smooth.

    >>> kind_in_words(False, "slope", piecewise_linear=False)
    'estimated, of a smooth network'
    """
    kind = "exact at each point" if exact else kind_of_error(quantity)
    return f"{kind}, of a smooth network" if piecewise_linear is False else kind


def kind_of_error(quantity: str) -> str:
    """What a number that is not exact is, by what `quantity` says of it.

    >>> kind_of_error("length (lower bound)"), kind_of_error("slope")
    ('a lower bound', 'estimated')
    """
    if "lower bound" in quantity:
        return "a lower bound"
    return "an upper bound" if "upper bound" in quantity else "estimated"


def wilson_interval(share: float, n: int, deviations: float) -> tuple[float, float]:
    """Between which shares of a whole p a share of n drawn at random lies within so many standard deviations of p.

    |share - p| <= deviations * sqrt(p (1 - p) / n), solved for p.

    >>> [round(end, 3) for end in wilson_interval(0.0, 10, 1.96)]
    [0.0, 0.278]
    """
    weight = deviations**2 / n
    centre, half = share + weight / 2, math.sqrt(weight * share * (1 - share) + weight**2 / 4)
    return max(0.0, (centre - half) / (1 + weight)), min(1.0, (centre + half) / (1 + weight))


def with_interval(share: float, low: float, high: float) -> str:
    """A share and its interval.

    >>> with_interval(0.5, 0.2366, 0.7634)
    '0.5 (0.237 to 0.763 at 95 %)'
    """
    return f"{share:.3g} ({low:.3g} to {high:.3g} at 95 %)"


def with_error(value: float, error: float) -> str:
    """A number and its standard error, both to the second digit of the error; an error that is only rounding is 0.

    >>> with_error(12.3456, 0.0789), with_error(12345.6, 120.0), with_error(1.2346e-8, 6.7e-10)
    ('12.346 ± 0.079', '12350 ± 120', '(1.235 ± 0.067)e-08')
    >>> with_error(3.0, 0.0), with_error(3.0, float("nan")), with_error(20.0, 1.3e-15)
    ('3 ± 0', '3 ± ?', '20 ± 0')
    """
    error = 0.0 if error < ROUNDING * abs(value) < math.inf else error
    if not (math.isfinite(value) and math.isfinite(error) and error > 0):
        return f"{value:.6g} ± {'?' if math.isnan(error) else f'{error:g}'}"
    size = max(abs(value), error)
    if not 1e-4 <= size < 1e7:
        power = math.floor(math.log10(size))
        return f"({_rounded_together(value / 10.0**power, error / 10.0**power)})e{power:+03d}"
    return _rounded_together(value, error)


def _rounded_together(value: float, error: float) -> str:
    digits = 1 - int(f"{error:.1e}".partition("e")[2])  # behind the point
    return " ± ".join(f"{round(number, digits) + 0.0:.{max(digits, 0)}f}" for number in (value, error))


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
