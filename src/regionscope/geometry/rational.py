"""Dense networks in exact arithmetic: every float is an integer times a power of two, and so are sums and products."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from regionscope.tracing.network import Network
from regionscope.tracing.operations import aten
from regionscope.tracing.steps import Value

Integers = NDArray[np.object_]


@dataclass(frozen=True)
class Dyadic:
    """The numbers `mantissas * 2**-shift`, exactly."""

    mantissas: Integers
    shift: int

    def at(self, shift: int) -> Integers:
        """The mantissas for a larger shift."""
        return np.asarray(self.mantissas * (1 << (shift - self.shift)), object)

    def __add__(self, other: "Dyadic") -> "Dyadic":
        shift = max(self.shift, other.shift)
        return Dyadic(self.at(shift) + other.at(shift), shift)

    def __matmul__(self, other: "Dyadic") -> "Dyadic":
        return Dyadic(self.mantissas @ other.mantissas, self.shift + other.shift)

    def times(self, number: float) -> "Dyadic":
        factor = dyadic(np.array(number))
        return Dyadic(self.mantissas * factor.mantissas, self.shift + factor.shift)

    def where(self, condition: NDArray[np.bool_], other: "Dyadic") -> "Dyadic":
        shift = max(self.shift, other.shift)
        return Dyadic(np.where(condition, self.at(shift), other.at(shift)), shift)

    def above(self, number: float) -> NDArray[np.bool_]:
        """Which numbers are larger than this one."""
        bound = Fraction(number) * (1 << self.shift)
        return np.asarray(self.mantissas > bound, np.bool_)


def dyadic(values: Any) -> Dyadic:
    """Floats, exactly."""
    ratios = [float(v).as_integer_ratio() for v in np.asarray(values, np.float64).ravel()]
    shift = max((d.bit_length() - 1 for _, d in ratios), default=0)
    scaled = np.empty(len(ratios), object)
    scaled[:] = [n * ((1 << shift) // d) for n, d in ratios]
    return Dyadic(scaled.reshape(np.shape(values)), shift)


def clamped(x: Dyadic, low: float | None, high: float | None) -> Dyadic:
    if low is not None:
        x = x.where(x.above(low), dyadic(np.array(low)))
    return x if high is None else dyadic(np.array(high)).where(x.above(high), x)


def _addmm(bias: Dyadic, x: Dyadic, weight: Dyadic) -> Dyadic:
    return bias + x @ weight


# what dense networks are made of; a program with any other operation is not checked
OPERATIONS: dict[Any, Any] = {
    aten.addmm.default: _addmm,
    aten.mm.default: lambda x, weight: x @ weight,
    aten.add.Tensor: lambda x, y: x + y if isinstance(y, Dyadic) else x + dyadic(np.array(y)),
    aten.relu.default: lambda x: clamped(x, 0.0, None),
    aten.leaky_relu.default: lambda x, slope=0.01: x.where(x.above(0.0), x.times(slope)),
    aten.hardtanh.default: lambda x, low=-1.0, high=1.0: clamped(x, low, high),
    aten.clamp.default: lambda x, low=None, high=None: clamped(x, low, high),
    aten.clamp_min.default: lambda x, low: clamped(x, low, None),
    aten.alias.default: lambda x: x,
}


def can_check(net: Network) -> bool:
    """Whether a network is dense and made of operations that are known here."""
    flat = all(len(site.shape) == 1 for site in net.sites) and len(net.input_shape) == 1
    known = all(step.operation in OPERATIONS and not step.options for step in net.program.steps)
    return flat and known and not net.winners


def exact_bits(net: Network, x: Dyadic, names: list[str]) -> list[NDArray[np.bool_]]:
    """For each named site, which boundaries exact points (n, d) are above: (n, breakpoints * units)."""
    values: dict[int, Any] = {i: dyadic(c.numpy()) for i, c in net.program.constants.items()} | {0: x}
    for step in net.program.steps:
        arguments = [values[a.index] if isinstance(a, Value) else a for a in step.arguments]
        values[step.results[0]] = OPERATIONS[step.operation](*arguments)
    sites = {site.name: site for site in net.sites}
    return [np.concatenate([values[sites[n].entry].above(b) for b in sites[n].breakpoints], axis=1) for n in names]


def exact_points(origin: Tensor, axes: NDArray[np.float64], u: NDArray[np.float64]) -> Dyadic:
    """The points of a plane at coordinates u (n, 2), without rounding."""
    return dyadic(origin.flatten().numpy()[None]) + dyadic(u) @ dyadic(axes)
