"""All that the inequalities compare, measured at the same points under the same noise."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from regionscope.inequalities.bound import Samples
from regionscope.inequalities.chains import AffineChain
from regionscope.machine import points_at_once
from regionscope.measures.costs import LOOKS
from regionscope.measures.densities import gaussian
from regionscope.measures.directions import chosen_directions, tangent_floats
from regionscope.measures.draws import Draws
from regionscope.measures.good import good_as_it_stands, standing_of, usual_slopes
from regionscope.measures.pools import levels_at_breakpoints
from regionscope.measures.rank import ranks
from regionscope.measures.routes import Route
from regionscope.progress import tqdm
from regionscope.tracing.network import Network, as_rows, piece
from regionscope.types import Floats

OUTPUTS = 64  # with more, the Lipschitz constants met on the data are left out
AT_ONCE = 4096  # looks


def measured_samples(
    net: Network, points: Tensor, chain: AffineChain | None, *, sigma: float, eta: float, eps: float, draws: int,
    generator: torch.Generator | None, batch_size: int | None = None, show_progress: bool = False,
) -> Samples:  # fmt: skip
    """Complexity, slopes, ranks, variation and distance at every point, each a mean over the same draws of the noise.

    Inequalities that hold for every point and noise hold for these means too, whatever the number of draws.
    """
    along = chosen_directions(net)
    along = along if along.exact else chosen_directions(net, "jacobian")
    route = Route(net, along, output=True)
    means: list[dict[str, Tensor]] = []  # (draws, n, ...)
    most: list[dict[str, Tensor]] = []
    numbers = Draws(generator)
    with torch.no_grad():
        at_once = points_at_once(tangent_floats(net, along), batch_size)
        for x in tqdm(points.split(at_once), desc="bounds", disable=not show_progress):
            spectrum_of = _Spectra()
            rounds = [
                _one_draw(route, x, chain, sigma, eta, eps, number, numbers, spectrum_of) for number in range(draws)
            ]
            means.append(_stacked([averaged for averaged, _, _ in rounds]))
            most.append(_stacked([largest for _, largest, _ in rounds]))
            slopes = torch.stack([s for _, _, s in rounds])  # (draws, n, units)
            most[-1]["largest mean slope"] = slopes.mean(dim=0, keepdim=True).amax(dim=2)
    axis = 0 if len(points) > 1 else 1  # of a single point, every draw is a row
    columns = {name: np.asarray(column.mean(axis=axis)) for name, column in _points_of_parts(means).items()}
    return Samples(columns, {name: values.max(axis=(0, 1)) for name, values in _points_of_parts(most).items()})


def _stacked(rounds: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    """One draw behind another, (draws, n, ...)."""
    return {name: torch.stack([one[name] for one in rounds]) for name in rounds[0]}


def _points_of_parts(parts: list[dict[str, Tensor]]) -> dict[str, Floats]:
    """The points of all parts, in float64."""
    return {name: torch.cat([part[name] for part in parts], dim=1).double().cpu().numpy() for name in parts[0]}


def _one_draw(
    route: Route, x: Tensor, chain: AffineChain | None, sigma: float, eta: float, eps: float,
    number: int, numbers: Draws, spectrum_of: "_Spectra",
) -> tuple[dict[str, Tensor], dict[str, Tensor], Tensor]:  # fmt: skip
    """At x for one draw of the noise: what has a mean, what has a largest, (n,) or (n, layers); slopes (n, units)."""
    net, n = route.net, len(x)
    noise = [sigma * numbers.normal((number, i), x, site.units) for i, site in enumerate(net.sites)]
    values: list[Tensor] = [x] * len(net.sites)
    slopes: list[Tensor] = [x] * len(net.sites)
    tangents_of: dict[int, list[Tensor]] = {}

    def visit(number: int, z: Tensor, tangents: Tensor) -> None:
        values[number], slopes[number] = z, route.along.norms(tangents)
        tangents_of.setdefault(net.sites[number].layer, []).append(tangents.transpose(0, 1))  # (n, r, units)

    out = route.follow(x, visit, noise=noise)
    spectra = [spectrum_of(layer, tangents_of[layer]) for layer in sorted(tangents_of)]
    v, s = torch.cat(values, dim=1), torch.cat(slopes, dim=1)
    off = net.entry_noise(noise)
    noisy = [v_ - off[e] for v_, e in zip(values, net.entries, strict=True)]
    weights = [
        s_[:, None]
        * gaussian(z[:, None] - torch.tensor(site.breakpoints, dtype=z.dtype, device=z.device)[:, None], sigma)
        for s_, z, site in zip(slopes, values, net.sites, strict=True)
    ]  # (n, breakpoints, units)
    uniform = [numbers.uniform((number, i, 1), x, *w.shape[1:]) for i, w in enumerate(weights)]
    lost, not_good = _lost_weights(net, x, noise, weights, uniform)
    whole = torch.cat([w.sum(dim=1) for w in weights], dim=1)
    near, reach = _per_site(net, v, _gap), _per_site(net, torch.cat(noisy, dim=1), _gap)
    found = {
        "LC": net.by_layer(whole - lost),
        "density": net.by_layer(whole),
        "slopes": net.by_layer(s),
        "tail": net.by_layer(s * (near > eta)),
        "not good": not_good,
        "rank": torch.stack([ranks(spectrum, eps, False) for spectrum in spectra], dim=1).double(),
        "exact rank": torch.stack([ranks(spectrum, 0.0, False) for spectrum in spectra], dim=1).double(),
        "TV": torch.linalg.vector_norm(route.along.norms(out), dim=1),
        "distance": torch.where(s > 0, reach / s.clamp_min(1e-300), torch.inf).amin(dim=1),
    }
    largest = {
        "largest slope": s.amax(dim=1),
        "largest norm": torch.stack([spectrum[:, 0] for spectrum in spectra], dim=1),
    }
    if chain is not None:
        offsets = torch.cat([m.offset for m in chain.maps[:-1]])
        found["squares"] = (v - offsets).square().sum(dim=1)
        if chain.matrices is not None and len(chain.maps[-1].offset) <= OUTPUTS:
            largest["largest Lipschitz"] = _lipschitz_met(chain, noisy, n)
    return found, largest, s


def _lost_weights(
    net: Network, x: Tensor, noise: list[Tensor], weights: list[Tensor], uniform: list[Tensor]
) -> tuple[Tensor, Tensor]:
    """Of weights (n, breakpoints, units) a site, what units have that are not good (n, units), and their number (n,).

    A unit is good or not by the noise of the others: it is put to its breakpoint, where closed units give what they
    give anyway. Of more than `LOOKS` open ones some are drawn, likelier if their weight is large, and each stands for
    1/chance: unbiased. Weight and number are of the same units, so what is lost is at most the number times the most
    that a unit weighs, for every draw. Of several breakpoints a unit may be not good at some: it counts by their share.
    """
    stand = standing_of(net, x, noise, usual_slopes(net))
    lost, count = [], torch.zeros(len(x)).to(x)
    for site, mask, w, u in zip(net.sites, stand.masks, weights, uniform, strict=True):
        bad = (~mask)[:, None].to(w).expand_as(w)  # how many each stands for
        if site.breakpoints and not good_as_it_stands(net, site):
            levels = levels_at_breakpoints(net, site, x)
            hidden = as_rows(stand.values[site.exit])[:, None] != levels
            chance = _chances(torch.where(hidden, w, 0.0), hidden)
            bad = torch.where(hidden, 0.0, bad)
            looks = (u < chance).nonzero()
            for some in looks.split(AT_ONCE) if len(looks) else ():
                row, at, unit = some.T
                good = stand.good_at_breakpoint(site, unit, levels[at, unit], row)
                bad[row, at, unit] = torch.where(good, 0.0, 1 / chance[row, at, unit])
        lost.append((w * bad).sum(dim=1))
        count += bad.sum(dim=(1, 2)) / max(1, len(site.breakpoints))
    return torch.cat(lost, dim=1), count


def _chances(weights: Tensor, hidden: Tensor) -> Tensor:
    """With what probability each is looked at: half of the looks go by weight, so that neither sum varies much."""
    many, total = hidden.sum(dim=(1, 2), keepdim=True), weights.sum(dim=(1, 2), keepdim=True)
    share = (weights / total.clamp_min(1e-300) + 1 / many.clamp_min(1)) / 2
    return torch.where(hidden, torch.where(many <= LOOKS, 1.0, (LOOKS * share).clamp_max(1.0)), 0.0)


class _Spectra:
    """The singular values of layers at some points, draw by draw.

    Noise on biases does not change the Jacobian of the first layer, so its values are found again only if that differs.
    """

    def __init__(self) -> None:
        self._first: tuple[list[Tensor], Tensor] | None = None

    def __call__(self, layer: int, tangents: list[Tensor]) -> Tensor:
        if layer == 1 and self._first is not None and all(map(torch.equal, self._first[0], tangents)):
            return self._first[1]
        spectrum = _spectrum(tangents)
        if layer == 1:
            self._first = tangents, spectrum
        return spectrum


def _spectrum(tangents: list[Tensor]) -> Tensor:
    """The singular values of a layer's Jacobian at each point, (n, k)."""
    if len(tangents) == 1 and tangents[0].stride(0) == 0:  # the same at all points
        shared: Tensor = torch.linalg.svdvals(tangents[0][0])
        return shared.expand(len(tangents[0]), -1)
    each: Tensor = torch.linalg.svdvals(torch.cat(tangents, dim=2))
    return each


def _per_site(net: Network, v: Tensor, function: Callable[[Tensor, tuple[float, ...]], Tensor]) -> Tensor:
    """A function of the values of a site and its breakpoints, over all sites."""
    parts = v.split([site.units for site in net.sites], dim=1)
    return torch.cat([function(z, site.breakpoints) for z, site in zip(parts, net.sites, strict=True)], dim=1)


def _gap(z: Tensor, breakpoints: tuple[float, ...]) -> Tensor:
    """How far each value is from the nearest breakpoint."""
    return torch.stack([(z - b).abs() for b in breakpoints] or [torch.full_like(z, torch.inf)]).amin(dim=0)


def _lipschitz_met(chain: AffineChain, values: list[Tensor], n: int) -> Tensor:
    """The norm of the derivative of the outputs by each layer's pre-activations, (n, layers)."""
    matrices = chain.matrices
    assert matrices is not None
    rest = matrices[-1].expand(n, -1, -1)  # by what leaves the layer, (n, outputs, units)
    norms = []
    for layer in reversed(range(len(values))):
        pieces = piece(values[layer], chain.breakpoints[layer]).long()
        by_values = rest * chain.slopes[layer].gather(0, pieces)[:, None]
        norms.append(torch.linalg.matrix_norm(by_values, ord=2))
        rest = by_values @ matrices[layer]
    return torch.stack(norms[::-1], dim=1)
