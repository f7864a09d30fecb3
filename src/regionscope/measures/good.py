"""Good units: those whose switching changes the network's output."""

import math
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any, Protocol

import torch
from torch import Tensor

from regionscope.geometry.pieces import pieces
from regionscope.measures.noise import without_effect
from regionscope.measures.pools import levels_at_breakpoints, masks_at_levels
from regionscope.progress import tqdm
from regionscope.results import Estimate
from regionscope.tracing.activations import PAIRWISE
from regionscope.tracing.given import network_and_points, points_kept_at_once
from regionscope.tracing.lifting import Shape, lifted, sides_of
from regionscope.tracing.network import Network, Site, as_rows, piece
from regionscope.tracing.program import OnValue, Program
from regionscope.tracing.steps import Step
from regionscope.types import Data, Model

TRIALS = 8  # of random factors, to see how large a derivative is if nothing cancels


@torch.inference_mode(False)  # it differentiates wherever it is called
def good_units(
    model: Model | Network,
    data: Data,
    *,
    batch_size: int | None = None,
    per_unit: bool = False,
    allow_smooth: bool = False,
    show_progress: bool = False,
) -> Estimate:
    """The number of units that are good at each point: open units lead from them to the output (LC A.1, HR).

    A unit is good if the derivative of a generic combination of the outputs by what leaves the unit is not zero; for
    dense ReLU layers, if every later layer has an open unit. In max-pooling all that are largest are open: closed ReLUs
    often are together, and whichever opens is the largest. It is not asked whether what is open would lose there: where
    sums of closed units tie, one that only lowers some of them is good too. Derivatives that may be rounding only are
    settled in exact arithmetic. `per_unit` asks for the mask (n, units). The number that are not good is
    `net.units - mean`; LC's B is its mean under noise. Exact.

    >>> model = torch.nn.Sequential(torch.nn.Linear(1, 2), torch.nn.ReLU(), torch.nn.Linear(2, 1))
    >>> good_units(model, torch.zeros(3, 1)).per_point
    array([2., 2., 2.])
    """
    net, points = network_and_points(model, data, allow_smooth=allow_smooth)
    none = torch.zeros(len(points), 0, dtype=torch.bool, device=points.device)
    at_once = points_kept_at_once(net, batch_size)
    bar = tqdm(points.split(at_once), desc="good units", disable=not show_progress)
    usual = usual_slopes(net)
    masks = [torch.cat(good_masks(net, x, usual), dim=1) for x in bar] if net.sites else [none]
    mask = torch.cat(masks)
    layers = net.by_layer(mask.double()).cpu()
    return Estimate(
        "good units",
        layers.sum(dim=1).numpy(),
        layers.numpy(),
        exact=True,
        quantity="units",
        per_unit=mask.cpu().numpy() if per_unit else None,
        piecewise_linear=net.piecewise_linear,
    )


def good_masks(net: Network, x: Tensor, usual: list[Tensor], noise: list[Tensor] | None = None) -> list[Tensor]:
    """Which units of each site are good at points x: (n, units) a site. `noise` is taken off what enters the sites.

    `usual` are the `usual_slopes` of the network.
    """
    return _masks_and_values(net, x, noise, usual, set())[0]


@torch.no_grad()
def usual_slopes(net: Network) -> list[Tensor]:
    """How large the derivative of the output by what leaves each unit would be if nothing cancelled, (units,) a site.

    Every value is multiplied by random numbers of about 1 and every activation has its steepest slope: a sum over the
    same paths in which they do not cancel. What rounding leaves of paths that do is a small share of it.
    """
    if not net.sites:
        return []
    generator = torch.Generator().manual_seed(0)
    program = net.program.pruned([*net.exits, net.output]).still()
    seen: dict[int, Tensor] = {}

    def on_value(value: int, tensor: Tensor) -> Tensor | None:
        if value in net.exits:
            seen[value] = tensor.requires_grad_()
        if not tensor.is_floating_point():
            return None
        drawn = torch.rand(tensor.shape, generator=generator).to(tensor) - 0.5
        return tensor * (2 * drawn).add_(torch.sign(drawn), alpha=0.5)  # of either sign, from 0.5 to 1.5

    def act(step: Step, values: Mapping[int, Any], shapes: Mapping[int, Shape]) -> list[Any]:
        if step.name in PAIRWISE:
            named = {name: step.named[name] for name in ("self", "other")}
            return lifted(
                replace(step, operation=torch.ops.aten.add.Tensor, arguments=(), options=named), values, shapes
            )
        if (found := pieces(step, values)) is not None:
            slopes = [s.abs() if isinstance(s, Tensor) else abs(float(s)) for s, _ in found]
            steepest = max(slopes) if not any(isinstance(s, Tensor) for s in slopes) else sum(slopes)
            return [values[step.named["self"].index] * steepest * math.sqrt(0.5)]
        return lifted(step, values, shapes)

    x = torch.zeros(TRIALS, 1, *net.input_shape, dtype=net.dtype, device=net.device)
    with torch.enable_grad():
        out = as_rows(program.resume({0: x}, on_value, act)[-1]).sum()
        slopes = _slopes(out, [seen[e] for e in net.exits])
    return [g.abs().amax(0) for g in slopes]


def near_nothing(slopes: Tensor, usual: Tensor) -> Tensor:
    """Which derivatives may be rounding only."""
    near: Tensor = slopes.abs() <= torch.finfo(slopes.dtype).eps ** (2 / 3) * usual
    return near


def _pieces(net: Network, entering: Mapping[int, Tensor], noise: list[Tensor] | None) -> dict[int, Tensor]:
    """The piece of every unit (n, units), by what leaves its site, given what enters the sites before noise."""
    off = {} if noise is None else net.entry_noise(noise)
    found = {}
    for site in net.sites:
        if site.entry in entering:
            z = as_rows(entering[site.entry])
            moved = site.entry in off and not site.competes  # noise on a difference moves nothing
            found[site.exit] = piece(z - off[site.entry] if moved else z, site.breakpoints)
    return found


class Standing(Protocol):
    """A network at points under noise on what enters its sites: which units are good as they stand, and if moved."""

    @property
    def net(self) -> Network: ...
    @property
    def x(self) -> Tensor: ...
    @property
    def masks(self) -> list[Tensor]:
        """Which units are good as they stand, (n, units) a site."""

    @property
    def values(self) -> Mapping[int, Tensor]:
        """What leaves the sites, and perhaps other values, by their numbers in the program."""

    def good_at_breakpoint(self, site: Site, unit: Tensor, level: Tensor) -> Tensor:
        """Whether one unit of a site is good at each point, when it is at a breakpoint and gives `level`.

        The noise of all others is as given; a unit's own noise decides where its boundary lies, not whether it is good.
        """


@dataclass(frozen=True)
class _AnyStanding:
    """Of any network. The `values` of the program are those before noise is taken off them; only what is `behind` a
    site is run again."""

    net: Network
    x: Tensor
    noise: list[Tensor]
    usual: list[Tensor]
    masks: list[Tensor]  # (n, units) a site
    values: dict[int, Tensor]
    behind: dict[int, Program]  # by the value that leaves the site
    needed: dict[int, tuple[int, ...]]  # the values that the program behind a site starts from

    def good_at_breakpoint(self, site: Site, unit: Tensor, level: Tensor, rows: Tensor | None = None) -> Tensor:
        """As all have it, at each point or at some."""
        start = {value: self.values[value] for value in self.needed[site.exit]}
        noise = self.noise
        if rows is not None:
            start, noise = {value: tensor[rows] for value, tensor in start.items()}, [d[rows] for d in noise]
        left = start[site.exit]
        moved = as_rows(left).scatter(1, unit[:, None], level[:, None]).requires_grad_()
        entering: dict[int, Tensor] = {}
        paths = _Paths()

        def on_value(value: int, tensor: Tensor) -> None:
            paths.watch(tensor)
            if value in self.net.entries:
                entering[value] = tensor.detach()

        with torch.enable_grad():
            start[site.exit] = moved.reshape(left.shape)
            out = _generic_output(self.net, self.behind[site.exit], start, noise, on_value)
            number, at = self.net.sites.index(site), unit[:, None]
            usual = self.usual[number][at]
            (found,), (open_,) = paths.slopes(out, [moved], [usual], lambda slope: slope.gather(1, at))
        good = found[:, 0] != 0
        doubts = (open_ & near_nothing(found, usual))[:, 0].nonzero().flatten()
        if not len(doubts):
            return good
        if self.net.dtype != torch.float64:
            x = self.x[doubts] if rows is None else self.x[rows[doubts]]
            precise = standing_of(self.net.frozen(), x.double(), _precise_rows(noise, doubts), _doubles(self.usual))
            good[doubts] = precise.good_at_breakpoint(site, unit[doubts], level[doubts].double())
            return good
        places = torch.stack([doubts, torch.full_like(doubts, number), unit[doubts]], dim=1)
        pieces_there = _pieces(self.net, entering, noise)
        good[doubts] = ~without_effect(self.net.frozen(), pieces_there, places, ~good[doubts])
        return good


def standing_of(net: Network, x: Tensor, noise: list[Tensor], usual: list[Tensor]) -> _AnyStanding:
    """The network at points x, ready to say of units that are moved whether they are good."""
    program = net.program.pruned([net.output])
    cut = {site.exit: program.segments([site.exit]) for site in net.sites if not good_as_it_stands(net, site)}
    kept = {*net.exits, *(value for before, _ in cut.values() for value in before.outputs)}
    masks, values = _masks_and_values(net, x, noise, usual, kept)
    behind = {value: after.still() for value, (_, after) in cut.items()}
    needed = {value: before.outputs for value, (before, _) in cut.items()}
    return _AnyStanding(net, x, noise, usual, masks, values, behind, needed)


def good_as_it_stands(net: Network, site: Site) -> bool:
    """Whether no unit's own noise decides if it is good: nothing bends behind the site, or its noise moves nothing."""
    return site.layer == net.layers or site.competes


def _masks_and_values(
    net: Network, x: Tensor, noise: list[Tensor] | None, usual: list[Tensor], kept: Set[int]
) -> tuple[list[Tensor], dict[int, Tensor]]:
    """The masks, and those values of the program that are to be kept, before noise is taken off them.

    Where a derivative may be rounding only, float64 is asked, and where it still may be, exact arithmetic; also of one
    that is 0 though open units lead to it, as what is not 0 may have been rounded to it.
    """
    seen: dict[int, Tensor] = {}
    wanted = {*kept, *net.entries, *net.exits}
    paths = _Paths()

    def on_value(value: int, tensor: Tensor) -> None:
        if value in net.exits:
            tensor.requires_grad_()  # also if steps come before it
        paths.watch(tensor)
        if value in wanted:
            seen[value] = tensor

    with torch.enable_grad():
        start = {0: x.detach().requires_grad_()[:, None]}
        program = net.program.pruned([*net.entries, *net.exits, net.output]).still()
        out = _generic_output(net, program, start, noise, on_value)
        slopes, open_ = paths.slopes(out, [seen[e] for e in net.exits], usual)
    masks = [g != 0 for g in slopes]
    seen = {value: tensor.detach() for value, tensor in seen.items()}
    doubts = [way & near_nothing(g, u) for way, g, u in zip(open_, slopes, usual, strict=True)]
    rows = torch.stack([d.any(dim=1) for d in doubts]).any(dim=0).nonzero().flatten()
    if len(rows) and net.dtype != torch.float64:
        noisy = None if noise is None else _precise_rows(noise, rows)
        precise = good_masks(net.frozen(), x[rows].double(), _doubles(usual), noisy)
        for mask, found in zip(masks, precise, strict=True):
            mask[rows] = found
    elif len(rows):
        found_at = [(number, *d.nonzero().T) for number, d in enumerate(doubts)]
        places = torch.cat([torch.stack([row, 0 * row + number, unit], dim=1) for number, row, unit in found_at])
        otherwise = torch.cat([~mask[d] for mask, d in zip(masks, doubts, strict=True)])
        bad = without_effect(net.frozen(), _pieces(net, seen, noise), places, otherwise)
        for mask, d, found in zip(masks, doubts, bad.split([int(d.sum()) for d in doubts]), strict=True):
            mask[d] = ~found
    return masks, {value: seen[value] for value in {*kept, *net.exits} & seen.keys()}


def _slopes(out: Tensor, values: list[Tensor], *, retain_graph: bool = False) -> list[Tensor]:
    """The derivatives of a number by values, (n, units) each; 0 by those that it moves with in steps only."""
    found: Sequence[Tensor | None] = [None] * len(values)
    if out.requires_grad:
        found = torch.autograd.grad(out, values, allow_unused=True, retain_graph=retain_graph)
    return [as_rows(torch.zeros_like(v) if g is None else g) for g, v in zip(found, values, strict=True)]


class _Paths:
    """Puts random factors on derivatives by the values it watches, once they are `apart`: what cancels does no more."""

    def __init__(self) -> None:
        self.apart = False
        self.generator = torch.Generator().manual_seed(0)

    def slopes(
        self, out: Tensor, values: list[Tensor], usual: list[Tensor], chosen: Callable[[Tensor], Tensor] = as_rows
    ) -> tuple[list[Tensor], list[Tensor]]:
        """The `chosen` derivatives of a number by values, and to which of them open ways lead.

        Ways are looked for only where a derivative is 0 that usually is not: seldom in dense layers.
        """
        slopes = [chosen(g) for g in _slopes(out, values, retain_graph=True)]
        open_ = [g != 0 for g in slopes]
        if any((~way & (u != 0)).any() for way, u in zip(open_, usual, strict=True)):
            self.apart = True
            open_ = [way | (chosen(g) != 0) for way, g in zip(open_, _slopes(out, values), strict=True)]
        return slopes, open_

    def watch(self, tensor: Tensor) -> None:
        if tensor.requires_grad:
            tensor.register_hook(self._scattered)

    def _scattered(self, gradient: Tensor | None) -> Tensor | None:
        if gradient is None or not self.apart:  # torch hands on that there is none
            return None
        return gradient * (0.5 + torch.rand(gradient.shape[1:], generator=self.generator).to(gradient))


def _precise_rows(noise: list[Tensor], rows: Tensor) -> list[Tensor]:
    return [d[rows].double() for d in noise]


def _doubles(tensors: list[Tensor]) -> list[Tensor]:
    return [t.double() for t in tensors]


def good_weights(stand: Standing, weights: list[Tensor], chosen: Tensor) -> list[Tensor]:
    """What is left of weights (n, breakpoints, units) a site when only good units count: (n, units) a site; unbiased.

    Units that give what they give at the breakpoint, as closed ones do, are good or not as they stand. The others are
    taken as they stand too, or as `masks_at_levels` has them, which is nearly right: one of them a site is picked with
    probability in proportion to its weight by a uniform number of `chosen` (n, sites) and moved to the breakpoint; if
    it is not what it was, the weight of all is added to it or taken off it: on average, that of those that change.
    """
    kept, net, x = [], stand.net, stand.x
    masks = masks_at_levels(net, stand.values, stand.masks)
    for number, (site, mask, w) in enumerate(zip(net.sites, masks, weights, strict=True)):
        if good_as_it_stands(net, site):
            kept.append((w * mask).sum(dim=1))
            continue
        levels = levels_at_breakpoints(net, site, x)
        open_ = torch.where(as_rows(stand.values[site.exit])[:, None] == levels, 0.0, w).flatten(1)
        total = open_.detach().sum(dim=1)
        sums = open_.detach().cumsum(dim=1)
        place = torch.searchsorted(sums, (chosen[:, number] * total)[:, None])[:, 0].clamp_max(open_.shape[1] - 1)
        unit, rows = place % site.units, torch.arange(len(x), device=x.device)
        before = mask.expand(w.shape).flatten(1)[rows, place]
        good = stand.good_at_breakpoint(site, unit, levels.flatten()[place])
        changes = good.to(w.dtype) - before.to(w.dtype)
        picked = open_[rows, place]
        share = torch.where(total > 0, changes * total / picked.detach().clamp_min(torch.finfo(w.dtype).tiny), 0.0)
        kept.append((w * mask).sum(dim=1).index_put((rows, unit), picked * share, accumulate=True))
    return kept


def _generic_output(
    net: Network, program: Program, start: Mapping[int, Tensor], noise: list[Tensor] | None, on_value: OnValue
) -> Tensor:
    """The sum over points of a generic combination of what a program, which ends with the output, makes of a start."""
    shifted = None if noise is None else net.noisy_entries(noise)

    def both(value: int, tensor: Tensor) -> Tensor | None:
        on_value(value, tensor)
        return shifted(value, tensor) if shifted else None

    return _generic_sum(program.resume(start, both, _with_open_ties)[-1])


def last_slopes(net: Network) -> Tensor | None:
    """The derivative of a generic combination of the outputs by what leaves the last site, (units,).

    None if the output depends on anything else, or not in an affine way.
    """
    last = net.sites[-1]
    before, after = net.program.pruned([net.output]).segments([last.exit])
    if not net.piecewise_linear or before.outputs != (last.exit,):
        return None
    anywhere = torch.zeros(1, *net.program.shapes[last.exit], dtype=net.dtype, device=net.device).requires_grad_()
    with torch.enable_grad():
        out = _generic_sum(after.resume({last.exit: anywhere})[-1])
    return _slopes(out, [anywhere])[0][0]


def _with_open_ties(step: Step, values: Mapping[int, Any], shapes: Mapping[int, Shape]) -> list[Any]:
    """Does the steps of a program so that of competitors that are equal both have a derivative, half of it each."""
    if step.name not in PAIRWISE:
        return lifted(step, values, shapes)
    a, b = sides_of(step, values, shapes)
    (won,) = lifted(step, values, shapes)
    return [torch.where(a == b, (a + b) / 2, won)]


def _generic_sum(outputs: Tensor) -> Tensor:
    """The sum over points of a generic combination of their outputs."""
    out = as_rows(outputs)
    weights = torch.linspace(1.0, 2.0, out.shape[1], dtype=out.dtype, device=out.device) ** 0.5
    total: Tensor = (out * weights).sum()
    return total


def moving_units(outputs: Tensor, values: list[Tensor]) -> list[Tensor]:
    """Which units of values that have led to outputs move them, as floats see it: (n, units) each.

    The graph stays.
    """
    return [g != 0 for g in _slopes(_generic_sum(outputs), values, retain_graph=True)]
