"""What files hold, written whole and read without running any code: JSON, safetensors, arrays of numpy."""

import json
import math
import os
import re
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from regionscope.disk import DamagedFile, open_file, read_whole, reading, whole_file, write_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KEY = "regionscope"  # of the metadata of a safetensors file
CHECKSUM = "crc32"  # of what follows the head of a safetensors file, in hexadecimal digits
ORDER, KEPT = "order", "as written"  # says that the head of a safetensors file names tensors in their own order
METADATA = "__metadata__"  # under which a head has what is no tensor
TEXT = 1 << 26  # bytes; no text that is read here is longer
DEEPEST = 64  # tables in tables
DIGITS = 19  # of whole numbers
NUMBERS = "biuf"  # kinds of numpy's numbers: true or false, whole with sign and without, floating

# names


def check_name(kind: str, name: object) -> None:
    """An error if it cannot be the name of a file, and of a column, in a run.

    >>> check_name("plane", "../x")
    Traceback (most recent call last):
    ...
    ValueError: a plane cannot be named '../x': names are up to 100 letters, digits and signs, but for / and \\
    """
    if not isinstance(name, str):
        raise TypeError(f"a {kind} is named by text, got {name!r}")
    encodable = name.isprintable() and len(name.encode(errors="replace")) <= 200
    if not 0 < len(name) <= 100 or not encodable or name.strip(". ") == "" or set(name) & set("/\\"):
        raise ValueError(
            f"a {kind} cannot be named {name[:120]!r}: names are up to 100 letters, digits and signs, but for / and \\"
        )


# safetensors


def write_tensors(path: str | Path, tensors: Mapping[str, Tensor], about: Mapping[str, Any] | None = None) -> None:
    """Write tensors as safetensors with a checksum, perhaps with something about them."""
    # copies, because the file format wants tensors that share no memory
    copies = {name: tensor.detach().cpu().clone().contiguous() for name, tensor in tensors.items()}
    if METADATA in copies:
        raise ValueError(f"{path} cannot be written as safetensors: no tensor can be named {METADATA}")
    try:
        data = save(copies)
    except (SafetensorError, KeyError) as error:  # of types that the format does not have, the type
        raise ValueError(f"{path} cannot be written as safetensors: {error}") from error
    start = _start_of_tensors(data)
    metadata = {CHECKSUM: _checksum(data, start), ORDER: KEPT} | (
        {} if about is None else {KEY: json.dumps(plain(about))}
    )
    write_whole(path, _head(json.loads(data[8:start]), list(copies), metadata) + data[start:])


def _head(entries: Mapping[str, Any], names: list[str], metadata: Mapping[str, str]) -> bytes:
    """The head of a safetensors file with its tensors in this order: the library has one of its own, or none."""
    text = json.dumps({METADATA: metadata, **{name: entries[name] for name in names}}, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # tensors begin at multiples of 8 bytes
    return len(text).to_bytes(8, "little") + text


def read_tensors(path: str | Path) -> tuple[dict[str, Tensor], str | None]:
    """The tensors of a safetensors file, and what is said about them, as it is written there.

    Those that `write_tensors` wrote are in the order in which it was given them, those of others by name, 2 before 10.
    """
    data = read_whole(path)
    with reading(path):
        start = _start_of_tensors(data)
        head = json_table(data[8:start])
        metadata = head.pop(METADATA, None) or {}
        if not isinstance(metadata, dict) or not all(isinstance(said, str) for said in metadata.values()):
            raise DamagedFile(f"{path} is damaged: its metadata is no table of texts")
        told = metadata.get(CHECKSUM)
        if told is not None and told != _checksum(data, start):
            raise DamagedFile(f"{path} is damaged: its checksum is {_checksum(data, start)} instead of {told[:8]}")
        tensors = load(data)  # in no order
        names = list(head) if metadata.get(ORDER) == KEPT else sorted(head, key=_with_long_numbers)
        return {name: tensors[name] for name in names}, metadata.get(KEY)


def _with_long_numbers(name: str) -> str:
    """A name by which those with numbers are sorted as one counts."""
    return re.sub("[0-9]+", lambda digits: digits[0].zfill(DIGITS), name)


def check_tensors(path: str | Path) -> None:
    """An error if a safetensors file is not as long as its head says; what follows the head is not read."""
    with open_file(path) as file, reading(path):
        size = os.fstat(file.fileno()).st_size
        length = int.from_bytes(file.read(8), "little")
        if length > min(size, TEXT):
            raise ValueError(f"it has {size} bytes, and its head would have {length}")
        entries = json_table(file.read(length))
        ends = [entry["data_offsets"][1] for name, entry in entries.items() if name != METADATA]
        if max(ends, default=0) + 8 + length != size:
            raise ValueError(f"it has {size} bytes instead of {max(ends, default=0) + 8 + length}")


def _start_of_tensors(data: bytes) -> int:
    """Where the head ends, whose length comes first."""
    start = 8 + int.from_bytes(data[:8], "little")
    if len(data) < 8 or start > len(data):
        raise ValueError(f"it has {len(data)} bytes, and its head would end at {start}")
    return start


def _checksum(data: bytes, start: int) -> str:
    return f"{zlib.crc32(memoryview(data)[start:]):08x}"


# arrays


def write_arrays(path: str | Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write an .npz file with numbers and text, whole or not at all."""
    with whole_file(path) as file:
        np.savez_compressed(file, allow_pickle=False, **arrays)


def read_arrays(path: str | Path) -> dict[str, NDArray[Any]]:
    """The arrays in an .npz file by name: numbers and text, of the sizes that the file has room for."""
    with open_file(path) as file, reading(path), zipfile.ZipFile(file) as archive:
        found = {}
        for entry in archive.infolist():
            with archive.open(entry) as part:
                found[entry.filename.removesuffix(".npy")] = _array(part, entry.file_size)  # type: ignore[arg-type]
                part.read(1)  # to the end, where the checksum is looked at
        return found


def read_array(path: str | Path) -> NDArray[Any]:
    """The array in an .npy file."""
    data_size = Path(path).stat().st_size
    with open_file(path) as file, reading(path, "cannot be read as an array of numbers"):
        return _array(file, data_size)


def _array(file: BinaryIO, size: int) -> NDArray[Any]:
    """An array in numpy's format, of a file of so many bytes, which is looked at before there is memory for it."""
    version = npy.read_magic(file)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"it has version {version} of the format .npy")
    read_head = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, by_columns, dtype = read_head(file)
    entries = math.prod(shape)
    if dtype.kind not in f"{NUMBERS}U" or min(shape, default=0) < 0:
        raise ValueError(f"it holds {dtype} of shape {shape}, not numbers")
    if entries * dtype.itemsize > size:
        raise ValueError(f"it says that it holds {dtype} of shape {shape}, and has {size} bytes")
    data = file.read(entries * dtype.itemsize)
    flat = np.frombuffer(bytearray(data), dtype, count=entries)
    return flat.reshape(shape[::-1]).T if by_columns else flat.reshape(shape)


# JSON


def read_json(path: str | Path) -> dict[str, Any]:
    """The table in a JSON file."""
    data = read_whole(path, most=TEXT)
    with reading(path):
        return json_table(data)


def json_table(text: str | bytes) -> dict[str, Any]:
    """A table in JSON; an error if it is none, or none that this library would write.

    >>> json_table('{"step": 1e999}')
    Traceback (most recent call last):
    ...
    ValueError: 1e999 is no finite number
    """
    found = json.loads(
        text if isinstance(text, str) else text.decode("utf-8"),
        parse_int=_whole_number, parse_float=_finite_number, parse_constant=_finite_number,
    )  # fmt: skip
    if not isinstance(found, dict):
        raise ValueError("it holds no table")
    _check_depth(found)
    return found


def _whole_number(text: str) -> int:
    if len(text) > DIGITS:
        raise ValueError(f"{text[:DIGITS]}… is a whole number of {len(text)} digits")
    return int(text)


def _finite_number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:DIGITS]} is no finite number")
    return value


def _check_depth(value: Any, depth: int = 0) -> None:
    """An error before any function that walks through it could run out of stack."""
    if depth > DEEPEST:
        raise ValueError(f"it has tables in tables, more than {DEEPEST} deep")
    for inside in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _check_depth(inside, depth + 1)


def write_json(path: str | Path, value: Mapping[str, Any]) -> None:
    """Write it whole, so that no reader sees half of it."""
    write_text(path, json.dumps(plain(value), indent=1, allow_nan=False) + "\n")


def write_text(path: str | Path, text: str) -> None:
    """Write text as UTF-8, in which names of files that are none show as what they are."""
    write_whole(path, text.encode("utf-8", errors="backslashreplace"))


def write_figure(figure: "Figure", path: str | Path, *, dpi: int) -> None:
    """Write a picture of the kind that the path ends in."""
    with whole_file(path) as file:
        figure.savefig(file, format=Path(path).suffix[1:], dpi=dpi)


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
