"""Compiled loops of evidence lookup: measured mutants one and two edits away from queries.

Legend: n genes · q queries · Σk their genes · m measured mutants · e entries (a measured mutant and one of
its genes) · c contexts (a measured set less one gene) · t, u tokens per query · p phenotypes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from wildtype.compiled import njit
from wildtype.evidence.gene_bits import WORD, ones
from wildtype.evidence.hashed_sets import COMPILED, Table, find, held
from wildtype.evidence.neighbour_kernels import Csr, fetch_entries, keep, row_product
from wildtype.evidence.similarity_kernels import UNKNOWN

EDITS = ("replaced", "removed", "added")
REPLACED, REMOVED, ADDED = range(3)
"""How a measured mutant differs from the query: a gene replaced, removed or added."""


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

    The kind is ``REPLACED`` where there is none. ``alike`` float32 [q, t] is the product of the label
    profiles of both genes, or ``UNKNOWN``.
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


def _leader(query: Any, gene: Any, offsets: Any) -> Any:
    """Return the first gene of a query of two; -1 of any other."""
    return gene[offsets[query]] if offsets[query + 1] - offsets[query] == 2 else -1


def _products_pay(
    number: int, last: int, asked: Any, leader: Any, gene: Any, offsets: Any, paths: Any
) -> Any:
    """Whether the products of a leader's profile with all others, made and cleared, are less work than those
    that the queries with this leader need, from place ``number`` of ``asked`` on.
    """
    work = 2 * paths[leader]
    while number < last and _leader(asked[number], gene, offsets) == leader:
        work -= paths[gene[offsets[asked[number]] + 1]]
        number += 1
    return work < 0


def _products_with_all(g: Any, profiles: Csr, transpose: Csr, on: bool, products: Any) -> None:
    """Add up the products of the profile of gene g with all others in ``products`` [n], or set these to 0.

    Context by context: each sum is made in the order of `neighbour_kernels.row_product`.
    """
    profile_start, profile_column, profile_value = profiles
    context_start, context_gene, context_value = transpose
    for e in range(np.uint64(profile_start[g]), np.uint64(profile_start[g + 1])):
        context, value = np.uint64(profile_column[e]), profile_value[e]
        for f in range(np.uint64(context_start[context]), np.uint64(context_start[context + np.uint64(1)])):
            other = np.uint64(context_gene[f])
            products[other] = products[other] + value * context_value[f] if on else np.float32(0)


def _one_edit(
    first: int,
    last: int,
    asked: Any,
    words: Any,
    queries: Queries,
    less: Table,
    entry_row: Any,
    entry_gene: Any,
    whole: Table,
    whole_row: Any,
    row_condition: Any,
    only: int,
    orders: Any,
    near: Csr,
    profiles: Csr,
    transpose: Csr,
    paths: Any,
    product: Any,
    spread: Any,
    best: Any,
    ranked: int,
    found: OneEditAway,
    done: Any,
) -> None:
    """Write the best measured mutants one edit away from queries, best first.

    Queries are those at places ``first`` … ``last`` - 1 of ``asked``. ``best`` [t] and ``spread`` [contexts],
    zero on entry and exit, are scratch. The best are those of the same condition, then smaller and larger
    sets, then those whose genes are most similar; where there are at most ``ranked``, no gene is compared.
    ``product`` holds the products [n, n] of all profiles, or nothing. ``only`` is the condition of all rows,
    -1: they differ. Queries that are ``done`` [q] have their best already (`ranked_kernels`).

    Queries of two genes that follow each other and share their first gene share the products of its profile
    with all others, where these are less work: ``paths`` [n] is the number of entries of all contexts of a
    gene, in ``transpose`` [c, n].

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
    products = np.zeros(len(words) if not len(product) else 0, np.float32)
    tested, known = -1, -1
    for number in range(first, last):
        query = asked[number]
        if done[query]:
            continue
        for place in range(t):
            row[query, place], edit[query, place] = -1, REPLACED
            old[query, place], new[query, place] = -1, -1
            product_of[query, place] = UNKNOWN
        leader = _leader(query, gene, offsets)
        if leader >= 0 and leader != tested and len(products):
            if known >= 0:
                _products_with_all(known, profiles, transpose, False, products)
            tested, known = leader, -1
            if _products_pay(number, last, asked, leader, gene, offsets, paths):
                known = leader
                _products_with_all(known, profiles, transpose, True, products)
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
                dense = crowded and not len(product) and g != known
                if dense:
                    for e in range(np.uint64(profile_start[g]), np.uint64(profile_start[g + 1])):
                        spread[profile_column[e]] = profile_value[e]
                for e in range(start, end):
                    x = entry_gene[e]
                    if x == g:  # the query itself, in another condition: no edit
                        continue
                    # Rows of all candidates are far apart in memory.
                    of = only if only >= 0 else row_condition[np.uint64(entry_row[e])]
                    score = np.float32(of == condition[query]) * np.float32(16)
                    alike = UNKNOWN
                    if crowded:
                        if len(product):
                            alike = product[g, x]
                        elif not dense:
                            alike = products[np.uint64(x)]
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
                if dense:
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


def _marks_pay(
    number: int,
    last: int,
    asked: Any,
    leader: Any,
    gene: Any,
    offsets: Any,
    neighbour: Any,
    less_start: Any,
    alone: Any,
) -> Any:
    """Whether to mark the partners of a leader's neighbours, and to clear them, is less work than to look up
    the sets of all queries with this leader, from place ``number`` of ``asked`` on. A mark costs what a set
    does.
    """
    r = neighbour.shape[1]
    work = 0
    for x in range(r):
        bucket = alone[neighbour[leader, x]] if neighbour[leader, x] >= 0 else -1
        if bucket >= 0:
            work += 2 * (less_start[bucket + 1] - less_start[bucket])
    while number < last and _leader(asked[number], gene, offsets) == leader:
        work -= r * r
        number += 1
    return work < 0


def _mark_partners(
    leader: Any, neighbour: Any, less_start: Any, entry_gene: Any, alone: Any, on: bool, partners: Any
) -> None:
    """Set bit x of every gene in ``partners`` [n] that the neighbour x of a gene was measured with, or all of
    these words to 0 again.
    """
    for x in range(neighbour.shape[1]):
        c = neighbour[leader, x]
        if c < 0:
            break
        if alone[c] < 0:
            continue
        bit = np.uint64(1) << np.uint64(x)
        for e in range(np.uint64(less_start[alone[c]]), np.uint64(less_start[alone[c] + 1])):
            other = np.uint64(entry_gene[e])
            partners[other] = partners[other] | bit if on else np.uint64(0)


def _two_edits(
    first: int,
    last: int,
    asked: Any,
    words: Any,
    queries: Queries,
    whole: Table,
    whole_row: Any,
    row_condition: Any,
    marks: Any,
    orders: Any,
    less_start: Any,
    entry_gene: Any,
    alone: Any,
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

    Queries are those at places ``first`` … ``last`` - 1 of ``asked``. ``found`` is 0 in its ``total`` and
    ``weight`` on entry: they take Σ w y and Σ w over all mutants found, w the product of both similarities.
    ``marks`` are the bits of all keys (`hashed_sets.mark`), and ``orders`` [k] whether mutants of k genes
    were measured. ``value`` and ``known`` [m, p] are 0 where nothing was measured. ``neighbour`` [n, r] (-1:
    none) and its scores ``near`` give the replacements. Of a large set, only the first ``pairs`` pairs of
    genes are replaced: r² sets are looked up for each. ``alone`` [n] is the context of each gene alone, -1:
    none, whose entries (`MeasuredSets.less`) are what it was measured with.

    Queries of two genes that follow each other and share their first gene also share its neighbours: what
    these were measured with is marked once, and each neighbour of a second gene is read instead of r sets
    looked up, where that is less work.
    """
    gene, offsets, condition = queries
    row, old, new, place_of, total, weight = found
    whole_slots, whole_start = whole
    t, r = row.shape[1], neighbour.shape[1]
    moved = np.empty(t, np.int64)
    others = np.empty(r, np.uint64)
    met = np.empty(r, np.uint64)
    partners = np.zeros(len(words), np.uint64)
    marked, tested = -1, -1
    for number in range(first, last):
        query = asked[number]
        for place in range(t):
            row[query, place] = -1
            for side in range(2):
                old[query, place, side], new[query, place, side] = -1, -1
                place_of[query, place, side] = -1
        order = offsets[query + 1] - offsets[query]
        if order >= len(orders) or not orders[order]:
            continue
        used, tried = 0, 0
        whole_key = np.uint64(0)
        for at in range(offsets[query], offsets[query + 1]):
            whole_key += words[gene[at]]
        leader = _leader(query, gene, offsets)
        if leader >= 0 and leader != tested and r <= WORD:
            if marked >= 0:
                _mark_partners(marked, neighbour, less_start, entry_gene, alone, False, partners)
            tested, marked = leader, -1
            if _marks_pay(number, last, asked, leader, gene, offsets, neighbour, less_start, alone):
                marked = leader
                _mark_partners(marked, neighbour, less_start, entry_gene, alone, True, partners)
        for i in range(offsets[query], offsets[query + 1]):
            for j in range(i + 1, offsets[query + 1]):
                tried += 1
                if tried > pairs:
                    break
                a, b = gene[i], gene[j]
                rest, count = whole_key - words[a] - words[b], 0
                shared = leader >= 0 and leader == marked
                any_met = np.uint64(0)
                while count < r and neighbour[b, count] >= 0:
                    others[count] = words[neighbour[b, count]]
                    if shared:
                        met[count] = partners[np.uint64(neighbour[b, count])]
                        any_met |= met[count]
                    count += 1
                if shared and not any_met:
                    continue
                for x in range(r):
                    c = neighbour[a, x]
                    if c < 0:
                        break
                    if c == b or (shared and not (any_met >> np.uint64(x)) & np.uint64(1)):
                        continue
                    key = rest + words[c]
                    for block in range(0, count, WORD):
                        hits = np.uint64(0)
                        if shared:
                            for y in range(count):
                                hits |= ((met[y] >> np.uint64(x)) & np.uint64(1)) << np.uint64(y)
                        else:
                            for y in range(block, min(block + WORD, count)):
                                hits |= held(key + others[y], marks) << np.uint64(y - block)
                        while hits:
                            # The lowest bit: as many places are below it.
                            y = block + ones((hits & (np.uint64(0) - hits)) - np.uint64(1))
                            hits &= hits - np.uint64(1)
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
    mask: Any,
    out: Any,
    known: Any,
    same: Any,
) -> None:
    """Write where rows [q, t] are (-1: none), their values [m, p], which are known, and whose condition is a
    query's.

    ``out`` and ``known`` [q, t, p] and ``same`` [q, t] are 0 on entry.
    """
    for query in range(first, last):
        for token in range(row.shape[1]):
            mask[query, token] = row[query, token] >= 0
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
_leader = njit(inline="always", **COMPILED)(_leader)
_products_pay = njit(**COMPILED)(_products_pay)
_products_with_all = njit(**COMPILED)(_products_with_all)
_marks_pay = njit(**COMPILED)(_marks_pay)
_mark_partners = njit(**COMPILED)(_mark_partners)
one_edit = njit(**COMPILED)(_one_edit)
two_edits = njit(**COMPILED)(_two_edits)
