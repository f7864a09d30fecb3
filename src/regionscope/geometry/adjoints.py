"""How far off units of a wide network are by errors that were made before their site.

Products of norms say that errors double at every site of a ResNet, which they do not. On a block of cells (see `bases`)
the network is linear but for the units that bend there, so what errors that were made at a site k do to a unit u is
known: with the derivative g of u, under the factors of the block, their product with g, which is at most |g| times
their norm. What a bent unit j adds is off by no more than its value, and that counts |g_j| times, g_j the derivative
after the activation. So

    |error of u| <= sum_k |g_k| made_k + sum_j |g_j| max(slope_j, 1 - slope_j) away_j,

at vertices and between them. An error is linear in the state, so the factors that a unit has once its row is left out
are right for errors that were made earlier too.

Derivatives are computed backwards, step by step, and rounded. A sum of at most n products, n the entries of the largest
value, is off by n eps |A|_F |g| <= n^1.5 eps |A| |g|, A the matrix of the step, and the product of |A| along any way
through a part is at most its gain, if none of its steps copies entries: only such parts are looked at.
"""

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from regionscope.geometry.bases import Basis, linear_part
from regionscope.geometry.laws import Law, Way
from regionscope.geometry.rounding import DENSE, LINEAR, NORMS, SAME, SURE, rounding
from regionscope.machine import portions
from regionscope.tracing.network import Site
from regionscope.tracing.program import Program
from regionscope.types import Floats, Indices

PLAIN = SAME | LINEAR | NORMS | DENSE.keys() | {"relu"}


UNITS_AT_ONCE = 8


class Adjoints:
    """Derivatives of units of a network through its parts, backwards.

    A part without its activation is linear, so torch writes down once what it does, and is asked again and again.
    """

    def __init__(self, way: Way, sites: Sequence[Site]) -> None:
        self.way, self.sites = way, sites
        self._written: dict[int, tuple[list[Tensor], list[Tensor]]] = {}

    def carried_errors(self, basis: Basis, number: int, units: Indices) -> Floats:
        """At most how far off units of a site are by errors made before, (n,); infinite where that is not known."""
        if not all(step.name in PLAIN for part in self.way.parts[1 : number + 1] for step in part.steps):
            return np.full(len(units), np.inf)
        parts = [units[some] for some in portions(len(units), UNITS_AT_ONCE)]
        return np.concatenate([np.zeros(0), *(self._carried_errors(basis, number, part) for part in parts)])

    def _carried_errors(self, basis: Basis, number: int, units: Indices) -> Floats:
        """The same for a few."""
        trail, bent, n = basis.trail, np.maximum(basis.slopes, 1 - basis.slopes) * basis.away, UNITS_AT_ONCE
        part = self.way.parts[number]
        state = [torch.zeros(n, math.prod(part.shapes[v])).double() for v in part.outputs]
        state[0][torch.arange(len(units)), torch.from_numpy(units)] = 1.0
        total, size, off = np.zeros(n), np.ones(n), np.zeros(n)
        for k in reversed(range(number)):
            off = off_before(self.way.parts[k + 1], self.way.laws[k + 1], off, size)
            state, acted = self._before(k, state, trail.factors[k])
            size = np.sqrt(sum((rows.square().sum(dim=1) for rows in state), torch.zeros(n)).numpy())
            total += (size + off) * trail.made[k] + (acted.norm(dim=1).numpy() + off) * trail.resting[k]
            mine = np.flatnonzero(basis.places[:, 0] == k)
            total += (acted[:, basis.places[mine, 1]].abs().numpy() + off[:, None]) @ bent[mine]
        return SURE * total[: len(units)]

    def _before(self, k: int, state: Sequence[Tensor], factor: Tensor) -> tuple[list[Tensor], Tensor]:
        """Derivatives with respect to the state at site k, and to what leaves it, given those at the site after it."""
        if k not in self._written:
            self._written[k] = self._write(k)
        taken, made = self._written[k]
        live = [(value, towards) for value, towards in zip(made, state, strict=True) if value.requires_grad]
        values, directions = [value for value, _ in live], [towards for _, towards in live]
        *before, acted = torch.autograd.grad(values, taken, directions, retain_graph=True, materialize_grads=True)
        return [before[0] + acted * factor, *before[1:]], acted

    @torch.enable_grad()
    def _write(self, k: int) -> tuple[list[Tensor], list[Tensor]]:
        """What the part behind site k takes, what leaves that site last, and what it makes of them."""
        part, known = self.way.parts[k + 1], self.way.parts[k].outputs
        sizes = [math.prod(part.shapes[v]) for v in known]
        taken = [torch.zeros(UNITS_AT_ONCE, n, dtype=torch.float64, requires_grad=True) for n in (*sizes, sizes[0])]
        return taken, linear_part(part, known, taken[:-1], taken[-1], self.sites[k])


def off_before(part: Program, law: Law, off: Floats, size: Floats) -> Floats:
    """At most how far off derivatives with respect to what a part takes are, given that, and the norms, behind it."""
    values = {v for step in part.steps for v in step.used | {*step.results}} & part.shapes.keys()
    entries, steps = max((math.prod(part.shapes[v]) for v in values), default=0), len(part.steps)
    rounded = steps * math.sqrt(entries) * float(rounding(entries + steps)[0])
    return np.asarray(SURE * np.hypot(law.whole.gain[0], law.others.gain[0]) * (off + rounded * size))
