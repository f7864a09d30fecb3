"""Options: checked before the work, read as the help says; and what is printed for whom."""

import csv
import io
import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from cases import mlp
from torch import nn

import regionscope as rs
from regionscope.cli import main, places
from regionscope.cli.commands import app
from regionscope.cli.places import fitting_plane
from regionscope.geometry.certificates import CertificateCost
from regionscope.measures import plans
from regionscope.measures.table import MEASURES
from regionscope.training.checkpoints import Architecture, save_weights
from regionscope.training.models import ACTIVATIONS


def tiny(changed: str = "") -> list[str]:
    """Options of a training that takes no time, some of them changed."""
    usual = "--steps 2 --size 50 --test-size 20 --depth 1 --width 4 --points 5 --records 3".split()
    kept = [pair for pair in zip(usual[::2], usual[1::2], strict=True) if pair[0] not in changed.split()]
    return [*(word for pair in kept for word in pair), *changed.split()]


@pytest.fixture
def net(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkpoint in the current folder, with points and labels beside it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    model = mlp(6, 5, 3)
    save_weights(model.state_dict(), "net.safetensors", Architecture("mlp", "relu"))
    x = torch.rand(8, 6, generator=torch.Generator().manual_seed(0))
    np.save("x.npy", x.numpy())
    np.save("y.npy", model(x).argmax(dim=1).numpy())
    return Path("net.safetensors")


@pytest.mark.parametrize(
    ("command", "match"),
    [
        ("measure net.safetensors --out a.xls", "--out must end in .json, .csv or .parquet, got a.xls"),
        ("measure net.safetensors --out no/a.csv", "--out no/a.csv cannot be written: there is no folder no"),
        ("measure net.safetensors --out /dev/null/a.csv", "cannot be written: there is no folder /dev/null"),
        ("measure net.safetensors --out /proc/a.csv", r"cannot be written: no file can be made in the folder /proc \("),
        ("regions net.safetensors --save /proc/a.npz", r"--save /proc/a.npz cannot be written: no file can be made"),
        ("export nowhere --html /proc/a.html", "--html /proc/a.html cannot be written: no file can be made"),
        ("compare nowhere --out /proc/a.png", "--out /proc/a.png cannot be written: no file can be made in the folder"),
        ("train /proc/run", "the run /proc/run cannot be written: no file can be made in the folder /proc"),
        ("train x.npy/run", "the run x.npy/run cannot be written: x.npy is a file, not a folder"),
        ("demo --out /proc/demo", "--out /proc/demo cannot be written: no file can be made in the folder /proc"),
        ("reproduce lc3 --scale smoke --out x.npy", "--out x.npy cannot be written: x.npy is a file, not a folder"),
        ("measure . --points x.npy", r"\. is a folder, not a checkpoint: name a file with weights"),
        ("measure net.safetensors --model mpl --activation relu", "there is no model 'mpl': --model must be mlp, cnn"),
        ("measure net.safetensors --points none.npy", r"none.npy must .* holds no points: its shape is \(0, 6"),
        ("measure net.safetensors --points nan.npy", "nan.npy must hold points .* of finite numbers, and holds NaN"),
        ("view --port 99999 --weights net.safetensors", "port 99999 cannot be used: ports are 0 to 65535; take"),
        ("measure net.safetensors mood", "there is no measure 'mood'"),
        ("measure net.safetensors --count 0", "--count must be at least 1, got 0"),
        ("measure net.safetensors --labels y.npy", "--labels are those of --points"),
        ("measure net.safetensors --points z.npy", r"--points must be an .npy file, .* there is none at z.npy"),
        ("measure net.safetensors robust_accuracy --points x.npy", "robust_accuracy needs labels: give .* --labels"),
        ("measure net.safetensors --points x.npy --labels short.npy", r"must hold 8 labels, one a point, got \(3,\)"),
        ("measure net.safetensors --points wide.npy", r"no points of shape \(9,\): .* first layer takes \(n, 6\)"),
        ("measure net.safetensors --model-args 3", "--model-args go with --model path/to/file.py:function"),
        ("regions net.safetensors --points x.npy --out a.gif", "--out must end in .png, .svg or .pdf, got a.gif"),
        ("regions net.safetensors --points x.npy --save a.npy", "--save must end in .npz, got a.npy"),
        ("regions net.safetensors --points x.npy --around 8", "--around must be numbers of points, 0 to 7, got 8"),
        ("regions net.safetensors --points x.npy --through 1 -1 2", "must be numbers of points, 0 to 7, got -1"),
        ("regions net.safetensors --points x.npy --around 1 --through 1 2 3", "give --through or --around"),
        ("regions net.safetensors --points x.npy --radius 0.01", "say around which with --around, or give --margin"),
        ("regions net.safetensors --points x.npy --through 1 2 3 --radius 1", "--radius is the size of a plane around"),
        ("regions net.safetensors --points x.npy --around 3 --margin 0.5", "around one, give --radius instead"),
        ("regions net.safetensors --points x.npy --around 3 --radius -1", "radius must be positive and finite, got -1"),
        ("regions net.safetensors --points x.npy --around 3 --radius nan", "radius must be positive and finite"),
        ("regions net.safetensors --points x.npy --margin inf", "margin must be positive and finite, got inf"),
        ("measure net.safetensors --points x.npy --radius -1", "--radius must be positive and finite, got -1"),
        ("measure net.safetensors --points x.npy --seconds nan", "--seconds must be positive, got nan; inf sets no"),
        ("regions net.safetensors --points x.npy --seconds 0", "--seconds must be positive, got 0"),
        ("regions net.safetensors --points x.npy --memory 0", "--memory must be positive and finite, got 0"),
        ("regions net.safetensors --points x.npy --memory 1e-12", "0 bytes of memory are too little"),
        ("measure net.safetensors --points flat.npy", r"flat.npy must hold points \(n, ...\), got \(6,\); save one"),
        ("regions net.safetensors --points x.npy --memory nan", "--memory must be positive and finite, got nan"),
        ("measure net.safetensors --points x.npy --sigma nan", "--sigma must be positive and finite, got nan"),
        ("measure net.safetensors --points x.npy --eps -1 --plan", "--eps must not be negative, got -1"),
        ("measure net.safetensors --points x.npy --draws 0 --plan", "--draws must be at least 1, got 0"),
        ("measure net.safetensors --points x.npy --labels ten.npy", "labels must be from 0 to 2, .* got 10"),
        ("measure net.safetensors --points x.npy --labels halves.npy", "labels must be integers"),
        ("measure net.safetensors --out a.parquet", "--out a.parquet needs pyarrow: pip install"),
        ("bounds net.safetensors --points x.npy --sigma -1 --plan", "--sigma must be positive and finite, got -1"),
        ("bounds net.safetensors --points x.npy --eta 0 --plan", "--eta must be positive and finite, got 0"),
        ("bounds net.safetensors --points x.npy --draws 0 --plan", "--draws must be at least 1, got 0"),
        ("bounds net.safetensors --points x.npy --seconds -3", "--seconds must be positive, got -3"),
        ("bounds net.safetensors --points x.npy --plot a.gif", "--plot must end in .png, .svg or .pdf, got a.gif"),
        ("compare nowhere --lines 0", "--lines must be at least 1, got 0"),
        ("compare nowhere", "there are no runs in nowhere"),
        ("export nowhere --out a.txt", "--out must end in .json, .csv or .parquet, got a.txt"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_said_before_the_work(
    net: Path, command: str, match: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def work(*_: object, **__: object) -> None:
        raise AssertionError("the work began")

    monkeypatch.setattr(rs, "plane_cells", work)
    monkeypatch.setattr(rs, "bounds", work)
    monkeypatch.setattr("regionscope.measures.table.Measure.estimate", work)
    np.save("short.npy", np.arange(3))
    np.save("wide.npy", np.eye(9))
    np.save("ten.npy", np.full(8, 10))
    np.save("flat.npy", np.zeros(6))
    np.save("halves.npy", np.full(8, 0.5))
    np.save("none.npy", np.zeros((0, 6)))
    np.save("nan.npy", np.full((8, 6), np.nan))
    monkeypatch.setattr("regionscope.cli.output.find_spec", lambda name: None)  # as without pyarrow
    there = {path.name for path in Path().iterdir()}
    with pytest.raises((ValueError, MemoryError, OSError), match=match):
        app(command.split())
    assert {path.name for path in Path().iterdir()} == there


def test_what_was_measured_before_an_error_is_told(
    net: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(*_: object, **__: object) -> rs.Estimate:
        raise RuntimeError("no luck")

    monkeypatch.setitem(MEASURES, "good_units", replace(MEASURES["good_units"], function=fails))
    with pytest.raises(RuntimeError, match="no luck") as error:
        app("measure net.safetensors local_rank good_units --points x.npy --out a.json".split())
    assert error.value.__notes__ == ["(in good_units)"]
    assert "wrote a.json" in capsys.readouterr().out
    assert [row["label"] for row in json.loads(Path("a.json").read_text())] == ["local rank"]


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ("--measures mood", "there is no measure 'mood'"),
        ("--measures local_rank --options.local_rank.mood 3", "local_rank has no option 'mood'"),
        (
            "--measures boundary_crossings --options.boundary_crossings.radius -3",
            "train/boundary_crossings cannot be measured so: radius must be positive",
        ),
        ("--measures local_rank --options.local_rank.eps tiny", r"train/local_rank cannot be .* \(eps 'tiny'\)"),
        ("--measures local_rank --options.local_rank.points 0", "at one of the points at least, got points 0"),
        ("--measures certified_radius --activation gelu", "no linear regions: leave certified_radius out"),
        ("--plane --activation gelu", "the network is smooth and has no linear regions: leave plane out"),
        ("--plane --size 2", "three training points, and there are 2"),
        ("--normalise 0 0", "a mean and a positive standard deviation"),
        ("--seed -1", "seed must be at least 0, got -1"),
        ("--init-scale inf", "init_scale must be a number from 0 on, got inf"),
        ("--lr nan", "lr must be a number from 0 on, got nan"),
        ("--save-every -1", "save_every must be so many seconds, not -1"),
        ("--device cuda:77", "device 'cuda:77' cannot be used here: "),
        ("--device mood", "device 'mood' cannot be used here: "),
        ("--seconds-per-record nan", "seconds_per_record must be positive"),
        ("--records 1", "records must be at least 2, got 1"),
        ("--depth 0", "depth and width must be at least 1"),
        ("--dataset nowhere", "nowhere"),
    ],
)
def test_a_rejected_configuration_leaves_no_run_behind(
    options: str, match: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    app(["train", str(tmp_path / "old"), *tiny(), "--measures", "total_variation", "--quiet"])
    before = rs.Run.open(tmp_path / "old").read(2)
    for place in (["new"], ["old", "--overwrite"]):
        with pytest.raises((ValueError, TypeError, OSError), match=match):
            app(["train", str(tmp_path / place[0]), *place[1:], *tiny(options)])
    assert [path.name for path in tmp_path.iterdir()] == ["old"]
    assert rs.Run.open(tmp_path / "old").read(2) == before
    assert not capsys.readouterr().out


def test_a_run_is_overwritten_if_that_is_asked_for_and_other_files_stay(tmp_path: Path) -> None:
    path = tmp_path / "run"
    app(["train", str(path), *tiny(), "--measures", "total_variation", "--quiet"])
    (path / "notes.txt").write_text("mine")
    with pytest.raises(rs.RunExists, match="take another name, resume it, or overwrite it"):
        app(["train", str(path), *tiny("--width 5 --quiet")])
    app(["train", str(path), *tiny("--width 5 --steps 4 --measures good_units --overwrite --quiet")])
    run = rs.Run.open(path)
    assert run.config["training"]["width"] == 5
    assert set(run.read(4).probes["train"]) == {"good_units"} and not set(run.steps) - {0, 1, 2, 4}
    assert (path / "notes.txt").read_text() == "mine"


def test_several_measures_follow_their_option(tmp_path: Path) -> None:
    app(["train", str(tmp_path / "run"), *tiny(), "--measures", "total_variation", "good_units", "--quiet"])
    assert set(rs.Run.open(tmp_path / "run").read(0).probes["test"]) == {"total_variation", "good_units"}


def test_measures_are_named_with_their_option_or_without(net: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for named in (["total_variation", "local_rank"], ["--measures", "total_variation", "local_rank"]):
        app(["measure", str(net), *named, "--points", "x.npy", "--json"])
        assert [row["name"] for row in json.loads(capsys.readouterr().out)] == ["total variation", "local rank"]


def test_one_point_is_not_called_points(net: Path, capsys: pytest.CaptureFixture[str]) -> None:
    app(["measure", str(net), "good_units", "--points", "x.npy", "--count", "1"])
    said = capsys.readouterr().out
    assert "Network(1 site, 5 units, 1 layer, piecewise linear), 1 point\n" in said and "1 points" not in said


def test_means_have_the_digits_that_their_errors_leave_and_shares_an_interval(
    net: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    app(["measure", str(net), "local_complexity", "robust_accuracy", "--points", "x.npy", "--labels", "y.npy"])
    said = capsys.readouterr().out
    assert re.search(r"\nmeasure +mean ± s.e. +layer 1", said)
    assert re.search(r"\nlocal complexity +\d+\.(\d+) ± \d+\.(\d+) ", said)
    assert re.search(r"\nrobust accuracy +\S+ \(\S+ to \S+ at 95 %\) ", said)


def test_what_was_assumed_is_printed(net: Path, capsys: pytest.CaptureFixture[str]) -> None:
    app(["measure", str(net), "total_variation", "--points", "x.npy"])
    assert capsys.readouterr().out.startswith("net.safetensors: mlp with relu, as the file says\n")
    model = nn.ModuleDict({"model": mlp(6, 5, 3)})
    torch.save({"state_dict": model.state_dict()}, "light.ckpt")
    app("measure light.ckpt total_variation --points x.npy --model mlp --activation tanh --allow-smooth".split())
    said = "light.ckpt: mlp with tanh, as you say; 'model.' is left out of the names of its weights\n"
    assert capsys.readouterr().out.startswith(said)


def test_a_smooth_network_is_measured_by_all_that_needs_no_regions(
    net: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.save(mlp(6, 5, 3).state_dict(), "smooth.pt")
    command = "measure smooth.pt --model mlp --activation gelu --allow-smooth --points x.npy --labels y.npy".split()
    app([*command, "--json"])
    names = [row["name"] for row in json.loads(capsys.readouterr().out)]
    assert "robust accuracy" in names and not any("certified" in name for name in names)
    monkeypatch.setattr("regionscope.measures.table.Measure.estimate", None)
    with pytest.raises(ValueError, match="certified_radius needs linear regions, and this network is smooth"):
        app([*command, "local_rank", "certified_radius"])


def test_what_labels_are_missing_for_is_left_out_aloud_unless_it_is_named(
    net: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    app(["measure", str(net), "--points", "x.npy", "--plan"])
    said = capsys.readouterr().out
    assert "left out: robust_accuracy, certified_radius; they need labels. To have them, give those of the" in said
    assert not re.search(r"\n(robust_accuracy|certified_radius) ", said) and "\ngood_units " in said
    for outputs, why in ((3, "labels must be from 0 to 2, one an output, got 9"), (1, "this network has one")):
        save_weights(mlp(784, 4, outputs).state_dict(), "few.safetensors", Architecture("mlp", "relu"))
        app(["measure", "few.safetensors", "--count", "20", "--json"])
        found = capsys.readouterr()
        assert "those of the MNIST images are not for this network" in found.err and why in found.err
        assert "give points with --points and their labels with --labels" in found.err
        assert len(json.loads(found.out)) == 6
        with pytest.raises(ValueError, match=f"{why}(.|\n)*or name measures that need none: local_complexity, "):
            app(["measure", "few.safetensors", "good_units", "robust_accuracy", "--plan", "--quiet"])
    np.save("ten.npy", np.arange(8) + 3)
    with pytest.raises(ValueError, match=r"from 0 to 2, .* got 10(.|\n)*or name measures that need none"):
        app(["measure", str(net), "--points", "x.npy", "--labels", "ten.npy", "--plan"])


MINE = """
from torch import nn

def build(hidden, *, slope=0.0, name="a", bias=True):
    assert name == "a b" and bias is False
    return nn.Sequential(nn.Linear(6, hidden, bias=bias), nn.LeakyReLU(slope), nn.Linear(hidden, 3))
"""


def test_arguments_reach_the_function_that_builds_the_network(net: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("own_build.py").write_text(MINE)
    model = nn.Sequential(nn.Linear(6, 7, bias=False), nn.LeakyReLU(0.25), nn.Linear(7, 3))
    torch.save(model.state_dict(), "net.pt")
    command = "measure net.pt total_variation --points x.npy --json --model own_build:build --model-args".split()
    app([*command, "7", "slope=0.25", "name=a b", "bias=false"])
    found = json.loads(capsys.readouterr().out)[0]["mean"]
    assert found == rs.total_variation(model, torch.from_numpy(np.load("x.npy"))).mean
    with pytest.raises(ValueError, match="takes other --model-args: got an unexpected keyword argument 'depth'"):
        app([*command, "7", "depth=3"])


def test_labels_of_ones_own_points_are_used_and_attacks_keep_to_the_data(
    net: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    app(["measure", str(net), "robust_accuracy", "--points", "x.npy", "--labels", "y.npy", "--json"])
    (row,) = json.loads(capsys.readouterr().out)
    x, y = (torch.from_numpy(np.load(name)) for name in ("x.npy", "y.npy"))
    box = (float(x.min()), float(x.max()))
    model = rs.load_model(net)
    assert row["mean"] == rs.robust_accuracy(model, x, y, bounds=box, generator=torch.Generator().manual_seed(0)).mean
    assert row["options"].items() >= {"radius": 8 / 255, "norm": "Linf", "bounds": [*box], "attack": "pgd"}.items()
    words = f"radius 0.03137, norm Linf, bounds {box[0]:.4g} to {box[1]:.4g}"
    app(["measure", str(net), "robust_accuracy", "--points", "x.npy", "--labels", "y.npy"])
    assert words in capsys.readouterr().out


def test_runs_are_exported_as_rows(net: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in "ab":
        app(["train", f"runs/{name}", *tiny(), "--measures", "total_variation", "--quiet"])
    app(["export", "runs/a"])
    printed = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    rows = rs.Run.open("runs/a").rows()
    assert [{name: float(value) for name, value in row.items() if value} for row in printed] == [
        {name: float(value) for name, value in row.items() if value is not None} for row in rows
    ]
    app(["export", "runs", "--json"])
    both = json.loads(capsys.readouterr().out)
    assert [(row["run"], row["step"]) for row in both] == [(f"runs/{n}", s) for n in "ab" for s in (0, 1, 2)]
    app(["export", "runs/b", "--out", "b.csv"])
    assert capsys.readouterr().out == "wrote 3 rows to b.csv\n"
    assert Path("b.csv").read_text().startswith("step,loss,")


def test_bounds_that_take_too_long_say_what_they_look_at_instead(
    net: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("_seconds_a_pass", "_seconds_a_tangent"):
        monkeypatch.setattr(plans, name, lambda *_: 1.0)
    monkeypatch.setattr(plans, "_is_small", lambda net: False)
    app(["bounds", str(net), "--points", "x.npy", "--seconds", "20"])
    said = capsys.readouterr().out
    assert "chosen to save time" in said and "bounds   2 " in said  # points


def test_a_plane_that_nothing_can_make_small_enough_is_made_smaller_so_often_only() -> None:
    torch.manual_seed(0)
    plane = rs.Plane.around(torch.zeros(4), 3.0, generator=torch.Generator().manual_seed(0))
    part, found, whole = fitting_plane(
        mlp(4, 20, 3), plane, up_to_layer=None, seconds=1e-12, memory=10**9, certificate=True
    )
    assert np.abs(part.domain).max() < 1e-3 * np.abs(plane.domain).max()
    assert found.cells <= whole.cells and found.seconds > 1e-12


@pytest.mark.parametrize("exactly", [0.0, 1e6])
def test_the_part_of_a_plane_that_is_drawn_can_be_certified_in_time(
    exactly: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    model, plane = mlp(4, 20, 3), rs.Plane.around(torch.zeros(4), 3.0, generator=torch.Generator().manual_seed(0))
    told = {"up_to_layer": None, "seconds": 1000.0, "memory": 10**9}
    monkeypatch.setattr(places, "certificate_cost", lambda *_, **__: CertificateCost(100.0, exactly))
    part, found, whole = fitting_plane(model, plane, **told, certificate=True)  # type: ignore[arg-type]
    assert whole.certificate_seconds == 100 * whole.cells + exactly > 1000
    assert 1 <= found.cells < 10 and part.area > 1e-6 * plane.area  # what every plane takes makes none a point
    part, found, whole = fitting_plane(model, plane, **told, certificate=False)  # type: ignore[arg-type]
    assert part is plane and found is whole and found.certificate_seconds == 0


def test_regions_without_a_certificate_say_so(net: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for size in ([], ["--margin", "0.5"]):
        assert app(["regions", str(net), "--points", "x.npy", "--no-certificate", *size]) == 0
        said = capsys.readouterr().out
        assert "\nno certificate: it was not asked for\nwrote regions.png" in said and "certify" not in said


def test_what_is_no_file_is_printed_to_as_it_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As in a notebook, whose streams have no encoding to change."""
    printed = io.StringIO()
    monkeypatch.setattr(sys, "stdout", printed)
    monkeypatch.setattr(sys, "argv", ["regionscope", "--version"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code and printed.getvalue().strip() == rs.__version__


def test_nothing_is_printed_to_what_is_closed(net: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As after `regionscope … >&- 2>&-`."""
    for stream in ("stdout", "stderr"):
        monkeypatch.setattr(sys, stream, None)
    monkeypatch.setattr(sys, "argv", "regionscope measure net.safetensors good_units --points x.npy".split())
    with pytest.raises(SystemExit) as ended:
        main()
    sys.stdout.close()
    sys.stderr.close()
    assert not ended.value.code


@pytest.mark.parametrize("command", ["measure net.pt good_units", "regions net.pt", "bounds net.pt --plan"])
def test_what_a_users_network_prints_is_no_part_of_the_json(
    command: str, net: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("chatty.py").write_text(
        "from torch import nn\nprint('imported')\n"
        "class Chatty(nn.Sequential):\n"
        "    def __init__(self):\n        print('built')\n        super().__init__(nn.Linear(6, 3), nn.ReLU())\n"
        "    def forward(self, x):\n        print('called')\n        return super().forward(x)\n"
    )
    torch.save(nn.Sequential(nn.Linear(6, 3)).state_dict(), "net.pt")
    app([*command.split(), "--points", "x.npy", "--model", "chatty.py:Chatty", "--json"])
    said = capsys.readouterr()
    assert json.loads(said.out)
    assert all(word in said.err for word in ("imported", "built", "called"))


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_commands_and_options(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    app(["completion", shell])
    script = capsys.readouterr().out
    assert all(word in script for word in ("measure", "compare", "model-args", "overwrite", *ACTIVATIONS))


def test_a_function_that_fails_is_named_with_its_error(net: Path) -> None:
    Path("broken.py").write_text("def build():\n    raise RuntimeError('boom')\n")
    with pytest.raises(ValueError, match=r"^--model broken.py:build failed: RuntimeError: boom$") as failure:
        app(["measure", str(net), "--points", "x.npy", "--model", "broken.py:build"])
    assert isinstance(failure.value.__cause__, RuntimeError)  # which --debug shows


def test_a_network_that_is_made_already_takes_no_arguments(net: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("ready.py").write_text("from torch import nn\nnet = nn.Sequential(nn.Linear(6, 3), nn.ReLU())\n")
    torch.save(nn.Sequential(nn.Linear(6, 3)).state_dict(), "net.pt")
    command = "measure net.pt good_units --points x.npy --json --model ready.py:net".split()
    app(command)
    assert json.loads(capsys.readouterr().out)[0]["name"] == "good units"
    with pytest.raises(ValueError, match=r"--model ready.py:net is a Sequential, which takes no --model-args"):
        app([*command, "--model-args", "3"])


def test_files_that_hold_no_array_are_named(net: Path) -> None:
    Path("no.npy").write_bytes(b"nothing of the kind")
    with pytest.raises(ValueError, match=r"no.npy cannot be read as an array of numbers"):
        app(["measure", str(net), "--points", "no.npy"])
