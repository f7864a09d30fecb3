"""Questions as they are asked, by address; every way to the explorer asks them here. See docs/explorer-format.md."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isfinite
from urllib.parse import parse_qsl, quote, urlsplit

from regionscope import __version__
from regionscope.app.library import Exhibit
from regionscope.app.pictures import COLUMNS, image_shape, image_sheet, plane_picture
from regionscope.app.problems import Answer, Problem
from regionscope.app.summaries import curves, plane_list, plane_summary, run_summary
from regionscope.app.viewer import Check, Viewer, warm_up
from regionscope.app.windows import Window
from regionscope.files import plain
from regionscope.measures.table import MEASURES

LONGEST = 2000  # characters of an address
NUMBER = re.compile(r"-?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,4})?", re.ASCII)
VIEW = re.compile(r"[A-Za-z0-9_-]{1,40}", re.ASCII)
WINDOW = ("x", "y", "hx", "hy")
MAX_CELLS, MOST_CELLS = 50_000, 200_000
COUNT, MOST_IMAGES = 200, 1000
MOST_STEPS = 10**12
LARGEST = 1e100  # numbers beyond are nobody's window


@dataclass(frozen=True)
class Question:
    """A path and its parameters."""

    path: str
    given: Mapping[str, str]

    @staticmethod
    def of(address: str) -> "Question":
        """An address taken apart; a problem if it is none of those that there are."""
        if len(address) > LONGEST:
            raise Problem("long", f"an address has at most {LONGEST} characters, this has {len(address)}")
        try:
            parts = urlsplit(address)
            pairs = parse_qsl(
                parts.query,
                keep_blank_values=True,
                strict_parsing=bool(parts.query),
                errors="strict",
                max_num_fields=20,
            )
        except ValueError as error:
            raise Problem("malformed", f"this address cannot be read: {error}") from None
        if parts.path not in ANSWERS:
            raise Problem("unknown", f"there is no {parts.path[:80]!r}; there are {', '.join(ANSWERS)}")
        known, names = ANSWERS[parts.path].parameters, [name for name, _ in pairs]
        for name in names:
            if name not in known:
                takes = ", ".join(known) or "none"
                raise Problem("malformed", f"{parts.path} takes no parameter {name[:40]!r}; it takes {takes}")
            if names.count(name) > 1:
                raise Problem("malformed", f"{name} is given twice")
        return Question(parts.path, dict(pairs))

    @property
    def long(self) -> bool:
        """Whether the answer may take a while, so that a newer question of the same view stops this one."""
        return "view" in ANSWERS[self.path].parameters

    def text(self, name: str) -> str:
        if not self.given.get(name):
            raise Problem("malformed", f"{self.path} needs {name}")
        return self.given[name]

    @property
    def view(self) -> str | None:
        """What the user looks at."""
        name = self.given.get("view")
        if name is not None and not VIEW.fullmatch(name):
            raise Problem("malformed", f"view must be 1 to 40 letters, digits, - and _, got {name[:40]!r}")
        return name

    def number(self, name: str) -> float:
        text = self.text(name)
        value = float(text) if len(text) <= 40 and NUMBER.fullmatch(text) else float("nan")
        if not isfinite(value) or abs(value) > LARGEST:
            raise Problem("malformed", f"{name} must be a number such as -1.25e-7, got {text[:40]!r}")
        return value

    def count(self, name: str, least: int, most: int, usual: int | None = None) -> int:
        if usual is not None and name not in self.given:
            return usual
        text = self.text(name)
        if not (text.isascii() and text.isdigit() and len(text) <= 15 and least <= int(text) <= most):
            raise Problem("malformed", f"{name} must be a whole number from {least} to {most}, got {text[:40]!r}")
        return int(text)

    def window(self) -> Window | None:
        """The window, if one is given."""
        if not any(name in self.given for name in WINDOW):
            return None
        window = Window(*map(self.number, WINDOW))
        if not (window.hx > 0 and window.hy > 0):
            raise Problem("malformed", f"hx and hy must be positive, got {window.hx:g} and {window.hy:g}")
        return window


@dataclass(frozen=True)
class _Kind:
    """How a question is answered, and its parameters."""

    answer: Callable[[Viewer, Question, Check], Answer]
    parameters: tuple[str, ...]


def answer(viewer: Viewer, question: Question, check: Check) -> Answer:
    """The answer to a question, or what is told instead; `check` is called meanwhile, and may raise a problem."""
    try:
        check()
        return ANSWERS[question.path].answer(viewer, question, check)
    except Problem as problem:
        return problem.answer
    except MemoryError as error:
        return Problem("refused", f"there is not enough memory for that: {error}").answer
    except (ValueError, TypeError, OSError, KeyError, RuntimeError) as error:
        # what the library says of networks that cannot be cut, files that are damaged, data that are missing
        reason = error.args[0] if isinstance(error, KeyError) and error.args else error
        return Problem("refused", str(reason) or type(error).__name__).answer


def first_look(viewer: Viewer) -> None:
    """Ask what a page asks first, so that kernels, data and a network are there before somebody waits for them."""
    warm_up()
    for exhibit in [*viewer.library.exhibits().values()][:1]:
        for plane in [*viewer.plane_names(exhibit)][:1]:
            about = {"run": exhibit.id, "plane": plane}
            for path, given in (("plane", {}), ("cells", {"step": str(exhibit.steps[-1]), "max_cells": "1000"})):
                answer(viewer, Question(f"/api/{path}", about | given), lambda: None)


# the answers


def _exhibit(viewer: Viewer, question: Question) -> Exhibit:
    return viewer.library.exhibit(question.text("run"))


def _runs(viewer: Viewer, question: Question, check: Check) -> Answer:
    found = []
    for exhibit in viewer.library.exhibits().values():
        try:
            found.append(run_summary(viewer, exhibit))
        except (Problem, ValueError, OSError):  # it has gone meanwhile, or is damaged: the others are told
            continue
    return Answer.of_json(plain({"version": __version__, "live": viewer.live, "runs": found}))


def _curves(viewer: Viewer, question: Question, check: Check) -> Answer:
    exhibit = _exhibit(viewer, question)
    key = ("curves", exhibit.id, exhibit.version, len(exhibit.steps))
    body = viewer.blocks.get(key, lambda: Answer.of_json(curves(viewer, exhibit)).body)
    return Answer(200, "application/json", body)


def _planes(viewer: Viewer, question: Question, check: Check) -> Answer:
    return Answer.of_json(plane_list(viewer, _exhibit(viewer, question)))


def _plane(viewer: Viewer, question: Question, check: Check) -> Answer:
    return Answer.of_json(plain(plane_summary(viewer, _exhibit(viewer, question), question.text("plane"))))


def _images(viewer: Viewer, question: Question, check: Check) -> Answer:
    exhibit = _exhibit(viewer, question)
    images = viewer.images(exhibit)
    if images is None:
        raise Problem("unknown", f"the data of {exhibit.id} are not known")
    total = len(images.points)
    start = question.count("start", 0, max(0, total - 1), 0)
    most = question.count("count", 1, MOST_IMAGES, COUNT)
    count, shape = min(most, total - start), image_shape(images)
    labels = None if images.labels is None else [images.label(start + k) for k in range(count)]
    sheet = f"/api/sheet?count={most}&run={quoted(exhibit.id)}&start={start}"
    return Answer.of_json({
        "total": total, "start": start, "count": count, "shape": None if shape is None else shape[:2],
        "channels": None if shape is None else shape[2], "columns": min(COLUMNS, count), "labels": labels,
        "classes": list(images.classes), "sheet": None if shape is None else sheet,
    })  # fmt: skip


def _sheet(viewer: Viewer, question: Question, check: Check) -> Answer:
    single = question.path == "/api/image"
    exhibit = _exhibit(viewer, question)
    images = viewer.images(exhibit)
    if images is None or image_shape(images) is None:
        raise Problem("unknown", f"{exhibit.id} has no images")
    last = len(images.points) - 1
    start = question.count("index", 0, last) if single else question.count("start", 0, last, 0)
    count = 1 if single else min(question.count("count", 1, MOST_IMAGES, COUNT), last + 1 - start)
    key = ("sheet", exhibit.id, exhibit.version, start, count)
    return Answer(200, "image/png", viewer.blocks.get(key, lambda: image_sheet(images, start, count)))


def _thumbnail(viewer: Viewer, question: Question, check: Check) -> Answer:
    exhibit = _exhibit(viewer, question)
    found = [(steps[-1], name) for name, steps in viewer.plane_names(exhibit).items() if steps]
    if not found:
        raise Problem("unknown", f"{exhibit.id} recorded no plane")
    step, name = max(found)
    run = viewer.library.check(exhibit, step)
    key = ("thumbnail", exhibit.id, exhibit.version, step, name)
    body = viewer.blocks.get(key, lambda: plane_picture(run.plane(step, name.removeprefix("recorded:"))))
    return Answer(200, "image/png", body)


def _points(viewer: Viewer, question: Question, check: Check) -> Answer:
    return _binary(viewer.points(_exhibit(viewer, question), question.text("plane")))


def _cells(viewer: Viewer, question: Question, check: Check) -> Answer:
    most = question.count("max_cells", 1, MOST_CELLS, MAX_CELLS)
    return _binary(viewer.cells(*_look(viewer, question), most, check))


def _density(viewer: Viewer, question: Question, check: Check) -> Answer:
    usual = MEASURES["local_complexity"].defaults["sigma"]
    sigma = question.number("sigma") if "sigma" in question.given else usual
    if not 1e-6 <= sigma <= 1e3:
        raise Problem("malformed", f"sigma must be from 1e-6 to 1000, got {sigma:g}")
    return _binary(viewer.density(*_look(viewer, question), sigma, check))


def _look(viewer: Viewer, question: Question) -> tuple[Exhibit, int, str, Window | None]:
    step, window = question.count("step", 0, MOST_STEPS), question.window()
    return _exhibit(viewer, question), step, question.text("plane"), window


def _binary(body: bytes) -> Answer:
    return Answer(200, "application/octet-stream", body)


def quoted(text: str) -> str:
    """As `encodeURIComponent` writes it."""
    return quote(text, safe="-_.!~*'()")


ANSWERS = {
    "/api/runs": _Kind(_runs, ()),
    "/api/curves": _Kind(_curves, ("run",)),
    "/api/planes": _Kind(_planes, ("run",)),
    "/api/plane": _Kind(_plane, ("run", "plane")),
    "/api/images": _Kind(_images, ("run", "start", "count")),
    "/api/sheet": _Kind(_sheet, ("run", "start", "count")),
    "/api/image": _Kind(_sheet, ("run", "index")),
    "/api/thumbnail": _Kind(_thumbnail, ("run",)),
    "/api/points": _Kind(_points, ("run", "plane")),
    "/api/cells": _Kind(_cells, ("run", "step", "plane", *WINDOW, "view", "max_cells")),
    "/api/density": _Kind(_density, ("run", "step", "plane", *WINDOW, "view", "sigma")),
}
