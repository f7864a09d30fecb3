"""The README's code runs, and what is public is documented."""

import inspect
import re
from pathlib import Path

import pytest

import regionscope as rs

README = Path(__file__).parent.parent / "README.md"


def test_the_code_in_the_readme_runs(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    assert blocks
    exec("\n".join(blocks), {})
    assert (tmp_path / "regions.png").exists()
    assert "in module '3' (Softmax)" in capsys.readouterr().out


@pytest.mark.parametrize("name", rs.__all__)
def test_public_names_are_documented(name: str) -> None:
    assert inspect.getdoc(getattr(rs, name))
