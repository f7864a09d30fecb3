"""Definitions: whose noise decides, which parameters matter, what is unbiased."""

import math
from fractions import Fraction

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import regionscope as rs

D = torch.float64


def chain(*numbers: float) -> nn.Sequential:
    """One unit a layer, weights and biases in turn."""
    layers = [nn.Linear(1, 1).double() for _ in range(len(numbers) // 2)]
    model = nn.Sequential(*[part for layer in layers for part in (layer, nn.ReLU())][:-1])
    for p, v in zip(model.parameters(), numbers, strict=True):
        p.data.fill_(v)
    return model


def bends(model: rs.Network | nn.Module, draws: int) -> tuple[float, list[float]]:
    """The expected number of bends on [-1, 1] by the density, in all and by layer, with noise 0.05."""
    x = torch.linspace(-1, 1, 2001, dtype=D)[:, None]
    found = rs.local_complexity(model, x, sigma=0.05, draws=draws, generator=torch.Generator().manual_seed(0))
    assert found.per_layer is not None
    return 2 * found.mean, (2 * found.per_layer.mean(axis=0)).tolist()


def test_complexity_narrow() -> None:
    # relu(100 relu(x - n1) - 0.2 - n2): where the first unit is at its bend the second is closed, so it is not seen
    _, layers = bends(chain(1.0, 0.0, 100.0, -0.2, 1.0, 0.0), 64)
    assert layers[0] < 0.01
    assert layers[1] == pytest.approx(1, abs=0.25)  # 4 standard errors, of rare large densities


def test_good_by_the_noise_of_others_is_what_is_seen() -> None:
    # relu(x - n1) - 0.02 - n2: the first bend is seen if the second unit is open at zero, P(n2 < -0.02)
    expected = float(torch.distributions.Normal(0.0, 0.05).cdf(torch.tensor(-0.02)))
    _, layers = bends(chain(1.0, 0.0, 1.0, -0.02, 1.0, 0.0), 256)
    assert layers[0] == pytest.approx(expected, abs=0.02)
    assert layers[1] == pytest.approx(1 - expected, abs=0.03)


@pytest.mark.parametrize(
    ("dtype", "sum_of"), [(torch.float32, [0.1, 0.2, -0.3]), (D, [1.0, 1e-17, -1.0])], ids=["float32", "float64"]
)
@pytest.mark.parametrize("behind", [0, 1])
def test_units_whose_sum_is_rounded_to_zero_are_good(dtype: torch.dtype, sum_of: list[float], behind: int) -> None:
    # all units of the second layer are open and equal, so the output is the first layer times a sum that is not zero
    weights = [torch.ones(4, 1), torch.ones(3, 4), torch.tensor([sum_of], dtype=D)]
    weights += [torch.ones(1, 1)] * behind
    biases = [torch.tensor([-0.1, 0.0, 0.1, 0.2]), torch.ones(3), torch.zeros(1), torch.zeros(1)]
    layers = [nn.Linear(w.shape[1], w.shape[0], dtype=dtype) for w in weights]
    for layer, w, b in zip(layers, weights, biases, strict=False):
        layer.weight.data, layer.bias.data = w.to(dtype), b.to(dtype)
    model = nn.Sequential(layers[0], nn.ReLU(), layers[1], nn.ReLU(), *layers[2:])
    assert sum(Fraction(float(w)) for w in layers[2].weight.data.flatten()) != 0

    def found(good: bool) -> np.ndarray:
        x = torch.linspace(-0.3, 0.3, 7, dtype=dtype)[:, None]
        generator = torch.Generator().manual_seed(0)
        layers = rs.local_complexity(model, x, sigma=0.05, draws=8, good=good, generator=generator).per_layer
        assert layers is not None
        return layers

    assert found(good=True).sum(axis=1).mean() > 1
    np.testing.assert_allclose(found(good=True), found(good=False))


def test_complexity_input_site() -> None:
    r = chain(1.0, -0.02, 1.0, 0.0)

    def on_input(x: Tensor) -> Tensor:
        return r(F.relu(x))  # type: ignore[no-any-return]

    def on_copy(x: Tensor) -> Tensor:
        return r(F.relu(1.0 * x))  # type: ignore[no-any-return]

    x = torch.zeros(1, 1, dtype=D)
    assert bends(rs.trace(on_input, x), 32) == bends(rs.trace(on_copy, x), 32)


@pytest.mark.parametrize("activation", [nn.PReLU(), nn.PReLU(5), nn.GELU(), nn.Softplus()])
def test_prelu_gradient(activation: nn.Module) -> None:
    model = nn.Sequential(nn.Linear(3, 5), activation, nn.Linear(5, 2)).double()
    x = torch.randn(20, 3, dtype=D)
    net = rs.trace(model, x, allow_smooth=True)
    for measure in (
        lambda: rs.total_variation(net, x, differentiable=True),
        lambda: rs.total_variation(net, x, method="jacobian", differentiable=True),
        lambda: rs.local_complexity(
            net, x, draws=2, differentiable=True, generator=torch.Generator().manual_seed(0), good=False
        ),
    ):
        found = measure().tensor
        assert found is not None
        gradients = torch.autograd.grad(found, list(model.parameters()), allow_unused=True)
        for p, gradient in zip(model.parameters(), gradients, strict=True):
            values = []
            for step in (1e-6, -2e-6):
                p.data.view(-1)[0] += step
                moved = measure().tensor
                assert moved is not None
                values.append(float(moved.detach()))
            p.data.view(-1)[0] += 1e-6
            expected = (values[0] - values[1]) / 2e-6
            got = 0.0 if gradient is None else float(gradient.view(-1)[0])
            assert got == pytest.approx(expected, abs=1e-4 * (1 + abs(expected)))


def test_probes_bias() -> None:
    x = torch.zeros(20, 1500)
    assert rs.total_variation(lambda x: 1.0 * x, x).per_point == pytest.approx(1500**0.5, rel=1e-5)
    with pytest.raises(ValueError, match="no unbiased norm of several outputs"):
        rs.total_variation(lambda x: 1.0 * x, x, method="random", directions=1)
    w = torch.randn(1, 400)
    for directions in (1, 2, 5):
        generator = torch.Generator().manual_seed(directions)
        found = rs.total_variation(
            lambda x: x @ w.T, torch.zeros(3000, 400), method="random", directions=directions, generator=generator
        )
        assert found.mean == pytest.approx(float(w.norm()), abs=4 * found.stderr)


@pytest.mark.parametrize("method", ["auto", "random"])
def test_the_batch_size_does_not_change_what_is_drawn(method: str) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2)).double()
    x = torch.randn(30, 4, dtype=D)
    found = [
        rs.local_complexity(
            model, x, draws=4, method=method, batch_size=size, generator=torch.Generator().manual_seed(0)
        ).per_point
        for size in (None, 1, 7, 30)
    ]
    for other in found[1:]:
        assert other == pytest.approx(found[0], rel=1e-9)
    crossings = [
        rs.boundary_crossings(
            model, x, radius=0.5, directions=3, shared_frame=False, batch_size=size,
            generator=torch.Generator().manual_seed(0),
        ).per_point.tolist()
        for size in (None, 1, 7)
    ]  # fmt: skip
    assert crossings[0] == crossings[1] == crossings[2]


@pytest.mark.parametrize("good", [True, False])
@pytest.mark.parametrize("activation", [nn.ReLU(), nn.LeakyReLU(0.1), nn.Hardtanh(-9, 9), nn.ReLU6(), nn.Softshrink()])
def test_without_density_every_unit_counts_once_however_many_breakpoints_it_has(
    activation: nn.Module, good: bool
) -> None:
    torch.manual_seed(0)
    first = nn.Linear(3, 5)
    model = nn.Sequential(first, activation, nn.Linear(5, 2)).double()
    x = torch.randn(7, 3, dtype=D)
    found = rs.local_complexity(model, x, density=False, good=good, generator=torch.Generator().manual_seed(0))
    assert found.per_point == pytest.approx(float(first.weight.detach().norm(dim=1).sum()), rel=1e-9)


def _after_one_unit(first: list[float], second: list[float], dtype: torch.dtype) -> nn.Sequential:
    """One open unit and what is made of it: the products of two lists, added up."""
    unit, spread, joined = nn.Linear(2, 1), nn.Linear(1, len(first)), nn.Linear(len(first), 1)
    model = nn.Sequential(unit, nn.ReLU(), spread, joined).to(dtype)
    with torch.no_grad():
        unit.bias.fill_(5.0)
        spread.weight.copy_(torch.tensor(first)[:, None])
        joined.weight.copy_(torch.tensor(second)[None])
    return model


@pytest.mark.parametrize("dtype", [torch.float32, D])
def test_a_unit_whose_effects_cancel_is_not_good(dtype: torch.dtype) -> None:
    model = _after_one_unit([0.1, 0.1, 0.1], [1.0, 2.0, -3.0], dtype)  # 0.1 w + 0.2 w - 0.3 w in floats is not 0
    x = torch.zeros(1, 2, dtype=dtype)
    assert rs.good_units(model, x).mean == 0
    assert rs.local_complexity(model, x, sigma=5.0).mean == 0
    assert rs.boundary_distance(model, x, good=True).mean == math.inf


@pytest.mark.parametrize("dtype", [torch.float32, D])
def test_a_unit_whose_effects_nearly_cancel_is_good(dtype: torch.dtype) -> None:
    model = _after_one_unit([1.0, 1.0, 1.0], [0.1, 0.2, -0.3], dtype)  # floats whose sum is not 0
    assert sum((Fraction(float(w)) for w in [*model.parameters()][-2].detach().flatten()), Fraction(0)) != 0
    assert rs.good_units(model, torch.zeros(1, 2, dtype=dtype)).mean == 1


def _cancelling_behind_bends(seed: int) -> nn.Sequential:
    """One unit that goes into open ReLUs, whose effects cancel: products of 0.1 and so on with integers of sum 0."""
    random, first, second = np.random.default_rng(seed), list[float](), list[float]()
    for factor in (0.1, 0.7, 0.3, 1.1):
        whole = random.integers(-20, 20, 4).tolist()
        first, second = [*first, *[factor] * 5], [*second, *whole, -sum(whole)]
    order = torch.from_numpy(random.permutation(20))
    unit, spread, joined = nn.Linear(2, 1), nn.Linear(1, 20), nn.Linear(20, 1)
    model = nn.Sequential(unit, nn.ReLU(), spread, nn.ReLU(), joined).to(D)
    with torch.no_grad():
        unit.bias.fill_(5.0)
        spread.bias.fill_(50.0)
        spread.weight.copy_(torch.tensor(first, dtype=D)[order, None])
        joined.weight.copy_(torch.tensor(second, dtype=D)[None, order])
    return model


@pytest.mark.parametrize("seed", range(4))
def test_a_unit_whose_effects_cancel_is_not_good_at_its_boundary_either(seed: int) -> None:
    model, x = _cancelling_behind_bends(seed), torch.zeros(1, 2, dtype=D)
    found, all_ = (rs.local_complexity(model, x, sigma=5.0, good=good).per_layer for good in (True, False))
    assert found is not None and all_ is not None
    assert found[0, 0] == 0 < all_[0, 0]


def test_without_an_exact_form_effects_are_what_floats_say() -> None:
    seen = []
    for cancelling in map(_cancelling_behind_bends, range(4)):

        def enlarged(x: Tensor, model: nn.Module = cancelling) -> Tensor:
            return F.interpolate(model(x).reshape(-1, 1, 1, 1), size=(2, 2), mode="bicubic").flatten(1)

        x = torch.zeros(1, 2, dtype=D)
        found, exact = (rs.good_units(model, x, per_unit=True).per_unit for model in (enlarged, cancelling))
        assert found is not None and exact is not None
        assert not exact[0, 0]
        seen.append(bool(found[0, 0]))
    assert any(seen), "rounding leaves a slope"


def test_the_middle_of_overlapping_means_is_not_good_behind_their_mean() -> None:
    """Overlapping means less their mean: the middle of three has the same share in both."""

    class Middle(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Linear(2, 3).double()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            h = (self.first(x) + 9).relu()[:, None]
            windows = nn.functional.adaptive_avg_pool1d(h, 2)[:, 0]
            return windows - windows.mean(1, keepdim=True)

    torch.manual_seed(0)
    found = rs.good_units(Middle(), torch.zeros(1, 2, dtype=D), per_unit=True).per_unit
    assert found is not None and found.tolist() == [[True, False, True]]


def test_total_variation_of_what_enters_the_first_bend_twice() -> None:
    """A value and a mean of it go into the first bend: what moves one moves the other, and counts once."""

    class Compared(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.last = nn.Linear(8, 4), nn.Linear(4, 3)

        def forward(self, x: Tensor) -> Tensor:
            h = self.first(x)
            found: Tensor = self.last(torch.maximum(h, h.mean(1, keepdim=True)).relu())
            return found

    torch.manual_seed(0)
    model, x = Compared().double(), torch.randn(5, 8, dtype=D)
    jacobians = [torch.autograd.functional.jacobian(lambda p: model(p[None])[0], p) for p in x]
    expected = [float(j.norm()) for j in jacobians]
    for method in ("auto", "gram", "jacobian"):
        assert rs.total_variation(model, x, method=method).per_point == pytest.approx(expected, rel=1e-9)


def test_batch_norm_of_one_point_whose_memory_is_laid_out_by_channels() -> None:
    """Torch's own gradient is wrong there, if the stride of the points is not that of a whole one."""

    class Channels(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.norm, self.last = nn.Linear(5, 12), nn.BatchNorm2d(2), nn.Linear(12, 3)
            self.norm.running_var = torch.tensor([0.6, 2.1])
            self.norm.weight = nn.Parameter(torch.tensor([0.01, -0.3]))

        def forward(self, x: Tensor) -> Tensor:
            h = self.norm(self.first(x).reshape(-1, 2, 3, 2).movedim(3, 1))
            found: Tensor = self.last(h.reshape(-1, 12)).relu()
            return found

    torch.manual_seed(0)
    model, x = Channels().double().eval(), torch.randn(6, 5, dtype=D)
    net = rs.trace(model, x)
    step = 1e-4 * torch.eye(5, dtype=D)
    with torch.no_grad():
        (z,) = net.preactivations(x)
        slopes = torch.stack([(net.preactivations(x + e)[0] - net.preactivations(x - e)[0]) / 2e-4 for e in step])
    expected = (z.abs() / slopes.norm(dim=0)).amin(dim=1)
    assert rs.boundary_distance(net, x).per_point == pytest.approx(expected.numpy(), rel=1e-7)
