"""Exact cells along lines and curves."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from cases import CASES, Case, case, mlp
from oracles import bisected_breakpoints
from torch import Tensor, nn

import regionscope as rs


@pytest.fixture(params=CASES)
def each(request: pytest.FixtureRequest) -> Case:
    return case(request.param)


def test_breakpoints_are_those_that_bisection_finds(each: Case) -> None:
    net = rs.trace(each.model, each.points).frozen()
    start, end = 3 * each.points[0].double(), 3 * each.points[1].double()
    cells = rs.line_cells(net, start, end)
    expected = bisected_breakpoints(net, cells.columns, start, end)
    assert len(cells) == len(expected) + 1
    assert np.allclose(cells.breakpoints, expected, atol=1e-9)
    assert cells.lengths.sum() == pytest.approx(float((end - start).norm()))


def test_the_network_is_affine_on_each_cell(each: Case) -> None:
    cells = rs.line_cells(each.model, each.points[0], each.points[1])
    slopes, offsets = cells.affine_maps()
    ends = np.concatenate([[0.0], cells.breakpoints, [1.0]]) * cells.length
    assert cells.outputs is not None
    for side in (0, 1):
        u = ends[side : len(ends) - 1 + side, None]
        outputs = np.einsum("nkd,nd->nk", slopes, u) + offsets
        assert np.allclose(outputs, cells.outputs[side : len(cells) + side], atol=1e-10)
    assert 1 <= cells.functional_count() <= len(cells)


def test_many_lines_at_once_are_the_lines_one_by_one(each: Case) -> None:
    net = rs.trace(each.model, each.points)
    starts, ends = each.points[:2], each.points[1:3]
    together = rs.line_cells(net, starts, ends)
    for line, start, end in zip(together, starts, ends, strict=True):
        alone = rs.line_cells(net, start, end)
        assert np.allclose(line.breakpoints, alone.breakpoints, atol=1e-12)
        assert np.array_equal(line.packed_patterns, alone.packed_patterns)


def sawtooth(teeth: int) -> nn.Sequential:
    """Telgarsky's network with 2^n teeth: the tent map x -> 2 relu(x) - 4 relu(x - 1/2) composed n times."""
    layers: list[nn.Module] = []
    for _ in range(teeth):
        fold, join = nn.Linear(1, 2), nn.Linear(2, 1, bias=False)
        fold.weight.data, fold.bias.data = torch.ones(2, 1), torch.tensor([0.0, -0.5])
        join.weight.data = torch.tensor([[2.0, -4.0]])
        layers += [fold, nn.ReLU(), join]
    return nn.Sequential(*layers).double()


@pytest.mark.parametrize("teeth", [1, 2, 5, 10])
def test_a_sawtooth_has_two_to_the_n_pieces(teeth: int) -> None:
    cells = rs.line_cells(sawtooth(teeth), torch.tensor([0.0]).double(), torch.tensor([1.0]).double())
    assert len(cells) == 2**teeth
    assert np.array_equal(cells.breakpoints, np.arange(1, 2**teeth) / 2**teeth)
    assert cells.functional_count() == 2**teeth


def test_noise_destroys_the_teeth() -> None:
    model = sawtooth(10)
    torch.manual_seed(0)
    for p in model.parameters():
        p.data += 0.1 * torch.randn_like(p)
    assert len(rs.line_cells(model, torch.tensor([0.0]).double(), torch.tensor([1.0]).double())) < 2**9


def test_a_point_is_one_cell() -> None:
    cells = rs.line_cells(case("dense").model, case("dense").points[0], case("dense").points[0])
    assert len(cells) == 1
    assert cells.length == 0


def test_a_curve_is_its_segments_joined() -> None:
    made = case("dense")
    points = 2 * made.points[:4]
    curve = rs.curve_cells(made.model, points)
    parts = rs.line_cells(made.model, points[:-1], points[1:])
    assert len(curve) == sum(len(part) - 1 for part in parts) + 1, "a corner is no breakpoint"
    assert curve.length == pytest.approx(sum(part.length for part in parts))
    x = curve.at(curve.breakpoints)
    values = torch.cat([v.flatten(1) for v in rs.trace(made.model, points).frozen().preactivations(x)], dim=1)
    assert values.abs().amin(dim=1).max() < 1e-12


def test_a_closed_curve_comes_back() -> None:
    made = case("dense")
    closed = rs.curve_cells(made.model, made.points[:3], closed=True)
    opened = rs.curve_cells(made.model, torch.cat([made.points[:3], made.points[:1]]))
    assert np.array_equal(closed.breakpoints, opened.breakpoints)
    assert np.array_equal(closed.packed_patterns[0], closed.packed_patterns[-1])


def test_a_corner_on_a_boundary_is_a_breakpoint_if_the_curve_crosses_there() -> None:
    relu = nn.ReLU()
    across = rs.curve_cells(relu, torch.tensor([[-1.0, 1.0], [0.0, 2.0], [1.0, 1.0]]))
    assert across.breakpoints == pytest.approx([0.5])
    assert (across.site.tolist(), across.unit.tolist(), across.layers.tolist()) == ([0], [0], [1])
    touching = rs.curve_cells(relu, torch.tensor([[1.0, 1.0], [0.0, 2.0], [1.0, 3.0]]))
    assert len(touching) == 1


def test_a_corner_on_a_boundary_names_the_unit_of_any_layer() -> None:
    made = case("dense")
    line = rs.line_cells(made.model, 4 * made.points[0], 4 * made.points[1])
    corners = line.at(np.concatenate([[0.0], line.breakpoints, [1.0]]))
    bent = corners + 0 * corners
    bent[0] += 0.01
    curve = rs.curve_cells(rs.trace(made.model, made.points).frozen(), bent)
    assert len(set(line.layers.tolist())) == 2
    assert (curve.site == line.site).all() and (curve.unit == line.unit).all()


@pytest.mark.parametrize("closed", [False, True])
def test_repeated_points_change_nothing(each: Case, closed: bool) -> None:
    points = 2 * each.points[:3]
    once = rs.curve_cells(each.model, points, closed=closed)
    again = rs.curve_cells(each.model, points[[0, 0, 1, 2, 2, 2, *([0] if closed else [])]], closed=closed)
    assert np.array_equal(once.breakpoints, again.breakpoints)
    assert np.array_equal(once.packed_patterns, again.packed_patterns)
    assert once.outputs is not None and again.outputs is not None
    assert np.array_equal(once.outputs, again.outputs)
    assert torch.equal(once.points, again.points)
    assert once.lengths.min() > 0


def test_points_within_a_straight_part_change_nothing(each: Case) -> None:
    points = 2 * each.points[:3].double()
    middle = points[:2].mean(dim=0, keepdim=True)
    net = rs.trace(each.model, each.points).frozen()
    plain, more = (rs.curve_cells(net, p) for p in (points, torch.cat([points[:1], middle, points[1:]])))
    assert np.allclose(plain.breakpoints, more.breakpoints, atol=1e-12)
    assert np.array_equal(plain.packed_patterns, more.packed_patterns)


def test_a_curve_there_and_back_is_a_palindrome(each: Case) -> None:
    points = 2 * each.points[:2]
    there = rs.line_cells(rs.trace(each.model, each.points), points[0], points[1])
    curve = rs.curve_cells(each.model, points, closed=True)
    assert len(curve) == 2 * len(there) - 1, "it turns inside the last cell"
    assert np.allclose(curve.lengths, curve.lengths[::-1], atol=1e-9)
    assert np.array_equal(curve.packed_patterns, curve.packed_patterns[::-1])


def test_a_curve_of_one_point_is_one_cell_without_length() -> None:
    made = case("dense")
    cells = rs.curve_cells(made.model, made.points[[0, 0, 0]])
    assert (len(cells), cells.length, cells.lengths.tolist()) == (1, 0.0, [0.0])
    assert torch.equal(cells.at(cells.centres), made.points[:1].double())


def test_a_stretch_within_a_boundary_is_a_cell_of_its_own() -> None:
    corners = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 3.0], [1.0, 4.0]])
    cells = rs.curve_cells(lambda x: torch.relu(x[:, :1]), corners)
    assert cells.lengths == pytest.approx([2**0.5, 2.0, 2**0.5])
    assert cells.patterns.tolist() == [[1], [0], [1]], "a ReLU at 0 is closed"
    below = corners * torch.tensor([-1.0, 1.0])
    assert len(rs.curve_cells(lambda x: torch.relu(x[:, :1]), below)) == 1


def test_cells_whose_ends_are_one_float_are_counted() -> None:
    near = torch.tensor([0.5, 0.5 + 1e-13], dtype=torch.float64)  # two boundaries that the end of a curve cannot part
    corners = torch.tensor([[float(i % 2)] for i in range(5000)], dtype=torch.float64)
    cells = rs.curve_cells(lambda x: torch.relu(x - near), corners)
    assert len(cells) == 2 * 4999 + 1
    assert all((a != b).any() for a, b in pairwise(cells.patterns))
    wide, thin = cells.lengths[::2], cells.lengths[1::2]
    assert wide == pytest.approx(np.array([0.5, *[1.0] * 4998, 0.5]))
    assert (thin >= 0).all() and (thin < 2e-13).all() and (thin == 0).any(), "between boundaries 1e-13 apart"


def test_each_breakpoint_names_the_unit_that_switches() -> None:
    made = case("residual")
    cells = rs.line_cells(made.model, 4 * made.points[0], 4 * made.points[1])
    values = rs.trace(made.model, made.points).frozen().preactivations(cells.at(cells.breakpoints))
    for i, (site, unit) in enumerate(zip(cells.site, cells.unit, strict=True)):
        assert abs(float(values[site][i].flatten()[unit])) < 1e-12
        assert cells.layers[i] == cells.sites[site].layer


def test_images_may_be_given_one_by_one_or_as_a_batch() -> None:
    made = case("conv")
    one = rs.line_cells(made.model, made.points[0], made.points[1])
    (batch,) = rs.line_cells(made.model, made.points[:1], made.points[1:2])
    assert np.array_equal(one.breakpoints, batch.breakpoints)


def test_why_a_model_cannot_be_followed_is_said_at_once() -> None:
    """Images one by one would be the next thing to try, and hide it."""
    calls = []

    def unsupported(x: torch.Tensor) -> torch.Tensor:
        calls.append(x.shape)
        return x.flatten(1).sort(dim=1).values

    with pytest.raises(rs.UnsupportedModel, match="sort"):
        rs.line_cells(unsupported, torch.zeros(2, 3), torch.ones(2, 3))
    assert all(len(shape) == 2 for shape in calls)


def test_a_point_whose_signs_nothing_proves_is_one_cell() -> None:
    def enlarged(x: torch.Tensor) -> torch.Tensor:
        large = torch.nn.functional.interpolate(x.reshape(-1, 1, 1, 2), size=(3, 3), mode="bicubic")
        return torch.relu(large.flatten(1))

    with pytest.raises(rs.Undecided, match="no bound on the rounding of upsample_bicubic2d"):
        rs.curve_cells(enlarged, torch.zeros(3, 2).double(), certified=True)
    cells = rs.curve_cells(enlarged, torch.zeros(3, 2).double())
    assert cells.undecided > 0 and len(cells) == 1 and cells.length == 0
    assert cells.outputs is not None and not cells.outputs.any()


def test_bad_lines_are_named() -> None:
    model = mlp(2, 3, 1)
    with pytest.raises(ValueError, match=r"one shape, got \(2,\) and \(3,\)"):
        rs.line_cells(model, torch.zeros(2), torch.zeros(3))
    with pytest.raises(ValueError, match="at least 2 points"):
        rs.curve_cells(model, torch.zeros(1, 2))
    with pytest.raises(ValueError, match="NaN"):
        rs.line_cells(rs.trace(model, torch.zeros(1, 2)), torch.zeros(2), torch.tensor([torch.nan, 0.0]))
    with pytest.raises(rs.TooManyCells, match="max_cells=5"):
        rs.line_cells(mlp(1, 40, 40, 1), torch.tensor([-3.0]), torch.tensor([3.0]), max_cells=5)


def test_curves_keep_to_limits_and_show_how_far_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    model, corners = mlp(1, 40, 40, 1), torch.tensor([[-3.0], [3.0], [-3.0]])
    with pytest.raises(rs.TooManyCells, match="max_cells=5"):
        rs.curve_cells(model, corners, max_cells=5)
    with pytest.raises(rs.TooMuchMemory, match="too little for this network"):
        rs.curve_cells(model, corners, memory=1000)
    assert not capsys.readouterr().err
    rs.curve_cells(model, corners, show_progress=True)
    assert "2/2" in capsys.readouterr().err


def test_the_number_of_regions_of_a_line_is_that_of_its_sections(each: Case) -> None:
    start, end = each.points[0], each.points[1]
    middle = start + 0.37 * (end - start)

    def count(a: Tensor, b: Tensor) -> int:
        return len(rs.line_cells(rs.trace(each.model, each.points), a, b))

    assert count(start, end) == count(start, middle) + count(middle, end) - 1


def test_the_certificate_of_a_line_holds(each: Case) -> None:
    found = rs.line_cells(each.model, each.points[0], each.points[1]).verify()
    assert found.holds, found
    assert found.cells >= 1 and found.undecided == 0
    assert found.wrong_exactly == 0 and (found.checked_exactly is None or found.checked_exactly >= 1)


def test_the_certificate_of_a_curve_holds() -> None:
    model = rs.trace(nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 8), nn.ReLU()), torch.zeros(1, 3))
    corners = torch.randn(6, 3, generator=torch.Generator().manual_seed(0))
    assert rs.curve_cells(model, corners, closed=True).verify().holds


def test_a_wrong_line_has_no_certificate() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 1))
    cells = rs.line_cells(model, -3 * torch.ones(3), 3 * torch.ones(3))
    assert len(cells) > 4
    moved = cells.breakpoints.copy()
    moved[1] = (moved[1] + moved[2]) / 2
    assert not replace(cells, breakpoints=moved).verify().holds
    assert replace(cells, breakpoints=cells.breakpoints[::-1].copy()).verify().not_in_order > 0
    patterns = cells.packed_patterns.copy()
    patterns[2] = patterns[1]
    assert replace(cells, packed_patterns=patterns).verify().wrong_inside > 0
    assert replace(cells, packed_patterns=patterns).verify().wrong_across > 0
    assert replace(cells, packed_patterns=patterns).verify(sample=len(cells)).wrong_exactly == 1


def test_lines_are_saved_and_loaded(each: Case, tmp_path: Path) -> None:
    cells = rs.line_cells(each.model, each.points[0], each.points[1])
    cells.save(tmp_path / "line")
    again = rs.LineCells.load(tmp_path / "line", each.model)
    assert np.array_equal(again.breakpoints, cells.breakpoints) and torch.equal(again.points, cells.points)
    assert np.array_equal(again.patterns, cells.patterns) and again.sites == cells.sites
    assert all(map(np.array_equal, again.affine_maps(), cells.affine_maps()))
    assert again.verify(generator=torch.Generator().manual_seed(0)).holds


def test_lines_without_their_network_have_no_maps_and_planes_are_no_lines(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(2, 4), nn.ReLU())
    rs.line_cells(model, torch.zeros(2), torch.ones(2)).save(tmp_path / "line")
    with pytest.raises(ValueError, match=r"say LineCells.load\(path, model="):
        rs.LineCells.load(tmp_path / "line").affine_maps()
    with pytest.raises(ValueError, match=r"holds LineCells: LineCells.load reads it"):
        rs.PlaneCells.load(tmp_path / "line")
