"""Compiled loops that compare genes in every channel: relations, parts of the embedding, label profiles.

Legend: n genes · q queries · t tokens per query · c channels · l lanes of d columns · r neighbours.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wildtype.compiled import njit
from wildtype.evidence.hashed_sets import COMPILED, may_hold, set_bit
from wildtype.evidence.neighbour_kernels import Csr, weight_of


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
    out: Any,
) -> None:
    """Write the similarity of genes ``left`` and ``right`` [q, t] in every channel, where both are there.

    Channels: weight in every relation, cosine in every part of the embedding, in all of it, and of profiles.
    ``out`` [q, t, c] is zero on entry. ``lanes`` [n, d, l] is the embedding by lanes, and ``part_of`` [l] the
    part of each (see `GeneSimilarity.lanes`). ``graphs`` are all relations, one after the other: their
    ``indptr`` is [relations, n + 1]; ``linked`` has the bits of pairs with a weight in any of them
    (`hashed_sets.mark`). ``product`` holds the products [n, n] of all profiles, or nothing. ``spread``
    [contexts] is scratch, zero on entry and exit: the profile of a left gene, made once for all its pairs in
    a row.
    """
    graph_start, graph_column, graph_value = graphs
    profile_start, profile_column, profile_value = profiles
    relations, channels = len(graph_start), out.shape[2]
    sums = np.zeros(len(part_of), np.float32)
    for at in range(first, last):
        done = 0
        while done < left.shape[1]:
            # The next gene that was not compared yet, and all its pairs in this row.
            i = left[at, done]
            seen = i < 0
            for before in range(done):
                seen |= left[at, before] == i
            if seen:
                done += 1
                continue
            if not len(product):
                for e in range(profile_start[i], profile_start[i + 1]):
                    spread[profile_column[e]] = profile_value[e]
            for token in range(done, left.shape[1]):
                j = right[at, token]
                if left[at, token] != i or j < 0:
                    continue
                if may_hold(_link(i, j), linked, 0, len(linked)):
                    for x in range(relations):
                        out[at, token, x] = scale[x] * weight_of(
                            i, j, graph_start[x], graph_column, graph_value
                        )
                # Lane by lane in one vector, so that no product is summed across a vector.
                sums[:] = 0
                for d in range(lanes.shape[1]):
                    for x in range(len(sums)):
                        sums[x] += lanes[i, d, x] * lanes[j, d, x]
                total = np.float32(0)
                for x in range(len(sums)):
                    channel = relations + part_of[x]
                    out[at, token, channel] += scale[channel] * sums[x]
                    total += sums[x]
                alike = np.float32(0)
                if len(product):
                    alike = product[i, j]
                else:
                    for e in range(profile_start[j], profile_start[j + 1]):
                        alike += profile_value[e] * spread[profile_column[e]]
                out[at, token, channels - 2] = scale[channels - 2] * total
                out[at, token, channels - 1] = scale[channels - 1] * alike
            if not len(product):
                for e in range(profile_start[i], profile_start[i + 1]):
                    spread[profile_column[e]] = 0
            done += 1


def _copy_similar(first: int, last: int, left: Any, place: Any, table: Any, out: Any) -> None:
    """Write the rows of ``table`` [n, r, c] of genes ``left`` and neighbours ``place`` [q, t]; -1: none."""
    for at in range(first, last):
        for token in range(left.shape[1]):
            if left[at, token] >= 0 and place[at, token] >= 0:
                for x in range(out.shape[2]):
                    out[at, token, x] = table[left[at, token], place[at, token], x]


def _link(i: Any, j: Any) -> Any:
    """Return a well mixed word for an ordered pair of genes."""
    word = (np.uint64(i) << np.uint64(32)) | np.uint64(j)
    word = (word ^ (word >> np.uint64(31))) * np.uint64(0x9E3779B97F4A7C15)
    return word ^ (word >> np.uint64(29))


def _mark_links(indptr: Any, indices: Any, marks: Any) -> None:
    """Set the bit of every pair with a weight in any relation; ``indptr`` [relations, n + 1]."""
    for x in range(len(indptr)):
        for i in range(indptr.shape[1] - 1):
            for e in range(indptr[x, i], indptr[x, i + 1]):
                set_bit(_link(i, indices[e]), marks, 0, len(marks))


_link = njit(inline="always", **COMPILED)(_link)
mark_links = njit(**COMPILED)(_mark_links)
similar = njit(**COMPILED)(_similar)
copy_similar = njit(**COMPILED)(_copy_similar)
