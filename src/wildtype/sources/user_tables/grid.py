"""A user's file as rows of text, whatever it is: CSV, TSV, Parquet or a spreadsheet."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wildtype.errors import SourceError, reason_of, shown
from wildtype.sources import text
from wildtype.sources.sheets import read_sheet
from wildtype.sources.user_tables.problems import Problem

WIDEST = 256
"""Columns that a sheet may have."""
COMMENT = "#"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_WORKBOOKS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")
_REMEDY = "export the table again"


@dataclass(frozen=True, eq=False)
class Grid:
    """The cells of a table.

    Attributes
    ----------
    path : Path
        The file.
    header : tuple of f str
        Column names as they stand in the file.
    cells : list of m lists of f str
        Data rows that have a cell per column, without surrounding blanks; blank rows are left out.
    row, line : lists of m int
        Number of every data row from 1, and its line in the file (0: the file has no lines).
    rows : int
        All data rows, also those that `problems` is about.
    problems : tuple of Problem
        Rows with too few or too many cells.
    """

    path: Path
    header: tuple[str, ...]
    cells: list[list[str]]
    row: list[int]
    line: list[int]
    rows: int
    problems: tuple[Problem, ...]


def read_grid(path: str | Path, *, separator: str = "", sheet: str = "") -> Grid:
    """Read a table; its kind is told by its content.

    Parameters
    ----------
    path : path
        CSV or TSV (UTF-8 or UTF-16, also gzip-compressed, lines that begin with ``#`` above the header are
        comments), Parquet, .xlsx or .xls.
    separator : str
        Of a text file: one character; found out from the header if not given.
    sheet : str
        Of a workbook; the first one if not given.

    Raises
    ------
    SourceError
        If the file is missing, cannot be read, or has no header or no rows.
    """
    path = Path(path)
    if not path.is_file():
        raise SourceError(f"there is no file {str(path)!r}: check the path")
    try:
        data = text.read_bytes(path)
        if data.startswith(b"PAR1"):
            numbered = _parquet(path)
        elif data.startswith(_WORKBOOKS):
            rows = read_sheet(path, sheet or None, fields=WIDEST)
            numbered = zip(rows.line.tolist(), rows.cells, strict=True)
        else:
            numbered = _text(path, data, separator)
        return _grid(path, numbered)
    except SourceError as error:  # this file comes from its owner, not from a publisher
        raise SourceError(str(error).replace(text.REMEDY, _REMEDY)) from error


def _grid(path: Path, numbered: Iterator[tuple[int, list[str]]]) -> Grid:
    cells, row, line, problems = [], [], [], []
    header: tuple[str, ...] = ()
    count = 0
    for number, given in numbered:
        stripped = [cell.strip() for cell in given]
        while stripped and not stripped[-1]:
            stripped.pop()
        if not stripped:
            continue
        if not header:
            header = _header(path, stripped)
            continue
        count += 1
        if len(stripped) > len(header) or len(given) < len(header):
            message = f"received {len(given)} cells, expected {len(header)}"
            problems.append(Problem(count, number, "", message))
            continue
        cells.append(stripped + [""] * (len(header) - len(stripped)))
        row.append(count)
        line.append(number)
    if not header:
        raise SourceError(f"{path} is empty: give a header line and at least one row")
    if not count:
        raise SourceError(f"{path} has a header but no rows: give at least one")
    return Grid(path, header, cells, row, line, count, tuple(problems))


def _header(path: Path, names: list[str]) -> tuple[str, ...]:
    twice = next((name for name in names if name and names.count(name) > 1), None)
    if twice is not None:
        raise SourceError(f"{path} has the column {shown(twice)} twice: give every column another name")
    strange = next((name for name in names if any(ord(c) < 32 and not c.isspace() for c in name)), None)
    if strange is not None:
        raise SourceError(f"{path} has the column {shown(strange)}, expected printable text: rename it")
    return tuple(names)


def _text(path: Path, data: bytes, separator: str) -> Iterator[tuple[int, list[str]]]:
    try:
        content = data.decode("utf-16" if data.startswith(_UTF16) else "utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise SourceError(f"{path}, line {line} is not UTF-8 text: save the table as UTF-8") from None
    if "\0" in content:
        raise SourceError(f"{path} holds NUL characters, so that it is no text: {_REMEDY}")
    lines = io.StringIO(content, newline="").readlines()
    above = 0
    while above < len(lines) and (lines[above].startswith(COMMENT) or not lines[above].strip()):
        above += 1
    mark = separator or _separator(lines[above] if above < len(lines) else "")
    if len(mark) != 1 or mark in '"\r\n':
        raise SourceError(f"{separator!r} cannot separate columns: give one character, as in ';'")
    reader = csv.reader(lines[above:], delimiter=mark, strict=True)
    try:
        before = 0
        for cells in reader:
            yield above + before + 1, cells
            before = reader.line_num
    except csv.Error as error:
        raise SourceError(
            f"{path}, line {above + reader.line_num} cannot be taken apart ({reason_of(error)}): "
            "check its double quotes"
        ) from None


def _separator(header: str) -> str:
    """Return the first of tab, comma and semicolon that a header line holds; comma for a single column."""
    return next((mark for mark in "\t,;" if mark in header), ",")


def _parquet(path: Path) -> Iterator[tuple[int, list[str]]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path)
        names, columns = table.column_names, [column.to_pylist() for column in table.columns]
    except (pa.ArrowException, OSError, ValueError) as error:
        raise SourceError(f"{path} is not a whole Parquet file ({reason_of(error)}): {_REMEDY}") from error
    yield 0, [str(name) for name in names]
    for values in zip(*columns, strict=True):
        yield 0, [_spelled(value) for value in values]


def _spelled(value: Any) -> str:
    if value is None or value != value:
        return ""
    if isinstance(value, list | tuple):
        return ";".join(_spelled(item) for item in value)
    return repr(value) if isinstance(value, float) else str(value)
