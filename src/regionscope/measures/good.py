"""Good units: those whose switching changes the network's output."""

from collections.abc import Mapping, Set
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from tqdm.auto import tqdm

from regionscope.results import Estimate
from regionscope.tracing.given import network_and_points, points_kept_at_once
from regionscope.tracing.network import Network, Site, as_rows
from regionscope.tracing.program import OnValue, Program
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
    at_once = points_kept_at_once(net, batch_size)
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
    return _masks_and_values(net, x, noise, set(net.exits))[0]


@dataclass(frozen=True)
class Standing:
    """A network at points under noise on what enters its sites: which units are good as they stand, and if moved.

    The `values` of the program are those before noise is taken off them; only what is `behind` a site is run again.
    """

    net: Network
    noise: list[Tensor]
    masks: list[Tensor]  # (n, units) a site
    values: dict[int, Tensor]
    behind: dict[int, Program]  # by the value that leaves the site
    needed: dict[int, tuple[int, ...]]  # the values that the program behind a site starts from

    def leaving(self, site: Site) -> Tensor:
        """What leaves a site, (n, units)."""
        return as_rows(self.values[site.exit])

    def good_at_breakpoint(self, site: Site, unit: Tensor, level: Tensor, rows: Tensor | None = None) -> Tensor:
        """Whether one unit of a site is good at each point, or at some, when it is at a breakpoint and gives `level`.

        The noise of all others is as given; a unit's own noise decides where its boundary lies, not whether it is good.
        """
        start = {value: self.values[value] for value in self.needed[site.exit]}
        noise = self.noise
        if rows is not None:
            start, noise = {value: tensor[rows] for value, tensor in start.items()}, [d[rows] for d in noise]
        left = start[site.exit]
        moved = as_rows(left).scatter(1, unit[:, None], level[:, None]).requires_grad_()
        with torch.enable_grad():
            start[site.exit] = moved.reshape(left.shape)
            out = _generic_output(self.net, self.behind[site.exit], start, noise, lambda *_: None)
            (slope,) = torch.autograd.grad(out, moved, allow_unused=True) if out.requires_grad else (None,)
        if slope is None:
            return torch.zeros(len(left), dtype=torch.bool, device=left.device)
        return slope.gather(1, unit[:, None])[:, 0] != 0


def standing(net: Network, x: Tensor, noise: list[Tensor]) -> Standing:
    """The network at points x, ready to say of units that are moved whether they are good."""
    program = net.program.pruned([net.output])
    cut = {site.exit: program.segments([site.exit]) for site in net.sites if not good_as_it_stands(net, site)}
    kept = {*net.exits, *(value for before, _ in cut.values() for value in before.outputs)}
    masks, values = _masks_and_values(net, x, noise, kept)
    behind = {value: _still(after) for value, (_, after) in cut.items()}
    return Standing(net, noise, masks, values, behind, {value: before.outputs for value, (before, _) in cut.items()})


def good_as_it_stands(net: Network, site: Site) -> bool:
    """Whether no unit's own noise decides if it is good: nothing bends behind the site, or its noise moves nothing."""
    return site.layer == net.layers or bool(site.tournament) or site.kind in ("maximum", "minimum")


def _masks_and_values(
    net: Network, x: Tensor, noise: list[Tensor] | None, kept: Set[int]
) -> tuple[list[Tensor], dict[int, Tensor]]:
    """The masks, and those values of the program that are to be kept, before noise is taken off them."""
    seen: dict[int, Tensor] = {}

    def on_value(value: int, tensor: Tensor) -> None:
        if value in kept:
            seen[value] = tensor

    with torch.enable_grad():
        start = {0: x.detach().requires_grad_()[:, None]}
        program = _still(net.program.pruned([*net.entries, *net.exits, net.output]))
        out = _generic_output(net, program, start, noise, on_value)
        found = torch.autograd.grad(out, [seen[e] for e in net.exits], allow_unused=True)
    masks = [
        torch.zeros(len(x), site.units, dtype=torch.bool, device=x.device) if g is None else as_rows(g) != 0
        for g, site in zip(found, net.sites, strict=True)
    ]
    return masks, {value: tensor.detach() for value, tensor in seen.items()}


def good_weights(net: Network, x: Tensor, noise: list[Tensor], weights: list[Tensor], chosen: Tensor) -> list[Tensor]:
    """What is left of weights (n, breakpoints, units) a site when only good units count: (n, units) a site; unbiased.

    Units that give what they give at the breakpoint, as closed ones do, are good or not as they stand. Of the others,
    one a site is picked with probability in proportion to its weight by a uniform number of `chosen` (n, sites) and
    moved to the breakpoint; if it is not good there, the weight of all is taken off it: on average, that of the bad.
    """
    kept = []
    stand = standing(net, x, noise)
    for number, (site, mask, w) in enumerate(zip(net.sites, stand.masks, weights, strict=True)):
        if good_as_it_stands(net, site):
            kept.append((w * mask[:, None]).sum(dim=1))
            continue
        levels = levels_at_breakpoints(net, site, x)
        settled = stand.leaving(site)[:, None] == levels
        certain = (w * (settled & mask[:, None])).sum(dim=1)
        open_ = torch.where(settled, 0.0, w)
        total = open_.detach().flatten(1).sum(dim=1)
        place = (open_.detach().flatten(1).cumsum(dim=1) < (chosen[:, number] * total)[:, None]).sum(dim=1)
        place = place.clamp_max(open_[0].numel() - 1)
        unit, rows = place % site.units, torch.arange(len(x), device=x.device)
        good = stand.good_at_breakpoint(site, unit, levels.flatten()[place])
        picked = open_.flatten(1)[rows, place]
        share = torch.where(~good & (total > 0), total / picked.detach().clamp_min(torch.finfo(w.dtype).tiny), 0.0)
        kept.append((certain + open_.sum(dim=1)).index_put((rows, unit), -picked * share, accumulate=True))
    return kept


@torch.no_grad()
def levels_at_breakpoints(net: Network, site: Site, x: Tensor) -> Tensor:
    """What the units of a site give at each of its breakpoints, (breakpoints, units)."""
    b = torch.tensor(site.breakpoints, dtype=x.dtype, device=x.device)

    def on_value(value: int, tensor: Tensor) -> Tensor | None:
        return b.view(-1, *[1] * (tensor.dim() - 1)).expand(tensor.shape) if value == site.entry else None

    anywhere = x[:1].expand(len(b), *x.shape[1:])
    return as_rows(net.program.pruned([site.exit]).run(anywhere, on_value)[0])


def _generic_output(
    net: Network, program: Program, start: Mapping[int, Tensor], noise: list[Tensor] | None, on_value: OnValue
) -> Tensor:
    """The sum over points of a generic combination of what a program, which ends with the output, makes of a start."""
    shifted = None if noise is None else net.noisy_entries(noise)

    def both(value: int, tensor: Tensor) -> Tensor | None:
        on_value(value, tensor)
        return shifted(value, tensor) if shifted else None

    out = as_rows(program.resume(start, both)[-1])
    weights = torch.linspace(1.0, 2.0, out.shape[1], dtype=out.dtype, device=out.device) ** 0.5
    total: Tensor = (out * weights).sum()
    return total


def _still(program: Program) -> Program:
    """The same; no weight takes part in its gradients."""
    return replace(program, held={i: c.detach() for i, c in program.constants.items()})
