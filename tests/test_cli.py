"""The command line, as a user starts it."""

import subprocess
import sys
from pathlib import Path

import regionscope as rs

COMMAND = Path(sys.executable).with_name("regionscope")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([COMMAND, *arguments], capture_output=True, text=True, timeout=120, check=False)


def test_the_demo_traces_a_trained_network() -> None:
    result = run("demo", "--steps", "150")
    assert result.returncode == 0, result.stderr
    assert "affine inside the pattern of each point: True" in result.stdout
    assert "Network(3 sites, 80 units, 3 layers, piecewise linear)" in result.stdout


def test_the_version_is_the_librarys() -> None:
    assert run("--version").stdout.strip() == rs.__version__


def test_an_unknown_command_fails() -> None:
    result = run("nonsense")
    assert result.returncode != 0
    assert "nonsense" in result.stdout + result.stderr
