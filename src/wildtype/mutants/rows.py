"""Gene pairs of ragged rows, statistics over segments, and code books.

Legend: m rows · k genes of a row · p pairs of all rows, Σ k(k−1)/2 · q items, Σk · f features.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from wildtype.mutants.ragged import rows_by_order
from wildtype.mutants.table import MutantTable


class Codes:
    """A code book: the distinct integers seen in training, and the position of any code among them.

    Parameters
    ----------
    codes : int64 or uint64 [any]
        Codes seen, with repeats.
    at_least : int
        Codes seen less often are left out.
    """

    def __init__(self, codes: NDArray[np.int64] | NDArray[np.uint64], at_least: int = 1) -> None:
        values, counts = np.unique(codes, return_counts=True)
        self.values = values[counts >= at_least]

    def __len__(self) -> int:
        return len(self.values)

    def find(self, codes: NDArray[np.int64] | NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return the position of every code, -1 where it was not seen."""
        if not len(self.values):
            return np.full(codes.shape, -1, np.int64)
        at = np.minimum(np.searchsorted(self.values, codes), len(self.values) - 1)
        return np.where(self.values[at] == codes, at, -1)


def pairs_of(table: MutantTable) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return row, smaller and larger gene of every unordered pair [p] within a row, sorted by row."""
    return pairs_in(table.gene, table.offsets)


def pairs_in(
    gene: NDArray[np.int64], offsets: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return `pairs_of` ragged rows given as arrays."""
    rows, lefts, rights = [], [], []
    for k, at, places in rows_by_order(offsets):
        if k < 2:
            continue
        genes = gene[places]
        i, j = np.triu_indices(k, 1)
        rows.append(np.repeat(at, len(i)))
        lefts.append(genes[:, i].reshape(-1))
        rights.append(genes[:, j].reshape(-1))
    if not rows:
        empty = np.zeros(0, np.int64)
        return empty, empty, empty
    row = np.concatenate(rows)
    # Rows were visited order by order; a stable sort restores theirs and keeps pairs within a row ascending.
    order = np.argsort(row, kind="stable")
    return row[order], np.concatenate(lefts)[order], np.concatenate(rights)[order]


def segment(
    values: NDArray[np.float32], row: NDArray[np.int64], m: int, how: Sequence[str]
) -> NDArray[np.float32]:
    """Reduce values [p, f] by row (ascending) to [m, len(how)·f]; NaN is skipped, nothing gives NaN.

    ``how`` names any of ``mean``, ``sum``, ``min``, ``max``; the sum over nothing is NaN too.
    """
    p, f = values.shape
    out = np.full((m, len(how) * f), np.nan, np.float32)
    if not p or not f:
        return out
    # `reduceat` gives a wrong value for empty segments, so only rows that have values are reduced.
    starts = np.flatnonzero(np.concatenate([[True], row[1:] != row[:-1]]))
    seen, missing = row[starts], np.isnan(values)
    count = np.add.reduceat((~missing).astype(np.float32), starts, axis=0)
    for at, name in enumerate(how):
        if name in ("mean", "sum"):
            part = np.add.reduceat(np.where(missing, 0, values), starts, axis=0)
            if name == "mean":
                part = part / np.maximum(count, 1)
        else:
            ufunc, fill = (np.minimum, np.inf) if name == "min" else (np.maximum, -np.inf)
            part = ufunc.reduceat(np.where(missing, np.float32(fill), values), starts, axis=0)
        out[seen, at * f : (at + 1) * f] = np.where(count > 0, part, np.nan)
    return out
