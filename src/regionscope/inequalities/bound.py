"""What an inequality returns: both sides, all that enters them, and a verdict."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
import scipy

from regionscope.tables import Facts, html_table
from regionscope.types import Floats

Means = dict[str, Floats]  # quantity -> its mean (), or (layers,); with one point left out at a time, (rows, ...)
Statistic = Callable[[Means], Any]

STANDARD_ERRORS = 3.0  # a difference beyond so many is taken as real
ROUNDING = 1e-9  # of the larger side; all is computed in float64


class Reference(NamedTuple):
    """Where an inequality stands, "LC Prop. 8", and which part of it, "14"; the only one is not named."""

    source: str
    part: str = ""


@dataclass(frozen=True)
class Term:
    """A number that enters an inequality and its standard error, 0 for what is exact."""

    value: float
    stderr: float = 0.0


@dataclass(frozen=True, eq=False)
class Bound(Facts):
    """An inequality left <= right on a network: with the paper's constants if `printed`, else with ones that hold.

    `holds` is True or False if the difference of the sides is beyond 3 standard errors (more for few points) or has no
    error, None if that is undecided or if no verdict can be given; `note` says why.
    """

    name: str
    source: str  # the paper and the statement: "LC Prop. 8"
    printed: bool
    left: float
    right: float
    holds: bool | None
    stderr: float = 0.0  # of right - left, which are measured at the same points
    terms: dict[str, Term] = field(default_factory=dict)
    note: str = ""
    restated: bool = False  # valid for other means than the paper's: no correction of what it prints
    part: str = ""  # of the statement: "14"

    @property
    def reference(self) -> str:
        """Where it stands: "LC Prop. 8 (14)"."""
        return f"{self.source} ({self.part})" if self.part else self.source

    @property
    def kind(self) -> str:
        """Whose constants: "printed", "valid", or "as restated"."""
        return "printed" if self.printed else "as restated" if self.restated else "valid"

    @property
    def ratio(self) -> float:
        """Left over right: 1 if the bound is attained, above 1 if it is violated."""
        return self.left / self.right if self.right else (math.inf if self.left > 0 else math.nan)

    @property
    def form(self) -> str:
        """Reference and whose constants: no two rows have the same."""
        return f"{self.reference}, {self.kind}"

    @property
    def verdict(self) -> str:
        """In a word."""
        return {True: "holds", False: "violated", None: "no verdict" if self.note else "undecided"}[self.holds]

    @property
    def in_words(self) -> tuple[str, ...]:
        """Its row in a table with the head of `Bounds`."""
        numbers = f"{self.left:.5g}", f"{self.right:.5g}", f"{self.stderr:.2g}", f"{self.ratio:.3g}"
        return self.reference, self.kind, *numbers, f"{self.verdict}: {self.note}" if self.note else self.verdict

    def __repr__(self) -> str:
        return f"Bound({self.form}: {self.left:.5g} <= {self.right:.5g}, {self.verdict})"

    def _facts(self) -> dict[str, object]:
        sides = {"left": f"{self.left:.5g}", "right": f"{self.right:.5g}", "verdict": self.verdict}
        return {"says": self.name, "stands in": self.form, **sides, **({"note": self.note} if self.note else {})}

    def to_dict(self) -> dict[str, Any]:
        """All of it, ready for JSON: what is not finite is None."""
        terms = {name: {"value": _finite(t.value), "stderr": _finite(t.stderr)} for name, t in self.terms.items()}
        return {
            "name": self.name, "source": self.source, "reference": self.reference, "kind": self.kind,
            "printed": self.printed, "left": _finite(self.left), "right": _finite(self.right),
            "ratio": _finite(self.ratio), "holds": self.holds, "stderr": _finite(self.stderr), "terms": terms,
            "note": self.note,
        }  # fmt: skip


class Bounds(list[Bound]):
    """A list of inequalities that is a table in notebooks."""

    HEAD = ("inequality", "form", "left", "right", "± s.e.", "left/right", "verdict")

    def _repr_html_(self) -> str:
        return html_table([self.HEAD, *(bound.in_words for bound in self)])


def _finite(number: float) -> float | None:
    return float(number) if math.isfinite(number) else None


@dataclass(frozen=True, eq=False)
class Samples:
    """Quantities measured together, one row a point (its mean over the noise), or one row a draw of a single point."""

    columns: dict[str, Floats]  # (rows,) or (rows, layers)
    largest: dict[str, Floats]  # the largest value met, (), or (layers,)

    @property
    def rows(self) -> int:
        return len(next(iter(self.columns.values())))

    @cached_property
    def means(self) -> Means:
        return {name: column.mean(axis=0) for name, column in self.columns.items()}

    @cached_property
    def means_without(self) -> Means:
        """The means without each of the rows."""
        return {name: (column.sum(axis=0) - column) / (self.rows - 1) for name, column in self.columns.items()}

    def term(self, statistic: Statistic) -> Term:
        """A function of the means with its standard error by the jackknife.

        The function is worked out without each of the rows: s.e.^2 = (n - 1)/n * sum of (f_i - mean f)^2. For a mean it
        is the usual standard error; for a difference of two sides it knows that they share their points.
        """
        value = float(statistic(self.means))
        n = self.rows
        if n == 1:
            return Term(value, math.nan)
        left_out = np.broadcast_to(np.asarray(statistic(self.means_without), dtype=float), (n,))
        if not np.isfinite(left_out).all():
            return Term(value, math.nan)
        size = float(np.abs(left_out).max()) or 1.0  # squares of what c_eta divides may not be representable
        return Term(value, size * math.sqrt((n - 1) * float(np.var(left_out / size))))


def inequality(
    samples: Samples, name: str, reference: Reference, *, printed: bool, left: Statistic, right: Statistic,
    terms: dict[str, Statistic | float], note: str = "", judged: bool = True, size: Statistic | None = None,
    restated: bool = False,
) -> Bound:  # fmt: skip
    """The inequality left <= right of two functions of the means, judged if asked to.

    `size` is that of the numbers whose difference a side is, if they are larger: rounding grows with them.
    """
    low, high = float(left(samples.means)), float(right(samples.means))
    margin = samples.term(lambda m: right(m) - left(m))
    found = {
        name: samples.term(term) if callable(term) else Term(float(term))
        for name, term in terms.items()
    }  # fmt: skip
    error = standard_errors(samples.rows) * margin.stderr
    holds = verdict(low, high, error, float(size(samples.means)) if size else 0.0) if judged else None
    at, part = reference
    return Bound(name, at, printed, low, high, holds, margin.stderr, found, note, restated, part)


@lru_cache
def standard_errors(rows: int) -> float:
    """How many make a difference real: 3, and more for few rows, whose spread is itself uncertain (Student's t)."""
    return float(scipy.stats.t.isf(scipy.stats.norm.sf(STANDARD_ERRORS), rows - 1)) if rows > 1 else math.nan


def verdict(left: float, right: float, error: float, size: float = 0.0) -> bool | None:
    """Whether left <= right, beyond an error of their difference; None if it cannot be told.

    >>> verdict(1.0, 2.0, 0.3), verdict(2.0, 1.0, 0.3), verdict(1.0, 1.1, 0.3)
    (True, False, None)
    """
    if math.isnan(left) or math.isnan(right):
        return None
    if math.isinf(right) or math.isinf(left):
        return left <= right
    slack = ROUNDING * max(abs(left), abs(right), size)
    if right - left >= error - slack:  # never so if the error is not known
        return True
    return False if right - left < -error - slack else None


def unavailable_inequality(name: str, reference: Reference, printed: bool, why: str) -> Bound:
    """An inequality that cannot be worked out on this network."""
    note = f"not available: {why}"
    return Bound(name, reference.source, printed, math.nan, math.nan, None, math.nan, note=note, part=reference.part)
