"""The phases of training curves: synthetic curves whose phases are known, under many draws of noise."""

import json
import time
from itertools import combinations
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression
from scipy.signal import lfilter

import regionscope as rs
from regionscope import plots
from regionscope.plots.curves import MARKS
from regionscope.runs import monotone
from regionscope.runs.phases import Phases

Floats = NDArray[np.float64]
ROOT = Path(__file__).parents[2]
DRAWS = 100
SHAPES: dict[str, tuple[list[float], list[float]]] = {  # heights of corners at shares of log time
    "": ([0, 1], [0, 0]),
    "d": ([0, 0.3, 0.5, 1], [1, 0.9, 0.1, 0]),
    "a": ([0, 1], [0, 1]),
    "da": ([0, 0.5, 1], [1, 0, 1]),
    "ad": ([0, 0.4, 1], [0, 1, 0]),
    "dad": ([0, 0.25, 0.6, 1], [0.6, 0.1, 1, 0]),
    "adad": ([0, 0.3, 0.45, 0.65, 1], [0.1, 0.8, 0.3, 1, 0]),
}


def shape(kinds: str, n: int) -> Floats:
    return np.interp(np.linspace(0, 1, n), *SHAPES[kinds])


def times(n: int) -> Floats:
    return np.geomspace(1, 1e5, n)


def kinds(found: Phases) -> str:
    return "".join(s.kind[0] for s in found.segments)


def share(wanted: str, n: int, noise: float, *, outliers: float = 0.0, stderr: bool = False) -> float:
    """How many of many noisy draws of a curve get its phases."""
    rng, hits = np.random.default_rng(n), 0
    for _ in range(DRAWS):
        y = shape(wanted, n) + noise * (rng.standard_normal(n) + 20 * (rng.random(n) < outliers) * rng.choice([-1, 1]))
        errors = np.full(n, noise) if stderr else None
        hits += kinds(rs.phases(times(n), y, stderr=errors, resamples=1)) == wanted
    return hits / DRAWS


def clean_double_descent(low: int, high: int, peak: float, smooth: bool) -> Floats:
    """Eleven values without noise, with straight or smooth runs between their corners."""
    t, ends, heights = np.arange(11), np.array([0, low, high, 10]), np.array([1.0, 0.2, peak, 0.0])
    piece = np.clip(np.searchsorted(ends, t, side="right") - 1, 0, 2)
    share = (t - ends[piece]) / np.diff(ends)[piece]
    share = (1 - np.cos(np.pi * share)) / 2 if smooth else share
    return np.asarray(heights[piece] + np.diff(heights)[piece] * share)


def test_eleven_values_of_a_clean_double_descent_have_three_phases() -> None:
    corners = [(low, high) for low, high in combinations(range(2, 9), 2) if high - low >= 3]
    curves = [
        clean_double_descent(*c, peak, smooth) for c in corners for peak in (0.7, 1.2, 2.2) for smooth in (False, True)
    ]
    found = [kinds(rs.phases(times(11), y, resamples=1)) == "dad" for y in curves]
    assert np.mean(found) >= 0.95  # a first descent that is small beside a steep peak may be missed


def test_eleven_noisy_values_of_a_monotone_curve_seldom_have_several_phases() -> None:
    rng, x, several = np.random.default_rng(7), np.linspace(0, 1, 11), list[bool]()
    for draw in range(1000):
        step = 1 / (1 + np.exp(12 * (x - rng.uniform(0.2, 0.8))))
        curve = (1 - x, np.exp(-4 * x), step, np.exp(-20 * x), (1 - x) ** 3)[draw % 5]
        y = curve + 10.0 ** rng.uniform(-2, 0) * rng.standard_normal(11)
        several.append(len(rs.phases(times(11), y, resamples=1).segments) > 1)
    assert np.mean(several) < 0.05


@pytest.mark.parametrize("wanted", ["", "d", "a", "da", "ad", "dad"])
@pytest.mark.parametrize(("n", "noise"), [(30, 0.03), (60, 0.05), (100, 0.1)])
def test_phases_are_found_in_95_of_100_noisy_curves(wanted: str, n: int, noise: float) -> None:
    assert share(wanted, n, noise) >= 0.95


def test_the_two_ascents_of_grokking_are_found_in_90_of_100_curves() -> None:
    assert share("adad", 60, 0.03) >= 0.9


@pytest.mark.parametrize("noise", [0.01, 0.1, 0.3])
@pytest.mark.parametrize("n", [16, 50, 120])
def test_falling_noisy_curves_get_no_ascent_in_95_of_100_draws(n: int, noise: float) -> None:
    rng, u = np.random.default_rng(n), np.linspace(0, 1, n)
    falling = [-u, np.exp(-6 * u), 1 / (1 + np.exp(20 * (u - 0.5)))]
    draws = [falling[i % 3] + noise * rng.standard_normal(n) for i in range(DRAWS)]
    assert np.mean(["a" in kinds(rs.phases(times(n), y, resamples=1)) for y in draws]) <= 0.05


@pytest.mark.parametrize("wanted", ["", "d", "da", "dad"])
def test_outliers_make_no_phases_in_90_of_100_curves(wanted: str) -> None:
    assert share(wanted, 80, 0.05, outliers=0.03) >= 0.9


@pytest.mark.parametrize("wanted", ["d", "da", "ad", "dad"])
def test_five_values_with_standard_errors_suffice(wanted: str) -> None:
    assert share(wanted, 5, 0.03, stderr=True) >= 0.95


def test_five_values_of_noise_have_no_phases_in_90_of_100_draws() -> None:
    assert share("", 5, 1.0) >= 0.9 and share("", 5, 1.0, stderr=True) >= 0.9


@pytest.mark.parametrize("n", [4, 6, 7, 8, 9, 11, 15])
def test_few_values_of_noise_seldom_have_phases(n: int) -> None:
    """5 % of draws is what is promised, and three standard errors of that many draws."""
    rng, steps = np.random.default_rng(n), times(n)
    found = [len(rs.phases(steps, rng.standard_normal(n), resamples=1).segments) > 0 for _ in range(600)]
    assert np.mean(found) <= 0.05 + 3 * (0.05 * 0.95 / 600) ** 0.5


def test_noise_that_grows_is_no_phase() -> None:
    rng, u = np.random.default_rng(0), np.linspace(0, 1, 100)
    found = [kinds(rs.phases(times(100), -u + 0.2 * u**2 * rng.standard_normal(100), resamples=1)) for _ in range(100)]
    assert np.mean([f == "d" for f in found]) >= 0.9


@pytest.mark.parametrize(("correlation", "bend", "most"), [(0.5, 0.01, 0.08), (0.3, 6, 0.15)])
def test_noise_alike_at_neighbouring_steps_seldom_makes_an_ascent(correlation: float, bend: float, most: float) -> None:
    rng, u = np.random.default_rng(0), np.linspace(0, 1, 100)
    falling = np.expm1(-bend * u) / -np.expm1(-bend)  # almost straight, or flat for most of the time
    ascents = 0
    for _ in range(DRAWS):
        noise = lfilter([(1 - correlation**2) ** 0.5], [1, -correlation], rng.standard_normal(150))[50:]
        ascents += "a" in kinds(rs.phases(times(100), falling + 0.1 * noise, resamples=1))
    assert ascents <= most * DRAWS


def test_constant_curves_have_no_phases() -> None:
    for level in (0.0, 7.5, -1e12):
        found = rs.phases(np.arange(20), np.full(20, level))
        assert found.segments == () and found.peak is None and found.drop is None and found.confidence > 0.95
        assert str(found).startswith("no phases\nconfidence")


def test_ties_and_irregular_steps_do_not_matter() -> None:
    steps = np.unique(np.random.default_rng(0).integers(0, 10_000, 60))
    y = np.round(np.interp(np.arange(len(steps)), [0, 15, 40, len(steps) - 1], [8, 2, 9, 0]))
    found = rs.phases(steps, y)
    assert found.names == ("first descent", "ascent", "second descent")
    assert kinds(rs.phases(np.arange(len(steps)), y)) == "dad", "any other time gives the same phases"


def test_values_that_are_not_finite_are_left_out() -> None:
    y = shape("dad", 60)
    holes = y.copy()
    holes[[3, 30, 59]] = np.nan, np.inf, np.nan
    keep = np.isfinite(holes)
    assert rs.phases(times(60), holes) == rs.phases(times(60)[keep], y[keep])


def test_steps_changes_peak_and_drop_are_those_of_the_curve() -> None:
    y = 10 * shape("dad", 101) + 2
    found = rs.phases(times(101), y)
    t = times(101)
    assert [(s.first, s.last) for s in found.segments] == [(t[0], t[25]), (t[25], t[60]), (t[60], t[100])]
    assert [s.change for s in found.segments] == pytest.approx([-5, 9, -10], abs=0.3)
    assert found.peak == t[60] and found.drop == pytest.approx(10 / 12, abs=0.02) and found.confidence > 0.99
    assert found.peak_interval is not None and found.peak_interval[0] <= t[60] <= found.peak_interval[1]


def test_the_interval_holds_the_true_peak_in_85_of_100_curves() -> None:
    rng, held = np.random.default_rng(0), []
    for _ in range(50):
        found = rs.phases(times(51), shape("dad", 51) + 0.04 * rng.standard_normal(51), resamples=100)
        held += [found.peak_interval is not None and found.peak_interval[0] <= 1e3 <= found.peak_interval[1] * 1.001]
    assert np.mean(held) >= 0.85


def test_confidence_is_low_where_a_phase_hardly_shows() -> None:
    rng = np.random.default_rng(0)
    found = [rs.phases(times(30), shape("dad", 30) + 0.15 * rng.standard_normal(30), resamples=60) for _ in range(60)]
    wrong = [f.confidence for f in found if kinds(f) != "dad"]
    assert len(wrong) > 10 and np.mean(wrong) < 0.75
    assert rs.phases(times(30), shape("dad", 30) + 0.02 * rng.standard_normal(30)).confidence > 0.95


def test_curves_over_decades_are_segmented_by_their_logarithm() -> None:
    rng = np.random.default_rng(0)
    y = 10 ** (3 * shape("dad", 80)) * np.exp(0.1 * rng.standard_normal(80))
    found = rs.phases(times(80), y)
    assert found.log and kinds(found) == "dad" and found.drop == pytest.approx(0.999, abs=1e-3)
    assert not rs.phases(times(80), y, stderr=y).log, "errors as large as the values have no logarithm"
    assert not rs.phases(times(80), y - y.min()).log


def test_a_steep_start_is_told_in_full() -> None:
    y = np.concatenate([[100.0], np.linspace(5, 0, 39)])
    assert rs.phases(np.arange(40), y + 1).segments[0].change == pytest.approx(-100, rel=0.02)


def test_the_same_seed_gives_the_same_answer() -> None:
    y = shape("dad", 40) + 0.1 * np.random.default_rng(1).standard_normal(40)
    assert rs.phases(times(40), y, seed=3) == rs.phases(times(40), y, seed=3)


def accuracy(at: float, low: float, high: float) -> Floats:
    return np.interp(np.log10(times(51)), [at - 0.2, at], [low, high])


def test_memorisation_generalisation_and_the_delay_between_them() -> None:
    train, test = accuracy(2.0, 0.1, 1.0), accuracy(4.0, 0.1, 0.9)
    found = rs.phases(times(51), shape("dad", 51), train_accuracy=train, test_accuracy=test)
    assert found.memorised is not None and 80 < found.memorised < 101
    assert found.generalised is not None and 8_000 < found.generalised < 10_001
    assert found.grokked and found.delay == found.generalised - found.memorised
    assert found.delay_decades == pytest.approx(2.0, abs=0.03)
    assert "grokking delay" in str(found) and "memorised at step" in str(found)


def learning(train_from: int, test_from: int) -> Phases:
    """Of a run whose accuracies are high from these records on."""
    steps = rs.log_steps(30_000, 36)
    train, test = ([0.1 + 0.9 * (k >= first) for k in range(len(steps))] for first in (train_from, test_from))
    return rs.phases(steps, shape("d", len(steps)), train_accuracy=train, test_accuracy=test)


def test_steps_are_whole_and_those_of_records() -> None:
    found, steps = learning(15, 25), rs.log_steps(30_000, 36)
    assert (found.memorised, found.generalised, found.delay) == (steps[15], steps[25], steps[25] - steps[15])
    told = [found.memorised, found.generalised, found.segments[0].first, found.segments[-1].last]
    assert all(isinstance(step, int) for step in told)
    assert f"generalised at step {steps[25]:,}\n" in str(found)


def test_epochs_are_told_as_they_were_given_and_printed_to_three_digits() -> None:
    epochs = np.arange(20) / 4
    found = rs.phases(epochs, shape("d", 20), train_accuracy=np.arange(20) > 10)
    assert found.memorised == 2.75 and "memorised at step 2.75" in str(found)
    assert plots.curve(epochs, shape("d", 20), phases=found).lines[-1].get_label() == "memorised, step 2.75"
    plt.close("all")
    drawn = rs.phases(times(60), shape("dad", 60))
    assert drawn.segments[0].last in times(60) and "first descent: steps 1 to 15.4, " in str(drawn)
    assert f"peak at step {drawn.peak:,.0f} " in str(drawn)


def test_a_test_accuracy_that_still_rises_has_its_last_value_as_final_level() -> None:
    steps = [0, 10, 100, 1000, 2000, 4000, 8000, 16000]
    train = [0.1, 0.5, 1, 1, 1, 1, 1, 1]
    rising = rs.phases(steps, np.linspace(1, 2, 8), train_accuracy=train, test_accuracy=[0.1] * 5 + [0.3, 0.6, 0.9])
    assert rising.generalised == 16000 and rising.grokked
    end = [0.1] * 3 + [0.3, 0.9, 0.9, 0.9, 0.2]
    fallen = rs.phases(steps, np.linspace(1, 2, 8), train_accuracy=train, test_accuracy=end)
    assert fallen.generalised == 2000  # a single record at the end does not count


@pytest.mark.parametrize(("memorised", "generalised"), [(25, 15), (15, 15), (15, 16), (20, 22), (15, 99), (99, 15)])
def test_a_run_that_does_not_grok_has_no_delay_and_says_so(memorised: int, generalised: int) -> None:
    """Test accuracy first, both together, one record apart, less than twice as late, or one of them never."""
    found = learning(memorised, generalised)
    assert found.grokked is False and found.delay is None and found.delay_decades is None
    assert str(found).endswith("\ndoes not grok: generalisation does not come clearly after memorisation")
    assert "delay" not in str(found)
    assert found.to_dict()["delay"] is None and Phases.from_dict(found.to_dict()) == found


def risen(t: Floats, at: float, low: float, high: float, width: float = 0.3) -> Floats:
    """An accuracy that rises over so many decades around a step."""
    return np.clip(low + (high - low) / (1 + np.exp(-4 / width * np.log10((1 + t) / (1 + at)))), 0, 1)


def grokked(t: Floats, train: Floats, test: Floats) -> Phases:
    return rs.phases(t, shape("d", len(t)), train_accuracy=train, test_accuracy=test, resamples=1)


def test_late_dips_do_not_move_generalisation() -> None:
    t = np.array(rs.log_steps(100_000, 60), float)
    train, test = risen(t, 100, 0.1, 1.004), risen(t, 120, 0.1, 0.95)
    dipped = test.copy()
    dipped[-9:-6] = 0.6
    assert grokked(t, train, dipped).generalised == grokked(t, train, test).generalised
    assert grokked(t, train, dipped).grokked is False


@pytest.mark.parametrize("first", [0, 200])
def test_a_test_accuracy_that_drifts_after_memorisation_is_no_grokking(first: int) -> None:
    """Also if the records begin late, when most of its rise is over."""
    t = np.array([step for step in rs.log_steps(100_000, 60) if step >= first], float)
    test = risen(t, 90, 0.1, 0.8) + risen(t, 5_000, 0.0, 0.15, width=0.8)
    found = grokked(t, risen(t, 100, 0.1, 1.004), test)
    assert found.generalised is not None and found.memorised is not None and found.generalised > 2 * found.memorised
    assert found.grokked is False and found.delay is None


def test_what_a_network_can_do_at_step_0_it_has_not_memorised_before_generalising() -> None:
    t = np.array(rs.log_steps(100_000, 60), float)
    found = grokked(t, np.ones(len(t)), risen(t, 3, 0.1, 0.95))
    assert found.memorised == 0 and found.generalised == 6 and found.grokked is False and found.delay is None


@pytest.mark.parametrize("noise", [0.0, 0.02, 0.05])
@pytest.mark.parametrize("width", [0.1, 1.2])
@pytest.mark.parametrize("chance", [0.01, 0.1, 0.5])
@pytest.mark.parametrize("records", [8, 20, 60, 200])
def test_grokking_is_recognised_in_all_of_20_draws(noise: float, width: float, chance: float, records: int) -> None:
    """Sharp and slow, of few records and many, noisy, and of two classes as of a hundred."""
    rng, t = np.random.default_rng(0), np.array(rs.log_steps(100_000, records), float)
    train, test = risen(t, 100, chance, 1.004), risen(t, 10_000, chance, 0.95, width)
    draws = [np.clip(test + noise * rng.standard_normal(len(t)), 0, 1) for _ in range(20)]
    assert all(grokked(t, train, draw).grokked for draw in draws)
    late = t >= 150  # where it has memorised already
    assert late.sum() < 4 or all(grokked(t[late], train[late], draw[late]).grokked for draw in draws)


def test_dips_of_both_accuracies_do_not_hide_grokking() -> None:
    t = np.arange(0, 20_001, 50.0)
    train, test = risen(t, 300, 0.1, 1.1, 0.2), risen(t, 9_000, 0.01, 0.99, 0.1)
    dips = np.isin(np.arange(len(t)) % 40, (0, 1, 2)) & (t > 1_000)
    smooth, found = grokked(t, train, test), grokked(t, np.where(dips, 0.6, train), np.where(dips, 0.6 * test, test))
    assert smooth.grokked and (found.memorised, found.generalised) == (smooth.memorised, smooth.generalised)
    assert found.delay == smooth.delay


@pytest.mark.parametrize("records", [8, 20, 60, 200])
def test_accuracies_that_rise_together_are_no_grokking_in_any_of_20_draws(records: int) -> None:
    rng, t = np.random.default_rng(0), np.array(rs.log_steps(100_000, records), float)
    train, test = risen(t, 100, 0.1, 1.004), risen(t, 100, 0.1, 0.95)
    draws = [np.clip(test + 0.03 * rng.standard_normal(len(t)), 0, 1) for _ in range(20)]
    assert not any(grokked(t, train, draw).grokked for draw in draws)


@pytest.mark.parametrize(("figure", "wanted"), [("pd7", False), ("pd8", True), ("pd9", True), ("pd13", False)])
def test_runs_of_the_papers_grok_where_their_curves_say_so(figure: str, wanted: bool) -> None:
    curves = json.loads((ROOT / "docs" / "reproduction" / f"{figure}.json").read_text())["curves"]
    pairs = [(curves[name], curves[name.replace("train", "test")]) for name in curves if "train accuracy" in name]
    runs = [(a["x"], *pair) for a, b in pairs for pair in zip(a["runs"], b["runs"], strict=True)]
    assert len(runs) >= 3
    assert {grokked(*(np.array(column, float) for column in run)).grokked for run in runs} == {wanted}


def test_a_run_without_accuracies_says_nothing_of_grokking() -> None:
    found = rs.phases(times(51), shape("d", 51), train_accuracy=accuracy(2.0, 0.1, 1.0))
    assert found.grokked is None and found.delay is None and "grok" not in str(found)
    stored = found.to_dict()
    del stored["grokked"]
    assert Phases.from_dict(stored) == found, "also as it was stored before it was told"


def test_one_bad_record_does_not_undo_what_was_learnt() -> None:
    train = accuracy(2.0, 0.1, 1.0)
    dips = train.copy()
    dips[[40, 50]] = 0.5
    lucky = train.copy()
    lucky[5] = 1.0
    whole, dipped, early = (
        rs.phases(times(51), shape("d", 51), train_accuracy=a).memorised for a in (train, dips, lucky)
    )
    assert whole == dipped == early


def test_what_was_never_reached_is_none() -> None:
    found = rs.phases(times(51), shape("d", 51), train_accuracy=np.full(51, 0.5), test_accuracy=np.full(51, 0.1))
    assert found.memorised is None and found.generalised is None and found.delay is None
    assert rs.phases(times(51), shape("d", 51), train_accuracy=np.ones(51)).memorised == 1.0
    assert rs.phases(times(51), shape("d", 51), train_accuracy=np.ones(51)).delay_decades is None
    sparse = np.where(np.arange(51) < 2, 1.0, np.nan)
    assert rs.phases(times(51), shape("d", 51), train_accuracy=sparse).memorised is None


@pytest.mark.parametrize("wanted", ["", "d", "dad"])
def test_phases_survive_json(wanted: str) -> None:
    found = rs.phases(times(40), shape(wanted, 40), train_accuracy=accuracy(2.0, 0.1, 1.0)[:40])
    assert Phases.from_dict(json.loads(json.dumps(found.to_dict(), allow_nan=False))) == found


def test_wrong_arguments_are_refused() -> None:
    t, y = times(10), np.arange(10.0)
    with pytest.raises(ValueError, match="increasing numbers"):
        rs.phases(t[::-1], y)
    with pytest.raises(ValueError, match=r"values must be \(10,\) like steps, got \(9,\)"):
        rs.phases(t, y[:9])
    with pytest.raises(ValueError, match="at least 4 finite values, got 3"):
        rs.phases(t, np.where(y < 3, y, np.nan))
    with pytest.raises(ValueError, match=r"stderr must lie in \[0, inf\]"):
        rs.phases(t, y, stderr=-y)
    with pytest.raises(ValueError, match="divide per cent by 100"):
        rs.phases(t, y, test_accuracy=10 * y)
    with pytest.raises(ValueError, match="resamples must be at least 1"):
        rs.phases(t, y, resamples=0)


def test_a_hundred_values_take_less_than_a_fifth_of_a_second() -> None:
    y = shape("dad", 100) + 0.1 * np.random.default_rng(0).standard_normal(100)
    rs.phases(times(100), y)  # compiles
    started = [time.process_time()]
    for _ in range(3):
        rs.phases(times(100), y)
        started.append(time.process_time())
    assert np.diff(started).min() < 0.2


def test_segmentation_is_the_best_of_all() -> None:
    """Against every way to cut nine values, fitted by scipy."""
    rng, n, price = np.random.default_rng(0), 9, 1.3
    for _ in range(10):
        y, weight = rng.standard_normal(n).cumsum(), rng.uniform(0.5, 2, n)
        costs: dict[tuple[int, ...], float] = {(): float((weight * (y - np.average(y, weights=weight)) ** 2).sum())}
        for k in range(1, 5):
            for cuts in combinations(range(1, n), k - 1):
                for first in (-1, 1):
                    left = sum(
                        (
                            w * (part - isotonic_regression(part, weights=w, increasing=first * (-1) ** i > 0).x) ** 2
                        ).sum()
                        for i, (part, w) in enumerate(zip(np.split(y, cuts), np.split(weight, cuts), strict=True))
                    )
                    costs[(first, *cuts)] = left + k * price
        found = monotone.signs_and_cuts(*monotone.segmentations(y[None], weight, price, 4))
        left = (weight * (y - monotone.fit(y, weight, *found)) ** 2).sum() + len(found[0]) * price
        assert left == pytest.approx(min(costs.values()))


def grokking() -> tuple[Floats, Floats, Phases]:
    t = np.concatenate([[0], times(50)])
    y = shape("dad", 51)
    return t, y, rs.phases(t, y, train_accuracy=accuracy(2.0, 0.1, 1.0), test_accuracy=accuracy(4.0, 0.1, 0.9))


def test_curves_are_drawn_with_bands_phases_and_times() -> None:
    t, y, found = grokking()
    ax = plots.curve(t, {"train": y, "test": y / 2}, stderr={"train": y / 10}, phases=found)
    assert [text.get_text() for text in ax.texts] == ["first descent", "ascent", "second descent"]
    legend = ax.get_legend()
    assert legend is not None
    labels = [text.get_text() for text in legend.get_texts()]
    assert labels[:2] == ["train", "test"] and [label.split(",")[0] for label in labels[2:]] == list(MARKS)
    assert len(ax.collections) == 1 and len(ax.patches) == 3
    assert ax.get_xscale() == "symlog" and plots.curve(t[1:], y[1:]).get_xscale() == "log"
    assert plots.curve(t, y, ax) is ax
    with pytest.raises(ValueError, match="use the same names"):
        plots.curve(t, y, stderr={"tset": y})
    plt.close("all")


def test_accuracies_are_drawn_below_the_curve() -> None:
    t, y, found = grokking()
    axes = plots.training(t, y, {"train": accuracy(2.0, 0.1, 1.0)}, stderr=y / 10, phases=found)
    assert axes[1].get_ylabel() == "accuracy" and axes[0].get_ylabel() == "value"
    assert len(axes[1].lines) == 1 + 3 and not axes[1].texts
    axes[0].figure.canvas.draw()
    assert plots.training(t, y, {"train": y}, axes) is axes
    plt.close("all")
