"""Publishers' text files: decompress with a limit, check the layout line by line, and map names to genes.

Every message names the file and the line, what was received, what was expected, and what to do.

Legend: m data lines · f fields.
"""

from __future__ import annotations

import csv
import io
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import EllipsisType

import numpy as np
from numpy.typing import NDArray

from wildtype.characters import hidden_in
from wildtype.datasets.reading import ReadReport
from wildtype.errors import AmbiguousGeneError, MissingFileError, SourceError, reason_of, shown
from wildtype.organism import GeneIndex
from wildtype.unpacking import GZIP_MAGIC, LIMITS

MAX_BYTES = LIMITS.total
"""Largest uncompressed size that is read; a larger file is damaged or hostile."""
LARGEST = 1e30
"""Numbers beyond are no measurements, and would overflow in single precision."""
NAME = "a name without hidden characters"
REMEDY = "fetch the publisher's file again"

UNKNOWN = "unknown gene"
AMBIGUOUS = "ambiguous gene name"

Header = Sequence[str | EllipsisType]


def require(folder: str | Path, name: str) -> Path:
    """Return ``folder / name``; raises ``MissingFileError`` naming both if there is no such file."""
    path = Path(folder) / name
    if not path.is_file():
        raise MissingFileError(
            f"{name} is not in {str(folder)!r}: fetch it from its publisher and put it there under that name"
        )
    return path


def read_bytes(path: str | Path, *, limit: int = MAX_BYTES) -> bytes:
    """Return the content of a plain or gzip-compressed file, decompressing at most ``limit`` bytes.

    Raises
    ------
    SourceError
        If the file is missing, unreadable, cut short, damaged or larger than ``limit``.
    """
    # One piece is not copied: large files are held once.
    return b"".join(read_pieces(path, limit=limit))


def read_pieces(path: str | Path, *, limit: int = MAX_BYTES, size: int | None = None) -> Iterator[bytes]:
    """Yield the content of a plain or gzip-compressed file, at most ``size`` bytes at a time.

    Without ``size`` every member of a gzip file, or a plain file, is one piece.

    Raises
    ------
    SourceError
        As `read_bytes` does, when the damaged part is reached.
    """
    path = Path(path)
    too_large = f"{path} holds more than {limit / 2**20:,.0f} MiB of text, expected far less: {REMEDY}"
    # At least as many bytes as tell a gzip file from others.
    chunk = -1 if size is None else max(size, len(GZIP_MAGIC))
    largest, left = size or limit + 1, limit
    with _opened(path) as read:
        raw = read(chunk)
        if not raw.startswith(GZIP_MAGIC):
            while raw:
                left -= len(raw)
                if left < 0:
                    raise SourceError(too_large)
                yield raw
                raw = read(chunk)
            return
        packed = path.stat().st_size
        allowed = LIMITS.allowed(packed)
        excess = SourceError(too_large) if limit <= allowed else LIMITS.refusal(path, packed)
        left = min(limit, allowed)
        while raw.startswith(GZIP_MAGIC):  # a gzip file is one or more members
            member = zlib.decompressobj(wbits=31)
            while not member.eof:
                raw = raw or read(chunk)
                try:
                    # One byte more than allowed is enough to notice excess, and bounds the memory of a bomb.
                    part = member.decompress(raw, min(largest, left + 1))
                except zlib.error as error:
                    raise SourceError(f"{path} is not a whole gzip file ({error}): {REMEDY}") from None
                if len(part) > left:
                    raise excess
                if not (raw or part or member.eof):
                    raise SourceError(
                        f"{path} is cut short: the gzip stream ends before its end mark; {REMEDY}"
                    )
                left -= len(part)
                raw = member.unconsumed_tail
                if part:
                    yield part
            raw = member.unused_data
            if len(raw) < len(GZIP_MAGIC):
                raw += read(chunk)
        # Tapes and some tools pad with zeros; anything else is a second file or damage.
        raw += read(-1)
        if raw.strip(b"\0"):
            raise SourceError(f"{path} has {len(raw):,} bytes after its gzip stream, expected none: {REMEDY}")


@contextmanager
def _opened(path: Path) -> Iterator[Callable[[int], bytes]]:
    """Yield how to read a file, with the system's errors as sentences."""
    try:
        with open(path, "rb") as handle:
            yield handle.read
    except FileNotFoundError:
        raise SourceError(f"{path} does not exist: {REMEDY}") from None
    except OSError as error:
        raise SourceError(f"{path} cannot be read ({error.strerror or error}): make it readable") from error


def read_text(path: str | Path, *, limit: int = MAX_BYTES) -> str:
    r"""Return a file as text with ``\n`` line ends; raises ``SourceError``, also on bad UTF-8."""
    data = read_bytes(path, limit=limit)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise SourceError(
            f"{path}, line {line}: received byte 0x{data[error.start]:02x}, expected UTF-8 text; {REMEDY}"
        ) from None
    text = text.replace("\r\n", "\n")
    for mark, what in (("\r", "a stray carriage return"), ("\0", "a NUL character")):
        if mark in text:
            line = text.count("\n", 0, text.index(mark)) + 1
            raise SourceError(f"{path}, line {line}: received {what}, expected plain text; {REMEDY}")
    return text


@dataclass(frozen=True, eq=False)
class Rows:
    """The data lines of a delimited file, every one with the right number of fields.

    Attributes
    ----------
    path : Path
        The file, for messages.
    header : tuple of str
        Field names as the file has them; ``()`` if it has none.
    comments : tuple of str
        Comment lines at the top, without their mark.
    line : int64 [m]
        Line number (from 1) of every row.
    cells : list of m lists of f str
        The fields.
    blank : int
        Blank lines that were passed over.
    """

    path: Path
    header: tuple[str, ...]
    comments: tuple[str, ...]
    line: NDArray[np.int64]
    cells: list[list[str]]
    blank: int = 0

    def __len__(self) -> int:
        return len(self.cells)

    def error(self, row: int, received: object, expected: str, remedy: str = REMEDY) -> SourceError:
        """Return the error for one row, to be raised by the caller."""
        what = shown(received) if isinstance(received, str) else str(received)
        return SourceError(
            f"{self.path}, line {self.line[row]}: received {what}, expected {expected}; {remedy}"
        )

    def refuse(self, position: int, wrong: NDArray[np.bool_], expected: str) -> None:
        """Raise the error for the first row where ``wrong`` [m] holds, about its field at ``position``."""
        if wrong.any():
            row = int(wrong.argmax())
            raise self.error(row, self.cells[row][position], expected)

    def text(self, position: int) -> list[str]:
        """Return one field of every row, stripped of surrounding blanks."""
        return [cells[position].strip() for cells in self.cells]

    def names(self, position: int) -> list[str]:
        """Return one field of every row as `text`, to be kept as names: refused if a character is hidden."""
        names = self.text(position)
        self.refuse(position, np.array([bool(hidden_in(name)) for name in names], bool), NAME)
        return names

    def numbers(self, position: int, *, missing: Collection[str] | None = None) -> NDArray[np.float64]:
        """Return one field of every row as numbers [m].

        Parameters
        ----------
        position : int
            Which field.
        missing : collection of str, optional
            Texts that stand for a missing value and become NaN; without it every value must be there.

        Raises
        ------
        SourceError
            Naming the first line whose value is not a number, or is absurdly large.
        """
        values = self.text(position)
        absent = np.zeros(len(values), bool)
        if missing is not None:
            absent = np.array([value in missing for value in values], dtype=bool)
            values = ["nan" if gone else value for value, gone in zip(values, absent, strict=True)]
        out = np.fromiter(map(_number, values), np.float64, len(values))
        # Negated, so that NaN, which _number returns for other text, counts as bad.
        bad = np.flatnonzero(~(np.abs(out) < LARGEST) & ~absent)
        if bad.size:
            row = int(bad[0])
            name = self.header[position] if self.header else f"field {position + 1}"
            raise self.error(row, self.cells[row][position], f"a number in {shown(name)}")
        return out


def _number(value: str) -> float:
    if "_" in value or not value.isascii():  # Python reads 1_000 and digits of other scripts
        return np.nan
    try:
        return float(value)
    except ValueError:
        return np.nan


def _check_header(path: Path, line: int, found: list[str], expected: Header) -> None:
    fixed = [name for name in expected if not isinstance(name, EllipsisType)]
    open_end = len(fixed) < len(expected)
    fits = found[: len(fixed)] == fixed and (
        len(found) > len(fixed) if open_end else len(found) == len(fixed)
    )
    if not fits:
        raise SourceError(
            f"{path}, line {line}: received the header {shown(', '.join(found))}, expected "
            f"{', '.join(fixed)}{' and further columns' if open_end else ''}; {REMEDY}"
        )
    twice = sorted(name for name, count in Counter(found).items() if name and count > 1)
    if twice:
        raise SourceError(
            f"{path}, line {line}: received the column {shown(twice[0])} twice, expected once; {REMEDY}"
        )


def read_rows(
    path: str | Path,
    *,
    separator: str = "\t",
    header: Header | None = None,
    fields: int | None = None,
    least: int | None = None,
    comment: str = "",
    quoted: bool = False,
    blank_lines: bool = False,
    limit: int = MAX_BYTES,
) -> Rows:
    r"""Read a delimited text file and check its layout.

    Parameters
    ----------
    path : path
        A plain or gzip-compressed file.
    separator : str
        One character.
    header : sequence of str, optional
        Expected first line; an ellipsis at the end allows any further columns. It sets the number of fields;
        columns at the right edge without a name must be empty.
    fields, least : int, optional
        Exact, or smallest, number of fields per line where the header does not say.
    comment : str
        Lines at the top that start so are comments.
    quoted : bool
        Whether a field may stand in double quotes.
    blank_lines : bool
        Whether blank lines may stand between rows; at the end of the file they always may.
    limit : int
        Largest uncompressed size in bytes.

    Raises
    ------
    SourceError
        If the file cannot be read, has another header, a line with another number of fields, or no rows.
    """
    path = Path(path)
    lines = read_text(path, limit=limit).split("\n")
    while lines and not lines[-1].strip():
        lines.pop()
    start = 0
    while comment and start < len(lines) and lines[start].startswith(comment):
        start += 1
    comments = tuple(line[len(comment) :].strip() for line in lines[:start])
    names: tuple[str, ...] = ()
    if header is not None:
        if start >= len(lines):
            raise SourceError(f"{path} is empty, expected a header line: {REMEDY}")
        found = [name.strip() for name in _split(path, start + 1, lines[start], separator, quoted)]
        fields = len(found) if least is None else None
        while found and not found[-1]:
            found.pop()  # empty columns at the right edge of an exported sheet
        _check_header(path, start + 1, found, header)
        names, start = tuple(found), start + 1
    numbers, cells, blank = [], [], 0
    for number, line in enumerate(lines[start:], start + 1):
        if not line.strip():
            if not blank_lines:
                raise SourceError(f"{path}, line {number}: received a blank line, expected a row; {REMEDY}")
            blank += 1
            continue
        row = _split(path, number, line, separator, True) if quoted and '"' in line else line.split(separator)
        if (fields is not None and len(row) != fields) or (least is not None and len(row) < least):
            wanted = fields if fields is not None else f"at least {least}"
            raise SourceError(
                f"{path}, line {number}: received {len(row)} fields, expected {wanted}; {REMEDY}"
            )
        if names and least is None and any(row[len(names) :]):
            raise SourceError(f"{path}, line {number}: received a value in a column without a name; {REMEDY}")
        numbers.append(number)
        cells.append(row)
    if not cells:
        raise SourceError(f"{path} holds no rows, expected at least one: {REMEDY}")
    return Rows(path, names, comments, np.array(numbers, dtype=np.int64), cells, blank)


def _split(path: Path, number: int, line: str, separator: str, quoted: bool) -> list[str]:
    if not quoted:
        return line.split(separator)
    try:
        return next(csv.reader(io.StringIO(line), delimiter=separator, strict=True))
    except (csv.Error, StopIteration) as error:
        raise SourceError(
            f"{path}, line {number}: received {shown(line)}, expected balanced double quotes "
            f"({reason_of(error)}); {REMEDY}"
        ) from None


@dataclass(frozen=True, eq=False)
class GeneNames:
    """Names of a file mapped to genes.

    Attributes
    ----------
    position : int64 [m]
        Position in the gene index; -1 where the name is unknown, -2 where it is ambiguous.
    renamed : bool [m]
        Where the gene was found by an older name or alias, not by its systematic or standard name.
    """

    position: NDArray[np.int64]
    renamed: NDArray[np.bool_]

    @property
    def found(self) -> NDArray[np.bool_]:
        """Where the name stands for one gene [m]."""
        return self.position >= 0

    def dropped(self) -> dict[str, int]:
        """Return the number of names without a gene, by reason."""
        return count_reasons({UNKNOWN: self.position == -1, AMBIGUOUS: self.position == -2})


def match_genes(names: Sequence[str], genes: GeneIndex) -> GeneNames:
    """Map names [m] to genes, each distinct name once: systematic names, then as ``GeneIndex.find``."""
    # Systematic names first: such a name can also be an alias of another gene.
    known = {name: (i, False) for i, name in enumerate(genes.names)}
    current = set(genes.standard.values())
    for name in {name for name in names if name not in known}:
        if name not in genes:
            known[name] = (-1, False)
            continue
        try:
            known[name] = (genes.find(name), name not in current)
        except AmbiguousGeneError:
            known[name] = (-2, False)
    position = np.fromiter((known[name][0] for name in names), np.int64, len(names))
    return GeneNames(position, np.fromiter((known[name][1] for name in names), np.bool_, len(names)))


def count_reasons(masks: Mapping[str, NDArray[np.bool_]]) -> dict[str, int]:
    """Return the number of rows under every mask, without those that are zero."""
    return {reason: int(mask.sum()) for reason, mask in masks.items() if mask.any()}


Collector = Callable[[ReadReport], None]
"""Called with what became of the rows of every file that is read."""


def ignore(reading: ReadReport) -> None:
    """Collect nothing."""
