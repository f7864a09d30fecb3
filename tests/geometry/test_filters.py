"""Signs that float64 proves are those of exact arithmetic, and are most of those that bounds leave open."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import regionscope as rs
from regionscope.geometry import settling
from regionscope.geometry.complexes import UNSETTLED, Complex, Cut, Meetings, Signs, Start
from regionscope.geometry.filters import Bounded, Filter
from regionscope.geometry.laws import route
from regionscope.geometry.patterns import boundaries_of
from regionscope.geometry.predicates import SHIFT
from regionscope.geometry.rational import CellMaps, Exact, Forms
from regionscope.geometry.segments import Segments
from regionscope.geometry.settling import Judge
from regionscope.geometry.subdivision import Subdivision
from regionscope.geometry.sweep import exact
from regionscope.types import Floats, Indices

INPUTS = 6


class Residual(nn.Module):
    """x + what layers make of it."""

    def __init__(self, layers: nn.Module) -> None:
        super().__init__()
        self.layers = layers

    def forward(self, x: Tensor) -> Tensor:
        made: Tensor = x + self.layers(x)
        return made


def dense(*widths: int, activation: type[nn.Module] = nn.ReLU) -> nn.Sequential:
    pairs = [(nn.Linear(a, b), activation()) for a, b in pairwise(widths)]
    return nn.Sequential(*[module for pair in pairs for module in pair][:-1])


def convolutional() -> nn.Sequential:
    block = nn.Sequential(nn.Conv2d(3, 3, 3, padding=1), nn.BatchNorm2d(3), nn.ReLU(), nn.Conv2d(3, 3, 3, padding=1))
    model = nn.Sequential(
        nn.Unflatten(1, (1, 2, 3)), nn.Conv2d(1, 3, 3, padding=1), nn.BatchNorm2d(3), nn.ReLU(), Residual(block),
        nn.ReLU(), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(3, 6), nn.ReLU(), nn.Linear(6, 2),
    )  # fmt: skip
    with torch.no_grad():
        model.train()(torch.randn(64, INPUTS))
    return model.eval()


MODELS = {
    "dense": lambda: dense(INPUTS, 12, 12, 12, 2),
    "leaky": lambda: dense(INPUTS, 12, 12, 12, 2, activation=nn.LeakyReLU),
    "absolute": lambda: nn.Sequential(
        nn.Linear(INPUTS, 8), nn.LeakyReLU(-1.0), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1)
    ),
    "residual": lambda: nn.Sequential(nn.Linear(INPUTS, 8), Residual(dense(8, 8, 8)), nn.ReLU(), nn.Linear(8, 2)),
    "convolutional": convolutional,
}


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest) -> nn.Module:
    torch.manual_seed(0)
    found: nn.Module = MODELS[request.param]()
    return found.double()


@pytest.fixture
def doubtful(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nearly all signs are open."""

    def doubting(start: Callable[[Any], Start]) -> Callable[[Any], Start]:
        return lambda self: replace(s := start(self), error=s.error + 1.0)

    for kind in (Subdivision, Segments):
        monkeypatch.setattr(kind, "start", doubting(kind.start))


@pytest.fixture
def both(doubtful: None, monkeypatch: pytest.MonkeyPatch) -> list[tuple[Signs, Signs]]:
    """The signs that float64 proves, and those of exact arithmetic."""
    found, signs, settled = list[tuple[Signs, Signs]](), Filter.signs, Judge._settled_signs
    proved = list[Signs]()

    def nothing(self: Filter, maps: CellMaps, meetings: Meetings, target: Forms) -> Signs:
        proved.append(signs(self, maps, meetings, target))
        return np.full(len(target), UNSETTLED, np.int8)

    def all_of_them(self: Judge, maps: CellMaps, meetings: Meetings, target: Forms) -> Signs:
        found.append((proved.pop(), settled(self, maps, meetings, target)))
        return found[-1][1]

    monkeypatch.setattr(Filter, "signs", nothing)
    monkeypatch.setattr(Judge, "_settled_signs", all_of_them)
    return found


def compare(both: list[tuple[Signs, Signs]]) -> None:
    proved, true = (np.concatenate(signs) for signs in zip(*both, strict=True))
    sure = proved != UNSETTLED
    assert len(true) > 100 and (true != UNSETTLED).all()
    assert (proved[sure] == true[sure]).all()
    assert sure[true != 0].mean() > 0.98 and not sure[true == 0].any()


def test_signs_on_planes_are_those_of_exact_arithmetic(model: nn.Module, both: list[tuple[Signs, Signs]]) -> None:
    plane = rs.Plane.around(torch.randn(INPUTS).double(), 2.0, generator=torch.Generator().manual_seed(0))
    assert rs.plane_cells(model, plane).exact
    compare(both)


def test_signs_on_lines_are_those_of_exact_arithmetic(model: nn.Module, both: list[tuple[Signs, Signs]]) -> None:
    corners = 4 * torch.randn(12, INPUTS).double()
    for start, end in pairwise(corners):
        assert rs.line_cells(model, start, end).exact
    compare(both)


def test_exact_arithmetic_has_nothing_to_do_in_a_deep_network(doubtful: None, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(1)
    model, plane = dense(INPUTS, *[12] * 8, 2).double(), rs.Plane.around(torch.zeros(INPUTS), 3.0)

    def refuse(*_: object) -> None:
        raise AssertionError("exact arithmetic was asked")

    monkeypatch.setattr(Exact, "signs", refuse)
    assert rs.plane_cells(model, plane).exact


def test_what_has_derivatives_that_are_not_known_is_left_to_exact_arithmetic(both: list[tuple[Signs, Signs]]) -> None:
    torch.manual_seed(2)
    model = dense(INPUTS, 8, 8, 8, 2, activation=nn.Hardtanh).double()  # which has pieces beside zero
    plane = rs.Plane.around(torch.zeros(INPUTS), 2.0, generator=torch.Generator().manual_seed(0))
    assert rs.plane_cells(model, plane).exact
    sites = [signs for signs, _ in both]
    assert any((signs != UNSETTLED).any() for signs in sites)  # of the first layer
    assert any((signs == UNSETTLED).all() for signs in sites)


@dataclass(frozen=True)
class OneCell:
    """A cell of a dense network, a place in it, and the forms of all units."""

    model: nn.Sequential
    net: rs.Network
    origin: Tensor
    axes: Tensor
    near: Floats
    chosen: dict[int, Tensor]
    units: Indices  # (n, 2) the site and the unit of each form

    @staticmethod
    def made() -> "OneCell":
        torch.manual_seed(3)
        model = dense(INPUTS, 9, 9, 9, 2).double()
        net = exact(rs.trace(model, torch.zeros(1, INPUTS).double()))
        origin, axes, near = torch.randn(INPUTS).double(), torch.randn(2, INPUTS).double(), np.array([0.3, -0.7])
        chosen = {site.exit: torch.rand(1, site.units).round().long() for site in net.sites}
        units = np.array([[site, unit] for site in range(3) for unit in range(9)])
        return OneCell(model, net, origin, axes, near, chosen, units)

    @property
    def forms(self) -> Forms:
        places = np.array([[self.net.sites[site].entry, unit, -1] for site, unit in self.units])
        return Forms(places, np.full(len(places), 0.25))

    @property
    def maps(self) -> CellMaps:
        return CellMaps(
            lambda cells, p: pytest.fail("nobody asks for remainders"),
            lambda: pytest.fail("nor for a grid"),
            lambda cells: {value: c.expand(len(cells), -1) for value, c in self.chosen.items()},
            lambda cells: (self.origin.expand(len(cells), -1), self.axes.expand(len(cells), -1, -1)),
        )

    @property
    def filter(self) -> Filter:
        boundaries = boundaries_of(self.net.sites)
        return Filter(self.net, route(self.net, boundaries), boundaries)

    def meetings(self, first: Indices, second: Indices) -> Meetings:
        forms, near = [self.forms[first], self.forms[second]], np.repeat(self.near[None], len(first), axis=0)
        return Meetings(np.zeros(len(first), np.int64), forms, np.zeros((0, 3), object), near)

    def true_forms(self) -> list[list[Fraction]]:
        """Constant and slopes of each form around the place."""
        layers = [m for m in self.model if isinstance(m, nn.Linear)]
        slopes = [self.chosen[site.exit][0].tolist() for site in self.net.sites]
        found = [true_form(layers, slopes, self.origin, self.axes, self.near, *place) for place in self.units.tolist()]
        return [[constant - Fraction(1, 4), *along] for constant, *along in found]


@pytest.mark.parametrize("count", [2, 3])
def test_forms_are_no_farther_off_than_is_said(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against fractions, in one cell of a dense network, with lines through a point and a unit each."""
    cell, scaled = OneCell.made(), "regionscope.geometry.filters._scaled"
    monkeypatch.setattr(scaled, lambda form: form)
    every = np.arange(len(cell.units))
    told = cell.filter._coefficients(
        cell.maps, cell.meetings(every, every), [cell.forms] * count, np.tile(cell.units[:, 0], (count, 1))
    )
    assert len(told) == count
    for form in told:
        for k, true in enumerate(cell.true_forms()):
            for part, number in zip(form, true, strict=True):
                assert abs(Fraction(float(part.value[k])) - number) <= part.error[k] < 1e-11


def test_meetings_are_no_farther_away_than_is_said() -> None:
    """Against fractions: where the lines of any two units meet."""
    cell = OneCell.made()
    first, second = np.triu_indices(len(cell.units), 1)
    told, true, met = cell.filter.distances(cell.maps, cell.meetings(first, second)), cell.true_forms(), 0
    for (c, a, b), (d, e, f), far in zip((true[i] for i in first), (true[j] for j in second), told, strict=True):
        crossing = a * f - b * e
        if crossing == 0:
            assert np.isinf(far).all()
            continue
        met += 1
        for axis, number in enumerate(((b * d - c * f) / crossing, (c * e - a * d) / crossing)):
            assert abs(number) <= Fraction(float(far[axis])) <= abs(number) * (1 + Fraction(1, 1000))
    assert met > 300


@pytest.fixture
def apart(doubtful: None, monkeypatch: pytest.MonkeyPatch) -> list[Floats]:
    """How far vertices are from their places, by exact arithmetic, and how far at most they are said to be, twice."""
    note, seen = settling._note_distances, list[Floats]()

    def compared(cells: Complex, maps: CellMaps, judge: Judge, cut: Cut, vertices: Indices) -> None:
        cut.vertices.doubt[np.ix_(vertices, np.array([SHIFT, SHIFT + 1]))] = np.inf
        note(cells, maps, judge, cut, vertices)
        meetings = cells.corners(vertices, judge.boundaries)
        off = torch.from_numpy(meetings.near - judge.places(maps, meetings))
        assert maps.frames is not None
        axes = maps.frames(meetings.cell)[1]  # in input space
        far = (off[:, : axes.shape[1], None] * axes).sum(dim=1).norm(dim=1).numpy()
        seen.append(np.column_stack([far, cut.vertices.doubt[vertices][:, [SHIFT, SHIFT + 1]]]))

    monkeypatch.setattr(settling, "_displaced", lambda cut, vertices: vertices)
    monkeypatch.setattr(settling, "_note_distances", compared)
    return seen


def check_apart(seen: list[Floats], size: float) -> None:
    far, *told = np.concatenate(seen).T
    assert not np.isnan(far).any()
    for most in told:
        known = np.isfinite(most)  # not at corners
        assert known.sum() > 5 and (far <= most).all() and np.median(most[known]) < 1e-9 * size


def test_vertices_are_no_farther_from_their_places_than_is_said(model: nn.Module, apart: list[Floats]) -> None:
    plane = rs.Plane.around(torch.randn(INPUTS).double(), 8.0, generator=torch.Generator().manual_seed(0))
    assert rs.plane_cells(model, plane).exact
    check_apart(apart, 1.0)


@pytest.mark.parametrize("size", [0.3, 1e3])
def test_breakpoints_are_no_farther_from_their_places_than_is_said(
    size: float, model: nn.Module, apart: list[Floats]
) -> None:
    corners = size * torch.randn(40, INPUTS).double()
    for start, end in pairwise(corners):
        assert rs.line_cells(model, start, end).exact
    check_apart(apart, size)


def test_where_no_unit_makes_a_vertex_nothing_is_said_of_its_distance(monkeypatch: pytest.MonkeyPatch) -> None:
    """As at corners of a domain, also if they are looked at apart from all others."""
    monkeypatch.setattr("regionscope.geometry.filters.FLOATS_AT_ONCE", 1)
    cell = OneCell.made()
    meetings = cell.meetings(np.arange(3), np.arange(3))
    for form in meetings.forms:
        form.places[:2, 0] = -1
    told = cell.filter.distances(cell.maps, meetings[np.arange(2)])
    assert told.shape == (2, 2) and np.isinf(told).all()


def true_form(
    layers: list[nn.Linear], slopes: list[list[int]], origin: Tensor, axes: Tensor, near: Floats, site: int, unit: int
) -> list[Fraction]:
    """Constant and slopes of what enters a unit, around a place."""
    start, u, v = ([Fraction(x) for x in row.tolist()] for row in (origin, *axes))
    s, t = (Fraction(float(x)) for x in near)
    rows = [[x + s * a + t * b for x, a, b in zip(start, u, v, strict=True)], u, v]
    for number in range(site + 1):
        weight = [[Fraction(w) for w in row] for row in layers[number].weight.tolist()]
        bias = [Fraction(b) for b in layers[number].bias.tolist()]
        rows = [[sum((w * x for w, x in zip(line, row, strict=True)), Fraction(0)) for line in weight] for row in rows]
        rows[0] = [x + b for x, b in zip(rows[0], bias, strict=True)]
        if number < site:
            rows = [[x * s for x, s in zip(row, slopes[number], strict=True)] for row in rows]
    return [row[unit] for row in rows]


def test_numbers_are_no_farther_off_than_is_said() -> None:
    random = np.random.default_rng(0)
    a, b, c = (random.normal(size=400) * 10.0 ** random.integers(-9, 9, 400) for _ in range(3))
    x, y, z = (Bounded(numbers, np.zeros(400)) for numbers in (a, b, c))
    made, size = (x + y) * z - x * y, (np.abs(a) + np.abs(b)) * np.abs(c) + np.abs(a * b)
    assert (made.error < 1e-14 * size).all()
    for k in range(400):
        p, q, r = (Fraction(float(numbers[k])) for numbers in (a, b, c))
        assert abs(Fraction(float(made.value[k])) - ((p + q) * r - p * q)) <= made.error[k]
    assert ((x * y - y * x).sign == UNSETTLED).all() and (made.sign[made.error < np.abs(made.value)] != UNSETTLED).all()
