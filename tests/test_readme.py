"""The README's code runs, and what is public is documented."""

import inspect
import re
import shlex
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

import regionscope as rs
from regionscope.cli.commands import app

README = Path(__file__).parent.parent / "README.md"


def test_the_code_in_the_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    assert blocks
    exec("\n".join(blocks), {})
    assert (tmp_path / "regions.png").exists()
    assert rs.Run.open("runs/mine").steps == [0]


MINE = """
from torch import nn

def build():
    return nn.Sequential(nn.Linear(784, 6), nn.ReLU(), nn.Linear(6, 10))
"""


def test_the_commands_on_checkpoints_in_the_readme_run(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    Path("mine.py").write_text(MINE)
    model = nn.Sequential(nn.Linear(784, 6), nn.ReLU(), nn.Linear(6, 10))
    torch.save(model.state_dict(), "checkpoint.pt")
    commands = re.findall(r"regionscope ((?:regions|measure|bounds) [^`\n]+)", README.read_text())
    assert [command.split()[0] for command in commands] == ["regions", "measure", "bounds"]
    for command in commands:
        app(shlex.split(command, comments=True))
    assert capsys.readouterr().out.count("certificate holds") == 1
    assert {"regions.pdf", "measures.json", "bounds.png"} <= {path.name for path in tmp_path.iterdir()}


@pytest.mark.parametrize("name", rs.__all__)
def test_public_names_are_documented(name: str) -> None:
    assert inspect.getdoc(getattr(rs, name))
