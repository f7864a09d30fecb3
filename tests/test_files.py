"""Tensors in files: they keep their order, and what cannot be written or is not whole is named."""

import zlib
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from regionscope.files import check_tensors, read_tensors, write_tensors


def test_tensors_that_the_format_has_no_type_for_are_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"net\.safetensors cannot be written as safetensors: torch\.complex128"):
        write_tensors(tmp_path / "net.safetensors", {"a": torch.zeros(2, dtype=torch.complex128)})
    assert not list(tmp_path.iterdir())


def test_a_head_that_is_longer_than_the_file_is_told(tmp_path: Path) -> None:
    path = tmp_path / "net.safetensors"
    write_tensors(path, {"a": torch.zeros(2)})
    check_tensors(path)
    path.write_bytes((1000).to_bytes(8, "little") + b"{}")
    with pytest.raises(ValueError, match=r"net\.safetensors is damaged: it has 10 bytes, and its head would have 1000"):
        check_tensors(path)


def test_tensors_are_read_in_the_order_in_which_they_were_written(tmp_path: Path) -> None:
    names = ["out.weight", "10.weight", "2.weight", "steps", "2.bias", "\u00e4"]
    tensors = {
        name: torch.full((k + 1,), k, dtype=torch.int64 if name == "steps" else None) for k, name in enumerate(names)
    }
    write_tensors(tmp_path / "net.safetensors", tensors, {"model": "mlp"})
    check_tensors(tmp_path / "net.safetensors")
    for _ in range(5):
        found, about = read_tensors(tmp_path / "net.safetensors")
        assert list(found) == names and about == '{"model": "mlp"}'
        assert all(torch.equal(found[name], tensors[name]) for name in names)


def test_equal_tensors_make_equal_files(tmp_path: Path) -> None:
    written = set()
    for k in range(8):
        write_tensors(tmp_path / f"{k}.safetensors", {"b": torch.ones(3), "a": torch.ones(2, 2)}, {"model": "mlp"})
        written.add((tmp_path / f"{k}.safetensors").read_bytes())
    assert len(written) == 1


def test_tensors_of_files_that_have_no_order_come_by_name_as_one_counts(tmp_path: Path) -> None:
    tensors = {f"{k}.{kind}": torch.zeros(1) for k in (10, 2, 1) for kind in ("weight", "bias")}
    for metadata in (
        None,
        {"crc32": f"{zlib.crc32(bytes(24)):08x}", "regionscope": "{}"},
    ):  # of others, of older versions
        save_file(tensors, tmp_path / "net.safetensors", metadata=metadata)
        found, about = read_tensors(tmp_path / "net.safetensors")
        assert list(found) == [f"{k}.{kind}" for k in (1, 2, 10) for kind in ("bias", "weight")]
        assert about == (metadata and "{}")


def test_a_tensor_cannot_have_the_name_of_the_metadata(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no tensor can be named __metadata__"):
        write_tensors(tmp_path / "net.safetensors", {"__metadata__": torch.zeros(1)})
