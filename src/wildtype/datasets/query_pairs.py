"""Query strains of crossed screens, found from unordered gene sets.

A screen crosses one query strain with many arrays: a single mutant in digenic screens, a double mutant in
trigenic ones. Tables of unordered sets do not record which genes were the query's.

Legend: r sets · t triples · m rows · p pairs · n genes.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from wildtype.mutants import MutantTable

Ints = NDArray[np.int64]


def _cover(codes: Ints) -> Ints:
    """Return [R] which of its candidates [R, c] every set goes to, by greedy cover.

    The candidate that occurs in most sets takes all of them, then the one that occurs in most of the
    remaining ones, and so on; ties go to the lower code. A set whose candidates occur nowhere else goes to
    its first.
    """
    candidates, inverse = np.unique(codes, return_inverse=True)
    of_set = inverse.reshape(codes.shape)
    flat = of_set.reshape(-1)
    members = np.argsort(flat, kind="stable") // codes.shape[1]
    bounds = np.searchsorted(np.sort(flat), np.arange(len(candidates) + 1))
    left = np.bincount(flat, minlength=len(candidates)).tolist()
    taken = np.full(len(codes), -1, np.int64)
    # A candidate's count only falls: an entry that is out of date was an upper bound and goes back lower.
    heap = [(-count, candidate) for candidate, count in enumerate(left) if count > 1]
    heapq.heapify(heap)
    while heap:
        count, candidate = heapq.heappop(heap)
        if -count != left[candidate]:
            if left[candidate] > 1:
                heapq.heappush(heap, (-left[candidate], candidate))
            continue
        # Sets already taken count no longer, and lower the counts of their other candidates below.
        at = members[bounds[candidate] : bounds[candidate + 1]]
        at = at[taken[at] < 0]
        taken[at] = candidate
        for other in of_set[at].reshape(-1).tolist():
            left[other] -= 1
    alone = taken < 0
    taken[alone] = of_set[alone, 0]
    return candidates[taken]


def query_pairs(triples: Ints) -> Ints:
    """Return [T, 2] the query pair of every triple, by greedy cover.

    A trigenic screen crosses one double-mutant query with many arrays (Kuzmin et al. 2018), so its pair
    occurs in many triples while a query gene and an array gene share few. The pair that occurs in most
    triples takes all of them, then the pair that occurs in most of the remaining ones, and so on; ties go to
    the lower positions. An array gene crossed with more queries of one query gene than these have arrays is
    taken for a query gene.

    Parameters
    ----------
    triples : int64 [T, 3]
        Different triples, each ascending.
    """
    span = int(triples.max()) + 1 if triples.size else 1
    codes = np.stack([triples[:, a] * span + triples[:, b] for a, b in ((0, 1), (0, 2), (1, 2))], axis=1)
    taken = _cover(codes)
    return np.stack([taken // span, taken % span], axis=1)


def query_genes(pairs: Ints) -> Ints:
    """Return [P] the query gene of every pair, by the same cover over genes.

    This is a guess: an array gene that occurs in many pairs is taken for a query (of the pairs of Costanzo
    et al. 2010 that were listed in one direction only, 70 % go to their query gene), and where every gene was
    crossed with every other one, each pair goes to one of its two screens.

    Parameters
    ----------
    pairs : int64 [P, 2]
        Different pairs, each ascending.
    """
    return _cover(pairs)


def query_strains(table: MutantTable) -> list[tuple[int, ...]]:
    """Return the query strains of a table's doubles and triples, those that take their sets first at the
    front.

    A double or triple goes to the first strain whose genes it all has (`strain_of_rows`).
    """
    strains: list[tuple[int, ...]] = []
    doubles, triples = (np.unique(table.take(table.order == k).matrix(k), axis=0) for k in (2, 3))
    for found in (query_genes(doubles)[:, None], query_pairs(triples)):
        distinct, counts = np.unique(found, axis=0, return_counts=True)
        # Counts of takers only fall, and ties are taken in ascending order.
        ranked = np.argsort(-counts, kind="stable")
        strains += [tuple(genes) for genes in distinct[ranked].tolist()]
    return strains


def strain_of_rows(table: MutantTable, strains: Sequence[Sequence[int]], n: int) -> Ints:
    """Return [M] the first of the query strains of one or two genes whose screen a row is in, or -1.

    Doubles are in the screens of single mutants, triples in those of double mutants; rows of another order
    are in none.
    """
    out = np.full(len(table), -1, np.int64)
    for size in (1, 2):
        mine = np.array([i for i, strain in enumerate(strains) if len(strain) == size], dtype=np.int64)
        if not mine.size:
            continue
        genes = np.array([sorted(strains[i]) for i in mine], dtype=np.int64)
        codes = genes[:, 0] if size == 1 else genes[:, 0] * n + genes[:, 1]
        by_code = np.argsort(codes, kind="stable")
        rows = np.flatnonzero(table.order == size + 1)
        sets = table.take(rows).matrix(size + 1)
        columns = (
            [sets[:, a] for a in range(2)]
            if size == 1
            else [sets[:, a] * n + sets[:, b] for a, b in ((0, 1), (0, 2), (1, 2))]
        )
        best = np.full(len(rows), len(strains), np.int64)
        for column in columns:
            at = np.minimum(np.searchsorted(codes[by_code], column), mine.size - 1)
            hit = codes[by_code][at] == column
            # Strains are listed in the order in which they took sets: the lowest position comes first.
            best[hit] = np.minimum(best[hit], mine[by_code][at[hit]])
        out[rows] = np.where(best < len(strains), best, -1)
    return out


def _pair_codes(table: MutantTable, pairs: Ints, n: int) -> Iterator[tuple[Ints, Ints]]:
    """Yield rows and the code of one pair of their genes, until all pairs that could matter are met."""
    touched = np.zeros(n, bool)
    touched[pairs] = True
    # A row with fewer than two touched genes holds no pair; most rows end here.
    candidates = np.bincount(table.row, weights=touched[table.gene], minlength=len(table)) >= 2
    for order in np.unique(table.order[candidates]):
        rows = np.flatnonzero(candidates & (table.order == order))
        genes = table.gene[table.offsets[rows][:, None] + np.arange(order)]
        for a in range(order):
            for b in range(a + 1, order):
                yield rows, genes[:, a] * n + genes[:, b]


def contains_pair(table: MutantTable, pairs: Ints, n: int) -> NDArray[np.bool_]:
    """Return [M] whether a row perturbs both genes of any pair [P, 2] (ascending positions below ``n``)."""
    wanted = np.unique(pairs[:, 0] * n + pairs[:, 1])
    out = np.zeros(len(table), bool)
    for rows, codes in _pair_codes(table, pairs, n):
        out[rows] |= np.isin(codes, wanted)
    return out


def is_contained(pairs: Ints, table: MutantTable, n: int) -> NDArray[np.bool_]:
    """Return [P] whether any row perturbs both genes of a pair [P, 2] (ascending positions below ``n``)."""
    wanted = pairs[:, 0] * n + pairs[:, 1]
    out = np.zeros(len(pairs), bool)
    for _, codes in _pair_codes(table, pairs, n):
        out |= np.isin(wanted, codes)
    return out
