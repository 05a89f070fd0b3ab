"""Large delimited files as columns: millions of rows in seconds, checked as strictly as `read_rows` does.

Text columns hold every distinct text once and a code per row, so that each distinct name is parsed
and matched to a gene only once.

Legend: m data lines · d distinct texts of a column.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from types import EllipsisType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wildtype.characters import hidden_in
from wildtype.errors import SourceError, shown
from wildtype.organism import GeneIndex
from wildtype.sources.text import (
    LARGEST,
    MAX_BYTES,
    NAME,
    REMEDY,
    GeneNames,
    match_genes,
    read_bytes,
    read_pieces,
)

MISSING = ("", "NaN", "NA")
"""Texts for a missing number, unless the caller gives others."""
_BLOCK = 16 << 20
_HEAD = 1 << 16
UNPACKED = 64 << 20
"""Bytes of text that `column_blocks` holds at a time."""
_NUMBER = re.compile(r"[ \t]*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?[ \t]*", re.ASCII)

_CONTROL = r"[\x00-\x08\x0a-\x1f]"


@dataclass(frozen=True)
class Only:
    """A column of texts of which few matter, such as millions of aliases: the others become ``""``.

    Attributes
    ----------
    names : frozenset of str
        The texts that stay, in upper case; a text is compared in upper case and without surrounding blanks.
    """

    names: frozenset[str]

    def of(self, column: Any) -> Any:
        """Return a column of texts (Arrow, chunked) with ``""`` in place of the others, in a dictionary."""
        import pyarrow as pa
        import pyarrow.compute as pc

        folded = pc.ascii_upper(pc.utf8_trim_whitespace(column))
        known = pc.is_in(folded, value_set=pa.array(self.names, pa.utf8()))
        ascii_only = pc.string_is_ascii(folded)
        if not pc.all(ascii_only).as_py():
            # Upper case beyond ASCII is Python's, as in every other look-up of names.
            known = known.to_numpy()
            beyond = np.flatnonzero(~ascii_only.to_numpy())
            known[beyond] = [text.upper() in self.names for text in folded.take(beyond).to_pylist()]
            known = pa.array(known)
        return pc.dictionary_encode(pc.if_else(known, column, ""))


ColumnType = type[str] | type[float] | Only | None
Header = Sequence[str | EllipsisType | None]
"""Expected column names; None accepts any name in its place, an ellipsis at the end any further columns."""


@dataclass(frozen=True, eq=False)
class TextColumn:
    """One text per row, every distinct text held once.

    Attributes
    ----------
    names : tuple of d str
        The distinct texts, ascending, without surrounding blanks.
    code : int32 [m]
        Position of every row's text in `names`.
    """

    names: tuple[str, ...]
    code: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.code)

    def __getitem__(self, row: int) -> str:
        return self.names[int(self.code[row])]

    def map(self, function: Callable[[str], Any], dtype: Any = object) -> NDArray[Any]:
        """Return ``function`` of every row's text [m], called once per distinct text."""
        # Filled one by one: np.array() of equal-length tuples would become two-dimensional.
        values = np.empty(len(self.names), dtype)
        for i, name in enumerate(self.names):
            values[i] = function(name)
        out: NDArray[Any] = values[self.code]
        return out

    def match(self, genes: GeneIndex) -> GeneNames:
        """Return every row's text as the name of a gene [m], looked up once per distinct text."""
        matched = match_genes(self.names, genes)
        return GeneNames(matched.position[self.code], matched.renamed[self.code])


@dataclass(frozen=True, eq=False)
class Columns:
    """The columns of a delimited file, every line with the right number of fields.

    Attributes
    ----------
    path : Path
        The file, for messages.
    header : tuple of str
        Column names as the file has them; ``()`` if it has none.
    first_line : int
        Line number (from 1) of the first row; the others follow without a gap.
    columns : tuple of TextColumn, float64 [m] or None
        In the order of the file; None for columns that were not asked for. Missing numbers are NaN.
    """

    path: Path
    header: tuple[str, ...]
    first_line: int
    columns: tuple[TextColumn | NDArray[np.float64] | None, ...]

    def __len__(self) -> int:
        return next(len(column) for column in self.columns if column is not None)

    def text(self, position: int) -> TextColumn:
        """Return a column that was read as text."""
        column = self.columns[position]
        if not isinstance(column, TextColumn):
            raise TypeError(f"column {position} was not read as text")
        return column

    def names(self, position: int) -> TextColumn:
        """Return a column as `text`, to be kept as names; raises ``SourceError`` if a character is hidden."""
        column = self.text(position)
        self.refuse(position, column.map(lambda name: bool(hidden_in(name)), bool), NAME)
        return column

    def numbers(self, position: int) -> NDArray[np.float64]:
        """Return a column that was read as numbers [m]."""
        column = self.columns[position]
        if not isinstance(column, np.ndarray):
            raise TypeError(f"column {position} was not read as numbers")
        return column

    def error(self, row: int, received: str, expected: str) -> SourceError:
        """Return the error for one row, to be raised by the caller."""
        return _error(self.path, self.first_line + row, shown(received), expected)

    def refuse(self, position: int, wrong: NDArray[np.bool_], expected: str) -> None:
        """Raise the error for the first row where ``wrong`` [m] holds, about its value at ``position``."""
        if wrong.any():
            row, column = int(wrong.argmax()), self.columns[position]
            received = column[row] if isinstance(column, TextColumn) else f"{self.numbers(position)[row]:g}"
            raise self.error(row, received, expected)


def read_columns(
    path: str | Path,
    *,
    types: Sequence[ColumnType],
    separator: str = "\t",
    header: Header | None = None,
    missing: Collection[str] = MISSING,
    skip_lines: int = 0,
    encoding: str = "utf-8",
    limit: int = MAX_BYTES,
) -> Columns:
    r"""Read a delimited text file without quoting into columns and check its layout.

    Parameters
    ----------
    path : path
        A plain or gzip-compressed file.
    types : sequence of str, float, Only or None
        What every column is read as, from left to right; None passes a column over.
    separator : str
        One character.
    header : sequence of str, None or an ellipsis, optional
        Expected column names; None in a place accepts any name there (where spellings differ between
        copies), an ellipsis at the end any further columns, which are passed over. Without it the file has
        no header line.
    missing : collection of str
        Texts in columns of numbers that become NaN; every other value must be a number.
    skip_lines : int
        Title lines above the header.
    encoding : str
        ``utf-8`` or ``utf-16``; a byte order mark is passed over.
    limit : int
        Largest uncompressed size in bytes.

    Raises
    ------
    SourceError
        If the file cannot be read, has another header, no rows, or a line that is blank, has another number
        of fields, or an infinite, absurdly large or damaged number; the message names the line.
    """
    path = Path(path)
    data = _decoded(path, encoding, limit)
    _refuse_marks(path, data)
    start, line = 0, 1 + skip_lines
    names: tuple[str, ...] = ()
    for _ in range(skip_lines):
        start = data.find(b"\n", start) + 1 or len(data)
    if header is not None and start < len(data):
        end = data.find(b"\n", start)
        end = len(data) if end < 0 else end
        names = _header(path, line, data[start:end], separator, header)
        start, line = end + 1, line + 1
    if start >= len(data):
        raise SourceError(f"{path} holds no rows, expected at least one: {REMEDY}")
    kinds = (*types, *[None] * (len(names) - len(types)))
    table = _Table(path, data, start, line, names, kinds, separator, tuple(missing))
    return Columns(path, names, line, table.columns())


def text_column(column: Any) -> TextColumn:
    """Return a dictionary-encoded Arrow column (chunked) with every distinct stripped text once."""
    import pyarrow.compute as pc

    # Every block of the file has its own dictionary; only after this do equal codes mean equal texts.
    column = column.unify_dictionaries()
    if not column.num_chunks:
        return TextColumn((), np.zeros(0, np.int32))
    # Stripping can make two texts equal, so codes are numbered again.
    texts = pc.utf8_trim_whitespace(column.chunk(0).dictionary).dictionary_encode()
    order = pc.array_sort_indices(texts.dictionary)  # by UTF-8 bytes, which is by code point
    rank = np.empty(len(order), np.int32)
    rank[order.to_numpy()] = np.arange(len(order), dtype=np.int32)
    number = rank[texts.indices.to_numpy()]
    code = [number[chunk.indices.to_numpy()] for chunk in column.chunks]
    return TextColumn(tuple(texts.dictionary.take(order).to_pylist()), np.concatenate(code))


def column_blocks(
    path: str | Path,
    *,
    types: Callable[[tuple[str, ...]], Sequence[ColumnType]],
    separator: str = "\t",
    header: Header | None = None,
    missing: Collection[str] = MISSING,
    skip_lines: int = 0,
    limit: int = MAX_BYTES,
    size: int = UNPACKED,
) -> Iterator[Columns]:
    """Yield the rows of a file in order, some at a time: as `read_columns`, in bounded memory.

    Parameters
    ----------
    types : callable
        What every column is read as, given the cells of the header, or of the first row where there is none.
    header, skip_lines
        As for `read_columns`.
    size : int
        Uncompressed bytes of the rows that are read at a time.

    Raises
    ------
    SourceError
        As `read_columns` does, when the damaged part is reached.
    """
    path = Path(path)
    names: tuple[str, ...] = ()
    kinds: tuple[ColumnType, ...] = ()
    line, rows = 1, 0
    for data in _whole_lines(path, limit, size):
        # Line ends at the end of a file are no rows; within it they are blank lines, which are refused.
        _refuse_marks(path, data, line)
        start = 0
        if not kinds:
            for _ in range(skip_lines):
                start, line = data.find(b"\n", start) + 1 or len(data), line + 1
            end = data.find(b"\n", start)
            end = len(data) if end < 0 else end
            first = tuple(data[start:end].decode("utf-8", errors="replace").strip("\r").split(separator))
            if header is not None:
                first = names = _header(path, line, data[start:end], separator, header)
                start, line = end + 1, line + 1
            kinds = tuple(types(first))
            kinds = (*kinds, *[None] * (len(first) - len(kinds)))
        if start < len(data):
            table = _Table(path, data, start, line, names, kinds, separator, tuple(missing))
            block = Columns(path, names, line, table.columns())
            line, rows = line + len(block), rows + len(block)
            yield block
    if not rows:
        raise SourceError(f"{path} holds no rows, expected at least one: {REMEDY}")


def first_lines(path: str | Path, count: int) -> list[str]:
    """Return the first lines of a file, fewer where it has fewer; raises ``SourceError``."""
    head = next(read_pieces(path, size=_HEAD), b"").removeprefix(b"\xef\xbb\xbf")
    return head.decode("utf-8", errors="replace").splitlines()[:count]


def _whole_lines(path: Path, limit: int, size: int) -> Iterator[bytes]:
    """Yield a file as UTF-8 bytes that end where a line does, without the last line end."""
    rest = b""
    for number, piece in enumerate(read_pieces(path, limit=limit, size=size)):
        data = rest + (piece.removeprefix(b"\xef\xbb\xbf") if number == 0 else piece)
        cut = data.rfind(b"\n") + 1
        while cut and data[cut - 1] in b"\r\n":
            cut -= 1
        body = data[:cut]
        # What follows the end of the last line is kept: blank lines between rows must not be lost.
        after = len(body) + (2 if data.startswith(b"\r\n", len(body)) else 1)
        if body:
            yield body
            rest = data[after:]
        else:
            rest = data
    if rest := rest.rstrip(b"\r\n"):
        yield rest


def _error(path: Path, line: int, received: str, expected: str) -> SourceError:
    return SourceError(f"{path}, line {line}: received {received}, expected {expected}; {REMEDY}")


def _decoded(path: Path, encoding: str, limit: int) -> bytes:
    """Return the file as UTF-8 bytes without line ends at its end."""
    data = read_bytes(path, limit=limit)
    if encoding == "utf-8":
        data = data.removeprefix(b"\xef\xbb\xbf")
    else:
        try:
            data = data.decode(encoding).encode("utf-8")
        except (UnicodeDecodeError, UnicodeEncodeError) as error:
            raise SourceError(f"{path} is not {encoding.upper()} text ({error.reason}): {REMEDY}") from None
    return data.rstrip(b"\r\n") if data.endswith((b"\n", b"\r")) else data


def _refuse_marks(path: Path, data: bytes, first_line: int = 1) -> None:
    """Refuse what would change the number of rows silently: blank lines and stray control characters."""

    def refuse(at: int, received: str, expected: str) -> None:
        raise _error(path, data.count(b"\n", 0, at) + first_line, received, expected)

    # pyarrow takes a lone carriage return for a line end, which would split one row into two.
    if b"\r" in data and data.count(b"\r") != data.count(b"\r\n"):
        stray = re.search(rb"\r(?!\n)", data)
        refuse(stray.start() if stray else 0, "a stray carriage return", "plain text")
    if b"\0" in data:
        refuse(data.index(b"\0"), "a NUL character", "plain text")
    if data.startswith((b"\n", b"\r\n")):
        refuse(0, "a blank line", "a row")
    for pair in (b"\n\n", b"\n\r\n") if b"\r" in data else (b"\n\n",):
        if pair in data:
            refuse(data.index(pair) + 1, "a blank line", "a row")


def header_fits(found: Sequence[str], expected: Header) -> bool:
    """Say whether a file's column names are the expected ones."""
    fixed = [name for name in expected if not isinstance(name, EllipsisType)]
    enough = len(found) > len(fixed) if len(fixed) < len(expected) else len(found) == len(fixed)
    return enough and all(want in (None, name) for name, want in zip(found, fixed, strict=False))


def spelled(expected: Header) -> str:
    """Return an expected header as messages show it."""
    words = {None: "(any name)", ...: "and further columns"}
    return ", ".join(name if isinstance(name, str) else words[name] for name in expected)


def _header(path: Path, number: int, line: bytes, separator: str, expected: Header) -> tuple[str, ...]:
    # a name that may be spelled in any way may be in any encoding too
    found = tuple(name.strip() for name in line.decode("utf-8", errors="replace").split(separator))
    if not header_fits(found, expected):
        raise _error(path, number, f"the header {shown(', '.join(found))}", spelled(expected))
    return found


@dataclass(frozen=True, eq=False)
class _Table:
    """The rows of a file in memory: ``data[start:]``, the first of them in line `first_line`."""

    path: Path
    data: bytes
    start: int
    first_line: int
    header: tuple[str, ...]
    types: tuple[ColumnType, ...]
    separator: str
    missing: tuple[str, ...]

    def columns(self) -> tuple[TextColumn | NDArray[np.float64] | None, ...]:
        import pyarrow as pa
        import pyarrow.csv

        text = pa.dictionary(pa.int32(), pa.utf8())
        labels = [str(i) for i in range(len(self.types))]
        asked = {
            label: text if kind is str else pa.utf8() if isinstance(kind, Only) else pa.float64()
            for label, kind in zip(labels, self.types, strict=True)
            if kind is not None
        }
        try:
            table = pyarrow.csv.read_csv(
                pa.BufferReader(pa.py_buffer(self.data).slice(self.start)),
                read_options=pyarrow.csv.ReadOptions(column_names=labels, block_size=_BLOCK),
                parse_options=pyarrow.csv.ParseOptions(
                    # A double quote is a character; as a quote it would swallow lines up to the next one.
                    delimiter=self.separator,
                    quote_char=False,
                    ignore_empty_lines=False,
                ),
                convert_options=pyarrow.csv.ConvertOptions(
                    column_types=asked,
                    include_columns=list(asked),
                    # Only in columns of numbers; NA and NaN in a column of text are names like any other.
                    null_values=list(self.missing),
                    strings_can_be_null=False,
                ),
            )
        except pa.ArrowInvalid as error:
            raise self._first_error(str(error)) from None
        lines = self.data.count(b"\n", self.start) + 1
        # Independent count: a reader that skips or joins lines must not go unnoticed.
        if table.num_rows != lines:
            raise SourceError(
                f"{self.path} has {lines:,} lines of data, of which {table.num_rows:,} were read: {REMEDY}"
            )
        taken = {label: table.column(label) for label in asked}
        del table
        out: list[TextColumn | NDArray[np.float64] | None] = []
        for position, (label, kind) in enumerate(zip(labels, self.types, strict=True)):
            column = taken.pop(label, None)  # frees the column once it is converted
            if kind is None:
                out.append(None)
            elif kind is float:
                out.append(self._numbers(column, position))
            else:
                out.append(self._texts(column, kind if isinstance(kind, Only) else None))
        return tuple(out)

    def _numbers(self, column: Any, position: int) -> NDArray[np.float64]:
        out = np.empty(len(column), np.float64)
        at = 0
        for chunk in column.chunks:
            part = chunk.to_numpy(zero_copy_only=False)  # absent values become NaN
            # Negated, so that NaN counts as bad too; missing cells are then taken out by their validity.
            bad = ~(np.abs(part) < LARGEST)
            if chunk.null_count:
                bad &= chunk.is_valid().to_numpy(zero_copy_only=False)
            if bad.any():
                row = at + int(bad.argmax())
                cell = next(islice(self._lines(), row, None)).split(self.separator)[position]
                raise self._not_a_number(row, cell, position)
            out[at : at + len(part)] = part
            at += len(part)
        return out

    def _texts(self, column: Any, only: Only | None) -> TextColumn:
        import pyarrow.compute as pc

        texts = column
        if only is None:
            column = column.unify_dictionaries()
            texts = column.chunk(0).dictionary
        wrong = pc.match_substring_regex(pc.utf8_trim_whitespace(texts), _CONTROL)
        if pc.any(wrong).as_py():
            found = np.asarray(wrong)
            if only is None:
                found = found[np.concatenate([chunk.indices for chunk in column.chunks])]
            row = int(found.argmax())
            received = shown(column[row].as_py().strip())
            raise _error(self.path, self.first_line + row, received, "printable text")
        return text_column(column if only is None else only.of(column))

    def _not_a_number(self, row: int, cell: str, position: int) -> SourceError:
        name = self.header[position] if self.header else f"field {position + 1}"
        return _error(self.path, self.first_line + row, shown(cell), f"a number in {shown(name)}")

    def _lines(self) -> Iterator[str]:
        stream = io.BytesIO(self.data)
        stream.seek(self.start)
        for row, line in enumerate(stream):
            try:
                yield line.decode("utf-8").rstrip("\r\n")
            except UnicodeDecodeError as error:
                byte = f"byte 0x{line[error.start]:02x}"
                raise _error(self.path, self.first_line + row, byte, "UTF-8 text") from None

    def _first_error(self, reason: str) -> SourceError:
        """Return the error for the first bad line, found line by line: pyarrow names no line."""
        for row, line in enumerate(self._lines()):
            cells = line.split(self.separator)
            if len(cells) != len(self.types):
                return _error(self.path, self.first_line + row, f"{len(cells)} fields", str(len(self.types)))
            for position, (cell, kind) in enumerate(zip(cells, self.types, strict=True)):
                if kind is float and cell not in self.missing and not _NUMBER.fullmatch(cell):
                    return self._not_a_number(row, cell, position)
        return SourceError(f"{self.path} is not a table of {len(self.types)} columns ({reason}): {REMEDY}")
