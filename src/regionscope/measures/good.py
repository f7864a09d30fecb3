"""Good units: those whose switching changes the network's output."""

from dataclasses import replace

import torch
from torch import Tensor
from tqdm.auto import tqdm

from regionscope.machine import points_at_once
from regionscope.results import Estimate
from regionscope.tracing.given import network_and_points, values_per_point
from regionscope.tracing.network import Network, Site
from regionscope.tracing.program import Watch
from regionscope.types import Data, Model


@torch.inference_mode(False)  # it differentiates wherever it is called
def good_units(
    model: Model | Network,
    data: Data,
    *,
    batch_size: int | None = None,
    per_unit: bool = False,
    show_progress: bool = False,
) -> Estimate:
    """The number of units that are good at each point: open units lead from them to the output (LC A.1, HR).

    A unit is good if the derivative of a generic combination of the outputs by what leaves the unit is not zero; for
    dense ReLU layers, if every later layer has an open unit. `per_unit` asks for the mask (n, units). The number that
    are not good, LC's B, is `net.units - mean`. Exact.

    >>> model = torch.nn.Sequential(torch.nn.Linear(1, 2), torch.nn.ReLU(), torch.nn.Linear(2, 1))
    >>> good_units(model, torch.zeros(3, 1)).per_point
    array([2., 2., 2.])
    """
    net, points = network_and_points(model, data)
    none = torch.zeros(len(points), 0, dtype=torch.bool, device=points.device)
    at_once = points_at_once(values_per_point(net), batch_size)
    bar = tqdm(points.split(at_once), desc="good units", disable=not show_progress)
    masks = [torch.cat(good_masks(net, x), dim=1) for x in bar] if net.sites else [none]
    mask = torch.cat(masks)
    layers = net.by_layer(mask.double()).cpu()
    return Estimate(
        "good units",
        layers.sum(dim=1).numpy(),
        layers.numpy(),
        exact=True,
        quantity="units",
        per_unit=mask.cpu().numpy() if per_unit else None,
    )


def good_masks(net: Network, x: Tensor, *, noise: list[Tensor] | None = None) -> list[Tensor]:
    """Which units of each site are good at points x: (n, units) a site. `noise` is taken off what enters the sites."""
    return _masks_and_exits(net, x, noise)[0]


def _masks_and_exits(net: Network, x: Tensor, noise: list[Tensor] | None) -> tuple[list[Tensor], list[Tensor]]:
    left: dict[int, Tensor] = {}

    def watch(value: int, tensor: Tensor) -> None:
        if value in exits:
            left[value] = tensor

    exits = set(net.exits)
    with torch.enable_grad():
        out = _generic_output(net, x.detach().requires_grad_(), noise, watch)
        found = torch.autograd.grad(out, [left[e] for e in net.exits], allow_unused=True)
    masks = [
        torch.zeros(len(x), site.units, dtype=torch.bool, device=x.device) if g is None else g.flatten(1) != 0
        for g, site in zip(found, net.sites, strict=True)
    ]
    return masks, [left[e].detach().flatten(1) for e in net.exits]


def good_at_breakpoint(net: Network, x: Tensor, noise: list[Tensor], site: Site, unit: Tensor, level: Tensor) -> Tensor:
    """Whether one unit of a site (n,) is good at each point when it is just at a breakpoint, where it gives `level`.

    The noise of all others is as given; a unit's own noise decides where its boundary lies, not whether it is good.
    """
    there: list[Tensor] = []

    def watch(value: int, tensor: Tensor) -> Tensor | None:
        if value != site.exit:
            return None
        moved = tensor.detach().flatten(1).scatter(1, unit[:, None], level[:, None]).requires_grad_()
        there.append(moved)
        return moved.reshape(tensor.shape)

    with torch.enable_grad():
        out = _generic_output(net, x.detach(), noise, watch)
        (slope,) = torch.autograd.grad(out, there, allow_unused=True) if out.requires_grad else (None,)
    if slope is None:
        return torch.zeros(len(x), dtype=torch.bool, device=x.device)
    return slope.gather(1, unit[:, None])[:, 0] != 0


def good_weights(net: Network, x: Tensor, noise: list[Tensor], weights: list[Tensor], chosen: Tensor) -> list[Tensor]:
    """What is left of weights (n, breakpoints, units) a site when only good units count: (n, units) a site; unbiased.

    Units that give what they give at the breakpoint, as closed ones do, are good or not as they stand. Of the others,
    one a site is picked with probability in proportion to its weight by a uniform number of `chosen` (n, sites) and
    moved to the breakpoint; if it is not good there, the weight of all is taken off it: on average, that of the bad.
    """
    kept = []
    masks, leaving = _masks_and_exits(net, x, noise)
    for number, (site, mask, w) in enumerate(zip(net.sites, masks, weights, strict=True)):
        if site.layer == net.layers or site.tournament or site.kind in ("maximum", "minimum"):
            kept.append((w * mask[:, None]).sum(dim=1))  # nothing bends behind it, or its noise moves nothing
            continue
        levels = _levels(net, site, x)
        settled = leaving[number][:, None] == levels
        certain = (w * (settled & mask[:, None])).sum(dim=1)
        open_ = torch.where(settled, 0.0, w)
        total = open_.detach().flatten(1).sum(dim=1)
        place = (open_.detach().flatten(1).cumsum(dim=1) < (chosen[:, number] * total)[:, None]).sum(dim=1)
        place = place.clamp_max(open_[0].numel() - 1)
        unit, rows = place % site.units, torch.arange(len(x), device=x.device)
        bad = ~good_at_breakpoint(net, x, noise, site, unit, levels.flatten()[place]) & (total > 0)
        picked = open_.flatten(1)[rows, place]
        share = torch.where(bad, total / picked.detach().clamp_min(torch.finfo(w.dtype).tiny), 0.0)
        kept.append((certain + open_.sum(dim=1)).index_put((rows, unit), -picked * share, accumulate=True))
    return kept


@torch.no_grad()
def _levels(net: Network, site: Site, x: Tensor) -> Tensor:
    """What the units of a site give at each of its breakpoints, (breakpoints, units)."""
    b = torch.tensor(site.breakpoints, dtype=x.dtype, device=x.device)

    def watch(value: int, tensor: Tensor) -> Tensor | None:
        return b.view(-1, *[1] * (tensor.dim() - 1)).expand(tensor.shape) if value == site.entry else None

    anywhere = x[:1].expand(len(b), *x.shape[1:])
    return net.program.pruned([site.exit]).run(anywhere, watch)[0].flatten(1)


def _generic_output(net: Network, x: Tensor, noise: list[Tensor] | None, watch: Watch) -> Tensor:
    """The sum over points of a generic combination of the outputs; no weight takes part in its gradients."""
    shifted = None if noise is None else noisy_entries(net, noise)

    def both(value: int, tensor: Tensor) -> Tensor | None:
        seen = watch(value, tensor)
        return shifted(value, tensor if seen is None else seen) if shifted and value in entries else seen

    entries = set(net.entries)
    program = net.program.pruned([*entries, *net.exits, net.output])
    still = replace(program, held={i: c.detach() for i, c in program.constants.items()})
    out = still.run(x, both)[-1].flatten(1)
    weights = torch.linspace(1.0, 2.0, out.shape[1], dtype=out.dtype, device=out.device) ** 0.5
    return (out * weights).sum()


def noisy_entries(net: Network, noise: list[Tensor]) -> Watch:
    """Takes noise, one tensor (n, units) a site, off what enters the sites: the first's, if a value enters several."""
    number = {site.entry: i for i, site in reversed(list(enumerate(net.sites)))}

    def watch(value: int, tensor: Tensor) -> Tensor | None:
        return tensor - noise[number[value]].reshape(tensor.shape) if value in number else None

    return watch
