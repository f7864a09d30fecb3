"""The command: what it prints, writes and says when something is wrong."""

import json
from pathlib import Path
from typing import Any

import pytest
from reproduction import DOCS, FOLDER, page

from regionscope.cli.commands import app
from regionscope.experiments import lab as labs
from regionscope.experiments.findings import Check, Curve, Evidence, Findings
from regionscope.experiments.page import account, reproduction_page
from regionscope.experiments.registry import EXPERIMENTS


def test_a_figure_is_reproduced_listed_and_not_made_twice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = str(tmp_path / "out")
    assert app(["reproduce", "hr5", "--scale", "smoke", "--seeds", "1", "--out", out]) == 0
    said = capsys.readouterr().out
    assert EXPERIMENTS["hr5"].claim in said and "yes regions per unit at the start" in said
    assert "1 seed instead of 5" in said
    file = tmp_path / "out" / "findings" / "smoke" / "hr5.json"
    found = Findings.load(file)
    assert file.with_suffix(".png").exists() and found.seeds == (0,)
    assert found.command == "regionscope reproduce hr5 --scale smoke --seeds 1"
    monkeypatch.setattr(labs, "train", None)  # nothing is trained any more
    assert app(["reproduce", "--resume", "--out", out, "--json"]) == 0
    (again,) = json.loads(capsys.readouterr().out)["findings"]
    assert again == json.loads(file.read_text())
    app(["reproduce", "--list", "--scale", "smoke", "--out", out])
    (row,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("hr5")]
    assert found.verdict in row
    page = reproduction_page([found], "reproduction")
    assert "![hr5](reproduction/hr5.png)" in page and f"**Claim.** {found.claim}" in page
    assert "| figure | verdict |" in page and found.command in page


def test_a_figure_that_fails_is_named_and_the_others_are_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(training: Any, folder: Path, **options: Any) -> Any:
        raise FileNotFoundError("there is no MNIST; `make data` brings it")

    monkeypatch.setattr(labs, "train", broken)
    assert app(["reproduce", "hr5", "--scale", "smoke", "--out", str(tmp_path)]) == 1
    assert "hr5 failed: 4 of 4 tasks failed" in (said := capsys.readouterr().out)
    assert "`make data` brings it" in said


def test_what_there_is_not_is_named_before_anything_is_run(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="there is no experiment 'lc99'"):
        app(["reproduce", "lc99", "--out", str(tmp_path / "out")])
    with pytest.raises(ValueError, match="engine must be serial"):
        app(["reproduce", "hr5", "--engine", "magic", "--out", str(tmp_path / "out")])
    with pytest.raises(ValueError, match="device 'nope' cannot be used here"):
        app(["reproduce", "hr5", "--device", "nope", "--out", str(tmp_path / "out")])
    with pytest.raises(ValueError, match="seeds must be at least 1, got 0"):
        app(["reproduce", "hr5", "--seeds", "0", "--out", str(tmp_path / "out")])
    with pytest.raises(ValueError, match="nothing was begun in"):
        app(["reproduce", "--resume", "--out", str(tmp_path / "out")])
    assert not (tmp_path / "out").exists()


def made(*checks: Check) -> Findings:
    return Findings(
        name="hr5", scale="smoke", claim="it rises", checks=checks, evidence=Evidence({}), deviations=(), choices=(),
        settings={}, seeds=(0,), versions={}, seconds=1.0, command="",
    )  # fmt: skip


def test_findings_whose_verdict_is_not_that_of_their_checks_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "hr5.json"
    path.write_text("{}")
    with pytest.raises(ValueError, match="holds no findings"):
        Findings.load(path)
    made(Check("rises", rule="> 0", holds=True)).save(path)
    assert Findings.load(path).verdict == "reproduced"
    path.write_text(path.read_text().replace('"reproduced"', '"not reproduced"'))
    with pytest.raises(ValueError, match="hr5 says 'not reproduced', but its checks say 'reproduced'"):
        Findings.load(path)


def test_a_check_without_a_number_says_so() -> None:
    assert "?   rises: no number (> 0)" in account(made(Check("rises", rule="> 0")))


def test_no_seed_is_too_few() -> None:
    assert EXPERIMENTS["hr5"].settings("smoke", 2).seeds == (0, 1)
    with pytest.raises(ValueError, match="seeds must be at least 1, got 0"):
        EXPERIMENTS["hr5"].settings("smoke", 0)


def test_a_curve_has_one_number_a_place() -> None:
    with pytest.raises(ValueError, match=r"runs must be \(seeds, 2\), one number a place, got \(1, 3\)"):
        Curve.of([0.0, 1.0], [[1.0, 2.0, 3.0]])


def test_the_page_of_the_docs_tells_what_was_found() -> None:
    assert (DOCS / "reproduction.md").read_text() == page(), "python docs/reproduction.py writes it"
    names = {file.stem for file in FOLDER.glob("*.json")}
    assert names and names == {file.stem for file in FOLDER.glob("*.png")}
    for name in names:
        found = Findings.load(FOLDER / f"{name}.json")
        assert found.name == name and found.scale == "laptop" and found.claim == EXPERIMENTS[name].claim
