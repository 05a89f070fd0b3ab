"""Compiled loops that copy what is known of measured mutants and genes to the tokens they became.

Legend: n genes · q queries · m measured mutants · t tokens per query · p phenotypes · c columns.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wildtype.compiled import njit
from wildtype.evidence.hashed_sets import COMPILED


def _read_rows(
    first: int,
    last: int,
    row: Any,
    condition: Any,
    value: Any,
    row_condition: Any,
    mask: Any,
    out: Any,
    known: Any,
    same: Any,
) -> None:
    """Write where rows [q, t] are (-1: none), their values [m, p], which are known, and whose condition is a
    query's.

    ``out`` and ``known`` [q, t, p] and ``same`` [q, t] are 0 on entry.
    """
    for query in range(first, last):
        for token in range(row.shape[1]):
            mask[query, token] = row[query, token] >= 0
            if row[query, token] < 0:
                continue
            at = np.uint64(row[query, token])
            same[query, token] = np.float32(row_condition[at] == condition[query])
            for p in range(value.shape[1]):
                if np.isfinite(value[at, p]):
                    out[query, token, p], known[query, token, p] = value[at, p], True


def _gather(first: int, last: int, gene: Any, table: Any, out: Any) -> None:
    """Write the rows of ``table`` [n, c] of genes [q, t] (-1: none) to ``out`` [q, t, c], zero on entry."""
    for at in range(first, last):
        for token in range(gene.shape[1]):
            if gene[at, token] >= 0:
                row = np.uint64(gene[at, token])
                for x in range(table.shape[1]):
                    out[at, token, x] = table[row, x]


read_rows = njit(**COMPILED)(_read_rows)
gather = njit(**COMPILED)(_gather)
