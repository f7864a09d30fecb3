"""Rules on curves whose answer is known, both ways: a rule that cannot say no would be a defect."""

import math

import numpy as np
import pytest
from scipy import stats

from regionscope.experiments import verdicts
from regionscope.experiments.findings import Check, Curve, verdict_of
from regionscope.experiments.verdicts import (
    at_least,
    at_most,
    correlates,
    correlation,
    drops_late,
    falls_again,
    falls_first,
    interval_above,
    largest_rise,
    monotone,
    reported,
    rises_after,
    rises_late,
    untested,
    within,
)

STEPS = np.array([0, 1, 3, 10, 30, 100, 300, 1000, 3000, 10000], float)
DOUBLE = [5.0, 4.5, 3.0, 1.8, 2.2, 3.0, 3.4, 2.9, 1.9, 1.0]  # descent, ascent, second descent
FALLING = [5.0, 4.0, 3.0, 2.5, 2.0, 1.8, 1.7, 1.7, 1.7, 1.7]
RISING = [1.0, 1.0, 1.1, 1.2, 1.4, 1.5, 1.6, 1.8, 2.0, 2.2]


def curve(values: list[float], seeds: int = 3) -> Curve:
    noise = np.random.default_rng(0).normal(scale=0.01, size=(seeds, len(values)))
    return Curve.of(STEPS, np.array(values) + noise)


@pytest.mark.parametrize(
    ("rule", "options", "holding", "failing"),
    [
        (drops_late, {"by": 0.3}, DOUBLE, FALLING),
        (drops_late, {"by": 0.3}, DOUBLE, RISING),
        (rises_late, {"by": 0.5}, RISING, FALLING),
        (falls_first, {"by": 0.1}, DOUBLE, RISING),
        (rises_after, {"by": 0.2}, DOUBLE, FALLING),
        (rises_after, {"by": 0.2}, RISING, FALLING),
        (falls_again, {"by": 0.2}, DOUBLE, RISING),
    ],
)
def test_rules_on_curves_say_yes_and_no(
    rule: object, options: dict[str, float], holding: list[float], failing: list[float]
) -> None:
    assert callable(rule)
    assert rule("it", curve(holding), **options).holds is True
    assert rule("it", curve(failing), **options).holds is False


def test_the_shapes_of_a_double_descent_are_measured() -> None:
    values = np.array(DOUBLE)
    assert verdicts.first_descent(STEPS, values) == pytest.approx((5 - 1.8) / 5)
    assert verdicts.ascent(STEPS, values) == pytest.approx((3.4 - 1.8) / 1.8)
    assert verdicts.second_descent(STEPS, values) == pytest.approx((3.4 - 1) / 3.4)
    assert verdicts.late_drop(STEPS, values) == pytest.approx((3.4 - 1) / 3.4)
    assert verdicts.late_rise(STEPS, np.array(RISING)) == pytest.approx(2.2 - 1.5)


def test_a_mean_within_its_error_of_the_threshold_does_not_pass() -> None:
    assert at_least("it", [1.1, 1.12, 1.11], 1.0).holds is True
    assert at_least("it", [0.6, 1.6, 1.1], 1.0).holds is False
    assert at_most("it", [0.9, 0.88, 0.89], 1.0).holds is True
    assert at_most("it", [1.4, 0.4, 0.9], 1.0).holds is False
    assert at_least("it", [1.0], 1.0).holds is True
    assert at_least("it", [0.99], 1.0).holds is False


def test_what_lies_within_is_told_from_what_does_not() -> None:
    assert within("ratio", [0.9, 1.0, 1.1], 0.5, 2.0).holds is True
    assert within("ratio", [2.4, 2.5, 2.6], 0.5, 2.0).holds is False


def test_errors_are_those_of_the_mean_over_seeds() -> None:
    values = [1.0, 2.0, 4.0]
    check = reported("it", values)
    assert check.found == pytest.approx(7 / 3) and check.error == pytest.approx(stats.sem(values))
    assert reported("it", [3.0]).error is None


def test_correlations_are_those_of_scipy_and_say_yes_and_no() -> None:
    a, b = np.random.default_rng(1).normal(size=(2, 20))
    assert correlation(a, b) == pytest.approx(stats.pearsonr(a, b).statistic)
    assert correlation(a, b, ranks=True) == pytest.approx(stats.spearmanr(a, b).statistic)
    assert correlates("it", curve(DOUBLE), curve(DOUBLE), at_least_r=0.9).holds is True
    assert correlates("it", curve(DOUBLE), curve(RISING), at_least_r=0.9).holds is False
    assert math.isnan(correlation([1, 1, 1], [1, 2, 3]))


def test_sweeps_are_monotone_or_not() -> None:
    sweep = [1.0, 2.0, 3.0, 4.0]
    assert monotone("it", sweep, [[1, 2, 3, 4], [1, 2, 4, 5]], rising=True).holds is True
    assert monotone("it", sweep, [[4, 3, 2, 1], [5, 3, 2, 1]], rising=True).holds is False
    assert monotone("it", sweep, [[4, 3, 2, 1], [5, 3, 2, 1]], rising=False).holds is True
    assert monotone("it", sweep, [[1, 1, 1, 1]], rising=True).holds is None


def test_missing_numbers_decide_nothing() -> None:
    assert at_least("it", [1.0, math.nan], 0.0).holds is None
    assert at_least("it", [], 0.0).holds is None
    assert drops_late("it", Curve.of([0, 1, 2], [[1, math.nan, 0]])).holds is None


def test_the_largest_rise_has_a_valley_and_a_later_peak() -> None:
    assert largest_rise(np.array([5.0, 1.0, 3.0, 0.0, 9.0, 2.0])) == (3, 4)
    assert largest_rise(np.array([3.0, 2.0, 1.0])) == (2, 2)
    assert largest_rise(np.array([1.0, np.nan, 3.0])) == (0, 0)


def test_verdicts_follow_from_the_checks() -> None:
    yes, no = Check("a", rule="r", holds=True), Check("b", rule="r", holds=False)
    number = reported("c", [1.0, 2.0])
    assert verdict_of([yes, yes, number]) == "reproduced"
    assert verdict_of([yes, no]) == "partly"
    assert verdict_of([no, number]) == "not reproduced"
    assert verdict_of([untested("d", "too short"), number]) == "not testable at this scale"
    assert verdict_of([yes, untested("d", "too short")]) == "partly"
    assert verdict_of([no, untested("d", "too short")]) == "not reproduced"


def test_an_interval_is_above_what_nearly_all_resamples_exceed() -> None:
    draws = np.arange(1000.0)
    assert interval_above("r", 500.0, draws, 24.0).holds is True
    assert interval_above("r", 500.0, draws, 26.0).holds is False
    undecided = interval_above("r", 500.0, [1.0, math.nan], 0.0)
    assert undecided.holds is None and undecided.why
