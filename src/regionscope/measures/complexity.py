"""Local complexity: how much boundary lies around a point, when the biases are noisy."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regionscope.machine import one_core_each, points_at_once, portions
from regionscope.measures.dense_chains import DenseChain, dense_chain
from regionscope.measures.densities import gaussian
from regionscope.measures.directions import Directions, chosen_directions, tangent_floats
from regionscope.measures.draws import Draws
from regionscope.measures.good import Standing, good_weights, standing_of, usual_slopes
from regionscope.measures.penalties import drawn_once
from regionscope.measures.routes import Route
from regionscope.points import as_array
from regionscope.progress import tqdm
from regionscope.results import Estimate
from regionscope.tracing.given import check_bends, network_and_points, points_kept_at_once
from regionscope.tracing.network import Network, Site
from regionscope.types import Data, Model, Numbers

DRAWS, DIRECTIONS = 32, 32  # if not told, unless for a penalty in training
ORDERED = 1024  # points that are put in order together
FLOATS_AT_ONCE = 1 << 24  # of noise
JUDGED = 64  # points by which it is told whether few units switch


@torch.inference_mode(False)  # it differentiates wherever it is called
def local_complexity(
    model: Model | Network,
    data: Data,
    *,
    sigma: Numbers = 0.05,
    draws: int | None = None,
    good: bool = True,
    weight_noise: bool = False,
    density: bool = True,
    method: str | None = None,
    directions: int | None = None,
    generator: torch.Generator | None = None,
    batch_size: int | None = None,
    per_unit: bool = False,
    differentiable: bool = False,
    allow_smooth: bool = False,
    show_progress: bool = False,
) -> Estimate:
    """Local complexity LC = E f(x), f(x) = sum over units i of E[|grad z_i(x)| rho_i(z_i(x)) 1{i good}] (LC eq. 6).

    The expected (d - 1)-volume of boundaries per unit volume at x if every bias has noise N(0, sigma^2). The noise of
    the unit itself is integrated exactly by the density rho_i; that of the others is drawn, `draws` times (32) for
    every point, in pairs of opposite sign. `sigma` is one number or one a layer. A unit with several breakpoints adds
    the density at each (HR Thm 6); competitors in max-pooling have the noise on their difference.

    `good=False` leaves the indicator out, an upper bound (LC eq. 39-40); `density=False` leaves rho out (LC eq. 41);
    `weight_noise` draws noise on the weights as well (LC Fig. 5). Estimated; exact if no noise has to be drawn and the
    method is. `method` is "gram", "jacobian" (both exact) or "random", which takes so many `directions` (32) at each
    point; "auto", the default, is exact if that fits into memory; see `directions`. Without a `generator` calls differ.

    With `differentiable` the result carries gradients to the parameters, in `tensor`: those with the patterns of all
    units held fixed, as torch has them. Unless `draws`, `method` or `directions` are told, it is then made for a
    penalty in training, see `penalties`: 32 of the points, or half if that is more, others in every call, one draw of
    the noise for all of them, one random direction a point, now and then a look at who is good. The value has no bias,
    nor has the gradient as one at fixed patterns, which is not that of LC itself; both have far more spread, which the
    points of one call do not tell: `stderr` is NaN. A training step with it on the same batch takes about four times as
    long as one without, if `model` is a traced `Network`, which follows the model's parameters: trace it once. If told,
    cost grows with `draws` times `directions`.

    >>> model = torch.nn.Sequential(torch.nn.Linear(1, 1), torch.nn.ReLU(), torch.nn.Linear(1, 1))
    >>> _ = model[0].weight.data.fill_(2.0), model[0].bias.data.zero_()
    >>> lc = local_complexity(model, torch.zeros(1, 1), sigma=1.0, good=False)
    >>> round(lc.mean, 4), round(2 / math.sqrt(2 * math.pi), 4)
    (0.7979, 0.7979)
    """
    net, points = network_and_points(model, data, allow_smooth=allow_smooth)
    scales = per_layer_scales(sigma, net)
    options: dict[str, Any] = {
        "sigma": as_array(sigma).tolist(), "good": good, "weight_noise": weight_noise, "density": density
    }  # fmt: skip
    if differentiable and not weight_noise and not per_unit and (draws, method, directions) == (None, None, None):
        with torch.enable_grad():
            once = drawn_once(
                net, points, scales, good=good, density=density, numbers=Draws(generator),
                at_once=batch_size or len(points),
            )  # fmt: skip
        found, how = _Densities(once[None], None, exact=False, draws=1), {"method": "random", "directions": 1}
        return replace(_estimate_of(net, found, options | how, differentiable), drawn_together=True)
    along = chosen_directions(net, method or "auto", DIRECTIONS if directions is None else directions)
    found = noisy_densities(
        net, points, scales, along, draws=DRAWS if draws is None else draws, good=good,
        weight_noise=weight_noise, density=density, generator=generator, batch_size=batch_size, per_unit=per_unit,
        differentiable=differentiable, show_progress=show_progress,
    )  # fmt: skip
    return _estimate_of(net, found, options | along.options, differentiable)


@dataclass(frozen=True)
class _Densities:
    """What every layer adds at every point in every round of draws, and whether that has no error of its own."""

    layers: Tensor  # (rounds, n, layers)
    units: Tensor | None  # (n, units), the mean over the rounds, if asked for
    exact: bool
    draws: int  # of noise; 0 if none has to be drawn

    @property
    def options(self) -> dict[str, int]:
        """With which a measure takes these."""
        return {"draws": self.draws} if self.draws else {}


def noisy_densities(
    net: Network, points: Tensor, scales: list[float], along: Directions, *, draws: int, good: bool,
    weight_noise: bool = False, density: bool = True, generator: torch.Generator | None = None,
    batch_size: int | None = None, per_unit: bool = False, differentiable: bool = False, show_progress: bool = False,
) -> _Densities:  # fmt: skip
    """|derivative along the directions| rho 1{good} of every unit at every point, for each draw of the noise."""
    if draws < 1:
        raise ValueError(f"draws must be at least 1, got {draws}")
    sampled = good or weight_noise or net.layers > 1
    antithetic = sampled and draws > 1
    layers, units = [], []
    numbers = Draws(generator)
    with torch.set_grad_enabled(differentiable):
        pairs = max(1, draws // 2) if sampled else 1
        same = antithetic and not weight_noise and not differentiable  # the network, in all rounds
        quick = dense_chain(net, along, scales, points[:JUDGED], draws) if same else None
        at_once = points_at_once(tangent_floats(net, along), batch_size)
        # points whose noise is drawn together
        together = max(at_once, min(ORDERED, points_at_once(net.units, floats=FLOATS_AT_ONCE)))
        together = quick.at_once(batch_size) if quick else together
        routes = _routes_of(net, along, scales, pairs, weight_noise, numbers)
        usual = {id(n): usual_slopes(n) for n in {id(r.net): r.net for r in routes}.values()} if good else {}
        bar = tqdm(total=len(points), desc="local complexity", disable=not show_progress)

        def tasks() -> Iterator[Callable[[], list[Tensor]]]:
            for x in points.split(together):
                if quick:  # noise is drawn in the order of points, whoever is done first
                    drawn = [_noise_and_picks(net, x, scales, number, numbers) for number in range(pairs)]
                    yield partial(_all_rounds, quick, x, drawn, scales, usual.get(id(net)), density)
                else:
                    how = scales, usual, density, antithetic, numbers, at_once
                    yield partial(_rounds_in_groups, routes, x, *how)

        for rounds in one_core_each(tasks()) if quick else (task() for task in tasks()):
            layers.append(torch.stack([net.by_layer(one) for one in rounds]))
            units += [torch.stack(rounds).mean(dim=0)] if per_unit else []
            bar.update(len(rounds[0]))
        bar.close()
    return _Densities(
        torch.cat(layers, dim=1), torch.cat(units) if per_unit else None, exact=along.exact and not sampled,
        draws=sampled * pairs * (2 if antithetic else 1),
    )  # fmt: skip


def complexity_density(model: Model | Network, points: Data, *, sigma: Numbers, **options: object) -> Estimate:
    """The density f(x) of local complexity at each point (LC eq. 3): `per_point`, with `point_stderr` from the draws.

    The same as `local_complexity`, read point by point; takes the same options. Without a `generator` calls differ.
    """
    return local_complexity(model, points, sigma=sigma, **options)  # type: ignore[arg-type]


def _routes_of(
    net: Network, along: Directions, scales: list[float], rounds: int, weight_noise: bool, numbers: Draws
) -> list[Route]:
    """The way through the network in every round: one for all, or each with noise on the weights."""
    if not weight_noise:
        return [Route(net, along)] * rounds
    generators = [torch.Generator().manual_seed(numbers.seed + number) for number in range(rounds)]
    noisy = [net.with_noisy_weights(scales, generator) for generator in generators]
    return [Route(one, chosen_directions(one, along.method, len(along.vectors))) for one in noisy]


def _groups_of(routes: Sequence[Route], most: int) -> list[range]:
    """The numbers of rounds, in order, in groups that go the same way together, so many at most."""
    groups = list[range]()
    for number, route in enumerate(routes):
        if groups and len(groups[-1]) < most and routes[groups[-1][0]] is route:
            groups[-1] = range(groups[-1].start, number + 1)
        else:
            groups.append(range(number, number + 1))
    return groups


def _rounds_in_groups(
    routes: Sequence[Route], x: Tensor, scales: list[float], usual: dict[int, list[Tensor]], density: bool,
    antithetic: bool, numbers: Draws, at_once: int,
) -> list[Tensor]:  # fmt: skip
    """What every unit adds to f at points x, (n, units), in every round; as many rounds together as fit."""
    found = []
    for group in _groups_of(routes, max(1, at_once // len(x))):
        route = routes[group[0]]
        found += _some_rounds(route, x, scales, usual.get(id(route.net)), density, antithetic, group, numbers, at_once)
    return found


def _some_rounds(
    route: Route, x: Tensor, scales: list[float], usual: list[Tensor] | None, density: bool, antithetic: bool,
    group: range, numbers: Draws, at_once: int,
) -> list[Tensor]:  # fmt: skip
    """What every unit adds to f at points x, (n, units), for a draw of the noise in each round, and its opposite.

    With the `usual_slopes` of the network, only good units do.
    """
    n, drawn = len(x), [_noise_and_picks(route.net, x, scales, number, numbers) for number in group]
    noise = [torch.cat(site) for site in zip(*(noises for noises, _ in drawn), strict=True)]  # round by round
    chosen = torch.cat([uniform for _, uniform in drawn])
    keys = [(number, len(noise)) for number in group]
    vectors = (
        None if route.along.exact else torch.cat([route.along.drawn(x, key, numbers) for key in keys])
    )  # (n, r, d)
    x = torch.cat([x] * len(group))
    if antithetic:  # both sides together, one after the other
        noise, chosen = [torch.cat([d, -d]) for d in noise], torch.cat([chosen[:, ::2], chosen[:, 1::2]])
        x, vectors = torch.cat([x, x]), None if vectors is None else torch.cat([vectors, vectors])
    else:
        chosen = chosen[:, ::2]
    order, parts = route.order(x), []
    for rows in order.split(at_once):
        along = None if vectors is None else vectors[rows].transpose(0, 1)
        parts.append(unit_densities(route, x[rows], scales, [d[rows] for d in noise], density, along))
    weights = [torch.cat(site)[order.argsort()] for site in zip(*parts, strict=True)]

    def standing(rows: slice) -> Standing:
        return standing_of(route.net, x[rows], [d[rows] for d in noise], usual or [])

    found = _breakpoint_sums(weights) if usual is None else _good_sums(route.net, standing, weights, chosen)
    return list(found.view(2 if antithetic else 1, len(group), n, found.shape[1]).mean(dim=0))


def _all_rounds(
    quick: DenseChain,
    x: Tensor,
    drawn: Sequence[tuple[list[Tensor], Tensor]],
    scales: list[float],
    usual: list[Tensor] | None,
    density: bool,
) -> list[Tensor]:
    """The same for every round, each with its noise and picks, where few units switch."""
    net, rounds, (noises, uniform) = quick.route.net, len(drawn), zip(*drawn, strict=True)
    one_side = [torch.stack(site) for site in zip(*noises, strict=True)]
    noise = [torch.cat([d, -d]) for d in one_side]  # (2 rounds, n, units)
    values = quick.values(x, noise)
    found = zip(net.sites, scales, quick.norms(x, values, noise), values, strict=True)
    weights = [
        _slope_densities(slopes.flatten(0, 1), z.flatten(0, 1), site, s, density) for site, s, slopes, z in found
    ]
    if usual is not None:
        chosen = torch.cat([torch.stack(uniform)[..., side::2].flatten(0, 1) for side in (0, 1)])
        everywhere = x.expand(2 * rounds, *x.shape).flatten(0, 1)
        shifts, entering = ([a.flatten(0, 1) for a in sites] for sites in (noise, values))

        def standing(rows: slice) -> Standing:
            return quick.standing(everywhere[rows], [d[rows] for d in shifts], usual, [z[rows] for z in entering])

        sums = _good_sums(net, standing, weights, chosen)
    else:
        sums = _breakpoint_sums(weights)
    return list(sums.view(2, rounds, len(x), -1).mean(dim=0))


def _noise_and_picks(
    net: Network, x: Tensor, scales: list[float], number: int, numbers: Draws
) -> tuple[list[Tensor], Tensor]:
    """The noise (n, units) a site of one round, and what picks the units that are looked at closely, (n, 2 sites)."""
    sites = list(zip(scales, net.sites, strict=True))
    noise = [s * numbers.normal((number, i), x, site.units) for i, (s, site) in enumerate(sites)]
    return noise, torch.stack([numbers.uniform((number, i, 1), x) for i in range(2 * len(sites))], dim=1)


def _breakpoint_sums(weights: list[Tensor]) -> Tensor:
    """The sums over breakpoints of weights (n, breakpoints, units) a site, (n, units)."""
    return torch.cat([w.sum(dim=1) for w in weights], dim=1)


def _good_sums(net: Network, standing: Callable[[slice], Standing], weights: list[Tensor], chosen: Tensor) -> Tensor:
    """The same over good units. `chosen` (n, sites) pick the unit of each site whose goodness is looked at closely.

    Of as many points at once as fit: derivatives take far more room, and fewer of them at once.
    """
    parts = []
    for rows in portions(len(chosen), points_kept_at_once(net)):
        parts.append(torch.cat(good_weights(standing(rows), [w[rows] for w in weights], chosen[rows]), dim=1))
    return torch.cat(parts)


def unit_densities(
    route: Route, x: Tensor, scales: list[float], noise: list[Tensor], density: bool, vectors: Tensor | None
) -> list[Tensor]:
    """|derivative along the directions| rho of every unit at points x, (n, breakpoints, units) a site, under noise."""
    net = route.net
    found: dict[int, Tensor] = {}  # number of the site -> (n, breakpoints, units)

    def visit(number: int, z: Tensor, tangents: Tensor) -> None:
        found[number] = _slope_densities(route.along.norms(tangents), z, net.sites[number], scales[number], density)

    route.follow(x, visit, noise=noise, vectors=vectors)
    return [found[number] for number in range(len(net.sites))]


def _slope_densities(slopes: Tensor, z: Tensor, site: Site, scale: float, density: bool) -> Tensor:
    """The slopes (n, units) times rho at every breakpoint, (n, breakpoints, units)."""
    b = torch.tensor(site.breakpoints, dtype=z.dtype, device=z.device)
    share = torch.full_like(b, 1 / max(1, len(b)))[:, None]  # a unit's gradient counts once
    return slopes[:, None] * (gaussian(z[:, None] - b[:, None], scale) if density else share)


def per_layer_scales(sigma: Numbers, net: Network) -> list[float]:
    """The standard deviation of the noise for each site."""
    check_bends(net)
    given = as_array(sigma)
    if given.ndim and given.shape != (net.layers,):
        told = given.size if given.ndim == 1 else f"shape {given.shape}"
        raise ValueError(f"sigma must be one number or {net.layers}, one a layer; got {told}")
    layers = np.broadcast_to(given, net.layers).tolist()
    if not all(s > 0 and math.isfinite(s) for s in layers):
        raise ValueError(f"sigma must be positive, got {sigma}")
    return [layers[site.layer - 1] for site in net.sites]


def _estimate_of(net: Network, found: _Densities, options: Mapping[str, Any], differentiable: bool) -> Estimate:
    """Per point and per layer, with the errors that the rounds show."""
    layers = found.layers.mean(dim=0)
    totals = found.layers.detach().sum(dim=2)
    spread = totals.std(dim=0) / math.sqrt(len(totals)) if len(totals) > 1 else None
    return Estimate(
        "local complexity" if options["density"] else "local complexity without density",
        layers.sum(dim=1).detach().cpu().double().numpy(),
        layers.detach().cpu().double().numpy(),
        exact=found.exact,
        quantity="boundary volume per volume" if net.piecewise_linear else "unit-boundary volume per volume",
        point_stderr=None if spread is None else spread.cpu().double().numpy(),
        per_unit=None if found.units is None else found.units.detach().cpu().double().numpy(),
        tensor=layers.sum(dim=1).mean() if differentiable else None,
        options={**options, **found.options},
        piecewise_linear=net.piecewise_linear,
    )
