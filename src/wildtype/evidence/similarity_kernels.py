"""Compiled loops that compare genes in every channel: relations, parts of the embedding, label profiles.

Legend: n genes · q queries · t tokens per query · c channels · l lanes of d columns · r neighbours.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wildtype.cache_lines import fetch_all, fetch_row
from wildtype.compiled import njit
from wildtype.evidence.hashed_sets import COMPILED, may_hold, set_bits, word_of
from wildtype.evidence.neighbour_kernels import Csr, fetch_entries, row_product, weight_of

AHEAD = 2
"""Tokens between a row of the embedding that is asked for and its use."""
UNKNOWN = np.float32(2)
"""Stands for a product of label profiles that was not computed: cosines are at most 1."""


def _similar(
    first: int,
    last: int,
    left: Any,
    right: Any,
    lanes: Any,
    part_of: Any,
    graphs: Csr,
    linked: Any,
    profiles: Csr,
    product: Any,
    scale: Any,
    spread: Any,
    alike: Any,
    out: Any,
) -> None:
    """Write the similarity of genes ``left`` and ``right`` [q, t] in every channel, where both are there.

    Channels: weight in every relation, cosine in every part of the embedding, in all of it, and of profiles.
    ``out`` [q, t, c] is zero on entry. ``lanes`` [n, ``LANE``, l] is the embedding by lanes, and ``part_of``
    the part of each (see `GeneSimilarity.lanes`). ``graphs`` are all relations, one after the other: their
    ``indptr`` is [relations, n + 1]; ``linked`` has the bits of pairs with a weight (`_mark_links`).
    ``product`` holds the products [n, n] of all profiles, or nothing; of ``alike`` [q, t] those that are not
    ``UNKNOWN`` are such products already. ``spread`` [contexts] is scratch, zero on entry and exit.
    """
    graph_start, graph_column, graph_value = graphs
    profile_start, profile_column, profile_value = profiles
    products = out[..., out.shape[2] - 1]
    # Unsigned: every place by a number that could be negative asks first whether it is.
    relations, channels, width = np.uint64(len(graph_start)), np.uint64(out.shape[2]), lanes.shape[2]
    parts, whole, profile = (
        channels - relations - np.uint64(2),
        channels - np.uint64(2),
        channels - np.uint64(1),
    )
    sums, cosine = np.zeros(width, np.float32), np.zeros(parts, np.float32)
    embedding, row = np.int64(lanes.ctypes.data), np.int64(4 * lanes.shape[1] * width)
    bits = np.int64(linked.ctypes.data)
    for at in range(first, last):
        # One short loop over the row's tokens after the other: what each reads stays near the processor.
        for token in range(left.shape[1]):
            if left[at, token] < 0 or right[at, token] < 0:
                continue
            i, j = np.uint64(left[at, token]), np.uint64(right[at, token])
            if token + AHEAD < left.shape[1] and right[at, token + AHEAD] >= 0:
                later = embedding + right[at, token + AHEAD] * row
                fetch_all(later, later + row)
            # Lane by lane in one vector, so that no product is summed across a vector. The `LANE` products of
            # a lane are written out: a loop over them would keep its sums in memory.
            for x in range(width):
                sums[x] = (
                    lanes[i, 0, x] * lanes[j, 0, x]
                    + lanes[i, 1, x] * lanes[j, 1, x]
                    + lanes[i, 2, x] * lanes[j, 2, x]
                    + lanes[i, 3, x] * lanes[j, 3, x]
                    + lanes[i, 4, x] * lanes[j, 4, x]
                    + lanes[i, 5, x] * lanes[j, 5, x]
                    + lanes[i, 6, x] * lanes[j, 6, x]
                    + lanes[i, 7, x] * lanes[j, 7, x]
                )
            for x in range(parts):
                cosine[x] = 0
            for x in range(len(part_of)):
                cosine[part_of[x]] += sums[x]
            total = np.float32(0)
            for x in range(parts):
                out[at, token, relations + x] = scale[relations + x] * cosine[x]
                total += cosine[x]
            out[at, token, whole] = scale[whole] * total
            word = bits + 8 * np.int64(word_of(_link(i, j, 0), linked))
            fetch_all(word, word + 1)
        # The next row's first genes arrive while this one's relations and profiles are compared.
        for token in range(min(AHEAD, left.shape[1]) if at + 1 < last else 0):
            if left[at + 1, token] >= 0 and right[at + 1, token] >= 0:
                later = embedding + right[at + 1, token] * row
                fetch_all(later, later + row)
                if token == 0:
                    later = embedding + left[at + 1, token] * row
                    fetch_all(later, later + row)
        for token in range(left.shape[1]):
            i, j = left[at, token], right[at, token]
            if i < 0 or j < 0 or not may_hold(_link(i, j, 0), linked):
                continue
            for x in range(relations):
                if may_hold(_link(i, j, x + 1), linked):
                    low, high = graph_start[x, i], graph_start[x, i + 1]
                    out[at, token, x] = scale[x] * weight_of(j, low, high, graph_column, graph_value)
        _profile_products(
            at, left, right, profile_start, profile_column, profile_value, product, spread, alike, products
        )
        for token in range(left.shape[1]):
            out[at, token, profile] *= scale[profile]


def _profile_products(
    at: int,
    left: Any,
    right: Any,
    profile_start: Any,
    profile_column: Any,
    profile_value: Any,
    product: Any,
    spread: Any,
    alike: Any,
    out: Any,
) -> None:
    """Write the products of the profiles of one row's genes to ``out`` [q, t]; see `_similar`."""
    for done in range(left.shape[1]):
        i = left[at, done]
        if i < 0 or right[at, done] < 0:
            continue
        if alike[at, done] != UNKNOWN:
            out[at, done] = alike[at, done]
            continue
        if len(product):
            out[at, done] = product[i, right[at, done]]
            continue
        seen = False
        for before in range(done):
            seen |= left[at, before] == i and right[at, before] >= 0 and alike[at, before] == UNKNOWN
        if seen:
            continue
        # The profile of this gene dense, once for all its pairs in the row.
        for e in range(np.uint64(profile_start[i]), np.uint64(profile_start[i + 1])):
            spread[profile_column[e]] = profile_value[e]
        for token in range(done, left.shape[1]):
            j = right[at, token]
            if left[at, token] != i or j < 0 or alike[at, token] != UNKNOWN:
                continue
            if token + 1 < left.shape[1]:
                later = max(right[at, token + 1], 0)
                low, high = profile_start[later], profile_start[later + 1]
                fetch_entries(low, high, profile_column, profile_value)
            span = profile_start[j], profile_start[j + 1]
            out[at, token] = row_product(*span, profile_column, profile_value, spread)
        for e in range(np.uint64(profile_start[i]), np.uint64(profile_start[i + 1])):
            spread[profile_column[e]] = 0


def _copy_similar(first: int, last: int, left: Any, place: Any, table: Any, out: Any) -> None:
    """Write the rows of ``table`` [n, r, c] of genes ``left`` and neighbours ``place`` [q, t]; -1: none."""
    n, r, channels = table.shape
    rows = table.reshape(n * r, channels)
    for at in range(first, last):
        for token in range(left.shape[1] if at + 1 < last else 0):
            if left[at + 1, token] >= 0 and place[at + 1, token] >= 0:
                fetch_row(left[at + 1, token] * r + place[at + 1, token], rows)
        for token in range(left.shape[1]):
            if left[at, token] >= 0 and place[at, token] >= 0:
                row = np.uint64(left[at, token] * r + place[at, token])
                for x in range(channels):
                    out[at, token, x] = rows[row, x]


def _link(i: Any, j: Any, which: Any) -> Any:
    """Return a well mixed word for an ordered pair of genes and a number below 256."""
    word = (np.uint64(which) << np.uint64(56)) | (np.uint64(i) << np.uint64(28)) | np.uint64(j)
    word = (word ^ (word >> np.uint64(31))) * np.uint64(0x9E3779B97F4A7C15)
    return word ^ (word >> np.uint64(29))


def _mark_links(indptr: Any, indices: Any, marks: Any) -> None:
    """Set the bits of every pair with a weight: one for any relation, and one for each that has it.

    ``indptr`` [relations, n + 1].
    """
    for x in range(len(indptr)):
        for i in range(indptr.shape[1] - 1):
            for e in range(indptr[x, i], indptr[x, i + 1]):
                set_bits(_link(i, indices[e], 0), marks)
                set_bits(_link(i, indices[e], x + 1), marks)


_link = njit(inline="always", **COMPILED)(_link)
_profile_products = njit(**COMPILED)(_profile_products)
mark_links = njit(**COMPILED)(_mark_links)
similar = njit(**COMPILED)(_similar)
copy_similar = njit(**COMPILED)(_copy_similar)
