"""Sums of products of two rows, pair by pair: a compiled loop that reads each row once.

NumPy would copy both rows of every pair, write their products, and hold the interpreter's lock between.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wildtype.compiled import njit

Ints = NDArray[np.int64]
Floats = NDArray[np.float32]


def row_products(
    left: Floats, at: Ints, right: Floats, to: Ints, weight: Floats | None = None, first: int = 0
) -> Floats:
    """Return Σ_r left[at, r] · weight[r] · right[to, r] of every pair [m]; NaN where a row is -1.

    The sum of a pair has the same bits alone and among others.

    Parameters
    ----------
    left, right : float32 [·, d]
    at, to : int64 [m]
        Rows.
    weight : float32 [w], optional
        Of the columns from ``first`` on; by default 1 for all.
    first : int
    """
    if weight is None:
        weight = np.ones(left.shape[1], np.float32)
    out = np.full(len(at), np.nan, np.float32)
    _row_products(left, np.ascontiguousarray(at), right, np.ascontiguousarray(to), weight, first, out)
    return out


# Sums may be split into lanes: how depends on the number of columns alone.
@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})  # type: ignore[untyped-decorator]
def _row_products(left: Any, at: Any, right: Any, to: Any, weight: Any, first: int, out: Any) -> None:
    for m in range(len(at)):
        if at[m] < 0 or to[m] < 0:
            continue
        x, y = left[at[m]], right[to[m]]
        total = np.float32(0)
        # Without a sign: numba looks for negative positions, counted from the end, otherwise.
        for r in range(np.uintp(len(weight))):
            column = np.uintp(first) + r
            total += x[column] * weight[r] * y[column]
        out[m] = total
