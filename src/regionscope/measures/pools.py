"""Units that enter max-pooling, each as if it were at its breakpoint, where hardly any of them is the largest."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from regionscope.geometry.rounding import MOVES
from regionscope.geometry.tournaments import between
from regionscope.tracing.activations import PAIRWISE
from regionscope.tracing.lifting import Shape, lifted, sides_of
from regionscope.tracing.network import Network, Site, as_rows, kept_with
from regionscope.tracing.program import Program
from regionscope.tracing.steps import Step


def masks_at_levels(net: Network, leaving: Mapping[int, Tensor], masks: list[Tensor]) -> list[Tensor]:
    """The masks, (n, breakpoints or 1, units) a site, as if every unit that enters max-pooling were at its breakpoint.

    Nobody in its window may be above that: who wins as it stands hardly ever does there. `leaving` has what leaves the
    sites, by number of the value. What follows behind the pooling stays as it stands.
    """
    found = [mask[:, None] for mask in masks]
    for pool in kept_with(net, _pools, lambda: _pools(net)):
        entering, counts = leaving[pool.site.exit], masks[net.sites.index(pool.last)]
        told = [pool.alone(entering, level, counts) for level in pool.levels]
        found[net.sites.index(pool.site)] = torch.stack(told, dim=1)
    return found


@dataclass(frozen=True)
class _Pool:
    """Max-pooling whose competitors are what leaves a site, which nothing else takes: the rounds, to the last one.

    At their breakpoints all units of the site are at the same `levels`.
    """

    site: Site
    last: Site
    program: Program
    levels: tuple[float, ...]

    def takes_all(self, program: Program) -> bool:
        """Whether it only arranges and compares what leaves the site, and no other step of the program reads that."""
        mine = {step.results for step in self.program.steps}
        return all(s.name in MOVES or s.name in PAIRWISE for s in self.program.steps) and all(
            step.results in mine for step in program.steps if self.site.exit in step.used
        )

    @torch.enable_grad()
    def alone(self, leaving: Tensor, level: float, counts: Tensor) -> Tensor:
        """Which units (n, units) would be largest, in a window that counts, at this level."""

        def act(step: Step, values: Mapping[int, Any], shapes: Mapping[int, Shape]) -> list[Any]:
            if step.name not in PAIRWISE:
                return lifted(step, values, shapes)
            a, b = sides_of(step, values, shapes)
            (won,) = lifted(step, values, shapes)
            below = torch.le if PAIRWISE[step.name] == "maximum" else torch.ge
            return [won.detach() + (a - a.detach()) * below(b, level) + (b - b.detach()) * below(a, level)]

        start = leaving.detach().requires_grad_()
        (out,) = self.program.resume({self.site.exit: start}, act=act)
        (slopes,) = torch.autograd.grad((as_rows(out) * counts).sum(), start)
        return as_rows(slopes) != 0


def _pools(net: Network) -> list[_Pool]:
    """All of a network."""
    found, program = list[_Pool](), net.program.pruned([net.output])
    anywhere = torch.zeros(1, *net.input_shape, dtype=net.dtype, device=net.device)
    for last in {site.tournament: site for site in net.sites if site.tournament is not None}.values():
        for site in net.sites:
            plain = site.breakpoints and site.units and not site.competes
            way = between(program, site.exit, last.exit) if plain else None
            if way is not None:
                levels = levels_at_breakpoints(net, site, anywhere)
                pool = _Pool(site, last, way, tuple(levels[:, 0].tolist()))
                found += [pool] if pool.takes_all(program) and (levels == levels[:, :1]).all() else []
    return found


@torch.no_grad()
def levels_at_breakpoints(net: Network, site: Site, x: Tensor) -> Tensor:
    """What the units of a site give at each of its breakpoints, (breakpoints, units)."""
    b = torch.tensor(site.breakpoints, dtype=x.dtype, device=x.device)

    def on_value(value: int, tensor: Tensor) -> Tensor | None:
        return b.view(-1, *[1] * (tensor.dim() - 1)).expand(tensor.shape) if value == site.entry else None

    anywhere = x[:1].expand(len(b), *x.shape[1:])
    return as_rows(net.program.pruned([site.exit]).run(anywhere, on_value)[0])
