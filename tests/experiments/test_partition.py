"""What the figures of PD are judged by: peaks and accuracies of grokking, densities on planes, rules on made curves."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from regionscope.experiments.findings import Curve, Evidence, verdict_of
from regionscope.experiments.length_maps import length_map
from regionscope.experiments.pd_grokking import half_way, peaks, share_of_rise
from regionscope.experiments.pd_migration import relative_density
from regionscope.experiments.pd_mnist import PartitionSettings, crossings_named, partition_networks
from regionscope.experiments.registry import EXPERIMENTS
from regionscope.geometry.plane_cells import plane_cells
from regionscope.geometry.planes import Plane

STEPS = np.array([0.0, 1e1, 1e2, 1e3, 1e4, 5e4, 1e5])


def curve(*values: float) -> Curve:
    return Curve.of(STEPS, [values, values])


def test_length_maps_hold_the_length_of_all_boundaries_where_they_are() -> None:
    first = nn.Linear(2, 2)
    with torch.no_grad():
        first.weight.copy_(torch.tensor([[1.0, 0.0], [1.0, -1.0]]))
        first.bias.copy_(torch.tensor([-0.375, 0.0]))  # the lines x = 0.375 and x = y
    model = nn.Sequential(first, nn.ReLU(), nn.Linear(2, 2))
    cells = plane_cells(model, Plane.coordinates(torch.zeros(2), radius=1.0))
    lengths = length_map(cells, 8)
    assert lengths.sum() == pytest.approx(8 + 8 * 2**0.5)
    assert lengths[0, 5] == pytest.approx(1.0), "upright, in the sixth column"
    assert lengths[2, 2] == pytest.approx(2**0.5)
    assert lengths[7, 0] == 0.0


def test_relative_density_is_a_multiple_of_the_whole_and_zero_where_there_is_nothing() -> None:
    near, whole = np.array([[4.0, 2.0], [0.0, 0.0], [1.0, 1.0]]), np.array([[10.0, 10.0], [10.0, 10.0], [0.0, 10.0]])
    assert relative_density(near, whole)[:2].tolist() == [2.0, 0.0]


def test_peaks_stand_out_and_are_not_at_the_ends() -> None:
    assert peaks(np.array([9.0, 1.0, 5.0, 2.0, 4.0, 1.0, 6.0])).tolist() == [2, 4]
    assert peaks(np.array([0.0, 5.0, 4.9, 5.1, 1.0])).tolist() == [3]
    assert len(peaks(np.array([3.0, 2.0, 1.0]))) == 0


def test_accuracies_rise_by_shares() -> None:
    accuracy = np.array([0.1, 0.3, 0.5, 0.9])
    assert share_of_rise(accuracy, 2) == pytest.approx(0.5)
    assert half_way(np.arange(4.0), accuracy) == 2.0
    assert np.isnan(share_of_rise(np.ones(3), 1))


def test_the_depth_of_the_paper_counts_the_last_layer_and_wide_networks_may_have_fewer_steps() -> None:
    settings = PartitionSettings(depths=(3,), widths=(20, 500), wide_steps=10)
    found = partition_networks(settings)
    assert list(found) == ["width 20", "width 500"]
    assert [(t.depth, t.steps) for (t,) in found.values()] == [(2, 1_000_000), (2, 10)]


def judged(name: str, settings: PartitionSettings, train: dict[str, Curve], others: dict[str, Curve]) -> str:
    """The verdict on crossings around training points by name of the network; half as many around test points."""
    radius, curves = settings.radii[0], dict(others)
    for network, crossings in train.items():
        for probe, factor in (("train", 1.0), ("test", 0.5), ("random", 0.5)):
            curves[crossings_named(network, radius, probe)] = Curve(crossings.x, factor * crossings.runs)
    return verdict_of(EXPERIMENTS[name].checks(settings, Evidence(curves)))


def test_grokking_is_judged_both_ways() -> None:
    settings = replace(EXPERIMENTS["pd8"].scales["laptop"], depths=(4,))
    memorised = {"depth 4, train accuracy": curve(0.1, 0.5, 1, 1, 1, 1, 1)}
    twice = {"depth 4": curve(1, 2, 6, 3, 5, 2, 1)}
    late = {"depth 4, test accuracy": curve(0.1, 0.1, 0.1, 0.2, 0.2, 0.7, 0.9)}
    early = {"depth 4, test accuracy": curve(0.1, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9)}
    assert judged("pd8", settings, twice, memorised | late) == "reproduced"
    assert judged("pd8", settings, twice, memorised | early) == "partly"
    slow = {"depth 4, train accuracy": curve(0.1, 0.1, 0.1, 0.2, 0.2, 0.9, 1)}
    only_rises = {"depth 4": curve(1, 2, 3, 4, 5, 6, 7)}
    assert judged("pd8", settings, only_rises, slow | early) == "not reproduced"


def test_what_depth_does_to_grokking_is_judged_both_ways() -> None:
    settings = replace(EXPERIMENTS["pd8"].scales["laptop"], depths=(3, 4, 5))
    names, verdicts = list(partition_networks(settings)), []
    for order in (1, -1):
        train = {
            n: curve(*(k * np.array([1, 2, 6, 3, 5, 2, 1]))) for n, k in zip(names, (1, 2, 3)[::order], strict=True)
        }
        late = [(0.1, 0.1, 0.1, 0.1, 0.9, 0.9, 0.9), (0.1,) * 5 + (0.9, 0.9), (0.1,) * 6 + (0.9,)]
        ends = {f"{n}, test accuracy": curve(*values) for n, values in zip(names, late[::order], strict=True)}
        memorised = {f"{n}, train accuracy": curve(0.1, 0.5, 1, 1, 1, 1, 1) for n in names}
        curves = {crossings_named(n, settings.radii[0], "train"): c for n, c in train.items()} | ends | memorised
        *_, highest, step = EXPERIMENTS["pd8"].checks(settings, Evidence(curves))
        assert "highest crossings" in highest.words and "half of its way" in step.words
        verdicts.append((highest.holds, step.holds))
    assert verdicts == [(True, True), (False, False)]


# a double descent; what falls and rises once; and what does neither
DOUBLE, ONCE, FLAT = (5, 3, 2, 8, 4, 2, 1), (5, 3, 2, 4, 6, 7, 8), (3, 3, 3, 3, 3, 3, 3)


def test_what_depth_does_to_crossings_is_judged_both_ways() -> None:
    """Test points see less of the ascent, least when shallow; the shallowest network keeps rising at a fine radius."""
    settings = replace(EXPERIMENTS["pd3"].scales["laptop"], depths=(3, 4, 5), radii=(0.005, 0.5))
    names = list(partition_networks(settings))
    cases = {
        "reproduced": (ONCE, DOUBLE, (0.2, 0.5, 0.8)),
        "not reproduced": (DOUBLE, FLAT, (2.0, 3.0, 4.0)),
    }
    for verdict, (shallow, others, seen) in cases.items():
        curves = {}
        for radius in settings.radii:
            for name, share in zip(names, seen, strict=True):
                coarse = others if verdict == "reproduced" else ONCE
                shape = np.array((shallow if radius == 0.005 else coarse) if name == names[0] else others, float)
                curves[crossings_named(name, radius, "train")] = curve(*shape)
                curves[crossings_named(name, radius, "test")] = curve(*(2 + share * (shape - 2)))
        checks = EXPERIMENTS["pd3"].checks(settings, Evidence(curves))
        assert verdict_of(checks) == verdict, [(check.words, check.holds) for check in checks]


def test_random_labels_are_judged_both_ways() -> None:
    settings = replace(EXPERIMENTS["pd11"].scales["laptop"], sizes=(1000, 4000, 16_000))
    names = list(partition_networks(settings))
    shapes = [(5, 3, 2, 4, 3, 2, 1), (5, 4, 3, 4, 6, 2, 1), (5, 4, 3, 3, 4, 9, 1)]  # higher, and later
    for order, verdict in ((1, "reproduced"), (-1, "not reproduced")):
        train = {n: curve(*shape) for n, shape in zip(names, shapes[::order], strict=True)}
        ends = {f"{n}, train accuracy": curve(0, 0, 0, 0, 0, 0, 1) for n in names}
        ends |= {f"{n}, test accuracy": curve(0, 0, 0, 0, 0, 0, 0.1) for n in names}
        assert judged("pd11", settings, train, ends) == verdict


def test_crossings_with_gelu_are_judged_both_ways() -> None:
    settings = EXPERIMENTS["pd13"].scales["laptop"]
    for shape, verdict in ((DOUBLE, "reproduced"), (ONCE, "partly"), (FLAT, "not reproduced")):
        train = {n: curve(*shape) for n in partition_networks(settings)}
        assert judged("pd13", settings, train, {}) == verdict


def test_counts_of_regions_are_judged_both_ways() -> None:
    """Counts that rise and fall with crossings, and such that do the opposite."""
    settings = replace(EXPERIMENTS["pd14"].scales["laptop"], radii=(0.05,))
    crossings = np.array(DOUBLE, float)
    for regions, verdict in ((1 + crossings**2, "reproduced"), (20 - crossings, "partly")):
        curves = {"crossings, r = 0.05": curve(*crossings), "regions, r = 0.05": curve(*regions)}
        checks = EXPERIMENTS["pd14"].checks(settings, Evidence(curves))
        assert verdict_of(checks) == verdict
        assert checks[0].holds == (verdict == "reproduced")


def test_where_boundaries_go_is_judged_both_ways() -> None:
    settings = EXPERIMENTS["pd1"].scales["laptop"]
    (name,) = partition_networks(settings)
    falling, rising = (1, 1, 1, 2, 2, 1.5, 1), (1, 1, 1, 2, 2, 2.5, 3)  # densities; crossings peak at the fourth
    places = ("around the images", "around the decision boundary")
    for shape, densities, verdict in (
        (DOUBLE, (falling, rising), "reproduced"),
        (FLAT, (rising, falling), "not reproduced"),
        (DOUBLE, ((0,) * 7, rising), "partly"),  # a density of nothing has no change
    ):
        curves = {p: curve(*values) for p, values in zip(places, densities, strict=True)}
        curves[crossings_named(name, settings.radii[0], "train")] = curve(*shape)
        assert verdict_of(EXPERIMENTS["pd1"].checks(settings, Evidence(curves))) == verdict


def test_layers_are_judged_both_ways() -> None:
    """Peaks lower with depth; test is half of train in the first layer, and like it in the last, or twice as much."""
    settings = replace(EXPERIMENTS["pd15"].scales["laptop"], depths=(4,), radii=(0.05,))
    peak = [8.0, 5.0, 3.0]
    cases = (
        (1, (0.5, 0.8, 1.0), "reproduced"),
        (1, (0.5, 1.0, 2.0), "partly"),
        (-1, (1.0, 0.8, 0.5), "not reproduced"),
    )
    for order, test, verdict in cases:
        train = {f"layer {k}": curve(5, 3, 2, p, 2, 1, 1) for k, p in enumerate(peak[::order], start=1)}
        others = {
            crossings_named(name, 0.05, "test"): Curve(c.x, factor * c.runs)
            for (name, c), factor in zip(train.items(), test, strict=True)
        }
        curves = {crossings_named(name, 0.05, "train"): c for name, c in train.items()} | others
        assert verdict_of(EXPERIMENTS["pd15"].checks(settings, Evidence(curves))) == verdict


def test_the_effect_of_images_is_judged_both_ways() -> None:
    settings = replace(EXPERIMENTS["pd10"].scales["laptop"], sizes=(1000, 4000, 16_000))
    names = list(partition_networks(settings))
    accuracies = [0.8, 0.9, 0.95]
    peak = [8.0, 4.0, 2.5]
    for order, verdict in ((1, "reproduced"), (-1, "not reproduced")):
        train = {n: curve(5, 3, 2, p, 2, 1, 1) for n, p in zip(names, peak[::order], strict=True)}
        ends = {
            f"{n}, test accuracy": curve(0, 0, 0, 0, 0, 0, a) for n, a in zip(names, accuracies[::order], strict=True)
        }
        assert judged("pd10", settings, train, ends) == verdict


def test_the_peak_beyond_a_thousand_units_is_untested_without_such_a_network() -> None:
    settings = EXPERIMENTS["pd6"].scales["paper"]
    names = list(partition_networks(settings))
    train = {n: curve(1, 0.5, 0.5, p, 1, 1, 1) for n, p in zip(names, (1, 2, 3, 4, 3), strict=True)}
    evidence = {crossings_named(n, settings.radii[0], "train"): c for n, c in train.items()}
    assert EXPERIMENTS["pd6"].checks(settings, Evidence(evidence))[-1].holds
    narrower = replace(settings, widths=settings.widths[:-1])
    assert EXPERIMENTS["pd6"].checks(narrower, Evidence(evidence))[-1].why == "the widest network has 1000 units"
