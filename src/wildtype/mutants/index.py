"""`SetIndex`: which rows of a table perturb exactly these genes? Answered for many sets at once, by binary
search.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wildtype.mutants.table import MutantTable


class SetIndex:
    """Finds rows by unordered gene set, whatever was done to the genes.

    Parameters
    ----------
    table : MutantTable
        Rows to find; where several rows have one gene set, the first is found.

    Notes
    -----
    Building costs O(m log m), a query O(log m), for m rows.
    """

    def __init__(self, table: MutantTable) -> None:
        self._keys: dict[int, NDArray[np.void]] = {}
        self._rows: dict[int, NDArray[np.int64]] = {}
        for k in np.unique(table.order):
            rows = np.flatnonzero(table.order == k)
            keys = _keys(table, rows, int(k))
            unique, first = np.unique(keys, return_index=True)
            self._keys[int(k)], self._rows[int(k)] = unique, rows[first]

    def find(self, table: MutantTable) -> NDArray[np.int64]:
        """Return, for every row of ``table`` [M], the first indexed row with the same gene set, or -1."""
        found = np.full(len(table), -1, np.int64)
        for k in np.unique(table.order):
            known = self._keys.get(int(k))
            if known is None:
                continue
            rows = np.flatnonzero(table.order == k)
            keys = _keys(table, rows, int(k))
            at = np.minimum(np.searchsorted(known, keys), len(known) - 1)
            hit = known[at] == keys
            found[rows[hit]] = self._rows[int(k)][at[hit]]
        return found


def _keys(table: MutantTable, rows: NDArray[np.int64], k: int) -> NDArray[np.void]:
    """Return one fixed-width byte key per row, whose order as bytes is the order of the gene tuples."""
    genes = table.gene[table.offsets[rows][:, None] + np.arange(k)]
    width = max(8 * k, 1)
    if not k:
        return np.zeros(len(rows), dtype=f"V{width}")
    return np.ascontiguousarray(genes.astype(">i8")).view(f"V{width}").reshape(-1)
