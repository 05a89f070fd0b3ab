"""Compiled loops of evidence lookup: measured mutants one and two edits away from queries.

Legend: n genes · q queries · Σk their genes · m measured mutants · e entries (a measured mutant and one of
its genes) · c contexts (a measured set less one gene) · t, u tokens per query · p phenotypes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from wildtype.cache_lines import fetch_row
from wildtype.compiled import njit
from wildtype.evidence.gene_bits import GeneBits, ones, search
from wildtype.evidence.hashed_sets import COMPILED, Table, find, may_hold
from wildtype.evidence.neighbour_kernels import Csr, fetch_entries, keep, row_product
from wildtype.evidence.similarity_kernels import UNKNOWN

FEW_GENES = 8
"""Genes of a query up to which replacements are tried in the order of their similarity."""
EDITS = ("replaced", "removed", "added")
REPLACED, REMOVED, ADDED = range(3)
"""How a measured mutant differs from the query: a gene replaced, removed or added."""


class Entries(NamedTuple):
    """Rows of all entries [e], context by context and ascending by gene within each, and where a gene's are.

    Those of gene i of ``genes`` are ``first[i]`` … ``first[i + 1]``-1; ``first`` is empty where every gene of
    a context has one entry, which is then entry i.
    """

    row: Any
    first: Any
    genes: GeneBits


class Ranking(NamedTuple):
    """For every gene the most similar measured ones, best first (-1: no more), and their scores [n, r]."""

    gene: Any
    score: Any


class Queries(NamedTuple):
    """Genes int64 [Σk], offsets int64 [q + 1] and conditions int64 [q] of the mutants asked about."""

    gene: Any
    offsets: Any
    condition: Any


class OneEditAway(NamedTuple):
    """Measured mutants one edit away, int64 [q, t]: row among the measured, kind of edit, genes; -1: none.

    ``alike`` float32 [q, t] is the product of the label profiles of both genes, or ``UNKNOWN``.
    """

    row: Any
    edit: Any
    old: Any
    new: Any
    alike: Any


class TwoEditsAway(NamedTuple):
    """Measured mutants two edits away: rows [q, u], genes [q, u, 2]; Σ w y and Σ w over all found [q, p].

    ``place`` [q, u, 2] is the number of each new gene among the neighbours of the old one.
    """

    row: Any
    old: Any
    new: Any
    place: Any
    total: Any
    weight: Any


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
    """Write mutants one edit away from queries with very many of them as `_one_edit` does, in another order.

    Genes replace those of the query from the most similar one on, until the tokens are full: of a share d of
    all genes that were measured with the rest of the query, about t / d are tried. ``done`` is set where what
    was written is the best. Where a ranking ends before, or fewer mutants have the query's condition, or it
    is not worth while, it is not. ``only`` is the condition of all rows, -1: they differ.
    """
    gene, offsets, condition = queries
    row, edit, old, new, _ = found
    less_slots, less_start = less
    whole_slots, whole_start = whole
    entry_row, entry_first, genes = entries
    known, begin, bits_of, bits, before = genes
    alike, score = ranking
    t, reach, n = row.shape[1], alike.shape[1], len(words)
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
        done[query] = used == t


def _one_edit(
    first: int,
    last: int,
    words: Any,
    queries: Queries,
    less: Table,
    entry_row: Any,
    entry_gene: Any,
    whole: Table,
    whole_row: Any,
    row_condition: Any,
    orders: Any,
    near: Csr,
    profiles: Csr,
    product: Any,
    spread: Any,
    best: Any,
    ranked: int,
    found: OneEditAway,
    done: Any,
) -> None:
    """Write the best measured mutants one edit away from queries ``first`` … ``last``-1, best first.

    ``found`` is -1 on entry. ``best`` [t] and ``spread`` [contexts], zero on entry and exit, are scratch. The
    best are those of the same condition, then smaller and larger sets, then those whose genes are most
    similar; where there are at most ``ranked``, no gene is compared. ``product`` holds the products [n, n] of
    all profiles, or nothing. Of very many candidates the best are sought among the genes of ``ranking``
    first, by ``entries`` of each context, and the others are not compared.

    Scores: 16 for the same condition, 8 for a gene removed, 4 for one added, cosine³ + profile cosine² ≤ 2
    for one replaced. So each criterion decides before the next one.
    """
    # Arrays are taken out of their records once: inside the loops, each access would count references.
    gene, offsets, condition = queries
    row, edit, old, new, product_of = found
    less_slots, less_start = less
    whole_slots, whole_start = whole
    near_start, near_column, near_value = near
    profile_start, profile_column, profile_value = profiles
    t = row.shape[1]
    moved, close = np.empty(t, np.int64), np.zeros(len(words), np.float32)
    for query in range(first, last):
        if done[query]:
            continue
        used = 0
        key = np.uint64(0)
        for at in range(offsets[query], offsets[query + 1]):
            key += words[gene[at]]
        # Sets of so many genes are looked for only where there are any: each search waits for memory.
        k = offsets[query + 1] - offsets[query]
        larger, smaller = k + 1 < len(orders) and orders[k + 1], 0 < k <= len(orders) and orders[k - 1]
        bucket = find(key, less_slots) if larger else -1
        candidates = less_start[bucket + 1] - less_start[bucket] if bucket >= 0 else 0
        for at in range(offsets[query], offsets[query + 1]):
            rest = key - words[gene[at]]
            bucket = find(rest, less_slots)
            if bucket >= 0:
                candidates += less_start[bucket + 1] - less_start[bucket]
            bucket = find(rest, whole_slots) if smaller else -1
            if bucket >= 0:
                candidates += whole_start[bucket + 1] - whole_start[bucket]
        # Candidates include what cannot be a token: at worst genes are compared in vain.
        crowded = candidates > min(t, ranked)
        for at in range(offsets[query], offsets[query + 1]):
            g = gene[at]
            rest = key - words[g]
            bucket = find(rest, less_slots)
            if bucket >= 0:
                start, end = less_start[bucket], less_start[bucket + 1]
                # What is near g and its profile, dense, once for all its replacements; 0 again below.
                if crowded:
                    for e in range(np.uint64(near_start[g]), np.uint64(near_start[g + 1])):
                        close[near_column[e]] = near_value[e]
                if crowded and not len(product):
                    for e in range(np.uint64(profile_start[g]), np.uint64(profile_start[g + 1])):
                        spread[profile_column[e]] = profile_value[e]
                for e in range(start, end):
                    x = entry_gene[e]
                    if x == g:  # the query itself, in another condition: no edit
                        continue
                    score = np.float32(row_condition[entry_row[e]] == condition[query]) * np.float32(16)
                    alike = UNKNOWN
                    if crowded:
                        if len(product):
                            alike = product[g, x]
                        else:
                            if e + 1 < end:
                                later = entry_gene[e + 1]
                                low, high = profile_start[later], profile_start[later + 1]
                                fetch_entries(low, high, profile_column, profile_value)
                            span = profile_start[x], profile_start[x + 1]
                            alike = row_product(*span, profile_column, profile_value, spread)
                        score += close[x]
                        score += max(alike, np.float32(0)) ** 2
                    place = keep(score, best, used)
                    if place >= 0:
                        best[place] = score
                        row[query, place], edit[query, place] = entry_row[e], REPLACED
                        old[query, place], new[query, place] = g, x
                        product_of[query, place] = alike
                        used = min(used + 1, t)
                if crowded:
                    for e in range(np.uint64(near_start[g]), np.uint64(near_start[g + 1])):
                        close[near_column[e]] = 0
                if crowded and not len(product):
                    for e in range(np.uint64(profile_start[g]), np.uint64(profile_start[g + 1])):
                        spread[profile_column[e]] = 0
            bucket = find(rest, whole_slots) if smaller else -1
            if bucket >= 0:
                for e in range(whole_start[bucket], whole_start[bucket + 1]):
                    same = row_condition[whole_row[e]] == condition[query]
                    place = keep(8 + 16 * same, best, used)
                    if place >= 0:
                        best[place] = 8 + 16 * same
                        row[query, place], edit[query, place] = whole_row[e], REMOVED
                        old[query, place], new[query, place] = g, -1
                        product_of[query, place] = UNKNOWN
                        used = min(used + 1, t)
        bucket = find(key, less_slots) if larger else -1
        if bucket >= 0:
            for e in range(less_start[bucket], less_start[bucket + 1]):
                same = row_condition[entry_row[e]] == condition[query]
                place = keep(4 + 16 * same, best, used)
                if place >= 0:
                    best[place] = 4 + 16 * same
                    row[query, place], edit[query, place] = entry_row[e], ADDED
                    old[query, place], new[query, place] = -1, entry_gene[e]
                    product_of[query, place] = UNKNOWN
                    used = min(used + 1, t)
        if used > ranked:
            # Stable: ties keep the order in which they were found.
            order = np.argsort(-best[:used], kind="mergesort")
            for column in (row, edit, old, new):
                for place in range(used):
                    moved[place] = column[query, order[place]]
                for place in range(used):
                    column[query, place] = moved[place]
            ordered = product_of[query, :used][order]
            for place in range(used):
                product_of[query, place] = ordered[place]


def _two_edits(
    first: int,
    last: int,
    words: Any,
    queries: Queries,
    whole: Table,
    whole_row: Any,
    row_condition: Any,
    marks: Any,
    orders: Any,
    neighbour: Any,
    near: Any,
    pairs: int,
    value: Any,
    known: Any,
    best: Any,
    ranked: int,
    found: TwoEditsAway,
) -> None:
    """Write the best measured mutants with two genes replaced by neighbours, best first if they are more than
    ``ranked``, and what all of them say together.

    ``found`` is -1 on entry, its ``total`` and ``weight`` 0: they take Σ w y and Σ w over all mutants found,
    w the product of both similarities. ``marks`` are the bits of all keys (`hashed_sets.mark`), and
    ``orders`` [k] whether mutants of k genes were measured. ``value`` and ``known`` [m, p] are 0 where
    nothing was measured. ``neighbour`` [n, r] (-1: none) and its scores ``near`` give the replacements. Of a
    large set, only the first ``pairs`` pairs of genes are replaced: r² sets are looked up for each.
    """
    gene, offsets, condition = queries
    row, old, new, place_of, total, weight = found
    whole_slots, whole_start = whole
    t, r = row.shape[1], neighbour.shape[1]
    moved = np.empty(t, np.int64)
    others = np.empty(r, np.uint64)
    for query in range(first, last):
        order = offsets[query + 1] - offsets[query]
        if order >= len(orders) or not orders[order]:
            continue
        used, tried = 0, 0
        whole_key = np.uint64(0)
        for at in range(offsets[query], offsets[query + 1]):
            whole_key += words[gene[at]]
        for i in range(offsets[query], offsets[query + 1]):
            for j in range(i + 1, offsets[query + 1]):
                tried += 1
                if tried > pairs:
                    break
                a, b = gene[i], gene[j]
                rest, count = whole_key - words[a] - words[b], 0
                while count < r and neighbour[b, count] >= 0:
                    others[count] = words[neighbour[b, count]]
                    count += 1
                for x in range(r):
                    c = neighbour[a, x]
                    if c < 0:
                        break
                    if c == b:
                        continue
                    key = rest + words[c]
                    for y in range(count):
                        if not may_hold(key + others[y], marks):
                            continue
                        # Neighbours are never the gene itself: a set reached here differs in two genes.
                        d = neighbour[b, y]
                        if d == a or d == c:  # noqa: SIM109
                            continue
                        bucket = find(key + others[y], whole_slots)
                        if bucket < 0:
                            continue
                        for e in range(whole_start[bucket], whole_start[bucket + 1]):
                            both = near[a, x] * near[b, y]
                            for p in range(total.shape[1]):
                                total[query, p] += both * value[whole_row[e], p]
                                weight[query, p] += both * known[whole_row[e], p]
                            same = np.float32(row_condition[whole_row[e]] == condition[query])
                            score = both + np.float32(16) * same
                            place = keep(score, best, used)
                            if place >= 0:
                                best[place] = score
                                row[query, place] = whole_row[e]
                                old[query, place, 0], old[query, place, 1] = a, b
                                new[query, place, 0], new[query, place, 1] = c, d
                                place_of[query, place, 0], place_of[query, place, 1] = x, y
                                used = min(used + 1, t)
        if used > ranked:
            by = np.argsort(-best[:used], kind="mergesort")
            for place in range(used):
                moved[place] = row[query, by[place]]
            for place in range(used):
                row[query, place] = moved[place]
            for column in (old, new, place_of):
                for side in range(2):
                    for place in range(used):
                        moved[place] = column[query, by[place], side]
                    for place in range(used):
                        column[query, place, side] = moved[place]


def _read_rows(
    first: int,
    last: int,
    row: Any,
    condition: Any,
    value: Any,
    row_condition: Any,
    out: Any,
    known: Any,
    same: Any,
) -> None:
    """Write the values [m, p] of rows [q, t] (-1: none), which are known, and whose condition is a query's.

    ``out`` and ``known`` [q, t, p] and ``same`` [q, t] are 0 on entry.
    """
    for query in range(first, last):
        for token in range(row.shape[1]):
            if row[query, token] < 0:
                continue
            at = np.uint64(row[query, token])
            same[query, token] = np.float32(row_condition[at] == condition[query])
            for p in range(value.shape[1]):
                if np.isfinite(value[at, p]):
                    out[query, token, p], known[query, token, p] = value[at, p], True


def _gather(first: int, last: int, gene: Any, table: Any, out: Any) -> None:
    """Write the rows of ``table`` [n, c] of genes [q, t] (-1: none) to ``out`` [q, t, c], zero on entry."""
    for at in range(first, last):
        for token in range(gene.shape[1]):
            if gene[at, token] >= 0:
                row = np.uint64(gene[at, token])
                for x in range(table.shape[1]):
                    out[at, token, x] = table[row, x]


read_rows = njit(**COMPILED)(_read_rows)
gather = njit(**COMPILED)(_gather)
fetch_for = njit(inline="always")(_fetch_for)
from_the_most_similar = njit(**COMPILED)(_from_the_most_similar)
one_edit = njit(**COMPILED)(_one_edit)
two_edits = njit(**COMPILED)(_two_edits)
