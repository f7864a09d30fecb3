"""Measures that need derivatives, against Jacobians row by row, closed forms and exact geometry."""

import math
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
import scipy.stats
import torch
from cases import CASES, Case, case, mlp
from oracles import jacobians, sampled_boundary_length
from torch import Tensor, nn

import regionscope as rs
from regionscope.measures import complexity
from regionscope.measures.densities import gaussian
from regionscope.measures.directions import chosen_directions
from regionscope.measures.draws import Draws
from regionscope.measures.rank import singular_values
from regionscope.measures.routes import Route
from regionscope.measures.tangents import gram_of, roots


@pytest.fixture(params=CASES)
def each(request: pytest.FixtureRequest) -> Case:
    return case(request.param)


def gradient_norms(net: rs.Network, x: Tensor, method: str, number: int = 32, seed: int = 0) -> list[Tensor]:
    found: dict[int, Tensor] = {}
    along = chosen_directions(net, method, number)
    numbers = Draws(torch.Generator().manual_seed(seed))
    vectors = None if along.exact else along.drawn(x, (0,), numbers).transpose(0, 1)
    with torch.no_grad():
        Route(net, along).follow(x, lambda i, z, t: found.update({i: along.norms(t)}), vectors=vectors)
    return [found[i] for i in range(len(net.sites))]


# gradients along directions


@pytest.mark.parametrize("method", ["auto", "gram", "jacobian"])
def test_gradient_norms_are_those_of_the_jacobians(each: Case, method: str) -> None:
    net = rs.trace(each.model, each.points)
    expected, _ = jacobians(net, each.points)
    for found, jacobian in zip(gradient_norms(net, each.points, method), expected, strict=True):
        assert torch.allclose(found, jacobian.norm(dim=2), rtol=1e-4, atol=1e-6)


def test_random_directions_are_unbiased(each: Case) -> None:
    net = rs.trace(each.model, each.points[:2])
    expected = torch.cat([j.norm(dim=2) for j in jacobians(net, each.points[:2])[0]], dim=1).sum(dim=1)
    runs = [
        torch.cat(gradient_norms(net, each.points[:2], "random", number=4, seed=s), dim=1).sum(dim=1)
        for s in range(100)
    ]
    drawn = torch.stack(runs).double()
    error = drawn.std(dim=0) / 10
    assert ((drawn.mean(dim=0) - expected).abs() <= 4.5 * error + 1e-6).all()


def test_derivatives_are_finite_differences(each: Case) -> None:
    net = rs.trace(each.model, each.points).frozen()
    x = each.points.double()
    along = chosen_directions(net, "jacobian")
    tangents = Route(net, along, output=True).follow(x)
    step = 1e-7
    for k in range(min(3, len(along.vectors))):
        shift = step * along.vectors[k].reshape(net.input_shape)
        difference = (net(x + shift) - net(x - shift)).reshape(len(x), -1) / (2 * step)
        assert torch.allclose(tangents[k], difference, atol=1e-5)


def test_smooth_networks_are_differentiated_too() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.GELU(), nn.LayerNorm(4), nn.Linear(4, 4), nn.Softmax(dim=-1)).double()
    net = rs.trace(model, torch.zeros(1, 3).double(), allow_smooth=True)
    x = torch.randn(5, 3).double()
    expected, out = jacobians(net, x)
    assert torch.allclose(gradient_norms(net, x, "jacobian")[0], expected[0].norm(dim=2))
    assert rs.total_variation(net, x).per_point == pytest.approx(out.flatten(1).norm(dim=1).numpy())
    assert "unit-boundary" in rs.local_complexity(net, x, draws=2).quantity


class Skipping(nn.Module):
    """Two dense layers, with a way around the second, around the first activation, or for the input around both."""

    def __init__(self, around: str) -> None:
        super().__init__()
        self.first, self.second, self.last = nn.Linear(150, 90), nn.Linear(90, 90), nn.Linear(90, 90)
        self.around, self.short = around, nn.Linear(150, 90)

    def forward(self, x: Tensor) -> Tensor:
        z = self.first(x)
        a = torch.relu(z)
        beside = {"nothing": 0, "layer": a, "activation": z, "input": self.short(x)}[self.around]
        return self.last(torch.relu(self.second(a) + beside))  # type: ignore[no-any-return]


@pytest.mark.parametrize("around", ["nothing", "layer", "activation", "input"])
def test_wide_networks_with_and_without_shortcuts_have_the_gradients_of_autograd(around: str) -> None:
    model, x = Skipping(around).requires_grad_(False), torch.randn(9, 150)
    net = rs.trace(model, x)
    route = Route(net, chosen_directions(net, "gram"), output=True)
    assert bool(route.grams) == (around == "nothing")  # other directions at every point only where they may be taken
    expected, out = jacobians(net, x)
    for found, jacobian in zip(gradient_norms(net, x, "gram"), expected, strict=True):
        assert torch.allclose(found, jacobian.norm(dim=2), rtol=1e-5)
    assert torch.allclose(route.along.norms(route.follow(x)), out.flatten(2).norm(dim=2), rtol=1e-5)
    spectra = singular_values(net, x, method="gram", batch_size=4)
    for found, jacobian in zip(spectra, expected, strict=True):
        assert torch.allclose(found, torch.linalg.svdvals(jacobian)[:, :90], atol=1e-5)


def test_points_come_back_in_their_order_however_they_are_taken() -> None:
    model, x = Skipping("nothing").requires_grad_(False), torch.randn(30, 150)
    net = rs.trace(model, x)
    order = Route(net, chosen_directions(net, "gram")).order(x)
    opened = (model.first(x) > 0).sum(dim=1)[order]
    assert (opened.diff() >= 0).all() and not torch.equal(order, torch.arange(30))
    found = rs.local_complexity(
        net, x, sigma=1e-9, good=False, density=False, method="gram", batch_size=4, per_unit=True, draws=2
    )
    expected = torch.cat([j.norm(dim=2) for j in jacobians(net, x)[0]], dim=1)
    assert found.per_unit == pytest.approx(expected.numpy(), rel=1e-5)
    assert found.per_point == pytest.approx(expected.sum(dim=1).numpy(), rel=1e-5)


def test_roots_have_the_scalar_products_of_the_chosen_units() -> None:
    rows = torch.randn(100, 90)
    rows[:, 8] = 1e-3 * rows[:, 8] - rows[:, 3]  # nearly dependent
    gram = gram_of(rows)
    assert gram is not None
    chosen = torch.stack([torch.randperm(90) for _ in range(20)])[:, :71]
    chosen[0, :3] = torch.tensor([3, 8, 2])
    counts = torch.randint(0, 71, (20,))
    counts[:3] = torch.tensor([3, 0, 71])
    for u, units, count in zip(roots(gram, chosen, counts), chosen, counts, strict=True):
        some = rows[:, units[:count]].double()
        exact = some.T @ some
        lengths = exact.diag().sqrt()
        assert torch.equal(u, u.triu())
        assert not u[:, count:].any() and not u[count:].any()
        found = (u.double().T @ u.double())[:count, :count]
        assert ((found - exact).abs() <= 1e-6 * torch.outer(lengths, lengths)).all()


@pytest.mark.parametrize("change", ["twice", "nothing", "sum", "rounding"])
def test_dependent_units_have_no_roots(change: str) -> None:
    rows = torch.randn(100, 90)
    assert gram_of(rows) is not None
    other = {"twice": rows[:, 3], "nothing": 0 * rows[:, 3], "sum": rows[:, 3:9].sum(dim=1)}
    rows[:, 1] = other.get(change, rows[:, 3] + 1e-6 * rows[:, 2])
    assert gram_of(rows) is None


def test_no_other_directions_where_double_precision_is_not_far_beyond_or_gradients_are_wanted() -> None:
    model = nn.Sequential(nn.Linear(150, 90), nn.ReLU(), nn.Linear(90, 90), nn.ReLU(), nn.Linear(90, 2))
    x = torch.randn(4, 150)
    net = rs.trace(model, x)
    assert not Route(net, chosen_directions(net, "gram")).grams
    with torch.no_grad():
        assert not Route(net.frozen(), chosen_directions(net.frozen(), "gram")).grams  # in double precision
        assert not Route(net, chosen_directions(net, "jacobian")).grams
        assert Route(net, chosen_directions(net, "gram")).grams


def test_a_wide_layer_that_is_closed_everywhere_has_no_gradients_behind_it() -> None:
    first = nn.Linear(150, 90)
    nn.init.constant_(first.bias, -1e3)
    model = nn.Sequential(first, nn.ReLU(), nn.Linear(90, 90), nn.ReLU(), nn.LayerNorm(90), nn.ReLU())
    found = gradient_norms(rs.trace(model, x := torch.randn(4, 150), allow_smooth=True), x, "gram")
    assert found[0].all() and not found[1].any() and not found[2].any()


def test_a_first_layer_that_sees_little_needs_few_directions() -> None:
    net = rs.trace(mlp(100, 7, 30, 2), torch.zeros(1, 100))
    assert chosen_directions(net).method == "gram"
    assert len(chosen_directions(net).vectors) == 7
    assert chosen_directions(rs.trace(mlp(3, 7, 2), torch.zeros(1, 3))).method == "jacobian"
    wide = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.ReLU())
    assert chosen_directions(rs.trace(wide, torch.zeros(1, 3, 32, 32))).method == "random"


# local complexity


def unit(weight: float, bias: float) -> nn.Linear:
    layer = nn.Linear(1, 1).double()
    layer.weight.data, layer.bias.data = torch.tensor([[weight]]).double(), torch.tensor([bias]).double()
    return layer


def normal_density(z: float, sigma: float) -> float:
    return math.exp(-0.5 * (z / sigma) ** 2) / (sigma * math.sqrt(2 * math.pi))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("sigma", [0.01, 0.05, 3.0])
def test_densities_are_the_normal_ones_or_zero_never_numbers_of_less_precision(
    dtype: torch.dtype, sigma: float
) -> None:
    z, tiny = sigma * torch.linspace(-45, 45, 20_001, dtype=dtype), torch.finfo(dtype).tiny
    found = gaussian(z, sigma).double().numpy()
    true = scipy.stats.norm.pdf(z.double().numpy(), scale=sigma)
    held = true > 1e4 * tiny / sigma
    assert found[held] == pytest.approx(true[held], rel=1e-4 if dtype == torch.float32 else 1e-12)
    assert (found[true < tiny] == 0).all()
    assert ((found == 0) | (found >= tiny)).all()


def test_one_unit_has_its_closed_form() -> None:
    model = nn.Sequential(unit(2.0, 0.3), nn.ReLU(), unit(1.0, 0.0))
    x = torch.tensor([[0.0], [0.5], [-1.0]]).double()
    found = rs.complexity_density(model, x, sigma=0.7, good=False)
    assert found.per_point == pytest.approx([2 * normal_density(2 * float(v) + 0.3, 0.7) for v in x])
    assert found.exact


def test_two_units_in_a_row_have_their_closed_form() -> None:
    """f = |w1| rho(v1) + |w1 w2| E[1{v1 > delta1} rho(w2 (v1 - delta1) + b2)], the second by numerical integration."""
    w1, b1, w2, b2, sigma, x = 1.5, 0.2, 0.8, -0.4, 0.5, 0.3
    model = nn.Sequential(unit(w1, b1), nn.ReLU(), unit(w2, b2), nn.ReLU(), unit(1.0, 0.0))
    noise = np.linspace(-6 * sigma, 6 * sigma, 200_001)
    v1 = w1 * x + b1
    h1 = v1 - noise
    inner = np.array([normal_density(d, sigma) for d in noise[::100]]) * (h1[::100] > 0)
    second = np.trapezoid(inner * [normal_density(w2 * h + b2, sigma) for h in h1[::100]], noise[::100])
    expected = w1 * normal_density(v1, sigma) + w1 * w2 * second
    found = rs.complexity_density(
        model,
        torch.full((400, 1), x).double(),
        sigma=sigma,
        good=False,
        draws=64,
        generator=torch.Generator().manual_seed(0),
    )
    assert abs(found.mean - expected) < 4 * found.stderr
    assert found.stderr < 0.01 * expected


ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "relu": nn.ReLU, "leaky_relu": lambda: nn.LeakyReLU(0.1), "hardtanh": nn.Hardtanh
}  # fmt: skip


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("hidden", [1, 2, 3])
def test_theorem_2_is_the_exact_boundary_length_on_average(activation: str, hidden: int) -> None:
    torch.manual_seed(hidden)
    model = mlp(2, *[12] * hidden, 2, act=ACTIVATIONS[activation])
    plane = rs.Plane.coordinates(torch.zeros(2), radius=1.5)
    mean, error = sampled_boundary_length(model, plane, 0.2, 150)
    formula = rs.expected_boundary_length(
        model, plane, sigma=0.2, samples=4000, draws=8, generator=torch.Generator().manual_seed(0)
    )
    assert abs(mean - formula.mean) < 3 * math.hypot(error, formula.stderr)
    assert formula.stderr < 0.05 * formula.mean


def test_theorem_2_holds_on_a_plane_of_a_convolutional_net() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 3, 3), nn.ReLU(), nn.Conv2d(3, 2, 2), nn.ReLU(), nn.Flatten(), nn.Linear(18, 2))

    class PerUnit(nn.Module):
        """A bias of its own for every unit, as the theorem has it."""

        def __init__(self) -> None:
            super().__init__()
            self.net, self.one, self.two = model, nn.Linear(1, 48), nn.Linear(1, 18)

        def forward(self, x: Tensor) -> Tensor:
            h = (self.net[0](x) + self.one.bias.view(3, 4, 4)).relu()
            h = (self.net[2](h) + self.two.bias.view(2, 3, 3)).relu()
            return self.net[5](h.flatten(1))  # type: ignore[no-any-return]

    whole = PerUnit()
    plane = rs.Plane.around(torch.zeros(1, 6, 6), 2.0, generator=torch.Generator().manual_seed(1))
    formula = rs.expected_boundary_length(
        whole, plane, sigma=0.2, samples=3000, draws=8, generator=torch.Generator().manual_seed(0)
    )
    lengths = []
    biases = [whole.one.bias, whole.two.bias]
    before = [b.detach().clone() for b in biases]
    for _ in range(80):
        for b, original in zip(biases, before, strict=True):
            b.data = original + 0.2 * torch.randn_like(original)
        lengths.append(rs.plane_cells(whole, plane).boundary_length().sum())
    error = np.std(lengths, ddof=1) / 80**0.5
    assert abs(np.mean(lengths) - formula.mean) < 3 * math.hypot(error, formula.stderr)


def test_the_formula_counts_regions_on_a_line() -> None:
    torch.manual_seed(3)
    model = mlp(3, 20, 20, 1)
    start, end = torch.tensor([-2.0, 0.0, 1.0]), torch.tensor([2.0, 1.0, -1.0])
    formula = rs.expected_line_regions(
        model, start, end, sigma=0.3, samples=4000, draws=8, generator=torch.Generator().manual_seed(0)
    )
    counts, biases = [], [model[0].bias, model[2].bias]
    before = [b.detach().clone() for b in biases]  # type: ignore[operator]
    for _ in range(200):
        for b, original in zip(biases, before, strict=True):
            b.data = original + 0.3 * torch.randn_like(original)
        counts.append(len(rs.line_cells(model, start, end)))
    error = np.std(counts, ddof=1) / 200**0.5
    assert abs(np.mean(counts) - formula.mean) < 3 * math.hypot(error, formula.stderr)


def test_leaving_good_out_gives_an_upper_bound(each: Case) -> None:
    with_good, without = (
        rs.local_complexity(
            each.model, each.points, good=g, sigma=0.5, draws=8, generator=torch.Generator().manual_seed(1)
        )
        for g in (True, False)
    )
    assert (with_good.per_point <= without.per_point + 1e-6).all()
    assert with_good.per_layer is not None
    assert with_good.per_layer.sum(axis=1) == pytest.approx(with_good.per_point)


def test_methods_agree_on_local_complexity() -> None:
    model, x = mlp(30, 10, 10, 2), torch.randn(200, 30)
    found = {
        method: rs.local_complexity(
            model, x, method=method, sigma=0.3, draws=16, directions=64, generator=torch.Generator().manual_seed(0)
        )
        for method in ("gram", "jacobian", "random")
    }
    assert found["gram"].mean == pytest.approx(found["jacobian"].mean, rel=1e-4)
    assert abs(found["random"].mean - found["gram"].mean) < 0.05 * found["gram"].mean


def test_noise_on_the_weights_changes_little_when_it_is_small() -> None:
    torch.manual_seed(0)
    model, x = mlp(4, 16, 16, 2), torch.randn(100, 4)
    plain, noisy = (
        rs.local_complexity(model, x, weight_noise=w, sigma=0.02, draws=32, generator=torch.Generator().manual_seed(0))
        for w in (False, True)
    )
    assert noisy.mean != plain.mean
    assert noisy.mean == pytest.approx(plain.mean, rel=0.1)


def test_a_dead_layer_has_no_complexity() -> None:
    model = mlp(2, 4, 4, 1)
    model[0].bias.data.fill_(-1e3)  # type: ignore[operator]
    found = rs.local_complexity(model, torch.randn(5, 2), sigma=0.1, draws=4)
    assert found.per_point.tolist() == [0.0] * 5


def test_sigma_may_differ_by_layer() -> None:
    model, x = mlp(2, 6, 6, 1), torch.randn(10, 2)
    first = rs.local_complexity(model, x, sigma=[0.1, 0.5], good=False, draws=8).per_layer
    alone = rs.local_complexity(model, x, sigma=0.1, good=False, draws=8).per_layer
    assert first is not None and alone is not None
    assert first[:, 0] == pytest.approx(alone[:, 0], rel=1e-5)


@pytest.mark.parametrize("name", ["dense", "hard_tanh"])
def test_without_the_density_only_gradients_count(name: str) -> None:
    made = case(name)
    net = rs.trace(made.model, made.points)
    found = rs.local_complexity(net, made.points, density=False, good=False, sigma=1e-9, draws=2, per_unit=True)
    expected = torch.cat([j.norm(dim=2) for j in jacobians(net, made.points)[0]], dim=1)
    assert found.per_unit == pytest.approx(expected.numpy(), rel=1e-4)


# good units, rank, variation


@pytest.mark.parametrize("behind", ["at the end", "in the middle", "beside a way"])
def test_units_that_move_the_output_in_steps_only_are_not_good(behind: str) -> None:
    torch.manual_seed(0)
    first, second = nn.Linear(2, 4).double(), nn.Linear(4, 2).double()

    def model(x: Tensor) -> Tensor:
        steps = (torch.relu(first(x)) > 0).double()
        if behind == "at the end":
            return steps
        return torch.relu(second(steps) + (x if behind == "beside a way" else 0))

    x = torch.randn(20, 2).double()
    mask = rs.good_units(model, x, per_unit=True, allow_smooth=True).per_unit
    assert mask is not None and not mask[:, :4].any()
    assert mask[:, 4:].any() == (behind != "at the end")


def test_good_units_are_those_whose_output_matters(each: Case) -> None:
    net = rs.trace(each.model, each.points)
    found = rs.good_units(net, each.points, per_unit=True)
    assert found.per_unit is not None
    assert found.per_point.tolist() == found.per_unit.sum(axis=1).tolist()
    assert found.n == len(each.points)


def test_in_dense_layers_a_unit_is_good_if_every_later_layer_has_an_open_unit() -> None:
    made = case("dead_units")
    net = rs.trace(made.model, made.points)
    mask = rs.good_units(net, made.points, per_unit=True).per_unit
    assert mask is not None
    connected = [0, 1, 2, 3, 5]  # the weights of unit 4 are zero: open or not, nothing passes through it
    second_open = (net.preactivations(made.points)[1][:, connected] > 0).any(dim=1).numpy()
    assert (mask[:, :6].all(axis=1) == second_open).all()
    assert (mask[:, :6].any(axis=1) == second_open).all()
    assert mask[:, 6:].all(), "nothing comes after the last layer"


def test_local_rank_is_the_number_of_large_singular_values(each: Case) -> None:
    net = rs.trace(each.model, each.points).frozen()
    x = each.points.double()
    expected, _ = jacobians(net, x)
    for eps, relative in ((0.3, False), (0.1, True), (0.0, False)):
        found = rs.local_rank(net, x, eps=eps, relative=relative).per_layer
        assert found is not None
        for layer in range(net.layers):
            together = torch.cat([j for j, s in zip(expected, net.sites, strict=True) if s.layer == layer + 1], dim=1)
            values = torch.linalg.svdvals(together)
            limit = eps * values[:, :1] if relative else eps
            large = (values >= limit) & (values > 1e-12)
            count = large.sum(dim=1) if eps else torch.linalg.matrix_rank(together)
            assert found[:, layer].tolist() == count.tolist()


def test_measures_along_more_directions_than_are_taken_at_a_time() -> None:
    torch.manual_seed(0)
    first, last, x = nn.Linear(1100, 1050), nn.Linear(1050, 1200), torch.randn(2, 1100)
    first.weight.data[0] = 0  # a unit without slope
    before, behind = first.weight.detach().double(), last.weight.detach().double()
    z = x.double() @ before.T + first.bias.detach().double()
    expected = [float((behind @ ((own > 0)[:, None] * before)).norm()) for own in z]
    assert rs.total_variation(nn.Sequential(first, nn.ReLU(), last), x).per_point == pytest.approx(expected, rel=1e-4)
    found = rs.boundary_distance(nn.Sequential(first, nn.ReLU()), x, differentiable=True)
    nearest = (z / before.norm(dim=1)).abs()[:, 1:].amin(dim=1)
    assert found.mean == pytest.approx(float(nearest.mean()), rel=1e-6) and found.tensor is not None
    found.tensor.backward()
    gradient = first.weight.grad
    assert gradient is not None and gradient.isfinite().all() and gradient.any()
    for norm, lengths in {"l1": before.abs().amax(dim=1), "linf": before.abs().sum(dim=1)}.items():
        nearest = (z / lengths).abs()[:, 1:].amin(dim=1)
        found = rs.boundary_distance(nn.Sequential(first, nn.ReLU()), x, norm=norm)
        assert found.per_point == pytest.approx(nearest.tolist(), rel=1e-6)


def test_total_variation_is_the_norm_of_the_output_jacobian(each: Case) -> None:
    net = rs.trace(each.model, each.points)
    _, expected = jacobians(net, each.points)
    norms = expected.flatten(1).norm(dim=1)
    assert rs.total_variation(net, each.points).per_point == pytest.approx(norms.numpy(), rel=1e-4, abs=1e-6)
    one = rs.total_variation(net, each.points, target=0)
    assert one.per_point == pytest.approx(expected[:, 0].norm(dim=1).numpy(), rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("rank", [1, 40])
def test_combinations_of_outputs_give_the_norm_of_all_almost_without_bias(rank: int) -> None:
    generator = torch.Generator().manual_seed(0)
    w = torch.randn(200, rank, generator=generator) @ torch.randn(rank, 50, generator=generator)

    def found(directions: int) -> rs.Estimate:
        return rs.total_variation(
            lambda x: x @ w.T, torch.zeros(3000, 50), method="combinations", directions=directions, generator=generator
        )

    for directions in (8, 16):
        estimate = found(directions)
        assert not estimate.exact and estimate.point_stderr is not None
        assert estimate.mean == pytest.approx(float(w.norm()), abs=4 * estimate.stderr)
        assert estimate.point_stderr.mean() == pytest.approx(estimate.per_point.std(), rel=0.2)
    with pytest.raises(ValueError, match="at least 2 for combinations"):
        found(1)


def test_the_margin_is_the_difference_of_the_two_largest_outputs() -> None:
    made = case("dense")
    net = rs.trace(made.model, made.points)
    _, expected = jacobians(net, made.points)
    first, second = net(made.points).topk(2, dim=1).indices.T
    rows = torch.arange(len(made.points))
    difference = (expected[rows, first] - expected[rows, second]).norm(dim=1)
    assert rs.total_variation(net, made.points, target="margin").per_point == pytest.approx(
        difference.numpy(), rel=1e-4
    )


# distances


def test_a_norm_may_be_written_small_or_large() -> None:
    model, x, labels = mlp(3, 8, 2), torch.ones(4, 3), torch.zeros(4, dtype=torch.long)
    for small, large in (("l2", "L2"), ("linf", "Linf")):
        near = [rs.boundary_distance(model, x, norm=norm) for norm in (small, large)]
        assert near[0].name == near[1].name and near[0].per_point.tolist() == near[1].per_point.tolist()
        right = [rs.robust_accuracy(model, x, labels, norm=norm).per_point.tolist() for norm in (small, large)]
        assert right[0] == right[1]


@pytest.mark.parametrize("norm", ["l2", "l1", "linf"])
def test_the_nearest_boundary_is_where_the_distance_says(each: Case, norm: str) -> None:
    net = rs.trace(each.model, each.points).frozen()
    x = each.points.double()
    found = rs.boundary_distance(net, x, norm=norm)
    jacobian, _ = jacobians(net, x)
    pattern = net.patterns(x)
    for i, d in enumerate(found.per_point):
        if not math.isfinite(d):
            continue
        gradient = jacobian[found.site[i]][i, found.nearest_unit[i]]  # type: ignore[index]
        steepest = {
            "l2": gradient / gradient.norm(),
            "linf": gradient.sign(),
            "l1": torch.where(gradient.abs() == gradient.abs().max(), gradient.sign(), 0.0),
        }[norm].reshape(net.input_shape)
        changed = [
            (net.patterns((x[i] + s * (1 + 1e-6) * d * steepest)[None]) != pattern[i]).any() for s in (1.0, -1.0)
        ]
        assert any(changed), "just beyond the distance, in the direction of the gradient, the pattern changes"
        generator = torch.Generator().manual_seed(i)
        others = torch.randn(200, *net.input_shape, generator=generator, dtype=torch.float64).flatten(1)
        sizes = torch.linalg.vector_norm(others, ord={"l2": 2, "l1": 1, "linf": math.inf}[norm], dim=1)
        inside = x[i] + (0.999 * d * others / sizes[:, None]).reshape(-1, *net.input_shape)
        assert (net.patterns(inside) == pattern[i]).all(), "nearer than that it changes in no direction"


def test_the_distance_is_the_first_breakpoint_of_exact_lines() -> None:
    made = case("dense")
    net = rs.trace(made.model, made.points).frozen()
    x = made.points.double()
    found = rs.boundary_distance(net, x)
    directions_ = torch.nn.functional.normalize(
        torch.randn(300, 4, generator=torch.Generator().manual_seed(0)).double()
    )
    for i in range(len(x)):
        lines = rs.line_cells(net, x[i].expand(300, -1), x[i] + 5 * directions_)
        first = min((line.breakpoints[0] * 5 for line in lines if len(line) > 1), default=math.inf)
        assert found.per_point[i] <= first * (1 + 1e-9)


def test_no_point_within_the_certified_radius_is_classified_otherwise() -> None:
    torch.manual_seed(0)
    model, x = mlp(3, 16, 16, 4).double(), torch.randn(40, 3).double()
    labels = model(x).argmax(dim=1)
    radius = rs.certified_radius(model, x, labels).per_point
    assert (radius > 0).all()
    directions_ = torch.nn.functional.normalize(torch.randn(500, 3).double())
    for point, label, r in zip(x, labels, radius, strict=True):
        assert (model(point + 0.999 * r * directions_).argmax(dim=1) == label).all()
    assert rs.certified_radius(model, x, (labels + 1) % 4).per_point.tolist() == [0.0] * 40


def test_the_certified_radius_of_a_linear_classifier_is_exact() -> None:
    model = nn.Linear(2, 3).double()
    x = torch.randn(10, 2).double()
    labels = model(x).argmax(dim=1)
    radius = rs.certified_radius(model, x, labels).per_point
    w, out = model.weight.detach(), model(x).detach()
    for i, y in enumerate(labels):
        others = [(out[i, y] - out[i, k]) / (w[y] - w[k]).norm() for k in range(3) if k != y]
        assert radius[i] == pytest.approx(float(min(others)))


def test_attacks_lower_the_accuracy() -> None:
    torch.manual_seed(0)
    model, x = mlp(10, 32, 3), torch.randn(200, 10)
    labels = model(x).argmax(dim=1)
    plain = rs.robust_accuracy(model, x, labels, "none").mean
    fgsm, pgd = (rs.robust_accuracy(model, x, labels, a, radius=0.3).mean for a in ("fgsm", "pgd"))
    assert plain == 1 > fgsm >= pgd
    certified = rs.certified_radius(model, x, labels).per_point > 0.3 * 10**0.5
    attacked = rs.robust_accuracy(model, x, labels, radius=0.3).per_point
    assert (attacked[certified] == 1).all(), "what is certified in l2 cannot be attacked in the box inside"
    assert rs.robust_accuracy(model, x, labels, lambda net, x, y: x + 0).mean == 1
    bounded = rs.robust_accuracy(model, x.clamp(0, 1), labels, radius=0.3, bounds=(0, 1), norm="L2")
    assert 0 <= bounded.mean <= 1


# differentiable


@pytest.mark.parametrize("name", ["local_complexity", "total_variation", "boundary_distance", "local_rank"])
def test_measures_carry_gradients_to_the_parameters(name: str) -> None:
    torch.manual_seed(1)
    model, x = mlp(3, 6, 5, 2).double(), torch.randn(4, 3).double()
    options: dict[str, Any] = {"local_rank": {"eps": 0.1}}.get(name, {})
    if name == "local_complexity":
        options = {"sigma": 0.5, "draws": 2}

    def value(differentiable: bool = False) -> rs.Estimate:
        extra = {"generator": torch.Generator().manual_seed(0)} if name == "local_complexity" else {}
        return rs.MEASURES[name](model, x, differentiable=differentiable, **options, **extra)

    result = value(differentiable=True).tensor
    assert result is not None
    result.backward()
    weight = model[0].weight
    assert isinstance(weight, Tensor) and weight.grad is not None
    for index in ((0, 0), (3, 2)):
        sides = []
        for step in (1e-6, -1e-6):
            weight.data[index] += step
            again = value(differentiable=True).tensor
            assert again is not None
            sides.append(float(again.detach()))
            weight.data[index] -= step
        assert float(weight.grad[index]) == pytest.approx((sides[0] - sides[1]) / 2e-6, rel=1e-4, abs=1e-7)


def test_measures_leave_the_model_alone() -> None:
    model, x = mlp(3, 6, 2), torch.randn(4, 3)
    state = torch.get_rng_state()
    for name in rs.MEASURES:
        options = {"directions": 2} if name == "boundary_crossings" else {}
        rs.MEASURES[name].estimate(model, x, torch.tensor([0, 1, 0, 1]), **options)
    assert all(p.grad is None for p in model.parameters())
    assert torch.equal(state, torch.get_rng_state())


# bad input

LONG = torch.zeros(1, 1, 1 << 15)


@pytest.mark.parametrize(
    ("measure", "options", "match"),
    [
        (rs.local_complexity, {"sigma": 0.0}, "sigma must be positive"),
        (rs.local_complexity, {"sigma": [0.1, 0.1, 0.1]}, "one number or 1"),
        (rs.local_complexity, {"draws": 0}, "draws must be at least 1"),
        (rs.local_complexity, {"method": "magic"}, "method must be one of"),
        (rs.local_complexity, {"method": "random", "directions": 0}, "directions must be at least 1, got 0"),
        (
            rs.local_complexity,
            {"method": "jacobian", "model": nn.Sequential(nn.Conv1d(1, 1, 3, padding=1), nn.ReLU()), "data": LONG},
            "32,768 entries is too large for all its directions at once; say method='random'",
        ),
        (rs.local_complexity, {"data": torch.zeros(0, 3)}, "no points"),
        (rs.local_complexity, {"data": torch.full((2, 3), torch.nan)}, "NaN"),
        (rs.local_complexity, {"model": nn.Linear(3, 2)}, "no activation sites"),
        (rs.local_rank, {"eps": -1.0}, "eps must not be negative"),
        (rs.local_rank, {"eps": 1.0, "model": nn.Linear(3, 2)}, "no activation sites"),
        (rs.total_variation, {"target": 7}, "target must be one of 2 outputs"),
        (rs.boundary_distance, {"norm": "l3"}, "norm must be l2 or l1 or linf, got 'l3'"),
        (rs.certified_radius, {"labels": torch.zeros(5)}, r"labels must be \(2,\)"),
        (rs.robust_accuracy, {"labels": torch.zeros(5)}, r"labels must be \(2,\)"),
        (rs.robust_accuracy, {"labels": torch.zeros(2).long(), "attack": "x"}, "attack must be"),
        (rs.robust_accuracy, {"labels": torch.zeros(2).long(), "radius": 0.0}, "radius must be positive"),
    ],
)
def test_bad_input_is_named(measure: Callable[..., Any], options: dict[str, Any], match: str) -> None:
    options = {"model": mlp(3, 4, 2), "data": torch.zeros(2, 3)} | options
    with pytest.raises(ValueError, match=match):
        measure(options.pop("model"), options.pop("data"), **options)


def test_distances_of_single_precision_models_are_those_of_the_function_that_the_weights_define() -> None:
    """Close to a boundary, where what float32 rounds off a value is most of the distance."""
    model, generator = mlp(20, 40, 40, 3), torch.Generator().manual_seed(0)
    precise, first = deepcopy(model).double(), model[0]
    assert isinstance(first, nn.Linear)
    x = torch.randn(30, 20, generator=generator)
    hidden = first(x).detach()
    gradient, near = first.weight.detach(), hidden.abs().argmin(dim=1)
    rows = torch.arange(len(x))
    x = x - (hidden[rows, near] / gradient[near].square().sum(dim=1))[:, None] * gradient[near]  # but for rounding
    found = rs.boundary_distance(model, x)
    expected = [_nearest_by_autograd(precise, point) for point in x.double()]
    assert min(expected) < 1e-8
    assert found.exact and found.per_point == pytest.approx(expected, rel=1e-6)
    with torch.enable_grad():
        learned = rs.boundary_distance(model, x, differentiable=True)
    assert learned.tensor is not None and learned.tensor.dtype is torch.float32
    assert torch.autograd.grad(learned.tensor, first.weight)[0].abs().sum() > 0


def _nearest_by_autograd(model: nn.Sequential, point: Tensor) -> float:
    def entering(x: Tensor) -> Tensor:
        return torch.cat([model[:1](x), model[:3](x)])

    slopes = torch.autograd.functional.jacobian(entering, point).norm(dim=1)
    return float((entering(point).detach().abs() / slopes).min())


def test_a_network_without_boundaries_is_infinitely_far_from_them() -> None:
    assert rs.boundary_distance(nn.Linear(3, 2), torch.zeros(2, 3)).per_point.tolist() == [math.inf, math.inf]


def test_what_bends_before_the_first_site_is_not_taken_for_affine() -> None:
    """A layer norm is no site: gradients behind it change from point to point all the same."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(20, 6), nn.LayerNorm(6), nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 2)).double()
    x = torch.randn(4, 20).double()
    net = rs.trace(model, x, allow_smooth=True)
    assert chosen_directions(net).method == "gram"
    expected, out = jacobians(net, x)
    assert torch.allclose(gradient_norms(net, x, "gram")[0], expected[0].norm(dim=2))
    assert rs.total_variation(net, x, method="gram").per_point == pytest.approx(out.flatten(1).norm(dim=1).numpy())


def test_methods_agree_when_the_weights_are_noisy() -> None:
    """The gradients of noisy first weights leave the space that those without noise span."""
    model, x = mlp(30, 6, 6, 2).double(), torch.randn(5, 30).double()
    found = [
        rs.local_complexity(
            model, x, sigma=0.3, weight_noise=True, method=method, draws=8, generator=torch.Generator().manual_seed(0)
        ).per_point
        for method in ("gram", "jacobian")
    ]
    assert found[0] == pytest.approx(found[1])


@pytest.mark.parametrize("weight_noise", [False, True])
def test_points_keep_their_noise_when_the_network_and_with_it_their_order_changes(
    monkeypatch: pytest.MonkeyPatch, weight_noise: bool
) -> None:
    # fewer directions have no order, and in float32 draws share their gradients
    points = torch.randn(40, 80, generator=torch.Generator().manual_seed(1)).double()
    original, orders = complexity.unit_densities, []

    def noise_by_point(seed: int, batch_size: int | None) -> list[Tensor]:
        seen: dict[tuple[float, ...], list[Tensor]] = {}

        def watched(route, x, scales, noise, *rest):  # type: ignore[no-untyped-def]
            orders.append(tuple(route.order(points).tolist()))
            for row, drawn in zip(x, torch.cat(noise, dim=1), strict=True):
                seen.setdefault(tuple(row.tolist()), []).append(drawn)
            return original(route, x, scales, noise, *rest)

        monkeypatch.setattr(complexity, "unit_densities", watched)
        torch.manual_seed(seed)
        generator = torch.Generator().manual_seed(0)
        options = {"draws": 4, "weight_noise": weight_noise, "generator": generator, "batch_size": batch_size}
        rs.local_complexity(mlp(80, 70, 9, 2).double(), points, **options)  # type: ignore[arg-type]
        # of a point in any order: rounds that are taken together come in that of the points
        return [torch.stack(sorted(seen[tuple(row.tolist())], key=Tensor.tolist)) for row in points]

    first = noise_by_point(0, None)
    for seed, batch_size in ((0, 7), (1, None), (2, 3)):
        assert all(torch.equal(a, b) for a, b in zip(first, noise_by_point(seed, batch_size), strict=True))
    assert len(set(orders)) > 2


@pytest.mark.parametrize("name", ["local_complexity", "local_rank", "total_variation", "boundary_distance"])
def test_what_moves_in_steps_only_has_no_gradient(name: str) -> None:
    """Sites behind a comparison: their gradients are zero, and those of the others as if they were not there."""
    torch.manual_seed(0)
    first, second, last = nn.Linear(5, 8).double(), nn.Linear(8, 6).double(), nn.Linear(6, 2).double()

    def gated(x: torch.Tensor) -> torch.Tensor:
        h = first(x)
        steps = torch.relu(second((h > 0.1).to(h.dtype)))
        return torch.cat([torch.relu(h), last(steps)], dim=1)

    x = torch.randn(20, 5).double()
    options: dict[str, Any] = {"eps": 0.1} if name == "local_rank" else {}
    measure = rs.MEASURES[name]
    found = measure.estimate(gated, x, allow_smooth=True, **options)
    plain = measure.estimate(nn.Sequential(first, nn.ReLU()), x, **options)
    assert found.per_point == pytest.approx(plain.per_point)
