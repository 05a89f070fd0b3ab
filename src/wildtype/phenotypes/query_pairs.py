"""Query pairs of trigenic screens, found from unordered triples.

Legend: t triples · m rows · p pairs.
"""

from __future__ import annotations

import heapq

import numpy as np
from numpy.typing import NDArray

from wildtype.mutants import MutantTable

Ints = NDArray[np.int64]


def query_pairs(triples: Ints) -> Ints:
    """Return [T, 2] the query pair of every triple, by greedy cover.

    A trigenic screen crosses one double-mutant query with many arrays (Kuzmin et al. 2018), so its pair
    stands in many triples while a query gene and an array gene share few. The pair that stands in most
    triples takes all of them, then the pair that stands in most of the remaining ones, and so on; ties go to
    the lower positions. An array gene crossed with more queries of one query gene than these have arrays is
    taken for a query gene.

    Parameters
    ----------
    triples : int64 [T, 3]
        Different triples, each ascending.
    """
    span = int(triples.max()) + 1 if triples.size else 1
    codes = np.stack([triples[:, a] * span + triples[:, b] for a, b in ((0, 1), (0, 2), (1, 2))], axis=1)
    pairs, inverse = np.unique(codes, return_inverse=True)
    of_triple = inverse.reshape(-1, 3)
    members = np.argsort(of_triple.reshape(-1), kind="stable") // 3
    bounds = np.searchsorted(np.sort(of_triple.reshape(-1)), np.arange(len(pairs) + 1))
    left = np.bincount(of_triple.reshape(-1), minlength=len(pairs)).tolist()
    taken = np.full(len(triples), -1, np.int64)
    # A pair's count only falls: an entry that is out of date was an upper bound and goes back lower.
    heap = [(-count, pair) for pair, count in enumerate(left) if count > 1]
    heapq.heapify(heap)
    while heap:
        count, pair = heapq.heappop(heap)
        if -count != left[pair]:
            if left[pair] > 1:
                heapq.heappush(heap, (-left[pair], pair))
            continue
        at = members[bounds[pair] : bounds[pair + 1]]
        at = at[taken[at] < 0]
        taken[at] = pair
        for other in of_triple[at].reshape(-1).tolist():
            left[other] -= 1
    alone = taken < 0
    taken[alone] = of_triple[alone, 0]
    return np.stack([pairs[taken] // span, pairs[taken] % span], axis=1)


def contains_pair(table: MutantTable, pairs: Ints, n: int) -> NDArray[np.bool_]:
    """Return [M] whether a row perturbs both genes of any pair [P, 2] (ascending positions below ``n``)."""
    wanted = np.unique(pairs[:, 0] * n + pairs[:, 1])
    touched = np.zeros(n, bool)
    touched[pairs] = True
    out = np.zeros(len(table), bool)
    candidates = np.bincount(table.row, weights=touched[table.gene], minlength=len(table)) >= 2
    for order in np.unique(table.order[candidates]):
        rows = np.flatnonzero(candidates & (table.order == order))
        genes = table.gene[table.offsets[rows][:, None] + np.arange(order)]
        for a in range(order):
            for b in range(a + 1, order):
                out[rows] |= np.isin(genes[:, a] * n + genes[:, b], wanted)
    return out
