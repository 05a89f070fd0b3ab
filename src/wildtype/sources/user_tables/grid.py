"""A user's file as rows of text (CSV, TSV, Parquet or a spreadsheet), and the problems of its rows."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wildtype.errors import SourceError, reason_of, shown
from wildtype.sources import text
from wildtype.sources.sheets import read_sheet

WIDEST = 256
"""Columns that a sheet may have."""
COMMENT = "#"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_WORKBOOKS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")
_REMEDY = "export the table again"
SHOWN = 20
"""Largest number of different problems that a message lists."""
ROWS_SHOWN = 5
"""Largest number of rows named for each of them."""


@dataclass(frozen=True)
class Problem:
    """One fault of one row.

    Attributes
    ----------
    row : int
        Data row, from 1.
    line : int
        Line of a text file, or row of a sheet with its header counted; 0 where the file has neither.
    column : str
        Name of the column; empty where the whole row is meant.
    message : str
        What was received, what was expected.
    """

    row: int
    line: int
    column: str
    message: str

    def to_json(self) -> dict[str, object]:
        """Return the same in plain values."""
        return dict(vars(self))

    def __str__(self) -> str:
        return f"{_place(self)}{_column(self)}: {self.message}"


def _place(problem: Problem) -> str:
    return f"row {problem.row}" + (f" (line {problem.line})" if problem.line else "")


def _column(problem: Problem) -> str:
    return f", column {problem.column!r}" if problem.column else ""


class TableProblems(SourceError):
    """A table that is not read because of its problems, all of which are in `problems`, in order of rows."""

    def __init__(self, path: Path, problems: Sequence[Problem], rows: int) -> None:
        self.path, self.problems, self.rows = path, tuple(problems), rows
        super().__init__("\n  ".join([f"{self.headline}:", *self.lines()]))

    @property
    def headline(self) -> str:
        """How many problems there are, in one sentence."""
        wrong = len({problem.row for problem in self.problems})
        count = len(self.problems)
        return (
            f"{self.path} has {count:,} {'problem' if count == 1 else 'problems'} in {wrong:,} of "
            f"{self.rows:,} rows; nothing was read"
        )

    def lines(self) -> list[str]:
        """Return one line per different problem, with the rows that have it; at most `SHOWN`."""
        alike: dict[tuple[str, str], list[Problem]] = {}
        for problem in self.problems:
            alike.setdefault((problem.column, problem.message), []).append(problem)
        groups = list(alike.values())
        lines = []
        for group in groups[:SHOWN]:
            places = ", ".join(_place(problem) for problem in group[:ROWS_SHOWN])
            more = f" and {len(group) - ROWS_SHOWN:,} more rows" if len(group) > ROWS_SHOWN else ""
            lines.append(f"{places}{more}{_column(group[0])}: {group[0].message}")
        left = sum(len(group) for group in groups[SHOWN:])
        if left:
            lines.append(f"… and {left:,} more problems in other rows")
        return lines


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
    """Read a table; its content decides on the format.

    Parameters
    ----------
    path : path
        CSV or TSV (UTF-8 or UTF-16, also gzip-compressed, lines that begin with ``#`` above the header are
        comments), Parquet, .xlsx or .xls.
    separator : str
        Of a text file: one character; taken from the header line if not given.
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
        # By content, because users rename files: an .xlsx called .csv is common.
        if data.startswith(b"PAR1"):
            numbered = _parquet(path)
        elif data.startswith(_WORKBOOKS):
            rows = read_sheet(path, sheet or None, fields=WIDEST)
            numbered = zip(rows.line.tolist(), rows.cells, strict=True)
        else:
            numbered = _text(path, data, separator)
        return _grid(path, numbered)
    except SourceError as error:  # the remedy for publishers' files does not fit a file of the user
        raise SourceError(str(error).replace(text.REMEDY, _REMEDY)) from error


def _grid(path: Path, numbered: Iterator[tuple[int, list[str]]]) -> Grid:
    cells, row, line, problems = [], [], [], []
    header: tuple[str, ...] = ()
    count = 0
    for number, given in numbered:
        stripped = [cell.strip() for cell in given]
        # Spreadsheet programs export empty columns at the right edge and empty rows at the end.
        while stripped and not stripped[-1]:
            stripped.pop()
        if not stripped:
            continue
        if not header:
            header = _header(path, stripped)
            continue
        count += 1
        # A short row is a lost cell, not an empty one: values could have moved to the left.
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
        # Excel saves "Unicode text" as UTF-16 and UTF-8 with a byte order mark.
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
    # strict: an unbalanced quote is an error instead of a cell that swallows the rest of the file.
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
    # Only the header decides: cells hold decimal commas, and gene sets with semicolons.
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
    # NaN is the only value that differs from itself.
    if value is None or value != value:
        return ""
    if isinstance(value, list | tuple):
        return ";".join(_spelled(item) for item in value)
    # repr keeps all digits of a float; str of other types does.
    return repr(value) if isinstance(value, float) else str(value)
