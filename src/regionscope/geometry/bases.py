"""The values at all vertices of a block as sums of few rows: what is linear is done once for all of them.

On a small part of a plane few units of a wide network switch, and all others act as linear maps. So the state at every
vertex v is a sum of rows, weights_i(v) row_i: the origin of the plane, its two axes, and a row for every unit that
switches in the block. Only rows go through the network; the weights of a new row are what its unit adds at each
vertex, relu(z) - slope z, to the linear map that stands for it, with the slope 0, 1/2 or 1 that leaves least to add.
Then signs are looked for: intervals of the weights of neighbouring vertices rule most units out, products of weights
and rows most others, and only those that may switch have values at vertices.

Errors: a linear part that adds `noise` times a norm to an error adds it to each row, so at most noise times
norm(v) = sum_i |weights_i(v)| |row_i| at a vertex; sums of n products are off by n eps times as much (see `rounding`).

Slopes: weights change along the plane at most as fast as their units, so rows tell how steep a unit is, also between
vertices, as long as all units that have no row keep their sign wherever a vertex may truly be and on the way there.
Those that are not proved to do so have a row, even if their weight is zero at every vertex. What rows leave out, as
they are rounded, is not steeper than `blur`, which goes through the network as errors do. A `_Trail` tells where the
block has been, so that `adjoints` can say what errors that were made there do to a unit.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regionscope.geometry.laws import Law, Way
from regionscope.geometry.patterns import Boundaries
from regionscope.geometry.predicates import FAINT, INTERPOLATION, MOST_TURNS
from regionscope.geometry.rounding import SURE, Spread, rounding
from regionscope.geometry.rows import row_portions
from regionscope.machine import points_at_once
from regionscope.tracing.lifting import lifted
from regionscope.tracing.network import Site, as_rows
from regionscope.tracing.program import Program
from regionscope.tracing.steps import Step
from regionscope.types import Bools, Floats, Indices

WIDE = 1 << 12  # floats at a vertex: below that it is cheaper to evaluate every one
ENTRIES_AT_ONCE = 1 << 18  # floats of rows that go through a part of the network together
GROUPS = 64  # of neighbouring vertices, at most, and so many vertices in each at least


def fits(way: Way, boundaries: Sequence[Boundaries]) -> bool:
    """Whether rows can be taken through these sites: ReLUs of a wide network, each followed at once by its part."""
    sites, parts = [b.site for b in boundaries], [*way.parts[1:], way.last]
    widest = max((sum(math.prod(p.shapes[v]) for v in p.outputs) for p in way.parts), default=0)
    return (
        len(sites) > 0
        and widest >= WIDE
        and all(site.kind == "relu" and site.tournament is None for site in sites)
        and all(law.unknown is None for law in way.laws)
        and all(any(s.results[0] == site.exit for s in p.steps) for site, p in zip(sites, parts, strict=True))
    )


@dataclass(frozen=True)
class _Trail:
    """What a block has been through, site by site: the factor of every unit, as float32; at most the norm of the errors
    that were made on the way there from the site before; and of those of units that rest at zero."""

    factors: tuple[Tensor, ...] = ()
    made: tuple[float, ...] = ()
    resting: tuple[float, ...] = ()

    def through(self, bend: "Bend") -> "_Trail":
        """And through one more site."""
        factors = (*self.factors, bend.linear.float())
        return _Trail(factors, (*self.made, bend.made), (*self.resting, bend.asleep))

    def with_factors(self, places: Indices, factors: Floats) -> "_Trail":
        """With other factors of some units (n, 2), by site and number."""
        changed = list(self.factors)
        for site in np.unique(places[:, 0]):
            mine = places[:, 0] == site
            changed[site] = changed[site].clone()
            changed[site][places[mine, 1]] = torch.from_numpy(factors[mine]).float()
        return replace(self, factors=tuple(changed))


@dataclass(frozen=True)
class Basis:
    """Rows (n, entries) of each value that is known, the pre-activations first.

    Row 0 has the weight 1 everywhere. The unit behind row i is the sum of `formulas[i]` times the rows before, of
    which a linear map with `slopes[i]` is taken out; the first `given` rows have none.
    """

    rows: tuple[Tensor, ...]
    formulas: Floats
    slopes: Floats
    steep: Floats  # (n,) at most how fast each weight changes along the plane
    given: int
    loose: Floats  # (n,) at most how steep what the formula of its unit leaves out is
    away: Floats  # (n,) at most how far from the true values those of its unit were at vertices
    blur: float  # at most how steep what rows leave out of the state is
    unclear: Floats  # (units,) and of each unit
    places: Indices  # (n, 2) the number of the site and of the unit behind each row; -1 for none
    trail: _Trail = _Trail()

    @staticmethod
    def of(frame: Tensor) -> "Basis":
        n = len(frame)
        steep, none = np.minimum(np.arange(n), 1.0), np.zeros(n)
        nowhere = np.full((n, 2), -1)
        return Basis((frame,), np.zeros((n, n)), none, steep, n, none, none, 0.0, np.zeros(frame.shape[1]), nowhere)

    def __len__(self) -> int:
        return len(self.slopes)

    @property
    def nbytes(self) -> int:
        return sum(8 * rows.numel() for rows in self.rows) + sum(4 * f.numel() for f in self.trail.factors)

    @cached_property
    def norms(self) -> Floats:
        """Of all rows, at most."""
        squares = sum((rows.square().sum(dim=1) for rows in self.rows), torch.zeros(len(self)).double())
        return np.asarray(squares.sqrt().numpy() * SURE + FAINT)

    @cached_property
    def steepness(self) -> Floats:
        """At most how fast each unit changes along the plane."""
        axes, others = self.rows[0][1 : self.given], self.rows[0][self.given :]
        straight = axes.norm(dim=0) + torch.from_numpy(self.steep[self.given :]) @ others.abs()
        return np.asarray(straight.numpy() * SURE + self.unclear)

    def norm(self, weights: Floats) -> Floats:
        """Of the state at vertices, at most, also of what rounding of each row is a share of."""
        norms = np.empty(len(weights))
        for some in row_portions(*weights.shape):
            norms[some] = np.abs(weights[some]) @ self.norms
        return norms

    def values(self, weights: Floats, units: Indices | None = None) -> Floats:
        """The pre-activations at vertices, of all units or some."""
        rows = self.rows[0] if units is None else self.rows[0][:, units]
        return np.asarray((torch.from_numpy(weights) @ rows).numpy())

    def unsure(self, weights: Floats, errors: Floats, each: Floats) -> tuple[Indices, Bools]:
        """The units that may not have one sign at all vertices, and which of the others are above.

        A value may be off by `errors` (vertices, n) times `each` (n, units), which covers the rounding of sums too.
        """
        groups, rows = _groups(weights[:, 1 : self.given]), self.rows[0].numpy()
        low, high = (np.stack([f(weights[g], axis=0) for g in groups]) for f in (np.min, np.max))
        middle = (low + high) / 2
        wide, largest = high - middle, np.stack([errors[g].max(axis=0) for g in groups])
        away = np.abs(rows)
        off = (wide + rounding(len(self))[0] * (np.abs(middle) + wide)) @ away + largest @ each
        centre = middle @ rows
        above, below = centre > off * SURE, centre < -off * SURE
        for number, group in enumerate(groups):
            some = np.flatnonzero(~(above[number] | below[number]))
            value, error = self.values(weights[group], some), errors[group] @ each[:, some]
            above[number, some], below[number, some] = (value > error).all(axis=0), (value < -error).all(axis=0)
        everywhere = above.all(axis=0)
        return np.flatnonzero(~(everywhere | below.all(axis=0))), everywhere

    def after(self, part: Program, known: Sequence[int], bend: "Bend | None", law: Law | None) -> "Basis":
        """The rows that a part of the network makes of these, which begins with the bend of its first value.

        Without a law nothing is known of how steep they are.
        """
        new = 0 if bend is None else len(bend.units)
        size = len(self) + new
        nothing = [torch.zeros(1, rows.shape[1]).double() for rows in self.rows]
        behind = None if bend is None else bend.site
        fixed = linear_part(part, known, nothing, nothing[0], behind)
        made = [torch.empty(size, rows.shape[1], dtype=torch.float64) for rows in fixed]
        at_once = points_at_once(max(r.shape[1] for r in self.rows), floats=ENTRIES_AT_ONCE)
        for start in range(0, size, at_once):
            end = min(start + at_once, size)
            old = [rows[start:end] for rows in self.rows]
            given = [torch.cat([r, torch.zeros(end - start - len(r), r.shape[1]).double()]) for r in old]
            acted = given[0]
            if bend is not None:
                acted = acted * bend.linear
                new_rows = np.arange(max(start, len(self)), max(end, len(self)))
                acted[new_rows - start, bend.units[new_rows - len(self)]] = 1.0
            for target, rows, constant in zip(made, linear_part(part, known, given, acted, behind), fixed, strict=True):
                torch.sub(rows, constant, out=target[start:end])
                if start == 0:
                    target[0] = rows[0]
        formulas = np.zeros((size, size))
        formulas[: len(self), : len(self)] = self.formulas
        if bend is not None:
            formulas[len(self) :, : len(self)] = self.rows[0][:, bend.units].T.numpy()
        slopes, steep, norms, blur, loose, away = self.slopes, self.steep, self.norms, self.blur, self.loose, self.away
        places, trail = self.places, self.trail
        if bend is not None:
            slopes, norms = np.concatenate([slopes, bend.slopes]), np.concatenate([norms, np.ones(new)])
            steep = np.concatenate([steep, np.maximum(bend.slopes, 1 - bend.slopes) * self.steepness[bend.units]])
            blur += float(self.steepness[bend.resting].sum())
            loose = np.concatenate([loose, self.unclear[bend.units]])
            away = np.concatenate([away, bend.away])
            places = np.concatenate([places, np.stack([np.full(new, len(trail.factors)), bend.units], axis=1)])
            trail = trail.through(bend)

        def left_out(spread: Spread) -> float:
            """Of the rows of an affine map: they are rounded, with its constants, which are taken off."""
            each = (spread.noise[0] + rounding(1)[0] * spread.size) * norms + 2 * spread.floor[0] + FAINT
            return SURE * float(spread.gain[0] * blur + steep @ each)

        unclear, blur = (law.rows * left_out(law.row), left_out(law.state)) if law else (np.full(1, np.inf), np.inf)
        return Basis(tuple(made), formulas, slopes, steep, self.given, loose, away, blur, unclear, places, trail)

    def folded(self, weights: Floats, shift: Floats) -> "tuple[Basis, Indices, Floats]":
        """The same without rows whose units do not switch at these vertices, nor twice `shift` around them; the rows
        that stay; what that moves the state at each vertex by at most, as proof and usually, (vertices, 2)."""
        n, first = len(self), np.abs(self.formulas)
        steepest = self.steep / np.maximum(self.slopes, 1 - self.slopes)  # of units
        over, under = (np.ones(n, bool) for _ in range(2))
        for some in row_portions(*weights.shape):
            unit, scale = weights[some] @ self.formulas.T, np.abs(weights[some]) @ first.T
            moved = self.away + 2 * shift[some, None] * steepest
            margin = (MOST_TURNS * INTERPOLATION + rounding(n)[0]) * scale + moved
            over &= (unit > margin).all(axis=0)
            under &= (unit < -margin).all(axis=0)
        stays = ~(over | under) | (np.arange(n) < self.given)
        kept = np.flatnonzero(stays)
        told = np.zeros((n, len(kept)))  # every row's weight, by those that stay
        told[kept, np.arange(len(kept))] = 1.0
        lost, eps = np.zeros(n), rounding(n)[0]  # at most how steep what that leaves out of a weight is
        for i in np.flatnonzero(~stays):
            told[i] = (np.where(over[i], 1.0, 0.0) - self.slopes[i]) * (self.formulas[i, :i] @ told[:i])
            lost[i] = self.loose[i] + first[i, :i] @ (lost[:i] + eps * np.abs(told[:i]) @ self.steep[kept])
        lost = SURE * (lost + eps * np.abs(told) @ self.steep[kept])  # products with rows are rounded too
        rows = tuple(torch.from_numpy(told.T) @ r for r in self.rows)
        errors, told_norms = np.empty((len(weights), 2)), np.abs(told).T @ self.norms
        for some in row_portions(*weights.shape):
            old, new = weights[some], weights[some][:, kept]
            gone = np.abs(old - new @ told.T) @ self.norms
            rounded = np.abs(old) @ self.norms + np.abs(new) @ told_norms
            errors[some] = gone[:, None] + rounded[:, None] * rounding(2 * n)
        loose, unclear = self.loose[kept] + first[kept] @ lost, self.unclear + lost @ self.rows[0].abs().numpy()
        blur, formulas = self.blur + float(lost @ self.norms), self.formulas[kept] @ told
        slopes, steep, away = self.slopes[kept], self.steep[kept], self.away[kept]
        trail = self.trail.with_factors(self.places[~stays], over[~stays].astype(np.float64))
        places = self.places[kept]
        return Basis(rows, formulas, slopes, steep, self.given, loose, away, blur, unclear, places, trail), kept, errors


@dataclass(frozen=True)
class Bend:
    """A ReLU on a block: the factor that each unit is multiplied by, and the units that are bent, with their slopes
    among those, and the columns of their values.

    Units that are not proved to keep their sign are bent, or `resting` if they are zero at all vertices, with errors of
    at most the norm `asleep`. Values of those that are bent are off by at most `away` (units,).
    """

    site: Site
    linear: Tensor
    units: Indices
    slopes: Floats
    columns: Indices
    resting: Indices
    away: Floats
    asleep: float
    made: float

    @staticmethod
    def of(
        site: Site,
        units: Indices,
        values: Floats,
        above: Bools,
        away: Floats,
        shift: Floats,
        steep: Floats,
        made: float,
    ) -> "Bend":
        """Given the values at all vertices of those units that may switch, and which of the others are above.

        Values may be off by `away` (units,), and by `shift` (vertices,) times `steep` (units,) more on the way to true
        vertices; `made` is the norm of what the state is off by, as this part of the network and its vertices are
        rounded.
        """
        low, high = values.min(axis=0, initial=0.0), values.max(axis=0, initial=0.0)
        over, under = (np.ones(len(units), bool) for _ in range(2))
        for some in row_portions(*values.shape):
            margin = away + shift[some, None] * steep
            over &= (values[some] > margin).all(axis=0)
            under &= (values[some] < -margin).all(axis=0)
        opened = ~(over | under)
        bent, resting = np.flatnonzero(opened & (low < high)), np.flatnonzero(opened & (low == high))
        left = np.stack([high, np.maximum(high, -low) / 2, -low])[:, bent]  # at most, for each slope
        slopes = np.argmin(left, axis=0) / 2
        linear = above.astype(np.float64)
        linear[units] = high > 0
        linear[units[bent]] = slopes
        asleep = float(np.linalg.norm(away[resting])) * SURE
        return Bend(site, torch.from_numpy(linear), units[bent], slopes, bent, units[resting], away[bent], asleep, made)

    def wider(self, weights: Floats, values: Floats) -> Floats:
        """Weights at vertices, with what each bent unit adds to a linear map there, given the values of units."""
        n = weights.shape[1]
        made = np.empty((len(weights), n + len(self.units)))
        for some in row_portions(*made.shape):
            z = values[some][:, self.columns]
            made[some, :n], made[some, n:] = weights[some], np.maximum(z, 0.0) - self.slopes * z
        return made


def linear_part(
    part: Program, known: Sequence[int], given: Sequence[Tensor], acted: Tensor, behind: Site | None
) -> list[Tensor]:
    """What a part makes of rows, if these leave the activation that it begins with."""

    def act(step: Step, values: Mapping[int, Any], shapes: Mapping[int, tuple[int, ...]]) -> list[Any]:
        if behind is not None and step.results[0] == behind.exit:
            return [acted.reshape(len(acted), *shapes[behind.exit])]
        return lifted(step, values, shapes)

    values = {v: rows.reshape(len(rows), *part.shapes[v]) for v, rows in zip(known, given, strict=True)}
    return [as_rows(value) for value in part.resume(values, act=act)]


def _groups(points: Floats) -> list[Indices]:
    """Neighbouring points (n, dimensions), about as many in each group."""
    groups = [np.arange(len(points))]
    while len(groups) < GROUPS and len(points) > 2 * GROUPS * len(groups):
        groups = halves_of(groups, points)
    return groups


def halves_of(groups: Sequence[Indices], points: Floats) -> list[Indices]:
    """Groups of points (n, dimensions), each in two halves along the axis that it is longest in; none is empty."""
    halves = list[Indices]()
    for group in groups:
        along = int(np.argmax(np.ptp(points[group], axis=0)))
        order = group[np.argsort(points[group, along], kind="stable")]
        halves += [half for half in np.array_split(order, 2) if len(half)]
    return halves
