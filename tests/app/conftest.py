"""One run for all tests of the explorer."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from explorers import client_of, small_runs, viewer_of
from starlette.testclient import TestClient

from regionscope.app.viewer import Viewer


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_runs(tmp_path_factory.mktemp("explorer") / "runs")


@pytest.fixture(scope="session")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files as the build makes them."""
    static = tmp_path_factory.mktemp("static")
    (static / "assets").mkdir()
    (static / "assets" / "index-1.js").write_text("console.log('</script>')")
    (static / "assets" / "index-1.css").write_text("body { margin: 0 }")
    (static / "index.html").write_text(
        '<!doctype html><html><head><title>regionscope</title><link rel="icon" href="/icon.svg">'
        '<script type="module" crossorigin src="./assets/index-1.js"></script>'
        '<link rel="stylesheet" crossorigin href="./assets/index-1.css"></head><body></body></html>'
    )
    return static


@pytest.fixture(scope="session")
def viewer(folder: Path) -> Viewer:
    return viewer_of(folder)


@pytest.fixture(scope="session")
def client(viewer: Viewer, page: Path) -> Iterator[TestClient]:
    with client_of(viewer, static=page) as made:
        yield made
