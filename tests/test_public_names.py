"""The names of the library: all there, none loaded before it is asked for."""

import subprocess
import sys
from importlib import import_module

import pytest

import regionscope as rs

HEAVY = {"captum", "cyclopts", "filelock", "matplotlib", "numba", "numpy", "pooch", "safetensors", "scipy", "torch"}


def loaded_by(code: str) -> set[str]:
    """The packages that a new process has loaded after this code."""
    code = f"import sys; {code}; print(*{{name.split('.')[0] for name in sys.modules}})"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())


@pytest.mark.parametrize("name", rs.__all__)
def test_a_public_name_is_what_its_file_has(name: str) -> None:
    found = getattr(rs, name)
    home = getattr(found, "__module__", None) or "regionscope.measures.table"
    assert getattr(import_module(home), name) is found
    assert name in dir(rs)


def test_public_names_are_listed_once_and_all_are_imported_by_a_star() -> None:
    assert len(set(rs.__all__)) == len(rs.__all__)
    names: dict[str, object] = {}
    exec("from regionscope import *", names)
    assert set(rs.__all__) <= set(names)


def test_other_names_are_refused() -> None:
    with pytest.raises(AttributeError, match="module 'regionscope' has no attribute 'local_rnak'"):
        _ = rs.local_rnak  # type: ignore[attr-defined]
    with pytest.raises(ImportError, match="cannot import name 'local_rnak' from 'regionscope'"):
        exec("from regionscope import local_rnak")


def test_importing_the_library_loads_nothing_heavy() -> None:
    assert loaded_by("import regionscope").isdisjoint(HEAVY)
    assert loaded_by("import regionscope; regionscope.trace").isdisjoint({"matplotlib", "numba", "scipy"})
