"""The widget in a real notebook: Jupyter, its kernel, and a browser."""

import importlib.util
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import pytest
import torch
from browsers import Looker, new_browser
from torch import nn

import regionscope as rs

MISSING = [name for name in ("notebook", "ipykernel", "anywidget") if importlib.util.find_spec(name) is None]
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"not tried in Jupyter: pip install {' '.join(MISSING)}")
CELL = """import torch, regionscope as rs
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(2, 12), torch.nn.ReLU(), torch.nn.Linear(12, 3))
rs.explore(model, rs.Plane.coordinates(torch.zeros(2)))"""
SECONDS = 180  # on a machine that has much else to do


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    """A notebook with one cell, in a server of its own."""
    cell: dict[str, Any] = {
        "cell_type": "code",
        "id": "a",
        "metadata": {},
        "source": CELL,
        "outputs": [],
        "execution_count": None,
    }
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    book = {"cells": [cell], "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    (tmp_path / "book.ipynb").write_text(json.dumps(book))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    options = [f"--ServerApp.port={port}", "--IdentityProvider.token=t", "--no-browser", "--allow-root"]
    own = {f"JUPYTER_{part}_DIR": str(tmp_path / part) for part in ("CONFIG", "DATA", "RUNTIME")}
    command = [sys.executable, "-m", "notebook", *options, f"--ServerApp.root_dir={tmp_path}"]
    with subprocess.Popen(command, env={**os.environ, **own}, stderr=subprocess.DEVNULL) as server:
        try:
            wait_for(f"{address}/api?token=t")
            yield f"{address}/notebooks/book.ipynb?token=t"
        finally:
            server.terminate()


def wait_for(address: str) -> None:
    for _ in range(10 * SECONDS):
        try:
            with urlopen(address, timeout=5):
                return
        except (URLError, OSError):
            time.sleep(0.1)
    raise AssertionError("Jupyter does not answer")


@pytest.fixture
def browser() -> Iterator[Any]:
    try:
        with new_browser() as found:
            yield found
    except LookupError as error:
        pytest.skip(f"not tried in Jupyter: {error}")


def test_a_notebook_shows_the_model_and_zooms_into_it(browser: Any, url: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    model, plane = nn.Sequential(nn.Linear(2, 12), nn.ReLU(), nn.Linear(12, 3)), rs.Plane.coordinates(torch.zeros(2))
    looker = Looker(browser.new_page(viewport={"width": 1280, "height": 1000}))
    page = looker.page
    page.set_default_timeout(1000 * SECONDS)
    page.goto(url)
    while page.locator(".jp-InputPrompt").first.inner_text().strip() == "[ ]:":  # as long as there is no kernel
        page.locator(".jp-CodeCell .cm-content").first.click()
        page.keyboard.press("Shift+Enter")
        page.wait_for_timeout(1000)
    looker.ready()
    caption = looker.panel().locator("figcaption")
    assert "regions (exact)" in caption.inner_text()
    before = caption.locator(".window").inner_text()
    page.get_by_role("button", name="show the whole plane").scroll_into_view_if_needed()
    looker.point_at(0.3, 0.3)
    caption.get_by_text("nearest boundary").wait_for()
    for _ in range(6):
        page.get_by_role("button", name="zoom in").click()
    page.wait_for_timeout(300)
    looker.ready()
    whole, shown = float(before.split()[1]), float(caption.locator(".window").inner_text().split()[1])
    assert shown == pytest.approx(whole / 64, rel=0.01)
    count = int(caption.inner_text().split("region")[0].split()[-1])
    half = 1.5 * shown / 2  # what is asked for is larger than what is shown
    square = half * torch.tensor([[-1, -1], [1, -1], [1, 1], [-1, 1]], dtype=torch.float64)
    box = page.locator("canvas[role=application]").bounding_box()
    square[:, 1] *= box["height"] / box["width"]
    assert count == len(rs.plane_cells(model, rs.Plane(plane.origin, plane.axes, square)))
    if "REGIONSCOPE_SCREENSHOT" in os.environ:
        page.screenshot(path=os.environ["REGIONSCOPE_SCREENSHOT"])
