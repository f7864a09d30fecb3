"""How long people wait for the explorer, measured in a browser: in seconds and kB, not in units of something else."""

import gzip
from collections.abc import Iterator
from math import inf
from statistics import median
from typing import Any

import torch
from browsers import Looker, new_browser, served
from networks import images
from timing import Ratio
from torch import nn

import regionscope as rs
from regionscope.app.cache import Cache
from regionscope.app.library import Exhibit, Library
from regionscope.app.questions import first_look
from regionscope.app.server import STATIC
from regionscope.app.viewer import BLOCKS, Viewer

ROUNDS = 7
RADIUS, OUT = 3.3, 700  # of the plane; of the wheel: windows with about 5,000 cells, then 20,000
# in the page's own time: since it was opened, until the cells are there
OPENED = """() => new Promise((done) => {
  const there = () => document.querySelector("figure[data-ready=yes]");
  const look = () => (there() ? done(performance.now() / 1000) : setTimeout(look, 2));
  look();
})"""
# since the wheel turned, until the old cells are painted at their new size, and until the new ones are there
ZOOMED = """async (turn) => {
  const canvas = document.querySelector("canvas[role=application]"), figure = canvas.closest("figure");
  const { left, top, width, height } = canvas.getBoundingClientRect();
  const start = performance.now();
  canvas.dispatchEvent(new WheelEvent("wheel", { deltaY: turn, clientX: left + width / 2, clientY: top + height / 2 }));
  for (let k = 0; k < 3; k++) await new Promise(requestAnimationFrame);  // the third comes when the second is painted
  const first = performance.now() - start;
  while (figure.dataset.ready !== "yes") await new Promise((done) => setTimeout(done, 2));
  return [first / 1000, (performance.now() - start) / 1000];
}"""

# panning to and fro inside what is loaded: seconds a frame, and how many questions that made
PANNED = """async (frames) => {
  const canvas = document.querySelector("canvas[role=application]");
  const asked = () => performance.getEntriesByType("resource").length;
  const [start, before] = [performance.now(), asked()];
  for (let k = 0; k < frames; k++) {
    canvas.dispatchEvent(new KeyboardEvent("keydown", { key: k % 2 ? "ArrowLeft" : "ArrowRight", bubbles: true }));
    await new Promise(requestAnimationFrame);
  }
  return [(performance.now() - start) / 1000 / frames, asked() - before];
}"""
FRAMES = 20


def ratios() -> Iterator[Ratio]:
    page = [file for file in STATIC.rglob("*") if file.is_file() and file.name not in ("widget.js", "sources.sha256")]
    weight = sum(len(gzip.compress(file.read_bytes())) for file in page) / 1e3
    yield Ratio("kB of the explorer's page, compressed", weight, 500)
    torch.manual_seed(0)
    layers = [nn.Linear(784, 100), *(part for _ in range(2) for part in (nn.ReLU(), nn.Linear(100, 100))), nn.ReLU()]
    model = nn.Sequential(*layers, nn.Linear(100, 10))
    plane = rs.Plane.around(images(1)[0], RADIUS, generator=torch.Generator().manual_seed(0))
    shown = Exhibit("model", model=lambda step: model, planes={"start": plane})
    viewer = Viewer(Library([], lambda name, run: shown, [shown]), live=False)
    first_look(viewer)
    try:
        with new_browser() as browser, served(viewer) as url:
            yield from _waits(browser, url, viewer)
    except LookupError as error:
        print(f"the explorer's waiting times are not measured: {error}")


def _waits(browser: Any, url: str, viewer: Viewer) -> Iterator[Ratio]:
    opened, zoomed, counts, panned = [], [], [], []
    for k in range(ROUNDS):
        viewer.blocks = Cache[bytes](BLOCKS, len)  # nobody has looked before
        looker = Looker(browser.new_page(viewport={"width": 1280, "height": 900}))
        looker.page.goto(url, wait_until="commit")
        opened.append(looker.page.evaluate(OPENED))
        before = _cells(looker)
        looker.page.wait_for_timeout(500)  # somebody looks
        zoomed.append(looker.page.evaluate(ZOOMED, OUT + k))  # out, because what is inside is loaded already
        counts.append((before, _cells(looker)))
        panned.append(looker.page.evaluate(PANNED, FRAMES))
        looker.page.close()
    few, many = counts[-1]
    first, exact = (median(times) for times in zip(*zoomed, strict=True))
    yield Ratio(f"seconds from opening the explorer's page to its first picture, {few:,} cells", median(opened), 1.0)
    yield Ratio(f"seconds from zooming to exact cells, {many:,} cells", exact, 0.3)
    yield Ratio("seconds from zooming to the old cells at their new size", first, 0.1)
    frame, asked = (median(found) for found in zip(*panned, strict=True))
    yield Ratio(f"seconds a frame of panning, {many:,} cells, without a graphics card", frame, inf)
    yield Ratio("questions that panning inside what is loaded asks", asked, 0)


def _cells(looker: Looker) -> int:
    """How many regions the page says that it has."""
    return int(looker.panel().locator("figcaption").inner_text().split("regions")[0].split()[-1].replace(",", ""))
