"""What the commands on runs print and write."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from cases import mlp
from PIL import Image

import regionscope as rs
from regionscope.cli.commands import app
from regionscope.training import loop
from regionscope.training.config import Training


def recorded(path: str, steps: int, seed: int) -> None:
    """A run with a loss and one measure, as training writes it."""
    run = rs.Run.create(path, {"training": {"seed": seed}, "measures": {"local_rank": {}}})
    for step in range(steps):
        run.record(rs.Record(step, {"loss": step + seed}, {"train": {"local_rank": {"mean": 2.5, "stderr": 0.5}}}))
    run.close()


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_comparison_says_which_steps_it_leaves_out_and_what_is_a_mean(capsys: pytest.CaptureFixture[str]) -> None:
    for seed in (0, 4):
        recorded(f"runs/{seed}", 20, seed)
    app(["compare", "--column", "loss"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].split() == ["0", "2.0", "±", "2.0"] and lines[15].split()[1:] == ["21.0", "±", "2.0"]
    assert lines[16:] == [
        "14 of 20 steps; all of them with --lines 20, --json or --out FILE.csv",
        "2 seeds: the mean of 2 seeds ± its standard error over them",
    ]


def test_a_comparison_says_which_runs_repeat_a_seed(capsys: pytest.CaptureFixture[str]) -> None:
    for name, seed in (("a", 0), ("b", 0), ("c", 4)):
        recorded(f"runs/{name}", 2, seed)
    said = "not counted, since another run has the same settings and seed: runs/b\n"
    app(["compare", "--column", "loss"])
    shown = capsys.readouterr().out
    assert said in shown and "the mean of 2 seeds" in shown and "3 seeds" not in shown
    app(["compare", "--column", "loss", "--json"])
    printed = capsys.readouterr()
    assert printed.err == said and json.loads(printed.out)[0]["2 seeds/stderr"] == 2.0


def test_runs_of_a_users_own_loop_stay_apart(capsys: pytest.CaptureFixture[str]) -> None:
    points = {"train": torch.linspace(-1, 1, 8).reshape(4, 2)}
    for k in range(2):  # who knows with which learning rate
        with rs.Monitor(mlp(2, 3, 1), points, measures=["total_variation"], run=f"runs/{k}") as monitor:
            monitor(0, loss=2.0 * k)
    app(["compare", "--column", "loss"])
    shown = capsys.readouterr().out
    assert "runs/0" in shown and "runs/1" in shown and "mean" not in shown and "not counted" not in shown


def test_the_state_of_a_run_says_what_could_not_be_measured(capsys: pytest.CaptureFixture[str]) -> None:
    run = rs.Run.create("runs/mine", {})
    run.record(rs.Record(0))
    for step in (1, 2):
        run.record(rs.Record(step, errors={"train/local_rank": f"ValueError: no luck\nat step {step}"}))
    run.close()
    app(["status"])
    assert capsys.readouterr().out.splitlines()[-1] == (
        "runs/mine: train/local_rank could not be measured at 2 of 3 records: ValueError: no luck at step 1"
    )
    app(["status", "--json"])
    assert json.loads(capsys.readouterr().out)[0]["failures"] == {"train/local_rank": [1, 2]}
    many = rs.Run.create("runs/mine", {}, overwrite=True)
    many.record(rs.Record(0, errors={f"train/measure{k}": "ValueError: no luck" for k in range(7)}))
    many.close()
    app(["status"])
    assert capsys.readouterr().out.splitlines()[-1] == "runs/mine: 2 more could not be measured"


def test_the_state_of_a_killed_run_says_of_which_step_its_scores_are(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    take_step = loop._take_step

    def killed_at_20(*given: Any) -> float:
        if given[-1] == 20:
            raise KeyboardInterrupt
        return take_step(*given)

    monkeypatch.setattr(loop, "_take_step", killed_at_20)
    small = Training(size=50, test_size=20, depth=1, width=4, steps=40, records=3, measures=(), points=5)
    with pytest.raises(KeyboardInterrupt):
        loop.train(small, "runs/one", save_every=0)
    run = rs.Run.open("runs/one")
    last = run.steps[-1]
    assert last < run.status["step"] == 20, "it was saved after its last record"
    app(["status"])
    assert f"runs/one: loss and accuracies are those of step {last}" in capsys.readouterr().out
    app(["status", "--json"])
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["step"], found["scored"], found["loss"]) == (20, last, run.read(last).scalars["loss"])
    monkeypatch.setattr(loop, "_take_step", take_step)
    loop.resume("runs/one")
    app(["status"])
    assert "are those of step" not in capsys.readouterr().out


def test_a_comparison_is_drawn_or_written_as_rows(capsys: pytest.CaptureFixture[str]) -> None:
    recorded("runs/0", 3, 0)
    app(["compare", "--column", "loss", "--out", "loss.csv"])
    assert [row["runs/0"] for row in csv.DictReader(Path("loss.csv").read_text().splitlines())] == ["0.0", "1.0", "2.0"]
    app(["compare", "--column", "loss", "--out", "loss.png"])
    assert capsys.readouterr().out.endswith("\nwrote loss.png\n")
    with Image.open("loss.png") as picture:
        shades = picture.convert("L").getextrema()
    assert shades == (0, 255), "black ink on white"


def test_a_report_needs_a_kind_of_picture() -> None:
    recorded("runs/0", 1, 0)
    with pytest.raises(ValueError, match="--pictures must be followed by png, svg or pdf"):
        app(["report", "runs/0", "--pictures"])
    assert not Path("runs/0/report").exists()


def test_runs_without_records_have_nothing_to_export() -> None:
    recorded("runs/none", 0, 0)
    with pytest.raises(ValueError, match=r"nothing was recorded in runs/none yet"):
        app(["export", "runs"])


def test_one_run_at_a_time_becomes_a_page() -> None:
    recorded("runs/a", 2, 0)
    for command in (["runs/a", "runs/a", "--html", "a.html"], ["runs/a", "--html", "a.html", "--out", "a.csv"]):
        with pytest.raises(ValueError, match="--html is for one run, and without --out"):
            app(["export", *command])
    assert not Path("a.html").exists()


def test_a_demo_that_was_made_before_is_shown_again(capsys: pytest.CaptureFixture[str]) -> None:
    options = "--steps 2 --size 50 --test-size 20 --depth 1 --width 4 --points 5 --records 3 --quiet".split()
    app(["train", "demo/run", *options, "--measures", "total_variation"])
    app(["demo"])
    shown = capsys.readouterr().out
    assert "total variation" in shown and "finished at step 2 of 2" in shown
    assert "boundary crossings" not in shown, "it has none, and no phases of them"
    app(["demo", "--json"])
    printed = capsys.readouterr()
    assert json.loads(printed.out)["state"] == "finished" and "look at demo/curves.png" in printed.err
