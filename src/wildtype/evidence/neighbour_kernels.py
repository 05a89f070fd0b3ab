"""Compiled loops over sparse rows: the genes most like each gene by embedding and label profiles.

Legend: n genes · r neighbours of a gene.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from wildtype.cache_lines import fetch_all
from wildtype.compiled import njit
from wildtype.evidence.hashed_sets import COMPILED

MANY = 64
"""Neighbours of a gene above which all candidates are sorted."""


class Csr(NamedTuple):
    """A sparse matrix by rows; columns that are unsigned need no test for being negative."""

    indptr: Any
    indices: Any
    data: Any


def _search(x: Any, column: Any, low: Any, high: Any) -> Any:
    """Return where x is among the entries ``low`` … ``high`` - 1, ascending; or -1."""
    end = high
    while low < high:
        middle = (low + high) >> 1
        if column[middle] < x:
            low = middle + 1
        else:
            high = middle
    return low if low < end and column[low] == x else -1


def _weight(j: Any, low: Any, high: Any, column: Any, value: Any) -> Any:
    """Return the entry of column j among the entries ``low`` … ``high`` - 1 of a row with sorted columns."""
    at = search(j, column, low, high)
    return value[at] if at >= 0 else np.float32(0)


def _fetch_entries(low: Any, high: Any, column: Any, value: Any) -> None:
    """Ask for the memory of the entries ``low`` … ``high`` - 1 of sparse rows."""
    columns, values = np.int64(column.ctypes.data), np.int64(value.ctypes.data)
    fetch_all(columns + low * column.itemsize, columns + high * column.itemsize)
    fetch_all(values + low * value.itemsize, values + high * value.itemsize)


def _row_product(first: Any, last: Any, column: Any, value: Any, dense: Any) -> Any:
    """Return the product of entries ``first`` … ``last`` - 1 of sparse rows with a dense vector, in order."""
    total = np.float32(0)
    # Unsigned: every read by a counter that could be negative asks first whether it is.
    for e in range(np.uint64(first), np.uint64(last)):
        total += value[e] * dense[column[e]]
    return total


def _keep(score: Any, best: Any, used: Any) -> Any:
    """Return the place of a token of that score among the best, or -1; ``used`` places are taken.

    A linear search for the worst: few candidates compete, and a heap would cost every one of them. Scores are
    not negative, and compare as their bits do: the least of whole numbers is found in vectors.
    """
    if used < len(best):
        return used
    bits = best.view(np.int32)
    least = bits[0]
    for x in range(1, len(bits)):
        least = min(least, bits[x])
    worst = 0
    while bits[worst] != least:
        worst += 1
    return worst if score > best[worst] else -1


def _neighbours(
    first: int,
    last: int,
    genes: Any,
    known: Any,
    embedded: Csr,
    profiles: Csr,
    transpose: Csr,
    score: Any,
    best: Any,
    neighbour: Any,
    near: Any,
) -> None:
    """Write the measured genes most like ``genes`` [m] at ``first`` … ``last`` - 1, best first: ``neighbour``
    and ``near`` [m, r].

    Similarity is cosine³ of the embedding (``embedded`` holds its nearest genes) plus cosine² of label
    profiles, whose products with all others are summed over shared contexts by ``transpose``. ``score`` [n]
    is scratch and zero on entry and exit, ``best`` scratch: [r], or [n] where they are many.
    """
    r = neighbour.shape[1]
    many = r > MANY
    profile_start, profile_column, profile_value = profiles
    context_start, context_gene, context_value = transpose
    touched = np.empty(len(score), np.int64)
    for at in range(first, last):
        i, count = genes[at], 0
        for e in range(profile_start[i], profile_start[i + 1]):
            context, value = profile_column[e], profile_value[e]
            for f in range(context_start[context], context_start[context + 1]):
                x = context_gene[f]
                if score[x] == 0:
                    touched[count] = x
                    count += 1
                score[x] += value * context_value[f]
                # 0 marks genes not touched yet: a sum that cancels is moved off it.
                if score[x] == 0:
                    score[x] = np.float32(1e-12)
        for c in range(count):
            x = touched[c]
            score[x] = max(score[x], np.float32(0)) ** 2 + np.float32(1e-12)
        for e in range(embedded.indptr[i], embedded.indptr[i + 1]):
            x = embedded.indices[e]
            if score[x] == 0:
                touched[count] = x
                count += 1
            score[x] += embedded.data[e]
        used = 0
        for c in range(count):
            x = touched[c]
            value = score[x]
            score[x] = 0
            if x == i or not known[x] or value < 1e-4:
                continue
            if many:
                # To sort them all is cheaper than to look for the worst of many again and again. Places of
                # genes that were read are free.
                best[used] = value
                touched[used] = x
                used += 1
                continue
            place = keep(value, best, used)
            if place >= 0:
                best[place] = value
                neighbour[at, place] = x
                used = min(used + 1, r)
        order = np.argsort(-best[:used])
        chosen = touched[:used].copy() if many else neighbour[at, :used].copy()
        for x in range(min(used, r)):
            neighbour[at, x] = chosen[order[x]]
            near[at, x] = best[order[x]]


def _inverse_rows(indptr: Any, data: Any) -> None:
    """Scale every sparse row to unit length, in place."""
    for i in range(len(indptr) - 1):
        total = np.float32(0)
        for e in range(indptr[i], indptr[i + 1]):
            total += data[e] ** 2
        if total > 0:
            for e in range(indptr[i], indptr[i + 1]):
                data[e] /= np.sqrt(total)


# In order: reads of scattered places in one vector take twice the time of one after the other.
row_product = njit(**COMPILED | {"fastmath": {"contract"}})(_row_product)
fetch_entries = njit(inline="always")(_fetch_entries)
search = njit(**COMPILED)(_search)
weight_of = njit(**COMPILED)(_weight)
keep = njit(**COMPILED)(_keep)
neighbours = njit(**COMPILED)(_neighbours)
to_unit_rows = njit(**COMPILED)(_inverse_rows)
