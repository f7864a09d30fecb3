"""Files that are written whole or not at all, and read without running any code: JSON and safetensors."""

import json
import math
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

KEY = "regionscope"  # of the metadata of a safetensors file


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


def write_tensors(path: str | Path, tensors: Mapping[str, Tensor], about: Mapping[str, Any] | None = None) -> None:
    """Write tensors as safetensors, perhaps with something about them."""
    # copies, because the file format wants tensors that share no memory
    copies = {name: tensor.detach().cpu().clone().contiguous() for name, tensor in tensors.items()}
    metadata = None if about is None else {KEY: json.dumps(plain(about))}
    try:
        with whole_file(path) as beside:
            save_file(copies, beside, metadata=metadata)
    except SafetensorError as error:
        raise OSError(f"{path} could not be written: {error}") from error


def read_tensors(path: str | Path) -> tuple[dict[str, Tensor], str | None]:
    """The tensors of a safetensors file, and what is said about them, as it is written there."""
    with safe_open(path, "pt") as file:
        about = (file.metadata() or {}).get(KEY)
    return dict(load_file(path)), about


def read_json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text())
    except json.JSONDecodeError as error:
        raise ValueError(f"{path} is damaged: {error}") from None
    if not isinstance(found, dict):
        raise ValueError(f"{path} is damaged: it holds no table")
    return found


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write it whole, so that no reader sees half of it."""
    with whole_file(path) as beside:
        beside.write_text(json.dumps(plain(value), indent=1, allow_nan=False) + "\n")


def plain(value: Any) -> Any:
    """The same for JSON: numbers of numpy and torch as Python's, NaN and infinity as null, all else as text."""
    if isinstance(value, Mapping):
        return {str(name): plain(v) for name, v in value.items()}
    if isinstance(value, np.ndarray | Tensor):
        return plain(value.tolist())
    if isinstance(value, list | tuple | set | range):
        return [plain(v) for v in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, str | int | None) else str(value)
