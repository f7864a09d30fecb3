"""What values at vertices tell of slopes is true, near to the truth, and enough for planes of deep networks."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import regionscope as rs
from regionscope.geometry import slopes, swept
from regionscope.geometry.complexes import Complex
from regionscope.geometry.laws import Law
from regionscope.geometry.swept import Swept
from regionscope.tracing.program import Program
from regionscope.types import Floats, Indices

INPUTS = 6


def plane_around(radius: float) -> rs.Plane:
    return rs.Plane.around(torch.zeros(INPUTS), radius, generator=torch.Generator().manual_seed(0))


def deep(*widths: int, activation: type[nn.Module] = nn.ReLU) -> nn.Sequential:
    """A dense network with He weights."""
    layers = list[nn.Module]()
    for inputs, units in pairwise(widths):
        layers += [nn.Linear(inputs, units), activation()]
        nn.init.kaiming_normal_(layers[-2].weight)  # type: ignore[arg-type]
    return nn.Sequential(*layers[:-1]).double()


def true_slope(part: nn.Module, points: Tensor, axes: Tensor) -> float:
    """The largest norm of the derivatives along axes at points, by differentiation backwards."""
    jacobians = torch.func.vmap(torch.func.jacrev(part))(points)
    return float(torch.linalg.matrix_norm(jacobians.detach() @ axes.T, 2).max())


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, float, Tensor]]:
    """At every site: its number, the slope that values tell, and a point inside each cell."""
    found, tell = list[tuple[int, float, Tensor]](), Swept.tell_slope

    def told(self: Swept, cells: Complex, part: Program, law: Law, number: int) -> None:
        tell(self, cells, part, law, number)
        if number:
            assert self._told is not None
            found.append((number, self._told, cells.inside()))

    monkeypatch.setattr(Swept, "tell_slope", told)
    monkeypatch.setattr(swept, "GROWN", 0.0)
    return found


def is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have every cell followed through the network."""
    monkeypatch.setattr(slopes, "NARROW", 0.0)
    monkeypatch.setattr(slopes, "FEW", 1)


@pytest.mark.parametrize("followed", [False, True])
@pytest.mark.parametrize("activation", [nn.ReLU, nn.LeakyReLU, nn.Hardtanh])
def test_the_slope_that_is_told_is_the_largest_there_is(
    activation: type[nn.Module],
    followed: bool,
    looked: list[tuple[int, float, Tensor]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if followed:
        is_followed(monkeypatch)
    torch.manual_seed(0)
    model, plane = deep(INPUTS, *[16] * 5, 2, activation=activation), plane_around(1.0)
    rs.plane_cells(model, plane)
    norms = [float(torch.linalg.matrix_norm(m.weight.detach(), 2)) for m in model if isinstance(m, nn.Linear)]
    assert len(looked) == 4
    for number, told, inside in looked:
        true = true_slope(model[: 2 * number + 1], inside, torch.from_numpy(plane.axes))
        assert true <= told
        if not (followed and activation is nn.Hardtanh):  # which has pieces beside zero: norms have to do
            assert told <= 1.6 * true  # the Frobenius norm stands for the spectral one
    if activation is nn.ReLU:
        assert told < np.prod(norms[: number + 1]) / 5


@pytest.mark.parametrize("followed", [False, True])
def test_on_lines_too(followed: bool, looked: list[tuple[int, float, Tensor]], monkeypatch: pytest.MonkeyPatch) -> None:
    if followed:
        is_followed(monkeypatch)
    torch.manual_seed(1)
    model, (start, corner, end) = deep(INPUTS, *[16] * 5, 2), torch.randn(3, INPUTS).double()
    for a, b in ((start, corner), (corner, end)):
        looked.clear()
        rs.line_cells(model, a, b)
        along = ((b - a) / (b - a).norm())[None]
        for number, told, inside in looked:
            true = true_slope(model[: 2 * number + 1], inside, along)
            assert true * (1 - 1e-9) <= told <= true * (1 + 1e-4)


def test_a_network_that_cannot_be_followed_has_no_slope_but_that_of_norms(monkeypatch: pytest.MonkeyPatch) -> None:
    is_followed(monkeypatch)
    monkeypatch.setattr(swept, "GROWN", 0.0)
    torch.manual_seed(2)
    model, plane = deep(INPUTS, 12, 12, 12, 2, activation=nn.Hardtanh), plane_around(2.0)
    cells = rs.plane_cells(model, plane)
    monkeypatch.undo()
    assert len(cells) == len(rs.plane_cells(model, plane)) and cells.undecided == 0


def test_planes_of_deep_networks_are_exact() -> None:
    """By norms alone half of the vertices of the last site would have open signs."""
    torch.manual_seed(3)
    model = deep(INPUTS, *[32] * 12, 2)
    cells = rs.plane_cells(model, plane_around(1.0))
    assert len(cells) > 3000 and cells.exact
    assert cells.close_decisions < len(cells) / 100
    assert cells.verify(generator=torch.Generator().manual_seed(0)).holds


class Triangles:
    """Two cells: a large one, and one with sides of this length."""

    def __init__(self, side: float) -> None:
        self.corners = np.arange(6).reshape(2, 3)
        self.sides = np.stack([np.eye(2), side * np.eye(2)])

    def frames(self) -> tuple[Indices, Floats]:
        return self.corners, self.sides


@pytest.mark.parametrize("shift", [0.0, 1e-4, 1e-3, 2e-3, 1.0])
def test_a_cell_that_may_lie_elsewhere_is_followed(shift: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slopes, "FEW", 1)
    side, asked = 1e-3, list[Indices]()
    table = np.array([0.0, 1.0, 1.0, 0.0, 5 * side, 5 * side])[:, None]  # slopes of sqrt(2), and of five times that

    def followed(cells: Indices) -> Floats:
        asked.append(cells)
        return np.full(len(cells), 123.0)

    told = slopes.told_slope(Triangles(side), [table], np.zeros(6), np.full(6, shift), 10.0, followed)  # type: ignore[arg-type]
    if shift == 0:
        assert told == pytest.approx(5 * np.sqrt(2), rel=1e-5) and not len(asked[0])
    else:
        assert told == 123.0 and 1 in asked[0]
