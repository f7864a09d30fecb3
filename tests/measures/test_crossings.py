"""Boundary crossings against the definition, exact geometry and the experiments of PD App. C."""

import math

import numpy as np
import pytest
import torch
from cases import CASES, case, mlp
from oracles import naive_crossings
from torch import Tensor, nn

import regionscope as rs
from regionscope.machine import FLOATS_AT_ONCE
from regionscope.measures import neighbourhoods
from regionscope.measures.confirmations import DIAMOND
from regionscope.measures.crosspolytopes import extremes_of
from regionscope.measures.neighbourhoods import passage, random_frame

RADII = (0.1, 1.0, 10.0)


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def frozen_case(name: str) -> tuple[rs.Network, Tensor, Tensor]:
    """A case in float64, its points and a frame of at most three directions."""
    c = case(name)
    d = c.points[0].numel()
    return rs.trace(c.model, c.points).frozen(), c.points.double(), random_frame(min(3, d), d, seeded())


def he(*widths: int, bias: float = 0.1, act: type[nn.Module] = nn.ReLU) -> nn.Sequential:
    """A wide random network in float64."""
    torch.manual_seed(0)
    model = mlp(*widths, act=act).double()
    for layer in model:
        if isinstance(layer, nn.Linear):
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
            nn.init.normal_(layer.bias, std=bias)
    return model


# the definition


@pytest.mark.parametrize("centre", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_crossings_are_those_of_the_definition(name: str, centre: bool) -> None:
    net, points, frame = frozen_case(name)
    results = rs.boundary_crossings(net, points, radius=RADII, frame=frame, include_centre=centre)
    for r, result in zip(RADII, results, strict=True):
        expected = [naive_crossings(net, x, frame, r, centre=centre) for x in points]
        assert result.per_layer is not None
        assert result.per_layer.tolist() == expected
        assert result.per_point.tolist() == [sum(row) for row in expected]
        layers = range(1, net.layers + 1)
        there = [sum(len(s.breakpoints) * s.units for s in net.sites if s.layer == layer) for layer in layers]
        assert result.boundaries.tolist() == there
        assert result.layer_fraction.tolist() == [[c / n for c, n in zip(row, there, strict=True)] for row in expected]


@pytest.mark.parametrize("name", CASES)
def test_every_point_may_have_its_own_frame(name: str) -> None:
    net, points, frame = frozen_case(name)
    (P, d), g = frame.shape, seeded(3)
    result = rs.boundary_crossings(net, points, radius=1.0, directions=P, shared_frame=False, generator=seeded(3))
    assert result.per_layer is not None
    assert result.per_layer.tolist() == [naive_crossings(net, x, random_frame(P, d, g), 1.0) for x in points]


def thinned() -> nn.Sequential:
    """A wide network with units that have no weights, and a layer without biases."""
    model = he(12, 40, 30, 40, 20, 3, bias=0.3)
    for layer, dead in ((model[0], [0, 3]), (model[2], [1]), (model[6], [2, 5])):
        assert isinstance(layer, nn.Linear)
        layer.weight.data[dead] = 0.0
        layer.bias.data[dead[0]] = 0.0
    model[4] = nn.Linear(30, 40, bias=False).double()
    return model


@pytest.mark.parametrize("radius", [1e-3, 0.03, 0.3, 3.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shared", [True, False])
def test_dense_layers_have_the_crossings_of_the_definition(dtype: torch.dtype, radius: float, shared: bool) -> None:
    net = rs.trace(thinned().to(dtype), torch.zeros(1, 12, dtype=dtype))
    points, g = torch.randn(60, 12, generator=seeded(), dtype=torch.float64).to(dtype), seeded(2)
    assert len(passage(net, range(1, 5)).layers) == 3
    found = rs.boundary_crossings(net, points, radius=radius, directions=10, shared_frame=shared, generator=seeded(2))
    frames = [random_frame(10, 12, g).to(dtype).double() for _ in range(1 if shared else 60)] * (60 if shared else 1)
    expected = [naive_crossings(net.frozen(), x, v, radius) for x, v in zip(points.double(), frames, strict=True)]
    assert found.per_layer is not None and found.per_layer.tolist() == expected


def test_values_that_may_be_rounding_have_the_sign_that_float64_gives_them() -> None:
    model = mlp(16, 12, 12, 2)
    for layer in list(model)[::2]:
        assert isinstance(layer, nn.Linear)
        layer.weight.data = torch.randint(-2, 3, layer.weight.shape, generator=seeded()).float()
        layer.bias.data = torch.randint(-2, 3, layer.bias.shape, generator=seeded()).float()
    points, frame = torch.randint(-2, 3, (200, 16), generator=seeded()).float(), torch.eye(16)
    net = rs.trace(model, points)
    bundle = next(iter(neighbourhoods.bundles(passage(net, (1, 2)), [points], frame, 16, reach=1.0)))
    size = points.norm(dim=1)
    assert extremes_of(bundle.passage.layers, bundle.centres[0], bundle.arms[0], size).doubtful.mean() > 0.5
    found = rs.boundary_crossings(net, points, radius=1.0, frame=frame)
    expected = [naive_crossings(net.frozen(), x, frame.double(), 1.0) for x in points.double()]
    assert found.per_layer is not None and found.per_layer.tolist() == expected


def test_only_dense_layers_behind_relus_are_taken_together() -> None:
    class Skip(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b, self.c = nn.Linear(9, 9), nn.Linear(9, 9), nn.Linear(9, 9)

        def forward(self, x: Tensor) -> Tensor:
            h = torch.relu(self.a(x))
            return torch.relu(self.c(torch.relu(self.b(h)) + h))

    class Halved(Skip):
        def forward(self, x: Tensor) -> Tensor:
            h = torch.relu(self.a(x))
            return torch.relu(torch.addmm(self.b.bias, h, self.b.weight, beta=0.5))

    points, frame = torch.randn(20, 9, generator=seeded()).double(), random_frame(9, 9, seeded())
    coarse = rs.trace(mlp(9, 9, 9, 2).bfloat16(), points.bfloat16())  # its roundings are not known
    assert not passage(coarse, (1, 2)).layers
    last = nn.Sequential(nn.Linear(9, 9), nn.ReLU(), nn.Linear(9, 9), nn.Hardtanh()).double()
    for model in (Skip().double(), Halved().double(), mlp(9, 9, 9, 2, act=nn.LeakyReLU).double(), last):
        net = rs.trace(model, points)
        assert not passage(net, range(1, net.layers + 1)).layers
        found = rs.boundary_crossings(net, points, radius=0.3, frame=frame)
        expected = [naive_crossings(net, x, frame, 0.3) for x in points]
        assert found.per_layer is not None and found.per_layer.tolist() == expected


class Smooth(nn.Module):
    """Something smooth that is no site comes before the first site."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.body = nn.LayerNorm(4), mlp(4, 8, 6, 2, act=nn.GELU)

    def forward(self, x: Tensor) -> Tensor:
        return self.body(self.norm(x))  # type: ignore[no-any-return]


class Rows(nn.Module):
    """A tensor made for the number of points comes before the first site and is used after it."""

    def __init__(self) -> None:
        super().__init__()
        self.enter, self.again = nn.Linear(4, 5), nn.Linear(5, 3)

    def forward(self, x: Tensor) -> Tensor:
        rows = torch.arange(len(x))
        h = torch.relu(self.enter(x))
        return torch.relu(self.again(h[rows]))


class Branches(nn.Module):
    """Two sites of one layer whose values are made in the other order, and a skip from the input."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.head = nn.Linear(4, 5), nn.Linear(4, 5), nn.Linear(9, 3)

    def forward(self, x: Tensor) -> Tensor:
        late, early = self.a(x), self.b(x)
        h = early.relu() + late.abs()
        return torch.relu(self.head(torch.cat([h, x], dim=1)))


@pytest.mark.parametrize("make", [Smooth, Rows, Branches])
@pytest.mark.parametrize("layers", [None, [2]])
def test_networks_of_other_forms_meet_the_definition(make: type[nn.Module], layers: list[int] | None) -> None:
    torch.manual_seed(0)
    model, points, frame = make().double(), torch.randn(6, 4).double(), random_frame(3, 4, seeded())
    net = rs.trace(model, points, allow_smooth=True)
    result = rs.boundary_crossings(net, points, radius=0.7, frame=frame, layers=layers)
    expected = np.array([naive_crossings(net, x, frame, 0.7) for x in points])
    assert result.per_layer is not None and expected.sum() > 0
    assert result.per_layer.tolist() == expected[:, [layer - 1 for layer in layers or (1, 2)]].tolist()


def test_only_a_head_known_to_be_affine_is_shared() -> None:
    points = torch.zeros(1, 4)
    for model, whole in ((mlp(4, 8, 2), False), (Branches(), False), (Smooth(), True), (Rows(), False)):
        net = rs.trace(model, points, allow_smooth=True)
        assert (passage(net, range(1, net.layers + 1)).head.steps == ()) is whole


def test_a_value_at_the_breakpoint_is_on_its_left() -> None:
    model = nn.Sequential(nn.ReLU(), nn.Linear(2, 1))
    frame = torch.eye(2)
    touching = rs.boundary_crossings(model, torch.tensor([[1.0, 3.0], [-1.0, 3.0]]), radius=1.0, frame=frame)
    assert touching.per_point.tolist() == [1, 0]  # from 0 to 2 both pieces occur, from -2 to 0 one


def test_dead_units_and_networks_without_sites_are_not_crossed() -> None:
    linear = rs.boundary_crossings(nn.Linear(3, 2), torch.zeros(4, 3), radius=1.0, directions=2)
    assert linear.per_point.tolist() == [0] * 4 and linear.warning is None
    nothing = rs.confirmed_crossings(nn.Linear(3, 2), torch.zeros(4, 3), radius=1.0)
    assert nothing.counted.shape == nothing.exact.shape == (4, 0) and nothing.confirmed == nothing.found == 1.0
    net, points, frame = frozen_case("dead_units")
    assert (rs.boundary_crossings(net, points, radius=1.0, frame=frame).fraction < 0.5).all()


# exact geometry


def test_the_first_layer_is_exact_on_a_plane() -> None:
    torch.manual_seed(0)
    model, points, frame = mlp(2, 40, 20, 2).double(), torch.randn(5, 2).double(), random_frame(2, 2, seeded())
    result = rs.boundary_crossings(model, points, radius=0.5, frame=frame, layers=[1])
    for x, count in zip(points, result.per_point, strict=True):
        cells = rs.plane_cells(model, rs.Plane(x, frame.numpy(), 0.5 * DIAMOND))
        assert len(set(cells.edges.unit[cells.edges.layer == 1])) == count


@pytest.mark.parametrize("name", [n for n in CASES if n != "line_input"])
def test_exact_geometry_confirms_every_crossing_and_finds_no_other_in_the_first_layer(name: str) -> None:
    net, points, frame = frozen_case(name)
    report = rs.confirmed_crossings(net, points[:3], radius=1.0, frame=frame)
    counted = rs.boundary_crossings(net, points[:3], radius=1.0, frame=frame).per_layer
    assert counted is not None and report.counted.tolist() == counted.tolist()
    assert report.confirmed == 1.0
    if name != "maxout":  # the second round of its tournament is not affine in the input
        assert report.found_by_layer[0] == 1.0


def test_a_larger_neighbourhood_misses_boundaries_and_says_so() -> None:
    model, points = he(8, 64, 64, 64, 64, 1, bias=0.3), torch.randn(4, 8, generator=seeded()).double()
    near, far = rs.boundary_crossings(model, points, radius=[0.02, 10.0], directions=4, generator=seeded())
    assert near.warning is None
    assert far.warning is not None and "crossings there are a lower bound" in far.warning
    assert far.to_dict()["warning"] == far.warning
    few, many = (
        rs.confirmed_crossings(model, points, radius=r, directions=4, generator=seeded()) for r in (0.02, 10.0)
    )
    assert few.confirmed == many.confirmed == few.found == 1.0
    assert many.found < 0.95 and "% of all" in repr(many)


# PD App. C


def test_a_deep_linear_network_without_bias_is_crossed_by_every_unit_at_the_origin() -> None:
    model = he(784, *[400] * 49, 10, bias=0.0, act=nn.PReLU)
    for module in model:
        if isinstance(module, nn.PReLU):
            nn.init.ones_(module.weight)  # linear, and a site all the same
    origin = torch.zeros(1, 784).double()
    net, radii = rs.trace(model, origin), [1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0]
    for P in (2, 10, 25, 50, 100, 200):
        for result in rs.boundary_crossings(net, origin, radius=radii, directions=P, generator=seeded()):
            assert result.per_point.tolist() == [49 * 400] and result.fraction.tolist() == [1.0]


def test_crossings_of_a_network_without_bias_at_the_origin_do_not_depend_on_the_radius() -> None:
    model, origin = he(20, 50, 50, 50, 2, bias=0.0), torch.zeros(1, 20).double()
    radii = [2.0**k for k in range(-10, 11, 4)]  # powers of two scale every float exactly
    counts = [r.per_point[0] for r in rs.boundary_crossings(model, origin, radius=radii, directions=5)]
    assert len(set(counts)) == 1 and 0 < counts[0] < 150


def test_crossings_fall_with_the_distance_from_the_origin_and_saturate_in_the_directions() -> None:
    model, frames = he(784, *[100] * 17, 10, act=nn.LeakyReLU), 8
    shifts = torch.linspace(0, 10, 6).repeat_interleave(frames)[:, None].expand(-1, 784).double()
    directions = (2, 10, 25, 100)
    means = np.array(
        [
            rs.boundary_crossings(model, shifts, radius=5.0, directions=P, shared_frame=False, generator=seeded())
            .per_point.reshape(-1, frames)
            .mean(axis=1)
            for P in directions
        ]
    )  # (directions, shifts)
    assert (np.diff(means, axis=1) < 0).all()
    rates = np.diff(means, axis=0) / np.diff(directions)[:, None]
    assert (rates > 0).all() and (np.diff(rates, axis=0) < 0).all()


# how it is run


def test_the_result_does_not_depend_on_batches_or_on_how_the_data_comes() -> None:
    c = case("conv")
    whole = rs.boundary_crossings(c.model, c.points, radius=0.5, directions=4, generator=seeded())
    loader = [(c.points[:2], torch.zeros(2)), {"image": c.points[2:]}]
    for data, batch_size in ((c.points, 1), (c.points, 2), (loader, None), (loader, 1)):
        part = rs.boundary_crossings(
            c.model, data, radius=0.5, directions=4, generator=seeded(), batch_size=batch_size, show_progress=True
        )
        assert part.per_layer is not None and whole.per_layer is not None
        assert part.per_layer.tolist() == whole.per_layer.tolist()
        own = [
            rs.boundary_crossings(
                c.model, d, radius=0.5, directions=4, generator=seeded(), shared_frame=False, batch_size=b
            ).per_point.tolist()
            for d, b in ((c.points, None), (data, batch_size))
        ]
        assert own[0] == own[1]


def test_memory_does_not_grow_with_the_number_of_points(monkeypatch: pytest.MonkeyPatch) -> None:
    model, sizes = mlp(10, 500, 500, 2), []
    embedded = neighbourhoods.Bundle.embedded

    def watched(self: neighbourhoods.Bundle, radius: float, *, include_centre: bool = False):  # type: ignore[no-untyped-def]
        for site, vertices in embedded(self, radius, include_centre=include_centre):
            sizes.append(vertices.numel())
            yield site, vertices

    monkeypatch.setattr(neighbourhoods.Bundle, "embedded", watched)
    rs.boundary_crossings(model, torch.zeros(1000, 10), radius=1.0, directions=5)
    assert max(sizes) <= FLOATS_AT_ONCE and sum(sizes) == 1000 * 10 * 1000


def test_the_model_comes_back_as_it_was() -> None:
    c = case("batch_norm")
    before = {name: tensor.clone() for name, tensor in c.model.state_dict().items()}
    state = torch.get_rng_state()
    rs.boundary_crossings(c.model, c.points, radius=0.5, directions=4, generator=seeded())
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(before[name], tensor) for name, tensor in c.model.state_dict().items())
    assert not any(p.grad is not None or not p.requires_grad for p in c.model.parameters())


@pytest.mark.parametrize("radius", [0.0, -1.0, math.nan, math.inf])
def test_a_radius_must_be_positive(radius: float) -> None:
    with pytest.raises(ValueError, match="radius must be positive and finite"):
        rs.boundary_crossings(mlp(2, 3, 1), torch.zeros(1, 2), radius=[0.1, radius], directions=2)
    with pytest.raises(ValueError, match="radius must be positive and finite"):
        rs.confirmed_crossings(mlp(2, 3, 1), torch.zeros(1, 2), radius=radius, directions=2)


@pytest.mark.parametrize("dimension", [1, 2, 3, 30])
@pytest.mark.parametrize("shared", [True, False])
def test_no_more_directions_are_taken_than_the_input_has_and_the_result_says_how_many(
    dimension: int, shared: bool
) -> None:
    model, x = mlp(dimension, 6, 5, 1), torch.randn(3, dimension)
    P = min(25, dimension)
    found = rs.boundary_crossings(model, x, radius=0.7, shared_frame=shared, generator=seeded())
    as_told = rs.boundary_crossings(model, x, radius=0.7, shared_frame=shared, generator=seeded(), directions=P)
    assert found.directions == as_told.directions == found.to_dict()["options"]["directions"] == P
    assert found.per_layer is not None and as_told.per_layer is not None
    assert (found.per_layer == as_told.per_layer).all()
    assert rs.boundary_crossings(model, x, radius=0.7, frame=torch.eye(dimension)[:1]).directions == 1
    if dimension > 1:
        assert rs.neighbourhood_deformation(model, x, radius=0.7, shared_frame=shared).directions == P
        assert rs.confirmed_crossings(model, x, radius=0.7).directions == P
    else:
        with pytest.raises(ValueError, match="take at least 2, got 1"):
            rs.neighbourhood_deformation(model, x, radius=0.7, shared_frame=shared)
        with pytest.raises(ValueError, match="take at least 2, got 1"):
            rs.confirmed_crossings(model, x, radius=0.7)


def test_bad_input_is_refused_with_a_reason() -> None:
    model, x = mlp(2, 3, 1), torch.zeros(1, 2)
    for directions in (0, -1):
        with pytest.raises(ValueError, match=f"directions must be at least 1, got {directions}"):
            rs.boundary_crossings(model, x, radius=1.0, directions=directions)
    with pytest.raises(ValueError, match="radius must be a number or several, got none"):
        rs.boundary_crossings(model, x, radius=[], directions=2)
    with pytest.raises(ValueError, match="no points in the data"):
        rs.boundary_crossings(model, x[:0], radius=1.0, directions=2)
    with pytest.raises(ValueError, match="no points in the data"):
        rs.boundary_crossings(model, [], radius=1.0, directions=2)
    with pytest.raises(ValueError, match=r"layers must be numbers from 1 to 1, got \[2\]"):
        rs.boundary_crossings(model, x, radius=1.0, directions=2, layers=[2])
    with pytest.raises(ValueError, match="leave frame out"):
        rs.boundary_crossings(model, x, radius=1.0, frame=torch.eye(2), shared_frame=False)
    with pytest.raises(ValueError, match="take at least 2, got 1"):
        rs.confirmed_crossings(model, x, radius=1.0, directions=1)
    smooth = rs.trace(mlp(2, 3, 1, act=nn.GELU), x, allow_smooth=True)
    with pytest.raises(ValueError, match="the network is not piecewise linear"):
        rs.confirmed_crossings(smooth, x, radius=1.0, directions=2)


def test_a_frame_must_be_orthonormal_to_the_stated_tolerance() -> None:
    model, x = mlp(3, 4, 1), torch.zeros(1, 3)
    for bad in (torch.zeros(4, 3), torch.eye(3)[0], torch.eye(2), torch.zeros(0, 3)):
        with pytest.raises(ValueError, match=r"frame must be \(P, 3\) with 1 <= P <= 3"):
            rs.boundary_crossings(model, x, radius=1.0, frame=bad)
    for error in (1.1e-5, 1.0, math.nan):
        bad = torch.eye(3, dtype=torch.float64)
        bad[0, 1] = error
        with pytest.raises(ValueError, match="frame must have orthonormal rows to 1e-05"):
            rs.boundary_crossings(model, x, radius=1.0, frame=bad)
    good = torch.eye(3, dtype=torch.float64)
    good[0, 1] = 9e-6
    assert rs.boundary_crossings(model, x, radius=1.0, frame=good).n == 1
