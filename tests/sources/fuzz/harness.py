"""What every reader must do with every damaged file: account for each row, or refuse in one sentence."""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wildtype.datasets.reading import ReadReport
from wildtype.errors import MissingFileError, WildtypeError
from wildtype.sources.publishers import owners

Read = Callable[[Path, Any, Callable[[ReadReport], None]], object]
"""Called with the folder, what the kit was built for (most often a gene index), and a collector."""
LONGEST = 3_000
"""Characters of a message; the longest ones name every column of a published table."""


@dataclass(frozen=True, eq=False)
class Kit:
    """A folder of small valid files, and what they are read for."""

    name: str
    folder: Path
    given: Any


@dataclass(frozen=True, eq=False)
class Case:
    """A file that a reader opens in a folder where it finds all that it needs.

    `opened` are all files that it opens there, `reported` those whose rows it accounts for, `rows` their sum.
    """

    reader: str
    kit: Kit
    file: str
    opened: tuple[str, ...]
    reported: tuple[str, ...]
    rows: int
    read: Read

    @property
    def path(self) -> Path:
        """The file."""
        return self.kit.folder / self.file

    def __repr__(self) -> str:
        return f"{self.reader}: {self.file} of {self.kit.name}"


_opened: set[str] | None = None


def _listen(event: str, args: tuple[object, ...]) -> None:
    if event == "open" and _opened is not None and isinstance(args[0], str | os.PathLike):
        _opened.add(os.fspath(args[0]))


sys.addaudithook(_listen)


@contextlib.contextmanager
def listening() -> Iterator[set[str]]:
    """Give the set of paths that are opened meanwhile."""
    global _opened
    _opened = set()
    try:
        yield _opened
    finally:
        _opened = None


def find_cases(name: str, read: Read, kits: list[Kit]) -> list[Case]:
    """Return every file that a reader opens in the kits that it reads, kits of the same content once."""
    out: list[Case] = []
    known: set[tuple[bytes, ...]] = set()
    for kit in kits:
        readings: list[ReadReport] = []
        with listening() as paths:
            try:
                read(kit.folder, kit.given, readings.append)
            except WildtypeError:  # not a kit of this reader
                continue
        files = sorted(p.name for p in kit.folder.iterdir() if str(p) in paths)
        contents = tuple((kit.folder / file).read_bytes() for file in files)
        if contents in known:
            continue
        known.add(contents)
        rows = sum(reading.rows for reading in readings)
        reported = tuple(reading.file for reading in readings)
        out += [Case(name, kit, file, tuple(files), reported, rows, read) for file in files]
    return out


@contextlib.contextmanager
def replaced(path: Path, content: bytes | str) -> Iterator[None]:
    """Put other bytes, a directory or nothing in the place of a file, for a while."""
    before = path.read_bytes()
    path.unlink()
    try:
        if content == "directory":
            path.mkdir()
        elif isinstance(content, bytes):
            path.write_bytes(content)
        yield
    finally:
        if content == "directory":
            path.rmdir()
        path.write_bytes(before)


@dataclass(frozen=True)
class Outcome:
    """Readings where the file was read; else the message."""

    readings: tuple[ReadReport, ...]
    message: str = ""

    @property
    def rows(self) -> int:
        """Rows of all readings."""
        return sum(reading.rows for reading in self.readings)


def outcome(case: Case, content: bytes | str) -> Outcome:
    """Read a case whose file has other content; raises whatever is no `WildtypeError`, also warnings."""
    readings: list[ReadReport] = []
    with replaced(case.path, content), warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            case.read(case.kit.folder, case.kit.given, readings.append)
        except MissingFileError as error:
            # another file may be asked for, since one of several would do
            assert content in ("missing", "directory")
            return Outcome((), str(error))
        except WildtypeError as error:
            check_message(case, str(error))
            return Outcome((), str(error))
    for reading in readings:
        check_reading(reading)
    return Outcome(tuple(readings))


def check_message(case: Case, message: str) -> None:
    """A message is one line, printable, of bounded length, and names a file that was read, or its folder."""
    assert message
    assert all(
        line.isprintable() for line in (message.split("\n") if case.reader == "own table" else [message])
    )
    assert len(message) < LONGEST
    names = {name.removesuffix(".gz") for name in case.opened}
    if case.reader in ("dataset", "organism"):  # whose folder is named: its files belong together
        names.add(str(case.kit.folder))
    names |= {
        known.removesuffix(".gz")
        for name in case.opened
        for _, remote in owners(name)
        for known in (remote.name, *remote.aliases)
    }
    assert any(name in message for name in names)


def check_reading(reading: ReadReport) -> None:
    """Every row is kept or counted under a reason."""
    assert reading.rows == reading.kept + sum(reading.dropped.values())
    assert reading.kept >= 0
    assert all(count > 0 for count in reading.dropped.values())
    # reciprocal rows that name a gene by an older name are one edge, so that renamed may exceed kept
    assert 0 <= reading.renamed <= reading.rows
