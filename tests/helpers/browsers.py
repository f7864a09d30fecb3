"""A real browser, and a server for it to look at."""

import json
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from playwright.sync_api import sync_playwright

from regionscope.app.server import Address, bound_socket, explorer, new_server
from regionscope.app.viewer import Viewer

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
ALONE = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-extensions"]
PATIENCE = 120_000  # ms, at most: what is asked for first is compiled, on a machine that has much else to do


@contextmanager
def new_browser() -> Iterator[Any]:
    """Chromium without a window; an error if there is none."""
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        raise LookupError("there is no Chromium here (apt-get install chromium)")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=ALONE)
        yield browser
        browser.close()


@contextmanager
def served(viewer: Viewer) -> Iterator[str]:
    """The address of a server in a thread."""
    with bound_socket(0) as listening:
        address = Address(listening.getsockname()[1], "the-token")
        server = new_server(explorer(viewer, address))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        yield address.url
        server.should_exit = True
        thread.join(timeout=10)


@dataclass
class Looker:
    """One page of a browser, and what went wrong on it."""

    page: Any
    wrong: list[str] = field(default_factory=list)
    blocks: list[tuple[str, Callable[[], bytes]]] = field(default_factory=list)  # addresses of cells, what was sent

    def open(self, url: str, *, planes: int = 1) -> "Looker":
        """Open an address, and wait for its planes, if it has some."""
        self.page.set_default_timeout(PATIENCE)
        self.page.on("console", lambda message: self.wrong.append(message.text) if message.type == "error" else None)
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("response", self._keep)
        self.page.goto(url)
        return self.ready(planes) if planes else self

    def _keep(self, response: Any) -> None:
        if "/api/cells" in response.url and response.status == 200:
            self.blocks.append((response.url, response.body))

    def ready(self, panels: int = 1) -> "Looker":
        """Wait until each panel shows the cells of its window."""
        self.page.locator("figure[data-ready=yes]").nth(panels - 1).wait_for()
        return self

    def until(self, condition: str) -> None:
        """Wait until a script says so; asked from outside, because the page's policy allows no `eval`."""
        for _ in range(PATIENCE // 50):
            if self.page.evaluate(condition):
                return
            self.page.wait_for_timeout(50)
        raise AssertionError(f"it never came to {condition}")

    def panel(self, number: int = 1) -> Any:
        return self.page.locator(f"figure[data-panel=panel-{number}]")

    def step(self, number: int = 1) -> int:
        """The step that a panel shows."""
        shown = self.page.locator("section.panel").nth(number - 1).get_attribute("data-step")
        return int(shown)

    def point_at(self, across: float = 0.5, up: float = 0.5) -> None:
        """Move the mouse to a place of the plane, from 0 to 1."""
        box = self.page.locator("canvas[role=application]").first.bounding_box()
        self.page.mouse.move(box["x"] + box["width"] * across, box["y"] + box["height"] * (1 - up))

    def view(self) -> dict[str, str]:
        """What the address says of the view."""
        self.page.wait_for_timeout(200)  # it is written when the view has been still for a moment
        text = self.page.evaluate("JSON.stringify(Object.fromEntries(new URLSearchParams(location.hash.slice(1))))")
        return dict(json.loads(text))
