"""The decision boundary: closed forms of degenerate cases, and an oracle in exact arithmetic."""

import math
from collections import defaultdict
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations, pairwise, permutations, product

import numpy as np
import pytest
import torch
from cases import CASES, case
from numpy.typing import NDArray
from torch import Tensor, nn

import regionscope as rs
from regionscope.geometry.plane_cells import DecisionBoundary

Point = tuple[Fraction, Fraction]
Polygon = list[Point]  # corners, counter-clockwise
Map = tuple[Fraction, Fraction, Fraction]  # (a, b, c) for a x + b y + c
NIL = (Fraction(0), Fraction(0), Fraction(0))


# the oracle: cells are cut in rational numbers, and every side of every piece is held against those on the same line


def value(f: Map, p: Point) -> Fraction:
    return f[0] * p[0] + f[1] * p[1] + f[2]


def minus(f: Map, g: Map) -> Map:
    return f[0] - g[0], f[1] - g[1], f[2] - g[2]


def half(polygon: Polygon, f: Map) -> Polygon:
    """The part of a convex polygon on which f is not negative."""
    kept: Polygon = []
    for p, q in zip(polygon, [*polygon[1:], polygon[0]], strict=True):
        u, v = value(f, p), value(f, q)
        if u >= 0:
            kept.append(p)
        if u * v < 0:
            t = u / (u - v)
            kept.append((p[0] + t * (q[0] - p[0]), p[1] + t * (q[1] - p[1])))
    return kept


def halves(polygon: Polygon, f: Map) -> list[Polygon]:
    """The parts of a polygon on which f has one sign."""
    signs = {value(f, p) > 0 for p in polygon if value(f, p) != 0}
    return [polygon] if len(signs) < 2 else [half(polygon, f), half(polygon, minus(NIL, f))]


def centre(polygon: Polygon) -> Point:
    x, y = zip(*polygon, strict=True)
    return sum(x, Fraction(0)) / len(x), sum(y, Fraction(0)) / len(y)


def affine(layer: nn.Linear, maps: list[Map]) -> list[Map]:
    found = []
    for row, shift in zip(layer.weight.tolist(), layer.bias.tolist(), strict=True):
        a, b, c = (sum((Fraction(w) * f[i] for w, f in zip(row, maps, strict=True)), Fraction(0)) for i in range(3))
        found.append((a, b, c + Fraction(shift)))
    return found


def pieces(model: nn.Sequential, radius: int) -> list[tuple[Polygon, list[Map]]]:
    """Convex pieces of a square, with the outputs of a ReLU network of integers on each."""
    one, nil, side = Fraction(1), Fraction(0), Fraction(radius)
    found: list[tuple[Polygon, list[Map]]] = [
        ([(-side, -side), (side, -side), (side, side), (-side, side)], [(one, nil, nil), (nil, one, nil)])
    ]
    for layer in model:
        if isinstance(layer, nn.Linear):
            found = [(polygon, affine(layer, maps)) for polygon, maps in found]
            continue
        for unit in range(len(found[0][1])):
            found = [(part, maps) for polygon, maps in found for part in halves(polygon, maps[unit])]
        found = [(polygon, [f if value(f, centre(polygon)) > 0 else NIL for f in maps]) for polygon, maps in found]
    return found


def decided(model: nn.Sequential, radius: int) -> list[tuple[Polygon, frozenset[int]]]:
    """Convex pieces with the outputs that are largest on each; a single output competes with zero."""
    found = []
    for polygon, outputs in pieces(model, radius):
        maps = outputs if len(outputs) > 1 else [*outputs, NIL]
        parts = [polygon]
        for f, g in combinations(maps, 2):
            parts = [smaller for part in parts for smaller in halves(part, minus(f, g))]
        for part in parts:
            values = [value(f, centre(part)) for f in maps]
            found.append((part, frozenset(i for i, v in enumerate(values) if v == max(values))))
    return found


def exact_length(model: nn.Sequential, radius: int = 1) -> float:
    """The total length of borders between pieces on which different outputs are largest."""
    lines: dict[tuple[Fraction | None, Fraction], list[tuple[Point, Point, bool, frozenset[int]]]] = defaultdict(list)
    for polygon, winners in decided(model, radius):
        for p, q in zip(polygon, [*polygon[1:], polygon[0]], strict=True):
            (x, y), (dx, dy) = p, (q[0] - p[0], q[1] - p[1])
            line = (dy / dx, y - x * dy / dx) if dx else (None, x)
            lines[line].append((min(p, q), max(p, q), p < q, winners))
    total = 0.0
    for sides in lines.values():
        for (a, b, forth, one), (c, d, also_forth, other) in combinations(sides, 2):
            low, high = max(a, c), min(b, d)
            if forth != also_forth and one != other and low < high:
                total += math.hypot(float(high[0] - low[0]), float(high[1] - low[1]))
    return total


def test_the_oracle_knows_the_length_of_a_cross() -> None:
    model = nn.Sequential(nn.Linear(2, 3))
    filled(model, 0, [[1, 0], [0, 1], [-1, -1]], [0, 0, 0])
    assert exact_length(model) == pytest.approx(math.sqrt(2) + 2 * math.hypot(1, 0.5))


# random networks of small integers: most have outputs that tie, coincide or touch somewhere


def filled(model: nn.Sequential, layer: int, weight: list[list[float]], bias: list[float]) -> None:
    linear = model[layer]
    assert isinstance(linear, nn.Linear)
    linear.weight.data, linear.bias.data = torch.tensor(weight).double(), torch.tensor(bias).double()


def integer_network(seed: int) -> nn.Sequential:
    generator = torch.Generator().manual_seed(seed)

    def draw(low: int, high: int, *shape: int) -> Tensor:
        return torch.randint(low, high + 1, shape, generator=generator)

    widths = [2, *draw(1, 4, int(draw(0, 2))).tolist(), int(draw(1, 4))]
    layers: list[nn.Module] = []
    for fan_in, fan_out in pairwise(widths):
        linear = nn.Linear(fan_in, fan_out).double()
        linear.weight.data = draw(-2, 2, fan_out, fan_in).double()
        linear.bias.data = draw(-1, 1, fan_out).double()
        layers += [linear, nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def boundary_of(model: Callable[[Tensor], Tensor], radius: float = 1.0) -> DecisionBoundary:
    plane = rs.Plane.coordinates(torch.zeros(2, dtype=torch.float64), radius=radius)
    return rs.plane_cells(model, plane).decision_boundary()


@pytest.mark.parametrize("seed", range(60))
def test_the_length_is_that_of_exact_arithmetic(seed: int) -> None:
    model = integer_network(seed)
    assert boundary_of(model, 2).length == pytest.approx(exact_length(model, 2), abs=1e-12)


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(60, 2000))
def test_the_length_of_many_more_is_that_of_exact_arithmetic(seed: int) -> None:
    model = integer_network(seed)
    assert boundary_of(model, 2).length == pytest.approx(exact_length(model, 2), abs=1e-12)


@pytest.mark.parametrize("seed", range(30))
def test_neither_the_order_of_outputs_nor_a_mirror_changes_the_length(seed: int) -> None:
    model = integer_network(seed)
    first, last = model[0], model[-1]
    assert isinstance(first, nn.Linear) and isinstance(last, nn.Linear)
    length = boundary_of(model).length
    last.weight.data, last.bias.data = last.weight.data.flip(0), last.bias.data.flip(0)
    assert boundary_of(model).length == pytest.approx(length, abs=1e-12)
    first.weight.data = first.weight.data.flip(1) * torch.tensor([1.0, -1.0])
    assert boundary_of(model).length == pytest.approx(length, abs=1e-12)


@pytest.mark.parametrize("seed", range(30))
def test_no_piece_of_the_boundary_is_there_twice(seed: int) -> None:
    segments = boundary_of(integer_network(seed)).segments
    for (p, q), (a, b) in combinations(segments, 2):
        unit = (q - p) / np.linalg.norm(q - p)
        across = [abs(unit[0] * (c - p)[1] - unit[1] * (c - p)[0]) for c in (a, b)]
        low, high = sorted(float(unit @ (c - p)) for c in (a, b))
        overlap = min(high, float(np.linalg.norm(q - p))) - max(low, 0.0)
        assert max(across) > 1e-9 or overlap < 1e-9


@pytest.mark.parametrize("seed", range(30))
def test_the_two_classes_share_the_largest_output_along_each_segment(seed: int) -> None:
    model = integer_network(seed)
    boundary = boundary_of(model)
    for share in (0.2, 0.5, 0.8):
        x = torch.from_numpy((1 - share) * boundary.segments[:, 0] + share * boundary.segments[:, 1])
        outputs = model(x).detach()
        outputs = torch.cat([outputs, 0 * outputs], dim=1) if outputs.shape[1] == 1 else outputs
        for classes in boundary.classes.T:
            chosen = outputs.gather(1, torch.from_numpy(classes % outputs.shape[1])[:, None])[:, 0]
            assert torch.allclose(chosen, outputs.amax(dim=1), atol=1e-12)


# all kinds of networks, along lines: both ways, the class changes where the boundary is

CONSTANT = ("functional",)  # on the plane below
PLANAR = [name for name in CASES if case(name).points[0].numel() > 1 and name not in CONSTANT]


def crossings(segments: NDArray[np.float64], start: NDArray[np.float64], end: NDArray[np.float64]) -> list[float]:
    """The places from 0 to 1 at which a line crosses segments."""
    found = []
    for p, q in segments:
        matrix = np.stack([end - start, p - q], axis=1)
        if abs(np.linalg.det(matrix)) > 1e-12:
            t, s = np.linalg.solve(matrix, p - start)
            found += [float(t)] if 0 <= s <= 1 and 0 <= t <= 1 else []
    return sorted(found)


@pytest.mark.parametrize("name", PLANAR)
def test_along_lines_the_class_changes_just_where_the_boundary_is(name: str) -> None:
    made = case(name)
    plane = rs.Plane.around(made.points[0], 3.0, generator=torch.Generator().manual_seed(0))
    some = plane.points(np.random.default_rng(1).uniform(-3, 3, (40, 2)))
    level = made.model(some.to(made.points.dtype)).detach().mean(dim=0)  # so that there is a boundary
    net = rs.trace(lambda x: made.model(x) - level, made.points).frozen()
    boundary = rs.plane_cells(net, plane).decision_boundary()
    assert boundary.length > 0 and len(boundary.tied_cells) == 0

    def decisions(places: NDArray[np.float64]) -> list[int]:
        x = plane.points(start + places[:, None] * (end - start)).reshape(-1, *net.input_shape)
        outputs = net(x).flatten(1)
        return (outputs.argmax(dim=1) if outputs.shape[1] > 1 else (outputs[:, 0] > 0).long()).tolist()

    for start, end in np.random.default_rng(0).uniform(-3, 3, (6, 2, 2)):
        places = crossings(boundary.segments, start, end)
        grid = np.linspace(0, 1, 3001)
        classes = decisions(grid)
        for i in np.flatnonzero(np.diff(classes)):
            assert any(grid[i] - 1e-9 <= t <= grid[i + 1] + 1e-9 for t in places)
        clear = [t for t, gap in zip(places, np.diff(places, prepend=-1.0), strict=True) if gap > 1e-5]
        before, after = (decisions(np.array([t + step for t in clear])) if clear else [] for step in (-1e-7, 1e-7))
        assert all(a != b for a, b in zip(before, after, strict=True))


# closed forms: a function of the plane coordinates x and y, the length, and how many cells are tied

R = torch.relu
DEGENERATE: dict[str, tuple[Callable[[Tensor, Tensor], list[Tensor]], float, int]] = {
    "outputs that cross": (lambda x, y: [x, y], 2 * math.sqrt(2), 0),
    "an output that only touches where two cross": (lambda x, y: [x, -x, 0 * x], 2, 0),
    "outputs that cross where they bend": (lambda x, y: [R(x), R(-x)], 2, 0),
    "outputs that touch where one bends": (lambda x, y: [x.abs(), 0 * x], 0, 0),
    "outputs that touch where both bend": (lambda x, y: [x.abs(), -2 * x.abs()], 0, 0),
    "three that cross where they bend": (lambda x, y: [R(x), R(-x), -x.abs()], 2, 0),
    "a tie on one side of the rim": (lambda x, y: [x + 1, 0 * x], 0, 0),
    "a tie at a corner of the rim": (lambda x, y: [x + y + 2, 0 * x], 0, 0),
    "a tie of the same two everywhere": (lambda x, y: [x, x], 0, 1),
    "a tie that never wins": (lambda x, y: [x, x, 9 + 0 * x], 0, 0),
    "a tie that wins on one side": (lambda x, y: [x, x, 0 * x], 2, 1),
    "a tie between two classes": (lambda x, y: [R(x - 0.5), R(-x - 0.5)], 4, 1),
    "a tie beside one of its classes": (lambda x, y: [R(x), 0 * x], 2, 1),
    "a tie beside a tie": (lambda x, y: [R(x) + 0 * y, R(x), R(-x) + 0 * y, R(-x)], 2, 2),
    "a larger tie beside a smaller": (lambda x, y: [R(x), R(x), 0 * x], 2, 2),
    "all outputs the same number": (lambda x, y: [0 * x, 0 * x, 0 * x], 0, 1),
    "a side that is boundary for a part of its length": (lambda x, y: [R(x), R(-x), y], 1 + 2 * math.sqrt(2), 0),
    "a single output with a sign": (lambda x, y: [x - y], 2 * math.sqrt(2), 0),
    "a single output that touches zero": (lambda x, y: [x.abs()], 0, 0),
    "a single output that is zero on a side": (lambda x, y: [R(x)], 2, 1),
    "a single output that is zero": (lambda x, y: [0 * x], 0, 1),
    "a single output that changes sign where it bends": (lambda x, y: [R(x) - 3 * R(-x)], 2, 0),
}


@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_boundaries_have_the_length_that_the_definition_says(name: str) -> None:
    function, length, tied = DEGENERATE[name]
    outputs = len(function(torch.zeros(1), torch.zeros(1)))
    for order in list(permutations(range(outputs)))[:: 1 if outputs < 4 else 5]:
        for swap, sign in product((False, True), (1, -1)):

            def model(p: Tensor, order: tuple[int, ...] = order, swap: bool = swap, sign: int = sign) -> Tensor:
                x, y = (p[:, 1], sign * p[:, 0]) if swap else (sign * p[:, 0], p[:, 1])
                found = function(x, y)
                return torch.stack([found[i] for i in order], dim=1)

            boundary = boundary_of(model)
            assert boundary.length == pytest.approx(length, abs=1e-12)
            assert len(boundary.tied_cells) == tied
            assert len(set(boundary.tied_cells.tolist())) == tied


def test_a_tie_is_told_with_its_cell() -> None:
    plane = rs.Plane.coordinates(torch.zeros(2, dtype=torch.float64))
    cells = rs.plane_cells(lambda p: torch.stack([R(p[:, 0]), R(-p[:, 0] - 0.5)], dim=1), plane)
    boundary = cells.decision_boundary()
    assert cells.centres[boundary.tied_cells].tolist() == [[-0.25, 0.0]]
    assert boundary.classes.tolist() == [[0, 1], [0, 1]]
    assert sorted(boundary.segments[:, 0, 0]) == [-0.5, 0.0]


def test_a_boundary_does_not_depend_on_the_scale_of_the_outputs() -> None:
    model = integer_network(7)
    last = model[-1]
    assert isinstance(last, nn.Linear)
    length = boundary_of(model).length
    assert length > 0
    for scale in (1e-12, 1e12):
        last.weight.data *= scale
        last.bias.data *= scale
        assert boundary_of(model).length == pytest.approx(length, rel=1e-9)
        last.weight.data /= scale
        last.bias.data /= scale
