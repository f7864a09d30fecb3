"""The local server: questions by HTTP, events, and the files of the page."""

import asyncio
import mimetypes
import secrets
import socket
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from regionscope.app.live import Turn, Turns, Watch, events
from regionscope.app.problems import Answer, Problem
from regionscope.app.questions import ANSWERS, Question, answer
from regionscope.app.security import Guard
from regionscope.app.viewer import Viewer
from regionscope.disk import read_whole

STATIC = Path(__file__).parent / "static"
LOOPBACK = "127.0.0.1"
LOOKING, READING = 2, 2  # threads: for cells and densities, and for what is quick
WAITING = 64  # requests at most
STREAMS = 16  # pages that follow runs
DISCONNECTED = 0.1  # seconds between two looks whether somebody waits
ALIVE = 15.0  # seconds between two signs of life
INCOMPLETE = 16 << 10  # bytes of a request that has not come to its end


@dataclass(frozen=True)
class Address:
    """Where the server is, and the token that it asks for."""

    port: int
    token: str

    @property
    def url(self) -> str:
        """What to open in a browser."""
        return f"http://{LOOPBACK}:{self.port}/?token={self.token}"

    @property
    def hosts(self) -> list[str]:
        """The names of this machine, for itself."""
        return [f"{name}:{self.port}" for name in (LOOPBACK, "localhost")]


def explorer(viewer: Viewer, address: Address, *, static: Path = STATIC) -> Starlette:
    """The application."""
    desk = _Desk(viewer)
    files = {route: (read_whole(file), _media_type(file)) for route, file in static_files(static).items()}
    routes = [
        *(Route(path, desk.ask, methods=["GET"]) for path in ANSWERS),
        Route("/api/events", desk.follow, methods=["GET"]),
        Route("/{path:path}", partial(_file, files), methods=["GET"]),
    ]
    guard = Middleware(Guard, token=address.token, hosts=address.hosts)
    return Starlette(routes=routes, middleware=[guard], exception_handlers={Exception: _fault})


class _Desk:
    """Takes questions, has threads answer them, and says when nobody waits any more."""

    def __init__(self, viewer: Viewer) -> None:
        self.viewer, self.watch, self.turns = viewer, Watch(viewer), Turns(WAITING)
        self.streams = 0
        self.looking = ThreadPoolExecutor(LOOKING, "looking")
        self.reading = ThreadPoolExecutor(READING, "reading")

    async def ask(self, request: Request) -> Response:
        """Answer one question."""
        try:
            query = request.scope["query_string"].decode("latin-1")
            question = Question.of(f"{request.scope['path']}?{query}" if query else request.scope["path"])
            view = question.view
            turn = self.turns.take(view)
        except Problem as problem:
            return _response(problem.answer)
        try:
            pool = self.looking if question.long else self.reading
            given = asyncio.get_running_loop().run_in_executor(pool, answer, self.viewer, question, turn.check)
            return _response(await _waited_for(given, turn, request))
        finally:
            self.turns.give_back(view, turn)

    async def follow(self, request: Request) -> Response:
        """Say which runs change."""
        if self.streams >= STREAMS:
            return _response(Problem("busy", f"{self.streams} pages follow the runs already").answer)
        return StreamingResponse(self._events(), media_type="text/event-stream", headers={"cache-control": "no-store"})

    async def _events(self) -> AsyncIterator[str]:
        loop, quiet = asyncio.get_running_loop(), 0.0
        before: dict[str, dict[str, Any]] = {}
        self.streams += 1
        try:
            yield ": regionscope\n\n"
            while True:
                now = await loop.run_in_executor(self.reading, self.watch.summaries)
                told = events(before, now)
                before, quiet = now, 0.0 if told else quiet + 1.0
                if told or quiet >= ALIVE:
                    yield told or ": alive\n\n"
                    quiet = 0.0
                await asyncio.sleep(1.0)
        finally:
            self.streams -= 1


async def _waited_for(given: asyncio.Future[Answer], turn: Turn, request: Request) -> Answer:
    """An answer; if the one who asked goes away, whoever works on it is told to stop."""
    while True:
        done, _ = await asyncio.wait({given}, timeout=DISCONNECTED)
        if done:
            return given.result()
        if await request.is_disconnected():
            turn.stopped.set()


def _response(given: Answer) -> Response:
    return Response(given.body, given.status, {"cache-control": "no-store"}, given.type)


async def _fault(request: Request, error: Exception) -> Response:
    """A fault of the explorer itself: told without what it was, which the terminal has."""
    return _response(Problem("fault", f"the explorer has a fault: {type(error).__name__}; see the terminal").answer)


# the files of the page


def static_files(folder: Path) -> dict[str, Path]:
    """The files of the page by their routes; the page itself is /."""
    found = {f"/{file.relative_to(folder).as_posix()}": file for file in sorted(folder.rglob("*")) if file.is_file()}
    return found | ({"/": found["/index.html"]} if "/index.html" in found else {})


def _media_type(file: Path) -> str:
    return {".js": "text/javascript", ".css": "text/css", ".html": "text/html; charset=utf-8"}.get(
        file.suffix, mimetypes.guess_type(file.name)[0] or "application/octet-stream"
    )


async def _file(files: dict[str, tuple[bytes, str]], request: Request) -> Response:
    path = request.scope["path"]
    if path == "/" and path not in files:
        return _response(Problem("unknown", "the page is not there: build it with `make web`").answer)
    if path not in files:
        return _response(Problem("unknown", f"there is no {path[:80]!r}").answer)
    body, kind = files[path]
    return _response(Answer(200, kind, body))  # not cached: the next version has the same names


# the server


def serve(viewer: Viewer, *, port: int, started: Callable[[Address], None]) -> None:
    """Serve on this machine only, at a port, or a free one if it is 0, until it is interrupted."""
    with bound_socket(port) as listening:
        address = Address(listening.getsockname()[1], secrets.token_urlsafe(32))
        server = new_server(explorer(viewer, address))
        started(address)
        server.run(sockets=[listening])


def bound_socket(port: int) -> socket.socket:
    """A socket of this machine alone."""
    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((LOOPBACK, port))
        listening.listen()  # from now on browsers wait instead of being refused
    except (OSError, OverflowError) as error:
        listening.close()
        why = "ports are 0 to 65535" if isinstance(error, OverflowError) else error.strerror or error
        raise ValueError(f"port {port} cannot be used: {why}; take another, or none for a free one") from None
    return listening


def new_server(app: Starlette) -> uvicorn.Server:
    """A server that logs no addresses, because they may have the token, and lets nobody keep it from ending."""
    return uvicorn.Server(
        uvicorn.Config(
            app, log_level="warning", access_log=False, server_header=False, date_header=False, http="h11", ws="none",
            lifespan="off", timeout_keep_alive=5, timeout_graceful_shutdown=1, h11_max_incomplete_event_size=INCOMPLETE,
        )
    )  # fmt: skip
