"""Local complexity as a penalty: an estimate that is cheap, without bias, and carries gradients.

Everything is drawn once. Of many points half are taken, others in every call. The noise on the biases is the same at
all of them: one noisy network. Each point has one random direction u ~ N(0, I): along it a gradient g has the
derivative u.g ~ N(0, |g|^2), whose mean absolute value is |g| sqrt(2 / pi). Units through which the output moves where
they stand count at all points: one plain backward pass. A unit is good, however, if the output moves with it at its
breakpoint. How far the two differ is looked at now and then, at some of the points, and added in the name of all points
and all the times that nobody looked: few units differ, so that adds little spread. The mean is the measure's in each of
these, and that of the gradient is the gradient of the mean, as far as torch sees it: with the patterns of units held
fixed.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from regionscope.measures.densities import exponential, gaussian
from regionscope.measures.draws import Draws
from regionscope.measures.good import good_weights, moving_units, standing_of, usual_slopes
from regionscope.measures.pools import masks_at_levels
from regionscope.measures.routes import Following
from regionscope.measures.tangents import Tangent
from regionscope.tracing.network import Network, as_rows

ALL = 32  # so many points are all taken; of more no fewer, and half
LOOKS = 0.25  # the share of draws in which goodness is looked at
LOOKED_AT = 8  # points in such a draw
LENGTH = math.sqrt(math.pi / 2)  # of a gradient over the mean absolute derivative along a random direction


@dataclass(frozen=True)
class _Met:
    """What a pass met at a site, (n, units) each: values, derivatives along a direction, and which units count."""

    z: Tensor
    t: Tensor
    counts: Tensor

    def __getitem__(self, rows: Tensor) -> "_Met":
        return _Met(self.z[rows], self.t[rows], self.counts[rows])


def drawn_once(
    net: Network, points: Tensor, scales: Sequence[float], *, good: bool, density: bool, numbers: Draws, at_once: int
) -> Tensor:
    """What every layer adds to local complexity at the points that are taken, (n, layers), from one draw of all that is
    random."""
    points = points[_points_looked_at(points, numbers)]
    sigmas = scales if density else [math.inf] * len(scales)
    sites = enumerate(zip(scales, net.sites, strict=True))
    noise = [s * numbers.normal((0, i), points[:1], site.units) for i, (s, site) in sites]
    picked = _points_looked_at_closely(points, numbers)
    layer = torch.tensor([site.layer - 1 for site in net.sites], device=points.device)
    layers, start = [], 0
    for x in points.split(at_once):
        met = _one_pass(net, x, numbers.normal((2,), x, x[0].numel()), noise, good)
        each = zip(met, net.sites, sigmas, strict=True)
        by_site = torch.stack(
            [_Crowding.apply(m.z, m.t, m.counts, s.breakpoints, sigma) for m, s, sigma in each], dim=1
        )
        here = picked[(start <= picked) & (picked < start + len(x))] - start
        if good and len(here):
            missed = _missing_weights(net, x[here], noise, [m[here] for m in met], sigmas, numbers)
            by_site = by_site.index_add(0, here, missed, alpha=len(points) / len(picked) / LOOKS)
        layers.append(by_site.new_zeros(len(x), net.layers).index_add(1, layer, by_site))
        start += len(x)
    return torch.cat(layers)


def _points_looked_at(points: Tensor, numbers: Draws) -> Tensor:
    """The points of a call at which complexity is looked at, each as likely as any other."""
    n = len(points)
    return _evenly_apart(n, max(min(n, ALL), n // 2), float(numbers.uniform((4,), points[:1])), points.device)


def _points_looked_at_closely(points: Tensor, numbers: Draws) -> Tensor:
    """Those of them whose units are looked at closely; in most draws, none."""
    n, share = len(points), float(numbers.uniform((1,), points[:1])) / LOOKS
    return _evenly_apart(n, 0 if share >= 1 else min(n, LOOKED_AT), share, points.device)


def _evenly_apart(n: int, k: int, share: float, device: torch.device) -> Tensor:
    """The numbers of k out of n, evenly apart, from this share of them on."""
    return (int(share * n) + torch.arange(k, device=device) * n // max(k, 1)) % n


def _one_pass(net: Network, x: Tensor, u: Tensor, noise: list[Tensor], good: bool) -> list[_Met]:
    """Every site as one pass with noise meets it along the directions u (n, d); then back from the output, if asked."""
    met: dict[int, tuple[Tensor, Tensor]] = {}
    leaving: dict[int, Tensor] = {}
    program = net.program.pruned([*net.entries, net.output]) if good else net.program.pruned(net.entries)
    following = Following(program, {0: Tangent(u[None])}, set(net.exits), {})
    shifted = net.noisy_entries([d.expand(len(x), -1) for d in noise])

    def on_value(value: int, tensor: Tensor) -> Tensor | None:
        if value in net.entries:
            met[value] = as_rows(tensor), following.rows(value).squeeze(0)
            if len(met) == len(set(net.entries)):
                following.tangents.clear()  # behind the last site there is nothing to differentiate
        if good and value in net.exits:
            leaving[value] = tensor = tensor if tensor.requires_grad else tensor.requires_grad_()
        return shifted(value, tensor)

    *_, out = following.run(x, on_value)
    all_ = [torch.ones_like(met[entry][0], dtype=torch.bool) for entry in net.entries]
    standing = moving_units(out, [leaving[e] for e in net.exits]) if good else all_
    counts = [mask.any(dim=1) for mask in masks_at_levels(net, leaving, standing)] if good else all_
    return [_Met(*met[entry], count) for entry, count in zip(net.entries, counts, strict=True)]


def _missing_weights(
    net: Network, x: Tensor, noise: list[Tensor], met: list[_Met], sigmas: Sequence[float], numbers: Draws
) -> Tensor:
    """What the good units of each site weigh beyond those that move the output as they stand, (n, sites)."""
    noise = [d.expand(len(x), -1) for d in noise]
    chosen = torch.stack([numbers.uniform((3, i), x) for i in range(len(net.sites))], dim=1)
    weights = [
        _unit_weights(m.z, m.t, s.breakpoints, sigma) for m, s, sigma in zip(met, net.sites, sigmas, strict=True)
    ]
    kept = good_weights(standing_of(net, x, noise, usual_slopes(net)), weights, chosen)
    counted = [w.sum(dim=1) * m.counts for w, m in zip(weights, met, strict=True)]
    return torch.stack([(k - c).sum(dim=1) for k, c in zip(kept, counted, strict=True)], dim=1)


def _unit_weights(z: Tensor, t: Tensor, breakpoints: Sequence[float], sigma: float) -> Tensor:
    """|gradient| times density of every unit, (n, breakpoints, units)."""
    b = torch.tensor(breakpoints, dtype=z.dtype, device=z.device)[:, None]
    if math.isinf(sigma):
        return (LENGTH * t.abs() / max(1, len(b)))[:, None].expand(-1, len(b), -1)
    return LENGTH * t.abs()[:, None] * gaussian(z[:, None] - b, sigma)


class _Crowding(torch.autograd.Function):
    """The sum over units of |t| sum_b rho(z - b), times `LENGTH`: (n, units) twice -> (n,). Of an infinite sigma, |t|.

    Only those `counts` names, (n, units). With its derivatives by hand: pre-activations are most of
    the memory of a pass, and are touched a few times only.
    """

    @staticmethod
    def forward(ctx: Any, z: Tensor, t: Tensor, counts: Tensor, breakpoints: tuple[float, ...], sigma: float) -> Tensor:
        side = t.sign().mul_(counts)
        if math.isinf(sigma) or not breakpoints:
            ctx.save_for_backward(side.mul_(LENGTH if math.isinf(sigma) else 0.0))
            return (side * t).sum(dim=1)
        by_t, by_z = torch.zeros_like(z), torch.zeros_like(z)
        for b in breakpoints:
            gap = z - b if b else z
            rho = exponential((gap * gap).mul_(-0.5 / sigma**2)).mul_(side).mul_(0.5 / sigma)
            by_t = rho if len(breakpoints) == 1 else by_t.add_(rho)
            by_z = rho * gap if len(breakpoints) == 1 else by_z.addcmul_(rho, gap)
        parts = by_t * t
        ctx.save_for_backward(by_t, by_z.mul_(t).mul_(-1 / sigma**2))
        return parts.sum(dim=1)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor, None, None, None]:
        by_t, *by_z = ctx.saved_tensors
        return by_z[0] * grad[:, None] if by_z else None, by_t * grad[:, None], None, None, None
