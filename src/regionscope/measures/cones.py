"""Where competitors tie: the cones around a point in which a network is affine.

On the blank background of an image all competitors of a max-pooling are equal, though each is another function of the
input. At such a point x their maximum bends; but along every ray from x it is that of the competitor that grows
fastest, so near x the network is affine along rays, with one map in each cone of them. There may be far more cones than
can be looked at. The gradients of the cone whose maxima go to the competitor that comes first are known, and how far
those of other cones may be from them is bounded: at a tie by the gradient of the difference, and behind it, entry by
entry, through the absolute values of the weights. If a(x) = b(x) and a', b' are off by at most e and f in any cone,
then max(a, b)' is off from a' by at most max(e, f) + |a' - b'|.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from regionscope.geometry.modular import remainders
from regionscope.geometry.pieces import pieces
from regionscope.geometry.rounding import CHOICES, DENSE, LINEAR, MOVES, NORMS, norm_constants
from regionscope.measures.noise import constant_in_their_regions, exact_answers, value_errors
from regionscope.measures.routes import without_shift
from regionscope.tracing.lifting import Shape, lifted
from regionscope.tracing.network import Network, Site, as_rows
from regionscope.tracing.operations import linear_arguments
from regionscope.tracing.steps import Step
from regionscope.types import Indices

ONE_SIGN = (MOVES | CHOICES | LINEAR | DENSE.keys()) - {"lerp"}  # what entries are multiplied by are constants
SURE = 1 + 1e-9  # covers the rounding of sums of numbers above zero


@dataclass(frozen=True)
class Cones:
    """Which competitors tie at points, by their differences (n, units) a site, and what that does to gradients.

    `jumps` (n, units) a site is how far the gradient of each unit may be, in some cone around the point, from the one
    that is known; that of the outputs comes last.
    """

    tied: list[Tensor]
    jumps: list[Tensor]


def cones(
    net: Network,
    x: Tensor,
    values: Sequence[Tensor],
    slopes: Sequence[Tensor],
    doubts: Sequence[Tensor] | None = None,
) -> Cones | None:
    """The cones around points x of a frozen network, given what enters its sites (n, units); None if nothing ties.

    `slopes` (n, units) a site are the lengths of the gradients, `doubts` how far off they may be, or all are known.
    With `doubts`, two that floats tell apart neither at x nor by their gradients count as tied too: wherever they meet,
    what comes behind is off by no more than if that were at x.
    """
    if not any(site.competes for site in net.sites):
        return None
    errors = value_errors(net, x, values)
    close = [z.abs() <= (e if site.competes else -1.0) for site, z, e in zip(net.sites, values, errors, strict=True)]
    tied = _equal_competitors(net, x, values, close)
    jumps = [torch.where(t, s, 0.0) for t, s in zip(tied, slopes, strict=True)]
    if doubts is not None:
        tied = [t | (c & (s <= d)) for t, c, s, d in zip(tied, close, slopes, doubts, strict=True)]
        jumps = [torch.where(t, s + d, 0.0) for t, s, d in zip(tied, slopes, doubts, strict=True)]
        asked = _places_of(net, [t & (s <= d) for t, s, d in zip(tied, slopes, doubts, strict=True)])
        constant = constant_in_their_regions(net, values, torch.cat(asked), otherwise=False)
        for jump, places, same in zip(jumps, asked, constant.split([len(p) for p in asked]), strict=True):
            jump[places[same, 0], places[same, 2]] = 0.0
    if not any(bool(jump.any()) for jump in jumps):
        return None
    spread = _Spreading(net, values, tied, jumps, errors)
    return Cones(tied, [SURE * jump for jump in spread.entries(len(x))])


def _equal_competitors(net: Network, x: Tensor, values: Sequence[Tensor], close: Sequence[Tensor]) -> list[Tensor]:
    """Which of the units of a frozen network that are `close` to 0 at points x are 0 there: (n, units) a site.

    In exact arithmetic; where there is none, they are not taken to be equal.
    """
    asked = _places_of(net, close)

    def here(some: Indices, p: int) -> Tensor:
        return remainders(x[some], p)[:, None]

    zero = exact_answers(net, values, torch.cat(asked), here, lambda found: found[:, :, 0] == 0, otherwise=False)
    return [
        mask.index_put((places[:, 0], places[:, 2]), these)
        for mask, places, these in zip(close, asked, zero.split([len(places) for places in asked]), strict=True)
    ]


def _places_of(net: Network, masks: Sequence[Tensor]) -> list[Tensor]:
    """The point, the value, the entry and -1 for every unit in masks (n, units) a site: for `exact_answers`."""
    found = []
    for site, mask in zip(net.sites, masks, strict=True):
        point, unit = mask.nonzero().T
        found.append(torch.stack([point, torch.full_like(point, site.entry), unit, torch.full_like(point, -1)], dim=1))
    return found


class _Spreading:
    """How far gradients may be off, entry by entry: a pass through the network with absolute values of weights."""

    def __init__(
        self,
        net: Network,
        values: Sequence[Tensor],
        tied: Sequence[Tensor],
        jumps: Sequence[Tensor],
        errors: Sequence[Tensor],
    ) -> None:
        self.net, self.program = net, net.program.pruned([*net.entries, net.output])
        self.at = dict(zip(net.exits, zip(net.sites, values, tied, jumps, errors, strict=True), strict=True))
        self.constants = self.program.constants
        self.sizes = {i: c.abs() if c.is_floating_point() else c for i, c in self.constants.items()}

    def entries(self, n: int) -> list[Tensor]:
        """Of what enters each site, (n, units), and of the outputs."""
        start = torch.zeros(n, 1, *self.net.input_shape, dtype=torch.float64)
        return [as_rows(value) for value in self.program.resume({0: start}, act=self.act)]

    def act(self, step: Step, values: Mapping[int, Any], shapes: Mapping[int, Shape]) -> list[Any]:
        live = sorted(step.used & shapes.keys())
        if step.results[0] in self.at:
            site, *known = self.at[step.results[0]]
            return [
                self.better(step, values, shapes, *known) if site.competes else self.bent(step, values, site, known)
            ]
        if not any(bool(values[i].any()) for i in live):
            n = len(values[live[0]])
            return [torch.zeros(n, *shapes[r], dtype=torch.float64) for r in step.results]
        if step.name in NORMS:
            e = values[live[0]]
            factor = norm_constants(step, self.constants)[0].abs().reshape(-1, *[1] * (e.dim() - 3))
            return [e * factor, *[None] * (len(step.results) - 1)]
        return self.linear(step, live, values, shapes)

    def linear(
        self, step: Step, live: Sequence[int], values: Mapping[int, Any], shapes: Mapping[int, Shape]
    ) -> list[Any]:
        """|A| e for each of the values that an operation takes by a matrix A; no bound if that is not known."""
        group = linear_arguments(step, step.arguments_with(live)) if step.name in ONE_SIGN else None
        if not group:
            off = torch.stack([values[i].flatten(1).any(dim=1) for i in live]).any(dim=0)
            bound = torch.where(off, torch.inf, 0.0).double()
            return [bound.view(-1, *[1] * len(shapes[r])).expand(-1, *shapes[r]) for r in step.results]
        plain = without_shift(step, group, set(live))
        known = {i: self.sizes.get(i, values[i]) for i in step.used}
        known |= {i: torch.zeros_like(values[-1 - i]) for i in plain.used if i < 0}
        total: list[Any] = []
        for index in live:
            alone = {i: torch.zeros_like(values[i]) for i in live if i != index}
            parts = [part.abs() for part in lifted(plain, {**known, **alone}, shapes)]
            total = [a + b for a, b in zip(total, parts, strict=True)] if total else parts
        return total

    def bent(self, step: Step, values: Mapping[int, Any], site: Site, known: Sequence[Tensor]) -> Tensor:
        """Times the slope of the piece that a unit is on, or may be."""
        e: Tensor = values[step.named["self"].index]
        z, _, _, error = (k.reshape(e.shape) for k in known)
        found = pieces(step, self.constants)
        assert found is not None, "the network is piecewise linear"
        breakpoints = torch.tensor(site.breakpoints, dtype=z.dtype)
        first, last = (((z + s * error)[..., None] > breakpoints).sum(dim=-1) for s in (-1, 1))
        result = torch.zeros_like(e)
        for number, (slope, _) in enumerate(found):
            steep = e * (slope.abs() if isinstance(slope, Tensor) else abs(float(slope)))
            result = torch.where((first <= number) & (number <= last), torch.maximum(result, steep), result)
        return result

    def better(
        self,
        step: Step,
        values: Mapping[int, Any],
        shapes: Mapping[int, Shape],
        z: Tensor,
        tied: Tensor,
        jump: Tensor,
        error: Tensor,
    ) -> Tensor:
        """That of the one that wins; of the two that tie, of either, and how far they are apart."""
        shape = (len(z), *shapes[step.results[0]])
        z, tied, jump, error = (a.reshape(shape) for a in (z, tied, jump, error))
        first, second = (self.placed(values, step.named[name].index, shape) for name in ("self", "other"))
        if "min" in step.name:
            first, second = second, first
        sure = torch.where(z > 0, first, second)
        either = torch.maximum(first, second) + jump
        return torch.where(tied | (z.abs() <= error), either, sure)

    def placed(self, values: Mapping[int, Any], index: int, shape: tuple[int, ...]) -> Tensor:
        """A value in the shape of a result; a constant is not off."""
        if index not in self.program.shapes:
            return torch.zeros(shape, dtype=torch.float64)
        e: Tensor = values[index]
        return e.reshape(len(e), *[1] * (len(shape) - e.dim()), *e.shape[1:]).expand(shape)
