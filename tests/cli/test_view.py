"""`regionscope view`: a network of one's own, with skips, served to who holds the token."""

import inspect
import json
import re
import signal
import subprocess
import sys
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import torch
from torch import nn

import regionscope as rs
from regionscope.app.payload import read_block
from regionscope.training.models import Block


def build() -> nn.Sequential:
    """A network of one's own; its source is the file that the command is given."""
    body = [nn.Conv2d(1, 2, 3, padding=1), nn.ReLU(), Block(2, 3, 2, nn.ReLU, batch_norm=True)]
    return nn.Sequential(*body, nn.Flatten(), nn.Linear(3 * 16, 3)).eval()


IMPORTS = "from torch import nn\nfrom regionscope.training.models import Block\n\n"


def test_a_residual_network_of_ones_own_is_shown(tmp_path: Path) -> None:
    torch.manual_seed(0)
    network = build()
    points = torch.rand(4, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    (tmp_path / "mine.py").write_text(IMPORTS + inspect.getsource(build))
    rs.save_weights(network.state_dict(), tmp_path / "mine.safetensors")
    np.save(tmp_path / "points.npy", points.numpy())
    options = ["--model", "mine.py:build", "--weights", "mine.safetensors", "--points", "points.npy", "--no-browser"]
    command = [sys.executable, "-m", "regionscope", "view", *options]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            assert server.stdout.readline() == "mine.safetensors: Sequential, as you say\n"
            url = urlsplit(re.findall(r"http://\S+", server.stdout.readline())[0])
            cookie = answer(url.netloc, f"/?{url.query}")[0]
            (shown,) = json.loads(answer(url.netloc, "/api/runs", cookie)[1])["runs"]
            (plane,) = shown["planes"]
            asked = (
                f"/api/cells?run={shown['id']}&step=0&plane={plane.replace(':', '%3A')}&x=0&y=0&hx=0.1&hy=0.1&view=a"
            )
            header, _ = read_block(answer(url.netloc, asked, cookie)[1])
        finally:
            server.send_signal(signal.SIGINT)
            code = server.wait(timeout=60)
    assert code == 0
    whole = rs.Plane.through(*points[:3], margin=1.2)
    square = 0.1 * np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])
    assert header["exact"] and header["cells"] == len(
        rs.plane_cells(network, rs.Plane(whole.origin, whole.axes, square))
    )


def answer(host: str, path: str, cookie: str = "") -> tuple[str, bytes]:
    """The cookie that is given, and what is said."""
    with closing(HTTPConnection(host, timeout=60)) as connection:
        connection.request("GET", path, headers={"cookie": cookie} if cookie else {})
        response = connection.getresponse()
        said = response.read()
    assert response.status in (200, 303), said
    return (response.getheader("set-cookie") or "").split(";")[0], said
