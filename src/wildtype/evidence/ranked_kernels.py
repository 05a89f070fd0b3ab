"""Compiled lookup of measured mutants one edit away where very many are: from the most similar gene on.

Legend: n genes · q queries · Σk their genes · e entries (a measured mutant and one of its genes) · c contexts
(a measured set less one gene) · t tokens per query · r genes that are ranked for each gene.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from wildtype.cache_lines import fetch_all, fetch_row
from wildtype.compiled import njit
from wildtype.evidence.edits import ADDED, REMOVED, REPLACED, OneEditAway, Queries, Ranking
from wildtype.evidence.gene_bits import GeneBits, ones
from wildtype.evidence.hashed_sets import COMPILED, Table, find
from wildtype.evidence.neighbour_kernels import search
from wildtype.evidence.similarity_kernels import UNKNOWN

FEW_GENES = 8
"""Genes of a query up to which replacements are tried in the order of their similarity."""


class Entries(NamedTuple):
    """Rows of all entries [e], context by context and ascending by gene within each, and where a gene's are.

    Those of gene i of ``genes`` are ``first[i]`` … ``first[i + 1]``-1; ``first`` is empty where every gene of
    a context has one entry, which is then entry i.
    """

    row: Any
    first: Any
    genes: GeneBits


def _fetch_for(
    query: Any,
    words: Any,
    gene: Any,
    offsets: Any,
    less_slots: Any,
    ranking: Ranking,
    bits_of: Any,
    bits: Any,
    before: Any,
) -> None:
    """Ask for the memory that `_from_the_most_similar` will read for a query."""
    alike, score = ranking
    key = np.uint64(0)
    for at in range(offsets[query], offsets[query + 1]):
        key += words[gene[at]]
    for at in range(offsets[query], offsets[query + 1]):
        fetch_row(gene[at], alike)
        fetch_row(gene[at], score)
        bucket = find(key - words[gene[at]], less_slots)
        if bucket >= 0 and bits_of[bucket] >= 0:
            fetch_row(bits_of[bucket], bits)
            fetch_row(bits_of[bucket], before)


def _from_the_most_similar(
    first: int,
    last: int,
    words: Any,
    queries: Queries,
    less: Table,
    entries: Entries,
    whole: Table,
    whole_row: Any,
    row_condition: Any,
    only: int,
    orders: Any,
    ranking: Ranking,
    found: OneEditAway,
    done: Any,
) -> None:
    """Write mutants one edit away from queries with very many of them as `one_edit` does, in another order.

    Genes replace those of the query from the most similar one on, until the tokens are full: of a share d of
    all genes that were measured with the rest of the query, about t / d are tried. ``done`` is set where what
    was written is the best. Where a ranking ends before, or fewer mutants have the query's condition, or it
    is not worth while, it is not. ``only`` is the condition of all rows, -1: they differ.
    """
    gene, offsets, condition = queries
    row, edit, old, new, product_of = found
    less_slots, less_start = less
    whole_slots, whole_start = whole
    entry_row, entry_first, genes = entries
    known, begin, bits_of, bits, before = genes
    alike, score = ranking
    t, reach, n = row.shape[1], alike.shape[1], len(words)
    rows_at, wide = np.int64(entry_row.ctypes.data), entry_row.itemsize
    bucket_of, taken = np.empty(FEW_GENES, np.int64), np.empty(FEW_GENES, np.int64)
    count = np.empty(FEW_GENES, np.int64)
    # Of each gene of a query: places in its ranking of what was measured with the others, and entries there.
    there, entry = np.empty((FEW_GENES, t + 1), np.int64), np.empty((FEW_GENES, t + 1), np.int64)
    for query in range(first, last):
        if query + 1 < last:
            # Nothing waits for memory that was asked for while the query before was answered.
            fetch_for(query + 1, words, gene, offsets, less_slots, ranking, bits_of, bits, before)
        start = offsets[query]
        k = offsets[query + 1] - start
        if k > FEW_GENES or (only >= 0 and only != condition[query]):
            continue
        key = np.uint64(0)
        for i in range(k):
            key += words[gene[start + i]]
        # Sets of so many genes are looked for only where there are any: each search waits for memory.
        larger, smaller = k + 1 < len(orders) and orders[k + 1], 0 < k <= len(orders) and orders[k - 1]
        added = find(key, less_slots) if larger else -1
        candidates = less_start[added + 1] - less_start[added] if added >= 0 else 0
        for i in range(k):
            bucket = find(key - words[gene[start + i]], less_slots)
            bucket_of[i] = bucket
            if bucket >= 0:
                candidates += less_start[bucket + 1] - less_start[bucket]
        # So many of the genes that can replace one of the query are candidates, and t of these are sought.
        if candidates * reach <= t * n:
            continue
        used = 0
        for i in range(k):
            bucket = find(key - words[gene[start + i]], whole_slots) if smaller else -1
            if bucket >= 0:
                for e in range(whole_start[bucket], whole_start[bucket + 1]):
                    if row_condition[whole_row[e]] == condition[query] and used < t:
                        row[query, used], edit[query, used] = whole_row[e], REMOVED
                        old[query, used], new[query, used] = gene[start + i], -1
                        used += 1
        if added >= 0:
            for i in range(begin[added], begin[added + 1]):
                low, high = (entry_first[i], entry_first[i + 1]) if len(entry_first) else (i, i + 1)
                for e in range(low, high):
                    if used < t and (only >= 0 or row_condition[entry_row[e]] == condition[query]):
                        row[query, used], edit[query, used] = entry_row[e], ADDED
                        old[query, used], new[query, used] = -1, known[i]
                        used += 1
        others, most = used, np.float32(0)
        for i in range(k if used < t else 0):
            g, bucket = gene[start + i], bucket_of[i]
            taken[i], count[i] = 0, 0
            if bucket < 0:
                continue
            met, line = np.uint64(0), bits_of[bucket]
            for at in range(reach):
                if met == np.uint64(t) or alike[g, at] < 0:
                    break
                x = np.uint64(alike[g, at])
                there[i, met] = at
                # Added, not asked: whether a gene is there cannot be foreseen, and a wrong guess costs most.
                if line >= 0:
                    met += (bits[line, x >> np.uint64(6)] >> (x & np.uint64(63))) & np.uint64(1)
                else:
                    met += np.uint64(search(x, known, begin[bucket], begin[bucket + 1]) >= 0)
            count[i] = met
            for e in range(count[i]):
                x = np.uint64(alike[g, there[i, e]])
                if line >= 0:
                    word, bit = x >> np.uint64(6), np.uint64(1) << (x & np.uint64(63))
                    entry[i, e] = (
                        begin[bucket] + before[line, word] + ones(bits[line, word] & (bit - np.uint64(1)))
                    )
                else:
                    entry[i, e] = search(x, known, begin[bucket], begin[bucket + 1])
                if not len(entry_first):
                    fetch_all(rows_at + wide * entry[i, e], rows_at + wide * entry[i, e] + 1)
            # Where the ranking was not kept to its end, what follows may be better than this.
            if alike[g, reach - 1] >= 0 and count[i] < t:
                most = max(most, score[g, reach - 1])
        while used < t:
            top, highest = -1, most
            for i in range(k):
                if taken[i] < count[i] and score[gene[start + i], there[i, taken[i]]] > highest:
                    top, highest = i, score[gene[start + i], there[i, taken[i]]]
            if top < 0:
                break
            i, x = entry[top, taken[top]], alike[gene[start + top], there[top, taken[top]]]
            taken[top] += 1
            low, high = (entry_first[i], entry_first[i + 1]) if len(entry_first) else (i, i + 1)
            for e in range(low, high):
                if used < t and (only >= 0 or row_condition[entry_row[e]] == condition[query]):
                    row[query, used], edit[query, used] = e, REPLACED
                    old[query, used], new[query, used] = gene[start + top], x
                    used += 1
        # Entries become rows at the end: no step waits for the memory that the one before asked for.
        for place in range(others, used):
            row[query, place] = entry_row[row[query, place]]
        for place in range(t):
            product_of[query, place] = UNKNOWN
        done[query] = used == t


fetch_for = njit(inline="always")(_fetch_for)
from_the_most_similar = njit(**COMPILED)(_from_the_most_similar)
