"""Means over the neighbours of both sides of a symmetric matrix: compiled loops over tiles.

Legend: s strains.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wildtype.compiled import njit

TILE = 256
"""Rows and columns of a tile: sums of both its sides stay in the cache until they are added."""


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def smooth_tiles(
    first: int, ends: Any, near: Any, weight: Any, value: Any, known: Any, below: Any, prior: float, out: Any
) -> None:
    """Write (SR + (SR)ᵀ) / (SM + (SM)ᵀ + prior) of the tiles of 256 rows from row ``first`` on.

    From the diagonal on, and mirrored below it, so that ``out`` [s, s] is symmetric to the bit. ``ends``
    [s + 1], ``near`` and ``weight`` hold the rows of S [s, s] behind each other; ``value`` is R [s, s];
    ``known`` is M [s, s] as bytes, or has no row where every cell is known. SM are then the sums of the rows
    of S: ``below`` [s], which are zeros otherwise. Costs 512 k s multiplications for k neighbours at most,
    twice as many with M.
    """
    s, every = len(value), len(known) == 0
    total, mass = np.empty((2, TILE, TILE), np.float32), np.empty((2, TILE, TILE), np.float32)
    for second in range(first, s, TILE):
        for side in range(2):
            start, column = (first, second) if side == 0 else (second, first)
            stop, width = min(start + TILE, s), min(TILE, s - column)
            for i in range(start, stop):
                sums, masses = total[side, i - start], mass[side, i - start]
                sums[:] = np.float32(0)
                masses[:] = below[i]
                for k in range(ends[i], ends[i + 1]):
                    w, row = weight[k], value[near[k], column : column + width]
                    for j in range(width):
                        sums[j] += w * row[j]
                    if not every:
                        seen = known[near[k], column : column + width]
                        for j in range(width):
                            masses[j] += w * np.float32(seen[j])
        for i in range(min(TILE, s - first)):
            for j in range(min(TILE, s - second)):
                # Of a tile on the diagonal, both cells of a pair are sums of the same two numbers.
                mean = (total[0, i, j] + total[1, j, i]) / (
                    (mass[0, i, j] + mass[1, j, i]) + np.float32(prior)
                )
                out[first + i, second + j] = mean
                out[second + j, first + i] = mean
