"""Whatever a file holds, reading it gives what it says or one line that names it: quickly, in little memory."""

import gzip
import hashlib
import io
import json
import os
import random
import signal
import struct
import warnings
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hostile import (
    bytes_changed,
    hostile_json,
    hostile_npz,
    hostile_safetensors,
    hostile_state_dict,
    instead_of_a_file,
)
from PIL import Image
from torch import nn

import regionscope as rs
from regionscope.datasets.files import DataFile, contents
from regionscope.datasets.sets import dataset
from regionscope.files import read_array
from regionscope.integrations.loggers import CSV
from regionscope.runs.record import Record
from regionscope.runs.run import run_state
from regionscope.training.checkpoints import Architecture, load_model, save_weights
from regionscope.training.loop import run_config

SECONDS, GB = 10, 2**20  # of a file; kB
RELU = Architecture("mlp", "relu")


@dataclass(frozen=True)
class Format:
    """A file, how it is harmed, and what a user does with it; what comes of that is compared with what it says."""

    path: Path
    honest: bytes
    harm: Callable[[bytes, random.Random], bytes]
    use: Callable[[], Any]
    says: Callable[[bytes], Any] | None = None


def mlp() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))


def formats(folder: Path) -> dict[str, Format]:
    """All formats, with an honest file of each."""
    model, x = mlp(), torch.randn(6, 4, generator=torch.Generator().manual_seed(0))
    run = rs.Run.create(
        folder / "run", {"measures": {"total_variation": {}}, "promised": [0, 10], "training": {"seed": 3}}
    )
    plane = rs.plane_cells(model, rs.Plane.through(*x[:3]))
    found = {"train": {"total_variation": {"mean": 1.0, "stderr": 0.1, "per_layer": [0.5, 0.5]}}}
    for step in (0, 10):
        run.record(Record(step, {"loss": 1.0}, found), weights=model.state_dict(), planes={"three": plane})
    run.save_state(10, {"weight": torch.arange(6.0)}, {"step": 10})
    run.set_status(state="finished", step=10, steps=10, loss=0.5, monitoring="cheap")
    run.close()
    plane.save(folder / "plane.npz")
    rs.line_cells(model, x[0], x[1]).save(folder / "line.npz")
    save_weights(model.state_dict(), folder / "net.safetensors", Architecture("mlp", "relu"))
    torch.save(model.state_dict(), folder / "net.pt")
    np.save(folder / "points.npy", x.numpy())
    (folder / "rows.csv").write_text("step,loss\n0,1.5\n10,0.5\n")
    (folder / "images" / "red").mkdir(parents=True)
    Image.new("RGB", (9, 8), (255, 0, 0)).save(folder / "images" / "red" / "a.png")
    data = DataFile("raw", hashlib.sha256(b"data" * 100).hexdigest())
    (folder / "raw.gz").write_bytes(gzip.compress(b"data" * 100))
    at, told, bare, images = folder / "run", folder / "net.safetensors", folder / "net.pt", folder / "images"
    last = at / "steps" / "000000010"
    uses: dict[str, tuple[Path, Any, Callable[[], Any], Any]] = {
        "run.json": (at / "run.json", hostile_json, lambda: used_run(at), lambda data: json.loads(data)["config"]),
        "status.json": (at / "status.json", hostile_json, lambda: used_status(at), json.loads),
        "measures.json": (last / "measures.json", hostile_json, lambda: used_record(at), full_record),
        "info.json": (at / "state/000000010/info.json", hostile_json, lambda: used_state(at, 2), json.loads),
        "state": (at / "state/000000010/tensors.safetensors", hostile_safetensors, lambda: used_state(at, 1), None),
        "safetensors": (told, hostile_safetensors, lambda: weights_of(load_model(told)), stored_weights),
        "state dict": (bare, hostile_state_dict, lambda: weights_of(load_model(bare, RELU)), None),
        "state dict for a module": (bare, hostile_state_dict, lambda: weights_of(load_model(bare, mlp)), None),
        "plane": (folder / "plane.npz", hostile_npz, lambda: used_plane(folder / "plane.npz"), None),
        "line": (folder / "line.npz", hostile_npz, lambda: used_line(folder / "line.npz"), None),
        "points": (folder / "points.npy", bytes_changed, lambda: read_array(folder / "points.npy").tobytes(), None),
        "rows": (folder / "rows.csv", bytes_changed, lambda: CSV(folder / "rows.csv").rows and None, None),
        "image": (images / "red/a.png", bytes_changed, lambda: dataset(str(images), side=4).shape, lambda _: (3, 4, 4)),
        "data": (folder / "raw.gz", bytes_changed, lambda: contents(data, folder), lambda told: b"data" * 100),
    }  # fmt: skip
    return {name: Format(path, path.read_bytes(), harm, use, says) for name, (path, harm, use, says) in uses.items()}


def used_run(path: Path) -> Any:
    run = rs.Run.open(path)
    repr(run), run.rows(), run.label("train/total_variation"), run_state(run), run.missing
    if "training" in run.config:
        run_config(run)
    return run.config


def used_record(path: Path) -> Any:
    return rs.Run.open(path).read(10).to_dict()


def used_status(path: Path) -> Any:
    run = rs.Run.open(path)
    run_state(run), run.missing
    return run.status


def used_state(path: Path, part: int) -> Any:
    """A state that is damaged is not taken, and named; then there is none."""
    state = rs.Run.open(path).latest_state()
    return None if state is None else state[part] if part == 2 else {n: t.tolist() for n, t in state[1].items()}


def weights_of(model: nn.Module) -> dict[str, bytes]:
    return {name: tensor.numpy().tobytes() for name, tensor in model.state_dict().items()}


def used_plane(path: Path) -> None:
    cells = rs.PlaneCells.load(path)
    assert np.isfinite(cells.areas).all() and len(cells.polygons) == len(cells)
    repr(cells), cells.patterns, cells.adjacency(), cells.boundary_length(), cells.centres


def used_line(path: Path) -> None:
    cells = rs.LineCells.load(path)
    repr(cells), cells.patterns, cells.lengths, cells.centres, cells.corners


def full_record(data: bytes) -> Any:
    return Record(**json.loads(data)).to_dict()


def stored_weights(data: bytes) -> dict[str, bytes]:
    """By a reader of its own."""
    (length,) = struct.unpack("<Q", data[:8])
    head = json.loads(data[8 : 8 + length])
    head.pop("__metadata__", None)
    return {n: data[8 + length + e["data_offsets"][0] : 8 + length + e["data_offsets"][1]] for n, e in head.items()}


@contextmanager
def limits() -> Iterator[None]:
    """An error if it takes too long, or too much memory."""

    def late(*_: object) -> None:
        raise AssertionError("it takes too long")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(SECONDS)
    Path("/proc/self/clear_refs").write_text("5")  # the largest size so far is forgotten
    start = size("VmHWM")
    try:
        yield
        assert size("VmHWM") - start < GB
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def size(name: str) -> int:
    return int(Path("/proc/self/status").read_text().split(f"{name}:")[1].split()[0])


def check(name: str, given: Format, seed: int) -> str:
    """What comes of a harmed file: "read", "refused", or what is wrong with how it is refused."""
    chance = random.Random(f"{name} {seed}")
    special = seed % 50 == 0
    if special:
        instead_of_a_file(given.path, chance)
    else:
        given.path.write_bytes(given.harm(given.honest, chance))
    try:
        with limits(), warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            try:
                found = given.use()
            except (ValueError, OSError) as error:
                told = str(error)
                return "refused" if is_line_about(told, given.path) else f"{type(error).__name__}: {told}"
        assert all(issubclass(warning.category, UserWarning) for warning in said)
        if found is None or special or given.says is None:
            return "read"
        assert found == given.says(given.path.read_bytes())
        return "read"
    finally:
        if given.path.is_dir() and not given.path.is_symlink():
            given.path.rmdir()
        given.path.unlink(missing_ok=True)
        given.path.write_bytes(given.honest)


def is_line_about(text: str, path: Path) -> bool:
    return len(text.splitlines()) == 1 and (path.name in text or path.parent.name in text)


def outcomes(folder: Path, seeds: range) -> dict[str, int]:
    """How many were read, and how many refused; all else is an error, with the seeds that show it."""
    count, failures = {"read": 0, "refused": 0}, []
    for name, given in formats(folder).items():
        for seed in seeds:
            try:
                outcome = check(name, given, seed)
            except Exception as error:
                outcome = f"{type(error).__name__}: {error}"
            if outcome in count:
                count[outcome] += 1
            else:
                failures.append(f"{name}, seed {seed}: {outcome[:300]}")
    assert not failures, "\n".join(failures)
    assert not (folder / "executed").exists()
    return count


def test_two_thousand_hostile_files_are_read_or_named_in_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = outcomes(tmp_path, range(143))
    assert sum(found.values()) >= 2000 and min(found.values()) > 300


@pytest.mark.exhaustive
def test_fifty_thousand_hostile_files_are_read_or_named_in_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert sum(outcomes(tmp_path, range(1000, 4572)).values()) >= 50_000


def test_honest_files_are_read(tmp_path: Path) -> None:
    for given in formats(tmp_path).values():
        found = given.use()
        assert given.says is None or found == given.says(given.honest)


def test_archives_that_unpack_to_more_than_they_are_stay_packed(tmp_path: Path) -> None:
    file = io.BytesIO()
    torch.save({"0.weight": torch.zeros(10_000_000)}, file)
    with zipfile.ZipFile(file) as honest, zipfile.ZipFile(tmp_path / "bomb.pt", "w", zipfile.ZIP_DEFLATED) as bomb:
        for entry in honest.infolist():
            bomb.writestr(entry.filename, honest.read(entry))
    with pytest.raises(ValueError, match=r"bomb\.pt cannot be read as weights: it would unpack to 40,"):
        load_model(tmp_path / "bomb.pt", mlp)


def test_a_flipped_bit_in_weights_is_seen(tmp_path: Path) -> None:
    save_weights(mlp().state_dict(), tmp_path / "net.safetensors")
    data = bytearray((tmp_path / "net.safetensors").read_bytes())
    data[-3] ^= 1
    (tmp_path / "net.safetensors").write_bytes(data)
    with pytest.raises(ValueError, match=r"net\.safetensors cannot be read as weights: is damaged: its checksum is"):
        load_model(tmp_path / "net.safetensors", mlp)


def test_names_that_are_not_text_are_read_and_written(tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xfe.safetensors"))
    save_weights(mlp().state_dict(), path, Architecture("mlp", "relu"))
    assert weights_of(load_model(path)) == weights_of(mlp())
    torch.save(mlp().state_dict(), tmp_path / "a.pt")
    odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.pt"))
    (tmp_path / "a.pt").rename(odd)
    assert weights_of(load_model(odd, mlp)) == weights_of(mlp())
