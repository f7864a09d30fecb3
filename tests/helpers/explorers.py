"""A small run, and ways to ask the explorer about it."""

from functools import partial
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient

import regionscope as rs
from regionscope.app.library import Library
from regionscope.app.server import Address, explorer
from regionscope.app.viewer import Viewer
from regionscope.cli.explorer import run_exhibit
from regionscope.cli.models import TOLD_BY_FILE

ADDRESS = Address(8123, "the-token")
OWN = {"authorization": f"Bearer {ADDRESS.token}"}
SMALL = rs.Training(
    size=60, test_size=20, depth=2, width=12, steps=40, records=5, points=5, plane=True, measures=("total_variation",)
)


def small_runs(folder: Path) -> Path:
    """A folder with one run, "one"."""
    rs.train(SMALL, folder / "one")
    return folder


def viewer_of(folder: Path, **options: Any) -> Viewer:
    return Viewer(Library([folder], partial(run_exhibit, TOLD_BY_FILE, None, None)), **options)


def client_of(viewer: Viewer, *, static: Path, headers: dict[str, str] = OWN, **options: Any) -> TestClient:
    """A client of the application that nothing is between, with the token unless other headers are given."""
    app = explorer(viewer, ADDRESS, static=static)
    return TestClient(
        app, base_url=f"http://127.0.0.1:{ADDRESS.port}", headers=headers, follow_redirects=False, **options
    )
