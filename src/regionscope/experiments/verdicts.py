"""Rules that a claim is judged by: each a pure function of curves over training, or of numbers one a seed.

A rule holds if the mean over the seeds passes its threshold by more than the standard error of that mean; with a single
seed, if it passes. "Late" is the later half of training in the logarithm of the step: from the square root of the last
step on. Numbers that are missing make a rule undecided, never true.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from regionscope.experiments.findings import Check, Curve
from regionscope.types import Floats

MONOTONE = 0.8  # the rank correlation from which values rise or fall with what is swept

Statistic = Callable[[Floats, Floats], float]  # of places (n,) and the values there (n,)


# thresholds


def at_least(words: str, values: ArrayLike, threshold: float, *, paper: str = "") -> Check:
    """Whether a number, one a seed, is at least this large.

    >>> at_least("r", [0.9, 0.92, 0.94], 0.8).holds
    True
    """
    return _between(words, values, threshold, math.inf, paper, f"at least {threshold:.3g}")


def at_most(words: str, values: ArrayLike, threshold: float, *, paper: str = "") -> Check:
    """Whether a number, one a seed, is at most this large."""
    return _between(words, values, -math.inf, threshold, paper, f"at most {threshold:.3g}")


def within(words: str, values: ArrayLike, low: float, high: float, *, paper: str = "") -> Check:
    """Whether a number, one a seed, lies between these: a ratio near 1, an order of magnitude."""
    return _between(words, values, low, high, paper, f"from {low:.3g} to {high:.3g}")


def reported(words: str, values: ArrayLike, *, paper: str = "") -> Check:
    """A number, one a seed, that is reported and not judged."""
    mean, error = _mean_and_error(np.asarray(values, np.float64).ravel())
    return Check(words, mean, error, paper)


def interval_above(words: str, value: float, resampled: ArrayLike, threshold: float) -> Check:
    """Whether a number exceeds a threshold in 97.5% of what bootstrap resamples say of it.

    >>> interval_above("r", 0.5, np.linspace(0.3, 0.7, 100), 0.2).holds
    True
    """
    draws, rule = np.asarray(resampled, np.float64).ravel(), f"95% interval above {threshold:.3g}"
    if not len(draws) or not np.isfinite([value, *draws]).all():
        return Check(words, None, None, rule=rule, why="there are no numbers, or not all are finite")
    return Check(words, value, float(draws.std()), rule=rule, holds=bool(np.quantile(draws, 0.025) > threshold))


def untested(words: str, why: str, *, paper: str = "") -> Check:
    """A part of the claim that cannot be judged here."""
    return Check(words, paper=paper, rule="not at this scale", why=why)


def ends_early(steps: int, enough: int) -> str:
    """Why nothing can be said of the late phase, for `untested`; nothing, if it can."""
    return f"{steps:,} steps end before the late phase" if steps < enough else ""


def _between(words: str, values: ArrayLike, low: float, high: float, paper: str, rule: str) -> Check:
    numbers = np.asarray(values, np.float64).ravel()
    mean, error = _mean_and_error(numbers)
    if mean is None:
        return Check(words, None, None, paper, rule, None, "there are no numbers, or not all are finite")
    margin = error or 0.0
    # a number that lies on the threshold in every run has no error, and passes
    return Check(words, mean, error, paper, rule, bool(low + margin <= mean <= high - margin))


def _mean_and_error(numbers: Floats) -> tuple[float | None, float | None]:
    if not len(numbers) or not np.isfinite(numbers).all():
        return None, None
    error = float(numbers.std(ddof=1) / math.sqrt(len(numbers))) if len(numbers) > 1 else None
    return float(numbers.mean()), error


# curves over training


def drops_late(words: str, curve: Curve, *, by: float = 0.2, paper: str = "") -> Check:
    """Whether the end lies below the highest late value, by at least this share of it."""
    return at_least(
        f"{words}: late drop as a share of the highest late value", each_run(late_drop, curve), by, paper=paper
    )


def rises_late(words: str, curve: Curve, *, by: float, paper: str = "") -> Check:
    """Whether the end lies above the lowest late value, by at least this much: for accuracies, in their own unit."""
    return at_least(f"{words}: late rise above the lowest late value", each_run(late_rise, curve), by, paper=paper)


def falls_first(words: str, curve: Curve, *, by: float = 0.1, paper: str = "") -> Check:
    """Whether the curve falls from its start, before its largest rise, by at least this share of the start."""
    return at_least(f"{words}: first descent as a share of the start", each_run(first_descent, curve), by, paper=paper)


def rises_after(words: str, curve: Curve, *, by: float = 0.2, paper: str = "") -> Check:
    """Whether the curve rises from a valley to a later peak, by at least this share of the valley."""
    return at_least(f"{words}: ascent as a share of the valley", each_run(ascent, curve), by, paper=paper)


def falls_again(words: str, curve: Curve, *, by: float = 0.2, paper: str = "") -> Check:
    """Whether the curve falls after the peak of its largest rise, by at least this share of the peak."""
    return at_least(f"{words}: second descent as a share of the peak", each_run(second_descent, curve), by, paper=paper)


def each_run(statistic: Statistic, curve: Curve) -> Floats:
    """A statistic of every run, (seeds,)."""
    return np.array([statistic(curve.x, values) for values in curve.runs])


def late_drop(x: Floats, values: Floats) -> float:
    """(highest late value - end) / highest late value.

    >>> late_drop(np.array([0.0, 1.0, 10.0, 100.0]), np.array([9.0, 9.0, 8.0, 4.0]))
    0.5
    """
    highest = float(values[_late(x)].max())
    return (highest - float(values[-1])) / highest if highest > 0 else math.nan


def late_rise(x: Floats, values: Floats) -> float:
    """End - lowest late value."""
    return float(values[-1] - values[_late(x)].min())


def first_descent(x: Floats, values: Floats) -> float:
    """(start - lowest value before the peak) / start."""
    valley, _ = largest_rise(values)
    return float((values[0] - values[valley]) / values[0]) if values[0] > 0 else math.nan


def ascent(x: Floats, values: Floats) -> float:
    """(peak - valley) / valley for the valley and later peak with the largest difference."""
    valley, peak = largest_rise(values)
    return float((values[peak] - values[valley]) / values[valley]) if values[valley] > 0 else math.nan


def second_descent(x: Floats, values: Floats) -> float:
    """(peak - lowest value after it) / peak."""
    _, peak = largest_rise(values)
    return float((values[peak] - values[peak:].min()) / values[peak]) if values[peak] > 0 else math.nan


def peak_value(x: Floats, values: Floats) -> float:
    """The value at the top of the largest rise."""
    return float(values[largest_rise(values)[1]])


def late_part(curve: Curve) -> Curve:
    """The later half of training in the logarithm of the step.

    >>> late_part(Curve.of([0, 1, 10, 100], [4, 3, 2, 1])).x
    array([ 10., 100.])
    """
    late = _late(curve.x)
    return Curve(curve.x[late], curve.runs[:, late])


def _late(x: Floats) -> np.ndarray:
    return np.asarray(x >= math.sqrt(float(x[-1])))


def largest_rise(values: Floats) -> tuple[int, int]:
    """A valley and a later peak between which the curve rises most; of a curve that only falls, its end twice."""
    if not np.isfinite(values).all():
        return 0, 0
    rises = values - np.minimum.accumulate(values)
    if not rises.max() > 0:
        return len(values) - 1, len(values) - 1
    peak = int(rises.argmax())
    return int(values[: peak + 1].argmin()), peak


# two things together


def correlates(words: str, a: Curve, b: Curve, *, at_least_r: float, ranks: bool = False, paper: str = "") -> Check:
    """Whether two curves at the same places go together: Pearson's r, or Spearman's, of each run."""
    found = [correlation(p, q, ranks=ranks) for p, q in zip(a.runs, b.runs, strict=True)]
    return at_least(f"{words}: {'rank correlation' if ranks else 'Pearson r'}", found, at_least_r, paper=paper)


def correlation(a: ArrayLike, b: ArrayLike, *, ranks: bool = False) -> float:
    """Pearson's r, or Spearman's with `ranks`; no number if one of them is constant."""
    p, q = np.asarray(a, np.float64), np.asarray(b, np.float64)
    if len(p) < 2 or np.ptp(p) == 0 or np.ptp(q) == 0 or not np.isfinite([p, q]).all():
        return math.nan
    return float(stats.spearmanr(p, q).statistic if ranks else stats.pearsonr(p, q).statistic)


def monotone(words: str, sweep: Sequence[float], values: ArrayLike, *, rising: bool, paper: str = "") -> Check:
    """Whether values (seeds, sweep) rise, or fall, with what is swept: the rank correlation of each seed."""
    sign = 1 if rising else -1
    found = [sign * correlation(sweep, row, ranks=True) for row in np.atleast_2d(np.asarray(values, np.float64))]
    way = "rises" if rising else "falls"
    return at_least(f"{words}: {way} over the sweep, rank correlation", found, MONOTONE, paper=paper)
