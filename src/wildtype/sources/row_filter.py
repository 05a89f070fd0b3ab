"""Which rows of a file are used: every reader drops rows by reason, counts them, and reports the counts.

Legend: m rows of the file · c columns of a matrix, whose entries are counted in place of rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wildtype.datasets.reading import ReadReport
from wildtype.errors import SourceError
from wildtype.sources.text import AMBIGUOUS, REMEDY, UNKNOWN, GeneNames

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

LISTED_TWICE = "listed twice"
SAME_GENE = "both strains of one gene"


class RowFilter:
    """The rows that are left; every other row is counted once, under the first reason that holds for it.

    Parameters
    ----------
    rows : int, or bool [m] or [m, c]
        The number of rows, or a mask of the rows to begin with.

    Attributes
    ----------
    left : bool [m] or [m, c]
        The rows that are left.
    rows : int
        How many there were.
    dropped : dict of str to int
        The others, by reason.
    """

    def __init__(self, rows: int | Flags) -> None:
        self.left = np.ones(rows, bool) if isinstance(rows, int) else rows.copy()
        self.rows = int(self.left.sum())
        self.dropped: dict[str, int] = {}

    def drop(self, reason: str, mask: Flags) -> None:
        """Drop the rows of ``mask`` (of a shape that broadcasts to the rows) that are still left."""
        gone = self.left & mask
        if gone.any():
            self.dropped[reason] = self.dropped.get(reason, 0) + int(gone.sum())
            self.left ^= gone

    def drop_all(self, reasons: Mapping[str, Flags]) -> None:
        """Drop the rows of several masks, in their order."""
        for reason, mask in reasons.items():
            self.drop(reason, mask)

    def drop_names(self, *names: GeneNames) -> None:
        """Drop the rows [m] in which any of the names is not one gene."""
        # One unknown name decides, also beside an ambiguous one: the row could not be used in either case.
        self.drop(UNKNOWN, np.logical_or.reduce([of.position == -1 for of in names]))
        self.drop(AMBIGUOUS, np.logical_or.reduce([of.position == -2 for of in names]))

    def first_of_each(self, names: GeneNames, path: Path) -> tuple[Ints, Ints]:
        """Keep the first row of every gene; return the genes, ascending, and the row of each.

        Raises
        ------
        SourceError
            If no row is left.
        """
        rows = np.flatnonzero(self.left)
        if not rows.size:
            raise SourceError(
                f"{path} has no usable row of a gene of the organism, expected thousands: {REMEDY}"
            )
        genes, first = np.unique(names.position[rows], return_index=True)
        again = self.left.copy()
        again[rows[first]] = False
        self.drop(LISTED_TWICE, again)
        return genes, rows[first]

    def report(self, file: str, use: str, renamed: Flags | None = None) -> ReadReport:
        """Return the counts; ``renamed`` marks rows that name a gene by an older name or alias."""
        older = 0 if renamed is None else int((self.left & renamed).sum())
        return ReadReport(file, use, self.rows, int(self.left.sum()), dict(self.dropped), older)


def take(names: GeneNames, at: NDArray[np.integer] | Flags) -> GeneNames:
    """Return the names at some positions, or where a mask holds."""
    return GeneNames(names.position[at], names.renamed[at])


def repeated(values: Sequence[str] | NDArray[np.int64]) -> Flags:
    """Return which values [m] repeat an earlier one."""
    again = np.ones(len(values), bool)
    again[np.unique(np.asarray(values), return_index=True)[1]] = False
    return again
