"""What all experiments keep to, run at the scale of seconds."""

import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest

from regionscope.experiments.experiment import SCALES, Experiment, findings
from regionscope.experiments.findings import VERDICTS, Findings
from regionscope.experiments.lab import Lab
from regionscope.experiments.registry import EXPERIMENTS, PAPERS, experiments_named
from regionscope.experiments.settings import settings_from_plain, settings_hash, settings_to_plain

matplotlib.use("agg")


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    return Lab(tmp_path_factory.mktemp("lab"))


def told(found: Findings) -> dict[str, Any]:
    """All of it but how long it took, as JSON has it."""
    stored: dict[str, Any] = json.loads(json.dumps(replace(found, seconds=0.0).to_dict(), default=np.ndarray.tolist))
    return stored


@pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=list(EXPERIMENTS))
def test_an_experiment_runs_judges_draws_and_comes_back_from_disk(
    experiment: Experiment[Any], lab: Lab, tmp_path: Path
) -> None:
    found = findings(experiment, "smoke", lab)
    assert found.verdict in VERDICTS
    assert any(check.rule for check in found.checks), "something is judged"
    assert all(check.why for check in found.checks if check.rule and check.holds is None), "or it is said why not"
    found.save(tmp_path / "found.json")
    again = Findings.load(tmp_path / "found.json")
    assert told(again) == told(found)
    assert {name: a.tobytes() for name, a in again.evidence.arrays.items()} == {
        name: np.asarray(a).tobytes() for name, a in found.evidence.arrays.items()
    }
    figure = experiment.draw(again)
    drawn = [ax for ax in figure.axes if ax.lines or ax.collections or ax.images or ax.patches]
    assert drawn, "the figure shows something"
    figure.savefig(tmp_path / "figure.png", dpi=50)
    plt.close("all")
    assert told(findings(experiment, "smoke", lab)) == told(found), "what is there is taken as it is"


@pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=list(EXPERIMENTS))
def test_settings_of_all_scales_are_of_one_kind_and_go_to_json_and_back(experiment: Experiment[Any]) -> None:
    assert tuple(experiment.scales) == SCALES
    assert len({type(settings) for settings in experiment.scales.values()}) == 1
    for settings in experiment.scales.values():
        stored = json.loads(json.dumps(settings_to_plain(settings)))
        assert settings_from_plain(type(settings), stored) == settings
        assert "seeds" in {field.name for field in fields(settings)}
        tasks = [settings_hash(t) for t in experiment.trainings(settings)] + [
            p.name for p in experiment.measurements(settings)
        ]
        assert len(set(tasks)) == len(tasks), "no two tasks are one"
    assert experiment.settings("smoke", 1).seeds == (0,)
    assert experiment.claim.endswith(".") and experiment.title


def test_experiments_are_found_by_name_by_paper_and_all_together() -> None:
    assert [e.name for e in experiments_named(("all",))] == list(EXPERIMENTS)
    assert {e.name.rstrip("0123456789") for e in experiments_named(("all",))} <= set(PAPERS)
    assert experiments_named(("hr5", "hr")) == experiments_named(("hr",))
    with pytest.raises(ValueError, match="there is no experiment 'lc99'; there are all, lc, hr"):
        experiments_named(("lc99",))
