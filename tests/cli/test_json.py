"""What every command prints with --json is what `docs/json-schema.json` says, nothing else; with --quiet nothing."""

import csv
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import json_page
import jsonschema
import numpy as np
import pytest
import torch
from cases import mlp

import regionscope as rs
from regionscope.app.server import Address
from regionscope.cli.commands import COMMANDS, app
from regionscope.measures.plans import UNPLANNED
from regionscope.results import SMOOTH
from regionscope.training.checkpoints import Architecture, save_weights

TRAINING = "--overwrite --steps 4 --size 50 --test-size 20 --depth 1 --width 4 --points 5 --records 4".split()
CROSSINGS = "--measures boundary_crossings --options.boundary_crossings.directions 3".split()
NET = ["net.safetensors", "--points", "x.npy"]


def check(found: Any, name: str) -> None:
    """An error if a value is not as it is defined for a command, or a part of it."""
    schema = {**json_page.SCHEMA, "$ref": f"#/$defs/{name}"}
    jsonschema.validate(found, schema, cls=jsonschema.Draft202012Validator)


@pytest.fixture
def printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """In a folder with a checkpoint and points: what a command prints with --json, checked; with --quiet it is mute."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    torch.manual_seed(0)
    model, x = mlp(6, 5, 3), torch.rand(8, 6)
    save_weights(model.state_dict(), "net.safetensors", Architecture("mlp", "relu"))
    np.save("x.npy", x.numpy())
    np.save("y.npy", model(x).argmax(dim=1).numpy())

    def ask(*command: str) -> Any:
        app([*command, "--quiet"])
        assert capsys.readouterr() == ("", "")
        app([*command, "--json"])
        found = json.loads(capsys.readouterr().out)
        check(found, command[0])
        return found

    return ask


def test_commands_on_checkpoints(printed: Callable[..., Any]) -> None:
    regions = printed("regions", *NET, "--save", "cells.npz")
    assert regions["regions"] == len(rs.PlaneCells.load("cells.npz")) and regions["certificate"]["holds"] is True
    assert regions["expected"]["certificate_seconds"] > 0
    unchecked = printed("regions", *NET, "--no-certificate")
    assert unchecked["certificate"] is None and unchecked["expected"]["certificate_seconds"] == 0
    rows = printed("measure", *NET, "--labels", "y.npy", "--sigma", "0.5", "--seed", "3", "--out", "measures.json")
    assert len(rows) == 8 and json.loads(Path("measures.json").read_text()) == rows
    assert {row["seed"] for row in rows} == {3}
    for row, (name, measure) in zip(rows, ((n, m) for n, m in rs.MEASURES.items() if n not in UNPLANNED), strict=True):
        assert row["options"].keys() <= measure.defaults.keys(), name
    assert rows[0]["options"] == {
        "sigma": 0.5, "good": True, "weight_noise": False, "density": True, "method": "gram", "draws": 32
    }  # fmt: skip
    printed("measure", *NET, "--out", "measures.csv")
    with Path("measures.csv").open() as file:
        assert [json.loads(row["options"]) for row in csv.DictReader(file)][1] == rows[1]["options"]
    assert printed("measure", *NET, "local_rank", "--plan")["measures"]["local_rank"]["points"] == 8
    assert {row["holds"] for row in printed("bounds", *NET)} <= {True, None, False}
    assert printed("bounds", *NET, "--plan")["measures"]["bounds"]["points"] == 8


def test_commands_on_runs(printed: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    assert printed("train", "runs/a", *TRAINING, *CROSSINGS)["state"] == "finished"
    app(["train", "runs/b", *TRAINING, *CROSSINGS, "--seed", "1", "--quiet"])
    assert printed("resume", "runs/a")["step"] == 4
    Path("runs/damaged").mkdir()
    Path("runs/damaged/run.json").write_text("no JSON")
    states = {run["run"]: run["state"] for run in printed("status")}
    assert states == {"runs/a": "finished", "runs/b": "finished", "runs/damaged": "damaged"}
    assert printed("report", "runs/a")["files"][-1] == "runs/a/report/report.md"
    rows = printed("compare", "runs/a", "runs/b", "--column", "loss")
    assert [row["step"] for row in rows] == [0, 1, 2, 4] and set(rows[0]) == {"step", "2 seeds", "2 seeds/stderr"}
    assert [row["step"] for row in printed("export", "runs/a")] == [0, 1, 2, 4]
    assert printed("export", "runs/a", "--out", "a.csv") == {"rows": 4, "out": "a.csv"}
    assert printed("export", "runs/a", "--html", "a.html") == {"html": "a.html"}
    Path("demo").mkdir()
    Path("runs/a").rename("demo/run")  # a demo that was made before is shown again
    assert printed("demo")["run"] == "demo/run"
    monkeypatch.setattr("regionscope.cli.explorer.serve", lambda viewer, port, started: started(Address(7, "secret")))
    monkeypatch.setattr("regionscope.cli.explorer.first_look", lambda viewer: None)
    assert printed("view", "demo", "--no-browser")["url"] == "http://127.0.0.1:7/?token=secret"


def test_smooth_networks_are_called_so(printed: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    training = [*TRAINING, "--activation", "gelu", *CROSSINGS]
    assert printed("train", "runs/smooth", *training)["piecewise_linear"] is False
    assert [run["piecewise_linear"] for run in printed("status")] == [False]
    save_weights(mlp(6, 5, 3).state_dict(), "smooth.safetensors", Architecture("mlp", "gelu"))
    measure = ["measure", "smooth.safetensors", "--points", "x.npy", "--allow-smooth", "boundary_crossings"]
    assert [row["piecewise_linear"] for row in printed(*measure)] == [False]
    assert [row["piecewise_linear"] for row in printed("measure", *NET, "local_rank")] == [True]
    for command in (["train", "runs/smooth", *training], ["status"], ["report", "runs/smooth"], measure):
        app(command)
        assert capsys.readouterr().out.count(SMOOTH) == 1, command
    assert Path("runs/smooth/report/report.md").read_text().count(SMOOTH) == 1
    app(["train", "runs/linear", *TRAINING, *CROSSINGS])
    app(["report", "runs/linear"])
    assert SMOOTH not in capsys.readouterr().out


def test_commands_on_neither(printed: Callable[..., Any]) -> None:
    assert printed("reproduce", "lc3", "--list")[0]["verdict"] is None
    (found,) = printed("reproduce", "hr3", "--scale", "smoke")["findings"]
    (listed,) = printed("reproduce", "hr3", "--list", "--scale", "smoke")
    assert found["scale"] == "smoke" and listed["seconds"] == found["seconds"]
    assert "complete -F" in printed("completion", "bash")["script"]


def test_findings_of_all_figures_are_as_defined() -> None:
    files = sorted((json_page.FOLDER / "reproduction").glob("*.json"))
    assert files
    for file in files:
        check(json.loads(file.read_text()), "findings")


def test_the_definitions_refuse_what_is_not_defined() -> None:
    check({"html": "a.html"}, "export")
    for wrong in ({"html": 3}, {"html": "a.html", "more": 1}, [{"loss": 1.0}], {}):
        with pytest.raises(jsonschema.ValidationError):
            check(wrong, "export")


def test_every_command_is_defined_and_the_page_says_what_the_schema_says() -> None:
    jsonschema.Draft202012Validator.check_schema(json_page.SCHEMA)
    commands = {name for names in COMMANDS.values() for name in names}
    assert commands | {"completion"} <= set(json_page.SCHEMA["$defs"])
    assert json_page.PAGE.read_text() == json_page.page(), "run `python docs/json_page.py`"
