"""Reactions whose fluxes rise and fall together in every steady state, read off the network alone.

Legend: m metabolites · r reactions.
"""

from __future__ import annotations

from collections import deque

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

ZERO = 1e-9
"""Coefficients of a merged reaction below this part of what was added up are taken as 0."""
MOST = 3000
ALMOST = 1e-6
"""Lengths below this are 0; cosines that differ from 1 by less than its square are 1."""


def coupled_reactions(stoichiometry: sparse.csr_array) -> NDArray[np.int64]:
    """Return the set [r] that every reaction belongs to; −1: it carries no flux in any steady state.

    A metabolite of one reaction blocks it; one of two reactions ties their fluxes, which are then merged, and
    so on until neither is left (enzyme subsets: Pfeiffer et al., Bioinformatics 15:251, 1999). What several
    metabolites together tie is found in the null space of what is then left. Knocking out any reaction of a
    set has the effect of knocking out another.

    Parameters
    ----------
    stoichiometry : csr [m, r]
        Coefficients; directions and bounds are not looked at. O(nnz) merges of short rows, then
        O(m r²) of the merged network; beyond ``MOST`` merged reactions the last step is left out, and sets
        may be too small, never too large.
    """
    matrix = sparse.coo_array(stoichiometry)
    m, r = matrix.shape
    rows: list[dict[int, float]] = [{} for _ in range(m)]
    places: list[set[int]] = [set() for _ in range(r)]
    for i, j, value in zip(*matrix.coords, matrix.data, strict=True):
        if value:
            rows[i][int(j)] = float(value)
            places[j].add(int(i))
    parent = np.arange(r)
    blocked = np.zeros(r, bool)
    waiting = deque(i for i in range(m) if len(rows[i]) in (1, 2))
    while waiting:
        i = waiting.popleft()
        # At steady state S v = 0, a metabolite of one reaction forces its flux to 0.
        if len(rows[i]) == 1:
            (a,) = rows[i]
            blocked[a] = True
            touched = places[a]
            for other in touched:
                del rows[other][a]
            places[a] = set()
        elif len(rows[i]) == 2:
            # x v_a + y v_b = 0, so v_b = −(x / y) v_a: b is merged into a in every other row.
            (a, x), (b, y) = rows[i].items()
            parent[b] = a
            touched = places[b]
            for other in touched:
                row = rows[other]
                moved = -row.pop(b) * x / y
                before = row.get(a, 0.0)
                if abs(before + moved) <= ZERO * (abs(before) + abs(moved)):
                    row.pop(a, None)
                    places[a].discard(other)
                else:
                    row[a] = before + moved
                    places[a].add(other)
            places[b] = set()
        else:
            continue
        waiting.extend(sorted(other for other in touched if len(rows[other]) in (1, 2)))
    left = [j for j in range(r) if places[j]]
    if len(left) <= MOST:
        _tie(rows, left, parent, blocked)
    for j in range(r):
        while parent[parent[j]] != parent[j]:
            parent[j] = parent[parent[j]]
    return np.where(blocked[parent], -1, parent)


def _tie(
    rows: list[dict[int, float]], left: list[int], parent: NDArray[np.int64], blocked: NDArray[np.bool_]
) -> None:
    """Tie the merged reactions ``left`` whose rows of the null space are proportional; block those of 0."""
    from scipy.linalg import null_space

    column = {j: i for i, j in enumerate(left)}
    short = [row for row in rows if row]
    if not short:
        return
    matrix = np.zeros((len(short), len(left)))
    for i, row in enumerate(short):
        matrix[i, [column[j] for j in row]] = list(row.values())
    # Rows are scaled to 1, so that one large coefficient does not hide small ones from the rank.
    space = null_space(matrix / np.abs(matrix).max(axis=1, keepdims=True))
    norm = np.linalg.norm(space, axis=1)
    unit = space / np.maximum(norm, ALMOST)[:, None]
    for i, j in enumerate(left):
        if norm[i] < ALMOST:
            blocked[j] = True
            continue
        along = np.abs(unit[: i + 1] @ unit[i])
        first = int(np.argmax(along > 1 - ALMOST**2))
        if first < i:
            parent[j] = left[first]
