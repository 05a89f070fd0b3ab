"""Compiled lookup of measured mutants one edit away from queries, of all candidates.

Legend: n genes · q queries · Σk their genes · m measured mutants · e entries (a measured mutant and one of
its genes) · c contexts (a measured set less one gene) · t tokens per query.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wildtype.compiled import njit
from wildtype.evidence.edits import ADDED, REMOVED, REPLACED, OneEditAway, Queries
from wildtype.evidence.first_genes import leader_of
from wildtype.evidence.hashed_sets import COMPILED, Table, find
from wildtype.evidence.neighbour_kernels import Csr, fetch_entries, keep, row_product
from wildtype.evidence.similarity_kernels import UNKNOWN


def _products_pay(
    number: int, last: int, asked: Any, leader: Any, gene: Any, offsets: Any, paths: Any
) -> Any:
    """Whether the products of a leader's profile with all others, made and cleared, are less work than those
    that the queries with this leader need, from place ``number`` of ``asked`` on.
    """
    work = 2 * paths[leader]
    while number < last and leader_of(asked[number], gene, offsets) == leader:
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
        leader = leader_of(query, gene, offsets)
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


_products_pay = njit(**COMPILED)(_products_pay)
_products_with_all = njit(**COMPILED)(_products_with_all)
one_edit = njit(**COMPILED)(_one_edit)
