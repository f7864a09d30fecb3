"""Chains of dense layers: gradients under noise, and who is good there, against autograd and the general way."""

from typing import Any

import pytest
import torch
from cases import mlp
from torch import Tensor, nn

import regionscope as rs
from regionscope.measures import complexity
from regionscope.measures.dense_chains import DenseChain, dense_chain
from regionscope.measures.directions import chosen_directions
from regionscope.measures.good import last_slopes, standing_of, usual_slopes
from regionscope.measures.neighbourhoods import passage
from regionscope.measures.routes import Route
from regionscope.tracing.network import as_rows

WIDTHS = (90, 70, 65, 66)


def chain_of(model: nn.Module, x: Tensor, sigma: float) -> DenseChain | None:
    net = rs.trace(model, x)
    return dense_chain(net, chosen_directions(net), [sigma] * len(net.sites), x, draws=32)


def network(seed: int = 0) -> nn.Sequential:
    torch.manual_seed(seed)
    model = mlp(*WIDTHS, 3)
    for layer in list(model)[::2]:
        assert isinstance(layer, nn.Linear)
        nn.init.kaiming_normal_(layer.weight)
    return model


def noise_for(x: Tensor, draws: int, sigma: float) -> list[Tensor]:
    return [sigma * torch.randn(draws, len(x), k, generator=torch.Generator().manual_seed(k)) for k in WIDTHS[1:]]


def gradient_norms(model: nn.Sequential, x: Tensor, noise: list[Tensor]) -> list[Tensor]:
    """Of what enters every ReLU at one point in float64, unit by unit, with noise (units,) taken off behind it."""
    found: list[Tensor] = []

    def entering(point: Tensor, last: int) -> Tensor:
        for number, (layer, shift) in enumerate(zip(list(model)[::2], noise, strict=False)):
            assert isinstance(layer, nn.Linear)
            z = layer.weight.double() @ point + layer.bias.double()
            if number == last:
                return z
            point = torch.relu(z - shift.double())
        raise AssertionError

    for last in range(len(noise)):
        jacobian = torch.autograd.functional.jacobian(lambda p, last=last: entering(p, last), x.double())
        found.append(jacobian.norm(dim=1))
    return found


@pytest.mark.parametrize("sigma", [0.01, 0.1])
def test_norms_are_those_of_the_network_under_noise(sigma: float) -> None:
    model, x = network(), torch.randn(5, 90, generator=torch.Generator().manual_seed(3))
    quick, noise = chain_of(model, x, sigma), noise_for(x, 6, sigma)
    assert quick is not None
    with torch.no_grad():
        found = quick.norms(x, quick.values(x, noise), noise)
    for draw in range(6):
        for n in range(5):
            expected = gradient_norms(model, x[n], [d[draw, n] for d in noise])
            for site, norms in zip(found, expected, strict=True):
                assert torch.allclose(site[draw, n].double(), norms, rtol=2e-5)


def test_a_gradient_that_vanishes_when_units_switch_is_none() -> None:
    model, x = network(), torch.randn(6, 90, generator=torch.Generator().manual_seed(3))
    second = model[2]
    assert isinstance(second, nn.Linear)
    second.weight.data = torch.eye(65, 70)  # a unit each
    quick, noise = chain_of(model, x, 0.1), noise_for(x, 8, 0.1)
    assert quick is not None
    with torch.no_grad():
        values = quick.values(x, noise)
        _, norms, _ = quick.norms(x, values, noise)
    closed = (values[0] <= noise[0])[..., :65]
    assert (closed & (quick.way.centres(x)[0][:, :65] > 0)).any()  # some of them only under noise
    assert norms[closed].max() < 1e-5 < 0.5 < norms[~closed].min()


@pytest.mark.parametrize("options", [{}, {"good": False}, {"density": False}, {"batch_size": 7, "per_unit": True}])
def test_local_complexity_is_the_same_in_both_ways(monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]) -> None:
    model, x = network(), torch.randn(30, 90, generator=torch.Generator().manual_seed(3))
    assert chain_of(model, x, 0.1) is not None

    def measured() -> rs.Estimate:
        return rs.local_complexity(model, x, sigma=0.1, draws=7, generator=torch.Generator().manual_seed(0), **options)

    quick = measured()
    monkeypatch.setattr(complexity, "dense_chain", lambda *_: None)
    general = measured()
    assert quick.per_layer is not None and quick.point_stderr is not None
    assert quick.per_layer == pytest.approx(general.per_layer, rel=1e-4)
    assert quick.point_stderr == pytest.approx(general.point_stderr, rel=1e-3)
    if options.get("per_unit"):
        assert quick.per_unit == pytest.approx(general.per_unit, rel=1e-3, abs=1e-5)


def altered(how: str) -> nn.Sequential:
    """A chain in which derivatives vanish at some points: as a layer is closed, as weights are 0, or as they cancel."""
    model = network()
    _, second, third, last = (layer for layer in model if isinstance(layer, nn.Linear))
    if how == "a layer that is often closed":
        third.weight.data *= -third.weight.data.sign()
        third.bias.data.fill_(1.5 * second.out_features**0.5 / 5)
    elif how == "few weights":
        for layer in (second, third, last):
            layer.weight.data[torch.rand(layer.weight.shape, generator=torch.Generator().manual_seed(1)) < 0.97] = 0
    elif how == "what cancels":
        third.weight.data[1::2], third.bias.data[1::2] = third.weight.data[::2], third.bias.data[::2]
        last.weight.data[:, 1::2] = -last.weight.data[:, ::2]
        last.weight.data[:, 0] += 1.0
    elif how == "an output of constants":
        last.weight.data.zero_()
    return model


@pytest.mark.parametrize(
    "how", ["nothing", "a layer that is often closed", "few weights", "what cancels", "an output of constants"]
)
def test_good_units_of_a_chain_are_those_of_any_network(how: str) -> None:
    model, x = altered(how), torch.randn(60, 90, generator=torch.Generator().manual_seed(3))
    net, noise = rs.trace(model, x), [d[0] for d in noise_for(x, 1, 0.1)]
    quick = DenseChain(passage(net, range(1, 4)), Route(net, chosen_directions(net)), last_slopes(net))
    usual = usual_slopes(net)
    with torch.no_grad():
        entering = [z[0] for z in quick.values(x, [d[None] for d in noise])]
        found, expected = quick.standing(x, noise, usual, entering), standing_of(net, x, noise, usual)
        assert type(found) is not type(expected)
        for mask, other in zip(found.masks, expected.masks, strict=True):
            assert torch.equal(mask, other)
        if how != "nothing":
            assert not all(mask.all() for mask in found.masks)
        for site in net.sites[:-1]:
            assert torch.allclose(found.values[site.exit], as_rows(expected.values[site.exit]), atol=1e-5)
            for unit in torch.arange(site.units).split(1)[::7]:
                asked = site, unit.expand(len(x)), torch.zeros(len(x))
                assert torch.equal(found.good_at_breakpoint(*asked), expected.good_at_breakpoint(*asked))


def test_a_way_around_the_last_site_is_no_chain(monkeypatch: pytest.MonkeyPatch) -> None:
    class Around(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.last = network()[:-1], nn.Linear(66, 3)

        def forward(self, x: Tensor) -> Tensor:
            out: Tensor = self.last(self.body(x)) + x[:, :3]
            return out

    x = torch.randn(5, 90, generator=torch.Generator().manual_seed(3))
    assert last_slopes(rs.trace(network(), x)) is not None
    around = Around()
    assert last_slopes(rs.trace(around, x)) is None
    assert (found := chain_of(around, x, 0.1)) is not None and found.last is None
    both = [rs.local_complexity(around, x, sigma=0.1, generator=torch.Generator().manual_seed(0))]
    monkeypatch.setattr(complexity, "dense_chain", lambda *_: None)
    both.append(rs.local_complexity(around, x, sigma=0.1, generator=torch.Generator().manual_seed(0)))
    assert both[0].per_point == pytest.approx(both[1].per_point, rel=1e-4)
    assert last_slopes(rs.trace(nn.Sequential(network(), nn.Softmax(1)), x, allow_smooth=True)) is None


def test_points_keep_their_noise_whatever_else_is_measured() -> None:
    model, x = network(), torch.randn(30, 90, generator=torch.Generator().manual_seed(3))
    whole, part = (rs.local_complexity(model, p, generator=torch.Generator().manual_seed(0)) for p in (x, x[:11]))
    assert whole.per_point[:11] == pytest.approx(part.per_point, rel=1e-5)


def test_other_networks_and_much_noise_take_the_general_way() -> None:
    x = torch.randn(5, 90, generator=torch.Generator().manual_seed(3))
    assert chain_of(network(), x, 0.1) is not None
    assert chain_of(network(), x, 2.0) is None
    assert chain_of(network().double(), x.double(), 0.1) is None
    assert chain_of(mlp(*WIDTHS, 3, act=nn.LeakyReLU), x, 0.01) is None
    assert chain_of(mlp(90, 20, 20, 3), x, 0.01) is None  # few directions
    assert chain_of(mlp(90, 70, 3), x, 0.01) is None  # nothing is noisy on the way
