"""A first start on someone else's machine: folders that cannot be written to, notebooks, nothing compiled yet."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import regionscope

MODEL = "import torch, regionscope as rs\nmodel = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU())\n"
LINE = "assert len(rs.line_cells(model, torch.zeros(2), torch.ones(2)))\n"
PLANE = "assert len(rs.plane_cells(model, rs.Plane.coordinates(torch.zeros(2))))\n"
# what a kernel of IPython without ipywidgets looks like to tqdm
NOTEBOOK = (
    "import sys, types\n"
    "shell = types.SimpleNamespace(config={'IPKernelApp': {}})\n"
    "sys.modules['IPython'] = types.SimpleNamespace(get_ipython=lambda: shell)\n"
    "sys.modules['ipywidgets'] = None\n"
    "sys.modules['ipykernel.zmqshell'] = types.ModuleType('ipykernel.zmqshell')\n"
)


def started(code: str, *options: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    kept = {name: value for name, value in os.environ.items() if name not in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME")}
    run = [sys.executable, *options, "-c", code]
    return subprocess.run(run, capture_output=True, text=True, check=True, env=kept | environment)


def test_the_first_call_says_once_that_it_compiles(tmp_path: Path) -> None:
    first, second = (started(MODEL + PLANE, NUMBA_CACHE_DIR=str(tmp_path)) for _ in range(2))
    assert (
        first.stderr.count("\n") == 1 and "(up to a minute), each when it is first used: they are kept" in first.stderr
    )
    assert second.stderr == ""


def test_whatever_else_is_compiled_in_a_process_nothing_more_is_said() -> None:
    code = (
        "from regionscope.compiling import njit\n"
        "def first(x): return x + 1\n"
        "def second(x): return 2 * x\n"
        "first.__module__ = second.__module__ = 'regionscope.somewhere'\n"
        "assert njit(cache=False)(first)(20) == 21 and njit(cache=False)(second)(21) == 42\n"
    )
    assert started(code).stderr.count("compiling kernels") == 1


def test_nothing_is_said_of_what_others_compile() -> None:
    code = "import numba, regionscope.compiling\nassert numba.njit(lambda x: 2 * x)(21) == 42"
    assert started(code).stderr == ""


def test_it_works_without_a_folder_that_can_be_written_to(tmp_path: Path) -> None:
    package = tmp_path / "regionscope"
    shutil.copytree(Path(regionscope.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in [package, *(path for path in package.rglob("*") if path.is_dir())]:
        (folder / "__pycache__").write_text("")  # not even root can make a folder of that name now
    where = f"import regionscope\nassert regionscope.__file__.startswith({str(tmp_path)!r})\n"
    found = started(where + MODEL + LINE, HOME="/dev/null", PYTHONPATH=str(tmp_path))
    assert found.stderr.count("\n") == 1 and "numba found no folder to keep them in" in found.stderr


def test_importing_warns_of_nothing_in_a_notebook() -> None:
    everything = "import regionscope as rs\nfor name in rs.__all__: getattr(rs, name)"
    assert started(everything, "-W", "error").stderr == ""
    assert started(NOTEBOOK + everything).stderr == ""
    assert "IProgress not found" in started(NOTEBOOK + "import tqdm.auto").stderr, "which is what would be seen"


def test_nothing_goes_past_what_makes_it_start_everywhere() -> None:
    root = Path(regionscope.__file__).parent
    files = {str(path.relative_to(root)): path.read_text() for path in root.rglob("*.py")}
    assert [name for name, text in files.items() if "from numba import" in text] == []
    assert [name for name, text in files.items() if "from tqdm" in text] == ["progress.py"]
