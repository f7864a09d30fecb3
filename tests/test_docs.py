"""The pages of the site: their code runs, their commands exist, and each can be found."""

import os
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from cyclopts import CycloptsError

import regionscope as rs
from regionscope.cli.commands import app
from regionscope.experiments.registry import experiments_named
from regionscope.measures.table import measure_named
from regionscope.training.config import Training
from regionscope.training.loop import SCORES

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
MADE = DOCS / "gallery"  # by `make docs`, out of examples/
PAGES = {
    path.relative_to(DOCS).with_suffix("").as_posix(): path
    for path in sorted([*DOCS.rglob("*.md"), *DOCS.rglob("*.ipynb")])
    if MADE not in path.parents
}
TEXTS = {name: path.read_text() for name, path in PAGES.items() if path.suffix == ".md"}
LINKED = {f"docs/{name}": PAGES[name] for name in TEXTS}
LINKED |= {name: ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "CHANGELOG")}


def blocks(text: str, *languages: str) -> list[str]:
    return re.findall(rf"^```(?:{'|'.join(languages)})\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


# lightning, of torch
@pytest.mark.filterwarnings(r"ignore:`isinstance\(treespec, LeafSpec\)` is deprecated:FutureWarning")
@pytest.mark.parametrize("name", [name for name, text in TEXTS.items() if blocks(text, "python")])
def test_the_code_of_a_page_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    exec(compile("\n".join(blocks(TEXTS[name], "python")), str(PAGES[name]), "exec"), {"__name__": "page"})


def commands(text: str) -> list[str]:
    """The lines of a page that call the command, those that go on joined."""
    lines = "\n".join(blocks(text, "console", "sh")).replace("\\\n", " ").splitlines()
    lines = [line.removeprefix("$ ") for line in lines]
    return [line.removeprefix("regionscope ") for line in lines if line.startswith("regionscope ")]


CALLS = [(name, command) for name, path in LINKED.items() for command in commands(path.read_text())]


def understood(command: str) -> None:
    """An error if a command line has an option, or names a measure or a figure, that there is not."""
    words = shlex.split(command, comments=True)
    words = words[: next((i for i, word in enumerate(words) if word in {"|", ">", "&&", "&"}), None)]
    _, given, _ = app.parse_args(words, exit_on_error=False, print_error=False)
    _check_names(given.arguments)


def _check_names(told: Mapping[str, Any]) -> None:
    config, column = told.get("config", Training()), told.get("column", "loss")
    for name in (*told.get("measures", ()), *config.measures):
        measure_named(name)
    for name, options in config.options.items():
        measure_named(name).check(options)
    experiments_named(told.get("names", ()))
    if column not in SCORES:
        measure_named(column.split("/")[1])


@pytest.mark.parametrize(("name", "command"), CALLS, ids=[f"{name}: {command}" for name, command in CALLS])
def test_a_command_on_a_page_is_understood(name: str, command: str) -> None:
    understood(command)


@pytest.mark.parametrize(
    "command",
    [
        "measure net.pt mood",
        "train runs/a --measures mood",
        "train runs/a --options.local_rank.mood 3",
        "compare runs --column train/mood",
        "reproduce mood",
        "demo --mood 3",
    ],
)
def test_a_command_that_would_be_refused_is_not_understood(command: str) -> None:
    with pytest.raises((ValueError, TypeError, CycloptsError), match="mood"):
        understood(command)


@pytest.mark.parametrize("name", LINKED)
def test_runs_that_the_commands_of_a_page_take_are_made_on_it(name: str) -> None:
    text = LINKED[name].read_text()
    made = {*re.findall(r"train (runs/\w+)", text), *re.findall(r'run="(runs/\w+)"', text)}
    made |= {"demo/run"} if "regionscope demo" in text else set()
    words = {word for command in commands(text) for word in shlex.split(command, comments=True)}
    assert {word for word in words if re.fullmatch(r"runs/\w+|demo/run", word)} <= made


def test_every_page_is_in_one_table_of_contents() -> None:
    found = ["index"]
    for name, text in TEXTS.items():
        for block in blocks(text, r"\{toctree\}"):
            entries = [line for line in block.splitlines() if line and not line.startswith(":")]
            found += [os.path.normpath(Path(name).parent / entry) for entry in entries]
    assert sorted(found) == sorted([*PAGES, "gallery/index"])


@pytest.mark.parametrize("name", LINKED)
def test_files_that_a_page_links_to_are_there(name: str) -> None:
    """Headings, too, are checked when the site is built; links to other sites by `make links`."""
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", re.sub(r"`[^`]*`", "", LINKED[name].read_text())):
        path = Path(os.path.normpath(LINKED[name].parent / target))
        assert ":" in target or path.exists() or MADE in path.parents, f"{name} links to {target}"


def test_every_measure_has_its_page() -> None:
    assert set(rs.MEASURES) <= {page.removeprefix("measures/") for page in PAGES if page.startswith("measures/")}


def test_every_public_name_is_once_in_the_reference_and_once_in_its_list() -> None:
    pages = {name: text for name, text in TEXTS.items() if name.startswith("api/")}
    listed = re.findall(r"^   (\w+)$", pages.pop("api/index"), re.MULTILINE)
    described = [name for text in pages.values() for name in re.findall(r"^\.\. (?:auto|py:)\w+:: (\w+)$", text, re.M)]
    assert sorted(described) == sorted(rs.__all__)
    assert sorted(listed) == sorted(rs.__all__)
