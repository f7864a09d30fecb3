"""How fast the state of a network changes along a complex, as its values at vertices tell.

By norms of its parts it may grow threefold at every site, which it does not: and the steeper units may be, the less is
known of where boundaries meet, and so of the signs there. Inside a cell the state is affine. Two sides of a cell, as
the columns of a matrix E, and the differences D of the state along them give its slope D / E. These are off: the state
at a computed vertex by an error, the vertex from its true place by a shift, on the way to which the state changes no
faster than norms say. With d and e for what D and E may be off by,

    |slope| <= (|D / E| + d |1 / E|) / (1 - e |1 / E|).

Cells that are too narrow for that to say much are followed through the network, with the pieces that their units are
on: the differences of what it makes of the axes and of zero are the slope, but for rounding.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regionscope.geometry import traversals
from regionscope.geometry.complexes import Complex
from regionscope.geometry.laws import Law
from regionscope.geometry.pieces import pieces
from regionscope.geometry.rounding import SURE
from regionscope.machine import points_at_once, portions
from regionscope.tracing.lifting import lifted
from regionscope.tracing.network import Network, as_rows
from regionscope.tracing.program import Act, Program
from regionscope.tracing.steps import Step
from regionscope.types import Floats, Indices

NARROW = 0.5  # a cell is narrow if errors may be this share of its slope, or of a side
FEW = 16  # cells are followed if they are fewer than all by this factor
FLOATS_AT_ONCE = 1 << 23  # of what is followed through the network: far fewer would be far slower


def told_slope(
    cells: Complex,
    tables: Sequence[Floats],
    error: Floats,
    shift: Floats,
    loose: float,
    followed: Callable[[Indices], Floats],
) -> float:
    """At most how fast the state, in tables (vertices, entries), changes anywhere on the complex, if below `loose`.

    It is off by `error` (vertices,) at computed vertices, these by `shift`. `followed` has the slope of some cells.
    """
    corners, sides = cells.frames()
    with np.errstate(all="ignore"):  # sides may be parallel
        inverse = _inverse(sides)
        squares = np.zeros(len(corners))
        for table in tables:
            traversals.add_slope_squares(squares, table, corners, inverse)
        slope, long = np.sqrt(squares), np.sqrt(np.square(inverse).sum(axis=(1, 2)))
        ends = np.array([2.0, 1.0, 1.0])
        off, apart = (error + loose * shift)[corners] @ ends * long, shift[corners] @ ends * long
        told = np.where(apart < 1, SURE * (slope + off) / (1 - apart), np.inf)
    clear = (off < NARROW * slope) & (apart < NARROW)
    most = told[clear].max(initial=0.0)
    rest = np.flatnonzero(~clear & ~(told <= most))
    if len(rest) > len(corners) // FEW:
        return loose
    return float(max(most, followed(rest).max(initial=0.0)))


def _inverse(sides: Floats) -> Floats:
    """Of matrices (n, 2, 2)."""
    (a, b), (c, d) = sides.transpose(1, 2, 0)
    return np.asarray((np.array([[d, -b], [-c, a]]) / (a * d - b * c)).transpose(2, 0, 1))


def followed_slopes(
    net: Network, laws: Sequence[Law], outputs: Sequence[int], axes: Tensor, choices: Mapping[int, Tensor]
) -> Floats:
    """How fast outputs of a program change along axes (n, dimensions, entries) where these are the pieces of all units.

    At most, and infinite if that cannot be told: only of activations that are linear on either side of zero.
    """
    slopes, rounded = slopes_of(net, choices), _state_error(laws)
    if len(slopes) < len(choices) or not np.isfinite(rounded):
        return np.full(len(axes), np.inf)
    program, found = net.program.pruned(outputs), list[Floats]()
    for some in portions(len(axes), points_at_once((1 + axes.shape[1]) * program.entries, floats=FLOATS_AT_ONCE)):
        factors = factors_of(slopes, {value: pieces[some] for value, pieces in choices.items()})
        squares = _tangent_squares(net.input_shape, program, axes[some], factors)
        found.append(SURE * (np.sqrt(squares) + 2 * np.sqrt(axes.shape[1]) * rounded))
    return np.concatenate([np.zeros(0), *found])


def _tangent_squares(shape: tuple[int, ...], program: Program, axes: Tensor, factors: Mapping[int, Tensor]) -> Floats:
    """The squared norms of what a program makes of axes, with these factors (n, units) in place of activations."""
    rows = torch.cat([torch.zeros_like(axes[:, :1]), axes], dim=1)  # (n, 1 + dimensions, entries)
    each = {value: factor.repeat_interleave(rows.shape[1], dim=0) for value, factor in factors.items()}
    made = [as_rows(v).unflatten(0, rows.shape[:2]) for v in program.run(rows.reshape(-1, *shape), act=bent_by(each))]
    squares = [(value[:, 1:] - value[:, :1]).square().sum(dim=(1, 2)) for value in made]
    return np.asarray(torch.stack(squares).sum(dim=0).numpy())


def bent_by(factors: Mapping[int, Tensor]) -> Act:
    """Does the steps of a program, with these factors (n, units) in place of activations, by what those make."""

    def act(step: Step, values: Mapping[int, Any], shapes: Mapping[int, tuple[int, ...]]) -> list[Any]:
        if (factor := factors.get(step.results[0])) is None:
            return lifted(step, values, shapes)
        x = values[step.named["self"].index]
        return [x * factor.reshape(x.shape)]

    return act


def slopes_of(net: Network, values: Collection[int]) -> dict[int, Tensor]:
    """The slopes of the pieces of activations, by what they make, of those that are linear on either side of zero.

    Those are left out that have a piece beside zero, or slopes of their own for each unit.
    """
    found = dict[int, Tensor]()
    for step in net.program.steps:
        bends = pieces(step, net.program.constants) if step.results[0] in values else None
        if bends is not None and not any(isinstance(slope, Tensor) or offset for slope, offset in bends):
            found[step.results[0]] = torch.tensor([float(slope) for slope, _ in bends], dtype=torch.float64)
    return found


def factors_of(slopes: Mapping[int, Tensor], choices: Mapping[int, Tensor]) -> dict[int, Tensor]:
    """The slopes (n, units) of the pieces that units are on."""
    return {value: by_piece[choices[value].long()] for value, by_piece in slopes.items() if value in choices}


def _state_error(laws: Sequence[Law]) -> float:
    """At most how far the state is off that a network makes of points of norm 1, with units on any pieces."""
    error, norm = 0.0, SURE
    for law in laws:
        if law.unknown is not None or law.passes:
            return np.inf
        error = float(sum(s.gain[0] * error + s.noise[0] * norm + s.floor[0] for s in (law.whole, law.others)))
        norm = float(law.norm_after(norm, law.whole.size * norm + law.whole.offset))
    return error
