"""What the explorer is told is what the library finds."""

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from cases import mlp
from explorers import client_of, viewer_of
from PIL import Image
from starlette.testclient import TestClient
from torch import nn

import regionscope as rs
from regionscope.app.library import Exhibit, Images, Library
from regionscope.app.payload import read_block
from regionscope.app.rasters import PORTIONS, complexity_raster
from regionscope.app.summaries import curves
from regionscope.app.viewer import Viewer
from regionscope.app.windows import Window

RUN = "runs/one"
PLANE = "recorded:train"
Block = tuple[dict[str, Any], dict[str, Any]]


def told(client: TestClient, address: str, **parameters: Any) -> Any:
    answer = client.get(f"/api/{address}", params=parameters)
    assert answer.status_code == 200, answer.text
    return answer.json() if answer.headers["content-type"] == "application/json" else answer.content


def block(client: TestClient, address: str, **parameters: Any) -> Block:
    return read_block(told(client, address, **parameters))


def problem(client: TestClient, address: str, **parameters: Any) -> tuple[int, str, str]:
    answer = client.get(f"/api/{address}", params=parameters)
    error = answer.json()["error"]
    return answer.status_code, error["kind"], error["message"]


@pytest.fixture(scope="module")
def run(folder: Path) -> rs.Run:
    return rs.Run.open(folder / "one")


def test_runs_are_listed_with_their_state(client: TestClient, run: rs.Run) -> None:
    (entry,) = told(client, "runs")["runs"]
    assert (entry["id"], entry["state"], entry["step"], entry["steps"]) == (RUN, "finished", 40, 40)
    assert entry["recorded"] == run.steps and entry["network"] and entry["images"] and entry["planes"] == [PLANE]
    assert entry["about"]["width"] == 12 and 0 <= entry["scores"]["train_accuracy"] <= 1


def test_curves_are_those_that_were_recorded(client: TestClient, run: rs.Run) -> None:
    found = told(client, "curves", run=RUN)
    assert found["steps"] == run.steps
    (measure,) = found["measures"]
    assert measure["name"] == "total_variation" and measure["label"] == run.label("total_variation")
    for probe in measure["probes"]:
        column = f"{probe['name']}/total_variation"
        assert probe["mean"] == run.curve(column)[1]
        assert probe["stderr"] == run.curve(f"{column}/stderr")[1]
    accuracies = {scalar["name"]: scalar for scalar in found["scalars"]}
    assert accuracies["test_accuracy"]["values"] == run.curve("test_accuracy")[1]
    assert accuracies["test_accuracy"]["axis"] == "accuracy" and accuracies["loss"]["axis"] == "loss"
    assert found["planes"][0]["cells"] == [len(run.plane(step, "train")) for step in run.steps]


@pytest.mark.parametrize(("found", "kind"), [
    (rs.Share("robust accuracy", np.array([1.0, 1.0, 1.0, 0.0]), quantity="share (upper bound)"), "an upper bound"),
    (rs.Estimate("local rank", np.array([1.0, 4.0, 2.0, 2.5]), resolution=np.full(4, 6.0)), "estimated"),
    (rs.Estimate("local rank", np.array([1.0, 4.0, 2.0, 2.5]), exact=True), "exact at each point"),
    (
        rs.Estimate("crossings", np.ones(4), quantity="boundaries (lower bound)", piecewise_linear=False),
        "a lower bound, of a smooth network",
    ),
])  # fmt: skip
def test_what_numbers_are_is_told_as_anywhere(found: rs.Estimate, kind: str, tmp_path: Path) -> None:
    probes = {"train": torch.zeros(4, 2)}
    with rs.Monitor(mlp(2, 3, 2), probes, measures={"own": lambda model, x: found}, run=tmp_path / "own") as monitor:
        monitor(0)
    viewer = viewer_of(tmp_path)
    (exhibit,) = viewer.library.exhibits().values()
    (measure,) = curves(viewer, exhibit)["measures"]
    assert measure["kind"] == kind and kind in repr(found)
    assert measure["probes"][0]["stderr"] == pytest.approx([found.stderr])


@pytest.mark.parametrize("zoom", [1.0, 1e3, 1e6, 1e9])
def test_cells_of_a_window_are_those_of_plane_cells(client: TestClient, run: rs.Run, zoom: float) -> None:
    whole = run.plane(40, "train")
    x, y = whole.vertices[len(whole.vertices) // 2].tolist()
    h = float(whole.plane.domain.max()) / zoom
    header, arrays = block(client, "cells", run=RUN, step=40, plane=PLANE, x=x, y=y, hx=h, hy=h / 2)
    corners = np.array([[x - h, y - h / 2], [x + h, y - h / 2], [x + h, y + h / 2], [x - h, y + h / 2]])
    plane = rs.Plane(whole.plane.origin, whole.plane.axes, corners)
    cells = rs.plane_cells(rs.run_model(run, 40), plane)
    assert header["exact"] and header["cells"] == len(cells) == len(arrays["area"]) > 1
    assert np.array_equal(arrays["corners"], cells.corners) and np.array_equal(arrays["offsets"], cells.offsets)
    centre = np.array([header["window"]["x"], header["window"]["y"]])
    assert (centre == [x, y]).all()  # without loss
    back = centre + header["window"]["scale"] * arrays["vertices"].astype(float)
    assert np.abs(back - cells.vertices).max() <= 2e-7 * h + 1e-14
    assert np.allclose(arrays["area"] * h * h, cells.areas, rtol=1e-5)
    assert np.isclose(arrays["area"].sum(dtype=float), 2.0, rtol=1e-5)
    assert np.allclose(arrays["gradient"], cells.gradient_norms, rtol=1e-3)
    assert np.array_equal(arrays["class"], cells.classes)
    assert np.array_equal(arrays["edge_unit"], cells.edges.unit)
    assert np.allclose(arrays["edge_length"] * h, cells.edges.length, rtol=1e-5)
    boundary = cells.decision_boundary()
    assert arrays["decision"].shape == boundary.segments.shape
    assert np.array_equal(arrays["decision_classes"], boundary.classes)


def test_the_layer_of_a_cell_is_the_highest_among_its_sides(client: TestClient) -> None:
    _, arrays = block(client, "cells", run=RUN, step=40, plane=PLANE)
    for cell in range(0, len(arrays["layer"]), 7):
        sides = (arrays["edge_cells"] == cell).any(axis=1)
        assert arrays["layer"][cell] == arrays["edge_layer"][sides].max()


def test_a_cell_keeps_its_hue_when_one_zooms_in(client: TestClient) -> None:
    _, whole = block(client, "cells", run=RUN, step=40, plane=PLANE)
    _, part = block(client, "cells", run=RUN, step=40, plane=PLANE, x=0.5, y=0.25, hx=1, hy=1)
    assert set(part["pattern"]) <= set(whole["pattern"]) and len(set(whole["pattern"])) > 0.99 * len(whole["pattern"])


def test_beyond_max_cells_the_density_of_boundaries_is_estimated(client: TestClient, run: rs.Run) -> None:
    header, arrays = block(client, "cells", run=RUN, step=40, plane=PLANE, max_cells=10)
    assert header["quantity"] == "boundary_density" and header["estimated"] and not header["exact"]
    assert header["more_than"] == 10 and list(arrays["values"].shape) == header["size"]
    cells = run.plane(40, "train")
    true = cells.boundary_length().sum() / cells.plane.area * header["window"]["scale"]
    assert abs(arrays["values"].mean() / true - 1) < 0.1


def test_the_density_has_the_noise_of_the_table_unless_it_is_told(
    folder: Path, page: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = rs.MEASURES["local_complexity"]
    other = replace(usual, defaults={**usual.defaults, "sigma": 0.3})
    monkeypatch.setitem(rs.MEASURES, "local_complexity", other)
    where: dict[str, Any] = {"step": 40, "plane": PLANE, "x": 0, "y": 0, "hx": 0.1, "hy": 0.1}
    client = client_of(viewer_of(folder), static=page)
    where["run"] = told(client, "runs")["runs"][0]["id"]
    untold, as_told = (block(client, "density", **where, **options)[1]["values"] for options in ({}, {"sigma": 0.3}))
    assert np.array_equal(untold, as_told)


def test_no_part_of_a_raster_has_the_noise_of_another() -> None:
    """A window so small that its pixels differ by what is drawn alone."""
    torch.manual_seed(0)
    x = torch.randn(1, 3)
    net, window = rs.trace(mlp(3, 8, 8, 2), x), Window(0.0, 0.0, 1e-9, 1e-9)
    values = complexity_raster(net, rs.Plane.coordinates(x[0]), window, 0.3, lambda: None)["values"]
    parts = np.array_split(values, PORTIONS)
    assert values.std() > 0
    assert not any(np.allclose(part, parts[0]) for part in parts[1:])


def test_the_density_of_local_complexity_is_that_of_the_measure(client: TestClient, run: rs.Run) -> None:
    h = 0.05
    header, arrays = block(client, "density", run=RUN, step=40, plane=PLANE, x=0, y=0, hx=h, hy=h, sigma=0.3)
    plane = run.plane(40, "train").plane
    origin = plane.points([[0.0, 0.0]]).float()
    true = rs.complexity_density(
        rs.run_model(run, 40), origin.repeat(50, 1), sigma=0.3, draws=64, generator=torch.Generator().manual_seed(1)
    )
    assert header["quantity"] == "local_complexity" and header["more_than"] is None
    assert abs(arrays["values"].mean() / true.mean - 1) < 0.05


def test_the_points_of_a_plane_say_how_far_they_are(client: TestClient, run: rs.Run) -> None:
    header, arrays = block(client, "points", run=RUN, plane="through:4,7,9")
    data = rs.dataset("mnist-sample", size=60, test_size=20, flat=True)
    plane = rs.Plane.through(*data.train[0][[4, 7, 9]], margin=1.2)
    assert header["total"] == 60 and np.array_equal(arrays["class"], data.train[1])
    assert np.allclose(arrays["distance"][[4, 7, 9]], 0, atol=1e-6)
    assert np.allclose(arrays["place"][[4, 7, 9]], plane.anchors)
    image = data.train[0][20].double()
    least = (image - plane.points(plane.project(image[None]))[0]).norm()
    assert np.isclose(arrays["distance"][20], float(least), rtol=1e-6) and least > 1
    summary = told(client, "plane", run=RUN, plane="through:4,7,9")
    assert summary["name"] == "through images 4, 7, 9"
    assert np.allclose(np.linalg.norm(plane.anchors, axis=1), summary["window"]["hx"] / 1.2)  # none lies at the rim
    assert [anchor["index"] for anchor in summary["anchors"]] == [4, 7, 9]
    assert [anchor["label"] for anchor in summary["anchors"]] == [str(int(data.train[1][i])) for i in (4, 7, 9)]


def test_images_come_in_sheets(client: TestClient) -> None:
    found = told(client, "images", run=RUN, start=10, count=30)
    assert (found["total"], found["count"], found["shape"], found["columns"]) == (60, 30, [28, 28], 20)
    sheet = np.asarray(Image.open(io.BytesIO(client.get(found["sheet"]).content)))
    assert sheet.shape == (2 * 28, 20 * 28)
    one = np.asarray(Image.open(io.BytesIO(told(client, "image", run=RUN, index=31))))
    assert np.array_equal(sheet[28:56, 28:56], one) and one.max() == 255
    thumbnail = Image.open(io.BytesIO(told(client, "thumbnail", run=RUN)))
    assert thumbnail.size == (160, 160)


@pytest.mark.parametrize(
    ("address", "parameters", "expected"),
    [
        ("cells", {"run": "runs/two", "step": 40, "plane": PLANE}, (404, "unknown", "there are runs/one")),
        ("cells", {"run": RUN, "step": 41, "plane": PLANE}, (404, "unknown", "step 41 was not recorded")),
        ("cells", {"run": RUN, "step": 40, "plane": "recorded:other"}, (404, "unknown", "no plane 'recorded:other'")),
        ("cells", {"run": RUN, "step": 40, "plane": "through:1,1,2"}, (422, "refused", "lie on one line")),
        ("cells", {"run": RUN, "step": 40, "plane": "through:1,2,60"}, (404, "unknown", "there are 0 to 59")),
        ("cells", {"run": RUN, "step": 40, "plane": "through:1,2"}, (400, "malformed", "through:0,1,2")),
        ("cells", {"run": RUN, "step": "4e1", "plane": PLANE}, (400, "malformed", "step must be a whole number")),
        ("cells", {"run": RUN, "step": 40}, (400, "malformed", "needs plane")),
        ("cells", {"run": RUN, "step": 40, "plane": PLANE, "x": 0}, (400, "malformed", "needs y")),
        ("cells", {"run": RUN, "step": 40, "plane": PLANE, "zoom": 2}, (400, "malformed", "no parameter 'zoom'")),
        ("cells", {"run": [RUN, RUN], "step": 40, "plane": PLANE}, (400, "malformed", "run is given twice")),
        ("image", {"run": RUN, "index": 60}, (400, "malformed", "from 0 to 59")),
        ("density", {"run": RUN, "step": 40, "plane": PLANE, "sigma": 0}, (400, "malformed", "sigma must be from")),
        ("cells", {"run": RUN, "step": 40, "plane": PLANE, "view": "a b"}, (400, "malformed", "view must be")),
        ("curves", {"run": "x" * 3000}, (414, "long", "at most 2000")),
    ],
)
def test_what_cannot_be_had_is_told_in_a_sentence(
    client: TestClient, address: str, parameters: dict[str, Any], expected: tuple[int, str, str]
) -> None:
    status, kind, message = problem(client, address, **parameters)
    assert (status, kind) == expected[:2] and expected[2] in message


@pytest.mark.parametrize("value", ["nan", "inf", "-Infinity", "1e999", "1_0", "0x10", "", " 1", "١", "1e200", "--1"])
def test_only_numbers_are_taken_as_places(client: TestClient, value: str) -> None:
    status, kind, message = problem(client, "cells", run=RUN, step=40, plane=PLANE, x=value, y=0, hx=1, hy=1)
    assert (status, kind) == (400, "malformed") and ("x must be a number" in message or "needs x" in message)


@pytest.mark.parametrize(
    ("window", "reason"),
    [
        ((0, 0, 1e-15, 1e-15), "lost in the rounding of float64"),
        ((0, 0, 1e9, 1e9), "so large, or far"),
        ((1e9, 0, 1, 1), "so large, or far"),
        ((0, 0, 1, 1e-6), "100 times as wide"),
        ((0, 0, 0, 1), "must be positive"),
        ((0, 0, -1, 1), "must be positive"),
    ],
)
def test_windows_that_float64_does_not_reach_are_refused(
    client: TestClient, window: tuple[float, ...], reason: str
) -> None:
    named = dict(zip(("x", "y", "hx", "hy"), window, strict=True))
    status, _, message = problem(client, "cells", run=RUN, step=40, plane=PLANE, **named)
    assert status in (400, 422) and reason in message


def test_a_network_that_was_given_is_looked_at_without_a_run(page: Path) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 3, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(27, 2))
    images = Images(torch.rand(5, 1, 8, 8), torch.tensor([0, 1, 0, 1, 0]), ("left", "right"))
    flat = Exhibit("mine", model=lambda step: model, images=lambda: images)
    linear = Exhibit("line", model=lambda step: nn.Sequential(nn.Linear(2, 5), nn.ReLU(), nn.Linear(5, 1)),
                     planes={"start": rs.Plane.coordinates(torch.zeros(2))})  # fmt: skip
    smooth = Exhibit("smooth", model=lambda step: nn.Sequential(nn.Linear(2, 5), nn.GELU()), planes=linear.planes)
    client = client_of(Viewer(Library([], lambda name, run: flat, [flat, linear, smooth])), static=page)
    assert [entry["state"] for entry in told(client, "runs")["runs"]] == ["given"] * 3
    header, _ = block(client, "cells", run="mine", step=0, plane="through:0,1,2")
    assert header["exact"] and header["classes"] == ["left", "right"] and header["cells"] > 10
    header, arrays = block(client, "cells", run="line", step=0, plane="given:start")
    assert header["classes"] == ["output ≤ 0", "output > 0"] and set(arrays["class"]) <= {0, 1}
    assert problem(client, "cells", run="smooth", step=0, plane="given:start")[0] == 422
    assert problem(client, "cells", run="mine", step=1, plane="through:0,1,2")[0] == 404


def given(*exhibits: Exhibit, page: Path, **options: Any) -> TestClient:
    return client_of(Viewer(Library([], lambda name, run: exhibits[0], exhibits)), static=page, **options)


def two_inputs() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(2, 5), nn.ReLU(), nn.Linear(5, 2))


def test_points_with_two_entries_are_shown_on_the_plane_that_they_are_in(page: Path) -> None:
    points = torch.tensor([[1.0, 2.0], [3.0, 2.0], [2.0, 5.0]])
    several = Exhibit("several", model=lambda step: two_inputs(), images=lambda: Images(points))
    single = Exhibit("single", model=lambda step: two_inputs(), images=lambda: Images(points[:1]))
    client = given(several, single, page=page)
    assert [plane["id"] for plane in told(client, "planes", run="several")["planes"]] == ["coordinates"]
    window = told(client, "plane", run="several", plane="coordinates")["window"]
    assert (window["x"], window["y"]) == (0, 0) and window["hx"] == window["hy"] > 1.5
    _, arrays = block(client, "points", run="several", plane="coordinates")
    assert np.allclose(arrays["place"], points - torch.tensor([2.0, 3.5])) and not arrays["distance"].any()
    assert told(client, "plane", run="single", plane="coordinates")["window"]["hx"] == 1
    header, _ = block(client, "cells", run="several", step=0, plane="coordinates")
    middle = rs.Plane.coordinates(torch.tensor([2.0, 3.5]).double(), radius=window["hx"])
    assert header["cells"] == len(rs.plane_cells(two_inputs(), middle))


def test_a_run_of_two_inputs_without_data_is_shown_around_the_origin(tmp_path: Path, page: Path) -> None:
    run = rs.Run.create(tmp_path / "run", {"shape": [2]})
    client = given(Exhibit("run", run, model=lambda step: two_inputs()), page=page)
    window = told(client, "plane", run="run", plane="coordinates")["window"]
    assert (window["x"], window["y"], window["hx"]) == (0, 0, 1)


def test_without_data_there_are_no_images_and_no_points(page: Path) -> None:
    plane = rs.Plane.through(*torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]))
    client = given(Exhibit("bare", model=lambda step: two_inputs(), planes={"one": plane}), page=page)
    assert problem(client, "images", run="bare") == (404, "unknown", "the data of bare are not known")
    assert problem(client, "sheet", run="bare") == (404, "unknown", "bare has no images")
    assert problem(client, "image", run="bare", index=0) == (404, "unknown", "bare has no images")
    assert problem(client, "points", run="bare", plane="given:one")[2] == "the data of bare are not known"
    anchors = told(client, "plane", run="bare", plane="given:one")["anchors"]
    assert [anchor["index"] for anchor in anchors] == [None] * 3


def test_images_of_another_space_are_on_no_plane(page: Path) -> None:
    plane, images = rs.Plane.coordinates(torch.zeros(2)), Images(torch.zeros(4, 1, 3, 3))
    client = given(Exhibit("mixed", model=lambda step: two_inputs(), planes={"one": plane}, images=lambda: images),
                   page=page)  # fmt: skip
    expected = (422, "refused", "the images have 9 entries, the plane 2")
    assert problem(client, "points", run="mixed", plane="given:one") == expected


def test_a_window_that_floats_so_far_away_do_not_resolve_is_refused(page: Path) -> None:
    plane = rs.Plane.coordinates(torch.full((2,), 1e12).double(), radius=1e6)
    client = given(Exhibit("far", model=lambda step: two_inputs(), planes={"one": plane}), page=page)
    status, kind, message = problem(client, "cells", run="far", step=0, plane="given:one", x=0, y=0, hx=1e-5, hy=1e-5)
    assert (status, kind) == (422, "refused") and "float64" in message


def test_what_fails_inside_is_told_without_its_words(page: Path) -> None:
    def failing(error: BaseException) -> Any:
        def model(step: int) -> nn.Module:
            raise error

        return model

    planes = {"one": rs.Plane.coordinates(torch.zeros(2))}
    exhibits = [
        Exhibit(name, model=failing(error), planes=planes)
        for name, error in {"large": MemoryError("8 TB"), "fault": ZeroDivisionError("a secret")}.items()
    ]
    client = given(*exhibits, page=page, raise_server_exceptions=False)
    asked = {"step": 0, "plane": "given:one"}
    large = (422, "refused", "there is not enough memory for that: 8 TB")
    fault = (500, "fault", "the explorer has a fault: ZeroDivisionError; see the terminal")
    assert problem(client, "cells", run="large", **asked) == large
    assert problem(client, "cells", run="fault", **asked) == fault


def test_what_is_no_block_is_not_read_as_one() -> None:
    with pytest.raises(ValueError, match="it does not begin with RSX1"):
        read_block(b"{}")
