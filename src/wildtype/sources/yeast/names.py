"""Rows of a file whose names are genes: pairs of names, or one row per gene; the others are counted.

Legend: m rows of the file.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wildtype.errors import SourceError
from wildtype.sources.text import AMBIGUOUS, REMEDY, UNKNOWN, GeneNames, count_reasons

SAME_GENE = "both strains of one gene"


def match_pairs(first: GeneNames, second: GeneNames) -> tuple[NDArray[np.bool_], dict[str, int], int]:
    """Return where both names of a row are genes [m], the others by reason, and the kept ones renamed."""
    unknown = (first.position == -1) | (second.position == -1)
    ambiguous = ~unknown & ~(first.found & second.found)
    kept = first.found & second.found
    renamed = int((kept & (first.renamed | second.renamed)).sum())
    return kept, count_reasons({UNKNOWN: unknown, AMBIGUOUS: ambiguous}), renamed


def one_row_per_gene(
    names: GeneNames, path: Path, usable: NDArray[np.bool_] | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int64], dict[str, int]]:
    """Return the genes of a file, ascending, the first usable row of each, and the other rows by reason.

    Parameters
    ----------
    names : GeneNames
        The gene of every row [m].
    path : Path
        The file, for messages.
    usable : bool [m], optional
        Rows with a value; the others are the caller's to count.

    Raises
    ------
    SourceError
        If no usable row is left.
    """
    rows = np.flatnonzero(names.found if usable is None else names.found & usable)
    if not rows.size:
        raise SourceError(f"{path} has no usable row of a gene of the organism, expected thousands: {REMEDY}")
    genes, first = np.unique(names.position[rows], return_index=True)
    again = int(rows.size - genes.size)
    return genes, rows[first], names.dropped() | ({"listed twice": again} if again else {})
