"""Files that no honest writer made: every format that the library reads, damaged, lying or malicious, by a seed."""

import io
import json
import os
import pickle
import random
import struct
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

ODD: list[Any] = [
    None, True, -1, 0, 7, 1.5, 1e308, 10**18, "", "relu", "../../x", "\x00", "ü" * 300, [], [1], ["a"], {}, {"a": 1},
    [[[]]], {"mean": "high"}, {"mean": None, "per_layer": [None]}, {"shape": [1, 2]}, "NaN", [1e300, None], "\ud800",
]  # fmt: skip


def bytes_changed(data: bytes, chance: random.Random) -> bytes:
    """A few bytes changed, cut off, doubled, put in or zeroed."""
    found = bytearray(data)
    for _ in range(chance.choice([1, 1, 1, 2, 5, 20])):
        place = chance.randrange(len(found) + 1) if found else 0
        length = chance.choice([1, 1, 2, 8, 64, 1000])
        kind = chance.randrange(5)
        if kind == 0:
            found[place : place + 1] = bytes([chance.randrange(256)])
        elif kind == 1:
            del found[place:]
        elif kind == 2:
            found[place:place] = found[place : place + length]
        elif kind == 3:
            found[place:place] = chance.randbytes(length)
        else:
            found[place : place + length] = bytes(len(found[place : place + length]))
    return bytes(found)


def value_changed(value: Any, chance: random.Random) -> Any:
    """The same tree of tables and lists with one thing in it replaced, renamed, removed or added."""
    if chance.random() < 0.25 or not isinstance(value, dict | list) or not value:
        return chance.choice(ODD)
    if isinstance(value, list):
        place = chance.randrange(len(value))
        return [value_changed(v, chance) if k == place else v for k, v in enumerate(value)]
    name = chance.choice(list(value))
    kind = chance.randrange(6)
    if kind == 0:
        return {n: v for n, v in value.items() if n != name}
    if kind == 1:
        return {
            chance.choice(["", "x", "__class__", "self", "step\n"]) if n == name else n: v for n, v in value.items()
        }
    if kind == 2:
        return {**value, chance.choice(["step", "mood", "version", "state"]): chance.choice(ODD)}
    return {n: value_changed(v, chance) if n == name else v for n, v in value.items()}


def hostile_json(data: bytes, chance: random.Random) -> bytes:
    """JSON of the wrong things, in the wrong encoding, too deep, with numbers of too many digits."""
    kind = chance.randrange(8)
    if kind == 0:
        return bytes_changed(data, chance)
    if kind == 1:
        depth = chance.choice([70, 500, 5000, 100_000])
        return chance.choice([b'{"step":' * depth, b'{"a":' + b"[" * depth + b"]" * depth + b"}"])
    if kind == 2:
        return data.decode().encode(chance.choice(["utf-16", "utf-32"]))
    if kind == 3:
        number = chance.choice([b"9" * 5000, b"9" * 400, b"-" + b"1" * 30, b"1e999", b"NaN", b"-Infinity"])
        return data.replace(b": ", b": " + number + b', "x": ', 1)
    if kind == 4:
        return chance.choice([b"", b"null", b"[]", b"3", b'"text"', b"{", b"\xff\xfe", b"{}"])
    return json.dumps(value_changed(json.loads(data), chance)).encode()


def hostile_safetensors(data: bytes, chance: random.Random) -> bytes:
    """A head that lies about what follows, is no table, or says odd things of the network."""
    if chance.random() < 0.4:
        return bytes_changed(data, chance)
    length = struct.unpack("<Q", data[:8])[0]
    head, rest = json.loads(data[8 : 8 + length]), data[8 + length :]
    kind = chance.randrange(6)
    if kind == 0:
        head["__metadata__"] = chance.choice(ODD)
    elif kind == 1:
        odd = value_changed({"model": "mlp", "activation": "relu", "shape": [4]}, chance)
        head["__metadata__"] = {"regionscope": chance.choice([json.dumps(odd), "[" * 5000, "{", "null", "NaN"])}
    elif kind == 2:
        name = chance.choice([n for n in head if n != "__metadata__"])
        head[name] = value_changed(head[name], chance)
    elif kind == 3:
        name = chance.choice([n for n in head if n != "__metadata__"])
        head[name]["shape"] = chance.choice([[10**9, 10**9], [0, 10**12], [-1], [2] * 80, [10**18], ["a"]])
    elif kind == 4:
        head[chance.choice(["", "x" * 1000, "١.weight", "0..", "0.weight\x00"])] = head.pop(list(head)[-1])
    else:
        return struct.pack("<Q", chance.choice([0, 1, 2**63, 2**64 - 1, 10**9])) + data[8:]
    text = json.dumps(head).encode()
    return struct.pack("<Q", len(text)) + text + rest


def nested() -> torch.Tensor:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that they may change
        return torch.nested.nested_tensor([torch.zeros(2), torch.zeros(3)])


class Runs:
    """What a pickle may try: to run something."""

    def __reduce__(self) -> Any:
        return os.system, ("touch executed",)


def hostile_state_dict(data: bytes, chance: random.Random) -> bytes:
    """A .pt file: changed, code instead of weights, other things, tensors that claim what is not there."""
    kind = chance.randrange(9)
    if kind <= 1:
        return bytes_changed(data, chance)
    if kind == 2:
        return pickle.dumps(chance.choice([Runs(), {"0.weight": Runs()}, {"state_dict": Runs()}, [Runs()] * 3]))
    if kind == 3:
        return pickle.dumps(chance.choice(ODD[:-1]))
    state: Any = torch.load(io.BytesIO(data), weights_only=True)
    name = chance.choice(list(state))
    if kind == 4:
        state[name] = chance.choice(
            [torch.zeros(1).expand(10**5, 10**5), torch.zeros(0, 10**12), torch.zeros(1).expand(2**40)]
        )
    elif kind == 5:
        makers: list[Callable[[], Any]] = [
            lambda: torch.eye(3).to_sparse(),
            lambda: torch.zeros(3, device="meta"),
            *[
                lambda kind=kind: torch.zeros(8, 4, dtype=kind)
                for kind in (torch.complex64, torch.float8_e4m3fn, torch.bool)
            ],
            lambda: torch.full((8, 4), float("nan")),
            nested,
        ]
        state[name] = chance.choice(makers)()
    elif kind == 6:
        state[chance.choice([1, None, "", "x" * 1000, "١.weight", "0." * 500, (1, 2), b"x"])] = state.pop(name)
    elif kind == 7:
        state[name] = torch.zeros(chance.choice([(100_000, 0), (0,), (3, 3, 3), (), (5, 4), (8, 8)]))
    else:
        state = chance.choice(
            [{"model": state, "state_dict": state}, {"state_dict": {"a": state}}, list(state.values()), {}]
        )
    file = io.BytesIO()
    torch.save(state, file, _use_new_zipfile_serialization=chance.random() < 0.8)
    return bytes_changed(file.getvalue(), chance) if chance.random() < 0.1 else file.getvalue()


def hostile_npz(data: bytes, chance: random.Random) -> bytes:
    """Cells whose arrays are changed, missing, of other kinds and shapes, or claim what is not there."""
    if chance.random() < 0.3:
        return bytes_changed(data, chance)
    with np.load(io.BytesIO(data)) as stored:
        arrays = {name: stored[name] for name in stored.files}
    name = chance.choice(list(arrays))
    kind, raw = chance.randrange(8), {}
    if name == "about" and kind < 6:
        text = hostile_json(str(arrays["about"]).encode(), chance).decode(errors="replace").replace("\x00", "")
        arrays["about"] = np.array(text)
    elif kind == 0:
        del arrays[name]
    elif kind == 1:
        arrays[name] = arrays[name].astype(
            chance.choice([np.float32, np.complex64, np.int8, "U5", np.float64, np.uint64])
        )
    elif kind == 2:
        arrays[name] = arrays[name].ravel()[: chance.randrange(arrays[name].size + 1)]
    elif kind == 3:
        flat = arrays[name].copy().ravel()
        if flat.size and flat.dtype.kind != "U":
            flat[chance.randrange(flat.size)] = (
                chance.choice([0, 1, 127]) if flat.dtype.kind == "u" else chance.choice([-1, 99, 127])
            )
        arrays[name] = flat.reshape(arrays[name].shape)
    elif kind == 4:
        arrays[name] = arrays[name][None]
    elif kind == 5 and arrays[name].dtype.kind == "f":
        arrays[name] = np.full_like(arrays[name], chance.choice([np.nan, np.inf, 1e300, 0.0]))
    else:  # a head that claims other sizes
        head = str(
            {"descr": chance.choice(["<f8", "|O", "<U9999999", "<V8"]), "fortran_order": False, "shape": (10**12,)}
        )
        raw[name] = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head) + 1) + head.encode() + b"\n" + bytes(64)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for part, array in arrays.items():
            buffer = io.BytesIO()
            np.lib.format.write_array(buffer, np.asarray(array), allow_pickle=False)
            archive.writestr(f"{part}.npy", raw.get(part, buffer.getvalue()))
    return file.getvalue()


def instead_of_a_file(path: Path, chance: random.Random) -> None:
    """A pipe, a device, a folder, nothing, or a link to itself where a file should be."""
    path.unlink(missing_ok=True)
    kind = chance.randrange(5)
    if kind == 0:
        os.mkfifo(path)
    elif kind == 1:
        path.symlink_to(chance.choice(["/dev/zero", "/dev/null", "/proc/self/mem"]))
    elif kind == 2:
        path.mkdir()
    elif kind == 3:
        path.symlink_to(path)
    else:
        with path.open("wb") as file:
            file.truncate(chance.choice([0, 1, 1 << 40]))  # a hole of a terabyte, which takes no room
