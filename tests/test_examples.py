"""Every example runs, and those that draw show a picture."""

import runpy
import sys
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
QUICK = {"complexity_penalty.py": ["--steps", "20", "--seeds", "2"]}


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda p: p.name)
def test_an_example_runs(path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    shown: list[int] = []
    matplotlib.use("agg")
    monkeypatch.setattr(sys, "argv", [str(path), *QUICK.get(path.name, [])])
    monkeypatch.setattr(plt, "show", lambda: shown.extend(plt.get_fignums()))
    runpy.run_path(str(path), run_name="__main__")
    plt.close("all")
    assert capsys.readouterr().out
    assert bool(shown) == ("plt.show()" in path.read_text())
