"""Requests that nobody waits for are stopped, and the file that opens without a server."""

import base64
import json
import queue
import re
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import httpx
import numpy as np
import pytest
import torch
from cases import mlp
from explorers import OWN
from torch import nn

import regionscope as rs
from regionscope.app.library import Exhibit, Library
from regionscope.app.page import canonical_address, exported_page
from regionscope.app.payload import read_block
from regionscope.app.problems import Problem
from regionscope.app.questions import first_look
from regionscope.app.server import Address, bound_socket, explorer, new_server
from regionscope.app.summaries import curves
from regionscope.app.viewer import Viewer
from regionscope.app.windows import Window
from regionscope.cli.explorer import run_exhibit, view, write_page
from regionscope.cli.models import TOLD_BY_FILE, Given
from regionscope.training.checkpoints import Architecture


class Slow:
    """A network that is there when it is let go."""

    def __init__(self) -> None:
        self.asked, self.go = 0, threading.Event()
        self.viewer = Viewer(Library([], lambda name, run: Exhibit(name), [self.exhibit()]))

    def exhibit(self) -> Exhibit:
        return Exhibit("slow", model=self.model, planes={"start": rs.Plane.coordinates(torch.zeros(2))})

    def model(self, step: int) -> nn.Module:
        self.asked += 1
        self.go.wait(30)
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 2))


@pytest.fixture
def slow() -> Slow:
    return Slow()


@pytest.fixture
def url(slow: Slow, page: Path) -> Iterator[str]:
    with bound_socket(0) as listening:
        address = Address(listening.getsockname()[1], "the-token")
        server = new_server(explorer(slow.viewer, address, static=page))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        yield f"http://127.0.0.1:{address.port}/api/cells?run=slow&step=0&plane=given:start"
        slow.go.set()
        server.should_exit = True
        thread.join(timeout=10)


def until(happened: object, count: int, slow: Slow) -> None:
    for _ in range(1000):
        if slow.asked >= count:
            return
        time.sleep(0.01)
    raise AssertionError("nobody asked")


@pytest.mark.parametrize(("second", "expected"), [("left", [409, 200]), ("right", [200, 200])])
def test_a_newer_request_of_a_view_stops_the_one_before(slow: Slow, url: str, second: str, expected: list[int]) -> None:
    found: dict[int, httpx.Response] = {}

    def ask(k: int, name: str) -> None:
        found[k] = httpx.get(f"{url}&view={name}&max_cells={1000 + k}", headers=OWN, timeout=30)

    threads = []
    for k, name in enumerate(("left", second)):
        threads.append(threading.Thread(target=ask, args=(k, name)))
        threads[-1].start()
        until("asked", k + 1, slow)
    slow.go.set()
    for thread in threads:
        thread.join(30)
    assert [found[k].status_code for k in range(2)] == expected
    if expected[0] == 409:
        assert found[0].json()["error"]["kind"] == "superseded"


def test_what_nobody_waits_for_is_stopped(slow: Slow, url: str) -> None:
    with pytest.raises(httpx.ReadTimeout):
        httpx.get(url, headers=OWN, timeout=1.0)
    until("asked", 1, slow)
    time.sleep(1.0)  # the server looks ten times a second whether somebody waits
    slow.go.set()
    assert httpx.get(f"{url}&max_cells=77", headers=OWN, timeout=30).status_code == 200
    kept = slow.viewer.blocks.nbytes
    assert kept == len(httpx.get(f"{url}&max_cells=77", headers=OWN, timeout=30).content)


# the file


def test_a_run_becomes_one_file_with_all_that_was_recorded(folder: Path, page: Path) -> None:
    run = rs.Run.open(folder / "one")
    html = exported_page(run_exhibit(TOLD_BY_FILE, None, None, "one", run), static=page)
    assert "src=" not in html and "href=" not in html and html.count("</script>") == 2
    stored = re.search(r'<script type="application/json" id="regionscope-answers">(.*?)</script>', html)
    assert stored is not None
    answers = json.loads(stored[1])["answers"]
    about = answers["/api/runs"]["json"]
    assert not about["live"] and not about["runs"][0]["network"]
    assert answers[canonical_address("/api/curves", {"run": "one"})]["json"]["steps"] == run.steps
    for step in run.steps:
        asked = canonical_address("/api/cells", {"run": "one", "step": str(step), "plane": "recorded:train"})
        header, arrays = read_block(base64.b64decode(answers[asked]["base64"]))
        cells = run.plane(step, "train")
        assert header["recorded"] and header["cells"] == len(cells)
        assert np.array_equal(arrays["class"], cells.classes)
    images = answers[canonical_address("/api/images", {"run": "one", "start": "0", "count": "200"})]["json"]
    sheet = answers["/api/sheet?count=200&run=one&start=0"]
    assert images["total"] == 60 and base64.b64decode(sheet["base64"]).startswith(b"\x89PNG")
    assert images["sheet"] in answers
    anchors = answers[canonical_address("/api/plane", {"run": "one", "plane": "recorded:train"})]["json"]["anchors"]
    assert anchors and all(f"/api/image?index={anchor['index']}&run=one" in answers for anchor in anchors)


def test_a_first_look_has_everything_ready_for_the_page(slow: Slow) -> None:
    slow.go.set()
    first_look(slow.viewer)
    assert slow.asked == 1 and slow.viewer.blocks.nbytes > 0
    slow.viewer.cells(slow.exhibit(), 0, "given:start", Window(0.0, 0.0, 0.5, 0.5), 1000, lambda: None)
    assert slow.asked == 1


def test_a_page_that_is_not_built_is_an_error(folder: Path, tmp_path: Path) -> None:
    exhibit = run_exhibit(TOLD_BY_FILE, None, None, "one", rs.Run.open(folder / "one"))
    with pytest.raises(ValueError, match="make web"):
        exported_page(exhibit, static=tmp_path)
    (tmp_path / "index.html").write_text('<html><head><script type="module" src="./assets/gone.js"></script></head>')
    with pytest.raises(ValueError, match=r"refers to /assets/gone\.js, which is not there: build it with `make web`"):
        exported_page(exhibit, static=tmp_path)


def test_a_run_without_a_model_shows_what_it_recorded(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 2))
    plane = rs.Plane.coordinates(torch.zeros(2))
    with rs.Monitor(model, {"train": torch.randn(5, 2)}, run=tmp_path / "run", planes={"all": plane}) as monitor:
        monitor(0)
    exhibit = run_exhibit(TOLD_BY_FILE, None, None, "run", rs.Run.open(tmp_path / "run"))
    viewer = Viewer(Library([], lambda name, run: exhibit, [exhibit]))
    header, arrays = read_block(viewer.cells(exhibit, 0, "recorded:all", None, 1000, lambda: None))
    cells = rs.plane_cells(model, plane)
    assert header["recorded"] and header["cells"] == len(cells)
    assert np.allclose(arrays["gradient"], cells.gradient_norms, rtol=1e-4)
    part = Window(0.0, 0.0, 0.1, 0.1)
    with pytest.raises(Problem, match="has this plane as it was recorded only"):
        viewer.cells(exhibit, 0, "recorded:all", part, 1000, lambda: None)
    with pytest.raises(Problem, match="run cannot be computed anew"):
        viewer.density(exhibit, 0, "recorded:all", None, 0.1, lambda: None)


@pytest.mark.parametrize(("inputs", "planes"), [(784, ["through:0,1,2"]), (2, ["coordinates"]), (9, [])])
def test_a_run_without_planes_is_seen_on_planes_of_its_own_if_its_model_is_told(
    inputs: int, planes: list[str], tmp_path: Path
) -> None:
    (tmp_path / "shown_network.py").write_text(
        f"from torch import nn\n\ndef build():\n    return nn.Linear({inputs}, 3)\n"
    )
    model, points = nn.Linear(inputs, 3), torch.rand(4, inputs)
    with rs.Monitor(model, {"train": points}, measures={}, run=tmp_path / "run", checkpoints=True) as monitor:
        monitor(5)
    np.save(tmp_path / "points.npy", points.numpy())
    told = Given(model=f"{tmp_path / 'shown_network.py'}:build")
    for own, expected in ((None, planes), (tmp_path / "points.npy", planes or ["through:0,1,2"])):
        viewer = Viewer(Library([tmp_path], partial(run_exhibit, told, own, None)))
        (exhibit,) = viewer.library.exhibits().values()
        assert list(viewer.plane_names(exhibit)) == expected
        for name in expected:
            header, _ = read_block(viewer.cells(exhibit, 5, name, None, 1000, lambda: None))
            assert header["cells"] == 1 and header["exact"]


def test_a_run_is_listed_although_its_model_is_another(tmp_path: Path) -> None:
    (tmp_path / "shown_network.py").write_text("from torch import nn\n\ndef build():\n    return nn.Linear(2, 5)\n")
    model, where = nn.Linear(2, 3), tmp_path / "run"
    with rs.Monitor(model, {"train": torch.rand(4, 2)}, measures={}, run=where, checkpoints=True) as monitor:
        monitor(0)
    describe = partial(run_exhibit, Given(model=f"{tmp_path / 'shown_network.py'}:build"), None, None)
    viewer = Viewer(Library([tmp_path], describe))
    (exhibit,) = viewer.library.exhibits().values()
    assert list(viewer.plane_names(exhibit)) == ["coordinates"]
    with pytest.raises(ValueError, match="does not fit the network"):
        viewer.cells(exhibit, 0, "coordinates", None, 1000, lambda: None)


def test_a_plane_that_one_step_has_is_not_shown_at_another(tmp_path: Path) -> None:
    run, cells = rs.Run.create(tmp_path / "run", {}), rs.plane_cells(nn.ReLU(), rs.Plane.coordinates(torch.zeros(2)))
    run.record(rs.Record(0, {}, {}), planes={"first": cells})
    run.record(rs.Record(1, {}, {"train": {"own": {"values": [1, 2]}}}), planes={})
    exhibit = run_exhibit(TOLD_BY_FILE, None, None, "run", run)
    viewer = Viewer(Library([], lambda name, run: exhibit, [exhibit]))
    assert viewer.plane_names(exhibit) == {"recorded:first": [0]}
    with pytest.raises(Problem, match="run has no plane 'first' at step 1"):
        viewer.cells(exhibit, 1, "recorded:first", None, 1000, lambda: None)
    assert curves(viewer, exhibit)["measures"] == []  # it is not one number


def test_view_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="there are no runs in"):
        view((tmp_path,), no_browser=True)
    with pytest.raises(ValueError, match=r"must be a \.safetensors file"):
        view(weights=tmp_path / "model.pt")
    with pytest.raises(FileNotFoundError, match="there is no run in"):
        write_page(tmp_path, tmp_path / "out.html")


def test_view_shows_the_others_beside_a_damaged_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rs.Run.create(tmp_path / "runs" / "whole", {})
    (tmp_path / "runs" / "damaged").mkdir()
    (tmp_path / "runs" / "damaged" / "run.json").write_text("no JSON")
    shown = list[str]()
    monkeypatch.setattr(
        "regionscope.cli.explorer.serve", lambda viewer, **_: shown.extend(viewer.library.exhibits().keys())
    )
    view((tmp_path / "runs",), no_browser=True)
    assert shown == ["runs/whole"]


def shown_by(command: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> dict[str, Exhibit]:
    """What a command would show, if it served a page."""
    found = dict[str, Exhibit]()
    monkeypatch.setattr("regionscope.cli.explorer.serve", lambda viewer, **_: found.update(viewer.library.exhibits()))
    command()
    return found


def test_a_network_of_two_inputs_is_shown_without_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    weights = tmp_path / "net.safetensors"
    rs.save_weights(mlp(2, 4, 3).state_dict(), weights, Architecture("mlp", "relu"))
    exhibit = shown_by(lambda: view(weights=weights, no_browser=True), monkeypatch)["net"]
    assert exhibit.images is None and exhibit.planes["start"].origin.tolist() == [0, 0]


def test_points_of_ones_own_take_the_place_of_those_of_the_training(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    points = np.random.default_rng(0).random((4, 784), np.float32)
    np.save(tmp_path / "x.npy", points)
    np.save(tmp_path / "y.npy", np.arange(4))
    x, y = tmp_path / "x.npy", tmp_path / "y.npy"
    exhibit = shown_by(lambda: view((folder,), no_browser=True, points=x, labels=y), monkeypatch)["runs/one"]
    assert exhibit.images is not None
    images = exhibit.images()
    assert (
        np.array_equal(images.points, points) and images.labels is not None and images.labels.tolist() == [0, 1, 2, 3]
    )


def test_images_of_other_data_than_a_run_was_trained_on_are_not_shown(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exhibit = run_exhibit(TOLD_BY_FILE, None, None, "one", rs.Run.open(folder / "one"))
    assert exhibit.images is not None and len(exhibit.images().points) == 60
    monkeypatch.setattr("regionscope.cli.explorer.digest", lambda data: "another")
    with pytest.raises(ValueError, match="mnist-sample is not what one was trained on: its images are not shown"):
        exhibit.images()


def test_the_browser_is_opened_unless_it_is_not_wanted(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    opened, address = queue.SimpleQueue[str](), Address(7, "secret")
    monkeypatch.setattr("webbrowser.open", opened.put)
    monkeypatch.setattr("regionscope.cli.explorer.serve", lambda viewer, *, started, **_: started(address))
    view((folder,), no_browser=True)
    assert opened.empty()
    view((folder,))
    assert opened.get(timeout=10) == address.url and capsys.readouterr().out.count(address.url) == 2
