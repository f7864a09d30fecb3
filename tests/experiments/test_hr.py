"""The figures of HR: what they build and measure on networks with known answers, and rules that say no."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from regionscope.experiments.experiment import findings
from regionscope.experiments.findings import Check, Curve, Evidence
from regionscope.experiments.hr_layers import boundary_turns
from regionscope.experiments.hr_lines import epochs_at
from regionscope.experiments.hr_sawtooth import sawtooth, teeth
from regionscope.experiments.lab import Lab
from regionscope.experiments.registry import EXPERIMENTS
from regionscope.geometry.line_cells import line_cells
from regionscope.geometry.plane_cells import plane_cells
from regionscope.geometry.planes import Plane
from regionscope.training.models import mlp


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    return Lab(tmp_path_factory.mktemp("lab"))


@pytest.mark.parametrize(("name", "words"), [("hr5", "regions per unit at the start"), ("hr8", "regions / units²")])
def test_the_number_of_regions_has_the_papers_order_in_smoke_runs(name: str, words: str, lab: Lab) -> None:
    judged = [check for check in findings(EXPERIMENTS[name], "smoke", lab).checks if check.rule]
    checks = [check for check in judged if check.words.startswith(words)]
    assert len(checks) >= 2
    assert all(check.holds for check in checks), checks


def test_epochs_are_passes_over_the_training_set() -> None:
    assert epochs_at([0, 9375], "mnist").tolist() == [0.0, 20.0]
    assert epochs_at([1000 / 128], "mnist-sample").tolist() == [1.0]


# figure 2


def bending() -> nn.Module:
    """A unit of the second layer with the boundary y = 1/2 - relu(x): it bends at x = 0, and is straight at y = 0."""
    model = mlp([2, 3, 1, 1])
    first, second = (layer for layer in model if isinstance(layer, nn.Linear) and layer.in_features > 1)
    first.weight.data = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    second.weight.data, second.bias.data = torch.tensor([[1.0, 1.0, -1.0]]), torch.tensor([-0.5])
    first.bias.data.zero_()
    return model


def test_a_boundary_turns_where_an_earlier_layer_changes_its_gradient() -> None:
    layer, earlier, bent = boundary_turns(plane_cells(bending(), Plane.coordinates(torch.zeros(2), radius=1.0)))
    assert not earlier[layer == 1].any() and not bent[layer == 1].any()
    assert earlier[layer == 2].tolist() == [True, True]
    assert sorted(bent[layer == 2].tolist()) == [False, True]


# figure 3


@pytest.mark.parametrize("power", [0, 1, 4, 7])
def test_the_sawtooth_has_exponentially_many_teeth(power: int) -> None:
    model = sawtooth(power)
    cells = line_cells(model, *torch.tensor([[0.0], [1.0]], dtype=torch.float64))
    assert teeth(cells.corner_outputs[:, 0]) == 2**power
    assert cells.functional_count() == 2 ** (power + 1)
    assert sum(layer.out_features for layer in model if isinstance(layer, nn.Linear)) == 3 * power + 4


# rules, both ways

EPOCHS = [0.0, 0.1, 1.0, 5.0, 20.0]
FALLS_THEN_RISES = [1.0, 0.7, 0.6, 0.8, 0.9]
RISES_THEN_FALLS = [1.0, 1.5, 1.9, 1.7, 1.4]
ONLY_RISES = [1.0, 1.1, 1.2, 1.3, 1.4]
ONLY_FALLS = ONLY_RISES[::-1]


def over_epochs(values: list[float], factor: float = 1.0) -> Curve:
    return Curve.of(EPOCHS, factor * np.outer([0.99, 1.0, 1.01], values))


def lines(values: list[float], start: float = 1.0) -> Evidence:
    return Evidence({"a": over_epochs(values, start)}, {"test_accuracy": np.full((1, 3), 0.97)})


def pieces(left: float) -> Evidence:
    exact = np.array([64, 32, 19])
    curves = {name: Curve.of([0.05], np.full((3, 1), left)) for name in ("linear pieces", "teeth")}
    return Evidence(curves, {"exact": exact, "counts": left * np.tile(exact[:2], (3, 1))})


def distances(values: list[float], *, factor: float = 1.0, apart: float = 1.0) -> Evidence:
    """Of two networks that differ by a factor, and training and test points that do."""
    curves = {}
    for name, times in {"depth 2, width 8": 1.0, "depth 4, width 8": factor}.items():
        for kind, more in {"random": 1.0, "train": apart, "test": 1.0, "accuracy": 1.0}.items():
            curves[f"{name}: {kind}"] = over_epochs(values, times * more)
    return Evidence(curves)


def logarithms(width: float, shift: float, stretch: float = 1.0) -> Evidence:
    before = np.array([-4.0, -2.3, -2.0, -1.7, -4.0 + width])
    after = shift - 2.0 + stretch * (before + 2.0)
    return Evidence(arrays={"quantiles": np.tile([before, after], (3, 1, 1))})


def plane(values: list[float], start: float) -> Evidence:
    return Evidence({"regions / units²": over_epochs(values, start)}, {"wide": np.full((3, 2), start)})


def surfaces(bent: float, regions: float) -> Evidence:
    """As many regions as that times the units, or their square, of 48 units."""
    numbers = {"bent": bent, "regions": regions, "functional": regions}
    return Evidence(arrays={name: np.full(3, value) for name, value in numbers.items()})


def turns(first: float, later: float, elsewhere: float) -> Evidence:
    return Evidence(arrays={
        "bent": np.tile([first, 0.5, 0.7], (3, 1)), "bent_at_earlier": np.tile([np.nan, later, later], (3, 1)),
        "bent_elsewhere": np.full(3, elsewhere), "regions": np.tile([9, 20, 40], (3, 1)),
    })  # fmt: skip


@pytest.mark.parametrize(
    ("name", "holding", "failing"),
    [
        ("hr1", surfaces(1e-15, 1200), surfaces(1e-3, 50_000)),
        ("hr2", turns(0.0, 1.0, 0.0), turns(0.1, 0.5, 0.1)),
        ("hr4", surfaces(1e-15, 50), surfaces(1e-3, 500)),
        ("hr5", lines(FALLS_THEN_RISES), lines(ONLY_RISES, start=1.5)),
        ("hr6", distances(RISES_THEN_FALLS), distances(ONLY_FALLS, factor=3.0, apart=2.0)),
        ("hr7", logarithms(4.0, 0.1), logarithms(2.0, -0.5, stretch=1.4)),
        ("hr8", plane(FALLS_THEN_RISES, 0.5), plane(ONLY_FALLS, 0.01)),
    ],
)
def test_rules_hold_and_fail_as_they_should(name: str, holding: Evidence, failing: Evidence) -> None:
    def rules(evidence: Evidence) -> list[Check]:
        return [check for check in experiment.checks(settings, evidence) if check.rule]

    experiment: Any = EXPERIMENTS[name]
    settings = replace(experiment.scales["laptop"], seeds=(0, 1, 2))
    assert all(check.holds for check in rules(holding)), rules(holding)
    assert sum(check.holds is False for check in rules(failing)) >= 2, rules(failing)


def test_a_sawtooth_that_keeps_its_pieces_is_not_called_ruined() -> None:
    experiment = EXPERIMENTS["hr3"]
    outcomes = {
        left: [check.holds for check in experiment.checks(experiment.scales["laptop"], pieces(left)) if check.rule]
        for left in (0.25, 0.75)
    }
    assert outcomes == {0.25: [True] * 4, 0.75: [True, True, False, False]}
