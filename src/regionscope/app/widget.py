"""The explorer in a notebook: the same page and the same questions, by messages. See docs/explorer-format.md."""

from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from typing import Any

from torch import Tensor

from regionscope.app.library import Exhibit, Images, Library
from regionscope.app.live import Turn, Turns
from regionscope.app.problems import Answer, Problem
from regionscope.app.questions import Question, answer
from regionscope.app.server import LOOKING, STATIC, WAITING
from regionscope.app.viewer import Viewer
from regionscope.geometry.planes import Plane
from regionscope.geometry.sweep import exact
from regionscope.integrations import extra
from regionscope.points import as_tensor
from regionscope.tracing.network import Network
from regionscope.tracing.trace import as_network
from regionscope.types import Array, Model

NAME = "model"  # of what is shown
Reply = Callable[[dict[str, Any], list[bytes]], object]  # a message and its buffers


def explore(model: Model | Network, plane: Plane, *, points: Array | None = None, labels: Array | None = None) -> Any:
    """The linear regions of a model on a plane, as a notebook widget to pan and zoom without end: exact at any depth.

    `points` (n, ...) are inputs to lay other planes through, three at a time, `labels` (n,) their classes. The model is
    shown as it is now: training it further changes nothing in the widget. Needs `pip install 'regionscope[notebook]'`.

    >>> import torch, regionscope as rs
    >>> model = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    >>> widget = rs.explore(model, rs.Plane.coordinates(torch.zeros(2)))  # the last line of a cell shows it
    """
    with extra("notebook"):
        from anywidget import AnyWidget

    class Explorer(AnyWidget):
        _esm = STATIC / "assets" / "widget.js"
        _css = STATIC / "assets" / "explorer.css"

        def __repr__(self) -> str:
            return f"Explorer(inputs: {tuple(plane.origin.shape)}; shown in a notebook, as the last line of a cell)"

    conversation = _Conversation(Viewer(_library(model, plane, points, labels), live=False))
    widget = Explorer()
    widget.on_msg(lambda _, message, buffers: conversation.hear(message, widget.send))
    return widget


def _library(model: Model | Network, plane: Plane, points: Array | None, labels: Array | None) -> Library:
    net = exact(as_network(model, plane.origin[None]))
    images = None if points is None else _images(as_tensor(points), plane, labels)
    shown = Exhibit(
        NAME, model=lambda step: net, planes={"plane": plane}, images=None if images is None else lambda: images
    )
    return Library([], lambda name, run: shown, [shown])


def _images(points: Tensor, plane: Plane, labels: Array | None) -> Images:
    shape, wanted = tuple(points.shape[1:]), tuple(plane.origin.shape)
    if shape != wanted or len(points) < 3:
        raise ValueError(f"points must be at least three inputs {('n', *wanted)}, got {tuple(points.shape)}")
    classes = None if labels is None else as_tensor(labels).long()
    if classes is not None and tuple(classes.shape) != (len(points),):
        raise ValueError(f"labels must be ({len(points)},), a class for each point, got {tuple(classes.shape)}")
    return Images(points, classes)


class _Conversation:
    """Answers messages in threads, so that the notebook goes on and newer questions stop stale ones."""

    def __init__(self, viewer: Viewer) -> None:
        self._viewer, self._turns, self._lock = viewer, Turns(WAITING), Lock()
        self._threads = ThreadPoolExecutor(LOOKING, "explorer")

    def hear(self, message: Any, reply: Reply) -> "Future[None] | None":
        """Answer a question, later; what is none is not for us."""
        if not (isinstance(message, Mapping) and isinstance(message.get("ask"), str) and "id" in message):
            return None
        number = message["id"]
        try:
            question = Question.of(message["ask"])
            view = question.view
            with self._lock:
                turn = self._turns.take(view)
        except Problem as problem:
            _send(reply, number, problem.answer)
            return None
        return self._threads.submit(self._answer, question, view, turn, number, reply)

    def _answer(self, question: Question, view: str | None, turn: Turn, number: Any, reply: Reply) -> None:
        try:
            given = answer(self._viewer, question, turn.check)
        except Exception as error:  # a fault of ours: whoever waits is told, as by the server
            given = Problem("fault", f"the explorer has a fault: {type(error).__name__}: {error}").answer
        finally:
            with self._lock:
                self._turns.give_back(view, turn)
        _send(reply, number, given)


def _send(reply: Reply, number: Any, given: Answer) -> None:
    reply({"id": number, "status": given.status, "type": given.type}, [given.body])
