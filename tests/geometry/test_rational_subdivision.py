"""The oracle of exact cells against closed forms, by hand, and against the torch models of the same networks."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
import torch
from integer_modules import FUNCTIONS, PAIRWISE_MAXIMA, as_model, part_of
from integer_networks import BENDS, STYLES, plane_problem, turn
from rational_subdivision import (
    Affine,
    Bend,
    Best,
    Cell,
    Concatenation,
    Form,
    Loop,
    Network,
    Step,
    Sum,
    Vector,
    Versus,
    breakpoints,
    graph,
    height,
    segment_subdivision,
    size,
    subdivision,
)
from torch import Tensor


def floats(numbers: Vector) -> list[float]:
    return [float(number) for number in numbers]


def tensor(numbers: Vector) -> Tensor:
    return torch.tensor(floats(numbers), dtype=torch.float64)


def values(forms: tuple[Form, ...], place: Vector) -> Vector:
    return tuple(height(form, place) for form in forms)


AXES = ((Fraction(1), Fraction(0)), (Fraction(0), Fraction(1)))
ORIGIN = (Fraction(0), Fraction(0))


def square(radius: int) -> Loop:
    r = Fraction(radius)
    return ((-r, -r), (r, -r), (r, r), (-r, r))


def on_square(*network: Step, radius: int = 1) -> list[Cell]:
    return subdivision(network, ORIGIN, AXES, square(radius))


def areas(cells: list[Cell]) -> list[Fraction]:
    return sorted(size(cell.corners) for cell in cells)


@pytest.mark.parametrize("n", [1, 2, 5, 12])
def test_generic_lines_cut_the_plane_into_1_plus_n_plus_n_choose_2(n: int) -> None:
    slopes = range(1, n + 1)  # tangents of a parabola: no two parallel, no three through a point
    tangents = Affine(0, tuple((-k, 1) for k in slopes), tuple(k * k for k in slopes))
    for bend in (Bend(1, "relu"), Bend(1, "abs"), Bend(1, "leaky_relu", (Fraction(1, 4),))):
        assert len(on_square(tangents, bend, radius=1000)) == 1 + n + n * (n - 1) // 2


@pytest.mark.parametrize("teeth", [1, 2, 5])
def test_a_sawtooth_has_two_to_the_n_pieces(teeth: int) -> None:
    """Telgarsky's tent map on [0, 2], 2 relu(x) - 4 relu(x - 1), composed with itself."""
    steps: list[Step] = []
    for i in range(0, 3 * teeth, 3):
        steps += [Affine(i, ((1,), (1,)), (0, -1)), Bend(i + 1, "relu"), Affine(i + 2, ((2, -4),), (0,))]
    cells = segment_subdivision(tuple(steps), (Fraction(0),), (Fraction(2),))
    assert breakpoints(cells) == [Fraction(i, 2**teeth) for i in range(1, 2**teeth)]
    assert {abs(cell.outputs[0][0]) for cell in cells} == {2 * 2**teeth}


def test_a_maxout_is_divided_as_by_hand() -> None:
    """max(x, y, -x - y): -x - y wins below -2x and -x/2, which is 5/4 left and 1/4 right of the middle."""
    competitors = Affine(0, ((1, 0), (0, 1), (-1, -1)), (0, 0, 0))
    assert areas(on_square(competitors, Best(1, ((0, 1, 2),)))) == [Fraction(5, 4), Fraction(5, 4), Fraction(3, 2)]
    smallest = on_square(competitors, Best(1, ((0, 1, 2),), largest=False))
    assert areas(smallest) == [Fraction(5, 4), Fraction(5, 4), Fraction(3, 2)]
    assert sorted(cell.pattern for cell in smallest) == [(0,), (1,), (2,)]


def clamp(low: int, high: int) -> Bend:
    return Bend(1, "clamp", (Fraction(low), Fraction(high)))


X, Y = (1, 0), (0, 1)
BY_HAND: dict[str, tuple[Network, list[Fraction]]] = {
    "coincident boundaries": ((Affine(0, (X, (2, 0), (-3, 0)), (0, 0, 0)), Bend(1, "relu")), [Fraction(2)] * 2),
    "concurrent boundaries": ((Affine(0, (X, Y, (1, 1), (1, -1)), (0,) * 4), Bend(1, "relu")), [Fraction(1, 2)] * 8),
    "a boundary along a side": ((Affine(0, (X,), (1,)), Bend(1, "relu")), [Fraction(4)]),
    "a boundary through a corner": ((Affine(0, ((1, 1),), (2,)), Bend(1, "abs")), [Fraction(4)]),
    "a unit that is zero everywhere": ((Affine(0, ((0, 0), X), (0, 0)), Bend(1, "relu")), [Fraction(2)] * 2),
    "two breakpoints": ((Affine(0, ((2, 0),), (0,)), clamp(-1, 1)), [Fraction(1), Fraction(1), Fraction(2)]),
    "a constant at a breakpoint": ((Affine(0, ((0, 0),), (1,)), clamp(-1, 1)), [Fraction(4)]),
    "dead by cancelling": (
        (Affine(0, (X, (3, 0)), (0, 0)), Bend(1, "relu"), Affine(2, ((3, -1),), (0,)), Bend(3, "relu")),
        [Fraction(2)] * 2,
    ),
    "zero on a region": (
        (Affine(0, ((2, 0), (2, 0)), (0, -1)), Bend(1, "relu"), Affine(2, ((1, -1),), (-1,)), Bend(3, "relu")),
        [Fraction(1), Fraction(1), Fraction(2)],
    ),
    "x = relu(x) - relu(-x)": (
        (Affine(0, (X, (-1, 0)), (0, 0)), Bend(1, "relu"), Affine(2, ((1, -1), (0, 0)), (0, 0)), Sum(0, 3),
         Bend(4, "relu")),
        [Fraction(1)] * 4,
    ),
    "tied competitors": ((Affine(0, (X, X, Y), (0, 0, 0)), Best(1, ((0, 1, 2),))), [Fraction(2)] * 2),
    "losers that change their order": ((Affine(0, (X, Y, (0, 0)), (0, 0, 2)), Best(1, ((0, 1, 2),))), [Fraction(4)]),
    "a competitor that wins on a line only": (
        (Affine(0, (X, (-1, 0), (0, 0)), (0, 0, 0)), Best(1, ((0, 1, 2),))),
        [Fraction(2)] * 2,
    ),
    "the same branch twice": ((Affine(0, (X, Y), (0, 0)), Versus(1, 1)), [Fraction(4)]),
    "two branches": ((Affine(0, (Y, X), (0, 0)), Versus(0, 1, largest=False)), [Fraction(2)] * 2),
    "side by side": (
        (Bend(0, "relu"), Concatenation(0, 1), Affine(2, ((1, 0, -1, 0),), (0,)), Bend(3, "abs")),
        [Fraction(1)] * 4,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BY_HAND)
def test_degenerate_arrangements_are_divided_as_by_hand(name: str) -> None:
    network, expected = BY_HAND[name]
    assert areas(on_square(*network)) == expected


@pytest.mark.parametrize("kind", sorted(set(BENDS)))
def test_activations_are_those_of_torch(kind: str) -> None:
    numbers = {"leaky_relu": (Fraction(1, 4),), "prelu": (Fraction(-1, 2),), "softshrink": (Fraction(3, 2),)}
    limits = (Fraction(-1, 2), Fraction(2))
    bend = Bend(0, kind, numbers.get(kind, limits if kind in ("hardtanh", "clamp") else limits[:1]))
    bends = graph(bend, 0)
    places = sorted([*bends.breakpoints, *(Fraction(i, 4) for i in range(-32, 33))])
    pieces = [sum(place > b for b in bends.breakpoints) for place in places]
    expected = [[float(bends.pieces[p][0] * x + bends.pieces[p][1])] for p, x in zip(pieces, places, strict=True)]
    x, n = tensor(tuple(places))[:, None], floats(bend.numbers)
    ways = [FUNCTIONS[kind](x, n), PAIRWISE_MAXIMA[kind](x, n), part_of(bend, "modules")(x)]
    for way in ways:
        assert way.detach().numpy() == pytest.approx(np.array(expected), abs=1e-15)


@pytest.mark.parametrize("seed", range(30))
def test_exact_cells_tile_the_domain_and_are_convex_and_different(seed: int) -> None:
    problem = plane_problem(seed)
    cells = subdivision(problem.network, problem.origin, problem.axes, problem.domain)
    assert sum(size(cell.corners) for cell in cells) == size(problem.domain)
    assert len({cell.pattern for cell in cells}) == len(cells)
    for cell in cells:
        loop = [*cell.corners, *cell.corners[:2]]
        assert all(turn(a, b, c) >= 0 for (a, b), (_, c) in zip(pairwise(loop), pairwise(loop[1:]), strict=False))


@pytest.mark.parametrize("seed", range(30))
def test_every_style_is_the_network_of_the_oracle(seed: int) -> None:
    problem = plane_problem(seed)
    cells = subdivision(problem.network, problem.origin, problem.axes, problem.domain)
    places = [(cell, corner) for cell in cells for corner in cell.corners]
    points = torch.stack([tensor(values(cell.values[0], corner)) for cell, corner in places])
    expected = np.array([floats(values(cell.outputs, corner)) for cell, corner in places])
    for style in STYLES:
        outputs = as_model(problem.network, style)(points).detach().numpy()
        assert outputs == pytest.approx(expected, rel=1e-10, abs=1e-10)
