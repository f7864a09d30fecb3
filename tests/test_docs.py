"""The pages of the site: their code runs, their commands exist, and each can be found."""

import os
import re
import shlex
from pathlib import Path

import pytest

import regionscope as rs
from regionscope.cli.commands import app

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
MADE = DOCS / "gallery"  # by `make docs`, out of examples/
PAGES = {
    path.relative_to(DOCS).with_suffix("").as_posix(): path
    for path in sorted([*DOCS.rglob("*.md"), *DOCS.rglob("*.ipynb")])
    if MADE not in path.parents
}
TEXTS = {name: path.read_text() for name, path in PAGES.items() if path.suffix == ".md"}


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


CALLS = [(name, command) for name, text in TEXTS.items() for command in commands(text)]


@pytest.mark.parametrize(("name", "command"), CALLS, ids=[f"{name}: {command}" for name, command in CALLS])
def test_a_command_on_a_page_is_understood(name: str, command: str) -> None:
    words = shlex.split(command, comments=True)
    words = words[: next((i for i, word in enumerate(words) if word in {"|", ">", "&&", "&"}), None)]
    app.parse_args(words, exit_on_error=False, print_error=False)


def test_every_page_is_in_one_table_of_contents() -> None:
    found = ["index"]
    for name, text in TEXTS.items():
        for block in blocks(text, r"\{toctree\}"):
            entries = [line for line in block.splitlines() if line and not line.startswith(":")]
            found += [os.path.normpath(Path(name).parent / entry) for entry in entries]
    assert sorted(found) == sorted([*PAGES, "gallery/index"])


LINKED = {f"docs/{name}": path for name, path in PAGES.items() if name in TEXTS}
LINKED |= {name: ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "CHANGELOG")}


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
