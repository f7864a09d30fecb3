"""Tensors in files: what cannot be written or is not whole is named."""

from pathlib import Path

import pytest
import torch

from regionscope.files import check_tensors, write_tensors


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
