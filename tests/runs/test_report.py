"""What a report draws of a run."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from matplotlib.colors import to_rgb
from torch import nn

import regionscope as rs
from regionscope.files import write_figure
from regionscope.plots.style import HUES
from regionscope.runs import report
from regionscope.runs.record import Record
from regionscope.runs.report import _curves_figure, _place_in_legend, _planes_figure, summary, write_report


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> rs.Run:
    plt.switch_backend("agg")
    config = rs.Training(
        depth=2, width=8, steps=40, records=8, points=5, plane=True, size=100,
        measures=("boundary_crossings", "local_rank"),
    )  # fmt: skip
    return rs.train(config, tmp_path_factory.mktemp("runs") / "short")


def test_curves_have_a_panel_a_measure_and_a_hue_a_probe(run: rs.Run) -> None:
    figure = _curves_figure(run)
    labels = [
        "boundary crossings\nsum over layers,\nradius 0.05,\ndirections 25",
        "local rank\nsum over layers,\neps 0.1",
    ]
    assert [ax.get_ylabel() for ax in figure.axes] == [*labels, "loss", "accuracy"]
    rows = run.rows()
    for ax in figure.axes[:2]:
        assert ax.get_legend() is None
        measure = ax.get_ylabel().split("\n")[0].replace(" ", "_")
        for line in ax.lines:
            probe = str(line.get_label())
            if probe in HUES:
                assert to_rgb(line.get_color()) == to_rgb(HUES[probe])
                np.testing.assert_array_equal(line.get_ydata(), [row[f"{probe}/{measure}"] for row in rows])
        assert {str(line.get_label()) for line in ax.lines} >= {"train", "test"}
    assert {"train accuracy", "test accuracy"} <= {str(line.get_label()) for line in figure.axes[3].lines}
    (legend,) = figure.legends
    names = [text.get_text() for text in legend.get_texts()]
    assert names[:2] == ["train", "test"] and names[-1] == "± one standard error over points"
    assert len(set(names)) == len(names)
    plt.close(figure)


def test_planes_show_their_images_and_one_legend(run: rs.Run) -> None:
    figure = _planes_figure(run)
    panels = [ax for ax in figure.axes if ax.get_title()]
    assert len(panels) == 6 and all(len(ax.child_axes) == 3 and ax.get_legend() is None for ax in panels)
    (legend,) = figure.legends
    names = [text.get_text() for text in legend.get_texts()]
    assert names[:3] == ["layer 1", "layer 2", "decision boundary"] and names[3].startswith("class")
    assert len(set(names)) == len(names)
    last = run.plane(run.steps[-1], run.planes(run.steps[-1])[0])
    assert panels[-1].get_title() == f"step {run.steps[-1]:,}: {len(last):,} regions"
    plt.close(figure)


@pytest.mark.parametrize("panels", [1, 2, 3, 6])
def test_titles_of_planes_are_whole(run: rs.Run, panels: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "PLANES", panels)
    figure = _planes_figure(run)
    write_figure(figure, tmp_path / "planes.png", dpi=150)
    plt.close(figure)
    shades = plt.imread(tmp_path / "planes.png")[..., :3].min(axis=2)
    assert shades[:2].min() == 1.0 and shades.min() < 0.1, "white above the titles"


def test_pictures_are_written_in_the_kinds_asked_for(run: rs.Run, tmp_path: Path) -> None:
    files = write_report(run, tmp_path, pictures=("svg", "pdf"))
    assert [file.name for file in files] == ["curves.svg", "curves.pdf", "planes.svg", "planes.pdf", "report.md"]
    assert "![curves](curves.svg)" in (tmp_path / "report.md").read_text()
    assert "<!-- local rank" in (tmp_path / "curves.svg").read_text()
    assert (tmp_path / "planes.pdf").read_bytes().startswith(b"%PDF")
    assert not plt.get_fignums()


def test_the_table_says_what_it_leaves_out(run: rs.Run, tmp_path: Path) -> None:
    notes = summary(run).partition("\n\n")[2].splitlines()
    assert [notes[0], *notes[-2:]] == [
        "measures are means at the probe 'train'; those at test, uniform are left out",
        "- local rank, sum over layers, eps 0.1",
        f"all numbers: regionscope export {run.path}",
    ]
    long = rs.Run.create(tmp_path / "long", {})
    for step in range(40):
        long.record(rs.Record(step, {"loss": 1.0}, {}))
    shown = summary(long).splitlines()
    assert [int(line.split()[0]) for line in shown[1:15]] == list(range(0, 40, 3)), "both ends, evenly"
    assert shown[15:] == [
        "",
        "14 of 40 records, evenly chosen; 26 are left out",
        f"all numbers: regionscope export {long.path}",
    ]


def test_the_table_of_a_run_without_training_points_has_its_measures(tmp_path: Path) -> None:
    run = rs.Run.create(tmp_path / "run", {})
    run.record(rs.Record(3, {}, {"grid": {"local_rank": {"mean": 2.5, "stderr": None}}}))
    assert summary(run).splitlines() == ["step  local rank", "3     2.5", "", "measures are means at the probe 'grid'"]


def test_planes_with_nothing_to_name_have_no_legend(tmp_path: Path) -> None:
    plane = rs.Plane.coordinates(torch.zeros(2))
    with rs.Monitor(nn.Linear(2, 1), {"x": torch.zeros(3, 2)}, measures=[], planes={"p": plane}, run=tmp_path) as watch:
        watch(0)
    figure = _planes_figure(rs.Run.open(tmp_path))
    assert [ax.get_title() for ax in figure.axes if ax.get_title()] == ["step 0: 1 region"]
    assert not figure.legends
    plt.close(figure)


def test_layers_and_classes_stand_in_a_legend_by_their_numbers() -> None:
    names = ["class 10", "layer 10", "decision boundary", "layer 2", "class 9"]
    ordered = ["layer 2", "layer 10", "decision boundary", "class 9", "class 10"]
    assert sorted(names, key=_place_in_legend) == ordered


def test_a_report_draws_the_error_of_robust_accuracy_and_names_its_options(tmp_path: Path) -> None:
    x, y = torch.rand(6, 3), torch.arange(6) % 2
    options = {"robust_accuracy": {"radius": 0.25}}
    with rs.Monitor(nn.Linear(3, 2), {"train": (x, y)}, measures=options, run=tmp_path / "run") as watch:
        for step in range(3):
            watch(step)
    run = rs.Run.open(tmp_path / "run")
    figure = _curves_figure(run)
    assert figure.axes[-1].collections, "a band"
    plt.close(figure)
    write_report(run, tmp_path / "report")
    page = (tmp_path / "report" / "report.md").read_text()
    assert f"\n- {run.label('robust_accuracy')}" in summary(run) in page and "radius 0.25" in page


def test_a_report_lists_what_could_not_be_measured(run: rs.Run, tmp_path: Path) -> None:
    failing = rs.Run.create(tmp_path / "failing", {})
    failing.record(rs.Record(0, {"loss": 1.0}))
    for step in range(1, 15):
        errors = {"train/local_rank": f"ValueError: no luck\nat {'all' if step > 2 else step}"}
        failing.record(rs.Record(step, {"loss": 1.0}, errors=errors))
    write_report(failing, tmp_path / "report")
    page = (tmp_path / "report" / "report.md").read_text()
    assert page.split("## What could not be measured\n\n```\n")[1].split("\n```")[0].splitlines() == [
        "train/local_rank at step 1: ValueError: no luck at 1",
        "train/local_rank at step 2: ValueError: no luck at 2",
        "train/local_rank at steps 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 and 2 more: ValueError: no luck at all",
    ]
    write_report(run, tmp_path / "whole")
    assert "## What could not be measured\n\n```\nnothing\n```" in (tmp_path / "whole" / "report.md").read_text()


def test_numbers_of_the_loop_with_a_slash_in_their_name_are_no_measures(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 2))
    with rs.Monitor(model, {"x": torch.randn(4, 2)}, measures=["total_variation"], run=tmp_path / "run") as monitor:
        for step in range(3):
            monitor(step, **{"val/loss": 0.5})
    run = rs.Run.open(tmp_path / "run")
    assert run.places == [("x", "total_variation")]
    assert "means at the probe 'x'" in summary(run) and "val" not in summary(run)
    figure = _curves_figure(run)
    assert [ax.get_ylabel() for ax in figure.axes] == ["total variation"]
    plt.close(figure)


def test_phases_are_marked_in_every_panel_whatever_its_measure_is_called(tmp_path: Path) -> None:
    run = rs.Run.create(tmp_path / "run", {})
    for k in range(8):
        means = {"boundary_crossings": abs(k - 3.0), "boundary crossings, mine": 1.0}
        probes = {"train": {name: {"mean": mean, "stderr": 0.1} for name, mean in means.items()}}
        run.record(Record(10 * k, {"loss": 1.0}, probes))
    run.close()
    figure = _curves_figure(run)
    spans = [len(ax.patches) for ax in figure.axes]
    assert len(spans) == 3 and spans[0] > 0 and len(set(spans)) == 1
    assert figure.axes[1].get_ylabel().replace("\n", " ") == "boundary crossings, mine"
    plt.close("all")
