"""The page that is committed is what its sources make."""

import hashlib
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from regionscope.app.server import STATIC

WEB = Path(__file__).parents[2] / "web"
STAMP = STATIC / "sources.sha256"


def stamped() -> dict[Path, str]:
    """Each file that the build read or wrote, and its hash then."""
    lines = (line.split(maxsplit=1) for line in STAMP.read_text().splitlines())
    return {(WEB / name.lstrip("*")).resolve(): code for code, name in lines}


@pytest.mark.skipif(not WEB.exists(), reason="the explorer's sources are not here")
def test_the_page_is_built_from_the_sources_that_are_here() -> None:
    known = stamped()
    built = {file for file in STATIC.rglob("*") if file.is_file()} - {STAMP}
    sources = {file for part in ("*.html", "*.json", "*.ts", "src/*") for file in WEB.glob(part)}
    assert known.keys() == {file.resolve() for file in built | sources}, "files came or went: run `make web`"
    changed = [file.name for file, code in known.items() if hashlib.sha256(file.read_bytes()).hexdigest() != code]
    assert not changed, f"{', '.join(changed)} changed since the page was built: run `make web`"


def test_a_new_version_of_the_page_is_not_hidden_by_an_old_one(client: TestClient) -> None:
    for path in ("/", "/assets/index-1.js"):
        assert client.get(path).headers["cache-control"] == "no-store"
