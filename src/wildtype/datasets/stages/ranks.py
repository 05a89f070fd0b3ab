"""Ranks of rows that several columns of integers describe: sorting and grouping by all of them at once.

Legend: m rows · k perturbed genes per row · Σk their sum.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from wildtype.datasets.codes import joint

Ints = NDArray[np.int64]


def ranks(columns: Sequence[Ints]) -> Ints:
    """Return the rank [M] of every row by its columns [M] of numbers ≥ 0, the first the most significant.

    Equal rows have equal ranks, and ranks are 0 … distinct rows - 1.
    """
    codes = joint([(column, int(column.max()) + 1 if column.size else 1) for column in columns])
    return np.unique(codes, return_inverse=True)[1].reshape(-1).astype(np.int64, copy=False)


def ragged_ranks(columns: Sequence[Ints], offsets: Ints) -> Ints:
    """Return the rank [M] of ragged rows: by number of genes, then by all k entries of the first column, ….

    Parameters
    ----------
    columns : sequence of int64 [Σk]
        Numbers ≥ 0, rows one after the other.
    offsets : int64 [M+1]
        Row i owns entries ``offsets[i]:offsets[i+1]``.
    """
    order = np.diff(offsets)
    out = np.zeros(len(order), np.int64)
    used = 0
    for k in np.unique(order):
        rows = np.flatnonzero(order == k)
        start = offsets[rows]
        within = [column[start + i] for column in columns for i in range(k)]
        out[rows] = used + (ranks(within) if k else 0)
        used = int(out[rows].max()) + 1
    return out


def first_of_each(rank: Ints) -> Ints:
    """Return the first row of every rank 0 … distinct rows - 1."""
    return np.unique(rank, return_index=True)[1]
