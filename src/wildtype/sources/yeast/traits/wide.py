"""Wide tables, hundreds or thousands of columns of numbers: the header decides what is read.

Legend: m lines · c columns of numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wildtype.errors import SourceError
from wildtype.sources.columns import Columns, read_columns
from wildtype.sources.text import REMEDY, read_bytes


def first_lines(path: Path, count: int, *, separator: str = "\t") -> list[list[str]]:
    """Return the fields of the first lines of a file; bytes that are not UTF-8 are replaced.

    Raises
    ------
    SourceError
        If the file cannot be read or has fewer lines.
    """
    data = read_bytes(path)
    lines, start = [], 0
    for number in range(1, count + 1):
        if start >= len(data):
            raise SourceError(f"{path} ends before line {number}, expected {count} header lines: {REMEDY}")
        end = data.find(b"\n", start) % (len(data) + 1)
        fields = data[start:end].decode("utf-8", errors="replace").split(separator)
        lines.append([field.strip() for field in fields])
        start = end + 1
    return lines


def read_wide(path: Path, key: str, *, separator: str = "\t") -> tuple[Columns, tuple[str, ...]]:
    """Read a table whose first column is named ``key`` and whose others are numbers; return also their names.

    Raises
    ------
    SourceError
        If the file cannot be read, the first column has another name, a column stands twice or has no name,
        or an entry is neither a number nor missing.
    """
    (header,) = first_lines(path, 1, separator=separator)
    if header[0] != key or len(header) < 2:
        raise SourceError(
            f"{path}, line 1: received the first column {header[0][:60]!r} of {len(header)}, expected "
            f"{key!r} and further columns; {REMEDY}"
        )
    refuse_repeated(path, header[1:])
    types: list[type[str] | type[float] | None] = [str, *[float] * (len(header) - 1)]
    return read_columns(path, types=types, separator=separator, header=header), tuple(header[1:])


def refuse_repeated(path: Path, names: Sequence[str]) -> None:
    """Raise ``SourceError`` if a column name is empty or stands twice."""
    seen: set[str] = set()
    for name in names:
        if not name or name in seen:
            raise SourceError(
                f"{path}, line 1: received the column name {name[:60]!r} again or empty, expected every name "
                f"once; {REMEDY}"
            )
        seen.add(name)


def stack(columns: Columns, positions: Sequence[int]) -> NDArray[np.float64]:
    """Return columns of numbers as rows [c, m]."""
    return np.stack([columns.numbers(position) for position in positions])
