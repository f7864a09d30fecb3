"""Thousands of malformed requests leave the explorer answering, with memory where it was."""

import asyncio
import gc
import json
import os
import random
import socket
import subprocess
import sys
import threading
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from explorers import ADDRESS, OWN, viewer_of
from starlette.types import Message

from regionscope.app.problems import STATUS
from regionscope.app.questions import ANSWERS
from regionscope.app.server import Address, bound_socket, explorer, new_server
from regionscope.app.viewer import Viewer
from regionscope.machine import return_freed_memory

HELPERS = Path(__file__).parents[1] / "helpers"
VALUES = [
    "runs/one", "runs/two", "../runs/one", "/etc/passwd", "recorded:train", "recorded:../../x", "through:0,1,2", "0",
    "40", "through:9999999999,1,2", "through:1,1,2", "1e-30", "1e30",
    "through:1,2,3,4", "coordinates", "given:", "1", "-1", "1e-6", "0.5", "1e308", "1e-308",
    "NaN", "inf", "-0", "1e999999", "9" * 400, "x" * 1500, "\x00", "\n", "é", "🙂", "٣", "%", "%zz", "%00", "%ff%fe",
    "&",
    "=", "a=b", "", " ", "null", "[]", "{}", "true", "0x1p3", "1,5", "--", "<script>", "'; drop", "\\", "..%2f..%2f",
]  # fmt: skip
NAMES = sorted({name for kind in ANSWERS.values() for name in kind.parameters})
PATHS = [
    *ANSWERS,
    *["/api/cells"] * 8,
    "/",
    "/api",
    "/api/",
    "/api/nothing",
    "/assets/index-1.js",
    "/..",
    "//",
    "/%2e%2e",
    "/\x00",
    "/é",
]
GOOD = {
    "run": "runs/one", "step": "40", "plane": "recorded:train", "x": "0.1", "y": "0.2", "hx": "0.01", "hy": "0.02",
    "start": "0", "count": "5", "index": "3", "max_cells": "50", "sigma": "0.1", "view": "a",
}  # fmt: skip
SLOW = ("/api/density", "/api/events")  # rarely asked properly


def query(draw: random.Random, path: str, proper: bool) -> bytes:
    """Parameters that are right, or nearly, or not at all."""
    known = ANSWERS[path].parameters if path in ANSWERS else ()
    given = [(name, GOOD[name]) for name in known if path not in SLOW or draw.random() < 0.5]
    for _ in range(0 if proper else draw.choice([0, 1, 1, 2, 3])):
        change = draw.randrange(4)
        if change == 0 and given:
            k = draw.randrange(len(given))
            given[k] = (given[k][0], draw.choice(VALUES))
        elif change == 1 and given:
            given.pop(draw.randrange(len(given)))
        elif change == 2:
            given.append((draw.choice(NAMES), draw.choice(VALUES)))
        else:
            given.append((draw.choice(VALUES), draw.choice(VALUES)))
    given = [(n, f"v{draw.randrange(30)}" if n == "view" and v == "a" else v) for n, v in given]
    if draw.random() < 0.2:  # another window, which has to be computed
        given = [(n, f"{draw.uniform(-5, 5):.3f}" if n == "x" else v) for n, v in given]
    text = ("&" if proper else draw.choice("&&&&;")).join(f"{name}={value}" for name, value in given)
    data = bytearray(text.encode("utf-8", "replace"))
    if data and not proper and draw.random() < 0.1:
        data[draw.randrange(len(data))] = draw.randrange(256)
    return bytes(data)


def scope(draw: random.Random) -> dict[str, Any]:
    path, proper = draw.choice(PATHS), draw.random() < 0.3
    headers = [(b"host", b"127.0.0.1:8123"), (b"authorization", OWN["authorization"].encode())]
    if not proper and draw.random() < 0.15:
        headers.pop(draw.randrange(2))
    for _ in range(0 if proper else draw.choice([0, 0, 0, 1, 2])):
        name = draw.choice(
            ["host", "origin", "cookie", "authorization", "content-length", "sec-fetch-site", "range", "x"]
        )
        headers.append((name.encode(), draw.choice(VALUES).encode()))
    method = "GET" if proper else draw.choice(["GET"] * 20 + ["HEAD", "POST", "PUT", "\x00", "GET "])
    return {
        "type": "http", "http_version": "1.1", "method": method, "scheme": "http", "path": path,
        "raw_path": path.encode(), "root_path": "", "query_string": query(draw, path, proper), "headers": headers,
        "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 8123), "gone": path in SLOW or draw.random() < 0.1,
    }  # fmt: skip


async def asked(app: Any, request: dict[str, Any]) -> tuple[int, bytes]:
    """The status and the body of the answer to a request; some clients are gone before it comes."""
    sent: list[Message] = []
    received = 0

    async def receive() -> Message:
        nonlocal received
        received += 1
        if received > 1 and not request["gone"]:
            await asyncio.Event().wait()
        return {"type": "http.request", "body": b""} if received == 1 else {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    await asyncio.wait_for(app(request, receive, send), timeout=60)
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent[1:])


def resident() -> int:
    """Bytes of memory that the process has, without what it keeps for its next use."""
    gc.collect()
    return_freed_memory()
    return 4096 * int(Path("/proc/self/statm").read_text().split()[1])


async def bombarded(viewer: Viewer, page: Path, count: int, seed: int) -> Counter[int]:
    """Ask so many random requests, some at once; how often each status was the answer."""
    app, draw, found = explorer(viewer, ADDRESS, static=page), random.Random(seed), Counter[int]()
    for _ in range(count // 20):
        requests = [scope(draw) for _ in range(20)]
        for request, (status, body) in zip(
            requests, await asyncio.gather(*(asked(app, r) for r in requests)), strict=True
        ):
            found[status] += 1
            assert status in {200, 303, *STATUS.values()} - {500}, request
            if status >= 400:
                error = json.loads(body)["error"]
                assert STATUS[error["kind"]] == status and error["message"], request
    good = {**scope(random.Random(0)), "method": "GET", "path": "/api/runs", "query_string": b"", "gone": False}
    good["headers"] = [(b"host", b"127.0.0.1:8123"), (b"authorization", OWN["authorization"].encode())]
    assert (await asked(app, good))[0] == 200
    return found


def statuses(viewer: Viewer, page: Path, count: int) -> Counter[int]:
    """How often each was the answer; an error if memory grows when caches and pools are as full as they get."""
    first = asyncio.run(bombarded(viewer, page, count // 2, seed=1))
    before = resident() - viewer.blocks.nbytes
    then = asyncio.run(bombarded(viewer, page, count - count // 2, seed=2))
    grown = resident() - viewer.blocks.nbytes - before
    assert grown < 64 << 20, f"{grown / 2**20:.0f} MB more"
    return first + then


def statuses_alone(folder: Path, page: Path, count: int) -> dict[str, int]:
    """The same in a process of its own: what other tests leave behind has no part in its memory."""
    asked = [sys.executable, __file__, str(folder), str(page), str(count)]
    done = subprocess.run(asked, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(HELPERS)})
    assert done.returncode == 0, done.stderr
    found: dict[str, int] = json.loads(done.stdout)
    return found


def test_ten_thousand_requests_leave_it_answering(folder: Path, page: Path) -> None:
    found = statuses_alone(folder, page, 10_000)
    assert {"200", "400", "401", "403", "404", "405", "413", "422"} <= set(found) and found["200"] > 1000


@pytest.mark.exhaustive
def test_many_more_requests_leave_it_answering(folder: Path, page: Path) -> None:
    statuses_alone(folder, page, 200_000)


def test_bytes_that_are_no_requests_leave_it_answering(viewer: Viewer, page: Path) -> None:
    draw = random.Random(3)
    with bound_socket(0) as listening:
        address = Address(listening.getsockname()[1], ADDRESS.token)
        server = new_server(explorer(viewer, address, static=page))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        own = f"Host: 127.0.0.1:{address.port}\r\nAuthorization: {OWN['authorization']}\r\n"
        for _ in range(300):
            line = f"{draw.choice(['GET', 'POST', 'G'])} /api/{draw.choice(VALUES)}?{draw.choice(VALUES)} HTTP/1.1\r\n"
            data = bytearray((line + own + "\r\n").encode())
            for _ in range(draw.choice([0, 1, 5])):
                data[draw.randrange(len(data))] = draw.randrange(256)
            with socket.create_connection(("127.0.0.1", address.port), timeout=10) as client:
                client.sendall(bytes(data[: draw.choice([len(data), draw.randrange(len(data))])]))
                if draw.random() < 0.3:
                    client.settimeout(0.05)
                    with suppress(OSError):
                        client.recv(100)
        assert httpx.get(f"http://127.0.0.1:{address.port}/api/runs", headers=OWN, timeout=20).status_code == 200
        server.should_exit = True
        thread.join(timeout=20)
        assert not thread.is_alive()


if __name__ == "__main__":
    print(json.dumps(statuses(viewer_of(Path(sys.argv[1])), Path(sys.argv[2]), int(sys.argv[3]))))
