"""Max-pooling on real images, whose blank background makes competitors tie."""

import math
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import avg_pool2d, cross_entropy, normalize

import regionscope as rs
from regionscope.datasets.sets import mnist_sample

POOL = nn.MaxPool2d(2)
LAYOUTS = ("pool behind ReLU", "pool before ReLU", "two pools", "overlapping")


def images(split: str, n: int) -> tuple[Tensor, Tensor]:
    """MNIST at 14 x 14 in float64: mostly background."""
    x, y = mnist_sample(split)
    return avg_pool2d(x[:n].reshape(-1, 1, 28, 28).double(), 2), y[:n]


@cache
def trained(layout: str) -> nn.Sequential:
    torch.manual_seed(0)
    first, second = nn.Conv2d(1, 4, 3, padding=1), nn.Conv2d(4, 4, 3, padding=1)
    layers = {
        "pool behind ReLU": [first, nn.ReLU(), second, nn.ReLU(), POOL, nn.Flatten(), nn.Linear(196, 10)],
        "pool before ReLU": [first, POOL, nn.ReLU(), second, nn.ReLU(), nn.Flatten(), nn.Linear(196, 10)],
        "two pools": [first, nn.ReLU(), POOL, second, nn.ReLU(), POOL, nn.Flatten(), nn.Linear(36, 10)],
        "overlapping": [first, nn.ReLU(), nn.MaxPool2d(3, 2), second, nn.LeakyReLU(), nn.Flatten(), nn.Linear(144, 10)],
    }[layout]
    model = nn.Sequential(*layers).double()
    x, y = images("train", 500)
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-2)
    for step in range(40):
        rows = slice(step % 5 * 100, step % 5 * 100 + 100)
        optimiser.zero_grad()
        cross_entropy(model(x[rows]), y[rows]).backward()
        optimiser.step()
    return model.requires_grad_(False)


def right_images(model: nn.Module, n: int) -> tuple[Tensor, Tensor]:
    x, y = images("test", 60)
    right = (model(x).argmax(dim=1) == y).nonzero()[:n, 0]
    return x[right], y[right]


def rays(x: Tensor, towards: Tensor, count: int, seed: int) -> Tensor:
    """Unit vectors: random ones, some on a few pixels only, and those towards and away from another place."""
    generator = torch.Generator().manual_seed(seed)
    dense = torch.randn(count, *x.shape, generator=generator, dtype=x.dtype)
    few = dense * (torch.rand(dense.shape, generator=generator) < 0.03)
    every = torch.cat([dense, few, towards[None], -towards[None]]).flatten(1)
    return normalize(every[every.norm(dim=1) > 0]).reshape(-1, *x.shape)


def steepest(net: rs.Network, x: Tensor, site: int, unit: int) -> Tensor:
    """The gradient of one unit, by reverse mode."""
    x = x[None].clone().requires_grad_()
    net._site_values(x)[site].flatten()[unit].backward()
    assert x.grad is not None
    return x.grad[0]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_network_is_affine_along_all_rays_as_far_as_the_distance_says(layout: str) -> None:
    model = trained(layout)
    x, _ = right_images(model, 4)
    net = rs.trace(model, x)
    found = rs.boundary_distance(net, x)
    assert (found.per_point > 0).all() and found.ties is not None
    assert (found.ties > 0).all(), "the background ties"
    assert not found.exact and "lower bound" in found.quantity and "a lower bound" in repr(found)
    for i, d in enumerate(found.per_point):
        towards = steepest(net, x[i], found.site[i], found.nearest_unit[i])  # type: ignore[index]
        u = d * rays(x[i], towards, 60, i)
        at = torch.stack([model(x[i] + t * u) for t in (0.0, 0.333, 0.666, 0.999)])  # (4, rays, 10)
        bends = (at[2:] - 2 * at[1:-1] + at[:-2]).abs().amax()
        assert bends <= 1e-14 * at.abs().max() < 1e-4 * (at[1:] - at[:-1]).abs().max()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_patterns_away_from_ties_stay_as_far_as_the_distance_says_and_change_behind_it(layout: str) -> None:
    """A stretched copy of every ray: what is not tied keeps its sign up to d; beyond, something real switches soon."""
    model = trained(layout)
    x, _ = right_images(model, 3)
    net = rs.trace(model, x)
    found = rs.boundary_distance(net, x)
    here = torch.cat([z.flatten(1) for z in net.preactivations(x)], dim=1)
    for i, d in enumerate(found.per_point):
        towards = steepest(net, x[i], found.site[i], found.nearest_unit[i])  # type: ignore[index]
        u = rays(x[i], towards, 60, i)
        sides = here[i].sign()
        free = here[i].abs() > 1e-12
        for t, same in ((0.999 * d, True), (30 * d, False)):
            there = torch.cat([z.flatten(1) for z in net.preactivations(x[i] + t * u)], dim=1).sign()
            assert bool((there == sides)[:, free].all()) == same


@pytest.mark.parametrize("norm", ["l2", "linf", "l1"])
def test_where_nothing_ties_before_a_relu_its_distance_is_that_of_autograd(norm: str) -> None:
    """The first convolution is affine: with one pool at the end, ReLUs are as far as they are without it."""
    model = trained("pool behind ReLU")
    x, _ = right_images(model, 2)
    found = rs.boundary_distance(model, x, norm=norm).per_point
    dual = {"l2": 2, "linf": 1, "l1": math.inf}[norm]
    for point, d in zip(x, found, strict=True):
        nearest = []
        for depth in (1, 3):
            z = model[:depth](point[None]).flatten()
            jacobian = torch.func.jacrev(lambda p, depth=depth: model[:depth](p[None]).flatten())(point).flatten(1)
            slope = torch.linalg.vector_norm(jacobian, ord=dual, dim=1)
            nearest.append(torch.where(slope > 1e-12, z.abs() / slope, torch.inf).min())
        assert 0 < d <= float(min(nearest)) * (1 + 1e-9)
        assert d > 1e-3 * float(min(nearest)), "the bound says something"


@pytest.mark.parametrize("layout", LAYOUTS)
def test_certified_radii_of_real_images_say_something_and_hold(layout: str) -> None:
    model = trained(layout)
    x, y = right_images(model, 6)
    found = rs.certified_radius(model, x, y)
    assert (found.per_point > 0).all()
    assert not found.exact and "a lower bound" in repr(found)
    assert (found.per_point > 1e-3).all(), "though the nearest boundary may be a thousand times nearer"
    for point, label, radius in zip(x, y, found.per_point, strict=True):
        margin = model(point[None])[0]
        rival = int(margin.clone().index_fill(0, label, -math.inf).argmax())
        p = point[None].clone().requires_grad_()
        (model(p)[0, rival] - model(p)[0, label]).backward()
        assert p.grad is not None
        u = radius * rays(point, p.grad[0], 50, int(label))
        assert (model(point + u).argmax(dim=1) == label).all()


def test_crossings_of_a_pool_are_pairs_of_which_each_is_larger_somewhere() -> None:
    """By brute force over the windows; where both are closed ReLUs, the pool does not bend."""
    model = trained("pool behind ReLU")
    x, _ = right_images(model, 2)
    frame = np.linalg.qr(np.random.default_rng(0).standard_normal((196, 12)))[0].T
    for radius in (1e-3, 3.0):
        found = rs.boundary_crossings(model, x, radius=radius, frame=frame)
        assert found.per_layer is not None
        for i, point in enumerate(x):
            arms = radius * torch.from_numpy(frame).reshape(-1, 1, 14, 14)
            h = model[:4](torch.cat([point + arms, point - arms]))
            rows = h[..., 0::2], h[..., 1::2]  # the last dimension is played first
            halves = torch.maximum(*rows)
            pairs = [rows[0] - rows[1], halves[..., 0::2, :] - halves[..., 1::2, :]]
            expected = sum(int(((z > 0).any(dim=0) & (z < 0).any(dim=0)).sum()) for z in pairs)
            loose = sum(int(((z > 0).any(dim=0) & (z <= 0).any(dim=0)).sum()) for z in pairs)
            assert found.per_layer[i, 2] == expected <= loose
            assert expected < loose or radius < 1


def test_lines_from_an_image_have_cells_only_where_the_output_of_a_pool_changes() -> None:
    """Every end of a cell is a change of the map: by second differences of all that leaves a site."""
    model = trained("pool behind ReLU")
    x, _ = right_images(model, 2)
    net = rs.trace(model, x)
    cells = rs.line_cells(net, x[0], x[1])
    ends = np.concatenate([[0.0], cells.breakpoints, [1.0]])
    gaps = np.diff(ends)
    for k in np.flatnonzero((gaps[1:] > 1e-4) & (gaps[:-1] > 1e-4))[:150]:
        step = 0.4 * min(gaps[k], gaps[k + 1])
        places = cells.breakpoints[k] + step * np.array([-2.0, -1.0, 0.0, 1.0, 2.0])
        t = torch.from_numpy(places).view(-1, 1, 1, 1)
        p = x[0] + t * (x[1] - x[0])
        values = torch.cat([model[:2](p).flatten(1), model[:4](p).flatten(1), model[:5](p).flatten(1)], dim=1)
        second = (values[4] - 2 * values[2] + values[0]).abs().max()
        within = (values[2:] - 2 * values[1:-1] + values[:-2])[[0, 2]].abs().max()
        assert within <= 1e-13 and second > 1e-8 * step


class Homogeneous(nn.Module):
    """Maxima of maxima without biases, all of which tie at the origin, before ReLUs with biases, and two outputs."""

    def __init__(self, seed: int, between: Callable[[Tensor], Tensor] = lambda p: p) -> None:
        super().__init__()
        self.between = between
        g = torch.Generator().manual_seed(seed)
        self.first, self.second, self.third, self.last = (
            torch.randn(*shape, generator=g, dtype=torch.float64) for shape in ((12, 2), (6, 4), (5, 2), (2, 5))
        )
        self.shift = 0.5 + torch.rand(5, generator=g, dtype=torch.float64)

    def steep(self, x: Tensor) -> Tensor:
        """What enters the ReLUs, without its shift."""
        p = self.between((x @ self.first.T).unflatten(1, (4, 3)).amax(dim=2))
        found: Tensor = (p @ self.second.T).unflatten(1, (2, 3)).amin(dim=2) @ self.third.T
        return found

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.steep(x) + self.shift) @ self.last.T


@pytest.mark.parametrize("seed", range(12))
def test_behind_ties_no_direction_has_a_boundary_or_another_class_nearer(seed: int) -> None:
    """In the plane all directions can be looked at: along each, what enters a ReLU is a number times the way."""
    model, x = Homogeneous(seed), torch.zeros(1, 2, dtype=torch.float64)
    angles = torch.linspace(0, 2 * math.pi, 20_001, dtype=torch.float64)
    u = torch.stack([angles.cos(), angles.sin()], dim=1)
    steepness = model.steep(u)
    nearest = torch.where(steepness < 0, -model.shift / steepness, torch.inf).min()
    found = rs.boundary_distance(model, x)
    assert found.ties is not None and found.ties[0] == 12 - 4 + 4
    assert float(nearest) / 50 < found.mean <= float(nearest) * (1 + 1e-6)
    label = model(x).argmax(dim=1)
    radius = rs.certified_radius(model, x, label).mean
    assert 0 < radius <= float(nearest) * (1 + 1e-6)
    assert (model(0.999 * radius * u).argmax(dim=1) == label).all()


def normed(p: Tensor) -> Tensor:
    """Batch norm as in evaluation, without a shift."""
    mean, scales = torch.zeros(4).double(), torch.tensor([0.3, -2.0, 1.0, 0.1]).double()
    return torch.nn.functional.batch_norm(p, mean, scales.abs(), scales, mean)


def without_rule(p: Tensor) -> Tensor:
    return torch.nn.functional.interpolate(p.reshape(-1, 1, 2, 2), size=(2, 2), mode="bicubic").flatten(1)


BETWEEN: dict[str, tuple[Callable[[Tensor], Tensor], int]] = {
    "a norm": (normed, 12),
    "a constant that competes": (lambda p: torch.maximum(p, torch.zeros(4).double()), 16),
    "a constant that competes first": (lambda p: torch.minimum(torch.zeros(4).double(), p), 16),
    "an operation without a rule": (without_rule, 8),
}


@pytest.mark.parametrize("name", BETWEEN)
def test_behind_ties_other_operations_bring_no_boundary_nearer(name: str) -> None:
    """What is behind an operation without a rule may be at any distance, so nothing is promised."""
    between, ties = BETWEEN[name]
    x, angles = torch.zeros(1, 2, dtype=torch.float64), torch.linspace(0, 2 * math.pi, 20_001, dtype=torch.float64)
    u = torch.stack([angles.cos(), angles.sin()], dim=1)
    for seed in range(3):
        model = Homogeneous(seed, between)
        steepness = model.steep(u)
        nearest = float(torch.where(steepness < 0, -model.shift / steepness, torch.inf).min())
        found = rs.boundary_distance(model, x)
        assert found.ties is not None and found.ties.tolist() == [ties]
        assert found.mean <= nearest * (1 + 1e-6) and (found.mean > 0) == (between is not without_rule)
        label = model(x).argmax(dim=1)
        radius = rs.certified_radius(model, x, label).mean
        assert (model(0.999 * radius * u).argmax(dim=1) == label).all()
        assert (radius > 0) == (between is not without_rule)


def test_a_tie_in_the_plane_has_the_distance_to_where_another_takes_over() -> None:
    """max(a, b, a + b - 1) at the origin: a and b tie, the third wins beyond min(a, b) = 1, sqrt(2) away."""
    rows = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    shift = torch.tensor([0.0, 0.0, -1.0])
    x = torch.zeros(1, 2)
    found = rs.boundary_distance(lambda x: (x @ rows.T + shift).amax(dim=1, keepdim=True), x)
    assert 0 < found.mean <= math.sqrt(2)
    assert found.ties is not None and found.ties.tolist() == [1]
    same = rs.boundary_distance(lambda x: (x @ rows[[0, 0, 2]].T + shift).amax(dim=1, keepdim=True), x)
    assert same.ties is not None and same.ties.tolist() == [0]
    assert same.mean == pytest.approx(1.0)  # a + b - 1 = a where b = 1
    relu = rs.boundary_distance(nn.Sequential(nn.Linear(2, 3, bias=False), nn.ReLU()), x)
    assert relu.mean == 0 and relu.exact  # on the boundary of a unit


def seeded() -> torch.Generator:
    return torch.Generator().manual_seed(0)


@pytest.mark.parametrize(
    "measure",
    [
        lambda model, x: rs.local_complexity(model, x, sigma=1, density=False, generator=seeded()),
        lambda model, x: rs.good_units(model, x),
        lambda model, x: rs.boundary_distance(model, x, good=True),
        lambda model, x: rs.certified_radius(model, x, model(x).argmax(dim=1)),
        lambda model, x: rs.boundary_crossings(model, x, radius=0.5, directions=2, generator=seeded()),
    ],
    ids=["local_complexity", "good_units", "boundary_distance", "certified_radius", "boundary_crossings"],
)
def test_rrelu_is_the_leaky_relu_that_torch_takes_it_for(measure: Callable[[nn.Module, Tensor], rs.Estimate]) -> None:
    """Behind and before a pool with ties, and on the boundary of its own units: two names of one function."""

    def value(activation: nn.Module) -> float:
        torch.manual_seed(0)
        first, second, third, last = nn.Linear(2, 12), nn.Linear(4, 6), nn.Linear(6, 1), nn.Linear(1, 2)
        first.bias.data.zero_()
        pool = (nn.Unflatten(1, (4, 3)), nn.AdaptiveMaxPool1d(1), nn.Flatten())
        model = nn.Sequential(first, *pool, second, activation, third, nn.ReLU(), last).double().eval()
        x = torch.cat([torch.zeros(1, 2), torch.randn(50, 2)]).double()
        return measure(model, x).mean

    assert value(nn.RReLU(0.1, 0.3)) == value(nn.LeakyReLU(0.2)) > 0


def test_planes_through_a_blank_background_are_exact_or_say_that_they_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hundreds of boundaries between competitors meet at the image itself: nothing but exact arithmetic orders them."""
    model, x = trained("two pools"), images("test", 1)[0]
    plane = rs.Plane.around(x[0], radius=0.01, generator=seeded())
    cells = rs.plane_cells(model, plane)
    assert cells.exact and cells.close_decisions > 100
    assert cells.verify(generator=seeded()).holds
    counted = rs.local_region_count(model, x, radius=0.01, axes=plane.axes)
    assert counted.exact and counted.mean == len(cells)
    monkeypatch.setattr("regionscope.geometry.settling.WORK", 0.0)
    hasty = rs.plane_cells(model, plane)
    assert not hasty.exact and f"NOT exact: {hasty.undecided:,} signs undecided" in repr(hasty)
    assert "(not exact)" in hasty.plot().get_title()
    assert not rs.local_region_count(model, x, radius=0.01, axes=plane.axes).exact


@pytest.mark.parametrize("bias", [-0.05, 0.006, 0.03])
@pytest.mark.parametrize("draws", [2, 400])
def test_in_a_window_of_closed_relus_whichever_opens_counts(bias: float, draws: int) -> None:
    """A unit at its breakpoint gives 0 and is seen behind max-pooling if all others in its window are closed.

    So f(x) of the ReLUs is the sum of |grad z_i| rho(z_i) P(all others closed), in closed form; for tied zeros only the
    first counted, and a quarter of it was left.
    """
    torch.manual_seed(1)
    first = nn.Linear(3, 8)
    model = nn.Sequential(first, nn.ReLU(), nn.Unflatten(1, (2, 2, 2)), POOL, nn.Flatten(), nn.Linear(2, 1)).double()
    nn.init.constant_(first.bias, bias)
    x, sigma = 0.05 * torch.randn(600 // draws + 20, 3, dtype=torch.float64), 0.05
    z = first(x).detach().reshape(-1, 2, 4)
    rho = torch.exp(-0.5 * (z / sigma) ** 2) / (sigma * math.sqrt(2 * math.pi))
    closed = torch.special.ndtr(-z / sigma)
    others = closed.prod(dim=2, keepdim=True) / closed
    weight = first.weight.detach().norm(dim=1).reshape(2, 4)
    expected = (weight * rho * others).sum(dim=(1, 2))
    found = rs.local_complexity(model, x, sigma=sigma, draws=draws, generator=torch.Generator().manual_seed(0))
    assert found.per_layer is not None
    difference = found.per_layer[:, 0] - expected.numpy()
    assert abs(difference.mean()) < 4 * difference.std(ddof=1) / math.sqrt(len(x))
    assert found.per_layer[:, 0].min() >= 0


def test_all_closed_relus_of_a_window_are_good() -> None:
    model = nn.Sequential(nn.Conv2d(1, 1, 1), nn.ReLU(), POOL, nn.Flatten(), nn.Linear(4, 1)).double()
    for parameter in model.parameters():
        nn.init.constant_(parameter, 1.0)
    x = torch.full((1, 1, 4, 4), -2.0, dtype=torch.float64)  # all closed
    x[0, 0, :2, :2] = torch.tensor([[1.0, -2.0], [-2.0, -2.0]])  # but one
    mask = rs.good_units(model, x, per_unit=True).per_unit
    assert mask is not None
    assert mask[0, :16].reshape(4, 4).tolist() == [
        [True, False, True, True],
        [False, False, True, True],
        *[[True] * 4] * 2,
    ]


def test_a_penalty_counts_them_too() -> None:
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Unflatten(1, (2, 2, 2)), POOL, nn.Flatten(), nn.Linear(2, 1))
    x = 0.05 * torch.randn(8, 3)
    net, generator = rs.trace(model, x), torch.Generator().manual_seed(0)
    expected = rs.local_complexity(net, x, draws=2000, generator=generator)
    tensors = [rs.local_complexity(net, x, differentiable=True, generator=generator).tensor for _ in range(200)]
    found = np.array([float(t.detach()) for t in tensors if t is not None])
    assert abs(found.mean() - expected.mean) < 4 * found.std() / math.sqrt(len(found))
