"""The table of activations against the functions themselves."""

import pytest
import torch
from torch import nn

import regionscope as rs

PIECEWISE_LINEAR: dict[str, tuple[nn.Module, tuple[float, ...], tuple[float, ...]]] = {
    "relu": (nn.ReLU(), (0,), (0, 1)),
    "leaky_relu": (nn.LeakyReLU(0.2), (0,), (0.2, 1)),
    "prelu": (nn.PReLU(init=0.3), (0,), (0.3, 1)),
    "rrelu": (nn.RReLU(0.1, 0.3), (0,), (0.2, 1)),
    "relu6": (nn.ReLU6(), (0, 6), (0, 1, 0)),
    "hardtanh": (nn.Hardtanh(-2, 1), (-2, 1), (0, 1, 0)),
    "hardsigmoid": (nn.Hardsigmoid(), (-3, 3), (0, 1 / 6, 0)),
    "threshold": (nn.Threshold(0.5, 0.5), (0.5,), (0, 1)),
    "softshrink": (nn.Softshrink(0.4), (-0.4, 0.4), (1, 0, 1)),
}
SMOOTH = [
    nn.GELU(), nn.GELU(approximate="tanh"), nn.SiLU(), nn.ELU(), nn.SELU(), nn.CELU(), nn.Softplus(), nn.Tanh(),
    nn.Sigmoid(), nn.Mish(), nn.Hardswish(), nn.LogSigmoid(),
]  # fmt: skip
FUNCTIONS = {
    "abs": (torch.abs, (0.0,)),
    "clamp": (lambda x: x.clamp(-1, 2), (-1.0, 2.0)),
    "clip": (lambda x: torch.clip(x, max=1.5), (1.5,)),
    "clamp_min": (lambda x: torch.clamp_min(x, -0.5), (-0.5,)),
    "in-place clamp": (lambda x: (1 * x).clamp_(-1, 1), (-1.0, 1.0)),
    "in-place hardtanh": (lambda x: nn.functional.hardtanh(1 * x, inplace=True), (-1.0, 1.0)),
}


@pytest.mark.parametrize("name", PIECEWISE_LINEAR)
def test_breakpoints_and_slopes_are_those_of_the_function(name: str) -> None:
    module, breakpoints, slopes = PIECEWISE_LINEAR[name]
    (site,) = rs.trace(module.eval(), torch.zeros(1, 1)).sites
    assert site.breakpoints == pytest.approx(breakpoints)
    ends = [-10.0, *breakpoints, 10.0]
    for left, right, slope in zip(ends, ends[1:], slopes, strict=False):
        x = torch.linspace(left, right, 5).view(-1, 1)
        steps = module(x).diff(dim=0) / x.diff(dim=0)
        assert torch.allclose(steps, torch.full_like(steps, slope), atol=1e-5)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_sites_too(name: str) -> None:
    function, breakpoints = FUNCTIONS[name]
    (site,) = rs.trace(function, torch.zeros(1, 3)).sites
    assert site.breakpoints == breakpoints
    assert site.units == 3


@pytest.mark.parametrize("module", SMOOTH, ids=lambda m: type(m).__name__)
def test_smooth_activations_are_refused_unless_allowed(module: nn.Module) -> None:
    model = nn.Sequential(nn.Linear(2, 3), module)
    with pytest.raises(rs.UnsupportedModel, match=r"module '1'.*is not piecewise linear"):
        rs.trace(model, torch.zeros(1, 2))
    net = rs.trace(model, torch.zeros(1, 2), allow_smooth=True)
    assert [(s.smooth, s.breakpoints, s.units) for s in net.sites] == [(True, (0.0,), 3)]
    assert not net.piecewise_linear
    assert not net.verify(torch.randn(20, 2, generator=torch.Generator().manual_seed(0))).holds


@pytest.mark.parametrize("module", [nn.Threshold(0.0, 1.0), nn.Hardshrink()], ids=lambda m: type(m).__name__)
def test_jumps_are_refused(module: nn.Module) -> None:
    with pytest.raises(rs.UnsupportedModel, match="not continuous"):
        rs.trace(module, torch.zeros(1, 2))


@pytest.mark.parametrize(
    "module", [nn.LeakyReLU(1.0), nn.Softshrink(0.0), nn.Identity()], ids=lambda m: type(m).__name__
)
def test_an_activation_without_a_bend_is_no_site(module: nn.Module) -> None:
    assert rs.trace(module, torch.zeros(1, 2)).sites == ()


def test_a_clamp_whose_limits_cross_is_constant() -> None:
    net = rs.trace(lambda x: x + x.clamp(2, 1), torch.zeros(1, 2))
    assert net.sites == ()
    assert net.verify(torch.randn(3, 2)).holds


@torch.no_grad()
def test_of_equals_the_second_has_the_derivative_in_forward_mode_without_gradients_too() -> None:
    net = rs.trace(lambda x: torch.maximum(x[:, :1], 3 * x[:, 1:]), torch.ones(1, 2))
    x, along = torch.zeros(1, 2), torch.tensor([[1.0, 1.0]])
    assert torch.func.jvp(net.outputs, (x,), (along,))[1].item() == 3.0
