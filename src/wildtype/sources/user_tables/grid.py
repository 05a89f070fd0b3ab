"""A user's file as rows of text: CSV, TSV, Parquet or a spreadsheet, whatever surrounds its header."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wildtype.characters import first_fault
from wildtype.errors import SourceError, reason_of, shown
from wildtype.sources import text
from wildtype.sources.sheets import read_sheet, sheets_with_cells
from wildtype.sources.user_tables.numbers import NumberStyle
from wildtype.sources.user_tables.problems import Problem
from wildtype.unpacking import read_parquet

WIDEST = 1 << 14
"""Columns that a sheet may have."""
COMMENT = "#"
SEPARATORS = "\t,;|"
"""Characters that may separate columns, in the order in which they are preferred."""
NO_NAME = "the first column has no name"
"""Remark on a table whose rows have one cell more than its header, as R writes it."""
LOOKED_AT = 50
"""Lines by which the separator of a text file is found."""
REPEATED, NOTES, CELLS = "repeated header", "notes below the table", "number of cells"
FOOTNOTES, SENTENCE = "*†‡§#", 4
"""Marks that begin a note, and words from which on a single text is one."""
_BLANK = re.compile(r"\s")
_BREAK = re.compile(r"[\r\n\t]")
UTF16 = (b"\xff\xfe", b"\xfe\xff")
"""How texts of that encoding begin."""
_WORKBOOKS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")
_REMEDY = "export the table again"


@dataclass(frozen=True, eq=False)
class Numbers:
    """Numbers of m rows for v measured genes, as means of several cells.

    Attributes
    ----------
    names : tuple of v str
        The measured genes.
    value, sd : float64 [m, v]
        Mean, and standard deviation over n - 1; NaN where there is none.
    n : int64 [m]
        Cells behind each mean.
    """

    names: tuple[str, ...]
    value: NDArray[np.float64]
    sd: NDArray[np.float64]
    n: NDArray[np.int64]


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
    notes : tuple of str
        What was made of lines that are no rows.
    left_out : dict of str to int
        Number of such lines below the header, by reason.
    numbers : Numbers or None
        Numbers that were measured for every row and stand in no cell.
    """

    path: Path
    header: tuple[str, ...]
    cells: list[list[str]]
    row: list[int]
    line: list[int]
    rows: int
    problems: tuple[Problem, ...]
    notes: tuple[str, ...] = ()
    left_out: dict[str, int] = field(default_factory=dict)
    numbers: Numbers | None = None


def sheets_of(path: str | Path, named: str = "") -> list[str]:
    """Return the sheets of a workbook that are meant: those named, or the only one with cells.

    Any other file has one sheet without a name.

    Raises
    ------
    SourceError
        If several have cells and none is named.
    """
    path = Path(path)
    if not path.is_file() or not text.read_bytes(path).startswith(_WORKBOOKS):
        return [named]
    try:
        known = sheets_with_cells(path)
    except SourceError as error:
        raise SourceError(str(error).replace(text.REMEDY, _REMEDY)) from error
    if named:
        return [named] if named in known or "," not in named else [part.strip() for part in named.split(",")]
    if len(known) > 1:
        raise SourceError(
            f"{path} has several sheets ({', '.join(map(shown, known))}): name one with --sheet, or several "
            f"that are replicates, separated by commas"
        )
    return known or [""]


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
    padded = False  # sheets have no short rows: their empty cells are not stored
    try:
        data = text.read_bytes(path)
        # By content, because users rename files: an .xlsx called .csv is common.
        if data.startswith(b"PAR1"):
            numbered = _parquet(path)
        elif data.startswith(_WORKBOOKS):
            rows = read_sheet(path, sheet or None, fields=WIDEST, as_it_is=True)
            numbered = zip(rows.line.tolist(), rows.cells, strict=True)
            padded = True
        else:
            numbered = _text(path, data, separator)
        return _grid(path, numbered, padded)
    except SourceError as error:  # the remedy for publishers' files does not fit a file of the user
        raise SourceError(str(error).replace(text.REMEDY, _REMEDY)) from error


Line = tuple[int, list[str], list[str]]
"""Number, cells as they are, and cells without blanks and without empty ones at the right edge."""


def _grid(path: Path, numbered: Iterator[tuple[int, list[str]]], padded: bool) -> Grid:
    lines: list[Line] = []
    for number, given in numbered:
        # Names in sheets are broken over lines to make them fit.
        # A search through the joined line spares wide matrices a step per cell.
        blanks = _BLANK.search("".join(given)) is not None
        stripped = [cell.strip() for cell in given] if blanks else list(given)
        # Spreadsheet programs export empty columns at the right edge and empty rows at the end.
        while stripped and not stripped[-1]:
            stripped.pop()
        if stripped:
            lines.append((number, given, stripped))
    if not lines:
        raise SourceError(f"{path} is empty: give a header line and at least one row")
    header, above, notes = _header(path, lines)
    below = _notes_below(lines, above, header)
    if below:
        notes.append(f"lines below the table are taken for notes: {shown(lines[-below][2][0])}")
    cells, row, line, problems = [], [], [], []
    count = repeated = 0
    for number, given, stripped in lines[above : len(lines) - below]:
        if tuple(stripped) == header:
            repeated += 1
            continue
        count += 1
        # A short row is a lost cell, not an empty one: values could have moved to the left.
        if len(stripped) > len(header) or (len(given) < len(header) and not padded):
            problems.append(Problem(count, number, "", _width(given, stripped, len(header)), CELLS))
            continue
        cells.append(stripped + [""] * (len(header) - len(stripped)))
        row.append(count)
        line.append(number)
    if not count:
        raise SourceError(f"{path} has a header but no rows: give at least one")
    left_out = {reason: found for reason, found in ((REPEATED, repeated), (NOTES, below)) if found}
    if repeated:
        notes.append(f"the header stands {repeated + 1:,} times; it counts once")
    return Grid(path, header, cells, row, line, count, tuple(problems), tuple(notes), left_out)


def _notes_below(lines: Sequence[Line], above: int, header: Sequence[str]) -> int:
    """Return how many lines at the end are notes: a single text with a footnote mark, or a sentence."""
    count = 0
    while len(header) > 1 and len(lines) - count > above + 1:
        filled = [cell for cell in lines[len(lines) - 1 - count][2] if cell]
        if len(filled) != 1 or not (filled[0][0] in FOOTNOTES or len(filled[0].split()) >= SENTENCE):
            break
        count += 1
    return count


def _width(given: Sequence[str], stripped: Sequence[str], expected: int) -> str:
    """Return what is wrong with a row that has another number of cells than the header."""
    count = len(stripped) if len(stripped) > expected else len(given)
    other = next((m for m in SEPARATORS if len(given) == 1 and given[0].count(m) == expected - 1 > 0), None)
    hint = f": it is separated by {other!r}, unlike the header; use one separator" if other else ""
    return f"received {count} cells, expected {expected}{hint}"


def _header(path: Path, lines: Sequence[Line]) -> tuple[tuple[str, ...], int, list[str]]:
    """Return the names of the columns, the number of lines that they and titles take, and remarks."""
    notes: list[str] = []
    at = 0
    while at + 2 < len(lines) and sum(map(bool, lines[at][2])) == 1 and _is_header(lines[at + 1], 2):
        notes.append(f"line {lines[at][0]} is taken for a title: {shown(next(filter(None, lines[at][2])))}")
        at += 1
    first, above = lines[at][2], at + 1
    names = list(first)
    filled = sum(map(bool, first))
    # A merged cell leaves its name in the first of its columns, above the names of each.
    below = lines[above] if above + 1 < len(lines) else lines[at]
    wider = "" in first[1:] or len(below[2]) > len(first)
    # Names that stand beside the merged cell are above blanks, and names of its columns below blanks.
    open_below = any(over and not under for over, under in zip(first, below[2], strict=False))
    if wider and _is_header(below, 2 if open_below else filled + 1):
        names = _joined(first, below[2])
        notes.append(f"lines {lines[at][0]} and {below[0]} are taken for one header: {', '.join(names)}")
        above += 1
    rows = [stripped for _, _, stripped in lines[above:]]
    if len(names) == 1 and (apart := _otherwise(names[0], rows)):
        names = apart
        notes.append("the header has another separator than the rows")
    elif rows and all(len(row) == len(names) + 1 and NumberStyle().looks_like(row[-1]) for row in rows):
        # R writes the names of rows without a name of their column.
        if all(re.fullmatch(r"[-+]?\d+", row[-2]) and row[-1].isdigit() for row in rows):
            raise SourceError(
                f"{path}: every row has one cell more than the header, as if decimal commas separated "
                f"columns ({shown(','.join(rows[0]))}): save the table with semicolons or tabs"
            )
        names = ["", *names]
        notes.append(NO_NAME)
    # Cells of sheets may span lines.
    if fault := first_fault(_BREAK.sub(" ", name) for name in names):
        raise SourceError(f"{path}, line {lines[above - 1][0]}, has a column whose name {fault}")
    return tuple(names), above, notes


def _is_header(line: Line, least: int) -> bool:
    """Return whether a line has names in at least some of its cells, and no number."""
    filled = [cell for cell in line[2] if cell]
    return len(filled) >= least and not any(map(NumberStyle().looks_like, filled))


def _joined(above: list[str], below: list[str]) -> list[str]:
    """Return the names that two lines of a header give together: those below, with those above if needed."""
    width = max(len(above), len(below))
    above, below = (names + [""] * (width - len(names)) for names in (above, below))
    carried = ""
    names = []
    for over, under in zip(above, below, strict=True):
        carried = over or carried
        names.append(f"{carried} {under}".strip() if below.count(under) > 1 or not under else under)
    return names


def _otherwise(name: str, rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the names of a header that was read as one name and has another separator than its rows."""
    widths = {len(row) for row in rows}
    parts = next((name.split(mark) for mark in SEPARATORS if mark in name), [name])
    return [part.strip() for part in parts] if widths == {len(parts)} and len(parts) > 1 else []


def decoded(path: Path, data: bytes) -> str:
    """Return the text of a user's file; raises ``SourceError`` where it is none."""
    try:
        # Excel saves "Unicode text" as UTF-16 and UTF-8 with a byte order mark.
        content = data.decode("utf-16" if data.startswith(UTF16) else "utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise SourceError(f"{path}, line {line} is not UTF-8 text: save the table as UTF-8") from None
    if "\0" in content:
        raise SourceError(f"{path} holds NUL characters, so that it is no text: {_REMEDY}")
    return content


def is_text(data: bytes) -> bool:
    """Return whether a file is no Parquet file and no workbook, by how it begins."""
    return not data.startswith((b"PAR1", *_WORKBOOKS))


def _text(path: Path, data: bytes, separator: str) -> Iterator[tuple[int, list[str]]]:
    content = decoded(path, data)
    lines = io.StringIO(content, newline="").readlines()
    above = 0
    while above < len(lines) and (lines[above].startswith(COMMENT) or not lines[above].strip()):
        above += 1
    mark = separator or separator_of(lines[above : above + LOOKED_AT])
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


def separator_of(lines: Sequence[str]) -> str:
    """Return the character that divides most lines into equally many cells; comma for a single column."""
    # Not the first mark of the header decides: cells hold decimal commas, and gene sets with semicolons.
    bare = [re.sub(r'"[^"]*"', "", line) for line in lines if line.strip()]

    def even(mark: str) -> int:
        counts = Counter(count for line in bare if (count := line.count(mark)))
        return max(counts.values(), default=0)

    best = max(SEPARATORS, key=even)
    return best if even(best) else ","


def _parquet(path: Path) -> Iterator[tuple[int, list[str]]]:
    import pyarrow as pa

    try:
        table = read_parquet(path)
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
