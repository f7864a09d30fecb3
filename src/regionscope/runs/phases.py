"""The phases of a curve that was measured while a network trained."""

from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, Self

import numpy as np
import scipy
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import ArrayLike

from regionscope.runs import monotone
from regionscope.tables import Text
from regionscope.types import Floats, Indices

KINDS = {-1: "descent", 1: "ascent"}
FEWEST = 4  # values
MOST = 4  # pieces: grokking has a second ascent (PD Fig. 9)
FEW = 16  # values: too few to tell their noise and outliers from their phases
BENT = 8  # values: enough to tell how far they are off parabolas
MANY_ENOUGH, SCARCE, SCARCE_BENT = 3.0, 4.0, 5.5  # over n: so noise of n values alone has phases in 5 % of draws
SMOOTHED = 3  # accuracies: of fewer there is no running median
MANY = 50  # values: enough to tell whether the noise of neighbours is alike
COLUMNS = {  # what stands for none, and the limits
    "values": (np.nan, -np.inf, np.inf), "stderr": (0.0, 0, np.inf),
    "train_accuracy": (np.nan, 0, 1), "test_accuracy": (np.nan, 0, 1),
}  # fmt: skip
ORDINALS = ("first", "second", "third")
LEAST_RISE = 0.05  # of a test accuracy that generalises
LATER = 2.0  # generalisation this many times as late as memorisation, or more, is grokking
CHANCE = 0.5  # that of two classes: a test accuracy that is higher at its first record had begun to rise before


@dataclass(frozen=True)
class Phase:
    """A stretch of training in which a curve falls ("descent") or rises ("ascent"), by `change`."""

    kind: str
    first: float  # steps; the last of a phase is the first of the next
    last: float
    change: float


@dataclass(frozen=True)
class Phases:
    """What `phases` found. Steps are those of the curve, none in between; what there is none of is None."""

    segments: tuple[Phase, ...]  # none: the curve has no trend that its noise would not give
    confidence: float  # share of curves drawn again that have the same phases
    peak: float | None  # the step where the highest ascent turns into a descent
    peak_interval: tuple[float, float] | None  # holds 90 % of the peaks of the curves drawn again
    drop: float | None  # 1 - (end of the descent from the peak) / (the peak)
    memorised: float | None  # the step from which training accuracy is high, but for dips
    generalised: float | None  # the same of test accuracy
    grokked: bool | None  # whether it generalised clearly after it had memorised; None without both accuracies
    noise: float  # the median noise of a value; of its logarithm if `log`
    log: bool  # whether logarithms of the values were segmented

    @property
    def names(self) -> tuple[str, ...]:
        """Of the segments, as "first descent", "ascent", "second descent"; numbered if there are several of a kind."""
        kinds = [s.kind for s in self.segments]
        return tuple(f"{ORDINALS[kinds[:i].count(k)]} {k}" if kinds.count(k) > 1 else k for i, k in enumerate(kinds))

    @property
    def delay(self) -> float | None:
        """Grokking delay: steps from memorised to generalised; None for a run that does not grok."""
        if not self.grokked or self.memorised is None or self.generalised is None:
            return None
        return self.generalised - self.memorised

    @property
    def delay_decades(self) -> float | None:
        """Grokking delay: log10((1 + generalised) / (1 + memorised)); None for a run that does not grok."""
        if not self.grokked or self.memorised is None or self.generalised is None:
            return None
        return float(np.log10((1 + self.generalised) / (1 + self.memorised)))

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON, the delays included."""
        return asdict(self) | {"delay": self.delay, "delay_decades": self.delay_decades}

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> Self:
        """The inverse of `to_dict`, also after JSON."""
        fields = {name: stored[name] for name in cls.__dataclass_fields__ if name != "grokked"}
        fields["grokked"] = stored.get("grokked")  # which was not told at first
        fields["segments"] = tuple(Phase(**segment) for segment in stored["segments"])
        fields["peak_interval"] = stored["peak_interval"] and tuple(stored["peak_interval"])
        return cls(**fields)

    def __str__(self) -> str:
        pairs = zip(self.names, self.segments, strict=True)
        lines = [
            f"{name}: steps {step_in_words(s.first)} to {step_in_words(s.last)}, {s.change:+.4g}" for name, s in pairs
        ]
        lines = [*(lines or ["no phases"]), f"confidence {self.confidence:.0%}"]
        if self.peak is not None:
            within = "" if self.peak_interval is None else " ({} to {})".format(*map(step_in_words, self.peak_interval))
            drop = "" if self.drop is None else f", then a drop of {self.drop:.0%}"
            lines.append(f"peak at step {step_in_words(self.peak)}{within}{drop}")
        for name in ("memorised", "generalised"):
            lines += [] if getattr(self, name) is None else [f"{name} at step {step_in_words(getattr(self, name))}"]
        if self.delay is not None:
            lines.append(f"grokking delay {step_in_words(self.delay)} steps, {self.delay_decades:.2f} decades")
        elif self.grokked is not None:
            lines.append("does not grok: generalisation does not come clearly after memorisation")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """The same for notebooks."""
        return Text(self)._repr_html_()


def phases(
    steps: ArrayLike,
    values: ArrayLike,
    *,
    stderr: ArrayLike | None = None,
    train_accuracy: ArrayLike | None = None,
    test_accuracy: ArrayLike | None = None,
    memorised_at: float = 0.99,
    generalised_at: float = 0.95,
    resamples: int = 200,
    seed: int = 0,
) -> Phases:
    """The descents and ascents of a curve of `values` (n,) at `steps` (n,), and when a network had learnt (PD Sec. 4).

    Of all ways to cut the curve into k ≤ 4 runs that fall and rise by turns, dynamic programming over monotone
    (isotonic) regressions finds the one with the least

        Σ_i (y_i - fit_i)² / noise_i² + k (4 + 3 ln n),    k = 0: a constant.

    At this price constant and monotone curves with normal noise seldom get a phase too many (under 5 % of draws).
    Only the order of steps counts, so phases are the same in linear and logarithmic time. What is found are steps of
    the curve: whole as those of runs are, or the epochs or hours that you give.
    - y: the logarithm, if all values are positive, span a decade and exceed twice their `stderr`; else the values.
      Those that are not finite are left out.
    - noise: the largest of `stderr`, the scatter of values about lines between their neighbours in ln(1 + step), over
      the whole curve and over 15 values, and 1 % of the range. Of fewer than 16 values, `stderr` takes the place of
      the scatter; without it, it is that about lines, or of 8 or more about parabolas if that is less: few values
      bend much.
      Noise alike at neighbouring steps counts up to three times, if 50 or more values show it; what wanders more
      slowly is taken for phases.
    - outliers: of 16 or more values, one far outside its four neighbours counts as 2 noises outside.
    - `confidence`, `peak_interval`: from `resamples` curves, noise and the best fit with 4 runs, counted or not.

    The network has memorised from the step on that best parts records with a training accuracy below `memorised_at`
    from those at it (the fewest are on the wrong side), and generalised from the step on that does so for test accuracy
    at `generalised_at` times its final level (None if that is not 0.05 above the first). So dips and lucky records are
    forgiven; a running median of three goes first, and levels are those of the best fit that never falls. The step is
    that of the first such record; the event itself lies between it and the record before.

    The network groks if it generalises clearly after it has memorised:
    - a record of test accuracy lies between the two, so that the delay is more than the spacing of the records;
    - 1 + step is at least twice as large;
    - by the time it has memorised, test accuracy has made less than half of its rise from the first level to the final
      one. A first level above 0.5, the chance of two classes, counts as 0.5: those records began late;
    - it has memorised after step 0: what a network can do before training it was not seen to learn.

    Estimated. Time and memory O(n²), time for each resample: 0.1 s for 100 values and 200 resamples.

    >>> steps = np.geomspace(1, 1e5, 60)
    >>> found = phases(steps, np.interp(np.log10(steps), [0, 1, 3.5, 5], [6, 2, 10, 1]))
    >>> found.names, round(found.drop, 2)
    (('first descent', 'ascent', 'second descent'), 0.9)
    """
    t, (y, errors, train, test) = _columns(steps, values, stderr, train_accuracy, test_accuracy)
    if resamples < 1:
        raise ValueError(f"resamples must be at least 1, got {resamples}; 200 tell the confidence to 3 %")
    kept = np.isfinite(y) & ~np.isinf(errors)
    if kept.sum() < FEWEST:
        raise ValueError(f"phases need at least {FEWEST} finite values, got {kept.sum()}; record more steps")
    recorded, y, errors = t[kept], y[kept], np.nan_to_num(errors[kept])
    log = bool(y.min() > 0 and y.max() >= 10 * y.min() and (y > 2 * errors).all())
    y, errors = (np.log(y), errors / y) if log else (y, errors)
    noise = _noise(np.log1p(recorded), y, errors)

    signs, turns, levels, confidence, turns_again = _segmentation(y, noise, resamples, seed)
    levels = np.exp(levels) if log else levels
    top = max((i for i in range(1, len(signs)) if signs[i] < 0), key=lambda i: levels[i], default=None)
    memorised, generalised, grokked = _learning_times(t, train, test, memorised_at, generalised_at)
    drawn = [] if top is None else np.sort(recorded[turns_again[:, top]]).tolist()
    return Phases(
        segments=tuple(
            Phase(KINDS[signs[i]], _step(recorded[first]), _step(recorded[last]), float(levels[i + 1] - levels[i]))
            for i, (first, last) in enumerate(pairwise(turns[: len(signs) + 1]))
        ),
        confidence=confidence,
        peak=None if top is None else _step(recorded[turns[top]]),
        peak_interval=(_step(drawn[len(drawn) // 20]), _step(drawn[-1 - len(drawn) // 20])) if drawn else None,
        drop=None if top is None or levels[top] <= 0 else float(1 - levels[top + 1] / levels[top]),
        memorised=memorised,
        generalised=generalised,
        grokked=grokked,
        noise=float(np.median(noise)),
        log=log,
    )


def _segmentation(
    y: Floats, noise: Floats, resamples: int, seed: int
) -> tuple[Indices, Indices, Floats, float, Indices]:
    """Signs, turns and levels of the pieces; the share of curves drawn again that agree, and their turns."""
    clean, weight, price = _without_outliers(y, noise), noise**-2, 4 + 3 * np.log(len(y))
    first, cuts = monotone.segmentations(clean[None], weight, price, MOST)
    signs, inner = monotone.signs_and_cuts(first, cuts)
    fit = monotone.fit(clean, weight, signs, inner)
    richest = monotone.fit(
        clean, weight, *monotone.signs_and_cuts(*monotone.segmentations(clean[None], weight, 0.0, MOST))
    )
    again = richest + noise * np.random.default_rng(seed).standard_normal((resamples, len(y)))
    first_again, cuts_again = monotone.segmentations(again, weight, price, MOST)
    same = (first_again == first) & ((cuts_again > 0) == (cuts > 0)).all(axis=1)

    turns = monotone.turns(y[None], signs, cuts)[0]
    levels = fit[turns]
    if len(signs):  # an end beyond its neighbours may be steep and no outlier
        levels[0] -= signs[0] * max(0, signs[0] * (clean[0] - y[0]))
        levels[-1] += signs[-1] * max(0, signs[-1] * (y[-1] - clean[-1]))
    return signs, turns, levels, float(same.mean()), monotone.turns(again[same], signs, cuts_again[same])


def _columns(steps: ArrayLike, *columns: ArrayLike | None) -> tuple[Floats, list[Floats]]:
    t = np.asarray(steps, float)
    if t.ndim != 1 or not np.isfinite(t).all() or (t < 0).any() or (np.diff(t) <= 0).any():
        raise ValueError(f"steps must be a list of increasing numbers ≥ 0, got {t}; sort them and drop repeated ones")
    arrays = []
    for (name, (default, low, high)), column in zip(COLUMNS.items(), columns, strict=True):
        array = np.full(len(t), default) if column is None else np.asarray(column, float)
        if array.shape != t.shape:
            raise ValueError(f"{name} must be {t.shape} like steps, got {array.shape}; use NaN where none was recorded")
        if (array < low).any() or (array > high).any():
            raise ValueError(f"{name} must lie in [{low}, {high}], got {array}; divide per cent by 100")
        arrays.append(array)
    return t, arrays


def _noise(x: Floats, y: Floats, errors: Floats) -> Floats:
    """The noise of each value."""
    noise: Floats = np.maximum(errors, max(0.01 * np.ptp(y), 1e-9 * np.abs(y).max(), 1e-100))
    if len(y) < FEW and errors.any():
        return noise
    off = _off_curves(x, y, 1)
    scatter = _typical(off) * (1 + (SCARCE if len(y) < FEW else MANY_ENOUGH) / len(y))
    if BENT <= len(y) < FEW:  # lines take bends for noise
        scatter = min(_typical(off), _typical(_off_curves(x, y, 2))) * (1 + SCARCE_BENT / len(y))
    noise = np.maximum(noise, scatter)
    if len(y) >= FEW:
        noise = np.maximum(noise, scipy.ndimage.percentile_filter(np.pad(off, 1, "edge"), 68.3, 15, mode="nearest"))
    if len(y) >= MANY:  # noise with correlation c and variance v acts as v (1 + c) / (1 - c): close to this factor
        ratio = (_typical(_off_curves(x, y, 1, lag=2)) / max(_typical(off), noise.min())) ** 2
        noise = np.maximum(errors, noise / (2 - np.clip(ratio - 2.5 / len(y) ** 0.5, 1, 5 / 3)))
    return noise


def _typical(off: Floats) -> float:
    """The standard deviation of normal noise that is so far off: 68.3 % of it is within one."""
    return float(np.quantile(off, 0.683))


def _off_curves(x: Floats, y: Floats, degree: int, lag: int = 1) -> Floats:
    """How far values `lag` apart are off lines or parabolas (degree 1, 2), in units of independent noise.

    The divided difference of degree + 2 values, over the root of the sum of squares of its coefficients.
    """
    near, values = (sliding_window_view(a, (degree + 1) * lag + 1)[:, ::lag] for a in (x, y))
    apart = near[:, :, None] - near[:, None, :] + np.eye(degree + 2)
    shares: Floats = 1 / apart.prod(axis=2)
    off: Floats = np.abs((shares * values).sum(axis=1)) / np.linalg.norm(shares, axis=1)
    return off


def _without_outliers(y: Floats, noise: Floats) -> Floats:
    """Values brought to at most 2 noises above the second highest and below the second lowest of four neighbours."""
    if len(y) < FEW:
        return y.copy()
    before, after = (2 * np.median(e[:3]) - np.median(e[2:5]) for e in (y, y[::-1]))  # the ends carried on in a line
    padded = np.concatenate([[before] * 2, y, [after] * 2])
    near: Floats = np.sort([padded[:-4], padded[1:-3], padded[3:-1], padded[4:]], axis=0)
    return np.clip(y, near[1] - 2 * noise, near[2] + 2 * noise)


def _smoothed(t: Floats, accuracy: Floats) -> tuple[Floats, Floats]:
    """The steps of the records of an accuracy, and its running medians of three; none of fewer records."""
    t, accuracy = t[np.isfinite(accuracy)], accuracy[np.isfinite(accuracy)]
    if len(t) < SMOOTHED:
        return t[:0], accuracy[:0]
    middle = np.median([accuracy[:-2], accuracy[1:-1], accuracy[2:]], axis=0)
    last = np.median([accuracy[-1], middle[-1], 3 * middle[-1] - 2 * middle[-2:][0]])  # Tukey's rule for the end
    return t, np.concatenate([accuracy[:1], middle, [last]])


def _first_at(t: Floats, smooth: Floats, level: float) -> float | None:
    """The step that parts records below a level from those at it best: the fewest lie on the wrong side."""
    below = np.append(smooth < level, False)
    wrong = below[::-1].cumsum()[::-1] + (~below).cumsum() - ~below  # below from there on, and not below before
    first = int(wrong.argmin())
    return None if first == len(t) else _step(t[first])


def _rise(smooth: Floats) -> Floats:
    """The best fit to an accuracy that never falls: dips and lucky records hardly move it."""
    return monotone.fit(smooth, np.ones(len(smooth)), np.array([1]), np.array([], int))


def _learning_times(
    t: Floats, train: Floats, test: Floats, memorised_at: float, generalised_at: float
) -> tuple[float | None, float | None, bool | None]:
    """When a network had memorised and generalised, and whether it groks, as far as records of accuracies tell."""
    (trained, train), (tested, test) = _smoothed(t, train), _smoothed(t, test)
    memorised = _first_at(trained, train, memorised_at)
    if not len(tested):
        return memorised, None, None
    rise = _rise(test)
    risen = rise[-1] >= rise[0] + LEAST_RISE
    generalised = _first_at(tested, test, generalised_at * rise[-1]) if risen else None
    if not len(trained):
        return memorised, generalised, None
    if not memorised or generalised is None:
        return memorised, generalised, False
    by_then = rise[max(0, int(np.searchsorted(tested, memorised, side="right")) - 1)]
    half = (min(rise[0], CHANCE) + rise[-1]) / 2
    between = ((memorised < tested) & (tested < generalised)).any()
    later = between and 1 + generalised >= LATER * (1 + memorised)
    return memorised, generalised, bool(later and by_then < half)


def _step(time: float) -> float:
    """A step as it was given: whole, if it was."""
    return int(time) if float(time).is_integer() else float(time)


def step_in_words(step: float) -> str:
    """Whole steps in full; epochs and other times of a user's own to three digits, where they have fractions.

    >>> step_in_words(54561), step_in_words(2.75), step_in_words(54561.8)
    ('54,561', '2.75', '54,562')
    """
    return f"{step:,.0f}" if float(step).is_integer() or step >= 100 else f"{step:.3g}"
