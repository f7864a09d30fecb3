"""Files and folders are written whole or left as they were, and what cannot be read is named."""

import errno
import os
from pathlib import Path

import pytest

from regionscope import disk
from regionscope.disk import (
    DamagedFile,
    check_writable,
    make_folder,
    read_whole,
    reading,
    sync_folder,
    whole_folder,
    write_whole,
)


def test_what_is_no_file_is_not_written_to(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for name in ("pipe", "folder"):
        with pytest.raises(FileExistsError, match=f"{name} is no regular file: it is not written to"):
            write_whole(tmp_path / name, b"new")
    assert sorted(os.listdir(tmp_path)) == ["folder", "pipe"]


def test_a_folder_that_cannot_take_its_place_leaves_the_one_that_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, rename = tmp_path / "step", os.rename
    with whole_folder(path) as folder:
        (folder / "old").touch()

    def refused(source: Path, target: Path) -> None:
        if target == path and (source / "new").exists():
            raise OSError(errno.EIO, "no")
        rename(source, target)

    monkeypatch.setattr(os, "rename", refused)
    with pytest.raises(OSError, match="no"), whole_folder(path) as folder:
        (folder / "new").touch()
    assert os.listdir(tmp_path) == ["step"] and os.listdir(path) == ["old"]


def test_a_file_in_the_place_of_a_folder_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(FileExistsError, match="file"):
        make_folder(tmp_path / "file" / "below")


def test_a_folder_that_another_process_makes_meanwhile_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mkdir = os.mkdir

    def late(path: Path) -> None:
        mkdir(path)
        mkdir(path)

    monkeypatch.setattr(os, "mkdir", late)
    make_folder(tmp_path / "one" / "two")
    assert (tmp_path / "one" / "two").is_dir()


def test_only_file_systems_that_cannot_sync_folders_are_left_at_that(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(number: int) -> None:
        def sync(path: Path) -> None:
            raise OSError(number, "no")

        monkeypatch.setattr(disk, "_sync", sync)
        sync_folder(Path())

    for number in disk.CANNOT_SYNC:
        fails(number)
    with pytest.raises(OSError, match="no"):
        fails(errno.EIO)


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.truncate(3 * 10**9)  # takes no room on the disk
    with pytest.raises(DamagedFile, match="large is too large: it has 3 GB, and 1 GB are the most"):
        read_whole(path, most=10**9)


def test_an_error_of_a_reader_that_names_no_file_is_told_with_it() -> None:
    with pytest.raises(DamagedFile, match=r"^cells is damaged: bad header$"), reading("cells"):
        raise OSError("bad header")
    with pytest.raises(FileNotFoundError, match="elsewhere"), reading("cells"):
        open("/elsewhere")  # noqa: SIM115


def test_an_error_of_a_file_has_the_name_that_was_given(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as told:
        write_whole(tmp_path / "no" / "net.json", b"new")
    assert str(told.value) == f"[Errno 2] No such file or directory: '{tmp_path}/no/net.json'"


def test_whether_a_folder_takes_files_is_seen_by_a_trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_writable(tmp_path / "not" / "made")
    assert not list(tmp_path.iterdir())

    def refused(*_: object) -> int:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), "a name that nobody knows")

    monkeypatch.setattr(os, "open", refused)
    with pytest.raises(PermissionError, match=rf"in the folder {tmp_path} \(Read-only file system\)$"):
        check_writable(tmp_path / "not" / "made")


def test_a_file_in_the_place_of_a_folder_takes_no_files(tmp_path: Path) -> None:
    (tmp_path / "mine.py").touch()
    with pytest.raises(NotADirectoryError, match=r"mine\.py is a file, not a folder"):
        check_writable(tmp_path / "mine.py" / "report")
