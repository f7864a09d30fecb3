"""Local complexity as a penalty: without bias, in step with the model, and what it says of itself."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

import regionscope as rs
from regionscope.measures.directions import Directions
from regionscope.measures.penalties import LOOKS

SIGMA = 0.3


def narrow() -> nn.Sequential:
    """So narrow that often no unit of a layer is open: some units are not good."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2), nn.ReLU(), nn.Linear(2, 2)).double()


def pooled() -> nn.Sequential:
    torch.manual_seed(1)
    return nn.Sequential(
        nn.Unflatten(1, (1, 3, 4)), nn.Conv2d(1, 2, 2), nn.Hardtanh(-0.2, 0.4), nn.MaxPool2d((2, 1)), nn.Flatten(),
        nn.Linear(6, 3), nn.LeakyReLU(0.2), nn.Linear(3, 2),
    ).double()  # fmt: skip


MODELS: dict[str, tuple[Callable[[], nn.Sequential], int]] = {"narrow": (narrow, 3), "pooled": (pooled, 12)}


def value_and_gradient(net: rs.Network, model: nn.Module, x: Tensor, seed: int, **options: object) -> Tensor:
    """The mean over points and all its derivatives by parameters, in one row."""
    model.zero_grad()
    generator = torch.Generator().manual_seed(seed)
    found = rs.local_complexity(
        net, x, sigma=SIGMA, differentiable=True, generator=generator, **options  # type: ignore[arg-type]
    ).tensor  # fmt: skip
    assert found is not None
    found.backward()
    grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in model.parameters()]
    return torch.cat([found.detach()[None], *(g.flatten() for g in grads)])


@pytest.mark.parametrize(("name", "good"), [("narrow", True), ("narrow", False), ("pooled", False)])
def test_one_draw_of_everything_has_the_mean_and_the_gradient_of_many(name: str, good: bool) -> None:
    make, d = MODELS[name]
    model = make()
    x = torch.randn(3, d, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    net = rs.trace(model, x)
    once = torch.stack([value_and_gradient(net, model, x, seed, good=good) for seed in range(600)])
    many = torch.stack(
        [value_and_gradient(net, model, x, seed, good=good, draws=50, method="jacobian") for seed in range(12)]
    )
    error = torch.hypot(*(rows.std(dim=0) / math.sqrt(len(rows)) for rows in (once, many)))
    gap = (once.mean(dim=0) - many.mean(dim=0)).abs()
    assert (gap <= 4.5 * error + 1e-12).all()
    assert error[0] < 0.06 * many[:, 0].mean()  # it could have told


def test_half_of_many_points_are_taken_and_each_as_often_as_any_other() -> None:
    model, x = narrow(), torch.randn(70, 3, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    x[:20] *= 4  # so that it matters which are taken
    net = rs.trace(model, x)
    assert [rs.local_complexity(net, x[:n], differentiable=True).n for n in (5, 32, 40, 64, 70)] == [5, 32, 32, 32, 35]
    once = torch.stack([value_and_gradient(net, model, x, seed, good=False) for seed in range(300)])
    many = value_and_gradient(net, model, x, 0, good=False, draws=400, method="jacobian")
    error = once.std(dim=0) / math.sqrt(len(once))
    assert ((once.mean(dim=0) - many).abs() <= 5 * error + 0.01 * many.abs() + 1e-12).all()
    assert error[0] < 0.05 * many[0]


def test_goodness_is_what_the_penalty_leaves_out() -> None:
    model = narrow()
    x = torch.randn(3, 3, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    all_, good = (rs.local_complexity(model, x, sigma=SIGMA, draws=400, good=g).mean for g in (False, True))
    assert good < 0.95 * all_, "the case above would not see a penalty that forgot it"
    assert 0 < LOOKS < 1


def test_what_is_not_good_does_not_drown_a_penalty() -> None:
    """Half of the weight before max-pooling is on units that are not good."""
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(1, 3, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(3 * 49, 10)
    )  # fmt: skip
    x = (torch.rand(32, 1, 14, 14, generator=torch.Generator().manual_seed(1)) - 0.7).clamp_min(0)
    net = rs.trace(model, x)
    found = torch.stack([value_and_gradient(net, model, x, seed)[0] for seed in range(60)])
    assert found.mean() < 0.8 * value_and_gradient(net, model, x, 0, good=False)[0], "there is something to leave out"
    assert found.std() < found.mean()  # looks alone, without what every point says, give seven times the mean


def test_the_spread_of_points_is_not_taken_for_the_error_of_a_penalty() -> None:
    model, x = narrow(), torch.randn(5, 3, dtype=torch.float64)
    found = rs.local_complexity(model, x, sigma=SIGMA, differentiable=True)
    assert math.isnan(found.stderr) and "± ?" in repr(found)
    assert rs.local_complexity(model, x, sigma=SIGMA, differentiable=True, draws=4).stderr > 0


def test_a_penalty_takes_one_pass_and_follows_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """A traced network is neither traced again nor frozen, and sees the parameters as they are now."""
    model, x = narrow(), torch.randn(5, 3, dtype=torch.float64)
    net = rs.trace(model, x)

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("not for a penalty")

    monkeypatch.setattr(rs.Network, "frozen", refuse)
    monkeypatch.setattr("regionscope.tracing.trace.trace", refuse)
    monkeypatch.setattr(Directions, "norms", refuse)
    before = value_and_gradient(net, model, x, 0)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    optimiser.step()
    after = value_and_gradient(net, model, x, 0)
    assert not torch.equal(before, after)
    monkeypatch.undo()
    assert torch.equal(after, value_and_gradient(rs.trace(model, x), model, x, 0))


def test_a_penalty_does_not_depend_on_the_batches_and_brings_complexity_down() -> None:
    torch.manual_seed(0)
    model, x = (
        nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 24), nn.ReLU(), nn.Linear(24, 2)),
        torch.randn(32, 6),
    )
    net = rs.trace(model, x)
    generators = [torch.Generator().manual_seed(3) for _ in range(2)]
    whole, parts = (
        rs.local_complexity(net, x, differentiable=True, generator=g, batch_size=size)
        for g, size in zip(generators, (None, 5), strict=True)
    )
    assert parts.per_point == pytest.approx(whole.per_point, rel=1e-5)
    assert not whole.exact
    before = rs.local_complexity(net, x, sigma=0.2, generator=torch.Generator().manual_seed(0)).mean
    optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)
    generator = torch.Generator().manual_seed(1)
    for _ in range(100):
        optimiser.zero_grad()
        found = rs.local_complexity(net, x, sigma=0.2, differentiable=True, generator=generator).tensor
        assert found is not None
        found.backward()
        optimiser.step()
    after = rs.local_complexity(net, x, sigma=0.2, generator=torch.Generator().manual_seed(0)).mean
    assert after < 0.7 * before


@pytest.mark.parametrize("good", [True, False])
def test_without_densities_too_one_draw_has_the_mean_and_the_gradient_of_many(good: bool) -> None:
    model, x = narrow(), torch.randn(3, 3, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    net = rs.trace(model, x)
    ways: list[tuple[int, dict[str, object]]] = [(400, {}), (8, {"draws": 50, "method": "jacobian"})]
    once, many = (
        torch.stack([value_and_gradient(net, model, x, seed, good=good, density=False, **more) for seed in range(n)])
        for n, more in ways
    )
    error = torch.hypot(*(rows.std(dim=0) / math.sqrt(len(rows)) for rows in (once, many)))
    assert ((once.mean(dim=0) - many.mean(dim=0)).abs() <= 4.5 * error + 1e-12).all()
    assert error[0] < 0.06 * many[:, 0].mean()  # it could have told
