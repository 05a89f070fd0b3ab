"""Compiled loops of evidence lookup: hashed gene sets, mutants one and two edits away, similarities.

Legend: n genes · q queries · Σk their genes · m measured mutants · e entries (a measured mutant and one of
its genes) · c channels of similarity · d width of the embedding · t tokens per query.

A gene set is the sum modulo 2⁶⁴ of one random word per gene (Zobrist 1970), so that an edit of a set costs an
addition whatever its size. Buckets hold what has one key; a table with open addressing finds them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from wildtype.compiled import njit

# Sums may be reordered; but not "nnan": a NaN score taken for the 0 of an untouched gene would be entered
# again and again, beyond the end of the scratch space of `neighbours`.
# Arrays are copied in loops: how an assignment of slices says that shapes differ takes seconds to compile.
COMPILED = {"cache": True, "nogil": True, "fastmath": {"nsz", "arcp", "contract", "afn", "reassoc"}}

FEW_GENES = 8
"""Genes of a query up to which replacements are tried in the order of their similarity."""
MANY = 64
"""Neighbours of a gene above which all candidates are sorted."""
EDITS = ("replaced", "removed", "added")
REPLACED, REMOVED, ADDED = range(3)
"""How a measured mutant differs from the query: a gene replaced, removed or added."""


class Csr(NamedTuple):
    """A sparse matrix by rows."""

    indptr: Any
    indices: Any
    data: Any


class Table(NamedTuple):
    """Buckets by key: bucket i is ``start[i]`` … ``start[i + 1]``-1; ``slots`` find it.

    A slot is two words side by side, since every place of a large table that is read is another wait for
    memory: the key and the number of its bucket from 1 on, 0 in a free slot.
    """

    slots: Any
    start: Any


class Entries(NamedTuple):
    """Genes and rows of all entries [e], context by context and ascending by gene within each.

    A query reads a few contexts alone, which are small and side by side in memory. ``marks`` of a context
    have the bits of its genes, and begin at ``place`` [c + 1] of it.
    """

    gene: Any
    row: Any
    place: Any
    marks: Any


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
    """Measured mutants one edit away, int64 [q, t]: row among the measured, kind of edit, genes; -1: none."""

    row: Any
    edit: Any
    old: Any
    new: Any


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


def _make_table(keys: Any, slots: Any) -> None:
    """Enter bucket i at the place of ``keys[i]``; ``slots`` uint64 [2 · power of two] is zero on entry."""
    mask = np.uint64(len(slots) // 2 - 1)
    for i in range(len(keys)):
        at = (keys[i] ^ (keys[i] >> np.uint64(29))) & mask
        while slots[2 * at + 1]:
            at = (at + np.uint64(1)) & mask
        slots[2 * at], slots[2 * at + 1] = keys[i], np.uint64(i + 1)


def _find(key: Any, slots: Any) -> Any:
    """Return the bucket of a key, or -1."""
    mask = np.uint64(len(slots) // 2 - 1)
    at = (key ^ (key >> np.uint64(29))) & mask
    while slots[2 * at + 1]:
        if slots[2 * at] == key:
            return np.int64(slots[2 * at + 1]) - 1
        at = (at + np.uint64(1)) & mask
    return -1


def _mark(keys: Any, marks: Any) -> None:
    """Set the bit of every key in ``marks`` uint64 [power of two], zero on entry."""
    mask = np.uint64(64 * len(marks) - 1)
    for key in keys:
        # Other bits of the key than those that choose its slot.
        bit = (key >> np.uint64(24)) & mask
        marks[bit >> np.uint64(6)] |= np.uint64(1) << (bit & np.uint64(63))


def _may_hold(key: Any, marks: Any) -> Any:
    """Whether a key may be there: one bit excludes most others, and marks fit into the cache."""
    bit = (key >> np.uint64(24)) & np.uint64(64 * len(marks) - 1)
    return (marks[bit >> np.uint64(6)] >> (bit & np.uint64(63))) & np.uint64(1)


def _weight(i: int, j: int, indptr: Any, indices: Any, data: Any) -> Any:
    """Return the entry (i, j) of a sorted CSR matrix."""
    low, high = indptr[i], indptr[i + 1]
    while low < high:
        middle = (low + high) >> 1
        if indices[middle] < j:
            low = middle + 1
        else:
            high = middle
    if low < indptr[i + 1] and indices[low] == j:
        return data[low]
    return np.float32(0)


def _keep(score: Any, best: Any, used: Any) -> Any:
    """Return the place of a token of that score among the best, or -1; ``used`` places are taken.

    A linear search for the worst: few candidates compete, and a heap would cost every one of them.
    """
    if used < len(best):
        return used
    worst = 0
    for x in range(1, len(best)):
        if best[x] < best[worst]:
            worst = x
    return worst if score > best[worst] else -1


def _mark_genes(start: Any, gene: Any, words: Any, place: Any, marks: Any) -> None:
    """Set the bit of every entry's gene among those of its bucket; ``marks`` are zero on entry."""
    for bucket in range(len(place) - 1):
        mask = np.uint64(64 * (place[bucket + 1] - place[bucket]) - 1)
        for e in range(start[bucket], start[bucket + 1]):
            bit = (words[gene[e]] >> np.uint64(24)) & mask
            at = place[bucket] + np.int64(bit >> np.uint64(6))
            marks[at] |= np.uint64(1) << (bit & np.uint64(63))


def _from_the_most_similar(
    query: int,
    key: Any,
    words: Any,
    queries: Queries,
    less: Table,
    entries: Entries,
    whole: Table,
    whole_row: Any,
    row_condition: Any,
    ranking: Ranking,
    reached: Any,
    bucket_of: Any,
    best: Any,
    found: OneEditAway,
) -> Any:
    """Write mutants one edit away from a query as `_one_edit` does; return whether they are the best.

    Genes replace those of the query from the most similar one on, until the tokens are full: of a share d of
    all genes that were measured with the rest of the query, about t / d are tried. Where a ranking ends
    before, or fewer mutants have the query's condition, what was written is less than the best.

    ``reached`` and ``bucket_of`` [k] are scratch.
    """
    gene, offsets, condition = queries
    row, edit, old, new = found
    less_slots, less_start = less
    whole_slots, whole_start = whole
    entry_gene, entry_row, place, marks = entries
    alike, score = ranking
    t, start = row.shape[1], offsets[query]
    k = offsets[query + 1] - start
    used = 0
    for i in range(k):
        rest = key - words[gene[start + i]]
        reached[i], bucket_of[i] = 0, _find(rest, less_slots)
        bucket = _find(rest, whole_slots)
        if bucket >= 0:
            for e in range(whole_start[bucket], whole_start[bucket + 1]):
                if row_condition[whole_row[e]] == condition[query] and used < t:
                    best[used] = 24
                    row[query, used], edit[query, used] = whole_row[e], REMOVED
                    old[query, used], new[query, used] = gene[start + i], -1
                    used += 1
    bucket = _find(key, less_slots)
    if bucket >= 0:
        for e in range(less_start[bucket], less_start[bucket + 1]):
            if row_condition[entry_row[e]] == condition[query] and used < t:
                best[used] = 20
                row[query, used], edit[query, used] = entry_row[e], ADDED
                old[query, used], new[query, used] = -1, entry_gene[e]
                used += 1
    while used < t:
        top, highest = -1, np.float32(0)
        for i in range(k):
            g, at = gene[start + i], reached[i]
            if bucket_of[i] < 0:
                continue
            if at == alike.shape[1]:
                return False  # what follows in this ranking was not kept, and may be better than the others
            if alike[g, at] >= 0 and score[g, at] > highest:
                top, highest = i, score[g, at]
        if top < 0:
            return False
        x, bucket = alike[gene[start + top], reached[top]], bucket_of[top]
        reached[top] += 1
        bit = (words[x] >> np.uint64(24)) & np.uint64(64 * (place[bucket + 1] - place[bucket]) - 1)
        if not (marks[place[bucket] + np.int64(bit >> np.uint64(6))] >> (bit & np.uint64(63))) & np.uint64(1):
            continue
        low, high = less_start[bucket], less_start[bucket + 1]
        while low < high:
            middle = (low + high) >> 1
            if entry_gene[middle] < x:
                low = middle + 1
            else:
                high = middle
        for e in range(low, less_start[bucket + 1]):
            if entry_gene[e] != x:
                break
            if row_condition[entry_row[e]] == condition[query] and used < t:
                best[used] = highest + np.float32(16)
                row[query, used], edit[query, used] = entry_row[e], REPLACED
                old[query, used], new[query, used] = gene[start + top], x
                used += 1
    return True


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
    entries: Entries,
    ranking: Ranking,
    near: Csr,
    profiles: Csr,
    product: Any,
    spread: Any,
    best: Any,
    ranked: int,
    found: OneEditAway,
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
    row, edit, old, new = found
    less_slots, less_start = less
    whole_slots, whole_start = whole
    near_start, near_column, near_value = near
    profile_start, profile_column, profile_value = profiles
    t, reach = row.shape[1], ranking.gene.shape[1]
    reached, bucket_of = np.empty(FEW_GENES, np.int64), np.empty(FEW_GENES, np.int64)
    moved = np.empty(t, np.int64)
    for query in range(first, last):
        used = 0
        key = np.uint64(0)
        for at in range(offsets[query], offsets[query + 1]):
            key += words[gene[at]]
        bucket = _find(key, less_slots)
        candidates = less_start[bucket + 1] - less_start[bucket] if bucket >= 0 else 0
        for at in range(offsets[query], offsets[query + 1]):
            rest = key - words[gene[at]]
            bucket = _find(rest, less_slots)
            if bucket >= 0:
                candidates += less_start[bucket + 1] - less_start[bucket]
            bucket = _find(rest, whole_slots)
            if bucket >= 0:
                candidates += whole_start[bucket + 1] - whole_start[bucket]
        # Candidates include what cannot be a token: at worst genes are compared in vain.
        crowded = candidates > min(t, ranked)
        # So many of the genes that can replace one of the query are candidates, and t of these are sought.
        soon = candidates * reach > t * len(words) and offsets[query + 1] - offsets[query] <= FEW_GENES
        if soon and _from_the_most_similar(
            query, key, words, queries, less, entries, whole, whole_row, row_condition,
            ranking, reached, bucket_of, best, found,
        ):  # fmt: skip
            continue
        for at in range(offsets[query], offsets[query + 1]):
            g = gene[at]
            rest = key - words[g]
            bucket = _find(rest, less_slots)
            if bucket >= 0:
                start, end = less_start[bucket], less_start[bucket + 1]
                if crowded and not len(product):
                    # The profile of g dense, once for all its replacements; set to 0 again below.
                    for e in range(profile_start[g], profile_start[g + 1]):
                        spread[profile_column[e]] = profile_value[e]
                for e in range(start, end):
                    x = entry_gene[e]
                    if x == g:  # the query itself, in another condition: no edit
                        continue
                    score = np.float32(row_condition[entry_row[e]] == condition[query]) * np.float32(16)
                    if crowded:
                        alike = np.float32(0)
                        if len(product):
                            alike = product[g, x]
                        else:
                            for f in range(profile_start[x], profile_start[x + 1]):
                                alike += profile_value[f] * spread[profile_column[f]]
                        score += weight_of(g, x, near_start, near_column, near_value)
                        score += max(alike, np.float32(0)) ** 2
                    place = _keep(score, best, used)
                    if place >= 0:
                        best[place] = score
                        row[query, place], edit[query, place] = entry_row[e], REPLACED
                        old[query, place], new[query, place] = g, x
                        used = min(used + 1, t)
                if crowded and not len(product):
                    for e in range(profile_start[g], profile_start[g + 1]):
                        spread[profile_column[e]] = 0
            bucket = _find(rest, whole_slots)
            if bucket >= 0:
                for e in range(whole_start[bucket], whole_start[bucket + 1]):
                    same = row_condition[whole_row[e]] == condition[query]
                    place = _keep(8 + 16 * same, best, used)
                    if place >= 0:
                        best[place] = 8 + 16 * same
                        row[query, place], edit[query, place] = whole_row[e], REMOVED
                        old[query, place], new[query, place] = g, -1
                        used = min(used + 1, t)
        bucket = _find(key, less_slots)
        if bucket >= 0:
            for e in range(less_start[bucket], less_start[bucket + 1]):
                same = row_condition[entry_row[e]] == condition[query]
                place = _keep(4 + 16 * same, best, used)
                if place >= 0:
                    best[place] = 4 + 16 * same
                    row[query, place], edit[query, place] = entry_row[e], ADDED
                    old[query, place], new[query, place] = -1, entry_gene[e]
                    used = min(used + 1, t)
        if used > ranked:
            # Stable: ties keep the order in which they were found.
            order = np.argsort(-best[:used], kind="mergesort")
            for column in (row, edit, old, new):
                for place in range(used):
                    moved[place] = column[query, order[place]]
                for place in range(used):
                    column[query, place] = moved[place]


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
    w the product of both similarities. ``marks`` are the bits of all keys (see `_mark`), and ``orders`` [k]
    whether mutants of k genes were measured. ``value`` and ``known`` [m, p] are 0 where nothing was measured.
    ``neighbour`` [n, r] (-1: none) and its scores ``near`` give the replacements. Of a large set, only the
    first ``pairs`` pairs of genes are replaced: r² sets are looked up for each.
    """
    gene, offsets, condition = queries
    row, old, new, place_of, total, weight = found
    whole_slots, whole_start = whole
    t, r = row.shape[1], neighbour.shape[1]
    moved = np.empty(t, np.int64)
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
                rest = whole_key - words[a] - words[b]
                for x in range(r):
                    c = neighbour[a, x]
                    if c < 0:
                        break
                    if c == b:
                        continue
                    key = rest + words[c]
                    # Neighbours are never the gene itself: a set reached here differs in two genes.
                    for y in range(r):
                        d = neighbour[b, y]
                        if d < 0:
                            break
                        if d == a or d == c:  # noqa: SIM109
                            continue
                        if not may_hold(key + words[d], marks):
                            continue
                        bucket = _find(key + words[d], whole_slots)
                        if bucket < 0:
                            continue
                        for e in range(whole_start[bucket], whole_start[bucket + 1]):
                            both = near[a, x] * near[b, y]
                            for p in range(total.shape[1]):
                                total[query, p] += both * value[whole_row[e], p]
                                weight[query, p] += both * known[whole_row[e], p]
                            same = np.float32(row_condition[whole_row[e]] == condition[query])
                            score = both + np.float32(16) * same
                            place = _keep(score, best, used)
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


def _neighbours(
    first: int,
    last: int,
    known: Any,
    embedded: Csr,
    profiles: Csr,
    transpose: Csr,
    score: Any,
    best: Any,
    neighbour: Any,
    near: Any,
) -> None:
    """Write the measured genes most like genes ``first`` … ``last``-1, best first: ``neighbour`` [n, r] and
    ``near``.

    Similarity is cosine³ of the embedding (``embedded`` holds its nearest genes) plus cosine² of label
    profiles, whose products with all others are summed over shared contexts by ``transpose``. ``score`` [n]
    is scratch and zero on entry and exit, ``best`` scratch: [r], or [n] where they are many.
    """
    r = neighbour.shape[1]
    many = r > MANY
    profile_start, profile_column, profile_value = profiles
    context_start, context_gene, context_value = transpose
    touched = np.empty(len(score), np.int64)
    for i in range(first, last):
        count = 0
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
            place = _keep(value, best, used)
            if place >= 0:
                best[place] = value
                neighbour[i, place] = x
                used = min(used + 1, r)
        order = np.argsort(-best[:used])
        chosen = touched[:used].copy() if many else neighbour[i, :used].copy()
        for x in range(min(used, r)):
            neighbour[i, x] = chosen[order[x]]
            near[i, x] = best[order[x]]


def _inverse_rows(indptr: Any, data: Any) -> None:
    """Scale every sparse row to unit length, in place."""
    for i in range(len(indptr) - 1):
        total = np.float32(0)
        for e in range(indptr[i], indptr[i + 1]):
            total += data[e] ** 2
        if total > 0:
            for e in range(indptr[i], indptr[i + 1]):
                data[e] /= np.sqrt(total)


make_table = njit(**COMPILED)(_make_table)
mark = njit(**COMPILED)(_mark)
_find = njit(**COMPILED)(_find)
may_hold = njit(**COMPILED)(_may_hold)
weight_of = njit(**COMPILED)(_weight)
_keep = njit(**COMPILED)(_keep)
mark_genes = njit(**COMPILED)(_mark_genes)
_from_the_most_similar = njit(**COMPILED)(_from_the_most_similar)
one_edit = njit(**COMPILED)(_one_edit)
two_edits = njit(**COMPILED)(_two_edits)
neighbours = njit(**COMPILED)(_neighbours)
to_unit_rows = njit(**COMPILED)(_inverse_rows)
