"""What looking up evidence costs: measured mutants one edit away from each query, along relations.

* compiled: `EvidencePart.one_edit`, hashed sets, all queries at once; and whole tokens, similarities
  included;
* plain: per query a loop over genes, relations and neighbours, and a set of frozen sets; run on a part of
  the queries, since it is slow, and compared by what it finds.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from wildtype.profiling.machine import machine

RELATIONS = 9
NEIGHBOURS = 13


def bench_evidence(
    *, genes: int = 6607, measured: int = 100_000, queries: int = 50_000, repeats: int = 3, seed: int = 0
) -> dict[str, Any]:
    """Return queries per second of lookups, of whole tokens and of the plain way, and whether both agree.

    Parameters
    ----------
    genes : int
        n; every gene has 13 neighbours in each of nine relations.
    measured, queries : int
        Pairs that were measured, and that are asked about.
    repeats : int
        Timed rounds; the median counts.
    seed : int
        Of all draws.
    """
    from wildtype.evidence.lookup import EvidenceIndex, EvidenceSizes
    from wildtype.evidence.similarity import GeneSimilarity
    from wildtype.mutants import MutantTable
    from wildtype.nn.threads import loops
    from wildtype.organism import GeneGraphs, GeneIndex, Organism, Relation
    from wildtype.seeds import generator

    draw = generator(seed, "bench evidence")
    rows = np.repeat(np.arange(genes), NEIGHBOURS)
    relations = []
    for number in range(RELATIONS):
        columns = (rows + draw.integers(1, genes, len(rows))) % genes
        relations.append(Relation.from_edges(f"relation {number + 1}", rows, columns, genes, directed=True))
    names = GeneIndex([f"G{i:05d}" for i in range(genes)], organism="synthetic")
    similarity = GeneSimilarity.of(Organism("synthetic", names, GeneGraphs(relations)))

    def pairs(count: int) -> Any:
        first = draw.integers(0, genes, count)
        sets = np.stack([first, (first + draw.integers(1, genes, count)) % genes], axis=1)
        return MutantTable.from_matrix(sets, value=draw.standard_normal(count))

    table, asked = pairs(measured), pairs(queries)
    index = EvidenceIndex(similarity, table, 1, run=loops)
    part = index.part()
    arrays = (asked.gene, asked.offsets, asked.condition)
    found = _seconds(lambda: part.one_edit(*arrays), repeats)
    whole = _seconds(lambda: part.tokens_of(*arrays), repeats)

    few = asked.take(np.arange(min(queries, 200)))
    roomy = EvidenceIndex(similarity, table, 1, EvidenceSizes(tokens=1024, two=0), loops).part()
    tokens = roomy.tokens_of(few.gene, few.offsets, few.condition)
    along = tokens.one.similarity[..., :RELATIONS].sum(-1) > 0
    ours = [
        {tuple(pair) for pair in zip(old[on].tolist(), new[on].tolist(), strict=True)}
        for old, new, on in zip(tokens.one.old, tokens.one.new, along & tokens.one.mask, strict=True)
    ]
    around = [
        [set(r.adjacency[[g]].indices.tolist()) | set(r.transpose[[g]].indices.tolist()) for r in relations]
        for g in range(genes)
    ]
    start = time.perf_counter()
    plain = _plain(few, table, around)
    plain_rate = len(few) / (time.perf_counter() - start)
    rates = {"lookup": queries / found, "whole tokens": queries / whole, "plain lookup": plain_rate}
    return {
        "machine": machine(),
        "problem": {
            "genes": genes,
            "relations": RELATIONS,
            "neighbours": NEIGHBOURS,
            "measured": measured,
            "queries": queries,
            "repeats": repeats,
            "seed": seed,
        },
        "queries_per_second": rates,
        "ratios": {"lookup_to_plain": rates["lookup"] / plain_rate},
        "found": {"mean": float(np.mean([len(one) for one in ours]))},
        "equal": ours == plain,
    }


def _seconds(work: Callable[[], object], repeats: int) -> float:
    work()
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def _plain(asked: Any, table: Any, neighbours: list[list[set[int]]]) -> list[set[tuple[int, int]]]:
    """Return for every query the (gene, neighbour) exchanges that lead to a measured set.

    ``neighbours`` holds the genes around each gene, relation by relation.
    """
    known = {frozenset(pair) for pair in table.matrix(2).tolist()}
    out = []
    for query in asked.matrix(2).tolist():
        found = set()
        for gene in query:
            rest = frozenset(query) - {gene}
            for around in neighbours[gene]:
                for other in around:
                    if other not in query and rest | {other} in known:
                        found.add((gene, other))
        out.append(found)
    return out
