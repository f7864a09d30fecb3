"""The library against exact rational arithmetic on networks with small integer weights.

`plane_problem(seed)` and `line_problem(seed)` make again what a test has met that failed with that seed.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from integer_modules import as_model
from integer_networks import LineProblem, PlaneProblem, line_problem, plane_problem
from rational_subdivision import Vector, breakpoints, centre, segment_subdivision, size, subdivision
from torch import Tensor

import regionscope as rs
from regionscope.geometry import swept
from regionscope.geometry.budget import Budget
from regionscope.geometry.segments import Segments
from regionscope.geometry.subdivision import Subdivision

PLANES = LINES = 300
MANY = 5000  # of each, in the exhaustive test


def floats(numbers: Vector) -> list[float]:
    return [float(number) for number in numbers]


def tensor(numbers: Vector) -> Tensor:
    return torch.tensor(floats(numbers), dtype=torch.float64)


def compare_plane(problem: PlaneProblem) -> None:
    """The library has the same cells, in the same places, with the same areas and affine maps."""
    exact = subdivision(problem.network, problem.origin, problem.axes, problem.domain)
    plane = rs.Plane(tensor(problem.origin), list(map(floats, problem.axes)), list(map(floats, problem.domain)))
    cells = rs.plane_cells(as_model(problem.network, problem.style), plane)
    assert len(cells) == len(exact)
    areas = np.array([float(size(cell.corners)) for cell in exact])
    assert np.sort(cells.areas) == pytest.approx(np.sort(areas), rel=1e-9, abs=0)
    assert cells.areas.sum() == pytest.approx(float(size(problem.domain)), rel=1e-12)
    found = cells.locate([floats(centre(cell.corners)) for cell in exact])
    assert sorted(found) == list(range(len(exact)))
    assert cells.areas[found] == pytest.approx(areas, rel=1e-9, abs=0)
    slopes = np.array([[floats(form[:-1]) for form in cell.outputs] for cell in exact])
    assert cells.affine_maps()[0][found] == pytest.approx(slopes, rel=1e-9, abs=1e-9)
    certificate = cells.verify(generator=torch.Generator().manual_seed(0))
    assert certificate.holds, certificate


def compare_line(problem: LineProblem) -> None:
    """The library has the same breakpoints and the same slopes between them."""
    exact = segment_subdivision(problem.network, problem.start, problem.end)
    cells = rs.line_cells(as_model(problem.network, problem.style), tensor(problem.start), tensor(problem.end))
    assert len(cells) == len(exact)
    assert cells.breakpoints == pytest.approx(floats(tuple(breakpoints(exact))), rel=0, abs=1e-12)
    slopes = np.array([[float(form[0]) for form in cell.outputs] for cell in exact])
    assert cells.affine_maps()[0][:, :, 0] * cells.length == pytest.approx(slopes, rel=1e-9, abs=1e-9)


PROBLEMS: dict[str, Callable[[int], PlaneProblem | LineProblem]] = {"plane": plane_problem, "line": line_problem}


def check(kind: str, seed: int) -> None:
    """Compare one problem; an error says which."""
    problem = PROBLEMS[kind](seed)
    try:
        if isinstance(problem, PlaneProblem):
            compare_plane(problem)
        else:
            compare_line(problem)
    except Exception as error:
        error.add_note(f"{kind}_problem(seed={seed}): {problem}")
        raise


def failures(kind: str, seeds: range) -> list[str]:
    """What goes wrong, seed by seed."""
    found: list[str] = []
    for seed in seeds:
        try:
            check(kind, seed)
        except Exception as error:
            first_line = str(error).partition("\n")[0]
            found.append(f"{kind}_problem(seed={seed}): {type(error).__name__}: {first_line}")
    return found


@pytest.mark.parametrize("seed", range(PLANES))
def test_planes_have_the_cells_of_exact_arithmetic(seed: int) -> None:
    check("plane", seed)


@pytest.mark.parametrize("seed", range(0, PLANES, 4))
def test_planes_in_tiny_blocks_have_the_cells_of_exact_arithmetic(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Budget, "room", property(lambda self: (5000, 9000, 20000)[seed % 3]))
    monkeypatch.setattr(Budget, "check", lambda self, widest: None)
    check("plane", seed)


@pytest.mark.parametrize(("seed", "room"), [(3, 4000), (22, 1500), (33, 4000), (175, 12_000)])
def test_boundaries_that_meet_on_a_rim_of_blocks_make_one_vertex(
    seed: int, room: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Units that are multiples of each other cut blocks in another order, in passes: another one makes the vertex."""
    problem = plane_problem(seed)
    model = as_model(problem.network, problem.style)
    plane = rs.Plane(tensor(problem.origin), list(map(floats, problem.axes)), list(map(floats, problem.domain)))
    whole = rs.plane_cells(model, plane)
    monkeypatch.setattr(Budget, "room", property(lambda self: np.inf if self.memory is None else room))
    monkeypatch.setattr(Budget, "check", lambda self, widest: None)
    cells = rs.plane_cells(model, plane)
    assert cells.edges.length.min() > 0
    assert [len(part) for part in (cells, cells.vertices, cells.edges)] == [
        len(part) for part in (whole, whole.vertices, whole.edges)
    ]


@pytest.mark.parametrize("seed", [*range(0, LINES, 16), 1380])
def test_lines_in_tiny_blocks_have_the_breakpoints_of_exact_arithmetic(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Budget, "room", property(lambda self: 2000))
    monkeypatch.setattr(Budget, "check", lambda self, widest: None)
    check("line", seed)


@pytest.mark.parametrize("kind", PROBLEMS)
@pytest.mark.parametrize("seed", range(1, PLANES, 8))
def test_cells_are_those_of_exact_arithmetic_if_slopes_are_told_at_every_site(
    kind: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(swept, "GROWN", 0.0)
    check(kind, seed)


@pytest.mark.parametrize("kind", PROBLEMS)
@pytest.mark.parametrize("seed", range(2, PLANES, 16))
def test_cells_are_those_of_exact_arithmetic_if_bounds_prove_little(
    kind: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Signs are settled one by one: in float64 if that proves them, or in exact arithmetic."""
    for complex_ in (Subdivision, Segments):
        start = complex_.start
        monkeypatch.setattr(complex_, "start", lambda self, start=start: replace(s := start(self), error=s.error + 1.0))
    check(kind, seed)


@pytest.mark.parametrize("seed", range(LINES))
def test_lines_have_the_breakpoints_of_exact_arithmetic(seed: int) -> None:
    check("line", seed)


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", PROBLEMS)
def test_thousands_of_networks_have_the_cells_of_exact_arithmetic(kind: str) -> None:
    first = max(PLANES, LINES)  # those below are in the suite
    wrong = failures(kind, range(first, first + MANY))
    assert not wrong, "\n".join([f"{len(wrong)} of {MANY}:", *wrong])
