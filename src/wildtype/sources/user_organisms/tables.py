"""Tables of names with millions of rows, such as edge lists: columns by name or position, read by Arrow.

Rows that cannot be taken apart are problems with their row. Legend: m rows that can.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wildtype.characters import name_fault
from wildtype.errors import SourceError, reason_of, shown
from wildtype.sources.columns import TextColumn, text_column
from wildtype.sources.text import read_bytes
from wildtype.sources.user_organisms.description import Column
from wildtype.sources.user_organisms.problems import Problems
from wildtype.sources.user_tables.grid import (
    COMMENT,
    LOOKED_AT,
    UTF16,
    Grid,
    decoded,
    is_text,
    read_grid,
    separator_of,
)

_BLOCK = 16 << 20


@dataclass(eq=False)
class Table:
    """A table whose first row may be a header.

    Attributes
    ----------
    name : str
        The file, for messages: as the description has it.
    first : list of lists of str
        Cells of the first rows, the header included.
    notes : list of str
        What was guessed.
    """

    name: str
    first: list[list[str]]
    notes: list[str] = field(default_factory=list)
    _text: bytes = b""
    _separator: str = ""
    _above: int = 0
    _grid: Grid | None = None

    @property
    def width(self) -> int:
        """Number of columns."""
        return len(self.first[0])

    def at(self, column: Column, header: bool) -> int:
        """Return the position of a column that is given by its name, or by its position from 1.

        Raises
        ------
        SourceError
            If there is none, or there are several of that name.
        """
        if isinstance(column, int):
            if 1 <= column <= self.width:
                return column - 1
            raise SourceError(
                f"{self.name} has {self.width} columns, and column {column} is to be read: correct it"
            )
        names = self.first[0] if header else []
        exact = [i for i, name in enumerate(names) if name == column]
        for found in (exact, [i for i, name in enumerate(names) if name.casefold() == column.casefold()]):
            if len(found) > 1:
                raise SourceError(
                    f"{self.name} has several columns {column!r}: give the position of one, from 1"
                )
            if found:
                return found[0]
        has = f"it has {', '.join(shown(name) for name in names[:20])}" if header else "it has no header"
        raise SourceError(
            f"{self.name} has no column {column!r} ({has}): name one that it has, or its position"
        )

    def columns(
        self, positions: Sequence[int], header: bool, problems: Problems
    ) -> tuple[list[TextColumn], NDArray[np.int64]]:
        """Return columns [m each] and the row [m] of the file, from 1, in which their cells stand.

        Rows with too few or too many cells are added to ``problems``; blank ones are passed over.
        """
        read = self._of_text if self._grid is None else self._of_grid
        found, line = read(positions, header, problems)
        for column in found:
            for code, name in enumerate(column.names):
                if fault := name_fault(name):
                    problems.add_rows(self.name, line[column.code == code], fault)
        return found, line

    def _of_grid(
        self, positions: Sequence[int], header: bool, problems: Problems
    ) -> tuple[list[TextColumn], NDArray[np.int64]]:
        grid = self._grid
        assert grid is not None
        for problem in grid.problems:
            problems.add(self.name, problem.line or problem.row + 1, problem.message)
        rows = grid.cells if header else [list(grid.header), *grid.cells]
        line = [number or row + 1 for number, row in zip(grid.line, grid.row, strict=True)]
        found = []
        for position in positions:
            names, code = np.unique(
                np.array([row[position] for row in rows], dtype=object), return_inverse=True
            )
            found.append(TextColumn(tuple(names.tolist()), code.astype(np.int32)))
        return found, np.array(line if header else [1, *line], dtype=np.int64)

    def _of_text(
        self, positions: Sequence[int], header: bool, problems: Problems
    ) -> tuple[list[TextColumn], NDArray[np.int64]]:
        import pyarrow as pa

        start = (self._text.find(b"\n") + 1 or len(self._text)) if header else 0
        before = self._above + (1 if header else 0)
        wrong: list[tuple[int, str]] = []

        def refused(row: Any) -> str:
            wrong.append((row.number, _width(row) if row.text.strip() else ""))
            return "skip"

        try:
            # Several threads are faster, but then Arrow knows no row numbers.
            table = self._parsed(start, positions, None)
        except pa.ArrowInvalid:
            wrong.clear()
            try:
                table = self._parsed(start, positions, refused)
            except pa.ArrowInvalid as error:
                decoded(Path(self.name), self._text)  # says in which line the text is none
                raise SourceError(
                    f"{self.name} cannot be taken apart ({reason_of(error)}): check its double quotes"
                ) from None
        lines = self._text.count(b"\n", start) + (len(self._text) > start)
        # Independent count: an unbalanced double quote joins lines.
        if table.num_rows + len(wrong) != lines:
            told = table.num_rows + len(wrong)
            raise SourceError(
                f"{self.name} has {lines:,} rows, of which {told:,} can be told apart: "
                f"check its double quotes"
            )
        for number, message in wrong:
            if message:
                problems.add(self.name, before + number, message)
        kept = np.ones(lines, bool)
        kept[[number - 1 for number, _ in wrong]] = False
        found = [text_column(table.column(str(i))) for i in positions]
        if b"\n\n" in self._text:  # Arrow makes a row of empty cells of a blank line
            ends = np.flatnonzero(np.frombuffer(self._text, np.uint8, offset=start) == ord("\n"))
            blank = np.zeros(lines, bool)
            blank[np.flatnonzero(np.diff(ends, prepend=-1) == 1)] = True
            found = [TextColumn(column.names, column.code[~blank[kept]]) for column in found]
            kept &= ~blank
        return found, np.flatnonzero(kept) + before + 1

    def _parsed(self, start: int, positions: Sequence[int], refused: Any) -> Any:
        import pyarrow as pa
        import pyarrow.csv as arrow

        types = {str(i): pa.dictionary(pa.int32(), pa.utf8()) for i in positions}
        return arrow.read_csv(
            pa.BufferReader(pa.py_buffer(self._text).slice(start)),
            read_options=arrow.ReadOptions(
                column_names=[str(i) for i in range(self.width)],
                block_size=_BLOCK,
                use_threads=refused is None,
            ),
            parse_options=arrow.ParseOptions(
                delimiter=self._separator, ignore_empty_lines=False, invalid_row_handler=refused
            ),
            convert_options=arrow.ConvertOptions(
                column_types=types, include_columns=list(types), strings_can_be_null=False
            ),
        )


def _width(row: Any) -> str:
    return f"received {row.actual_columns} cells, expected {row.expected_columns}: write one row per line"


def open_table(path: Path, name: str, separator: str = "") -> Table:
    """Open a table: CSV or TSV (lines with ``#`` above it are comments), Parquet, or a workbook.

    Raises
    ------
    SourceError
        If it cannot be read, is empty, or the separator is not one character.
    """
    data = read_bytes(path)
    if not is_text(data):
        grid = read_grid(path)
        return Table(name, [list(grid.header), *grid.cells[:LOOKED_AT]], list(grid.notes), _grid=grid)
    if data.startswith(UTF16) or b"\0" in data:
        data = decoded(Path(name), data).encode("utf-8")
    data = data.removeprefix(b"\xef\xbb\xbf")
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    data = data.rstrip(b"\n")
    start = above = 0
    while data.startswith((COMMENT.encode(), b"\n"), start):
        start, above = data.find(b"\n", start) + 1 or len(data), above + 1
    if not data[start:].strip():
        raise SourceError(f"{name} is empty: give at least one row")
    data = data[start:] if start else data
    lines = [line for line in _first_lines(data, name) if line.strip()]
    mark = separator.replace("\\t", "\t") or separator_of(lines)
    notes = []
    if not separator:
        # Comma is the answer where nothing separates; edge lists of other programs have blanks.
        if all(mark not in line for line in lines) and all(" " in line for line in lines):
            mark = " "
        notes.append(f"separated by {_NAMES.get(mark, repr(mark))}")
    if len(mark) != 1 or mark in '"\r\n':
        raise SourceError(f"{name}: {separator!r} cannot separate columns: give one character, as in ';'")
    try:
        first = [[cell.strip() for cell in row] for row in csv.reader(lines, delimiter=mark, strict=True)]
    except csv.Error as error:
        raise SourceError(
            f"{name} cannot be taken apart ({reason_of(error)}): check its double quotes"
        ) from None
    return Table(name, first, notes, data, mark, above)


_NAMES = {"\t": "tabs", ",": "commas", ";": "semicolons", " ": "blanks", "|": "'|'"}


def _first_lines(data: bytes, name: str) -> list[str]:
    lines = [line for line, _ in zip(io.BytesIO(data), range(LOOKED_AT), strict=False)]
    return decoded(Path(name), b"".join(lines)).splitlines()


def distinct(columns: Iterable[TextColumn]) -> list[str]:
    """Return the texts of columns, each once, ascending; no empty one."""
    return sorted({name for column in columns for name in column.names if name})
