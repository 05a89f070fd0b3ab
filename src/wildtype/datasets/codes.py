"""Integer codes that stand for rows of several columns, and positions in ragged ones.

Legend: m rows · k entries of one row · Σk entries of all.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wildtype.mutants.identity import joint as joint

Ints = NDArray[np.int64]


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
