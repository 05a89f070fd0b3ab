"""What is wrong with the files of an organism: problems of all files are collected and raised together."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wildtype.errors import SourceError, WildtypeError
from wildtype.sources.text import REMEDY
from wildtype.sources.user_tables.problems import Problem, lines_of

MOST = 1000
"""Problems that are kept of a file; further ones are counted."""
OWN_REMEDY = "save the file again"
"""What a user can do about a damaged file; publishers' files are fetched again."""


class Problems:
    """A collector of problems by file and row."""

    def __init__(self) -> None:
        self._found: dict[str, list[Problem]] = {}
        self._count: dict[str, int] = {}

    def __bool__(self) -> bool:
        return bool(self._count)

    def __len__(self) -> int:
        return sum(self._count.values())

    def add(self, file: str | Path, row: int, sentence: str, *, column: str = "") -> None:
        """Add a problem.

        Parameters
        ----------
        file : path
            As the description names it.
        row : int
            Line of a text file, or row of a sheet, from 1 with the header counted; 0: the whole file.
        sentence : str
            What was received, what was expected, and what to do.
        column : str
            Name of the column, where one cell is meant.
        """
        file = str(file)
        self._count[file] = self._count.get(file, 0) + 1
        found = self._found.setdefault(file, [])
        if len(found) < MOST:
            found.append(Problem(row, 0, column, sentence))

    def add_rows(self, file: str | Path, rows: Sequence[int] | NDArray[np.int64], sentence: str) -> None:
        """Add one problem for every row."""
        for row in rows[:MOST]:
            self.add(file, int(row), sentence)
        if len(rows) > MOST:
            self._count[str(file)] += len(rows) - MOST

    @contextmanager
    def of(self, file: str | Path) -> Iterator[None]:
        """Turn an error for users, raised within, into a problem of the whole file."""
        try:
            yield
        except OrganismProblems:
            raise
        except WildtypeError as error:
            # The file is named in front of every problem.
            message = re.sub(rf"^'?\S*{re.escape(str(file))}'?(:|,| has| is)? ", _said, str(error))
            self.add(file, 0, message.replace(REMEDY, OWN_REMEDY))

    def raise_any(self) -> None:
        """Raise ``OrganismProblems`` if there is a problem."""
        if self:
            raise OrganismProblems(self)

    def headline(self) -> str:
        """Return how many problems there are, in one sentence."""
        count, files = len(self), len(self._count)
        return (
            f"{count:,} {'problem' if count == 1 else 'problems'} in {files:,} "
            f"{'file' if files == 1 else 'files'}; nothing was written"
        )

    def lines(self) -> list[str]:
        """Return the problems of every file, equal ones of several rows in one line."""
        lines = []
        for file, problems in self._found.items():
            whole = dict.fromkeys(one.message for one in problems if not one.row)
            lines += [f"{file}: {line}" for line in (*whole, *lines_of([one for one in problems if one.row]))]
            if self._count[file] > len(problems):
                lines.append(f"{file}: … and {self._count[file] - len(problems):,} more problems")
        return lines

    def to_json(self) -> list[dict[str, object]]:
        """Return the problems in plain values: file, row (0: the whole file), column and message."""
        return [
            {"file": file, "row": one.row, "column": one.column, "message": one.message}
            for file, problems in self._found.items()
            for one in problems
        ]


def _said(named: re.Match[str]) -> str:
    verb = (named[1] or "").strip(":, ")
    return f"{verb} " if verb else ""


class OrganismProblems(SourceError):
    """An organism that is not made because of the problems of its files, all of which are in `problems`."""

    def __init__(self, problems: Problems) -> None:
        self.problems = problems
        super().__init__("\n  ".join([f"{self.headline}:", *problems.lines()]))

    @property
    def headline(self) -> str:
        """How many problems there are, in one sentence."""
        return self.problems.headline()
