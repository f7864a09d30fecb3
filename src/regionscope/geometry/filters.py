"""Signs at meetings of lines in float64, with a proof of their own.

Bounds that go with all vertices are products of norms, and leave some signs open that rounding does not touch. Before
exact arithmetic has to settle those, each is looked at alone. On the cell where it is asked for, the network is affine:
its values close to the meeting tell the forms of the two lines and of the boundary, and the sign is that of a
determinant (see `rational`). Each part of the network rounds what it makes by no more than its law says (see `laws`),
and what that does to a form is at most its norm times that of the form's derivative with respect to what was made:

    |error of a form| <= sum_k |g_k| made_k.

Derivatives are computed backwards and rounded themselves, by no more than `adjoints` says.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import torch
from torch import Tensor

from regionscope.geometry.adjoints import PLAIN, off_before
from regionscope.geometry.complexes import UNSETTLED, Meetings, Signs
from regionscope.geometry.laws import Law, Way
from regionscope.geometry.modular import Integers
from regionscope.geometry.patterns import Boundaries
from regionscope.geometry.predicates import EPS, FAINT
from regionscope.geometry.rational import CellMaps, Forms
from regionscope.geometry.rounding import SURE
from regionscope.geometry.slopes import FLOATS_AT_ONCE, bent_by, factors_of, slopes_of
from regionscope.machine import points_at_once, portions
from regionscope.tracing.network import Network, as_rows
from regionscope.tracing.program import Program
from regionscope.types import Floats, Indices


@dataclass(frozen=True)
class Bounded:
    """Numbers, and what they may be off by."""

    value: Floats
    error: Floats

    def __add__(self, other: "Bounded") -> "Bounded":
        made = self.value + other.value
        return Bounded(made, SURE * (self.error + other.error + EPS * np.abs(made)))

    def __sub__(self, other: "Bounded") -> "Bounded":
        return self + Bounded(-other.value, other.error)

    def __mul__(self, other: "Bounded") -> "Bounded":
        made = self.value * other.value
        errors = np.abs(self.value) * other.error + np.abs(other.value) * self.error + self.error * other.error
        return Bounded(made, SURE * (errors + EPS * np.abs(made)) + FAINT)

    @property
    def sign(self) -> Signs:
        """UNSETTLED where errors may hide it."""
        with np.errstate(invalid="ignore"):
            return np.where(np.abs(self.value) > self.error, np.sign(self.value), UNSETTLED).astype(np.int8)


POINTS = 3  # that tell a map on a plane
Coefficients = tuple[Bounded, Bounded, Bounded]  # of affine forms close to meetings: constant and slopes


class Filter:
    """Proves signs at meetings of lines in cells of a network, as far as float64 does."""

    def __init__(self, net: Network, way: Way, boundaries: Sequence[Boundaries]) -> None:
        self.net, self.way = net, way
        self.places = {b.site.entry: number for number, b in enumerate(boundaries)}
        self.slopes = slopes_of(net, {b.site.exit for b in boundaries})
        known = [self._knows(part, law) for part, law in zip(way.parts, way.laws, strict=True)]
        self.depth = known.index(False) if False in known else len(known)

    def _knows(self, part: Program, law: Law) -> bool:
        """Whether it is known how a part rounds, and what its derivatives are."""
        plain = all(step.name in PLAIN or step.results[0] in self.slopes for step in part.steps)
        return plain and law.unknown is None and not law.passes

    @torch.enable_grad()
    def signs(self, maps: CellMaps, meetings: Meetings, target: Forms) -> Signs:
        """The signs of forms at meetings; UNSETTLED where they are not proved."""
        forms, signs = [*meetings.forms, target], np.full(len(target), UNSETTLED, np.int8)
        for some, sites in self._portions(maps, forms):
            first, second, third = self._coefficients(maps, meetings[some], [form[some] for form in forms], sites)
            signs[some] = _sign_where_two_vanish(first, second, third)
        return signs

    @torch.enable_grad()
    def distances(self, maps: CellMaps, meetings: Meetings) -> Floats:
        """At most how far meetings are from what they are near to, along both axes, (n, 2); infinite if not proved."""
        far = np.full((len(meetings.cell), 2), np.inf)
        for some, sites in self._portions(maps, meetings.forms):
            asked = meetings[some]
            first, second = self._coefficients(maps, asked, asked.forms, sites)
            far[some] = _distance_where_both_vanish(first, second)
        return far

    def _portions(self, maps: CellMaps, forms: Sequence[Forms]) -> Iterator[tuple[Indices, Indices]]:
        """Which rows of forms, with a unit's among them, to look at together, of those it can, and their sites."""
        sites = np.stack([self._sites_of(form) for form in forms])
        able = np.flatnonzero((sites < self.depth).all(axis=0) & (sites >= 0).any(axis=0))
        if maps.frames is None:
            return
        for part in portions(len(able), points_at_once(4 * POINTS * self.net.program.entries, floats=FLOATS_AT_ONCE)):
            yield able[part], sites[:, able[part]]

    def _sites_of(self, forms: Forms) -> Indices:
        """The number of the site of each form; -1 for a line, and the largest for what is not known here."""
        value, _, rival = forms.places.T
        numbers = np.array([self.places.get(v, len(self.places)) for v in value.tolist()])
        return np.where(value < 0, -1, np.where(rival < 0, numbers, len(self.places)))

    def _coefficients(
        self, maps: CellMaps, asked: Meetings, forms: Sequence[Forms], sites: Indices
    ) -> list[Coefficients]:
        """Constants and slopes of up to three forms, in coordinates from where each is asked for."""
        assert maps.frames is not None
        origin, axes = maps.frames(asked.cell)
        points, error = _points_around(origin, axes, asked.near)
        choices = {value: chosen.repeat(POINTS, 1) for value, chosen in maps.choices(asked.cell).items()}
        states = self._states(points, factors_of(self.slopes, choices), int(sites.max()))
        norms = np.stack([_norms(state) for state in states])  # (states, points, n)
        values, towards = _values(states, forms, sites)  # (forms, points, n)
        errors = np.einsum("mjn,min->jin", self._sizes(states, towards, sites), self._made(norms, error))
        errors = SURE * (errors + self._made_last(norms, forms, sites))
        found = list[Coefficients]()
        for form, value, off in zip(forms, values, errors, strict=True):
            at = [Bounded(value[i], off[i]) for i in range(POINTS)]
            made = (at[0] - Bounded(form.levels, np.zeros(len(form))), at[1] - at[0], at[2] - at[0])
            found.append(_scaled(_with_lines(made, form, asked)))
        return found

    def _states(self, points: Tensor, factors: Mapping[int, Tensor], last: int) -> list[list[Tensor]]:
        """The points, and what the network makes of them up to each site in turn."""
        states, known = [[points.requires_grad_()]], tuple[int, ...]([0])
        for part in self.way.parts[: last + 1]:
            given = {v: rows.reshape(-1, *part.shapes[v]) for v, rows in zip(known, states[-1], strict=True)}
            states.append([as_rows(value) for value in part.resume(given, act=bent_by(factors))])
            known = part.outputs
        return states

    def _made(self, norms: Floats, error: Floats) -> Floats:
        """At most what each state is off by when it is made, (states, points, n)."""
        made = [np.broadcast_to(error, norms[0].shape)]
        for law, norm in zip(self.way.laws, norms[:-1], strict=False):
            noise, floor = (law.whole.noise + law.others.noise)[0], (law.whole.floor + law.others.floor)[0]
            made.append(noise * SURE * norm + floor + FAINT)
        return np.stack(made)

    def _made_last(self, norms: Floats, forms: Sequence[Forms], sites: Indices) -> Floats:
        """The same of the units themselves that forms are of, (forms, points, n)."""
        made = np.zeros((len(forms), *norms.shape[1:]))
        for j, k in np.ndindex(len(forms), len(norms) - 1):
            mine, law = np.flatnonzero(sites[j] == k), self.way.laws[k]
            spread = law.row.noise[0] * SURE * norms[k][:, mine] + law.row.floor[0] + FAINT
            made[j][:, mine] = law.rows[forms[j].places[mine, 1]] * spread
        return made

    def _sizes(self, states: Sequence[Sequence[Tensor]], towards: Tensor, sites: Indices) -> Floats:
        """At most the norms of the derivatives of forms with respect to the states before their sites,
        (states, forms, n)."""
        taken = [value for state in states for value in state]
        found = iter(torch.autograd.grad(towards, taken, materialize_grads=True))
        norms = [_norms([next(found) for _ in state])[: len(sites)] for state in states]
        sizes, off = [np.zeros_like(norms[-1])], np.zeros_like(norms[-1])
        for k in reversed(range(len(states) - 1)):
            off = off_before(self.way.parts[k], self.way.laws[k], off, norms[k + 1])
            sizes.append(np.where(sites >= k, norms[k] + off, 0.0))
        return np.stack(sizes[::-1])


def _points_around(origin: Tensor, axes: Tensor, near: Floats) -> tuple[Tensor, Floats]:
    """Points at coordinates, and one step along each of two axes from there, the last maybe again where it began.

    (3 n, entries), and what they are off by, (n,).
    """
    along = torch.from_numpy(near[:, : axes.shape[1]])[:, :, None] * axes
    at = origin + along.sum(dim=1)
    steps = [at, *(at + axes[:, i] for i in range(axes.shape[1])), at]
    size = origin.norm(dim=1) + along.norm(dim=2).sum(dim=1) + axes.norm(dim=2).sum(dim=1)
    return torch.cat(steps[:POINTS]), 8 * EPS * size.numpy()


def _norms(state: Sequence[Tensor]) -> Floats:
    """Of all that is in each row (3 n) together, (3, n)."""
    squares = sum((rows.detach().square().sum(dim=1) for rows in state), torch.zeros(len(state[0])))
    return np.asarray(squares.sqrt().reshape(POINTS, -1).numpy())


def _values(states: Sequence[Sequence[Tensor]], forms: Sequence[Forms], sites: Indices) -> tuple[Floats, Tensor]:
    """Forms at points, without their levels, (forms, points, n); and a sum whose derivatives are theirs.

    The derivatives of the first form are those at the first points, and so on: they are the same at all three.
    """
    values, total = np.zeros((len(forms), POINTS, sites.shape[1])), torch.zeros((), dtype=torch.float64)
    for j, k in np.ndindex(len(forms), len(states) - 1):
        mine = np.flatnonzero(sites[j] == k)
        entries = states[k + 1][0].unflatten(0, (POINTS, -1))[:, mine, forms[j].places[mine, 1]]
        values[j][:, mine] = entries.detach().numpy()
        total = total + entries[j].sum()
    return values, total


def _with_lines(made: Coefficients, form: Forms, asked: Meetings) -> Coefficients:
    """Coefficients with those of lines in place of some."""
    mine = np.flatnonzero(form.places[:, 0] < 0)
    if not len(mine):
        return made
    used, place = np.unique(form.places[mine, 1], return_inverse=True)
    exact = np.array([[float(number) for number in _shares(line)] for line in asked.lines[used]])
    c, a, b = (Bounded(number, EPS * np.abs(number)) for number in exact[place].T)
    u, v = (Bounded(each, np.zeros(len(mine))) for each in (asked.near[mine, 0], asked.near[mine, 1]))
    for part, line in zip(made, (c + a * u + b * v, a, b), strict=True):
        part.value[mine], part.error[mine] = line.value, line.error
    return made


def _shares(line: Integers) -> list[Fraction]:
    """Constant and slopes of a line, given its values at (0, 0), (1, 0) and (0, 1), of the largest of them."""
    numbers = [int(line[0]), int(line[1] - line[0]), int(line[2] - line[0])]
    return [Fraction(number, max(1, *(abs(n) for n in numbers))) for number in numbers]


def _scaled(form: Coefficients) -> Coefficients:
    """The same form times a power of two each, so that no product is too large or too small."""
    _, power = np.frexp(np.max([np.abs(part.value) for part in form], axis=0))
    constant, *slopes = (Bounded(np.ldexp(p.value, -power), np.ldexp(p.error, -power) + FAINT) for p in form)
    return constant, slopes[0], slopes[1]


def _sign_where_two_vanish(first: Coefficients, second: Coefficients, third: Coefficients) -> Signs:
    """The sign of the third form where the two others vanish; UNSETTLED where that is not sure."""
    (c, a, b), (d, e, f), (g, h, i) = first, second, third
    crossing = a * f - b * e
    product = g * crossing - h * (c * f - b * d) + i * (c * e - a * d)
    sure = (crossing.sign != UNSETTLED) & (product.sign != UNSETTLED)
    return np.where(sure, product.sign * crossing.sign, UNSETTLED).astype(np.int8)


def _distance_where_both_vanish(first: Coefficients, second: Coefficients) -> Floats:
    """At most how far from zero two forms vanish together, along both axes, (n, 2); infinite where that is not sure."""
    (c, a, b), (d, e, f) = first, second
    crossing = a * f - b * e
    least = np.abs(crossing.value) - crossing.error
    most = [np.abs(part.value) + part.error for part in (b * d - c * f, c * e - a * d)]
    with np.errstate(all="ignore"):
        return np.where(least > 0, SURE * np.array(most) / least, np.inf).T
