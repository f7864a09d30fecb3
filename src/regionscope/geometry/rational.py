"""Signs in exact arithmetic: a network modulo primes.

The network's own operations compute with remainders (see `modular`), from which the true numerators follow: how many
primes are enough is known from the norms of the network (see `laws`) and from the fractions that its numbers are
multiples of (see `grids`).

On a cell the network is affine. With the piece of every activation given, its values at three points of the plane tell
any unit as an affine form, and a vertex, where two such forms vanish, need never be computed: the sign of a third form
there is that of a determinant.

The batch norm of a trained network divides by a square root. Its factor and shift, rounded to float64, are taken to be
the network's own: what is proved is true of that network.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regionscope.geometry.grids import (
    AVERAGES,
    DIVISIONS,
    INTERPOLATIONS,
    PRODUCTS,
    Grid,
    Inexact,
    Known,
    Shapes,
    grid_after,
    shares,
    windows,
)
from regionscope.geometry.modular import (
    LARGEST,
    Dyadics,
    Integers,
    integers_with,
    modulo,
    primes_below,
    remainder,
    remainders,
)
from regionscope.geometry.pieces import RELU, Pieces, better, pieces
from regionscope.geometry.rounding import NORMS, NUMBERS, norm_constants
from regionscope.machine import points_at_once
from regionscope.tracing.activations import PAIRWISE
from regionscope.tracing.lifting import lifted, with_dimensions
from regionscope.tracing.network import Site, as_rows
from regionscope.tracing.program import Program
from regionscope.tracing.steps import Step, Value
from regionscope.types import Floats, Indices

aten = torch.ops.aten
REMEMBERED = 1 << 25  # remainders of constants that are kept, as the same primes come again,
IN_FLOAT32 = 1 << 24  # as float32, which holds integers up to this


@dataclass(frozen=True)
class _Modular:
    """Does the steps of a program modulo p; `choices` says which piece (n, *shape) what leaves each site is on."""

    p: int
    constants: Known  # as they are
    norms: Mapping[int, tuple[Dyadics, Dyadics]]  # factor and shift of each channel, by what batch norms make
    choices: Mapping[int, Tensor]

    def __call__(self, step: Step, values: Known, shapes: Shapes) -> list[Any]:
        name, rest = step.name, [None] * (len(step.results) - 1)
        if name in PAIRWISE:
            return [better(step, self.choices[step.results[0]], values, shapes)]
        if (found := pieces(step, self.constants)) is not None:
            return [self.bent(step, values, found)]
        if name in NORMS:
            x = values[step.named["input"].index]
            factor, shift = (numbers.modulo(self.p) for numbers in self.norms[step.results[0]])
            shape = (-1, *[1] * (x.dim() - 3))
            return [modulo(modulo(x * factor.reshape(shape), self.p) + shift.reshape(shape), self.p), *rest]
        if name in AVERAGES:
            return [self.averaged(step, values, shapes)]
        if name in INTERPOLATIONS:
            x, weights = values[step.named["self"].index], remainders(shares(step, shapes), self.p)
            made = modulo(x.reshape(-1, len(weights)) @ weights, self.p)
            return [made.reshape(len(x), *shapes[step.results[0]])]
        if name in DIVISIONS:
            step, values = self.inverted(step, values)
        if name == "lerp":
            return [self.mixed(step, values, shapes)]
        return [modulo(made, self.p) for made in lifted(*self.prepared(step, values), shapes)]

    def prepared(self, step: Step, values: Known) -> tuple[Step, Known]:
        """The step with its plain numbers modulo p; a factor of a sum of products goes into one of those."""
        given, changed = step.named, dict[str, Any]()
        factors = PRODUCTS.get(step.name, ())
        if factors and (factor := given.get("alpha", given.get("value", 1))) != 1:
            fixed = next(name for name in factors if given[name].index in self.constants)
            scaled = values[given[fixed].index] * remainder(factor, self.p)
            values = {**values, -1: modulo(scaled, self.p)}
            changed = {fixed: Value(-1)} | {name: 1 for name in ("alpha", "value") if name in given}
        for name in NUMBERS:
            if isinstance(number := changed.get(name, given.get(name)), int | float):
                changed[name] = float(remainder(number, self.p))
        return (replace(step, arguments=(), options=given | changed) if changed else step), values

    def inverted(self, step: Step, values: Known) -> tuple[Step, Known]:
        """Division by constants as a product with their inverses."""
        by, first = step.named[DIVISIONS[step.name]], step.named["self"]
        numbers = values[by.index] if isinstance(by, Value) else self.number(by)
        inverses = [float(pow(int(n), -1, self.p)) for n in numbers.flatten().tolist()]
        inverse = torch.tensor(inverses, dtype=torch.float64).reshape(numbers.shape)
        if step.name == "addcdiv":
            inverse = modulo(inverse * remainder(step.named.get("value", 1), self.p), self.p)
            product = Step(aten.addcmul.default, (first, step.named["tensor1"], Value(-1)), {}, step.results)
        else:
            product = Step(aten.mul.Tensor, (first, Value(-1)), {}, step.results)
        return product, {**values, -1: inverse}

    def mixed(self, step: Step, values: Known, shapes: Shapes) -> Tensor:
        """(1 - w) a + w b."""
        w, parts = step.named["weight"], []
        weight = values[w.index] if isinstance(w, Value) else self.number(w)
        for name, factor in (("self", modulo(self.p + 1 - weight, self.p)), ("end", weight)):
            product = Step(aten.mul.Tensor, (step.named[name], Value(-1)), {}, step.results)
            part = modulo(lifted(product, {**values, -1: factor}, shapes)[0], self.p)
            live = step.named[name].index in shapes
            parts.append(with_dimensions(part, len(shapes[step.results[0]])) if live else part)
        return modulo(parts[0] + parts[1], self.p)

    def number(self, plain: float) -> Tensor:
        """A plain number modulo p."""
        return torch.tensor(remainder(plain, self.p), dtype=torch.float64)

    def bent(self, step: Step, values: Known, found: Pieces) -> Tensor:
        """Each unit on the piece that was chosen."""
        x: Tensor = values[step.named["self"].index]
        chosen = self.choices[step.results[0]].reshape(x.shape) if len(found) > 1 else torch.zeros_like(x)
        if found == RELU:
            return x * chosen
        result = torch.zeros_like(x)
        for number, (slope, offset) in enumerate(found):
            factor = remainders(slope, self.p) if isinstance(slope, Tensor) else remainder(slope, self.p)
            result = torch.where(chosen == number, x * factor + remainder(offset, self.p), result)
        return modulo(result, self.p)

    def averaged(self, step: Step, values: Known, shapes: Shapes) -> Tensor:
        """Sums over windows, divided by the sizes of these."""
        members, divisors = windows(step, shapes)
        x, shape = values[step.named["self"].index], shapes[step.results[0]]
        if members is None:
            sums = lifted(_as_sum(step), values, shapes)[0].reshape(len(x), -1)
        else:
            sums = (x.reshape(-1, len(members)) @ members).reshape(len(x), -1)
        inverses = torch.tensor([float(pow(d, -1, self.p)) for d in divisors], dtype=torch.float64)
        sums = modulo(sums, self.p).reshape(len(x), -1, len(divisors))
        return modulo(sums * inverses, self.p).reshape(len(x), *shape)


def _as_sum(step: Step) -> Step:
    operation = aten.sum.dim_IntList if step.operation._schema.overload_name else aten.sum.default
    return replace(step, operation=operation)


def _terms_of(step: Step, shapes: Shapes, constants: Known) -> int:
    """At most how many products a step adds up."""
    sizes = [
        constants[a.index].shape if a.index in constants else shapes[a.index]
        for a in (step.named[name] for name in PRODUCTS.get(step.name, ()))
        if isinstance(a, Value)
    ]
    if step.name in INTERPOLATIONS:
        return 1 << INTERPOLATIONS[step.name]
    if step.name in ("mul", "addcmul", "addr") or not sizes:
        return 1
    if step.name == "convolution":
        return math.prod(sizes[1]) // (1 if step.named["transposed"] else sizes[1][0])
    return int(sizes[0][-1] if step.name != "addbmm" else math.prod(sizes[0]))


@dataclass(frozen=True)
class Forms:
    """Numbers `value[entry] - value[rival] - level` of a network, (n, 3) integers and (n,) levels.

    Without a rival that is -1. A value of -1 stands for no value of the network but for one of the given lines.
    """

    places: Indices
    levels: Floats

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, chosen: Any) -> "Forms":
        return Forms(self.places[chosen], self.levels[chosen])

    @staticmethod
    def joined(parts: "Sequence[Forms]") -> "Forms":
        return Forms(np.concatenate([p.places for p in parts]), np.concatenate([p.levels for p in parts]))


@dataclass(frozen=True)
class CellMaps:
    """Cells whose maps are asked for: points that tell them, and the pieces that all units are on."""

    points: Callable[[Indices, int], Tensor]  # of these cells modulo p: (cells, points, *input_shape)
    grid: Callable[[], Grid]  # that holds the points
    choices: Callable[[Indices], dict[int, Tensor]]  # value that leaves a site -> (cells, units)
    # origins and axes of coordinates in float64, (cells, entries) and (cells, dimensions, entries); None if not known
    frames: Callable[[Indices], tuple[Tensor, Tensor]] | None = None


@dataclass(frozen=True)
class Exact:
    """A frozen network in exact arithmetic. `sizes` bounds the values whose forms may be asked for."""

    program: Program
    sizes: Mapping[int, float]

    @cached_property
    def constants(self) -> dict[int, Any]:
        return self.program.constants

    @cached_property
    def _analysis(self) -> tuple[dict[int, Grid], str | None]:
        """The grid of every value that can be had exactly, the input's apart, and what the first one else is for."""
        grids, obstacle = {0: Grid()}, None
        for step in self.program.steps:
            if not step.used & self.program.shapes.keys() <= grids.keys():  # made of values that cannot be had
                continue
            try:
                grid = grid_after(step, grids, self.constants, self.program.shapes)
            except Inexact as error:
                obstacle = obstacle or str(error)
                continue
            grids.update(dict.fromkeys(step.results, grid))
        return grids, obstacle

    def has(self, value: int) -> bool:
        """Whether this value of the network can be had exactly."""
        return value in self._analysis[0]

    @property
    def obstacle(self) -> str | None:
        """What stands in the way of exact arithmetic, if anything does."""
        return self._analysis[1]

    def denominator(self, value: int, points: Grid) -> int:
        """What makes all numbers of this value at points of a grid integers, as a factor."""
        return self._analysis[0][value].product(points).denominator

    @cached_property
    def largest_modulus(self) -> int:
        """Primes below this are small enough for all sums."""
        most = max((_terms_of(s, self.program.shapes, self.constants) for s in self.program.steps), default=1)
        return math.isqrt(LARGEST // (most + 1))

    @cached_property
    def work(self) -> int:
        """The number of products at one point."""
        shapes = self.program.shapes
        return sum(
            math.prod(shapes[step.results[0]]) * _terms_of(step, shapes, self.constants) for step in self.program.steps
        )

    def enough(self, values: Sequence[int], points: Grid) -> list[int] | None:
        """Primes whose product is larger than twice every numerator; None if these values cannot be had exactly."""
        grids = self._analysis[0]
        if any(v not in grids or not math.isfinite(self.sizes.get(v, math.inf)) for v in values):
            return None
        bits = [math.log2(max(self.sizes[v], 1e-300)) + self.denominator(v, points).bit_length() for v in values]
        found, total = list[int](), 0.0
        for p in primes_below(self.largest_modulus):
            found.append(p)
            total += math.log2(p)
            if total > max(bits, default=0.0) + 4:
                return found
        return None

    def signs(
        self, cells: CellMaps, cell: Indices, meeting: Sequence[Forms], target: Forms, lines: Integers,
        moduli: Sequence[int],
    ) -> NDArray[np.int8]:  # fmt: skip
        """The sign of each target form where two forms vanish, all of them on one cell; 2 if those are parallel.

        `lines` (m, 3) are lines of the plane, by their values at the three points that tell a map.
        """
        (c, a, b), (d, e, f), (g, h, i) = self.coefficients(cells, cell, [*meeting, target], lines, moduli)
        crossing = a * f - b * e
        product = g * crossing - h * (c * f - b * d) + i * (c * e - a * d)
        return np.asarray(np.where(crossing == 0, 2, _sign(product) * _sign(crossing)), np.int8)

    def places(
        self, cells: CellMaps, cell: Indices, meeting: Sequence[Forms], lines: Integers, moduli: Sequence[int]
    ) -> Floats:
        """Where two forms vanish (n, 2), rounded once; NaN if they are parallel."""
        (c, a, b), (d, e, f) = self.coefficients(cells, cell, meeting, lines, moduli)
        crossing = a * f - b * e
        found = np.full((len(cell), 2), np.nan)
        proper = np.flatnonzero(crossing != 0)
        for k, product in enumerate((b * d - c * f, c * e - a * d)):
            found[proper, k] = product[proper] / crossing[proper]  # of integers, as long as they may be
        return found

    def coefficients(
        self, cells: CellMaps, cell: Indices, forms: Sequence[Forms], lines: Integers, moduli: Sequence[int]
    ) -> list[tuple[Integers, Integers, Integers]]:
        """Constant and slopes of forms on the same cells, times a positive integer each."""
        joined = Forms.joined(forms)
        numbers = self.numerators(cells, np.tile(cell, len(forms)), joined, moduli)
        mine = joined.places[:, 0] < 0
        numbers[mine] = lines[joined.places[mine, 1]]
        return [_coefficients(part) for part in np.split(numbers, len(forms))]

    def numerators(self, cells: CellMaps, cell: Indices, forms: Forms, moduli: Sequence[int]) -> Integers:
        """Forms at the points that tell a map, times a positive integer each, (n, 3); a line has two, and one again."""
        residues = self.residues(cells, cell, forms, moduli)
        result = np.zeros((len(forms), 3), object)
        for v in np.unique(forms.places[forms.places[:, 0] >= 0, 0]):
            mine = np.flatnonzero(forms.places[:, 0] == v)
            scale = self.denominator(int(v), cells.grid())
            busy = mine[residues[:, mine].any(axis=(0, 2)) | (forms.levels[mine] != 0)]  # others vanish on the cell
            scaled = [residues[i][busy].astype(object) * (scale % p) % p for i, p in enumerate(moduli)]
            found = integers_with(np.stack(scaled), moduli) if len(busy) else np.zeros((0, residues.shape[2]), object)
            for level in np.unique(forms.levels[busy]):
                there = forms.levels[busy] == level
                exact = Fraction(float(level))
                found[there] = found[there] * exact.denominator - exact.numerator * scale
            result[busy, : found.shape[1]] = found
            if found.shape[1] == 2:
                result[busy, 2] = found[:, 0]
        return result

    def residues(self, cells: CellMaps, cell: Indices, forms: Forms, moduli: Sequence[int]) -> Indices:
        """Forms without their levels modulo all primes, (primes, n, points)."""
        values = [int(v) for v in np.unique(forms.places[:, 0]) if v >= 0]
        program = self.program.pruned(values)
        used, place = np.unique(cell, return_inverse=True)
        made: list[Indices] = []
        for p in moduli:
            rows: Indices | None = None
            for start in range(0, len(used), self.at_once):
                part = used[start : start + self.at_once]
                x = cells.points(part, p)
                n, points = x.shape[:2]
                choices = {v: c.repeat_interleave(points, dim=0) for v, c in cells.choices(part).items()}
                outputs = self.resumed(program, {0: x.flatten(0, 1)[:, None]}, choices, p)
                rows = np.zeros((len(forms), points), np.int64) if rows is None else rows
                for v, output in zip(values, outputs, strict=True):
                    mine = (forms.places[:, 0] == v) & (place >= start) & (place < start + n)
                    numbers, at = output.reshape(n, points, -1).numpy(), place[mine] - start
                    _, entry, rival = forms.places[mine].T
                    taken = numbers[at, :, entry] - np.where(rival[:, None] >= 0, numbers[at, :, rival], 0)
                    rows[mine] = taken.astype(np.int64) % p
            assert rows is not None
            made.append(rows)
        return np.stack(made)

    def resumed(
        self, part: Program, known: Mapping[int, Tensor], choices: Mapping[int, Tensor], p: int
    ) -> list[Tensor]:
        """The outputs of a part of the program modulo p, given what it starts from and the piece of every unit."""
        constants = self._constants(part, p)
        return part.resume({**known, **constants}, act=_Modular(p, self.constants, self._norms, choices))

    @property
    def at_once(self) -> int:
        """How many cells are computed together, each at three points, with the pieces of all units there."""
        return points_at_once(3 * sum(math.prod(self.program.shapes[value]) for value in self.sizes))

    def pieces(self, points: Callable[[int], Tensor], grid: Grid, sites: Sequence[Site]) -> dict[int, Any] | None:
        """The piece of every unit at points, given modulo p: value that leaves a site -> (n, units); or None."""
        moduli = self.enough([site.entry for site in sites], grid)
        if moduli is None:
            return None
        *parts, _ = replace(self.program, outputs=()).segments([site.entry for site in sites])
        known: list[dict[int, Any]] = [{0: points(p)[:, None]} for p in moduli]
        choices: dict[int, Tensor] = {}
        for site, part in zip(sites, parts, strict=True):
            for i, p in enumerate(moduli):
                known[i] = dict(zip(part.outputs, self.resumed(part, known[i], choices, p), strict=True))
            scale = self.denominator(site.entry, grid)
            residues = [as_rows(k[site.entry]).long().numpy().astype(object) * (scale % p) % p
                        for k, p in zip(known, moduli, strict=True)]  # fmt: skip
            numbers = integers_with(np.stack(residues), moduli)
            above = sum((numbers > Fraction(level) * scale).astype(np.int32) for level in site.breakpoints)
            choices[site.exit] = torch.from_numpy(above)
        return {value: pieces.numpy() for value, pieces in choices.items()}

    @cached_property
    def _dyadics(self) -> dict[int, Dyadics]:
        tensors = {i: c for i, c in self.constants.items() if isinstance(c, Tensor) and c.is_floating_point()}
        return {i: Dyadics.of(c) for i, c in tensors.items()}

    @cached_property
    def _norms(self) -> dict[int, tuple[Dyadics, Dyadics]]:
        """Factor and shift of batch norms that can be had exactly."""
        found = {}
        for step in self.program.steps:
            if step.name in NORMS and self.has(step.results[0]):
                factor, shift = norm_constants(step, self.constants)
                found[step.results[0]] = Dyadics.of(factor), Dyadics.of(shift)
        return found

    @cached_property
    def _remainders(self) -> dict[tuple[int, int], Tensor]:
        """Constants modulo primes that were asked for, by their number and the prime."""
        return {}

    @cached_property
    def _primes_remembered(self) -> int:
        """Of how many primes there is room for the remainders of all constants."""
        return REMEMBERED // max(1, sum(d.integers.size for d in self._dyadics.values()))

    def _constants(self, program: Program, p: int) -> dict[int, Tensor]:
        return {i: self._constant(i, p) for i in program.constants if i in self._dyadics}

    def _constant(self, number: int, p: int) -> Tensor:
        known, constants = self._remainders, len(self._dyadics)
        if (number, p) in known:
            return known[number, p].double()
        found = self._dyadics[number].modulo(p)
        if p < IN_FLOAT32 and len(known) < self._primes_remembered * constants:
            known[number, p] = found.float()
        return found


def _coefficients(values: Integers) -> tuple[Integers, Integers, Integers]:
    """Constant and slopes of affine forms from their values at (0, 0), (1, 0) and (0, 1)."""
    return values[:, 0], values[:, 1] - values[:, 0], values[:, 2] - values[:, 0]


def _sign(numbers: Integers) -> Indices:
    return (numbers > 0).astype(np.int64) - (numbers < 0).astype(np.int64)
