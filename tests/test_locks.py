"""A lock of a directory: held by one process, named in the refusal, free again however its holder ends."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from wildtype import locks
from wildtype.errors import OutputError
from wildtype.locks import LOCK, LockHolder, exclusive_lock, locks_are_shared

HOLDER = """
import sys
from pathlib import Path
from wildtype.errors import OutputError
from wildtype.locks import exclusive_lock

print("ready", flush=True)
sys.stdin.readline()
try:
    with exclusive_lock(Path(sys.argv[1]), "training in"):
        print("held", flush=True)
        sys.stdin.readline()
except OutputError as error:
    print(error, flush=True)
"""


class Holder:
    """Another process that takes the lock of a directory when told to, and holds it until told again."""

    def __init__(self, directory: Path, **environment: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", HOLDER, str(directory)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **environment},
        )
        assert self.line() == "ready"

    def tell(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().rstrip("\n")

    def end(self, how: signal.Signals = signal.SIGKILL) -> None:
        self.process.send_signal(how)
        self.process.communicate()


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[Holder]:
    other = Holder(tmp_path / "run")
    other.tell()
    assert other.line() == "held"
    yield other
    other.process.kill()
    other.process.communicate()


def test_a_held_lock_is_refused_and_its_holder_is_named(holder: Holder, tmp_path: Path) -> None:
    with pytest.raises(OutputError) as caught, exclusive_lock(tmp_path / "run", "training in"):
        pass
    assert f"another process is training in '{tmp_path / 'run'}'" in str(caught.value)
    assert f"process {holder.process.pid} on host " in str(caught.value)
    holder.tell()
    holder.process.communicate()
    assert list((tmp_path / "run").iterdir()) == []
    with exclusive_lock(tmp_path / "run", "training in"):
        assert (tmp_path / "run" / LOCK).is_file()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_the_lock_of_a_killed_process_is_taken_over(
    holder: Holder, tmp_path: Path, how: signal.Signals
) -> None:
    holder.end(how)
    assert (tmp_path / "run" / LOCK).is_file()
    said: list[str] = []
    with exclusive_lock(tmp_path / "run", "training in", said.append):
        assert json.loads((tmp_path / "run" / LOCK).read_text())["pid"] == os.getpid()
    assert len(said) == 1
    assert f"from process {holder.process.pid} on host " in said[0]
    assert list((tmp_path / "run").iterdir()) == []


def test_of_several_processes_one_gets_the_lock(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    others = [Holder(tmp_path / "run") for _ in range(4)]
    for other in others:
        other.tell()
    answers = [other.line() for other in others]
    assert answers.count("held") == 1
    assert all(answer == "held" or "another process is training in" in answer for answer in answers)
    for other in others:
        other.end()


def test_a_lock_that_is_cut_short_belongs_to_nobody(tmp_path: Path) -> None:
    for text in ("", "{", "[]", '{"pid": 1}', "\x00\xff"):
        (tmp_path / LOCK).write_text(text)
        said: list[str] = []
        with exclusive_lock(tmp_path, "training in", said.append):
            pass
        assert said == []
        assert not (tmp_path / LOCK).exists()


def test_a_lock_file_that_was_removed_before_it_was_locked_is_no_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flock, opened = locks._flock, []

    def late(handle: int) -> bool | None:
        opened.append(os.fstat(handle).st_ino)
        if len(opened) == 1:  # the holder releases between our opening of the file and our lock on it
            (tmp_path / LOCK).unlink()
        return flock(handle)

    monkeypatch.setattr(locks, "_flock", late)
    with exclusive_lock(tmp_path, "training in"):
        assert len(opened) == 2
        assert (tmp_path / LOCK).stat().st_ino == opened[1]


ME = LockHolder("node1", "boot-a", 7, 100.0)


@pytest.mark.parametrize(
    ("holder", "asker", "locked", "shared", "ended"),
    [
        (ME, replace(ME, pid=8), True, False, True),
        (replace(ME, host="container"), ME, True, False, True),  # one kernel
        (replace(ME, boot="boot-b"), ME, True, False, True),  # before the machine was started again
        (replace(ME, host="node2", boot="boot-b"), ME, True, True, True),
        (replace(ME, host="node2", boot="boot-b"), ME, True, False, False),
        (replace(ME, host="node2", boot="boot-b"), ME, False, True, False),
        (replace(ME, host="container"), ME, False, False, False),
        (replace(ME, host="node2", boot=""), replace(ME, boot=""), True, False, False),
    ],
)
def test_whose_lock_is_stale(
    holder: LockHolder, asker: LockHolder, locked: bool, shared: bool, ended: bool
) -> None:
    assert holder.has_ended(asker, locked=locked, shared=shared) is ended


@pytest.mark.parametrize(
    ("job", "restarts", "ended"), [("5", 1, True), ("5", 0, False), ("5_1", 1, False), ("", 1, False)]
)
def test_a_requeued_job_takes_over_from_its_own_last_start(job: str, restarts: int, ended: bool) -> None:
    holder = LockHolder("node1", "boot-a", 7, 100.0, job="5")
    asker = LockHolder("node2", "boot-b", 9, 200.0, job=job, restarts=restarts)
    assert holder.has_ended(asker, locked=True, shared=False) is ended


def test_a_job_or_array_task_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"JOB_ID": "12", "RESTART_COUNT": "3", "CLUSTER_NAME": "north"}.items():
        monkeypatch.setenv(f"SLURM_{name}", value)
    found = LockHolder.this_process()
    assert (found.job, found.restarts, found.pid) == ("north/12", 3, os.getpid())
    assert "Slurm job north/12" in str(found)
    monkeypatch.setenv("SLURM_ARRAY_JOB_ID", "10")
    monkeypatch.setenv("SLURM_ARRAY_TASK_ID", "2")
    assert LockHolder.this_process().job == "north/10_2"


def test_a_holder_on_a_host_that_cannot_be_asked_is_refused_with_the_remedy(tmp_path: Path) -> None:
    other = replace(LockHolder.this_process(), host="node2", boot="boot-b", job="5")
    (tmp_path / LOCK).write_text(json.dumps(asdict(other)))
    with pytest.raises(OutputError, match=rf"node2 .*Slurm job 5.* remove '{tmp_path / LOCK}'"):
        exclusive_lock(tmp_path, "training in").__enter__()
    assert json.loads((tmp_path / LOCK).read_text())["host"] == "node2"


def test_without_locks_of_the_system_the_record_decides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "_flock", lambda handle: False)
    with exclusive_lock(tmp_path, "training in"):
        with pytest.raises(OutputError, match=f"another process is training in .*process {os.getpid()} on"):
            exclusive_lock(tmp_path, "training in").__enter__()
        assert (tmp_path / LOCK).is_file()
    assert not (tmp_path / LOCK).exists()
    mine = LockHolder.this_process()
    for gone in (replace(mine, started=mine.started - 99), replace(mine, pid=2**22 + 1)):
        (tmp_path / LOCK).write_text(json.dumps(asdict(gone)))
        said: list[str] = []
        with exclusive_lock(tmp_path, "training in", said.append):
            assert len(said) == 1


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOTSUP, errno.EPERM, errno.ENOSYS])
def test_of_two_that_read_the_record_at_once_one_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    import fcntl

    def refused(*arguments: object) -> None:
        raise OSError(number, os.strerror(number))

    read, answers = locks._read, []

    def meanwhile(path: Path) -> LockHolder | None:
        found = read(path)
        monkeypatch.setattr(locks, "_read", read)
        try:  # between our reading that nobody holds it and our writing that we do
            exclusive_lock(tmp_path, "training in").__enter__()
        except OutputError as error:
            answers.append(str(error))
        return found

    monkeypatch.setattr(fcntl, "flock", refused)
    monkeypatch.setattr(locks, "_read", meanwhile)
    with exclusive_lock(tmp_path, "training in"):
        assert len(answers) == 1
        assert "another process is training in" in answers[0]
        assert str(tmp_path / f"{LOCK}.turn") in answers[0]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES])
def test_what_cannot_be_written_is_not_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refused(*arguments: object) -> int:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patched:
        patched.setattr(os, "open", refused)
        with exclusive_lock(tmp_path, "fetching files into"):
            assert list(tmp_path.iterdir()) == []
    (tmp_path / LOCK).touch()  # of another user
    with monkeypatch.context() as patched:
        patched.setattr(os, "open", refused)
        with pytest.raises(OutputError, match="cannot write"):
            exclusive_lock(tmp_path, "fetching files into").__enter__()


def test_a_file_in_the_way_is_told(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("")
    with pytest.raises(OutputError, match="a file of that name is in the way"):
        exclusive_lock(tmp_path / "run", "training in").__enter__()


MOUNTS = """\
/dev/sda1 / ext4 rw 0 0
server:/home /home nfs4 rw,vers=4.2,local_lock=none 0 0
server:/old /old nfs rw,vers=3,nolock,local_lock=all 0 0
10.0.0.1@tcp:/s /scratch lustre rw,flock,lazystatfs 0 0
10.0.0.2@tcp:/t /scratch/two\\040words lustre rw,localflock 0 0
beegfs_nodev /projects beegfs rw 0 0
"""


@pytest.mark.parametrize(
    ("path", "shared"),
    [
        ("/data/run", False),
        ("/home/me/run", True),
        ("/homes/run", False),
        ("/old/run", False),
        ("/scratch/run", True),
        ("/scratch/two words/run", False),
        ("/projects/run", False),
    ],
)
def test_file_systems_with_one_lock_for_all_hosts(path: str, shared: bool) -> None:
    assert locks_are_shared(Path(path), MOUNTS) is shared
