"""Every example runs."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
QUICK = {"complexity_penalty.py": ["--steps", "20", "--seeds", "2"]}


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda p: p.name)
def test_an_example_runs(path: Path) -> None:
    command = [sys.executable, str(path), *QUICK.get(path.name, [])]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert result.returncode == 0, result.stderr
    assert result.stdout
