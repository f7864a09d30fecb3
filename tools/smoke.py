"""Tries a wheel as a stranger has it: python tools/smoke.py dist/regionscope-*.whl

It is installed into an empty environment, without extras, and used from another folder, without Node or a compiler on
the path. Nothing can be written beside the installed code, so that compiled kernels go to the user's cache folder.
"""

import json
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
SMALL = "--steps 3 --records 3 --size 100 --test-size 50 --depth 2 --width 8 --points 5 --plane --measures local_rank"
ABSENT = ("node", "npm", "cc", "gcc", "clang", "g++")
WITHOUT_EXTRAS = (
    "import importlib.util, sys, regionscope; "
    "sys.exit(any(importlib.util.find_spec(name) for name in ('ray', 'lightning', 'transformers', 'pytest')))"
)


def main(wheel: Path) -> None:
    """Install and use a wheel; an exception says what does not work."""
    with tempfile.TemporaryDirectory(prefix="regionscope-smoke-") as folder:
        place = Path(folder)
        bin = _installed(wheel.resolve(), place / "environment")
        package = next((place / "environment").glob("lib/python*/site-packages/regionscope"))
        _make_read_only(package)
        (place / "elsewhere").mkdir()
        _use(bin, place / "elsewhere", wheel.name.split("-")[1])
        kept = list((place / "elsewhere" / "home").rglob("*.nbi"))
        assert kept, "numba kept nothing in the user's cache folder"
        assert not list(package.rglob("*.nbi")), "numba wrote into the installation"
        print(f"{wheel.name}: installed, read-only, used from another folder; {len(kept)} kernels in the user's cache")


def _installed(wheel: Path, environment: Path) -> Path:
    """A new environment with nothing but the wheel and what it needs: the folder of its commands."""
    venv.create(environment, with_pip=True)
    bin = environment / "bin"
    pip = f"{bin / 'python'} -m pip install --quiet --disable-pip-version-check --no-compile -c".split()
    subprocess.run([*pip, str(ROOT / "constraints.txt"), str(wheel)], check=True)
    return bin


def _make_read_only(package: Path) -> None:
    """Let nobody write there, not even root, who cannot make a folder where a file has its name."""
    for folder in [package, *(path for path in package.rglob("*") if path.is_dir())]:
        (folder / "__pycache__").write_text("")
        folder.chmod(0o555)


def _use(bin: Path, here: Path, version: str) -> None:
    """What a first look at the library does."""
    for tool in ABSENT:
        assert shutil.which(tool, path=str(bin)) is None

    def done(*command: str, home: str | Path = here / "home") -> subprocess.CompletedProcess[str]:
        environment = {"PATH": str(bin), "HOME": str(home), "NO_COLOR": "1", "OMP_NUM_THREADS": "1"}
        words = [str(bin / command[0]), *command[1:]]
        ended = subprocess.run(words, cwd=here, env=environment, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, f"{' '.join(command)}: {ended.stdout}{ended.stderr}"
        return ended

    (here / "home").mkdir()
    done("python", "-W", "error", "-c", WITHOUT_EXTRAS, home="/dev/null")  # where no cache can be
    assert done("regionscope", "--version").stdout.strip() == version
    assert "measure" in done("regionscope", "completion", "bash").stdout
    first = done("regionscope", "train", "run", *SMALL.split())
    assert "compiling kernels (up to a minute), each when it is first used" in first.stderr, first.stderr
    for first_time in (True, False):  # other kernels than training needs, and then none
        regions = done("regionscope", "regions", "run/steps/000000003/weights.safetensors", "--json")
        assert json.loads(regions.stdout)["certificate"]["holds"] is True
        assert ("compiling" in regions.stderr) == first_time, regions.stderr
    done("regionscope", "export", "run", "--html", "page.html")
    assert "<script" in (here / "page.html").read_text()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python tools/smoke.py WHEEL")
    main(Path(sys.argv[1]))
