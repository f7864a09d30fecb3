"""The explorer as one file that opens from disk: the page, its scripts and styles, and all answers it will need."""

import base64
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from regionscope.app.library import Exhibit, Library
from regionscope.app.problems import Answer
from regionscope.app.questions import COUNT, Question, answer, quoted
from regionscope.app.server import STATIC, static_files
from regionscope.app.summaries import plane_summary
from regionscope.app.viewer import Viewer
from regionscope.disk import read_whole

POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"
REASON = "this is a file: `regionscope view` computes cells anew"
SCRIPT = re.compile(r'<script[^>]*\ssrc="([^"]+)"[^>]*></script>')
STYLE = re.compile(r'<link[^>]*rel="stylesheet"[^>]*>')
OTHER = re.compile(r'<link[^>]*rel="(?:modulepreload|icon|manifest)"[^>]*>')
TARGET = re.compile(r'href="([^"]+)"')


def exported_page(exhibit: Exhibit, *, static: Path = STATIC) -> str:
    """The page with what was recorded of a run inside."""
    files = {route: read_whole(file).decode() for route, file in static_files(static).items() if _is_text(file)}
    if "/" not in files:
        raise ValueError("the explorer's page is not there: build it with `make web`")
    answers = {address: _as_json(given) for address, given in _recorded_answers(exhibit) if given.status == 200}
    stored = json.dumps({"format": 1, "answers": answers}, separators=(",", ":")).replace("<", "\\u003c")
    html = OTHER.sub("", files["/"])
    html = STYLE.sub(lambda tag: f"<style>{_target(files, TARGET.search(tag[0]))}</style>", html)
    html = SCRIPT.sub(lambda tag: f'<script type="module">{_escaped(_target(files, tag))}</script>', html)
    own = f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
    data = f'<script type="application/json" id="regionscope-answers">{stored}</script>'
    return html.replace("<head>", f"<head>{own}{data}", 1)


def _recorded_answers(exhibit: Exhibit) -> Iterator[tuple[str, Answer]]:
    """Every address that the page asks for without a server, and its answer."""
    alone = _without_network(exhibit)
    viewer = Viewer(Library([], lambda name, run: alone, [alone]), live=False)
    run = {"run": alone.id}
    asked: list[tuple[str, dict[str, str]]] = [("/api/runs", {}), *((f"/api/{n}", run) for n in ("curves", "planes"))]
    first = run | {"start": "0", "count": str(COUNT)}
    asked += [("/api/images", first), ("/api/sheet", first)] if alone.images is not None else []
    for plane, steps in viewer.plane_names(alone).items():
        asked += [(f"/api/{name}", run | {"plane": plane}) for name in ("plane", "points")]
        asked += [("/api/cells", run | {"plane": plane, "step": str(step)}) for step in steps]
        anchors = plane_summary(viewer, alone, plane)["anchors"]
        asked += [("/api/image", run | {"index": str(a["index"])}) for a in anchors if a["index"] is not None]
    asked += [("/api/thumbnail", run)]
    for path, parameters in asked:
        address = canonical_address(path, parameters)
        yield address, answer(viewer, Question.of(address), lambda: None)


def _without_network(exhibit: Exhibit) -> Exhibit:
    """What is shown in a file, which tells of a server only if one would show more."""
    run = exhibit.run
    recorded = run is not None and any(run.planes(step) for step in run.steps)
    return replace(exhibit, model=None, reason=REASON if recorded or exhibit.model is not None else None)


def canonical_address(path: str, parameters: dict[str, str]) -> str:
    """An address in its one spelling: parameters by name."""
    query = "&".join(f"{name}={quoted(value)}" for name, value in sorted(parameters.items()))
    return f"{path}?{query}" if query else path


def _as_json(given: Answer) -> dict[str, Any]:
    if given.type == "application/json":
        return {"type": given.type, "json": json.loads(given.body)}
    return {"type": given.type, "base64": base64.b64encode(given.body).decode()}


def _is_text(file: Path) -> bool:
    return file.suffix in (".html", ".js", ".css")


def _target(files: dict[str, str], tag: re.Match[str] | None) -> str:
    """The file that a tag refers to."""
    route = "/" + (tag[1] if tag is not None else "").removeprefix(".").removeprefix("/")
    if route not in files:
        raise ValueError(f"the explorer's page refers to {route}, which is not there: build it with `make web`")
    return files[route]


def _escaped(script: str) -> str:
    """A script that does not end the element that it is in."""
    return re.sub(r"<(/script|!--)", r"\\x3c\1", script, flags=re.IGNORECASE)
