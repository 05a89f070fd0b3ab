from __future__ import annotations

import errno
import os
import signal
import stat
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from unittest.mock import Mock

import pytest

from wildtype import files
from wildtype.errors import OutputError
from wildtype.files import finite, write_json, write_tensors, write_text, writing, writing_folder


def test_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "x.txt"
    write_text(target, "old")
    with pytest.raises(RuntimeError), writing(target) as path:
        path.write_text("half")
        path.with_name(path.name + ".wal").write_text("of a library")
        raise RuntimeError
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["x.txt"]


def test_folder_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "run"
    with writing_folder(target) as folder:
        (folder / "a").write_text("1")
    with pytest.raises(RuntimeError), writing_folder(target) as folder:
        (folder / "b").write_text("2")
        raise RuntimeError
    assert [p.name for p in target.iterdir()] == ["a"]
    with writing_folder(target) as folder:
        (folder / "c").write_text("3")
    assert [p.name for p in target.iterdir()] == ["c"]
    assert os.listdir(tmp_path) == ["run"]


@pytest.mark.skipif(sys.platform != "linux", reason="two folders change places at once on Linux only")
def test_there_is_a_folder_at_every_instant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "run"
    for number in range(3):
        with writing_folder(target) as folder:
            (folder / "a").write_text(str(number))
        monkeypatch.setattr(os, "replace", Mock(side_effect=AssertionError))  # which needs a gap
    assert (target / "a").read_text() == "2"
    assert os.listdir(tmp_path) == ["run"]


def test_a_folder_is_replaced_where_two_cannot_change_places(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wildtype.files._exchange", Mock(return_value=False))
    target = tmp_path / "run"
    for number in range(2):
        with writing_folder(target) as folder:
            (folder / "a").write_text(str(number))
    assert (target / "a").read_text() == "1"
    assert os.listdir(tmp_path) == ["run"]


@pytest.mark.parametrize(("code", "reason"), [(errno.ENOSPC, "disk is full"), (errno.EROFS, "read-only")])
def test_disk_errors_are_one_sentence(tmp_path: Path, code: int, reason: str) -> None:
    with pytest.raises(OutputError, match=reason), writing(tmp_path / "x"):
        raise OSError(code, os.strerror(code))
    assert not os.listdir(tmp_path)


def test_full_device_is_reported(tmp_path: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    with (
        pytest.raises(OutputError, match="disk is full"),
        writing(tmp_path / "x"),
        open("/dev/full", "w") as handle,
    ):
        handle.write("x")
        handle.flush()


def test_file_in_the_way_of_a_folder(tmp_path: Path) -> None:
    write_text(tmp_path / "x", "file")
    with pytest.raises(OutputError, match="a part of the path is a file|a file of that name"):
        write_text(tmp_path / "x" / "y", "")


def test_json_has_no_nan(tmp_path: Path) -> None:
    write_json(tmp_path / "x.json", {"a": float("nan"), "b": [float("inf"), 1.5]})
    assert "NaN" not in (tmp_path / "x.json").read_text()
    assert finite({"a": float("nan")}) == {"a": None}


def test_a_full_disk_under_tensors_is_the_systems_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch
    from safetensors import SafetensorError

    def full(*arguments: object) -> None:
        raise SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")

    monkeypatch.setattr("safetensors.torch.save_file", full)
    with pytest.raises(OutputError, match="the disk is full"), writing(tmp_path / "x.safetensors") as path:
        write_tensors(path, {"a": torch.zeros(2)})
    assert not list(tmp_path.iterdir())


KILLED = """
import os, signal, sys
from pathlib import Path
from wildtype.files import writing, writing_folder
with writing(Path(sys.argv[1]) / "x.txt") as path, writing_folder(Path(sys.argv[1]) / "y") as folder:
    path.write_text("half")
    (folder / "a").write_text("half")
    path.with_name(path.name + ".wal").write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_writer_left_is_swept_by_the_next_and_of_a_living_one_nothing(tmp_path: Path) -> None:
    killed = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)])
    assert killed.returncode == -signal.SIGKILL
    assert len(os.listdir(tmp_path)) == 3
    files._swept.discard(tmp_path)
    with writing(tmp_path / "of-somebody") as path:
        path.write_text("whole")
        files._swept.discard(tmp_path)
        write_text(tmp_path / "z.txt", "z")
    assert sorted(os.listdir(tmp_path)) == ["of-somebody", "z.txt"]


def test_of_another_machine_only_what_is_old_is_swept(tmp_path: Path) -> None:
    for name in ("new", "old"):
        (tmp_path / f".{name}.01234567-1-89abcdef.part").write_text("half")
    aged = time.time() - (files.FOREIGN_DAYS + 1) * 86_400
    os.utime(tmp_path / ".old.01234567-1-89abcdef.part", (aged, aged))
    files.sweep(tmp_path)
    assert os.listdir(tmp_path) == [".new.01234567-1-89abcdef.part"]


def test_a_folder_that_was_moved_aside_gets_its_name_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "run"
    with writing_folder(target) as folder:
        (folder / "a").write_text("1")
    os.replace(target, tmp_path / ".run.01234567-1-89abcdef.old")
    files.sweep(tmp_path, exclusive=True)
    assert (target / "a").read_text() == "1"


@pytest.mark.parametrize("number", [errno.EPERM, errno.ENOTSUP])
def test_a_file_system_that_does_not_rename_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    monkeypatch.setattr(os, "replace", Mock(side_effect=OSError(number, os.strerror(number))))
    with pytest.raises(OutputError, match=r"cannot write '.*x\.txt': .*; choose another place"):
        write_text(tmp_path / "x.txt", "new")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("number", "fails"), [(errno.EINVAL, False), (errno.ENOTSUP, False), (errno.EIO, True)]
)
def test_names_are_synced_where_the_file_system_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, fails: bool
) -> None:
    def sync(path: Path) -> None:
        if path.is_dir():
            raise OSError(number, os.strerror(number))

    monkeypatch.setattr(files, "_sync", sync)
    with pytest.raises(OutputError, match="may not outlive a power failure") if fails else nullcontext():
        write_text(tmp_path / "x.txt", "new")
    assert (tmp_path / "x.txt").read_text() == "new"


def test_tensors_can_be_read_by_whoever_reads_other_files(tmp_path: Path) -> None:
    import torch

    before = os.umask(0o022)
    try:
        write_tensors(tmp_path / "a.safetensors", {"a": torch.zeros(2)})
        assert stat.S_IMODE((tmp_path / "a.safetensors").stat().st_mode) == 0o644
    finally:
        os.umask(before)
