"""Local complexity as a penalty: an estimate that is cheap, without bias, and carries gradients.

Everything is drawn once. The noise on the biases is the same at all points: one noisy network. Each point has one
random direction u ~ N(0, I): along it a gradient g has the derivative u.g ~ N(0, |g|^2), whose mean absolute value is
|g| sqrt(2 / pi). Which units are good is looked at now and then, at one of the points, and what the others weigh there
is taken off in the name of all points and all the times that nobody looked. The mean is the measure's in each of these,
and that of the gradient is the gradient of the mean, as far as torch sees it: with the patterns of units held fixed.
"""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from regionscope.measures.draws import Draws
from regionscope.measures.good import good_weights, usual_slopes
from regionscope.measures.jacobians import Following
from regionscope.measures.tangents import Tangent
from regionscope.tracing.network import Network, as_rows

LOOKS = 0.5  # the share of draws in which somebody's goodness is looked at
LENGTH = math.sqrt(math.pi / 2)  # of a gradient over the mean absolute derivative along a random direction


def drawn_once(
    net: Network, points: Tensor, scales: Sequence[float], *, good: bool, density: bool, numbers: Draws, at_once: int
) -> Tensor:
    """What every layer adds to local complexity at each point, (n, layers), from one draw of all that is random."""
    sites = enumerate(zip(scales, net.sites, strict=True))
    noise = [s * numbers.normal((0, i), points[:1], site.units) for i, (s, site) in sites]
    picked = int(float(numbers.uniform((1,), points[:1])) * len(points) / LOOKS)  # perhaps none
    layers, start = [], 0
    for x in points.split(at_once):
        u = numbers.normal((2,), x, x[0].numel())
        sums, weights = _one_pass(net, x, u, noise, scales, density, picked - start)
        if good and weights:
            bad = _bad_weights(net, x[picked - start][None], noise, weights, numbers)
            here = torch.arange(start, start + len(x), device=x.device) == picked
            sums = sums - len(points) / LOOKS * here[:, None] * bad
        layers.append(sums)
        start += len(x)
    return torch.cat(layers)


def _one_pass(
    net: Network, x: Tensor, u: Tensor, noise: list[Tensor], scales: Sequence[float], density: bool, picked: int
) -> tuple[Tensor, list[Tensor]]:
    """The sums over the units of each layer, (n, layers), and every unit's part at one point, if it is there."""
    n, entries = len(x), net.entries
    sums: dict[int, Tensor] = {}
    weights: dict[int, Tensor] = {}
    following = Following(net._site_program, {0: Tangent(u[None])}, set(net.exits), {})
    shifted = net.noisy_entries([d.expand(n, -1) for d in noise])

    def on_value(value: int, tensor: Tensor) -> Tensor | None:
        for number in (k for k, entry in enumerate(entries) if entry == value):
            z, t = as_rows(tensor), following.rows(value).squeeze(0)
            b, sigma = net.sites[number].breakpoints, scales[number]
            sums[number] = _Crowding.apply(z, t, b, sigma if density else math.inf)
            if 0 <= picked < n:
                row = slice(picked, picked + 1)
                weights[number] = _unit_weights(z[row], t[row], b, sigma if density else math.inf)
        return shifted(value, tensor)

    following.run(x, on_value)
    by_site = torch.stack([sums[number] for number in range(len(net.sites))], dim=1)
    layer = torch.tensor([site.layer - 1 for site in net.sites], device=x.device)
    total = torch.zeros(n, net.layers, dtype=x.dtype, device=x.device).index_add(1, layer, by_site)
    return total, [weights[number] for number in range(len(net.sites))] if weights else []


def _unit_weights(z: Tensor, t: Tensor, breakpoints: Sequence[float], sigma: float) -> Tensor:
    """|gradient| times density of every unit at one point, (1, breakpoints, units)."""
    b = torch.tensor(breakpoints, dtype=z.dtype, device=z.device)[:, None]
    if math.isinf(sigma):
        return (LENGTH * t.abs() / max(1, len(b)))[:, None].expand(-1, len(b), -1)
    return t.abs()[:, None] * torch.exp(-0.5 * ((z[:, None] - b) / sigma) ** 2) / (2 * sigma)


def _bad_weights(net: Network, x: Tensor, noise: list[Tensor], weights: list[Tensor], numbers: Draws) -> Tensor:
    """What units that are not good have of the weights at one point, (1, layers)."""
    chosen = torch.stack([numbers.uniform((3, i), x) for i in range(len(net.sites))], dim=1)
    kept = good_weights(net, x, noise, weights, chosen, usual_slopes(net))
    return net.by_layer(torch.cat([w.sum(dim=1) - k for w, k in zip(weights, kept, strict=True)], dim=1))


class _Crowding(torch.autograd.Function):
    """The sum over units of |t| sum_b rho(z - b), times `LENGTH`: (n, units) twice -> (n,). Of an infinite sigma, |t|.

    With its derivatives by hand: pre-activations are most of the memory of a pass, and are touched a few times only.
    """

    @staticmethod
    def forward(ctx: Any, z: Tensor, t: Tensor, breakpoints: tuple[float, ...], sigma: float) -> Tensor:
        side = t.sign()
        if math.isinf(sigma) or not breakpoints:
            ctx.save_for_backward(side.mul_(LENGTH if math.isinf(sigma) else 0.0))
            return (side * t).sum(dim=1)
        by_t, by_z = torch.zeros_like(z), torch.zeros_like(z)
        for b in breakpoints:
            gap = z - b if b else z
            rho = (gap * gap).mul_(-0.5 / sigma**2).exp_().mul_(side).mul_(0.5 / sigma)
            by_t = rho if len(breakpoints) == 1 else by_t.add_(rho)
            by_z = rho * gap if len(breakpoints) == 1 else by_z.addcmul_(rho, gap)
        parts = by_t * t
        ctx.save_for_backward(by_t, by_z.mul_(t).mul_(-1 / sigma**2))
        return parts.sum(dim=1)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor, None, None]:
        by_t, *by_z = ctx.saved_tensors
        return by_z[0] * grad[:, None] if by_z else None, by_t * grad[:, None], None, None
