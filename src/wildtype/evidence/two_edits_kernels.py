"""Compiled lookup of measured mutants with two genes of a query replaced by neighbours.

Legend: n genes · q queries · Σk their genes · m measured mutants · r neighbours of a gene · u tokens per
query · p phenotypes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wildtype.compiled import njit
from wildtype.evidence.edits import Queries, TwoEditsAway
from wildtype.evidence.first_genes import leader_of
from wildtype.evidence.gene_bits import WORD, ones
from wildtype.evidence.hashed_sets import COMPILED, Table, find, held
from wildtype.evidence.neighbour_kernels import keep


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
    while number < last and leader_of(asked[number], gene, offsets) == leader:
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
        leader = leader_of(query, gene, offsets)
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


_marks_pay = njit(**COMPILED)(_marks_pay)
_mark_partners = njit(**COMPILED)(_mark_partners)
two_edits = njit(**COMPILED)(_two_edits)
