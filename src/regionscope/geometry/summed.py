"""Blocks of wide networks whose state at every vertex is a sum of rows (see `bases`), with what is noted of errors.

A vertex has weights, one a row, and the values of those units alone that may switch in the block.
"""

from dataclasses import dataclass, field, replace

import numpy as np

from regionscope.geometry import kernels
from regionscope.geometry.adjoints import Adjoints
from regionscope.geometry.bases import Basis, Bend
from regionscope.geometry.laws import Law
from regionscope.geometry.lineage import Among
from regionscope.geometry.predicates import GAIN, MOVED, SHIFT
from regionscope.geometry.rounding import Spread, rounding
from regionscope.geometry.rows import row_portions
from regionscope.tracing.network import Site
from regionscope.tracing.program import Program
from regionscope.types import Floats


@dataclass(frozen=True)
class Summed:
    """The rows of a block, which of its units may switch, and how far off they are.

    Weights are (vertices, rows), doubt (vertices, DOUBTS) as in `predicates`.
    """

    basis: Basis
    adjoints: Adjoints
    among: Among | None = None  # the units that may switch at the next site, once that was looked at
    parted: bool = False  # whether the basis may have rows that this block does not need
    most_weights: float = 0.0  # of all rows at a vertex
    carried: Floats = field(default_factory=lambda: np.zeros(0))  # of each unit, see `adjoints`; NaN if not asked for
    away: Floats = field(default_factory=lambda: np.zeros(0))  # at most how far off units that may switch are
    made: float = 0.0  # at most the norm of the errors that the last part of the network has added to the state

    def after(
        self,
        part: Program,
        known: tuple[int, ...],
        behind: Site | None,
        law: Law | None,
        values: Floats,
        weights: Floats,
        doubt: Floats,
    ) -> tuple["Summed", Floats, Floats]:
        """What a part of the network, `behind` a site with these values, makes of it; the weights and norms then."""
        norm, bend = self.basis.norm(weights), None
        if behind is not None:
            assert self.among is not None
            units, old = self.among.numbers, weights.shape[1]
            off = 2 * doubt[:, SHIFT], self.basis.steepness[units]
            bend = Bend.of(behind, units, values, self.among.above, self.away, *off, self.made)
            weights = bend.wider(weights, values)
            norm += _sums(weights[:, old:])
        basis = self.basis.after(part, known, bend, law)
        carried, most = np.full(basis.rows[0].shape[1], np.nan), float(_sums(weights).max())
        return replace(self, basis=basis, among=None, carried=carried, most_weights=most), weights, norm

    def folded(self, weights: Floats, doubt: Floats) -> tuple["Summed", Floats, Floats]:
        """Without rows whose units do not switch here; the weights then, and the errors that this adds."""
        basis, kept, errors = self.basis.folded(weights, doubt[:, SHIFT])
        made = self.made + float(errors[:, 0].max(initial=0.0))
        return replace(self, basis=basis, made=made, parted=False), weights[:, kept], errors

    def looked_at(self, weights: Floats, doubt: Floats, law: Law, numbers: Floats, steep: Floats) -> "Summed":
        """With the units that may switch at the site that comes next, given its law as kernels know it.

        Wherever true vertices may be, others keep their sign, and on the way there: hence twice the shift (`bases`).
        """
        errors = np.stack([kernels.sure_errors(doubt, numbers), 2 * doubt[:, SHIFT]], 1)
        return replace(self, among=Among(*self.basis.unsure(weights, errors, np.stack([law.rows, steep]))))

    def with_carried(self) -> "Summed":
        """With what errors made before the next site do to all of its units that may switch."""
        assert self.among is not None
        units = self.among.numbers
        new = units[np.isnan(self.carried[units])]  # a block of which this is a part may have asked for others
        if not len(new):
            return self
        carried = self.carried.copy()
        carried[new] = self.adjoints.carried_errors(self.basis, len(self.basis.trail.made), new)
        return replace(self, carried=carried)

    def most_carried(self, rows: Floats) -> float:
        """At most how far off units that may switch are by errors made before their site, for each of their `rows`."""
        assert self.among is not None
        moving = rows > 0
        return float((self.carried[self.among.numbers][moving] / rows[moving]).max(initial=0.0))

    def rounded(self, spread: Spread) -> Spread:
        """Of values that are summed up: each row is rounded, and has constants taken off; all are interpolated."""
        rounded = spread.rounded(2 * rounding(len(self.basis)))
        floor = rounded.floor * (1 + 2 * self.most_weights)
        return replace(rounded, floor=floor, size=2 * spread.size, offset=2 * spread.offset)

    def noted(self, doubt: Floats, rule: kernels.Rule, state: Floats, *, first: bool) -> "Summed":
        """With how far off the units of a site that has cut are, and what its part has added to the state.

        `state` is what kernels know of the law of that.
        """
        moved = 2 * float(doubt[:, MOVED].max(initial=0.0))
        state[GAIN] *= first  # errors of the input count as made by the first part
        made = float(kernels.sure_errors(doubt, state).max(initial=0.0))
        away = rule.rows * float(kernels.sure_errors(doubt, rule.law).max(initial=0.0)) + moved
        return replace(self, made=made, away=away)

    def bytes_to_advance(self, widths: int, vertices: int) -> int:
        """What rows, and weights before and after, take in a part of the network that makes values of these widths."""
        n = len(self.basis) + (0 if self.among is None else len(self.among.numbers))
        return 8 * n * (widths + 2 * vertices) + self.basis.nbytes


def _sums(table: Floats) -> Floats:
    """Of absolute values, row by row."""
    sums = np.empty(len(table))
    for some in row_portions(*table.shape):
        sums[some] = np.abs(table[some]).sum(axis=1)
    return sums
