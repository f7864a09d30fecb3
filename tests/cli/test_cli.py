"""The command line, in a process of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import httpx
import numpy as np
import pyarrow.parquet
import pytest
import torch
from cases import mlp
from processes import command
from torch import nn

import regionscope as rs
from regionscope.cli.commands import app
from regionscope.datasets.sets import mnist_sample
from regionscope.machine import bytes_in_words
from regionscope.training.checkpoints import Architecture, save_weights
from regionscope.training.models import cnn

COMMAND = Path(sys.executable).with_name("regionscope")


def saved(model: nn.Module, path: Path) -> Path:
    save_weights(model.state_dict(), path, Architecture("mlp", "relu"))
    return path


def test_the_demo_opens_its_run_in_the_explorer(tmp_path: Path) -> None:
    demo = [str(COMMAND), "demo", "--steps", "4", "--out", str(tmp_path), "--open"]
    quiet = {**os.environ, "BROWSER": "true"}  # the command `true` opens nothing
    with subprocess.Popen(demo, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=quiet) as process:
        try:
            assert process.stdout is not None
            address = next(line.split()[-1] for line in process.stdout if "http://127.0.0.1" in line)
            assert "regionscope" in httpx.get(address, follow_redirects=True, timeout=30).text
        finally:
            process.terminate()


def test_the_demo_trains_watches_and_reports(tmp_path: Path) -> None:
    for _ in range(2):  # the second time everything is there already
        result = command("demo", "--steps", "12", "--out", str(tmp_path))
        assert result.returncode == 0, result.stderr
        assert "boundary crossings" in result.stdout
        assert "finished at step 12 of 12" in result.stdout
        assert f"regionscope view {tmp_path}" in result.stdout
        assert {"curves.png", "planes.png", "report.md", "run"} == {p.name for p in tmp_path.iterdir()}
    again = command("report", str(tmp_path / "run"), "--out", str(tmp_path / "again"))
    assert again.returncode == 0, again.stderr
    assert (tmp_path / "again" / "report.md").read_text() == (tmp_path / "report.md").read_text()
    vector = command(
        "report", str(tmp_path / "run"), "--out", str(tmp_path / "vector"), "--pictures", "svg", "--pictures", "pdf"
    )
    assert vector.returncode == 0, vector.stderr
    names = {path.name for path in (tmp_path / "vector").iterdir()}
    assert names == {"curves.svg", "curves.pdf", "planes.svg", "planes.pdf", "report.md"}


def test_regions_are_drawn_and_certified(tmp_path: Path) -> None:
    torch.manual_seed(0)
    saved(mlp(784, 12, 10), tmp_path / "net.safetensors")
    result = command(
        "regions",
        str(tmp_path / "net.safetensors"),
        "--out",
        str(tmp_path / "a.svg"),
        "--save",
        str(tmp_path / "a.npz"),
    )
    assert result.returncode == 0, result.stderr
    assert "certificate holds" in result.stdout
    assert " s to cut and 1 s to certify\n" in result.stdout
    cells = rs.PlaneCells.load(tmp_path / "a.npz")
    assert f"{len(cells)} linear regions" in result.stdout
    picture = (tmp_path / "a.svg").read_text()
    svg = "{http://www.w3.org/2000/svg}"
    lines = [g for g in ElementTree.fromstring(picture).iter(f"{svg}g") if g.get("id", "").startswith("LineCollection")]
    drawn = [sum(path.get("d", "").count("M") for path in g.iter(f"{svg}path")) for g in lines]
    boundary = len(cells.decision_boundary().segments)
    assert boundary
    assert drawn == [(cells.edges.site >= 0).sum(), boundary, boundary]  # the latter with a rim
    assert picture.count("<image") == 3  # the digits that the plane passes through
    assert f"<!-- {len(cells)} linear regions -->" in picture and "<!-- decision boundary -->" in picture


def test_regions_of_a_network_with_two_inputs_and_a_random_plane(tmp_path: Path) -> None:
    torch.save(mlp(2, 8, 3).state_dict(), tmp_path / "two.pt")
    result = command(
        "regions", str(tmp_path / "two.pt"), "--model", "mlp", "--activation", "relu",
        "--radius", "3", "--out", str(tmp_path / "a.png"), "--colour", "class",
    )  # fmt: skip
    assert "certificate holds" in result.stdout, result.stderr
    np.save(tmp_path / "points.npy", np.eye(5))
    saved(mlp(5, 8, 3), tmp_path / "five.safetensors")
    options = ["--points", str(tmp_path / "points.npy"), "--around", "1", "--out", str(tmp_path / "b.png")]
    assert "certificate holds" in command("regions", str(tmp_path / "five.safetensors"), *options).stdout


MINE = """
from dataclasses import dataclass
from torch import nn
{sizes}

@dataclass
class Config:
    hidden: "int" = HIDDEN

def build() -> nn.Module:
    return nn.Sequential(nn.Linear(784, Config().hidden), nn.LeakyReLU(0.3), nn.Linear(Config().hidden, 10))
"""


def variation(path: Path, *options: str) -> float:
    """As the command measures it."""
    out = path.with_name("measures.json")
    app(["measure", str(path), "total_variation", "--count", "3", "--out", str(out), *options])
    return float(json.loads(out.read_text())[0]["mean"])


def true_variation(model: nn.Module) -> float:
    return rs.total_variation(model, mnist_sample("train")[0][:3].flatten(1)).mean


def test_a_function_of_the_user_builds_the_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "file.py").write_text(MINE.format(sizes="from beside import HIDDEN"))
    (folder / "beside.py").write_text("HIDDEN = 7")
    (folder / "module.py").write_text(MINE.format(sizes="HIDDEN = 7"))
    model = nn.Sequential(nn.Linear(784, 7), nn.LeakyReLU(0.3), nn.Linear(7, 10))
    torch.save(model.state_dict(), tmp_path / "net.pt")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in ("mine/file.py:build", str(folder / "file.py:build"), "mine.module:build"):
        assert variation(tmp_path / "net.pt", "--model", name) == true_variation(model)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ([], r"net.pt holds weights only, neither the order of the layers nor the activations .*--model"),
        (["--model", "mlp"], "weights do not tell their activation: give --activation, one of relu, leaky_relu"),
        (
            ["--activation", "relu"],
            "--activation and --shape go with --model mlp, cnn, resnet18, preact-resnet18, transformer only",
        ),
        (["--model", "nowhere:net", "--activation", "relu"], "--activation and --shape go with"),
        (["--model", "nowhere:net"], "--model nowhere:net cannot be imported: ModuleNotFoundError: .*'nowhere'"),
        (["--model", "no.py:net"], "cannot be imported: FileNotFoundError: there is no file no.py"),
        (["--model", "torch.nn:Nothing"], "--model torch.nn:Nothing: there is no 'Nothing' in torch.nn$"),
        (["--model", "vgg"], "there is no model 'vgg': --model must be mlp, cnn, .*, path/to/file.py:function or"),
        (["--model", "builtins:dict"], "model must return a torch.nn.Module, got dict"),
        (
            ["--model", "torch.nn:Linear"],
            "takes other --model-args: missing a required argument: 'in_features'",
        ),
        (["--model", "torch.nn:ReLU"], "does not fit the network: unexpected '0.weight', '0.bias', '2.weight'"),
        (["--model", "cnn", "--activation", "relu"], "a cnn needs the shape of its images too"),
        (["--model", "cnn", "--activation", "relu", "--shape", "1", "8", "8"], "holds too few weights for a cnn"),
    ],
)
def test_a_network_that_is_not_known_is_asked_for(options: list[str], match: str, tmp_path: Path) -> None:
    torch.save(mlp(784, 5, 10).state_dict(), tmp_path / "net.pt")
    with pytest.raises((ValueError, TypeError), match=match):
        app(["measure", str(tmp_path / "net.pt"), "total_variation", "--count", "3", *options])


def test_convolutional_networks_take_images_and_others_need_points(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    torch.save(cnn((1, 28, 28), 10, depth=2, width=2).state_dict(), tmp_path / "cnn.pt")
    options = "--model cnn --activation relu --shape 1 28 28".split()
    app(["measure", str(tmp_path / "cnn.pt"), "total_variation", "--count", "2", *options])
    assert "total variation" in capsys.readouterr().out
    path = saved(mlp(6, 5, 2), tmp_path / "six.safetensors")
    with pytest.raises(ValueError, match="the network does not take images of MNIST: give its inputs with --points"):
        app(["measure", str(path), "total_variation"])
    np.save(tmp_path / "points.npy", np.eye(6, dtype=np.uint8))
    app(["measure", str(path), "total_variation", "--points", str(tmp_path / "points.npy")])
    assert "6 points" in capsys.readouterr().out


def test_a_plan_is_printed_and_kept_to(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch.save(cnn((1, 28, 28), 10, depth=2, width=8).state_dict(), tmp_path / "cnn.pt")
    options = "--model cnn --activation relu --shape 1 28 28 --count 50".split()
    asked = [str(tmp_path / "cnn.pt"), "local_rank", "total_variation", *options]
    app(["measure", *asked, "--plan", "--seconds", "inf"])
    whole = capsys.readouterr()
    assert "s in all" in whole.out and "chosen to save time" in whole.out and "method random" not in whole.out
    app(["measure", *asked, "--plan", "--seconds", "0.001"])
    assert "more than the 0.001 s; as asked for it would take" in capsys.readouterr().out
    app(["measure", *asked, "--seconds", "0.001"])
    found = capsys.readouterr()
    assert "method random, points 2" in found.out and "local rank" in found.out and "estimated" in found.out
    app(["measure", str(tmp_path / "cnn.pt"), *options, "--seconds", "0.001"])
    plan, table = capsys.readouterr().out.split("s in all")
    assert plan.count("left out") == 7 and table.count("±") == 2 and "local rank" not in table  # one always stays


def test_checkpoints_of_training_runs_are_measured_as_they_are(tmp_path: Path) -> None:
    options = "--steps 2 --depth 1 --width 4 --activation hardtanh --points 5 --records 3 --measures total_variation"
    app(["train", str(tmp_path / "run"), *options.split()])
    found = variation(tmp_path / "run" / "steps" / "000000002" / "weights.safetensors")
    assert found == true_variation(rs.run_model(rs.Run.open(tmp_path / "run"), 2))


def test_measures_are_a_table_and_a_file(tmp_path: Path) -> None:
    saved(mlp(784, 12, 12, 10), tmp_path / "net.safetensors")
    for kind in ("json", "parquet"):
        out = tmp_path / f"measures.{kind}"
        result = command("measure", str(tmp_path / "net.safetensors"), "--count", "20", "--out", str(out))
        assert result.returncode == 0, result.stderr
        assert "local complexity" in result.stdout
        assert "layer 2" in result.stdout
    rows = json.loads((tmp_path / "measures.json").read_text())
    assert [row["name"] for row in rows][:3] == ["local complexity", "boundary crossings", "local rank"]
    columns = dict.fromkeys(name for row in rows for name in row)
    stored = pyarrow.parquet.read_table(tmp_path / "measures.parquet").to_pylist()
    assert [row | {"options": json.loads(row["options"])} for row in stored] == [columns | row for row in rows]
    count = command("measure", str(tmp_path / "net.safetensors"), "local_region_count", "--count", "5")
    assert "local region count" in count.stdout
    assert "there is no measure 'mood'" in command("measure", str(tmp_path / "net.safetensors"), "mood").stderr


def test_runs_are_trained_resumed_and_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = tmp_path / "runs"  # in this process: starting one takes longer than all of it
    options = "--steps 20 --depth 1 --width 8 --points 5 --records 4 --measures boundary_crossings".split()
    options += "--options.boundary_crossings.directions 3 --options.boundary_crossings.radius 0.1".split()
    app(["train", str(runs / "a"), *options])
    trained = capsys.readouterr().out
    assert "finished at step 20 of 20: loss" in trained
    record = rs.Run.open(runs / "a").read(20)
    assert not record.errors
    assert {name: found["boundary_crossings"]["n"] for name, found in record.probes.items()}["uniform"] == 5
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


def test_a_run_of_a_monitor_is_recorded_and_not_killed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    monitor = rs.Monitor(mlp(2, 4, 2), {"train": torch.randn(5, 2)}, measures=["good_units"], run=tmp_path / "mine")
    monitor(7, loss=0.5, test_accuracy=0.25)
    for state, close in (("running", monitor.close), ("recorded", None)):
        app(["status", str(tmp_path)])
        assert capsys.readouterr().out.splitlines()[1].split()[1:] == [state, "7", "1", "0.5", "0.25"]
        app(["status", str(tmp_path), "--json"])
        (told,) = json.loads(capsys.readouterr().out)
        shown = {"state": state, "step": 7, "records": 1, "loss": 0.5, "test_accuracy": 0.25}
        assert {name: told[name] for name in shown} == shown
        if close:
            close()


def test_what_a_user_can_mend_is_said_in_one_line(tmp_path: Path) -> None:
    saved(mlp(784, 12, 10), tmp_path / "net.safetensors")
    missing = command("regions", str(tmp_path / "no.safetensors"))
    assert missing.returncode == 1
    assert missing.stderr.startswith("regionscope: there is no checkpoint")
    stopped = command("regions", str(tmp_path / "net.safetensors"), "--max-cells", "3")
    assert stopped.returncode == 1
    assert "more than max_cells=3 cells" in stopped.stderr
    assert stopped.stderr.count("\n") == 1
    save_weights(
        cnn((1, 28, 28), 10).state_dict(), tmp_path / "cnn.safetensors", Architecture("cnn", "relu", (1, 28, 28))
    )
    np.save(tmp_path / "small.npy", np.zeros((2, 1, 8, 8)))
    small = command("measure", str(tmp_path / "cnn.safetensors"), "--points", str(tmp_path / "small.npy"))
    assert small.returncode == 1
    assert small.stderr.endswith(" (the model was called with one point of shape (1, 8, 8), as a batch of one)\n")


def test_without_a_size_as_much_of_the_plane_is_drawn_as_fits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    path = saved(mlp(784, 30, 30, 10), tmp_path / "net.safetensors")
    picture = tmp_path / "a.svg"
    asked = ["regions", str(path), "--out", str(picture), "--save", str(tmp_path / "a.npz")]
    app(asked)
    whole, said = rs.PlaneCells.load(tmp_path / "a.npz"), capsys.readouterr().out
    assert "expected by an estimate: about" in said and "middle" not in said + picture.read_text()
    monkeypatch.setattr("regionscope.plots.planes.MANY", len(whole) // 4)
    app(asked)
    part, said = rs.PlaneCells.load(tmp_path / "a.npz"), capsys.readouterr().out
    assert "so only its middle is looked at, 0." in said and "(--margin 0." in said
    assert part.plane.area < whole.plane.area and 1 < len(part) < len(whole) / 2
    share = np.sqrt(part.plane.area / whole.plane.area)
    assert f"only the middle of the plane, {share:.2g} of its side" in picture.read_text()
    app([*asked, "--margin", "1.2"])  # what is asked for is done
    assert len(rs.PlaneCells.load(tmp_path / "a.npz")) == len(whole)


def test_a_size_that_does_not_fit_is_refused_with_an_estimate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = saved(mlp(784, 30, 30, 10), tmp_path / "net.safetensors")

    def work(*_: object, **__: object) -> None:
        raise AssertionError("the work has begun")

    monkeypatch.setattr(rs, "plane_cells", work)
    asked = ["regions", str(path), "--out", str(tmp_path / "a.png"), "--margin", "1.2"]
    with pytest.raises(rs.TooManyCells, match=r"max_cells=5 cells: about .* by an estimate; look at a part of about 0"):
        app([*asked, "--max-cells", "5"])
    with pytest.raises(MemoryError, match=r"are too little: about .* by an estimate; give \d+ kB, look at a part"):
        app([*asked, "--memory", "1e-6"])


def test_a_size_that_may_not_fit_is_begun_with_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    torch.manual_seed(0)
    path = saved(mlp(784, 30, 30, 10), tmp_path / "net.safetensors")
    asked = ["regions", str(path), "--out", str(tmp_path / "a.png"), "--margin", "1.2"]

    def work(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    def warning(*options: str) -> str:
        with pytest.raises(KeyboardInterrupt):
            app([*asked, *options])
        return capsys.readouterr().err

    app([*asked, "--json"])
    found = json.loads(capsys.readouterr().out)["expected"]
    monkeypatch.setattr(rs, "plane_cells", work)
    assert warning() == ""
    cells, size = int(found["cells"] / 1.5), found["bytes"] / 1.5
    for limit, options in (
        (bytes_in_words(size), ["--memory", str(size / 1e9)]),
        (f"{cells:,} cells", ["--max-cells", str(cells)]),
    ):
        said = warning(*options)
        assert said.startswith(f"regionscope: more is expected than the {limit} that are allowed: about ")
        assert said.count("\n") == 1
        assert "the work may stop" in said and "a part of about 0.8 times its side" in said
        assert warning(*options, "--quiet") == ""


def test_bounds_of_a_large_network_keep_to_their_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch.save(cnn((1, 28, 28), 10, depth=2, width=8).state_dict(), tmp_path / "cnn.pt")
    asked = ["bounds", str(tmp_path / "cnn.pt"), *"--model cnn --activation relu --shape 1 28 28 --plan".split()]
    app([*asked, "--seconds", "inf"])
    assert "points 2" not in capsys.readouterr().out
    app([*asked, "--seconds", "0.001"])
    said = capsys.readouterr().out
    assert "draws 1, points 2" in said and "more than the 0.001 s; as asked for it would take" in said
    app([*asked, "--seconds", "0.001", "--draws", "3"])  # what is given stays
    assert "draws 1" not in capsys.readouterr().out


def test_the_version_is_the_librarys() -> None:
    told = subprocess.run([COMMAND, "--version"], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == rs.__version__


def test_an_unknown_command_fails() -> None:
    result = command("nonsense")
    assert result.returncode != 0
    assert "nonsense" in result.stdout + result.stderr


def test_bounds_print_both_forms_of_every_inequality(tmp_path: Path) -> None:
    saved(mlp(784, 12, 10), tmp_path / "net.safetensors")
    out, plot = tmp_path / "b.json", tmp_path / "b.svg"
    result = command(
        "bounds", str(tmp_path / "net.safetensors"), "--count", "10", "--out", str(out), "--plot", str(plot), "--terms"
    )
    assert result.returncode == 0, result.stderr
    assert "LC Thm 7 (13)" in result.stdout and "printed" in result.stdout and "C_bias" in result.stdout
    found = json.loads(out.read_text())
    assert all(row["holds"] is not False for row in found if not row["printed"])
    drawn = plot.read_text()
    assert all(f"<!-- {row['reference']} -->" in drawn for row in found if row["left"] is not None)
    assert {row["source"] for row in found} >= {"LC Prop. 8", "HR Cor. 7"}
    assert "as restated" in result.stdout
