"""The names of the library: all there, none loaded before it is asked for."""

import inspect
import re
import subprocess
import sys
from importlib import import_module
from typing import Any

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


def drawing_functions() -> dict[str, Any]:
    """The public functions and methods that take a generator."""
    found = {}
    for name in rs.__all__:
        thing = getattr(rs, name)
        members = inspect.getmembers(thing, inspect.isfunction) if inspect.isclass(thing) else []
        own = [(f"{name}.{member}", function) for member, function in members if not member.startswith("_")]
        for place, function in [(name, thing), *own] if callable(thing) else []:
            parameters = {} if inspect.isclass(function) else inspect.signature(function).parameters
            if "generator" in parameters and parameters["generator"].default is None:
                found[place] = function
    return found | {"complexity_density": rs.complexity_density}


@pytest.mark.parametrize("name", drawing_functions())
def test_functions_that_draw_say_whether_calls_without_a_generator_differ(name: str) -> None:
    words = " ".join(str(inspect.getdoc(drawing_functions()[name])).split())
    assert re.search("calls differ|the same in every call", words) and "ithout a `generator`" in words


def test_other_names_are_refused() -> None:
    with pytest.raises(AttributeError, match="module 'regionscope' has no attribute 'local_rnak'"):
        _ = rs.local_rnak  # type: ignore[attr-defined]
    with pytest.raises(ImportError, match="cannot import name 'local_rnak' from 'regionscope'"):
        exec("from regionscope import local_rnak")


def test_importing_the_library_loads_nothing_heavy() -> None:
    assert loaded_by("import regionscope").isdisjoint(HEAVY)
    assert loaded_by("import regionscope; regionscope.trace").isdisjoint({"matplotlib", "numba", "scipy"})


def test_checkpoints_are_found_where_scripts_look_for_them() -> None:
    from regionscope import checkpoints

    assert checkpoints.load_model is rs.load_model
    assert {getattr(checkpoints, name).__module__ for name in checkpoints.__all__} == {
        "regionscope.training.checkpoints"
    }


def test_pictures_are_there_without_an_import_of_their_own() -> None:
    assert "matplotlib" in loaded_by("import regionscope as rs; assert callable(rs.plots.paper)")
