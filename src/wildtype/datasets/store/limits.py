"""Bounds of one connection to a store: memory, scratch space and time, and calls that Ctrl-C ends at once."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from wildtype.errors import DatasetError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

T = TypeVar("T")
PATIENCE = 0.8
"""Seconds that an interrupted call may take to end before it is abandoned."""
QUERY_THREAD = "wildtype query"
"""Name of the thread that waits for the database."""
SCRATCH = ".scratch"
"""Ends the name of a folder of scratch files."""
PROCESS = secrets.token_hex(4)
"""Tells this process from an earlier one of the same number."""


@dataclass(frozen=True)
class Limits:
    """What the queries on a store may use.

    Attributes
    ----------
    memory_mib : int
        Memory of the database; what is more goes to scratch files, which are removed.
    scratch_mib : int
        Size of the scratch files.
    seconds : float
        Time of one query in the database.
    """

    memory_mib: int = 1_500
    scratch_mib: int = 10_000
    seconds: float = 600.0

    def __post_init__(self) -> None:
        for name in ("memory_mib", "scratch_mib", "seconds"):
            if not 0 < getattr(self, name) < 1e9:
                raise DatasetError(
                    f"{name}={getattr(self, name)} is no limit of a query: give a number above 0"
                )


@contextlib.contextmanager
def scratch_of(store: Path) -> Iterator[Path]:
    """Yield a folder for the scratch files of this process, which only its user may read.

    Each process has a folder of its own, since DuckDB gives the files of every process the same names. It
    stands beside the store, or among the temporary files of the system where nothing can be written there.
    It is removed at the end, and so are those of processes that were killed.
    """
    beside = store.resolve().parent
    for left in beside.glob(f".{store.name}.*{SCRATCH}"):
        with _held(left, alone=True) as free:
            if free:
                shutil.rmtree(left, ignore_errors=True)
    # One folder per process and store: connections of a process to one file must have equal settings.
    name = f".{store.name}.{os.getpid()}-{PROCESS}{SCRATCH}"
    folder = beside / name
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError:
        folder = Path(tempfile.gettempdir()) / name
        folder.mkdir(mode=0o700, exist_ok=True)
    try:
        with _held(folder, alone=False):
            yield folder
    finally:
        with _held(folder, alone=True) as free:
            if free:
                shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _held(folder: Path, *, alone: bool) -> Iterator[bool]:
    """Lock a folder, for one alone or for all that use it; give whether that was possible."""
    try:
        import fcntl
    except ImportError:  # Windows
        yield False
        return
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        yield False
        return
    try:
        try:
            fcntl.flock(handle, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        except OSError:  # in use, or a file system without locks
            yield False
        else:
            yield True
    finally:
        os.close(handle)


class Bounded:
    """Calls of the database for one query: in a thread, so that an interrupt or a time limit can end them.

    DuckDB looks for Ctrl-C in some calls only. Reading the batches of a result ignores it.
    """

    def __init__(self, cursor: DuckDBPyConnection, seconds: float, path: Path) -> None:
        self._cursor, self._seconds, self._path = cursor, seconds, path
        self._left = seconds
        self.abandoned = False

    def __call__(self, work: Callable[[], T]) -> T:
        """Return what `work` returns.

        Raises
        ------
        KeyboardInterrupt
            As soon as the database let go of the query.
        DatasetError
            If the calls of this query took longer than allowed.
        """
        done = threading.Event()
        outcome: list[tuple[Any, BaseException | None]] = []

        def run() -> None:
            try:
                outcome.append((work(), None))
            except BaseException as error:
                outcome.append((None, error))
            finally:
                done.set()

        # A daemon: a call that does not end must not keep the interpreter from ending.
        thread = threading.Thread(target=run, name=QUERY_THREAD, daemon=True)
        begun = time.monotonic()
        try:
            thread.start()
            # An event: a thread whose join was interrupted counts as ended in Python 3.11.
            ended = done.wait(self._left)
        except BaseException:
            self._end(done)
            raise
        self._left = max(0.0, self._left - (time.monotonic() - begun))
        if not ended:
            self._end(done)
            raise DatasetError(
                f"the query on the store {self._path} was stopped after {self._seconds:g} seconds: ask for "
                "less at once, or allow more time (--seconds)"
            )
        value, error = outcome[0]
        if error is not None:
            raise error
        return value  # type: ignore[no-any-return]

    def _end(self, done: threading.Event) -> None:
        self._cursor.interrupt()
        self.abandoned = not done.wait(PATIENCE)
