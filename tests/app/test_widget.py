"""The explorer in a notebook: questions by messages, to real widgets."""

import json
import time
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import regionscope as rs
from regionscope.app.payload import read_block

widgets = pytest.importorskip("ipywidgets", reason="the widget needs anywidget: pip install 'regionscope[notebook]'")


class Notebook:
    """The other end of a widget: what a notebook page is sent."""

    def __init__(self, widget: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        self.widget, self.heard = widget, list[tuple[dict[str, Any], list[bytes]]]()
        monkeypatch.setattr(widget.comm, "publish_msg", self.publish)

    def publish(self, kind: str, data: Any = None, buffers: Any = None, **rest: Any) -> None:
        if data["method"] == "custom":
            self.heard.append((data["content"], buffers))

    def ask(self, address: str, number: int = 1) -> tuple[dict[str, Any], bytes]:
        message = {"method": "custom", "content": {"id": number, "ask": address}}
        self.widget._handle_msg({"content": {"data": message}, "buffers": []})
        for _ in range(3000):
            for about, buffers in self.heard:
                if about["id"] == number:
                    return about, bytes(buffers[0])
            time.sleep(0.01)
        raise AssertionError(f"no answer to {address}")


@pytest.fixture
def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(1, 3, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(27, 2))


@pytest.fixture
def plane() -> rs.Plane:
    return rs.Plane.through(*torch.rand(3, 1, 8, 8, generator=torch.Generator().manual_seed(1)))


def test_a_widget_answers_with_the_cells_of_the_model(
    model: nn.Module, plane: rs.Plane, monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook = Notebook(rs.explore(model, plane), monkeypatch)
    about, body = notebook.ask("/api/runs")
    assert about == {"id": 1, "status": 200, "type": "application/json"}
    told = json.loads(body)
    assert not told["live"] and told["runs"][0]["planes"] == ["given:plane"] and not told["runs"][0]["images"]
    with torch.no_grad():
        next(model.parameters()).neg_()  # the widget shows the model as it was
    asked = "/api/cells?run=model&step=0&plane=given%3Aplane&x=0.1&y=0&hx=0.25&hy=0.25&view=left"
    about, body = notebook.ask(asked, 2)
    assert about == {"id": 2, "status": 200, "type": "application/octet-stream"}
    header, arrays = read_block(body)
    with torch.no_grad():
        next(model.parameters()).neg_()
    corners = np.array([0.1, 0.0]) + 0.25 * np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])
    cells = rs.plane_cells(model, rs.Plane(plane.origin, plane.axes, corners))
    assert header["exact"] and header["cells"] == len(cells) > 1
    assert np.allclose(arrays["area"] * 0.25**2, cells.areas, rtol=1e-5)


def test_a_widget_lays_planes_through_points_that_are_given(
    model: nn.Module, plane: rs.Plane, monkeypatch: pytest.MonkeyPatch
) -> None:
    points = torch.rand(6, 1, 8, 8, generator=torch.Generator().manual_seed(2))
    notebook = Notebook(rs.explore(model, plane, points=points, labels=torch.arange(6) % 2), monkeypatch)
    anchors = json.loads(notebook.ask("/api/plane?run=model&plane=through:1,3,4")[1])["anchors"]
    assert [(anchor["index"], anchor["label"]) for anchor in anchors] == [(1, "1"), (3, "1"), (4, "0")]
    assert notebook.ask("/api/image?run=model&index=5", 2)[1].startswith(b"\x89PNG")


def test_a_widget_says_why_there_is_no_answer(
    model: nn.Module, plane: rs.Plane, monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook = Notebook(rs.explore(model, plane), monkeypatch)
    for number, (address, status) in enumerate([("/api/nothing", 404), ("/api/cells?run=model", 400), ("%", 404)]):
        about, body = notebook.ask(address, number)
        assert about["status"] == status and json.loads(body)["error"]["message"]
    notebook.widget._handle_msg({"content": {"data": {"method": "custom", "content": "noise"}}, "buffers": []})
    assert notebook.ask("/api/runs", 9)[0]["status"] == 200


def test_a_fault_is_told_to_who_waits(model: nn.Module, plane: rs.Plane, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*given: Any) -> None:
        raise ZeroDivisionError("no")

    notebook = Notebook(rs.explore(model, plane), monkeypatch)
    monkeypatch.setattr("regionscope.app.widget.answer", failing)
    about, body = notebook.ask("/api/runs")
    assert about["status"] == 500
    assert json.loads(body)["error"]["message"] == "the explorer has a fault: ZeroDivisionError: no"


def test_explore_checks_what_it_is_given(model: nn.Module, plane: rs.Plane) -> None:
    with pytest.raises(ValueError, match="not piecewise linear"):
        rs.explore(nn.Sequential(nn.Flatten(), nn.Linear(64, 3), nn.GELU()), plane)
    with pytest.raises(ValueError, match=r"points must be at least three inputs"):
        rs.explore(model, plane, points=torch.rand(5, 64))
    with pytest.raises(ValueError, match=r"labels must be \(5,\)"):
        rs.explore(model, plane, points=torch.rand(5, 1, 8, 8), labels=torch.zeros(4))


def test_without_anywidget_the_extra_is_named(
    model: nn.Module, plane: rs.Plane, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "anywidget", None)
    with pytest.raises(ImportError, match=r"regionscope\[notebook\]"):
        rs.explore(model, plane)
