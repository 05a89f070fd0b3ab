"""Means of residuals over pairs in which one gene, or both, is replaced by similar ones: compiled loops.

Pairs that stand behind each other and share their left gene are a run. The left gene's neighbours are the
same for all of them: their rows of the matrix stay in the cache, and sums that do not depend on the right
gene are made once. Every sum is made in one order and in float64, whatever the run: a pair has the same bits
alone and among others.

Legend: n rows of neighbours · s strains · k neighbours · m pairs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wildtype.compiled import njit

EXACT = {"cache": True, "nogil": True}
"""Without leave to reorder sums: runs would be cut differently, and bits with them."""
RUN = 256
"""Pairs of a run that are worked on together: their sums stay in the cache."""
SHARED = 24
"""Pairs of a run from which on it pays to sum over the left gene's neighbours for every strain."""


@njit(**EXACT)  # type: ignore[untyped-decorator]
def replace_one(
    near: Any,
    weight: Any,
    value: Any,
    fold: Any,
    hidden: int,
    every: bool,
    left: Any,
    right: Any,
    prior: float,
    out: Any,
) -> None:
    """Write the means over pairs with one gene replaced: of all, the smaller and larger side, and the weight.

    ``near`` [n, k] holds strains; ``value`` [s, s] are residuals, symmetric. ``fold`` uint8 [s, s] is 0 for a
    cell that is not known, and ``hidden`` for one that may not be seen; both are completed, and count with
    ``every`` only. ``left``, ``right`` are int64 [m, 2]: the row of ``near`` of a
    gene, and its strain (-1: it has none). ``out`` [m, 4] keeps NaN for no weight. Costs O(m k).
    """
    total, mass = np.empty((2, RUN)), np.empty((2, RUN))
    # Strains without a sign: numba looks for negative positions, counted from the end, otherwise.
    at = np.empty(RUN, np.uintp)
    start = 0
    while start < len(left):
        own, strain = left[start, 0], left[start, 1]
        stop = start
        while stop < min(start + RUN, len(left)) and left[stop, 0] == own and left[stop, 1] == strain:
            stop += 1
        rows = stop - start
        total[:, :rows] = 0.0
        mass[:, :rows] = 0.0
        for m in range(rows):
            at[m] = max(right[start + m, 1], 0)
        if own >= 0:
            for k in range(near.shape[1]):
                if near[own, k] < 0:
                    continue
                row, w = np.uintp(near[own, k]), weight[own, k]
                values, cells = value[row], fold[row]
                if every:
                    for m in range(rows):
                        # A neighbour that is the other gene would be a pair of a gene with itself.
                        there = w * np.float32(at[m] != row)
                        total[0, m] += there * values[at[m]]
                        mass[0, m] += there
                else:
                    for m in range(rows):
                        cell = cells[at[m]]
                        there = w * np.float32((cell != 0) & (cell != hidden))
                        total[0, m] += there * values[at[m]]
                        mass[0, m] += there
            for m in range(rows):
                if right[start + m, 1] < 0:
                    total[0, m] = mass[0, m] = 0.0
        if strain >= 0:
            values, cells = value[strain], fold[strain]
            for m in range(rows):
                other = right[start + m, 0]
                one, below = 0.0, 0.0
                if other >= 0:
                    for k in range(near.shape[1]):
                        if near[other, k] < 0:
                            continue
                        row = np.uintp(near[other, k])
                        if every:
                            there = weight[other, k] * np.float32(row != np.uintp(strain))
                        else:
                            there = weight[other, k] * np.float32((cells[row] != 0) & (cells[row] != hidden))
                        one += there * values[row]
                        below += there
                total[1, m], mass[1, m] = one, below
        for m in range(rows):
            low, high = np.inf, -np.inf
            for side in range(2):
                if mass[side, m] > 0:
                    mean = total[side, m] / (mass[side, m] + prior)
                    low, high = min(low, mean), max(high, mean)
            below = mass[0, m] + mass[1, m]
            if below > 0:
                out[start + m, 0] = (total[0, m] + total[1, m]) / (below + prior)
                out[start + m, 1], out[start + m, 2] = low, high
            out[start + m, 3] = below
        start = stop


@njit(**EXACT)  # type: ignore[untyped-decorator]
def replace_both(
    near: Any,
    weight: Any,
    value: Any,
    fold: Any,
    hidden: int,
    every: bool,
    left: Any,
    right: Any,
    few: int,
    out: Any,
) -> None:
    """Write the mean over pairs with each gene replaced by ``few`` neighbours, and its weight [m, 2].

    The sum is Σ_b w_b Σ_a w_a r_ab over neighbours a of the left gene and b of the right one, a ≠ b;
    arguments as of `replace_one`. Costs O(m few²), or O(m few + s few) for a long run.
    """
    s = len(value)
    inner, number = np.zeros(s), np.zeros(s)
    start = 0
    while start < len(left):
        own = left[start, 0]
        stop = start
        while stop < len(left) and left[stop, 0] == own:
            stop += 1
        shared = stop - start >= SHARED
        if shared and own >= 0:
            inner[:] = 0.0
            number[:] = 0.0
            for a in range(few):
                row, w = near[own, a], weight[own, a]
                if row >= 0:
                    for j in range(s):
                        seen = (fold[row, j] != 0) & (fold[row, j] != hidden)
                        there = w * np.float32(j != row if every else seen)
                        inner[j] += there * value[row, j]
                        number[j] += there
        for m in range(start, stop):
            other = right[m, 0]
            total, mass = 0.0, 0.0
            if own >= 0 and other >= 0:
                for b in range(few):
                    j = near[other, b]
                    if j < 0:
                        continue
                    if not shared:
                        inner[j] = 0.0
                        number[j] = 0.0
                        for a in range(few):
                            row = near[own, a]
                            if row >= 0:
                                seen = (fold[row, j] != 0) & (fold[row, j] != hidden)
                                there = weight[own, a] * np.float32(j != row if every else seen)
                                inner[j] += there * value[row, j]
                                number[j] += there
                    total += weight[other, b] * inner[j]
                    mass += weight[other, b] * number[j]
            if mass > 0:
                out[m, 0] = total / mass
            out[m, 1] = mass
        start = stop
