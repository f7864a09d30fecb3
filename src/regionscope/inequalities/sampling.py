"""All that the inequalities compare, measured at the same points under the same noise."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor
from tqdm.auto import tqdm

from regionscope.inequalities.bound import Samples
from regionscope.inequalities.chains import Chain
from regionscope.machine import points_at_once
from regionscope.measures.complexity import gaussian
from regionscope.measures.draws import Draws
from regionscope.measures.good import good_masks
from regionscope.measures.jacobians import Route, chosen_directions, tangent_floats
from regionscope.measures.rank import ranks
from regionscope.tracing.network import Network, piece

OUTPUTS = 64  # with more, the Lipschitz constants met on the data are left out


def sampled(
    net: Network, points: Tensor, chain: Chain | None, *, sigma: float, eta: float, eps: float, draws: int,
    generator: torch.Generator | None, batch_size: int | None = None, show_progress: bool = False,
) -> Samples:  # fmt: skip
    """Complexity, slopes, ranks, variation and distance at every point, each a mean over the same draws of the noise.

    Inequalities that hold for every point and noise hold for these means too, whatever the number of draws.
    """
    along = chosen_directions(net)
    along = along if along.exact else chosen_directions(net, "jacobian")
    route = Route(net, along, output=True)
    parts: list[dict[str, Tensor]] = []
    numbers = Draws(generator)
    with torch.no_grad():
        at_once = points_at_once(tangent_floats(net, along), batch_size)
        for x in tqdm(points.split(at_once), desc="bounds", disable=not show_progress):
            rounds = [one_draw(route, x, chain, sigma, eta, eps, number, numbers) for number in range(draws)]
            parts.append({name: torch.stack([one[name] for one in rounds]) for name in rounds[0]})
    whole = {name: torch.cat([part[name] for part in parts], dim=1).double().cpu().numpy() for name in parts[0]}
    largest = {name: whole.pop(name).max(axis=(0, 1)) for name in list(whole) if name.startswith("largest")}
    axis = 0 if len(points) > 1 else 1  # of a single point, every draw is a row
    return Samples({name: np.asarray(column.mean(axis=axis)) for name, column in whole.items()}, largest)


def one_draw(
    route: Route, x: Tensor, chain: Chain | None, sigma: float, eta: float, eps: float, number: int, numbers: Draws,
) -> dict[str, Tensor]:  # fmt: skip
    """Everything at points x for one draw of the noise: (n,), or (n, layers)."""
    net, n = route.net, len(x)
    noise = [sigma * numbers.normal((number, i), x, site.units) for i, site in enumerate(net.sites)]
    values: list[Tensor] = [x] * len(net.sites)
    slopes: list[Tensor] = [x] * len(net.sites)
    tangents_of: dict[int, list[Tensor]] = {}

    def visit(number: int, z: Tensor, tangents: Tensor) -> None:
        values[number], slopes[number] = z, route.along.norms(tangents)
        tangents_of.setdefault(net.sites[number].layer, []).append(tangents.transpose(0, 1))  # (n, r, units)

    out = route.follow(x, visit, noise=noise)
    spectra = [spectrum(tangents_of[layer]) for layer in sorted(tangents_of)]
    v, s, good = torch.cat(values, dim=1), torch.cat(slopes, dim=1), torch.cat(good_masks(net, x, noise=noise), dim=1)
    off = net.entry_noise(noise)
    noisy = [v_ - off[e] for v_, e in zip(values, net.entries, strict=True)]
    weighted = s * per_site(net, v, density(sigma))
    near, reach = per_site(net, v, gap), per_site(net, torch.cat(noisy, dim=1), gap)
    found = {
        "LC": net.by_layer(weighted * good),
        "density": net.by_layer(weighted),
        "slopes": net.by_layer(s),
        "tail": net.by_layer(s * (near > eta)),
        "not good": (~good).sum(dim=1).double(),
        "rank": torch.stack([ranks(spectrum, eps, False) for spectrum in spectra], dim=1).double(),
        "exact rank": torch.stack([ranks(spectrum, 0.0, False) for spectrum in spectra], dim=1).double(),
        "TV": torch.linalg.vector_norm(route.along.norms(out), dim=1),
        "distance": torch.where(s > 0, reach / s.clamp_min(1e-300), torch.inf).amin(dim=1),
        "largest slope": s.amax(dim=1),
        "largest norm": torch.stack([spectrum[:, 0] for spectrum in spectra], dim=1),
    }
    if chain is not None:
        offsets = torch.cat([m.offset for m in chain.maps[:-1]])
        found["squares"] = (v - offsets).square().sum(dim=1)
        if chain.matrices is not None and len(chain.maps[-1].offset) <= OUTPUTS:
            found["largest Lipschitz"] = lipschitz_met(chain, noisy, n)
    return found


def spectrum(tangents: list[Tensor]) -> Tensor:
    """The singular values of a layer's Jacobian at each point, (n, k)."""
    if len(tangents) == 1 and tangents[0].stride(0) == 0:  # the same at all points
        shared: Tensor = torch.linalg.svdvals(tangents[0][0])
        return shared.expand(len(tangents[0]), -1)
    each: Tensor = torch.linalg.svdvals(torch.cat(tangents, dim=2))
    return each


def per_site(net: Network, v: Tensor, function: Callable[[Tensor, tuple[float, ...]], Tensor]) -> Tensor:
    """A function of the values of a site and its breakpoints, over all sites."""
    parts = v.split([site.units for site in net.sites], dim=1)
    return torch.cat([function(z, site.breakpoints) for z, site in zip(parts, net.sites, strict=True)], dim=1)


def gap(z: Tensor, breakpoints: tuple[float, ...]) -> Tensor:
    """How far each value is from the nearest breakpoint."""
    return torch.stack([(z - b).abs() for b in breakpoints] or [torch.full_like(z, torch.inf)]).amin(dim=0)


def density(sigma: float) -> Callable[[Tensor, tuple[float, ...]], Tensor]:
    """The density of a unit's noisy bias at its value, added up over the breakpoints."""
    return lambda z, breakpoints: torch.stack([gaussian(z - b, sigma) for b in breakpoints] or [0 * z]).sum(dim=0)


def lipschitz_met(chain: Chain, values: list[Tensor], n: int) -> Tensor:
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
