"""One writer per directory: a lock of the operating system on a file that names the process that holds it.

``flock`` decides wherever it can be relied on: the kernel releases it however the holder ends, ``kill -9``
included, so that nothing is stale. The record in the file names the holder for messages, and decides alone
on file systems that have no such lock, or that keep one per host. Readers need no lock: every file of a run
is replaced atomically.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import socket
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

import psutil

from wildtype.errors import LockedError, OutputError
from wildtype.files import writing_refused

LOCK = ".lock"
"""Name of the lock file within the directory; it is there only while the lock is held."""
SAME_START = 2.0
"""Seconds by which two readings of one process's start time differ at most: the clock may be adjusted."""
SHARED_LOCKS = {"nfs", "nfs4", "lustre", "gpfs", "ceph"}
"""File systems whose ``flock`` holds on all hosts, unless an option of the mount says otherwise."""
LOCAL_LOCKS = {"nolock", "local_lock=flock", "local_lock=all", "localflock", "noflock"}


@dataclass(frozen=True)
class LockHolder:
    """The process that holds a lock.

    Attributes
    ----------
    host, boot : str
        Name of its machine, and the identity of the running kernel; empty where the system tells none.
    pid : int
        Number of the process on that machine.
    started : float
        When the process started, seconds since 1970: numbers are used again.
    job : str
        Slurm's number of its job or array task, which a requeued job keeps; empty outside of Slurm.
    restarts : int
        How often Slurm had started that job before.
    """

    host: str
    boot: str
    pid: int
    started: float
    job: str = ""
    restarts: int = 0

    @classmethod
    def this_process(cls) -> LockHolder:
        """Return the record of the process that asks."""
        environment = os.environ
        job = environment.get("SLURM_JOB_ID", "")
        if "SLURM_ARRAY_TASK_ID" in environment:
            job = f"{environment.get('SLURM_ARRAY_JOB_ID', '')}_{environment['SLURM_ARRAY_TASK_ID']}"
        if job and environment.get("SLURM_CLUSTER_NAME"):  # numbers of two clusters may meet on one disk
            job = f"{environment['SLURM_CLUSTER_NAME']}/{job}"
        restarts = environment.get("SLURM_RESTART_COUNT", "")
        return cls(
            host=socket.gethostname(),
            boot=_boot(),
            pid=os.getpid(),
            started=psutil.Process().create_time(),
            job=job,
            restarts=int(restarts) if restarts.isdigit() else 0,
        )

    def __str__(self) -> str:
        since = datetime.fromtimestamp(self.started).isoformat(" ", timespec="seconds")
        job = f", Slurm job {self.job}" if self.job else ""
        return f"process {self.pid} on host {self.host} (started {since}{job})"

    def has_ended(self, asker: LockHolder, *, locked: bool, shared: bool) -> bool:
        """Whether the process is known to have ended, as ``asker`` can tell.

        Parameters
        ----------
        asker : LockHolder
            The process that wants the lock.
        locked : bool
            Whether the operating system has just given ``asker`` the lock.
        shared : bool
            Whether the file system keeps one lock for all hosts.
        """
        if self.job and self.job == asker.job and asker.restarts > self.restarts:
            return True  # Slurm starts a job again only when nothing is left of its last start
        same_host = self.host == asker.host
        if self.boot == asker.boot if self.boot and asker.boot else same_host:
            # One kernel knows both, in containers too, and it gave the lock away: the holder is gone.
            return locked or (same_host and not self._runs_here())
        # Of another kernel: the same machine before it was started anew, or a machine that cannot be asked.
        return same_host or (locked and shared)

    def _runs_here(self) -> bool:
        try:
            started: float = psutil.Process(self.pid).create_time()
        except psutil.NoSuchProcess:
            return False
        return abs(started - self.started) < SAME_START


@contextlib.contextmanager
def exclusive_lock(
    directory: Path, doing: str, log: Callable[[str], None] = lambda text: None
) -> Iterator[None]:
    """Let one process at a time write to a directory, which is made where it is missing.

    Parameters
    ----------
    directory : Path
        What to lock. One that cannot be written is not locked, since nothing can be written there.
    doing : str
        What a process does there, for messages: "training in", "fetching files into".
    log : callable
        Receives a line where the lock of a process that ended without releasing it is taken over.

    Raises
    ------
    LockedError
        If another process holds the lock, which is named.
    OutputError
        If the directory cannot be made.
    """
    path, me = directory / LOCK, LockHolder.this_process()
    try:
        directory.mkdir(parents=True, exist_ok=True)
        handle, before = _acquire(path, me, doing)
    except OSError as error:
        raise error if isinstance(error, OutputError) else writing_refused(error, directory) from error
    if before is not None:
        log(f"took over {str(directory)!r} from {before}, which ended without releasing its lock")
    try:
        yield
    finally:
        if handle is None:
            if _read(path) == me:
                path.unlink(missing_ok=True)
        else:
            # Removed before it is unlocked: who opened it meanwhile sees that it is gone, and opens it anew.
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)
            os.close(handle)


def _acquire(path: Path, me: LockHolder, doing: str) -> tuple[int | None, LockHolder | None]:
    """Return the handle that holds the lock, None where the record alone does, and whose lock was stale."""
    while True:
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM) and not path.exists():
                return None, None  # nothing else can be written there either
            raise
        kept = False
        try:
            locked = _flock(handle)
            if locked is None:
                raise LockedError(_held(path, _read(path), doing))
            with contextlib.nullcontext() if locked else _turn(path, doing):
                if not _is_at(handle, path):
                    continue  # its holder removed it between our opening and our locking
                before = _read(path)
                if before is not None and not before.has_ended(me, locked=locked, shared=_shared_locks(path)):
                    if before.host == me.host:
                        raise LockedError(_held(path, before, doing))
                    raise LockedError(
                        f"{str(path.parent)!r} is locked by {before}, and whether that process has ended "
                        f"cannot be told from this host: choose another directory, or remove {str(path)!r} "
                        f"once it ended"
                    )
                record = json.dumps(asdict(me)).encode()
                # In place: a new file would not be the one that is locked. Cut short it is unreadable, which
                # counts as no record; flock still holds then.
                os.ftruncate(handle, 0)
                os.write(handle, record)
                os.fsync(handle)  # other hosts of a network file system see it from here on
            kept = locked
            return (handle if locked else None), before
        finally:
            if not kept:
                os.close(handle)


@contextlib.contextmanager
def _turn(path: Path, doing: str) -> Iterator[None]:
    """Let one process at a time read and replace the record, where the system gives no lock.

    Every file system makes a file of one name for one process only. Between reading that nobody holds the
    lock and writing who does, two processes would both go on.
    """
    turn = path.with_name(f"{path.name}.turn")
    try:
        os.close(os.open(turn, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    except FileExistsError:
        raise OutputError(
            f"another process is {doing} {str(path.parent)!r}, or was killed when it began: wait for it, or "
            f"remove {str(turn)!r} once no process works there"
        ) from None
    try:
        yield
    finally:
        turn.unlink(missing_ok=True)


def _flock(handle: int) -> bool | None:
    """Return whether the lock was given; None if another process holds it, False where there are no locks."""
    try:
        import fcntl
    except ImportError:  # Windows
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return None
    except OSError:  # a file system without locks, as Lustre mounted without them
        return False
    return True


def _is_at(handle: int, path: Path) -> bool:
    """Whether the open file still has its name."""
    try:
        named, opened = os.stat(path), os.fstat(handle)
    except FileNotFoundError:
        return False
    return (named.st_dev, named.st_ino) == (opened.st_dev, opened.st_ino)


def _held(path: Path, holder: LockHolder | None, doing: str) -> str:
    who = "" if holder is None else f": {holder}"
    return f"another process is {doing} {str(path.parent)!r}{who}; wait for it, or choose another directory"


def _read(path: Path) -> LockHolder | None:
    """Return the record of a lock file; None where there is none, or it is cut short."""
    try:
        return LockHolder(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:  # another system than Linux
        return ""


def _shared_locks(path: Path) -> bool:
    try:
        return locks_are_shared(path.resolve(), Path("/proc/self/mounts").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False


def locks_are_shared(path: Path, mounts: str) -> bool:
    r"""Return whether a lock on ``path`` holds on all hosts that see it.

    Parameters
    ----------
    path : Path
        Absolute.
    mounts : str
        As ``/proc/self/mounts`` lists them: device, place, type and options; a space in a place is ``\040``.
    """
    best, kind, options = -1, "", ""
    for line in mounts.splitlines():
        _, place, of_type, with_options, *_ = line.split()
        at = Path(place.replace("\\040", " "))
        if path.is_relative_to(at) and len(at.parts) >= best:  # a later mount covers an earlier one
            best, kind, options = len(at.parts), of_type, with_options
    if kind == "lustre" and "flock" not in options.split(","):
        return False  # its default: none, or local ones
    return kind in SHARED_LOCKS and not LOCAL_LOCKS & set(options.split(","))
