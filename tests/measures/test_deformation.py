"""The graph on embedded vertices against a generic search, and what an affine map does to it."""

import copy
import json
from typing import Any

import numpy as np
import pytest
import torch
from cases import CASES, case, mlp
from oracles import naive_graph_sizes
from torch import Tensor, nn

import regionscope as rs
from regionscope.measures.neighbourhoods import Bundle, random_frame


@pytest.mark.parametrize("name", [n for n in CASES if n != "line_input"])  # a line has one direction
def test_shortest_paths_are_those_of_a_search(name: str) -> None:
    c = case(name)
    net, points, d = rs.trace(c.model, c.points).frozen(), c.points.double(), c.points[0].numel()
    frame = random_frame(min(4, d), d, torch.Generator().manual_seed(0))
    result = rs.neighbourhood_deformation(net, points, radius=0.8, frame=frame, batch_size=2)
    expected = np.array([naive_graph_sizes(net, x, frame, 0.8) for x in points])
    found = np.stack([result.eccentricity, result.diameter], axis=2)
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-7)


def test_an_isometry_keeps_the_graph_of_the_input() -> None:
    turn = nn.Sequential(nn.Linear(6, 6), nn.ReLU()).double()
    assert isinstance(turn[0], nn.Linear)
    nn.init.orthogonal_(turn[0].weight)
    result = rs.neighbourhood_deformation(turn, torch.randn(5, 6).double(), radius=0.3, directions=4)
    np.testing.assert_allclose(result.eccentricity, 2 * np.sqrt(2) * 0.3)
    np.testing.assert_allclose(result.diameter, result.input_eccentricity)
    np.testing.assert_allclose(result.stretch, 1)


def test_the_defect_is_zero_before_the_first_bend_and_grows_with_the_radius() -> None:
    torch.manual_seed(0)
    model, points = mlp(5, 30, 30, 2).double(), torch.randn(6, 5).double()
    defects = [
        rs.neighbourhood_deformation(
            model, points, radius=r, directions=5, generator=torch.Generator().manual_seed(0)
        ).defect.mean(axis=0)
        for r in (1e-6, 0.1, 1.0, 10.0)
    ]
    for defect in defects:
        assert defect[0] < 1e-6
    assert defects[0][1] < 1e-6
    assert defects[0][1] < defects[1][1] < defects[2][1] < defects[3][1]


def test_single_precision_hides_nothing_in_small_neighbourhoods() -> None:
    torch.manual_seed(0)
    model, points, frame = mlp(5, 30, 30, 2), torch.randn(64, 5), np.eye(5)
    found = {}
    for m, x in ((model, points), (copy.deepcopy(model).double(), points.double())):
        direct = rs.neighbourhood_deformation(m, x, radius=1e-4, frame=frame)
        watched = rs.boundary_crossings(m, x, radius=1e-4, frame=frame).deformation
        assert watched is not None
        found[x.dtype] = [direct, watched]
    for single, double in zip(found[torch.float32], found[torch.float64], strict=True):
        assert single.defect[:, 0].max() < 1e-6, "an affine map has none"
        # a root of differences of squares: its rounding is the root of theirs; that of single precision is far larger
        np.testing.assert_allclose(single.defect, double.defect, atol=2 * np.finfo(np.float64).eps ** 0.5)
        np.testing.assert_allclose(single.eccentricity, double.eccentricity, rtol=1e-9)


def test_a_fold_at_the_centre_has_as_much_defect_as_can_be_worked_out() -> None:
    model = nn.Sequential(nn.Flatten(), nn.PReLU(), nn.ReLU()).double()
    assert isinstance(model[1], nn.PReLU)
    nn.init.constant_(model[1].weight, -0.5)  # x -> x on the right, -x/2 on the left
    result = rs.neighbourhood_deformation(model, torch.zeros(1, 2).double(), radius=1.0, frame=np.eye(2))
    # the images of ±e_p are e_p and e_p / 2: middles 3/4 e_p, √2 · 3/4 apart, and half diagonals of 1/4
    np.testing.assert_allclose(result.defect, [[0.0, 3 * np.sqrt(2)]], atol=1e-7)
    # from e_1 to e_1/2 by way of e_2/2: √1.25 + √0.5
    np.testing.assert_allclose(result.diameter[0, 1], np.sqrt(1.25) + np.sqrt(0.5))


def test_a_collapsed_layer_has_no_extent_and_no_defect() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 4), nn.ReLU()).double()
    for layer in (model[0], model[2]):
        assert isinstance(layer, nn.Linear)
        nn.init.constant_(layer.bias, -100.0)
    result = rs.neighbourhood_deformation(model, torch.zeros(2, 3).double(), radius=0.1, directions=3)
    assert result.eccentricity[:, 1].tolist() == result.defect[:, 1].tolist() == [0, 0]
    assert result.warning is None


@pytest.mark.parametrize(("radius", "again"), [(0.3, False), (1e-3, True)])
def test_large_neighbourhoods_are_not_evaluated_again_in_float64(
    radius: float, again: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 3)
    )
    x, asked, precisely = torch.randn(3, 1, 8, 8), list[float](), Bundle.precisely

    def told(self: Bundle, which: Tensor | slice, r: float) -> Bundle:
        asked.append(r)
        return precisely(self, which, r)

    frame = np.eye(64)[:20]
    direct = rs.neighbourhood_deformation(model, x[:1], radius=radius, frame=frame)
    monkeypatch.setattr(Bundle, "precisely", told)
    found = rs.boundary_crossings(model, x, radius=radius, frame=frame).deformation
    assert found is not None and bool(asked) == again
    np.testing.assert_allclose(found.eccentricity, direct.eccentricity, rtol=1e-4)
    np.testing.assert_allclose(found.defect, direct.defect, atol=1e-3)


def test_crossings_report_the_deformation_of_every_sixty_fourth_point() -> None:
    torch.manual_seed(0)
    model, points, frame = mlp(4, 9, 9, 2).double(), torch.randn(130, 4).double(), np.eye(4)[:3]
    watched = rs.boundary_crossings(model, points, radius=0.5, frame=frame, batch_size=50, include_centre=True)
    direct = rs.neighbourhood_deformation(model, points[::64], radius=0.5, frame=frame)
    assert watched.deformation is not None and watched.deformation.n == 3
    np.testing.assert_allclose(watched.deformation.eccentricity, direct.eccentricity, atol=1e-9)
    np.testing.assert_allclose(watched.deformation.defect, direct.defect, atol=1e-7)
    assert rs.boundary_crossings(model, points, radius=0.5, directions=1).deformation is None


def test_the_summary_is_ready_for_json_and_the_layers_can_be_chosen() -> None:
    model, points = mlp(4, 9, 9, 2), torch.randn(3, 4)
    result = rs.neighbourhood_deformation(model, points, radius=0.5, directions=2, layers=[2], shared_frame=False)
    assert result.eccentricity.shape == (3, 1)
    assert json.loads(json.dumps(result.to_dict())).items() >= {"layers": [2], "directions": 2}.items()
    assert "n = 3" in repr(result)


def test_bad_input_is_refused_with_a_reason() -> None:
    model, x = mlp(2, 3, 1), torch.zeros(1, 2)
    with pytest.raises(ValueError, match="take at least 2, got 1"):
        rs.neighbourhood_deformation(model, x, radius=1.0, directions=1)
    with pytest.raises(ValueError, match="take at least 2, got 1"):
        rs.neighbourhood_deformation(model, x, radius=1.0, frame=np.eye(2)[:1])
    with pytest.raises(ValueError, match="radius must be positive"):
        rs.neighbourhood_deformation(model, x, radius=-1.0, directions=2)
    with pytest.raises(ValueError, match="directions must be at least 1, got 0"):
        rs.neighbourhood_deformation(model, x, radius=1.0, directions=0)
    with pytest.raises(ValueError, match="no points in the data"):
        rs.neighbourhood_deformation(model, x[:0], radius=1.0, directions=2)
    with pytest.raises(ValueError, match="no activation sites"):
        rs.neighbourhood_deformation(nn.Linear(2, 2), x, radius=1.0, directions=2)


@pytest.mark.parametrize("measure", [rs.boundary_crossings, rs.neighbourhood_deformation])
def test_what_memory_does_not_hold_is_told_with_what_to_do(measure: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def too_large(self: Bundle, *_: object, **options: object) -> object:
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8000000000000 bytes")

    for step in ("extents", "embedded"):
        monkeypatch.setattr(Bundle, step, too_large)
    with pytest.raises(MemoryError, match="take a smaller batch_size, or fewer points"):
        measure(mlp(4, 6, 2), torch.zeros(3, 4), radius=0.1)
