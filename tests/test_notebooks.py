"""The notebooks of the documentation run from top to bottom, and are stored small and with what they show."""

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).parent.parent / "docs" / "notebooks").glob("*.ipynb"))
NOTICES = ("regionscope: compiling kernels", "Matplotlib is building the font cache")  # on a first run
MOST_BYTES = 400_000


def code_cells(notebook: Any) -> list[Any]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def said(notebook: Any) -> list[str]:
    """The lines on standard error, but for notices."""
    texts = [out.text for cell in code_cells(notebook) for out in cell.outputs if out.get("name") == "stderr"]
    lines = "".join(texts).splitlines()
    return [line for line in lines if not any(notice in line for notice in NOTICES)]


def test_there_are_notebooks() -> None:
    assert {path.stem for path in NOTEBOOKS} >= {"first-look", "watching-grokking", "your-own-resnet"}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_says_nothing_on_standard_error(path: Path, tmp_path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    where: dict[str, Any] = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, timeout=600, kernel_name="python3", resources=where).execute()  # an error is raised here
    assert said(notebook) == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_stored_as_it_was_run_once_and_is_small(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    counts = [cell.execution_count for cell in code_cells(notebook)]
    assert counts == list(range(1, len(counts) + 1))
    assert said(notebook) == []
    assert path.stat().st_size < MOST_BYTES
    assert any("image/png" in out.get("data", {}) for cell in code_cells(notebook) for out in cell.outputs)
