"""Who may ask the explorer, and what files it follows."""

import socket
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import httpx
import pytest
from explorers import ADDRESS, OWN, client_of, small_runs, viewer_of
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

import regionscope as rs
from regionscope.app import server
from regionscope.app.library import Library
from regionscope.app.live import Watch
from regionscope.app.security import Guard
from regionscope.app.server import Address, bound_socket, explorer, new_server
from regionscope.app.viewer import Viewer
from regionscope.cli.explorer import run_exhibit
from regionscope.cli.models import TOLD_BY_FILE


@pytest.fixture(scope="module")
def stranger(viewer: Viewer, page: Path) -> Iterator[TestClient]:
    with client_of(viewer, static=page, headers={}) as made:
        yield made


ALL = ("/", "/assets/index-1.js", "/api/runs", "/api/events", "/api/cells", "/nowhere")


@pytest.mark.parametrize("path", ALL)
def test_nothing_is_told_without_the_token(stranger: TestClient, path: str) -> None:
    for headers in ({}, {"authorization": "Bearer wrong"}, {"cookie": "regionscope-8123=wrong"}, {"cookie": "a=b;;c"}):
        answer = stranger.get(path, headers=headers)
        assert answer.status_code == 401 and answer.json()["error"]["kind"] == "token"
    assert stranger.get("/?token=wrong").status_code == 401
    assert stranger.get(f"/api/runs?token={ADDRESS.token}").status_code == 401  # only the page may have it


def test_the_token_leaves_the_address_after_the_first_request(viewer: Viewer, page: Path) -> None:
    client = client_of(viewer, static=page, headers={})
    answer = client.get(f"/?token={ADDRESS.token}&theme=dark")
    assert answer.status_code == 303 and answer.headers["location"] == "/?theme=dark"
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=Strict" in cookie and cookie.startswith("regionscope-8123=")
    assert client.get("/").status_code == 200 and client.get("/api/runs").status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:80", "localhost:8124", "", "[::1]:8123"])
def test_other_names_of_this_host_are_refused(client: TestClient, host: str) -> None:
    answer = client.get("/api/runs", headers={"host": host})
    assert answer.status_code == 403 and answer.json()["error"]["kind"] == "foreign"


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:9000", "https://127.0.0.1:8123"])
def test_other_sites_are_refused(client: TestClient, origin: str) -> None:
    assert client.get("/api/runs", headers={"origin": origin}).status_code == 403
    assert client.get("/api/runs", headers={"origin": "http://127.0.0.1:8123"}).status_code == 200


def test_requests_that_another_site_has_made_are_refused(client: TestClient) -> None:
    for site in ("cross-site", "same-site"):  # another port of this host is the same site
        assert client.get("/api/runs", headers={"sec-fetch-site": site}).status_code == 403
        embedded = {"sec-fetch-site": site, "sec-fetch-mode": "no-cors"}
        assert client.get("/", headers=embedded).status_code == 403
        link = {"sec-fetch-site": site, "sec-fetch-mode": "navigate"}
        assert client.get("/", headers=link).status_code == 200
        assert client.get("/api/runs", headers=link).status_code == 403
    assert client.get("/api/runs", headers={"sec-fetch-site": "same-origin"}).status_code == 200


def test_the_explorer_can_only_be_read(client: TestClient) -> None:
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
        assert client.request(method, "/api/runs").json()["error"]["kind"] == "method"
    answer = client.request("GET", "/api/runs", content=b"x" * 10)
    assert answer.status_code == 413 and answer.json()["error"]["kind"] == "body"
    assert client.head("/api/runs").status_code == 200


@pytest.mark.parametrize("path", [*ALL[:3], "/nowhere"])
def test_every_answer_says_what_pages_may_do(client: TestClient, stranger: TestClient, path: str) -> None:
    for answer in (client.get(path), stranger.get(path)):
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy and "http" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    "path",
    ["/../pyproject.toml", "/assets/../../secret", "/%2e%2e/secret", "//etc/passwd", "/assets//etc/passwd", "/\x00"],
)
def test_only_files_of_the_page_are_served(client: TestClient, path: str) -> None:
    scope = f"http://127.0.0.1:8123{path.replace(chr(0), '%00')}"
    assert client.get(scope).status_code in (403, 404)


def test_the_guard_keeps_cookies_of_ports_apart() -> None:
    first, second = (Guard(lambda *_: None, token="t", hosts=Address(p, "t").hosts) for p in (1, 2))  # type: ignore[arg-type]
    assert first.cookie != second.cookie


# files


@pytest.mark.parametrize("what", ["weights", "step", "steps", "status", "plane"])
def test_links_that_leave_a_run_are_refused(tmp_path: Path, page: Path, what: str) -> None:
    folder = small_runs(tmp_path / "runs")
    step = folder / "one" / "steps" / "000000040"
    target = {
        "weights": step / "weights.safetensors", "step": step, "steps": step.parent,
        "status": folder / "one" / "status.json", "plane": step / "planes" / "train.npz",
    }[what]  # fmt: skip
    target.rename(tmp_path / "outside")
    target.symlink_to(tmp_path / "outside")
    client = client_of(viewer_of(folder), static=page)
    answer = client.get("/api/cells?run=runs/one&step=40&plane=recorded:train")
    assert answer.status_code == 422 and "is a link that leaves" in answer.json()["error"]["message"]
    assert client.get("/api/curves?run=runs/one").status_code == 422
    assert client.get("/api/runs").json()["runs"] == []
    assert not Watch(viewer_of(folder)).summaries()


def test_runs_behind_links_are_not_listed(tmp_path: Path, page: Path) -> None:
    folder, outside = tmp_path / "shown", small_runs(tmp_path / "outside")
    folder.mkdir()
    (folder / "whole").symlink_to(outside / "one")
    (folder / "file").mkdir()
    (folder / "file" / "run.json").symlink_to(outside / "one" / "run.json")
    client = client_of(viewer_of(folder), static=page)
    assert client.get("/api/runs").json()["runs"] == []


def test_weights_that_are_no_safetensors_are_not_read(tmp_path: Path, page: Path) -> None:
    folder = small_runs(tmp_path / "runs")
    weights = folder / "one" / "steps" / "000000040" / "weights.safetensors"
    weights.write_bytes(b"\x80\x04\x95cos\nsystem\n(S'true'\ntR.")
    client = client_of(viewer_of(folder), static=page)
    answer = client.get("/api/cells?run=runs/one&step=40&plane=recorded:train&x=0&y=0&hx=1&hy=1")
    assert answer.status_code == 422 and "cannot be read as weights" in answer.json()["error"]["message"]


def test_damaged_runs_do_not_hide_the_others(tmp_path: Path, page: Path) -> None:
    folder = small_runs(tmp_path / "runs")
    for name, text in (("broken", "{"), ("empty", ""), ("old", '{"version": 0}'), ("list", "[]")):
        (folder / name).mkdir()
        (folder / name / "run.json").write_text(text)
    client = client_of(viewer_of(folder), static=page)
    assert [run["id"] for run in client.get("/api/runs").json()["runs"]] == ["runs/one"]


def test_folders_with_one_name_are_told_apart(tmp_path: Path) -> None:
    folders = [tmp_path / place / "runs" for place in "abc"]
    for folder in folders:
        rs.Run.create(folder, {}).close()
    library = Library(folders, partial(run_exhibit, TOLD_BY_FILE, None, None))
    found = {name: exhibit.run.path for name, exhibit in library.exhibits().items() if exhibit.run is not None}
    assert found == dict(zip(("runs", "runs~2", "runs~3"), folders, strict=True))


# too much at once


def test_addresses_with_too_many_parts_are_refused(client: TestClient) -> None:
    answer = client.get("/?" + "&".join(f"a{k}=1" for k in range(30)))
    assert answer.status_code == 400 and "this address cannot be read" in answer.json()["error"]["message"]


def test_more_requests_than_may_wait_are_sent_away(viewer: Viewer, page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "WAITING", 0)
    monkeypatch.setattr(server, "STREAMS", 0)
    client = client_of(viewer, static=page)
    for path, reason in (("/api/runs", "0 requests wait already"), ("/api/events", "0 pages follow the runs already")):
        answer = client.get(path)
        assert answer.status_code == 429 and reason in answer.json()["error"]["message"]


def test_there_are_no_websockets(client: TestClient) -> None:
    with pytest.raises(WebSocketDisconnect) as refused, client.websocket_connect("/api/events"):
        pass
    assert refused.value.code == 1008


def test_a_page_that_is_not_built_says_how(viewer: Viewer, tmp_path: Path) -> None:
    answer = client_of(viewer, static=tmp_path).get("/")
    assert answer.status_code == 404 and "build it with `make web`" in answer.json()["error"]["message"]


# a real server


@pytest.fixture
def served(viewer: Viewer, page: Path) -> Iterator[Address]:
    with bound_socket(0) as listening:
        address = Address(listening.getsockname()[1], "the-token")
        server = new_server(explorer(viewer, address, static=page))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        while not server.started:
            time.sleep(0.01)
        yield address
        server.should_exit = True
        thread.join(timeout=10)
        assert not thread.is_alive()


def test_the_server_listens_on_this_machine_only(served: Address) -> None:
    assert httpx.get(f"http://127.0.0.1:{served.port}/api/runs", headers=OWN).status_code == 200
    assert f"http://127.0.0.1:{served.port}/?token=" in served.url
    with bound_socket(0) as listening:
        assert listening.getsockname()[0] == "127.0.0.1"
    with pytest.raises(ValueError, match=f"port {served.port} cannot be used"), bound_socket(served.port):
        pass
    with pytest.raises(ValueError, match="port 99999 cannot be used"), bound_socket(99999):
        pass


def test_slow_and_broken_clients_do_not_stop_the_server(served: Address) -> None:
    slow = [socket.create_connection(("127.0.0.1", served.port)) for _ in range(100)]
    for k, client in enumerate(slow):
        client.sendall(
            [b"GET /api/runs HTTP/1.1\r\nHost: ", b"\x16\x03\x01", b"GET / HTTP/9\r\n\r\n", b"\r\n" * 9][k % 4]
        )
    greedy = [socket.create_connection(("127.0.0.1", served.port)) for _ in range(10)]  # which never read
    for client in greedy:
        wanted = "/api/cells?run=runs/one&step=40&plane=recorded:train"
        client.sendall(f"GET {wanted} HTTP/1.1\r\nHost: 127.0.0.1:{served.port}\r\n{_lines(OWN)}\r\n".encode() * 20)
    huge = socket.create_connection(("127.0.0.1", served.port))
    huge.sendall(b"GET /" + b"x" * 100_000)
    body = f"POST / HTTP/1.1\r\nHost: 127.0.0.1:{served.port}\r\nContent-Length: 99999999999\r\n{_lines(OWN)}\r\n"
    posting = socket.create_connection(("127.0.0.1", served.port))
    posting.sendall(body.encode())
    posting.settimeout(10)
    assert b" 405 " in posting.recv(100)
    for _ in range(5):
        assert httpx.get(f"http://127.0.0.1:{served.port}/api/runs", headers=OWN, timeout=20).status_code == 200
    for client in (*slow, *greedy, huge, posting):
        client.close()


def _lines(headers: dict[str, str]) -> str:
    return "".join(f"{name}: {value}\r\n" for name, value in headers.items())


def test_a_run_that_goes_on_is_told_of(tmp_path: Path, page: Path) -> None:
    folder = small_runs(tmp_path / "runs")
    with bound_socket(0) as listening:
        address = Address(listening.getsockname()[1], "the-token")
        server = new_server(explorer(viewer_of(folder), address, static=page))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        url = f"http://127.0.0.1:{address.port}/api/events"
        with httpx.stream("GET", url, headers=OWN, timeout=20) as stream:
            lines = stream.iter_lines()
            first = next(line for line in lines if line.startswith("data:"))
            assert '"records": 5' in first
            run = rs.Run.resume(folder / "one")
            run.record(rs.Record(41))
            run.close()
            second = next(line for line in lines if line.startswith("data:"))
            assert '"records": 6' in second and "41]" in second
        server.should_exit = True
        thread.join(timeout=10)
        assert not thread.is_alive()
