"""The command line, as a user starts it."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest
import torch
from cases import mlp

import regionscope as rs
from regionscope.checkpoints import save_mlp
from regionscope.cli import app

COMMAND = Path(sys.executable).with_name("regionscope")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([COMMAND, *arguments], capture_output=True, text=True, timeout=120, check=False)


def test_the_demo_trains_watches_and_reports(tmp_path: Path) -> None:
    for _ in range(2):  # the second time everything is there already
        result = run("demo", "--steps", "12", "--out", str(tmp_path))
        assert result.returncode == 0, result.stderr
        assert "boundary crossings" in result.stdout
        assert "finished at step 12 of 12" in result.stdout
        assert {"curves.png", "planes.png", "report.md", "run"} == {p.name for p in tmp_path.iterdir()}
    again = run("report", str(tmp_path / "run"), "--out", str(tmp_path / "again"))
    assert again.returncode == 0, again.stderr
    assert (tmp_path / "again" / "report.md").read_text() == (tmp_path / "report.md").read_text()


def test_regions_are_drawn_and_certified(tmp_path: Path) -> None:
    save_mlp(mlp(784, 12, 10), tmp_path / "net.safetensors")
    result = run(
        "regions",
        str(tmp_path / "net.safetensors"),
        "--out",
        str(tmp_path / "a.svg"),
        "--save",
        str(tmp_path / "a.npz"),
    )
    assert result.returncode == 0, result.stderr
    assert "certificate holds" in result.stdout
    assert (tmp_path / "a.svg").stat().st_size > 5000
    assert f"{len(rs.PlaneCells.load(tmp_path / 'a.npz'))} linear regions" in result.stdout


def test_regions_of_a_network_with_two_inputs_and_a_random_plane(tmp_path: Path) -> None:
    torch.save(mlp(2, 8, 3).state_dict(), tmp_path / "two.pt")
    result = run(
        "regions", str(tmp_path / "two.pt"), "--radius", "3", "--out", str(tmp_path / "a.png"), "--colour", "class"
    )
    assert "certificate holds" in result.stdout, result.stderr
    np.save(tmp_path / "points.npy", np.eye(5))
    save_mlp(mlp(5, 8, 3), tmp_path / "five.safetensors")
    options = ["--points", str(tmp_path / "points.npy"), "--around", "1", "--out", str(tmp_path / "b.png")]
    assert "certificate holds" in run("regions", str(tmp_path / "five.safetensors"), *options).stdout


def test_measures_are_a_table_and_a_file(tmp_path: Path) -> None:
    save_mlp(mlp(784, 12, 12, 10), tmp_path / "net.safetensors")
    for kind in ("json", "parquet"):
        out = tmp_path / f"measures.{kind}"
        result = run("measure", str(tmp_path / "net.safetensors"), "--count", "20", "--out", str(out))
        assert result.returncode == 0, result.stderr
        assert "local complexity" in result.stdout
        assert "layer 2" in result.stdout
    rows = json.loads((tmp_path / "measures.json").read_text())
    assert [row["name"] for row in rows][:3] == ["local complexity", "boundary crossings", "local rank"]
    columns = dict.fromkeys(name for row in rows for name in row)
    stored = pyarrow.parquet.read_table(tmp_path / "measures.parquet").to_pylist()
    assert stored == [columns | row for row in rows]
    count = run("measure", str(tmp_path / "net.safetensors"), "local_region_count", "--count", "5")
    assert "local region count" in count.stdout
    assert "there is no measure 'mood'" in run("measure", str(tmp_path / "net.safetensors"), "mood").stderr


def test_runs_are_trained_resumed_and_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = tmp_path / "runs"  # in this process: starting one takes longer than all of it
    options = "--steps 20 --depth 1 --width 8 --points 5 --records 4 --measures boundary_crossings".split()
    options += "--options.boundary_crossings.directions 3 --options.boundary_crossings.radius 0.1".split()
    app(["train", str(runs / "a"), *options])
    trained = capsys.readouterr().out
    assert "finished at step 20 of 20: loss" in trained
    record = rs.Run.open(runs / "a").read(20)
    assert "errors" not in record
    assert record["probes"]["uniform"]["boundary_crossings"]["mean"] >= 0
    app(["resume", str(runs / "a")])
    assert capsys.readouterr().out == trained
    with pytest.raises(rs.TrainingFailed, match="the loss is"):
        app(["train", str(runs / "b"), *options, *"--optimiser sgd --loss mse --lr 1e9".split()])
    app(["status", str(runs)])
    table = capsys.readouterr().out.splitlines()
    assert [line.split()[1] for line in table[1:3]] == ["finished", "failed"]
    assert "the loss is" in table[3]
    with pytest.raises(ValueError, match="there are no runs in"):
        app(["status", str(tmp_path / "nothing")])


def test_what_a_user_can_mend_is_said_in_one_line(tmp_path: Path) -> None:
    save_mlp(mlp(784, 12, 10), tmp_path / "net.safetensors")
    missing = run("regions", str(tmp_path / "no.safetensors"))
    assert missing.returncode == 1
    assert missing.stderr.startswith("regionscope: there is no checkpoint")
    stopped = run("regions", str(tmp_path / "net.safetensors"), "--max-cells", "3")
    assert stopped.returncode == 1
    assert "more than max_cells=3 cells" in stopped.stderr
    assert stopped.stderr.count("\n") == 1


def test_the_version_is_the_librarys() -> None:
    assert run("--version").stdout.strip() == rs.__version__


def test_an_unknown_command_fails() -> None:
    result = run("nonsense")
    assert result.returncode != 0
    assert "nonsense" in result.stdout + result.stderr


def test_bounds_print_both_forms_of_every_inequality(tmp_path: Path) -> None:
    save_mlp(mlp(784, 12, 10), tmp_path / "net.safetensors")
    out, plot = tmp_path / "b.json", tmp_path / "b.png"
    result = run(
        "bounds", str(tmp_path / "net.safetensors"), "--count", "10", "--out", str(out), "--plot", str(plot), "--terms"
    )
    assert result.returncode == 0, result.stderr
    assert "LC Thm 7 (13)" in result.stdout and "printed" in result.stdout and "C_bias" in result.stdout
    found = json.loads(out.read_text())
    assert all(row["holds"] is not False for row in found if not row["printed"])
    assert plot.stat().st_size > 5000
