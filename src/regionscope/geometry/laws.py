"""Laws: what each part of a network, from one site to the next, does to norms and errors by the rules of `rounding`."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch

from regionscope.geometry.patterns import Boundaries, boundaries_of
from regionscope.geometry.predicates import FAINT, FAINT_ROW, UNKNOWN_SHARE
from regionscope.geometry.rounding import (
    STATE,
    SURE,
    UNKNOWN,
    ZERO,
    ErrorBound,
    Spread,
    bounds_after,
    fresh_bound,
    joint_spread,
)
from regionscope.machine import threads_for
from regionscope.tracing.network import Network, Site, kept_with
from regionscope.tracing.program import Program
from regionscope.types import Floats


@dataclass(frozen=True)
class Law:
    """What the part before a site does: `rows` and `row` for its units, `whole` for all of them together.

    `others` is for what is handed on beside the pre-activations, which only count as handed on if they are `used`.
    `unknown` names an operation without a rule. If the site `passes`, it only chooses among the numbers of the state
    before it: that state is what errors and norms are those of afterwards too.
    """

    rows: Floats
    row: Spread
    whole: Spread
    others: Spread
    used: bool
    unknown: str | None
    passes: bool = False

    @cached_property
    def state(self) -> Spread:
        """Of all that is handed on."""
        if self.passes:
            return replace(STATE, size=self.others.size, offset=self.others.offset)
        return joint_spread([self.whole, self.others], np.hypot) if self.used else self.others

    def linear(self) -> "Law":
        """The same for tangents, to which no constants are added."""
        return replace(self, row=self.row.linear(), whole=self.whole.linear(), others=self.others.linear())

    def norm_after(self, norm: Any, value: Any) -> Any:
        """The norm of the state, given the one before and that of the pre-activations."""
        others = norm if self.passes else self.others.size * norm + self.others.offset
        return np.hypot(value, others) if self.used else others


@np.errstate(all="ignore")  # what is infinite is no bound
def _law_of(part: Program, known: Sequence[int], *, used: bool = True, passes: bool = False) -> Law:
    """The law of one part of a frozen network, which takes the values `known`."""
    bounds = {v: _all_alike(v, part, STATE).made_of(frozenset([v])) for v in known}
    constants, unknown = part.constants, None
    for step in part.steps:
        made = bounds_after(step, bounds, constants)
        if made is None:
            unknown = step.name
            made = [_all_alike(r, part, UNKNOWN) for r in step.results]
        parts = frozenset[int]().union(*(bounds[v].parts for v in step.used if v in bounds))
        bounds.update((r, b.made_of(parts)) for r, b in zip(step.results, made, strict=True) if b is not None)
    entry, *others = (bounds[v] for v in part.outputs)
    beside = joint_spread([b.whole for b in others], np.hypot) if others else ZERO
    rows = entry.rows.flatten().numpy() * SURE
    rows = np.where(rows > 0, np.maximum(rows, FAINT_ROW), rows)
    law = Law(rows, entry.row, entry.whole, beside, used, None, passes)
    bounded = np.isfinite([law.whole.gain[0], beside.gain[0]])
    return law if bounded.all() else replace(_without_rule(law), unknown=unknown)


def _all_alike(value: int, part: Program, spread: Spread) -> ErrorBound:
    """The same for all entries of a value."""
    return fresh_bound(value, torch.ones(part.shapes[value], dtype=torch.float64), spread, spread)


def _without_rule(law: Law) -> Law:
    """Nothing is proved; usual is a share of the norm of the pre-activations themselves."""
    usual = Spread(np.array([np.inf, 0.0]), np.array([np.inf, UNKNOWN_SHARE]), np.array([np.inf, 0.0]), 1.0, 0.0)
    handed_on = replace(usual, gain=np.array([np.inf, 1.0]))
    others = law.others if np.isfinite(law.others.gain[0]) else handed_on
    return replace(law, rows=np.ones_like(law.rows), row=usual, whole=handed_on, others=others, used=True, passes=False)


@dataclass(frozen=True)
class Way:
    """The way through a network: its parts from site to site, with their laws, and the last part, to the output."""

    parts: tuple[Program, ...]
    laws: tuple[Law, ...]
    last: Program


def route(net: Network, boundaries: Sequence[Boundaries]) -> Way:
    """The way through the first sites of a frozen network; kept with it, as many sweeps may go there."""

    def way() -> Way:
        entries = [b.site.entry for b in boundaries]
        program = replace(net.program.pruned([*entries, net.output]), outputs=(net.output,))
        parts = program.segments(entries)
        with threads_for(program.held_entries):
            laws = tuple(_laws_of(parts, [b.site for b in boundaries]))
        return Way(tuple(parts[:-1]), laws, parts[-1])

    return kept_with(net, (route, len(boundaries)), way)


def _laws_of(parts: Sequence[Program], sites: Sequence[Site | None]) -> Iterator[Law]:
    """The laws of the parts before all sites; after the first round of a tournament, from the end of that round on.

    The last part, which ends at the output, has a law too if None stands for it behind the sites.
    """
    played = [site and site.tournament for site in sites]
    begin = 0
    for number, (part, site) in enumerate(zip(parts, sites, strict=False)):
        before = played[number - 1] if number else None
        if before is None or number == 1 or played[number - 2] != before:
            begin = number
        some = parts[begin : number + 1]
        whole = replace(
            part, steps=tuple(s for p in some for s in p.steps), held={i: h for p in some for i, h in p.held.items()}
        )
        known = parts[begin - 1].outputs if begin else (0,)
        used = site is not None and any(site.entry in s.used for later in parts[number + 1 :] for s in later.steps)
        passes = played[number] is not None and played[number] == before
        yield _law_of(whole, known, used=used, passes=passes)


def usual_errors(
    net: Network, norm: Floats, error: Floats, entering: Sequence[Floats], *, linear: bool = False
) -> list[Floats]:
    """How far from the true numbers what enters each site of a frozen network usually is, (n, units).

    `norm` (n,) is that of the points, `error` how far off they are, `entering` the norms of what enters each site. Or
    `linear`, of tangents instead of points: constants do not count.
    """
    return _errors(route(net, boundaries_of(net.sites)).laws, norm, error, entering, linear, 1)


def proved_errors(
    net: Network, norm: Floats, error: Floats, entering: Sequence[Floats], *, linear: bool = False
) -> list[Floats]:
    """The same as a proof, and of the outputs too, (n, outputs), which come last."""
    found = _errors(_laws_to_output(net), norm, error, [*entering, np.zeros_like(norm)], linear, 0)
    return [np.where(np.isnan(e), np.inf, e) for e in found]


def usual_output_errors(net: Network, norm: Floats, error: Floats, entering: Sequence[Floats]) -> Floats:
    """How far from the true numbers the outputs of a frozen network usually are, (n, outputs)."""
    return _errors(_laws_to_output(net), norm, error, [*entering, np.zeros_like(norm)], False, 1)[-1]


def _laws_to_output(net: Network) -> list[Law]:
    """The laws of the parts before all sites and of the last part, which ends at the output; kept as routes are."""

    def laws() -> list[Law]:
        way = route(net, boundaries_of(net.sites))
        return list(_laws_of([*way.parts, way.last], [*net.sites, None]))

    return kept_with(net, _laws_to_output, laws)


@np.errstate(all="ignore")  # what is infinite is no bound
def _errors(
    laws: Sequence[Law], norm: Floats, error: Floats, entering: Sequence[Floats], linear: bool, c: int
) -> list[Floats]:
    """Bounds of one of the two kinds, from law to law."""
    errors = []
    for each, value in zip(laws, entering, strict=True):
        law = each.linear() if linear else each
        norm = norm if law.unknown is None else np.maximum(norm, value)
        spread, handed_on = (m.gain[c] * error + m.noise[c] * norm + m.floor[c] for m in (law.row, law.state))
        errors.append(np.asarray(law.rows * (spread + FAINT * (norm > 0))[:, None]))
        error, norm = handed_on, law.norm_after(norm, value)
    return errors
