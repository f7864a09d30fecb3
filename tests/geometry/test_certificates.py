"""A certificate notices what is wrong with cells, and `certified=True` proves every sign or says that it cannot."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import regionscope as rs
from regionscope.geometry.settling import Undecided


def dense(activation: nn.Module) -> nn.Module:
    return nn.Sequential(nn.Linear(2, 7), activation, nn.Linear(7, 5), activation, nn.Linear(5, 2))


def pooled() -> nn.Module:
    return nn.Sequential(nn.Conv2d(1, 2, 2), nn.ReLU(), nn.MaxPool2d(2, 1), nn.Flatten(), nn.Linear(8, 2))


def maxout() -> nn.Module:
    return nn.Sequential(nn.Linear(2, 12), nn.Unflatten(1, (3, 4)), Best(), nn.Linear(3, 5), nn.ReLU())


class Best(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.amax(dim=2)


class Skip(nn.Module):
    """x + f(x)."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(2, 6), nn.Linear(6, 2)

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.leaky_relu(x + self.second(torch.relu(self.first(x))), 0.2)


MODELS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "dense": (lambda: dense(nn.ReLU()), (2,)),
    "hardtanh": (lambda: dense(nn.Hardtanh(-0.5, 0.7)), (2,)),
    "two breakpoints": (lambda: dense(nn.Softshrink(0.3)), (2,)),
    "pooled": (pooled, (1, 4, 4)),
    "maxout": (maxout, (2,)),
    "skip": (Skip, (2,)),
}


def model_of(name: str) -> tuple[nn.Module, rs.Plane]:
    torch.manual_seed(3)
    made, shape = MODELS[name]
    plane = rs.Plane.around(torch.zeros(shape).double(), 2.0, generator=torch.Generator().manual_seed(0))
    return made().double(), plane


@pytest.fixture(scope="module", params=MODELS)
def cells(request: pytest.FixtureRequest) -> rs.PlaneCells:
    found = rs.plane_cells(*model_of(request.param))
    assert len(found) > 10
    assert holds(found)
    return found


def holds(cells: rs.PlaneCells) -> bool:
    return cells.verify(generator=torch.Generator().manual_seed(0)).holds


# corruption; each takes the cells and a random number generator


def flip_a_bit(cells: rs.PlaneCells, rng: np.random.Generator) -> rs.PlaneCells:
    """Of one unit, or of the number of a winner."""
    patterns, column = cells.packed_patterns.copy(), cells.columns[rng.integers(len(cells.columns))]
    entry = rng.integers(column.entries * max(column.breakpoints, 1))
    bit = 64 * column.first_word + (entry if column.breakpoints else 32 * entry)
    patterns[rng.integers(len(cells)), bit // 64] ^= np.uint64(1) << np.uint64(bit % 64)
    return replace(cells, packed_patterns=patterns)


def swap_two_patterns(cells: rs.PlaneCells, rng: np.random.Generator) -> rs.PlaneCells:
    patterns, (i, j) = cells.packed_patterns.copy(), rng.choice(len(cells), 2, replace=False)
    patterns[[i, j]] = patterns[[j, i]]
    return replace(cells, packed_patterns=patterns)


def swap_neighbours(cells: rs.PlaneCells, rng: np.random.Generator) -> rs.PlaneCells:
    patterns = cells.packed_patterns.copy()
    inner = np.flatnonzero((cells.edges.cells >= 0).all(axis=1))
    i, j = cells.edges.cells[rng.choice(inner)]
    patterns[[i, j]] = patterns[[j, i]]
    return replace(cells, packed_patterns=patterns)


def repeat_a_pattern(cells: rs.PlaneCells, rng: np.random.Generator) -> rs.PlaneCells:
    patterns, (i, j) = cells.packed_patterns.copy(), rng.choice(len(cells), 2, replace=False)
    patterns[i] = patterns[j]
    return replace(cells, packed_patterns=patterns)


def move_a_vertex(cells: rs.PlaneCells, rng: np.random.Generator) -> rs.PlaneCells:
    vertices = cells.vertices.copy()
    vertices[rng.integers(len(vertices))] += rng.choice([1e-3, -1e-3, 1e-6]) * rng.normal(size=2)
    return replace(cells, vertices=vertices)


def drop_a_corner(cells: rs.PlaneCells, rng: np.random.Generator) -> rs.PlaneCells:
    cell = rng.integers(len(cells))
    place = rng.integers(cells.offsets[cell], cells.offsets[cell + 1])
    offsets = cells.offsets - (np.arange(len(cells.offsets)) > cell)
    return replace(cells, corners=np.delete(cells.corners, place), offsets=offsets)


def repeat_a_corner(cells: rs.PlaneCells, rng: np.random.Generator) -> rs.PlaneCells:
    cell = rng.integers(len(cells))
    place = rng.integers(cells.offsets[cell], cells.offsets[cell + 1])
    offsets = cells.offsets + (np.arange(len(cells.offsets)) > cell)
    return replace(cells, corners=np.insert(cells.corners, place, cells.corners[place]), offsets=offsets)


def exchange_a_corner(cells: rs.PlaneCells, rng: np.random.Generator) -> rs.PlaneCells:
    corners = cells.corners.copy()
    place = rng.integers(len(corners))
    corners[place] = (corners[place] + rng.integers(1, len(cells.vertices))) % len(cells.vertices)
    return replace(cells, corners=corners)


def relabel_an_edge(cells: rs.PlaneCells, rng: np.random.Generator) -> rs.PlaneCells:
    """With another unit of a site that is no round of a tournament."""
    sites = [n for n, site in enumerate(cells.sites) if site.tournament is None]
    edge = rng.choice(np.flatnonzero(np.isin(cells.edges.site, sites)))
    unit, units = cells.edges.unit.copy(), cells.sites[cells.edges.site[edge]].units
    unit[edge] = (unit[edge] + rng.integers(1, units)) % units
    return replace(cells, edges=replace(cells.edges, unit=unit))


def give_an_edge_to_another_site(cells: rs.PlaneCells, rng: np.random.Generator) -> rs.PlaneCells:
    site = cells.edges.site.copy()
    names = [s.tournament.name if s.tournament else s.name for s in cells.sites]
    edge = rng.choice(np.flatnonzero(site >= 0))
    others = [
        n for n, name in enumerate(names) if name != names[site[edge]] and cells.edges.unit[edge] < cells.sites[n].units
    ]
    site[edge] = rng.choice(others) if others else -1
    return replace(cells, edges=replace(cells.edges, site=site))


def turn_an_edge_around(cells: rs.PlaneCells, rng: np.random.Generator) -> rs.PlaneCells:
    sides = cells.edges.cells.copy()
    edge = rng.integers(len(sides))
    sides[edge] = sides[edge, ::-1]
    return replace(cells, edges=replace(cells.edges, cells=sides))


def join_an_edge_elsewhere(cells: rs.PlaneCells, rng: np.random.Generator) -> rs.PlaneCells:
    ends = cells.edges.vertices.copy()
    place = rng.integers(len(ends)), rng.integers(2)
    ends[place] = (ends[place] + rng.integers(1, len(cells.vertices))) % len(cells.vertices)
    return replace(cells, edges=replace(cells.edges, vertices=ends))


def change_an_output(cells: rs.PlaneCells, rng: np.random.Generator) -> rs.PlaneCells:
    assert cells.outputs is not None
    outputs = cells.outputs.copy()
    outputs[rng.integers(len(outputs)), rng.integers(outputs.shape[1])] += rng.choice([1.0, 1e-3, -1e-6])
    return replace(cells, outputs=outputs)


def change_a_layer(cells: rs.PlaneCells, rng: np.random.Generator) -> rs.PlaneCells:
    layer = cells.edges.layer.copy()
    layer[rng.integers(len(layer))] += 1
    return replace(cells, edges=replace(cells.edges, layer=layer))


def change_a_length(cells: rs.PlaneCells, rng: np.random.Generator) -> rs.PlaneCells:
    length = cells.edges.length.copy()
    length[rng.integers(len(length))] *= 1.001
    return replace(cells, edges=replace(cells.edges, length=length))


CORRUPTIONS = [
    flip_a_bit, swap_two_patterns, swap_neighbours, repeat_a_pattern, move_a_vertex, drop_a_corner, repeat_a_corner,
    exchange_a_corner, relabel_an_edge, give_an_edge_to_another_site, turn_an_edge_around, join_an_edge_elsewhere,
    change_an_output, change_a_layer, change_a_length,
]  # fmt: skip


@pytest.mark.parametrize("corrupted", CORRUPTIONS)
def test_a_certificate_notices(cells: rs.PlaneCells, corrupted: Callable[..., rs.PlaneCells]) -> None:
    unnoticed = [seed for seed in range(6) if holds(corrupted(cells, np.random.default_rng(seed)))]
    assert not unnoticed


# every sign is proved, or it is said which are not


@pytest.mark.parametrize("name", MODELS)
def test_certified_cells_are_those_without(name: str) -> None:
    model, plane = model_of(name)
    proved, found = rs.plane_cells(model, plane, certified=True), rs.plane_cells(model, plane)
    assert proved.undecided == 0
    assert (proved.packed_patterns == found.packed_patterns).all()
    assert (proved.vertices == found.vertices).all()
    start, end = plane.points([[-2.0, -1.7], [1.9, 2.0]])
    along, also = rs.line_cells(model, start, end, certified=True), rs.line_cells(model, start, end)
    assert along.undecided == 0
    assert (along.breakpoints == also.breakpoints).all()
    assert (along.packed_patterns == also.packed_patterns).all()


def bicubic(x: Tensor) -> Tensor:
    """A linear operation without a rule."""
    large = nn.functional.interpolate(x.reshape(-1, 1, 1, 2), size=(3, 3), mode="bicubic")
    return torch.relu(large.flatten(1) - 0.1)


def test_what_has_no_rule_cannot_be_certified() -> None:
    plane = rs.Plane.coordinates(torch.zeros(2).double(), radius=2.0)
    cells = rs.plane_cells(bicubic, plane)
    assert cells.undecided > 0
    assert cells.verify().holds
    assert cells.verify().checked_exactly is None
    with pytest.raises(Undecided, match="no bound on the rounding of upsample_bicubic2d"):
        rs.plane_cells(bicubic, plane, certified=True)
    start, end = torch.tensor([[-1.0, -2.0], [1.5, 1.0]]).double()
    assert rs.line_cells(bicubic, start, end).undecided > 0
    with pytest.raises(Undecided, match="no bound on the rounding of upsample_bicubic2d"):
        rs.line_cells(bicubic, start, end, certified=True)


def test_what_has_no_rule_is_cut_as_if_written_otherwise() -> None:
    """What it makes goes on beside the first site too, and at one point everything that enters that is zero."""
    weights = torch.randn(2, 9, 9, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    zero = torch.zeros(1, 2, dtype=torch.float64)

    def enlarged(x: Tensor) -> Tensor:
        return nn.functional.interpolate(x.reshape(-1, 1, 1, 2), size=(3, 3), mode="bicubic").flatten(1)

    def after(y: Tensor) -> Tensor:
        z = torch.relu(y @ weights[0] - 0.3) + y
        return torch.relu(z @ weights[1])

    matrix = torch.autograd.functional.jacobian(enlarged, zero).reshape(9, 2)
    plane = rs.Plane.coordinates(zero[0], radius=2.0)
    cells, also = (rs.plane_cells(m, plane) for m in (lambda x: after(enlarged(x)), lambda x: after(x @ matrix.T)))
    assert len(cells) == len(also)
    assert np.sort(cells.areas) == pytest.approx(np.sort(also.areas), rel=1e-9)
    assert holds(cells)


# one function written in several ways


def avg_pool(x: Tensor, **options: bool) -> Tensor:
    return torch.relu(nn.functional.avg_pool2d(x, 2, 1, 1, **options)).flatten(1)


def dense_avg_pool(x: Tensor) -> Tensor:
    """The same with sums of entries that are divided by their number."""
    windows = [(i, j) for i in range(-1, 4) for j in range(-1, 3)]
    sums = []
    for i, j in windows:
        part = x[:, :, max(i, 0) : i + 2, max(j, 0) : j + 2]
        sums.append(part.sum((1, 2, 3)) / part[0].numel())
    return torch.relu(torch.stack(sums, 1))


SIGNAL = torch.tensor([0.3, -1.0, 2.0, 0.5, -0.7]).double()
WRITTEN_TWICE: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor], tuple[int, ...]]] = {
    "averages of windows of many sizes": (
        lambda x: avg_pool(x, count_include_pad=False),
        dense_avg_pool,
        (1, 4, 3),
    ),
    "division by a number": (
        lambda x: torch.relu((x - x.flip(1)) / 3.0 - (x / 3.0 - x.flip(1) / 3.0) + x / 7.0),
        lambda x: torch.relu(x * (1 / 7)),
        (3,),
    ),
    "rows that pooling leaves out": (
        lambda x: nn.functional.max_pool2d(x, (1, 2), 2),
        lambda x: torch.maximum(x[:, :, ::2, 1::2], x[:, :, ::2, ::2]),
        (1, 4, 4),
    ),
    "windows that begin outside": (
        lambda x: nn.functional.max_pool2d(x, (2, 3), (1, 2), (0, 1), ceil_mode=True),
        lambda x: torch.stack([x[..., :2].amax((2, 3)), x[..., 1:].amax((2, 3))], 2),
        (1, 2, 3),
    ),
    "a factor that float32 does not have": (
        lambda x: torch.relu(x * 1e-60 - 1e-61),
        lambda x: torch.relu(x - 1e-61 / 1e-60),
        (3,),
    ),
    "a layer without units": (
        lambda x: torch.relu(torch.cat([x @ torch.zeros(3, 0).double(), x - 0.2], dim=1)),
        lambda x: torch.relu(x - 0.2),
        (3,),
    ),
    "points as kernels": (
        lambda x: torch.relu(nn.functional.conv1d(SIGNAL[None, None], x[:, None])[0]),
        lambda x: torch.relu(x @ SIGNAL.unfold(0, 3, 1).T),
        (3,),
    ),
    "a layer that is zero": (lambda x: torch.relu(x) + torch.relu(x * 0.0), torch.relu, (3,)),
    "the input itself": (lambda x: torch.relu(x.reshape(len(x), -1)), lambda x: torch.relu(x.flatten(1)), (1, 4, 3)),
}


@pytest.mark.parametrize("name", WRITTEN_TWICE)
def test_the_same_function_has_the_same_cells(name: str) -> None:
    first, second, shape = WRITTEN_TWICE[name]
    for seed, origin in enumerate((torch.zeros(shape), torch.ones(shape))):
        plane = rs.Plane.around(origin.double(), 2.0, generator=torch.Generator().manual_seed(seed))
        found, also = (rs.plane_cells(model, plane, certified=True) for model in (first, second))
        assert len(found) == len(also)
        assert np.sort(found.areas) == pytest.approx(np.sort(also.areas), rel=1e-9)
        assert holds(found)
        start, end = plane.points([[-2.0, -1.7], [1.9, 2.0]])
        along = [rs.line_cells(rs.trace(model, plane.origin[None]), start, end) for model in (first, second)]
        assert len(along[0]) == len(along[1])


@pytest.mark.parametrize("up_to_layer", [None, 1])
def test_vertices_that_rounding_has_moved_are_placed_exactly(up_to_layer: int | None) -> None:
    """Competitors that share a large part: of the rest, which decides, floats have few digits."""
    small = 2.0**-40

    def model(x: Tensor) -> Tensor:
        a, b = x.unbind(1)
        larger = torch.maximum((3.0 + a) + small * b, (3.0 + a) + small * (a / 4 - 0.3))
        return larger if up_to_layer is None else torch.relu(larger - 1.5)

    cells = rs.plane_cells(model, rs.Plane.coordinates(torch.zeros(2).double()), up_to_layer=up_to_layer)
    ends = cells.vertices[cells.edges.vertices[(cells.edges.cells >= 0).all(axis=1)]].reshape(-1, 2)
    assert ends[ends[:, 0].argsort()] == pytest.approx(np.array([[-1.0, -0.55], [1.0, -0.05]]), abs=1e-12)


@pytest.mark.parametrize("up_to_layer", [None, 1])
def test_a_bar_shows_how_far_a_certificate_is(up_to_layer: int | None, capsys: pytest.CaptureFixture[str]) -> None:
    cells = rs.plane_cells(dense(nn.ReLU()), rs.Plane.coordinates(torch.zeros(2)), up_to_layer=up_to_layer)
    cells.verify()
    assert not capsys.readouterr().err
    cells.verify(show_progress=True)
    points = len(cells) + (2 if up_to_layer is None else 1) * len(cells.vertices)
    shown = capsys.readouterr().err
    assert "certifying: 100%" in shown and f" {points}/{points} " in shown
