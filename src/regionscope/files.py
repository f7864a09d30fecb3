"""Files that are written whole or not at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4


@contextmanager
def whole_file(path: str | Path) -> Iterator[Path]:
    """A path beside the given one to write to: renamed to it at the end, removed after any fault.

    No reader sees half a file, and what was there before stays until the new one is complete.
    """
    path = Path(path)
    beside = path.with_name(f".{path.name}-{uuid4().hex}")
    try:
        yield beside
        os.replace(beside, path)
    except BaseException:
        with suppress(OSError):
            beside.unlink()
        raise
