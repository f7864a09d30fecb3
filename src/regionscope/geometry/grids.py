"""Of which fractions all numbers of a value are multiples: how large the numerators of exact arithmetic may become."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regionscope.geometry.pieces import pieces
from regionscope.geometry.rounding import CHOICES, MOVES, NORMS, NUMBERS, norm_constants
from regionscope.tracing.activations import PAIRWISE
from regionscope.tracing.steps import Step, Value, leaves

LARGEST_DENOMINATOR = 4096  # bits

Known = Mapping[int, Any]
Shapes = Mapping[int, tuple[int, ...]]


class Inexact(ValueError):
    """There is an operation without an exact form; the message names it."""


@dataclass(frozen=True)
class Grid:
    """All numbers of a value are multiples of 1 / (2^shift rest)."""

    shift: int = 0
    rest: int = 1

    def join(self, other: "Grid") -> "Grid":
        return Grid(max(self.shift, other.shift), math.lcm(self.rest, other.rest))

    def product(self, other: "Grid") -> "Grid":
        return Grid(self.shift + other.shift, self.rest * other.rest)

    @property
    def denominator(self) -> int:
        return self.rest << self.shift


def grid_of(number: Fraction | float | Tensor) -> Grid:
    """The coarsest grid that holds a number, or the floats of a tensor."""
    if not isinstance(number, Tensor):
        denominator = Fraction(number).denominator
        twos = (denominator & -denominator).bit_length() - 1
        return Grid(twos, denominator >> twos)
    values = np.unique(number.double().numpy())
    mantissas, exponents = np.frexp(values[values != 0])
    integers = np.asarray(mantissas * 2.0**53, np.int64)
    zeros = np.log2((integers & -integers).astype(np.float64)).astype(np.int64)
    return Grid(int((53 - exponents - zeros).max(initial=0)))


def _grid_of_inverses(number: float | Tensor) -> Grid:
    values = np.unique(number.double().numpy()).tolist() if isinstance(number, Tensor) else [number]
    grids = [grid_of(1 / Fraction(v)) for v in values if v]
    if sum(g.rest.bit_length() for g in grids) > LARGEST_DENOMINATOR:
        raise Inexact("division by many different numbers")
    return _common_grid(grids)


def grid_after(step: Step, grids: Mapping[int, Grid], constants: Known, shapes: Shapes) -> Grid:
    """The grid of what a step makes, given those of what depends on the input."""
    name, named = step.name, step.named
    parts = [_grid(a, grids, constants) for key, a in named.items() if key in NUMBERS or _holds_values(a)]
    if (found := pieces(step, constants)) is not None:
        slopes, offsets = ([grid_of(part[i]) for part in found] for i in (0, 1))
        return grids[named["self"].index].product(_common_grid(slopes)).join(_common_grid(offsets))
    if name in NORMS:
        factor, shift = norm_constants(step, constants)
        return grids[named["input"].index].product(grid_of(factor)).join(grid_of(shift))
    if name in AVERAGES:
        return grids[named["self"].index].product(Grid(rest=math.lcm(*windows(step, shapes)[1])))
    if name in INTERPOLATIONS:
        return grids[named["self"].index].product(grid_of(shares(step, shapes)))
    if name in DIVISIONS:
        by = named[DIVISIONS[name]]
        inverses = _grid_of_inverses(constants[by.index] if isinstance(by, Value) else by)
        if name == "addcdiv":
            factors = [_grid(a, grids, constants) for a in (named["tensor1"], named.get("value", 1))]
            return _grid(named["self"], grids, constants).join(_product([*factors, inverses]))
        return grids[named["self"].index].product(inverses)
    if name == "lerp":
        return _product(
            [
                _common_grid([_grid(named[key], grids, constants) for key in ("self", "end")]),
                _grid(named["weight"], grids, constants),
            ]
        )
    if name in PRODUCTS or (name in SUMS and "alpha" in named):
        return _product(parts)
    if name in MOVES or name in CHOICES or name in SUMS or name in PAIRWISE:
        return _common_grid(parts)
    raise Inexact(f"the operation {name}")


def _grid(argument: Any, grids: Mapping[int, Grid], constants: Known) -> Grid:
    found = Grid()
    for leaf in leaves(argument):
        if isinstance(leaf, Value):
            if leaf.index in grids:
                found = found.join(grids[leaf.index])
            elif constants[leaf.index].is_floating_point():
                found = found.join(grid_of(constants[leaf.index]))
        elif isinstance(leaf, int | float):
            found = found.join(grid_of(leaf))
    return found


def _holds_values(argument: Any) -> bool:
    return any(isinstance(leaf, Value) for leaf in leaves(argument))


def _common_grid(grids: Sequence[Grid]) -> Grid:
    found = Grid()
    for grid in grids:
        found = found.join(grid)
    return found


def _product(grids: Sequence[Grid]) -> Grid:
    found = Grid()
    for grid in grids:
        found = found.product(grid)
    return found


def windows(step: Step, shapes: Shapes) -> tuple[Tensor | None, list[int]]:
    """Which entries each average is taken of, 0 or 1 (entries, averages), and the number it is divided by.

    The same for every channel; None for the plain sum of a mean.
    """
    shape, made = shapes[step.named["self"].index], shapes[step.results[0]]
    if step.name == "mean":
        return None, [math.prod(shape) // max(math.prod(made), 1)]
    found = shares(step, shapes)
    return (found > 0).double(), [round(1 / share) for share in found.amax(dim=0).tolist()]


def shares(step: Step, shapes: Shapes) -> Tensor:
    """What each entry of a channel has in each mean of entries, in float64: (entries, means).

    Of an interpolation, these floats are taken to be the network's.
    """
    spatial = shapes[step.named["self"].index][-(AVERAGES | INTERPOLATIONS)[step.name] :]
    entries = math.prod(spatial)
    basis = torch.eye(entries, dtype=torch.float64).reshape(entries, 1, *spatial)
    return step.run({step.named["self"].index: basis})[0].reshape(entries, -1)  # type: ignore[no-any-return]


# what is added up only; what is multiplied, with the arguments that are; averages with the dimensions of their windows
SUMS = frozenset("neg sum cumsum trace col2im add sub rsub scatter_add index_add".split())
PRODUCTS: dict[str, tuple[str, ...]] = {
    "mul": ("self", "other"),
    "mm": ("self", "mat2"),
    "bmm": ("self", "mat2"),
    "mv": ("self", "vec"),
    "dot": ("self", "tensor"),
    "vdot": ("self", "other"),
    "addmm": ("mat1", "mat2"),
    "addmv": ("mat", "vec"),
    "baddbmm": ("batch1", "batch2"),
    "addbmm": ("batch1", "batch2"),
    "addr": ("vec1", "vec2"),
    "addcmul": ("tensor1", "tensor2"),
    "convolution": ("input", "weight"),
}
AVERAGES = {"mean": 0, "avg_pool2d": 2, "avg_pool3d": 3, "_adaptive_avg_pool2d": 2, "_adaptive_avg_pool3d": 3}
INTERPOLATIONS = {"upsample_linear1d": 1, "upsample_bilinear2d": 2, "upsample_trilinear3d": 3}
DIVISIONS = {"div": "other", "true_divide": "other", "addcdiv": "tensor2"}  # what is divided by
