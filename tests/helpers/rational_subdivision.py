"""Exact linear regions in rational arithmetic: an oracle that shares nothing with the library, not even floats.

A convex piece of a line or plane is the loop of its corners; a segment is a loop of two. On it every value of the
network is an affine form of the coordinates, so a unit cuts it where its form passes a breakpoint, and a competitor of
a maxout wins on the intersection of half-planes where it beats the others.

What counts as a cell: all points on the same pieces of all units, with the same winners of all maxouts. A unit that
stays at a breakpoint is below it, the first of several competitors that are one function is the one that wins; so
neither makes a boundary, nor do losers that change their order.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import TypeAlias

Vector: TypeAlias = tuple[Fraction, ...]
Form: TypeAlias = tuple[Fraction, ...]  # c_1 u_1 + ... + c_k u_k + c_0; the constant is last
Loop: TypeAlias = tuple[Vector, ...]
Number: TypeAlias = int | Fraction

ZERO, ONE = Fraction(0), Fraction(1)


# a network: a list of steps; a step reads earlier values by number, 0 is the input and i the result of the i-th step


@dataclass(frozen=True)
class Affine:
    source: int
    weights: tuple[tuple[Number, ...], ...]
    biases: tuple[Number, ...]


@dataclass(frozen=True)
class Bend:
    """An activation; see `graph` for the kinds and what their numbers are."""

    source: int
    kind: str
    numbers: Vector = ()


@dataclass(frozen=True)
class Best:
    """The largest or smallest member of each group of units: maxout, pooling."""

    source: int
    groups: tuple[tuple[int, ...], ...]
    largest: bool = True


@dataclass(frozen=True)
class Versus:
    """Maximum or minimum of two branches, unit by unit."""

    first: int
    second: int
    largest: bool = True


@dataclass(frozen=True)
class Sum:
    """A skip connection."""

    first: int
    second: int


@dataclass(frozen=True)
class Concatenation:
    first: int
    second: int


Step: TypeAlias = Affine | Bend | Best | Versus | Sum | Concatenation
Network: TypeAlias = tuple[Step, ...]


def sources_of(step: Step) -> tuple[int, ...]:
    """The numbers of the values that a step reads."""
    return (step.first, step.second) if isinstance(step, Versus | Sum | Concatenation) else (step.source,)


@dataclass(frozen=True)
class Graph:
    """A piecewise-linear function of one variable: pieces (slope, offset) between the breakpoints."""

    breakpoints: Vector
    pieces: tuple[tuple[Fraction, Fraction], ...]


def graph(step: Bend, unit: int) -> Graph:
    """The function that a unit applies."""
    numbers = step.numbers
    match step.kind:
        case "relu":
            return Graph((ZERO,), ((ZERO, ZERO), (ONE, ZERO)))
        case "abs":
            return Graph((ZERO,), ((-ONE, ZERO), (ONE, ZERO)))
        case "leaky_relu":
            return Graph((ZERO,), ((numbers[0], ZERO), (ONE, ZERO)))
        case "prelu":
            return Graph((ZERO,), ((numbers[unit], ZERO), (ONE, ZERO)))
        case "threshold" | "clamp_min":
            return Graph(numbers, ((ZERO, numbers[0]), (ONE, ZERO)))
        case "clamp_max":
            return Graph(numbers, ((ONE, ZERO), (ZERO, numbers[0])))
        case "hardtanh" | "clamp":
            low, high = numbers
            return Graph(numbers, ((ZERO, low), (ONE, ZERO), (ZERO, high)))
        case "relu6":
            return Graph((ZERO, Fraction(6)), ((ZERO, ZERO), (ONE, ZERO), (ZERO, Fraction(6))))
        case "hardsigmoid":
            return Graph((Fraction(-3), Fraction(3)), ((ZERO, ZERO), (Fraction(1, 6), Fraction(1, 2)), (ZERO, ONE)))
        case "softshrink":
            width = numbers[0]
            return Graph((-width, width), ((ONE, width), (ZERO, ZERO), (ONE, -width)))
    raise ValueError(f"no activation {step.kind!r}")


# convex loops


def height(form: Form, point: Vector) -> Fraction:
    """The value of an affine form at a point."""
    return sum((c * u for c, u in zip(form, point, strict=False) if c), form[-1])


def upper_part(loop: Loop, heights: Sequence[Fraction]) -> Loop:
    """The part of a convex loop where a form with these values at the corners is not negative."""
    kept: list[Vector] = []
    corners = list(zip(loop, heights, strict=True))
    for (p, a), (q, b) in pairwise([*corners, corners[0]]):
        if a >= 0:
            kept.append(p)
        if a * b < 0:
            kept.append(tuple(x + a / (a - b) * (y - x) for x, y in zip(p, q, strict=True)))
    return tuple(dict.fromkeys(kept))  # a segment is cut twice at one place, once on the way back


def sections(loop: Loop, form: Form, levels: Vector) -> Iterator[tuple[int, Loop]]:
    """The parts of a loop where a form is on each piece of a graph, with the number of the piece."""
    for piece, level in enumerate(levels):
        heights = [height(form, corner) - level for corner in loop]
        if max(heights) <= 0:
            yield piece, loop
            return
        if min(heights) < 0:
            yield piece, upper_part(loop, [-h for h in heights])
            loop = upper_part(loop, heights)
    yield len(levels), loop


def shares(loop: Loop, forms: Sequence[Form], largest: bool) -> Iterator[tuple[int, Loop]]:
    """The part of a loop where each form is the largest (smallest), with its first number; none where no area is."""
    sign = 1 if largest else -1
    different = list(dict.fromkeys(forms))
    for form in different:
        won = loop
        for other in different:
            if other == form:
                continue
            lead = difference(form, other)
            heights = [sign * height(lead, corner) for corner in won]
            if max(heights) <= 0:
                break
            won = upper_part(won, heights)
        else:
            yield forms.index(form), won


def size(loop: Loop) -> Fraction:
    """The area of a polygon or the length of a segment of the line."""
    if len(loop[0]) == 1:
        return abs(loop[1][0] - loop[0][0])
    return abs(sum((p[0] * q[1] - p[1] * q[0] for p, q in pairwise([*loop, loop[0]])), ZERO)) / 2


def centre(loop: Loop) -> Vector:
    """The mean of the corners: a point inside."""
    return tuple(sum(coordinates, ZERO) / len(loop) for coordinates in zip(*loop, strict=True))


def difference(a: Form, b: Form) -> Form:
    return tuple(x - y for x, y in zip(a, b, strict=True))


def combination(weights: Sequence[Number], forms: Sequence[Form], constant: Number) -> Form:
    """The weighted sum of forms plus a constant."""
    total = [ZERO] * (len(forms[0]) - 1) + [Fraction(constant)]
    for weight, form in zip(weights, forms, strict=True):
        if weight:
            total = [t + weight * c for t, c in zip(total, form, strict=True)]
    return tuple(total)


def bent(form: Form, slope: Fraction, offset: Fraction) -> Form:
    return (*(slope * c for c in form[:-1]), slope * form[-1] + offset)


# cells


@dataclass(frozen=True)
class Cell:
    """A convex loop of corners on which every value of the network so far is an affine form of the coordinates."""

    corners: Loop
    pattern: tuple[int, ...]  # the piece of every unit, the winner of every group, step by step
    values: tuple[tuple[Form, ...], ...]  # of the input and all steps

    @property
    def outputs(self) -> tuple[Form, ...]:
        return self.values[-1]

    def then(self, forms: Sequence[Form]) -> "Cell":
        """The same cell one step further."""
        return Cell(self.corners, self.pattern, (*self.values, tuple(forms)))


def competitions(cell: Cell, step: Best | Versus) -> list[list[Form]]:
    """The forms that compete for each unit of a result."""
    if isinstance(step, Versus):
        return [list(pair) for pair in zip(cell.values[step.first], cell.values[step.second], strict=True)]
    return [[cell.values[step.source][member] for member in group] for group in step.groups]


def cut_by_bends(cell: Cell, step: Bend) -> list[Cell]:
    """The parts of a cell on which every unit stays on a piece."""
    made = [(cell.corners, cell.pattern, cell.values[0][:0])]
    for unit, form in enumerate(cell.values[step.source]):
        bends = graph(step, unit)
        made = [
            (part, (*pattern, piece), (*forms, bent(form, *bends.pieces[piece])))
            for loop, pattern, forms in made
            for piece, part in sections(loop, form, bends.breakpoints)
        ]
    return [Cell(loop, pattern, (*cell.values, forms)) for loop, pattern, forms in made]


def cut_by_winners(cell: Cell, step: Best | Versus) -> list[Cell]:
    """The parts of a cell on which every competition has one winner."""
    made = [(cell.corners, cell.pattern, cell.values[0][:0])]
    for competitors in competitions(cell, step):
        made = [
            (part, (*pattern, winner), (*forms, competitors[winner]))
            for loop, pattern, forms in made
            for winner, part in shares(loop, competitors, step.largest)
        ]
    return [Cell(loop, pattern, (*cell.values, forms)) for loop, pattern, forms in made]


def after(cell: Cell, step: Step) -> list[Cell]:
    """What becomes of a cell in a step."""
    match step:
        case Affine():
            values = cell.values[step.source]
            rows = zip(step.weights, step.biases, strict=True)
            return [cell.then([combination(row, values, bias) for row, bias in rows])]
        case Sum():
            pairs = zip(cell.values[step.first], cell.values[step.second], strict=True)
            return [cell.then([combination((1, 1), pair, 0) for pair in pairs])]
        case Concatenation():
            return [cell.then(cell.values[step.first] + cell.values[step.second])]
        case Bend():
            return cut_by_bends(cell, step)
        case Best() | Versus():
            return cut_by_winners(cell, step)


def subdivision(network: Network, origin: Vector, axes: Sequence[Vector], corners: Loop) -> list[Cell]:
    """The cells of a network at the points origin + u_1 axes_1 (+ u_2 axes_2), u in the convex loop of corners."""
    inputs = tuple(zip(*axes, origin, strict=True))
    cells = [Cell(corners, (), (inputs,))]
    for step in network:
        cells = [part for cell in cells for part in after(cell, step)]
    return cells


def segment_subdivision(network: Network, start: Vector, end: Vector) -> list[Cell]:
    """The cells on the way from start (u = 0) to end (u = 1), in order."""
    cells = subdivision(network, start, [difference(end, start)], ((ZERO,), (ONE,)))
    return sorted(cells, key=lambda cell: min(cell.corners))


def breakpoints(cells: Sequence[Cell]) -> list[Fraction]:
    """Where one cell of a segment ends and the next begins."""
    return [min(cell.corners)[0] for cell in cells[1:]]
