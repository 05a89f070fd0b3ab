"""What is wrong with the rows of a user's table: every row is said, and problems of one kind together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from wildtype.errors import SourceError

SHOWN = 5
"""Largest number of different problems of one kind that a message lists."""
ROWS_SHOWN = 5
"""Largest number of rows named for each of them."""
HEADER = 0
"""Row number of a problem of the header."""


@dataclass(frozen=True)
class Problem:
    """One fault of one row.

    Attributes
    ----------
    row : int
        Data row, from 1; `HEADER` for the header.
    line : int
        Line of a text file, or row of a sheet with its header counted; 0 where the file has neither.
    column : str
        Name of the column; empty where the whole row is meant.
    message : str
        What was received, what was expected.
    reason : str
        The kind of problem, which it has in common with others.
    """

    row: int
    line: int
    column: str
    message: str
    reason: str = ""

    def to_json(self) -> dict[str, object]:
        """Return the same in plain values."""
        return dict(vars(self))

    def __str__(self) -> str:
        return f"{_place(self)}{_column(self)}: {self.message}"


def _place(problem: Problem) -> str:
    where = f"row {problem.row}" if problem.row != HEADER else "the header"
    return where + (f" (line {problem.line})" if problem.line else "")


def _column(problem: Problem) -> str:
    return f", column {problem.column!r}" if problem.column else ""


class TableProblems(SourceError):
    """A table that is not read because of its problems, all of which are in `problems`, in order of rows.

    `asked` has the names that may be of controls or guides, by the kind of problem that they are.
    """

    def __init__(
        self,
        path: Path,
        problems: Sequence[Problem],
        rows: int,
        asked: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
    ) -> None:
        self.asked = asked
        self.path, self.problems, self.rows = path, tuple(problems), rows
        super().__init__("\n  ".join([f"{self.headline}:", *self.lines()]))

    @property
    def headline(self) -> str:
        """How many problems there are, in one sentence."""
        wrong = len({problem.row for problem in self.problems} - {HEADER})
        count = len(self.problems)
        return (
            f"{self.path} has {count:,} {'problem' if count == 1 else 'problems'} in {wrong:,} of "
            f"{self.rows:,} rows; nothing was read"
        )

    def lines(self) -> list[str]:
        """Return the problems, those of one kind together: at most `SHOWN` lines for each, and their number.

        Equal problems of several rows are one line. Rare kinds come first, so that no real error drowns.
        """
        kinds: dict[str, list[Problem]] = {}
        for problem in self.problems:
            kinds.setdefault(problem.reason, []).append(problem)
        return [line for kind in sorted(kinds.values(), key=len) for line in lines_of(kind)]


def lines_of(problems: Sequence[Problem]) -> list[str]:
    """Return the lines on the problems of one kind."""
    alike: dict[tuple[str, str], list[Problem]] = {}
    for problem in problems:
        alike.setdefault((problem.column, problem.message), []).append(problem)
    groups = list(alike.values())
    lines = []
    for group in groups[:SHOWN]:
        places = ", ".join(_place(problem) for problem in group[:ROWS_SHOWN])
        more = f" and {len(group) - ROWS_SHOWN:,} more rows" if len(group) > ROWS_SHOWN else ""
        lines.append(f"{places}{more}{_column(group[0])}: {group[0].message}")
    left = sum(len(group) for group in groups[SHOWN:])
    if left:
        lines.append(f"… and {left:,} more of this kind ({problems[0].reason or 'other problems'})")
    return lines
