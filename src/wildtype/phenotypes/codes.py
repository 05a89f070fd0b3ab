"""Integer codes that stand for rows of several columns, and positions in ragged ones.

Legend: m rows · k entries of one row · Σk entries of all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


def joint(columns: Sequence[tuple[NDArray[Any], int]]) -> Ints:
    """Return one code [m] per row of several columns of codes, ascending as the rows do, first column first.

    Parameters
    ----------
    columns : sequence of (integers [m], int)
        Codes, none negative, and one more than the largest that the column may hold.
    """
    out, size = columns[0][0].astype(np.int64), columns[0][1]
    for codes, count in columns[1:]:
        if size * count >= 2**63:  # ranks order the rows as the codes do, and take less room
            (out, size), (codes, count) = _ranks(out), _ranks(codes)
        out, size = out * count + codes, size * count
    return out


def _ranks(codes: NDArray[Any]) -> tuple[Ints, int]:
    distinct, ranks = np.unique(codes, return_inverse=True)
    return ranks.reshape(-1).astype(np.int64), len(distinct)


def bits(numbers: NDArray[np.float64]) -> Ints:
    """Return the integers [m] that spell floats: every NaN alike, 0 and -0 apart, as records have it."""
    return np.where(np.isnan(numbers), np.nan, numbers).view(np.int64)


def ragged(starts: Ints, counts: Ints) -> tuple[Ints, Ints]:
    """Return the positions [Σk] of the entries of rows, and where each row's begin among them [m+1].

    Parameters
    ----------
    starts, counts : int64 [m]
        Position of every row's first entry, and how many it has.
    """
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    return np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], counts), offsets
