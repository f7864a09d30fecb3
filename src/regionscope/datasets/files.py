"""Files of data sets: found under a root or downloaded, and believed only if the hash of their contents is right."""

import gzip
import logging
import os
import tarfile
import zlib
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path, PurePosixPath

import pooch

from regionscope.disk import DamagedFile, make_folder, open_file, reading, write_whole

_log = logging.getLogger(__name__)
LARGEST = 1 << 28  # bytes, of a file of a data set


class MissingData(FileNotFoundError):
    """A file of a data set is not there and cannot be downloaded."""


class DamagedData(DamagedFile):
    """A file of a data set does not hold what it should."""


@dataclass(frozen=True)
class DataFile:
    """A file of a data set.

    `path` is where it lies under the root, as torchvision lays it out; there it may also be compressed, with `.gz` at
    the end. `sha256` is the hash of its contents, uncompressed. `urls` are the mirrors of one download with the hash
    `download_hash`: the file, or the file as `.gz`, or a `.tar.gz` that holds it under its path.
    """

    path: str
    sha256: str
    urls: tuple[str, ...] = ()
    download_hash: str = ""


def data_root(root: str | Path | None = None) -> Path:
    """The folder of the data sets: `root`, or REGIONSCOPE_DATA, or a cache folder of the user."""
    return Path(root or os.environ.get("REGIONSCOPE_DATA") or pooch.os_cache("regionscope")).expanduser()


def contents(file: DataFile, root: Path) -> bytes:
    """What the file holds, uncompressed and checked; downloaded if it is not there."""
    for path in (root / file.path, root / f"{file.path}.gz"):
        if path.is_file():
            _log.info("reading %s", path)
            return _checked_bytes(_unpacked(path), file, path)
    path = _downloaded(file, root)
    if not path.name.endswith(".tar.gz"):
        return _checked_bytes(_unpacked(path), file, path)
    data = _checked_bytes(_member(path, file.path), file, path)
    make_folder((root / file.path).parent)
    write_whole(root / file.path, data)
    return data


def _unpacked(path: Path) -> bytes:
    """What a file holds, uncompressed: no more than any file of a data set has, whatever it would unpack to."""
    try:
        with open_file(path) as file:
            return (gzip.GzipFile(fileobj=file) if path.suffix == ".gz" else file).read(LARGEST)
    except (EOFError, OSError, zlib.error) as error:
        raise DamagedData(f"{path} is damaged: {error}; delete it and load it again") from error


def _member(archive: Path, name: str) -> bytes:
    """One file of an archive, by its name; nothing is extracted to a place that the archive chooses."""
    with reading(archive, "is damaged; delete it and load it again"), tarfile.open(archive) as tar:
        file = tar.extractfile(name)
        if file is None:
            raise DamagedData(f"{archive} holds no file {name}")
        return file.read(LARGEST)


def _checked_bytes(data: bytes, file: DataFile, path: Path) -> bytes:
    """What was read from a path, if it is what the file holds; otherwise an error."""
    found = sha256(data).hexdigest()
    if found != file.sha256:
        raise DamagedData(
            f"{path} is damaged: {len(data):,} bytes with SHA-256 {found[:12]}…, expected {file.sha256[:12]}…;"
            " delete it and load it again"
        )
    return data


def _downloaded(file: DataFile, root: Path) -> Path:
    """The download of a file, from the first mirror that gives it."""
    failures = []
    for url in file.urls:
        name = PurePosixPath(url).name
        _log.info("downloading %s", url)
        folder = root if name.endswith(".tar.gz") else (root / file.path).parent
        pooch.get_logger().setLevel("WARNING")
        try:
            loader = pooch.HTTPDownloader(timeout=20)
            return Path(pooch.retrieve(url, file.download_hash, fname=name, path=folder, downloader=loader))
        except (OSError, ValueError) as error:  # no network or refused, another hash
            failures.append(f"{url}: {type(error).__name__}")
    raise MissingData(
        f"{root / file.path} is not there and cannot be downloaded ({'; '.join(failures) or 'there is no mirror'});"
        " `make data` brings it through package clients, and REGIONSCOPE_DATA names a folder that has it"
    )
