"""Exact cells on planes: closed forms, invariants, degenerate arrangements by name."""

import json
import subprocess
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import networkx
import numpy as np
import pytest
import torch
from cases import CASES, Case, case, mlp
from faults import full_disk
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from oracles import grid_patterns
from torch import Tensor, nn

import regionscope as rs
from regionscope.geometry import swept
from regionscope.geometry.patterns import pattern_codes
from regionscope.geometry.rows import SMALL
from regionscope.geometry.sweep import exact

PLANAR = [name for name in CASES if case(name).points[0].numel() > 1]


@pytest.fixture(params=PLANAR)
def each(request: pytest.FixtureRequest) -> Case:
    return case(request.param)


def plane_of(made: Case, radius: float = 3.0) -> rs.Plane:
    return rs.Plane.around(made.points[0], radius, generator=torch.Generator().manual_seed(0))


def lines(weights: list[list[float]], biases: list[float]) -> nn.Sequential:
    """One layer whose units vanish on given lines of the plane."""
    model = nn.Sequential(nn.Linear(2, len(biases)), nn.ReLU(), nn.Linear(len(biases), 1)).double()
    first = model[0]
    assert isinstance(first, nn.Linear)
    first.weight.data = torch.tensor(weights, dtype=torch.float64)
    first.bias.data = torch.tensor(biases, dtype=torch.float64)
    return model


def square(radius: float = 1.0) -> rs.Plane:
    return rs.Plane.coordinates(torch.zeros(2, dtype=torch.float64), radius=radius)


# invariants, over all cases


def test_the_certificate_holds(each: Case) -> None:
    certificate = rs.plane_cells(each.model, plane_of(each)).verify(generator=torch.Generator().manual_seed(0))
    assert certificate.holds, certificate
    assert certificate.smallest_width > 0


def test_cells_tile_the_polygon(each: Case) -> None:
    domain = np.array([[0.0, 0.0], [2.0, -1.0], [3.0, 1.0], [1.0, 2.0], [-1.0, 1.5]])
    plane = rs.Plane(each.points[0], plane_of(each).axes, domain)
    cells = rs.plane_cells(each.model, plane)
    assert cells.areas.min() > 0
    assert cells.areas.sum() == pytest.approx(plane.area, rel=1e-12)
    assert len(cells.vertices) - len(cells.edges) + len(cells) == 1


def test_no_point_of_a_grid_has_a_pattern_that_the_cells_lack(each: Case) -> None:
    plane = plane_of(each)
    cells = rs.plane_cells(each.model, plane)
    u, patterns = grid_patterns(rs.trace(each.model, each.points).frozen(), cells, 60)
    assert {p.tobytes() for p in patterns} <= {p.tobytes() for p in cells.packed_patterns}
    found = cells.locate(u)
    assert (cells.packed_patterns[found] == patterns).all()


def test_the_network_is_the_affine_map_of_each_cell(each: Case) -> None:
    cells = rs.plane_cells(each.model, plane_of(each))
    slopes, offsets = cells.affine_maps()
    assert cells.outputs is not None
    for cell, polygon in enumerate(cells.polygons):
        corners = cells.corners[cells.offsets[cell] : cells.offsets[cell + 1]]
        assert np.allclose(polygon @ slopes[cell].T + offsets[cell], cells.outputs[corners], atol=1e-10)


class ReadsTwice(nn.Module):
    """What enters a ReLU is read by others too: itself, as a view, as the view of a view, or as an output."""

    def __init__(self, way: str) -> None:
        super().__init__()
        self.way, self.first, self.second, self.last = way, nn.Linear(2, 6), nn.Linear(6, 6), nn.Linear(6, 6)

    def forward(self, x: Tensor) -> Tensor:
        z = self.first(x)
        y = self.second(self.also(z) + torch.relu(z))
        return self.also(y) - self.last(torch.relu(y))  # type: ignore[no-any-return]

    def also(self, z: Tensor) -> Tensor:
        if self.way == "itself":
            return z
        return z.reshape(len(z), 2, 3).flatten(1) if self.way == "a view" else z.view(-1, 3, 2).mT.flatten(1)


@pytest.mark.parametrize("way", ["itself", "a view", "another order"])
@pytest.mark.parametrize("small", [SMALL, 0], ids=["anew", "in place"])
def test_values_that_a_relu_is_not_alone_to_read_stay(way: str, small: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(swept, "SMALL", small)
    torch.manual_seed(0)
    model = ReadsTwice(way).double()
    cells = rs.plane_cells(model, square(3.0))
    with torch.no_grad():
        expected = model(cells.plane.points(cells.vertices)).numpy()
    assert len(cells) > 20 and cells.outputs == pytest.approx(expected, abs=1e-12)


def test_a_line_in_the_plane_meets_the_cells_that_the_plane_says(each: Case) -> None:
    plane = plane_of(each)
    cells = rs.plane_cells(each.model, plane)
    for u, v in np.random.default_rng(0).uniform(-3, 3, (3, 2, 2)):
        start, end = plane.points(np.stack([u, v]))
        line = rs.line_cells(rs.trace(each.model, each.points), start, end)
        places = line.centres[:, None] * (v - u) + u
        assert (line.packed_patterns == cells.packed_patterns[cells.locate(places)]).all()


def test_neighbours_differ_at_the_side_they_share(each: Case) -> None:
    cells = rs.plane_cells(each.model, plane_of(each))
    graph = cells.to_networkx()
    assert networkx.is_connected(graph)
    assert graph.number_of_nodes() == len(cells)
    inner = (cells.edges.cells >= 0).all(axis=1)
    a, b = cells.edges.cells[inner].T
    assert (cells.packed_patterns[a] != cells.packed_patterns[b]).any(axis=1).all()
    assert cells.adjacency().nnz == 2 * inner.sum()


def test_boundaries_are_where_their_unit_switches(each: Case) -> None:
    cells = rs.plane_cells(each.model, plane_of(each))
    net = rs.trace(each.model, each.points).frozen()
    middle = cells.vertices[cells.edges.vertices].mean(axis=1)
    values = net.preactivations(cells.plane.points(middle).reshape(-1, *net.input_shape))
    for edge in np.flatnonzero(cells.edges.site >= 0):
        site = cells.sites[cells.edges.site[edge]]
        z = values[net.sites.index(site)][edge].flatten()[cells.edges.unit[edge]]
        assert min(abs(float(z) - b) for b in site.breakpoints) < 1e-10
        assert cells.edges.layer[edge] == site.layer
    assert cells.boundary_length().sum() == pytest.approx(cells.edges.length[cells.edges.layer > 0].sum())


# closed forms


@pytest.mark.parametrize("n", [1, 2, 5, 20])
def test_generic_lines_cut_the_plane_into_1_plus_n_plus_n_choose_2(n: int) -> None:
    angles = torch.linspace(0.1, 3.0, n).double()
    model = lines(torch.stack([angles.cos(), angles.sin()], 1).tolist(), (0.01 * torch.arange(n) ** 1.5).tolist())
    cells = rs.plane_cells(model, square(1000.0))
    assert len(cells) == 1 + n + n * (n - 1) // 2
    assert cells.verify().holds


def test_a_hard_tanh_has_two_boundaries_a_unit() -> None:
    model = nn.Sequential(nn.Linear(2, 1), nn.Hardtanh()).double()
    first = model[0]
    assert isinstance(first, nn.Linear)
    first.weight.data, first.bias.data = torch.tensor([[2.0, 0.0]]).double(), torch.zeros(1).double()
    cells = rs.plane_cells(model, square())
    assert sorted(cells.areas) == pytest.approx([1.0, 1.0, 2.0])
    assert sorted(cells.patterns[:, 0]) == [0, 1, 2]


def test_a_maximum_of_three_has_three_regions() -> None:
    def largest(x: Tensor) -> Tensor:
        return torch.stack([x[:, 0], x[:, 1], -x[:, 0] - x[:, 1]], dim=1).amax(dim=1, keepdim=True)

    cells = rs.plane_cells(largest, square())
    assert len(cells) == 3, "cuts between two losers are no boundaries"
    assert sorted(cells.patterns[:, 0]) == [0, 1, 2]
    assert (np.bincount(cells.edges.vertices[cells.edges.layer > 0].ravel()) == 3).any(), "they meet in one point"
    assert cells.verify().holds
    assert len(np.unique(cells.functional_regions())) == 3


def test_layers_are_added_one_by_one() -> None:
    model, plane = case("dense").model, plane_of(case("dense"))
    first, whole = rs.plane_cells(model, plane, up_to_layer=1), rs.plane_cells(model, plane)
    assert len(first) < len(whole)
    assert first.edges.layer.max() == 1
    assert len(rs.plane_cells(model, plane, up_to_layer=2)) == len(whole)
    assert first.boundary_length()[0] == pytest.approx(whole.boundary_length()[0])
    for ask in (first.decision_boundary, first.affine_maps, lambda: first.classes, lambda: first.gradient_norms):
        with pytest.raises(ValueError, match="stop at a layer"):
            ask()
    with pytest.raises(ValueError, match="up_to_layer must be from 1 to 2"):
        rs.plane_cells(model, plane, up_to_layer=3)


def test_the_same_function_written_otherwise_has_the_same_cells() -> None:
    made = case("dense")
    assert isinstance(made.model, nn.Sequential)
    model, plane = made.model, plane_of(made)
    one = rs.plane_cells(model, plane)

    def functional(x: Tensor) -> Tensor:
        a, _, b, _, c = model
        return c(torch.maximum(b(torch.clamp(a(x), min=0)), torch.zeros(6)))  # type: ignore[no-any-return]

    as_conv = nn.Sequential(nn.Unflatten(1, (4, 1)), *map(convolution, model), nn.Flatten())
    for other in (functional, as_conv):
        cells = rs.plane_cells(rs.trace(other, made.points), plane)
        assert sorted(cells.areas) == pytest.approx(sorted(one.areas), abs=1e-9)


def convolution(layer: nn.Module) -> nn.Module:
    if not isinstance(layer, nn.Linear):
        return layer
    conv = nn.Conv1d(layer.in_features, layer.out_features, 1)
    conv.load_state_dict({"weight": layer.weight[:, :, None], "bias": layer.bias})
    return conv


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Conv2d(4, 4, 3, padding=1), nn.Conv2d(4, 4, 3, padding=1)
        self.na, self.nb, self.act = nn.BatchNorm2d(4), nn.BatchNorm2d(4), nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        return self.act(x + self.nb(self.b(self.act(self.na(self.a(x))))))  # type: ignore[no-any-return]


def test_a_resnet_with_skips_batch_norm_and_pooling_is_certified() -> None:
    torch.manual_seed(5)
    model = nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(3, 2, 1), Block(), nn.MaxPool2d(2),
        Block(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 3),
    )  # fmt: skip
    model(torch.randn(64, 1, 12, 12))
    cells = rs.plane_cells(model.eval(), rs.Plane.around(torch.randn(1, 12, 12), 1.0))
    assert len(cells) > 500
    certificate = cells.verify()
    assert certificate.holds, certificate


@given(
    st.integers(1, 4).flatmap(lambda depth: st.lists(st.integers(1, 12), min_size=depth, max_size=depth)),
    st.integers(0, 10**6), st.sampled_from([0.01, 1.0, 100.0]),
)  # fmt: skip
def test_random_networks_are_certified(widths: list[int], seed: int, scale: float) -> None:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = mlp(3, *widths, 2)
        for p in model.parameters():
            p.data *= scale
    plane = rs.Plane.around(torch.zeros(3), 2.0, generator=torch.Generator().manual_seed(seed))
    certificate = rs.plane_cells(model, plane).verify(sample=2)
    assert certificate.holds, certificate


# degenerate arrangements

DEGENERATE: dict[str, tuple[list[list[float]], list[float], int]] = {
    "coincident boundaries": ([[1, 0], [2, 0], [-3, 0]], [0.5, 1.0, -1.5], 2),
    "parallel boundaries": ([[1, 0], [1, 0], [1, 0]], [0.5, 0.0, -0.5], 4),
    "concurrent boundaries": ([[1, 0], [0, 1], [1, 1], [1, -1]], [0, 0, 0, 0], 8),
    "concurrent away from the origin": ([[1, 0], [0, 1], [1, 1]], [-0.25, -0.125, -0.375], 6),
    "concurrent but for rounding": ([[1, 0], [0, 1], [1, 1]], [-0.3, -0.1, -0.4], 7),  # 0.3 + 0.1 is not 0.4 in floats
    "a boundary through two corners": ([[1, 1]], [0], 2),
    "both diagonals": ([[1, 1], [1, -1]], [0, 0], 4),
    "a boundary along a side": ([[1, 0]], [1], 1),
    "a boundary through one corner only": ([[1, 1]], [2], 1),
    "a boundary outside": ([[1, 0]], [5], 1),
    "a dead unit": ([[0, 0], [1, 0]], [-1, 0], 2),
    "a unit that is zero everywhere": ([[0, 0], [1, 0]], [0, 0], 2),
    "duplicate units": ([[1, 2], [1, 2], [2, 1]], [0.1, 0.1, 0], 4),
    "boundaries a rounding error apart": ([[1, 0], [1, 0]], [0.5, 0.5 + 1e-16], 3),
}


@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_arrangements_are_counted_right(name: str) -> None:
    weights, biases, expected = DEGENERATE[name]
    cells = rs.plane_cells(lines(weights, biases), square())
    assert len(cells) == expected
    certificate = cells.verify()
    assert certificate.holds, certificate


@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_arrangements_survive_a_second_layer(name: str) -> None:
    weights, biases, _ = DEGENERATE[name]
    first = lines(weights, biases)[0]
    torch.manual_seed(1)
    model = nn.Sequential(first, nn.ReLU(), nn.Linear(len(biases), 6), nn.ReLU(), nn.Linear(6, 3)).double()
    certificate = rs.plane_cells(model, square()).verify()
    assert certificate.holds, certificate


def test_a_zero_bias_network_is_a_fan() -> None:
    torch.manual_seed(0)
    model = mlp(2, 10, 10, 2).double()
    for p in model.parameters():
        p.data *= p.dim() - 1.0
    one, two = (rs.plane_cells(model, square(r)) for r in (1.0, 1e-6))
    assert len(one) == len(two), "positively homogeneous: every scale looks the same"
    assert one.verify().holds
    assert two.verify().holds
    start, end = one.vertices[one.edges.vertices[(one.edges.cells >= 0).all(axis=1)]].transpose(1, 0, 2)
    assert np.abs(start[:, 0] * end[:, 1] - start[:, 1] * end[:, 0]).max() < 1e-14, "every boundary is a ray"
    assert len(start) == len(one) > 2, "as many rays as cells between them"
    inner = one.vertices[(np.abs(one.vertices) < 1 - 1e-9).all(axis=1)]
    assert inner == pytest.approx(np.zeros((1, 2)), abs=1e-12), "all boundaries meet at the origin and nowhere else"


# what cells tell


def test_the_decision_boundary_separates_the_classes() -> None:
    torch.manual_seed(2)
    model = mlp(2, 16, 16, 5).double()
    cells = rs.plane_cells(model, square(3.0))
    boundary = cells.decision_boundary()
    assert boundary.length > 0
    middle = boundary.segments.mean(axis=1)
    out = model(cells.plane.points(middle)).sort(dim=1, descending=True)
    assert torch.allclose(out.values[:, 0], out.values[:, 1])
    assert (np.sort(out.indices[:, :2].numpy()) == np.sort(boundary.classes)).all()
    assert (cells.locate(middle) == boundary.cell).mean() > 0.99


def test_every_change_of_class_on_a_grid_crosses_the_decision_boundary() -> None:
    torch.manual_seed(2)
    model = mlp(2, 16, 16, 5).double()
    cells = rs.plane_cells(model, square(3.0))
    boundary = cells.decision_boundary()
    axis = torch.linspace(-2.9, 2.9, 80).double()
    classes = model(torch.cartesian_prod(axis, axis)).argmax(dim=1).view(80, 80).numpy()
    length = 5.8 / 79
    for i, j in np.argwhere(classes[1:] != classes[:-1]):
        low, high = axis[i].item(), axis[i].item() + length
        near = np.abs(boundary.segments - [(low + high) / 2, axis[j].item()]).max(axis=2).min(axis=1) < 1.5
        assert crosses(boundary.segments[near], low, high, axis[j].item())


def crosses(segments: NDArray[np.float64], low: float, high: float, y: float) -> bool:
    (x0, y0), (x1, y1) = segments[:, 0].T, segments[:, 1].T
    hit = (y0 - y) * (y1 - y) <= 0
    with np.errstate(divide="ignore", invalid="ignore"):
        x = x0 + (y - y0) / (y1 - y0) * (x1 - x0)
    return bool((hit & (x >= low - 1e-9) & (x <= high + 1e-9)).any())


def test_a_decision_boundary_along_a_side_is_found_once() -> None:
    cells = rs.plane_cells(lambda x: torch.stack([x[:, 0].relu(), (-x[:, 0]).relu()], dim=1), square())
    boundary = cells.decision_boundary()
    assert len(cells) == 2
    assert boundary.length == pytest.approx(2.0)
    assert np.allclose(boundary.segments[..., 0], 0)


def test_outputs_that_only_touch_are_no_decision_boundary() -> None:
    cells = rs.plane_cells(lambda x: torch.stack([x[:, 0].abs(), 0 * x[:, 0]], dim=1), square())
    assert len(cells) == 2
    assert cells.decision_boundary().length == 0


def test_one_output_has_its_boundary_at_zero() -> None:
    model = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1)).double()
    torch.manual_seed(0)
    cells = rs.plane_cells(model, square(3.0))
    boundary = cells.decision_boundary()
    values = model(torch.from_numpy(boundary.segments.reshape(-1, 2)))
    assert torch.allclose(values, torch.zeros_like(values), atol=1e-12)


def test_cells_with_one_map_are_one_functional_region() -> None:
    model = lines([[1, 0], [0, 1], [1, 1]], [0, 0, 0.5])
    last = model[2]
    assert isinstance(last, nn.Linear)
    last.weight.data = torch.tensor([[1.0, 0.0, 2.0]]).double()
    cells = rs.plane_cells(model, square())
    assert len(cells) == 7
    assert len(np.unique(cells.functional_regions())) == 4, "the second unit does nothing"


def lines_that_nearly_meet(levels: Tensor) -> nn.Sequential:
    """Lines x = a, y = a and x + y = a for all levels a: where three meet they leave cells that are mere rounding."""
    normals = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], dtype=torch.float64)
    model = nn.Sequential(nn.Linear(2, 3 * len(levels)), nn.ReLU(), nn.Linear(3 * len(levels), 1)).double()
    model[0].weight.data = normals.repeat_interleave(len(levels), 0)
    model[0].bias.data = -levels.repeat(3)
    return model


def test_cells_that_are_smaller_than_rounding_have_the_maps_of_their_patterns() -> None:
    model = lines_that_nearly_meet(0.1 * torch.arange(1, 10, dtype=torch.float64))
    cells = rs.plane_cells(model, rs.Plane.coordinates(torch.full((2,), 0.3, dtype=torch.float64)))
    assert cells.areas.min() < 1e-20  # 0.1 + 0.2 is not 0.3
    first, last = (p.detach().numpy() for p in model.parameters() if p.dim() == 2)
    assert cells.affine_maps()[0][:, 0] == pytest.approx((cells.patterns * last) @ first, abs=1e-12)
    assert len(set(cells.functional_regions())) == len(cells)


@pytest.mark.parametrize("seed", [10, 57, 59, 125, 138])
def test_points_are_found_though_cells_on_the_way_are_smaller_than_rounding(seed: int) -> None:
    """Planes through images of few levels of grey have such cells, whose sides have no direction, and led astray."""
    generator = torch.Generator().manual_seed(seed)
    images = torch.zeros(3, 2, 8, 8, dtype=torch.float64)
    images[:, :, 2:5, 1:4] = (8 * torch.rand(3, 2, 3, 3, generator=generator, dtype=torch.float64)).round() / 8
    layer = nn.Conv2d(2, 2, 3, dtype=torch.float64)
    layer.weight.data = torch.randint(-3, 4, (2, 2, 3, 3), generator=generator).double() / 4
    assert layer.bias is not None
    layer.bias.data = torch.tensor([0.5, -0.25], dtype=torch.float64)
    plane = rs.Plane.through(*images, margin=3.0)
    cells = rs.plane_cells(nn.Sequential(layer, nn.Hardtanh(0.0, 1.0), nn.Flatten()), plane)
    assert cells.areas.min() < 1e-20
    u = np.random.default_rng(0).uniform(-1, 1, (3000, 2)) * plane.domain.max()
    values = layer(plane.points(u).reshape(-1, 2, 8, 8)).detach().flatten(1).numpy()
    assert (cells.patterns[cells.locate(u)] == (values > 0).astype(int) + (values > 1)).all()


def test_points_outside_are_in_no_cell() -> None:
    cells = rs.plane_cells(case("dense").model, plane_of(case("dense")))
    assert cells.locate([[4.0, 0.0], [0.0, 0.0]])[0] == -1
    assert cells.locate([[0.0, 0.0]])[0] >= 0


# files, pictures, limits


def test_saved_cells_come_back(each: Case, tmp_path: Path) -> None:
    cells = rs.plane_cells(each.model, plane_of(each))
    cells.save(tmp_path / "cells.npz")
    back = rs.PlaneCells.load(tmp_path / "cells.npz")
    assert len(back) == len(cells)
    assert np.array_equal(back.areas, cells.areas)
    assert np.array_equal(back.patterns, cells.patterns)
    assert back.sites == cells.sites
    assert np.array_equal(back.decision_boundary().segments, cells.decision_boundary().segments)
    with pytest.raises(ValueError, match=r"load\(path, model=...\)"):
        back.affine_maps()
    if not any(p.dtype == torch.float64 for p in each.model.parameters()):
        assert rs.PlaneCells.load(tmp_path / "cells.npz", model=each.model).verify().holds


@pytest.mark.parametrize("name", ["cells", "cells.npz", "cells.v1", "cells.npz.bak"])
def test_cells_are_loaded_by_the_name_they_were_saved_by(name: str, tmp_path: Path) -> None:
    cells = rs.plane_cells(case("dense").model, plane_of(case("dense")))
    cells.save(str(tmp_path / name))
    assert [file.name for file in tmp_path.iterdir()] == [name]
    assert len(rs.PlaneCells.load(str(tmp_path / name))) == len(cells)


def test_a_full_disk_leaves_the_cells_that_were_there(tmp_path: Path) -> None:
    old, new = (rs.plane_cells(case("dense").model, plane_of(case("dense"), radius)) for radius in (0.1, 3.0))
    old.save(tmp_path / "cells")
    with full_disk(), pytest.raises(OSError, match="File too large"):
        new.save(tmp_path / "cells")
    assert [file.name for file in tmp_path.iterdir()] == ["cells"]
    assert len(rs.PlaneCells.load(tmp_path / "cells")) == len(old) != len(new)


def test_a_file_without_cells_is_named(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no cells")
    np.save(tmp_path / "one.npy", np.zeros(3))
    np.savez(tmp_path / "other.npz", vertices=np.zeros(3))
    for name, why in (("text", "is damaged"), ("one.npy", "is damaged"), ("other.npz", "is no file of cells")):
        with pytest.raises(ValueError, match=f"{name} {why}"):
            rs.PlaneCells.load(tmp_path / name)
    with pytest.raises(FileNotFoundError, match="nothing"):
        rs.PlaneCells.load(tmp_path / "nothing")


def test_loading_executes_no_code(tmp_path: Path) -> None:
    path = tmp_path / "evil.npz"
    np.savez(path, about=np.array([{"format": 1}], dtype=object))
    with pytest.raises(ValueError, match=r"evil\.npz is damaged: it holds object of shape"):
        rs.PlaneCells.load(path)


def test_a_file_of_another_format_is_named(tmp_path: Path) -> None:
    path = tmp_path / "cells.npz"
    rs.plane_cells(case("dense").model, plane_of(case("dense"))).save(path)
    with zipfile.ZipFile(path) as file:
        assert all(name.endswith(".npy") for name in file.namelist())
    with np.load(path) as file:
        stored = dict(file) | {"about": np.array('{"format": 99}')}
    np.savez(path, **stored)
    with pytest.raises(ValueError, match="has format 99"):
        rs.PlaneCells.load(path)


def test_a_file_that_has_the_names_of_tournaments_only_is_read(tmp_path: Path) -> None:
    path, each = tmp_path / "cells.npz", case("maxout")
    rs.plane_cells(each.model, plane_of(each)).save(path)
    with np.load(path) as file:
        stored = dict(file)
    about = json.loads(str(stored["about"]))
    names = [site["tournament"] and site["tournament"]["name"] for site in about["sites"]]
    for site, name in zip(about["sites"], names, strict=True):
        site["tournament"] = name
    np.savez(path, **(stored | {"about": np.array(json.dumps(about))}))
    back = rs.PlaneCells.load(path, model=each.model)
    assert any(names)
    assert [site.tournament and site.tournament.name for site in back.sites] == names
    assert back.verify().holds


def test_a_runaway_is_stopped() -> None:
    with pytest.raises(rs.TooManyCells, match=r"max_cells=20 cells while cutting by '3:0' \(layer 2\)"):
        rs.plane_cells(case("dense").model, plane_of(case("dense")), max_cells=20)


def test_smooth_networks_are_refused() -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.GELU())
    with pytest.raises(rs.UnsupportedModel, match="smooth"):
        rs.plane_cells(model, square())
    with pytest.raises(ValueError, match=r"not piecewise linear \(gelu\)"):
        rs.plane_cells(rs.trace(model, torch.zeros(1, 2), allow_smooth=True), square())


def test_a_plane_of_another_space_is_refused() -> None:
    with pytest.raises(ValueError, match="inputs with 3 entries"):
        rs.plane_cells(rs.trace(mlp(2, 3, 1), torch.zeros(1, 2)), rs.Plane.around(torch.zeros(3), 1.0))


def test_a_network_without_sites_is_one_cell() -> None:
    cells = rs.plane_cells(nn.Linear(2, 3), square())
    assert len(cells) == 1
    assert cells.verify().holds


def test_a_progress_bar_can_be_shown(capsys: pytest.CaptureFixture[str]) -> None:
    rs.plane_cells(case("dense").model, plane_of(case("dense")), show_progress=True)
    assert "cutting" in capsys.readouterr().err


def test_planes_are_cut_on_two_threads_at_once() -> None:
    chosen = [case(name) for name in ("dense", "max_pool")]
    nets, planes = [rs.trace(c.model, c.points) for c in chosen], [plane_of(c) for c in chosen]
    alone = [len(rs.plane_cells(net, plane)) for net, plane in zip(nets, planes, strict=True)]
    with ThreadPoolExecutor(2) as pool:
        together = [list(pool.map(lambda n, p: len(rs.plane_cells(n, p)), nets, planes)) for _ in range(5)]
    assert together == [alone] * 5


def test_torch_keeps_its_number_of_threads() -> None:
    """Whoever trains on one thread goes on so."""
    code = (
        "import torch, regionscope as rs; torch.set_num_threads(1);"
        "model = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.ReLU());"
        "rs.plane_cells(model, rs.Plane.coordinates(torch.zeros(2))); assert torch.get_num_threads() == 1"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_search_ends_with_what_its_check_raises() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1))
    calls: list[int] = []

    def check() -> None:
        calls.append(len(calls))
        if len(calls) == 2:
            raise InterruptedError("enough")

    with pytest.raises(InterruptedError, match="enough"):
        rs.plane_cells(model, rs.Plane.coordinates(torch.zeros(2)), check=check)
    assert calls == [0, 1]


def test_a_cell_has_one_code_in_every_window() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 30), nn.ReLU(), nn.Linear(30, 30), nn.ReLU(), nn.Linear(30, 1))
    whole, part = (rs.plane_cells(model, rs.Plane.coordinates(torch.zeros(2), radius=r)) for r in (2.0, 0.5))
    found = dict(zip(pattern_codes(whole.packed_patterns).tolist(), map(tuple, whole.patterns), strict=True))
    assert len(found) == len(whole) > len(part) > 10
    for code, pattern in zip(pattern_codes(part.packed_patterns).tolist(), part.patterns, strict=True):
        assert found[code] == tuple(pattern)


def test_a_network_that_is_ready_for_exact_regions_is_not_copied_again() -> None:
    model = nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 2))
    net = rs.trace(model, torch.zeros(1, 2))
    ready = exact(net)
    assert ready is not net and exact(ready) is ready
    assert exact(ready.frozen()) is not ready  # what was made of it is another network
    with torch.no_grad():
        next(model.parameters()).mul_(2)
    assert not torch.equal(exact(net)(torch.ones(1, 2).double()), ready(torch.ones(1, 2).double()))
