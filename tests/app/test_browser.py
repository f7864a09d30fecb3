"""The explorer in a real browser: what people do with it."""

import io
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import Queue
from typing import Any
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest
import torch
from browsers import Looker, new_browser, served
from explorers import viewer_of
from PIL import Image
from torch import nn

import regionscope as rs
from regionscope.app.payload import read_block
from regionscope.app.windows import Window
from regionscope.cli.explorer import write_page

AXE = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"
WIDTHS = {"wide": {"width": 1280, "height": 900}, "narrow": {"width": 390, "height": 844}}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    try:
        with new_browser() as found:
            yield found
    except LookupError as error:
        pytest.skip(f"tests in a browser are skipped: {error}")


@pytest.fixture(scope="module")
def url(folder: Path) -> Iterator[str]:
    with served(viewer_of(folder)) as address:
        yield address


@pytest.fixture
def look(browser: Any) -> Iterator[Callable[..., Looker]]:
    """Opens pages; at the end none may have said that something was wrong."""
    opened = []

    def open_page(address: str, *, planes: int = 1, script: str = "", **options: Any) -> Looker:
        opened.append(Looker(browser.new_page(**({"viewport": WIDTHS["wide"]} | options))))
        opened[-1].page.add_init_script(script)
        return opened[-1].open(address, planes=planes)

    yield open_page
    for looker in opened:
        looker.page.close()
    assert [message for looker in opened for message in looker.wrong] == []


def test_the_page_shows_curves_and_the_newest_cells(look: Callable[..., Looker], url: str, folder: Path) -> None:
    looker = look(url)
    assert "token" not in looker.page.url
    run = rs.Run.open(folder / "one")
    assert looker.step() == run.steps[-1]
    header, _ = read_block(looker.blocks[-1][1]())
    caption = looker.panel().locator("figcaption").inner_text()
    assert f"{header['cells']:,} regions (exact)" in caption
    assert looker.page.locator(".curves canvas").count() >= 2
    assert looker.page.get_by_text("total variation").count() >= 1
    sent = looker.page.evaluate("performance.getEntriesByType('resource').map(e => new URL(e.name).host)")
    assert set(sent) == {urlsplit(url).netloc}  # nothing from elsewhere


def test_hovering_tells_of_the_region_under_the_cursor(look: Callable[..., Looker], url: str) -> None:
    looker = look(url)
    looker.point_at(0.4, 0.6)
    told = looker.panel().locator("dl.under")
    told.get_by_text("its unit").wait_for()
    header, arrays = read_block(looker.blocks[-1][1]())
    window = looker.page.evaluate("document.querySelector('figure .window').textContent")
    size = np.array(window.split()[1::2], float)  # shown: width × height
    scale = header["window"]["scale"]
    place = (np.array([-0.1, 0.1]) * size - [header["window"]["x"], header["window"]["y"]]) / scale
    cell = cell_at(arrays, place)
    area = float(arrays["area"][cell]) * scale**2
    words = dict(zip(told.locator("dt").all_inner_texts(), told.locator("dd").all_inner_texts(), strict=True))
    assert float(words["area"].replace(",", "")) == pytest.approx(area, rel=0.01)
    assert words["class"] == header["classes"][arrays["class"][cell]]
    nearest = distances_to_sides(arrays, cell, place).min() * scale
    assert float(words["nearest boundary"]) == pytest.approx(nearest, abs=0.002 * size[0])  # a pixel or so
    assert words["its unit"].endswith(")")


def cell_at(arrays: dict[str, Any], place: Any) -> int:
    """The convex cell that has a place on the left of all its sides."""
    for cell in range(len(arrays["offsets"]) - 1):
        if np.all(distances_to_sides(arrays, cell, place) >= 0):
            return cell
    raise AssertionError(f"no cell holds {place}")


def distances_to_sides(arrays: dict[str, Any], cell: int, place: Any) -> Any:
    """How far a place is to the left of each side of a cell."""
    start, end = arrays["offsets"][cell : cell + 2]
    corners = arrays["vertices"][arrays["corners"][start:end]].astype(np.float64)
    sides, ways = np.roll(corners, -1, axis=0) - corners, place - corners
    return (sides[:, 0] * ways[:, 1] - sides[:, 1] * ways[:, 0]) / np.linalg.norm(sides, axis=1)


def test_three_images_make_a_plane(look: Callable[..., Looker], url: str) -> None:
    looker = look(url)
    page = looker.page
    page.get_by_role("button", name="Choose three images").click()
    for index in (4, 7, 9):
        page.get_by_role("button", name=f"image {index}, class").click()
    page.get_by_role("button", name="Show the plane").click()
    page.locator("option", has_text="through images 4, 7, 9").wait_for(state="attached")
    looker.ready()
    assert looker.view()["plane"] == "through:4,7,9"
    header, _ = read_block(looker.blocks[-1][1]())
    assert header["plane"] == "through:4,7,9"
    assert looker.panel().locator(".anchor image").count() == 3


def test_a_million_times_deeper_the_cells_are_those_of_python(
    look: Callable[..., Looker], url: str, folder: Path
) -> None:
    looker = look(url)
    run, step = rs.Run.open(folder / "one"), looker.step()
    cells = run.plane(step, "train")
    inner = np.flatnonzero((cells.edges.cells >= 0).all(axis=1))
    longest = inner[np.argmax(cells.edges.length[inner])]
    x, y = cells.vertices[cells.edges.vertices[longest]].mean(axis=0).tolist()  # a place with a boundary at any depth
    whole = Window.of(cells.plane)
    looker.page.evaluate(f"location.hash = new URLSearchParams({{x: {x!r}, y: {y!r}, h: {whole.scale!r}}})")
    looker.ready()
    while asked_window(looker).scale > whole.scale / 1e6:
        for _ in range(5):
            looker.page.get_by_role("button", name="zoom in").click()
        looker.ready()
    window, body = asked_window(looker), looker.blocks[-1][1]
    found = rs.plane_cells(rs.run_model(run, step), window.on(cells.plane))
    header, arrays = read_block(body())
    assert header["exact"] and found.exact and header["cells"] == len(found) > 1
    assert np.array_equal(arrays["offsets"], found.offsets) and np.array_equal(arrays["corners"], found.corners)
    assert np.array_equal(arrays["vertices"], window.relative(found.vertices).astype(np.float32))
    assert np.array_equal(arrays["class"], found.classes)


def asked_window(looker: Looker) -> Window:
    """The window of the last cells that the page asked for."""
    asked = parse_qs(urlsplit(looker.blocks[-1][0]).query)
    return Window(*(float(asked[name][0]) for name in ("x", "y", "hx", "hy")))


def test_panning_inside_what_is_loaded_asks_for_nothing(look: Callable[..., Looker], url: str) -> None:
    looker = look(url)
    asked = len(looker.blocks)
    looker.page.locator("canvas[role=application]").focus()
    looker.page.keyboard.press("ArrowRight")
    assert float(looker.view()["x"]) != 0 and len(looker.blocks) == asked
    for _ in range(6):
        looker.page.keyboard.press("ArrowRight")
    looker.page.wait_for_timeout(300)
    looker.ready()
    assert len(looker.blocks) > asked  # beyond it; how often depends on how fast keys are pressed
    looker.page.keyboard.press("0")
    assert "x" not in looker.view()


def test_two_fingers_zoom_about_what_lies_between_them(look: Callable[..., Looker], url: str) -> None:
    looker = look(url)
    shown, canvas = looker.panel().locator("figcaption .window"), looker.page.locator("canvas[role=application]").first
    before = float(shown.inner_text().split()[1])
    canvas.scroll_into_view_if_needed()
    box, fingers = canvas.bounding_box(), looker.page.context.new_cdp_session(looker.page)
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2

    def touch(kind: str, apart: float) -> None:
        points = [{"x": middle[0] + side * apart, "y": middle[1], "id": k} for k, side in enumerate((-1, 1))]
        fingers.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points if apart else []})

    touch("touchStart", 40)
    for apart in range(45, 85, 5):
        touch("touchMove", apart)
    touch("touchEnd", 0)
    looker.page.wait_for_timeout(300)
    assert float(shown.inner_text().split()[1]) == pytest.approx(before / 2, rel=0.05)


def test_play_goes_through_all_steps(look: Callable[..., Looker], url: str, folder: Path) -> None:
    looker = look(url)
    seen = (
        "window.seen = []; new MutationObserver(() => seen.push(document.querySelector('section.panel').dataset.step))"
    )
    looker.page.evaluate(f"{seen}.observe(document.querySelector('section.panel'), {{attributes: true}})")
    looker.page.get_by_role("button", name="play panel-1").click()
    steps = rs.Run.open(folder / "one").steps
    looker.until(f"new Set(seen).size >= {len(steps)} && seen.at(-1) == '{steps[-1]}'")
    assert list(map(int, looker.page.evaluate("seen"))) == steps
    looker.ready()


def test_two_steps_side_by_side_share_their_window_and_their_address(
    look: Callable[..., Looker], url: str, folder: Path
) -> None:
    looker = look(url)
    looker.page.get_by_label("side by side").check()
    looker.ready(panels=2)
    steps = rs.Run.open(folder / "one").steps
    assert (looker.step(1), looker.step(2)) == (steps[-1], steps[0])
    looker.point_at()
    looker.page.mouse.wheel(0, -600)
    looker.page.get_by_label("Colour by").select_option("gradient")
    looker.page.wait_for_timeout(150)
    looker.ready(panels=2)
    windows = [looker.panel(k).locator(".window").inner_text() for k in (1, 2)]
    assert windows[0] == windows[1] and "×" in windows[0]
    view = looker.view()
    other = look(url.replace("/?", "/?from=friend&") + "#" + urlsplit(looker.page.url).fragment)
    other.ready(panels=2)
    assert other.view() == view and view["colour"] == "gradient"
    assert (other.step(1), other.step(2)) == (steps[-1], steps[0])
    assert [other.panel(k).locator(".window").inner_text() for k in (1, 2)] == windows


def test_a_run_that_goes_on_is_followed(look: Callable[..., Looker], tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 12), nn.ReLU(), nn.Linear(12, 2))
    plane, probes = rs.Plane.coordinates(torch.zeros(2), radius=3.0), {"train": torch.randn(5, 2)}
    with rs.Monitor(model, probes, run=tmp_path / "runs" / "live", planes={"all": plane}) as monitor:
        monitor(0)
        with served(viewer_of(tmp_path / "runs")) as address:
            looker = look(address)
            assert looker.step() == 0
            with torch.no_grad():
                next(model.parameters()).mul_(3)
            monitor(7)
            looker.page.locator("section.panel[data-step='7']").wait_for()
            looker.ready()
            shown = looker.panel().get_by_text(f"{len(rs.plane_cells(model, plane)):,} regions (exact)").first
            shown.wait_for()
            with rs.Monitor(model, probes, run=tmp_path / "runs" / "second") as another:
                another(0)
            looker.page.get_by_role("button", name="runs/second").wait_for()
            looker.page.goto("about:blank")  # nobody follows any more


def test_the_file_opens_from_disk(look: Callable[..., Looker], folder: Path, tmp_path: Path) -> None:
    write_page(folder / "one", tmp_path / "out.html")
    looker = look((tmp_path / "out.html").as_uri())
    run = rs.Run.open(folder / "one")
    for step in (run.steps[-1], run.steps[0]):
        looker.page.evaluate(f"location.hash = 'step={step}'")
        looker.page.wait_for_selector(f"section.panel[data-step='{step}']")
        looker.ready()
        count = len(run.plane(step, "train"))
        looker.panel().get_by_text(f"{count:,} region{'s' if count > 1 else ''} (exact)").first.wait_for()
    assert looker.page.locator(".curves canvas").count() >= 2
    assert looker.panel().locator(".anchor image").count() == 3
    looker.point_at()
    looker.page.mouse.wheel(0, -600)
    looker.page.wait_for_timeout(150)
    looker.ready()
    looker.page.get_by_label("all images").check()
    looker.page.locator(".nearby li").first.wait_for()


KEEP_WORDS = """
const { clearRect, fillText } = CanvasRenderingContext2D.prototype;
Object.assign(CanvasRenderingContext2D.prototype, {
  clearRect(...box) { this.words = []; return clearRect.apply(this, box); },
  fillText(...word) { this.words.push(word); return fillText.apply(this, word); },
});
"""  # of a chart that is drawn anew only the last are kept
WORDS_BELOW = """
(() => {
  const { words } = document.querySelector(".chart canvas").getContext("2d");
  const lowest = Math.max(...words.map(([text, x, y]) => y));
  return words.filter(([text, x, y]) => y === lowest).map(([text]) => text);
})()
"""
DRAWN = """
(() => {
  const canvas = document.querySelector(".chart canvas"), key = document.querySelector(".key [stroke]");
  const hue = key.getAttribute("stroke").match(/[0-9a-f]{2}/gi).map((c) => parseInt(c, 16));
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  let count = 0;
  for (let i = 0; i < data.length; i += 4) count += hue.every((c, k) => Math.abs(data[i + k] - c) < 8);
  return count;
})()
"""  # pixels in the colour of the first curve


@pytest.mark.parametrize("log", [0, 1])
@pytest.mark.parametrize(
    ("steps", "ticks"), [([0], ["0"]), ([1000], ["1,000"]), ([0, 1], ["0", "1"]), ([999, 1000], ["999", "1,000"])]
)
def test_few_records_are_a_dot_or_a_line_with_a_tick_each(
    steps: list[int], ticks: list[str], log: int, look: Callable[..., Looker], tmp_path: Path
) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    with rs.Monitor(model, {"train": torch.rand(9, 4)}, measures=["local_rank"], run=tmp_path / "mine") as monitor:
        for step in steps:
            monitor(step)
    write_page(tmp_path / "mine", tmp_path / "mine.html")
    looker = look(f"{(tmp_path / 'mine.html').as_uri()}#log={log}", planes=0, script=KEEP_WORDS)
    looker.page.get_by_text("This run has no planes").wait_for()
    assert looker.page.get_by_text("this is a file").count() == 0
    assert looker.page.evaluate(WORDS_BELOW) == ticks
    assert looker.page.evaluate(DRAWN) > 20


def saved(looker: Looker, what: str) -> bytes:
    """The file that a button of the menu saves."""
    with looker.page.expect_download() as found:
        looker.page.get_by_role("button", name=what).click()
    return Path(found.value.path()).read_bytes()


def test_what_is_shown_can_be_saved(look: Callable[..., Looker], url: str, folder: Path) -> None:
    looker = look(url)
    looker.page.get_by_text("Save", exact=True).click()
    header, _ = read_block(looker.blocks[-1][1]())
    with Image.open(io.BytesIO(saved(looker, "PNG"))) as picture:
        assert len(picture.convert("RGB").getcolors(1 << 20) or ()) > 10  # not blank
    assert saved(looker, "SVG").count(b"<path") > 3
    assert len(saved(looker, "CSV").splitlines()) == 1 + header["cells"]
    with Image.open(io.BytesIO(saved(looker, "GIF over training"))) as film:
        assert getattr(film, "n_frames", 1) == len(rs.Run.open(folder / "one").steps)


NOTEBOOK = """async () => {
  const heard = [];
  window.tell = (message, bytes) => heard.forEach((f) => f(message, [new DataView(new Uint8Array(bytes).buffer)]));
  const model = { send: (message) => window.ask(message), on: (event, f) => event === "msg:custom" && heard.push(f) };
  const { default: widget } = await import("/assets/widget.js");
  widget.render({ model, el: document.body.appendChild(document.createElement("div")) });
}"""


def test_the_widget_shows_the_model_of_a_notebook(browser: Any, url: str) -> None:
    torch.manual_seed(0)
    model, plane = nn.Sequential(nn.Linear(2, 12), nn.ReLU(), nn.Linear(12, 3)), rs.Plane.coordinates(torch.zeros(2))
    widget = rs.explore(model, plane)
    page, told = browser.new_page(viewport=WIDTHS["wide"]), Queue[tuple[Any, bytes]]()
    looker = Looker(page)
    widget.comm.publish_msg = lambda kind, data, buffers, **rest: told.put((data["content"], bytes(buffers[0])))
    page.on("pageerror", lambda error: looker.wrong.append(str(error)))
    page.expose_function("ask", lambda message: widget._handle_custom_msg(message, []))
    page.goto(url)
    page.goto(url.split("?")[0] + "api/runs")  # a page of the same site that is not the explorer's own
    page.evaluate(NOTEBOOK)
    while page.locator("figure[data-ready=yes]").count() == 0:
        message, body = told.get(timeout=20)
        page.evaluate("([message, body]) => tell(message, body)", [message, list(body)])
        page.wait_for_timeout(50)
    header, _ = read_block(body)
    assert header["plane"] == "given:plane"
    assert f"{header['cells']} regions (exact)" in looker.panel().locator("figcaption").inner_text()
    assert looker.wrong == []
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", WIDTHS)
def test_everybody_can_use_it(look: Callable[..., Looker], url: str, size: str, scheme: str) -> None:
    looker = look(url, viewport=WIDTHS[size], color_scheme=scheme, bypass_csp=True)
    page = looker.page
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.locator(".explorer").get_attribute("data-theme") == scheme
    if not AXE.exists():
        pytest.skip("axe-core is not here, so accessibility is not looked at: npm install in web/")
    page.add_script_tag(path=str(AXE))
    page.get_by_label("all images").check()
    page.get_by_label("side by side").check()
    looker.ready(panels=2)
    faults = page.evaluate("axe.run().then(found => found.violations)") + _picker_faults(page)
    serious = [fault for fault in faults if fault["impact"] in ("serious", "critical")]
    assert [(fault["id"], fault["nodes"][0]["html"]) for fault in serious] == []


def test_a_picture_of_the_page_is_small_enough_for_the_readme(look: Callable[..., Looker], tmp_path: Path) -> None:
    shown = rs.Training(
        depth=3, width=40, steps=200, records=10, points=40, plane=True, measures=("boundary_crossings",)
    )
    rs.train(shown, tmp_path / "runs" / "digits")
    with served(viewer_of(tmp_path / "runs")) as address:
        looker = look(f"{address}#plane=through%3A0%2C1%2C2", viewport={"width": 1280, "height": 800})
        looker.page.locator(".anchor image").nth(2).wait_for()
        looker.point_at(0.42, 0.55)
        looker.page.wait_for_timeout(300)
        file = Path(os.environ.get("REGIONSCOPE_SCREENSHOT", tmp_path / "explorer.png"))
        with Image.open(io.BytesIO(looker.page.screenshot(full_page=True))) as picture:
            picture.convert("RGB").quantize(128).save(file, optimize=True)
        box = looker.page.locator("canvas[role=application]").first.bounding_box()
        looker.page.goto("about:blank")
    assert file.stat().st_size < 300_000
    with Image.open(file) as kept:
        x, y = round(box["x"]), round(box["y"])
        plane = kept.convert("RGB").crop((x, y, x + round(box["width"]), y + round(box["height"])))
    colours = np.unique(np.asarray(plane).reshape(-1, 3), axis=0)
    assert len(colours) > 50, "regions, boundaries and images, not an empty canvas"


def _picker_faults(page: Any) -> list[Any]:
    page.get_by_role("button", name="Choose three images").click()
    page.locator(".thumb").first.wait_for()
    return list(page.evaluate("axe.run('dialog').then(found => found.violations)"))
