"""What looking up evidence costs: measured mutants one edit away from each query, along relations.

* compiled: `EvidencePart.one_edit`, hashed sets, all queries at once; and whole tokens, similarities
  included;
* floor: of whole tokens, nothing but reading the embedding of the gene of every token;
* plain: per query a loop over genes, relations and neighbours, and a set of frozen sets; run on a part of
  the queries, since it is slow, and compared by what it finds.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.nn.functional import embedding_bag

from benchmarks.measuring import chosen
from wildtype.evidence.lookup import EvidenceIndex, EvidenceSizes
from wildtype.evidence.part import CHUNK
from wildtype.mutants import MutantTable
from wildtype.nn.devices import device_named, waits_for
from wildtype.nn.threads import each, loops
from wildtype.profiling.evidence_problem import EvidenceProblem
from wildtype.profiling.machine import machine, take_turns

RELATIONS = 9
NEIGHBOURS = 13
Exchanges = set[tuple[int, int]]  # of a gene of the query for a neighbour


def bench_evidence(
    *,
    genes: int = 6607,
    measured: int = 100_000,
    queries: int = 50_000,
    repeats: int = 3,
    seed: int = 0,
    device: str = "cpu",
) -> dict[str, Any]:
    """Looking up measured mutants one edit away: compiled loops over hashed sets against Python's own.

    Parameters
    ----------
    genes : int
        n; every gene has 13 neighbours in each of nine relations.
    measured, queries : int
        Pairs that were measured, and pairs that are looked up.
    repeats : int
        Timed rounds; the median counts.
    seed : int
        Of all draws.
    device : str
        ``cpu``, ``cuda`` or ``cuda:1``: where whole tokens are brought to. They are looked up on the CPU.
    """
    options = chosen(locals())
    problem = EvidenceProblem.draw(
        genes, measured, queries, relations=RELATIONS, neighbours=NEIGHBOURS, seed=seed
    )
    place, lookups = device_named(device), problem.lookups()
    runs = lookups | {"floor of whole tokens": _rows_read(problem)}
    if place.type != "cpu":
        runs[f"whole tokens on {device}"] = lambda: lookups["whole tokens"]().to(place)
    seconds = take_turns(runs, repeats, synchronise=waits_for(place))

    few = problem.queries.take(np.arange(min(queries, 200)))
    # Tokens enough for every hit of a query, or the comparison would miss those that were cut off.
    roomy = EvidenceIndex(
        problem.similarity, problem.measured, 1, EvidenceSizes(tokens=1024, two=0), loops
    ).part()
    tokens = roomy.tokens_of(few.gene, few.offsets, few.condition)
    along = tokens.one.similarity[..., :RELATIONS].sum(-1) > 0
    ours = [
        {tuple(pair) for pair in zip(old[on].tolist(), new[on].tolist(), strict=True)}
        for old, new, on in zip(tokens.one.old, tokens.one.new, along & tokens.one.mask, strict=True)
    ]
    around = [
        [
            set(r.adjacency[[g]].indices.tolist()) | set(r.transpose[[g]].indices.tolist())
            for r in problem.relations
        ]
        for g in range(genes)
    ]
    start = time.perf_counter()
    plain = _plain(few, problem.measured, around)
    plain_rate = len(few) / (time.perf_counter() - start)
    rates = {name: queries / value for name, value in seconds.items()} | {"plain lookup": plain_rate}
    return {
        "machine": machine(),
        "problem": options | {"relations": RELATIONS, "neighbours": NEIGHBOURS},
        "queries_per_second": rates,
        "ratios": {
            "lookup_to_plain": rates["lookup"] / plain_rate,
            "floor_to_whole_tokens": rates["floor of whole tokens"] / rates["whole tokens"],
        },
        "found": {"mean": float(np.mean([len(one) for one in ours]))},
        "equal": ours == plain,
    }


def _rows_read(problem: EvidenceProblem) -> Callable[[], object]:
    """Return a call that reads the row of the embedding of every token's gene once, and adds them up."""
    asked = problem.queries
    found = problem.index().part().one_edit(asked.gene, asked.offsets, asked.condition)
    gene, rows = torch.from_numpy(np.maximum(found.new, 0)), torch.from_numpy(problem.similarity.unit)
    pieces = gene.split(CHUNK)

    def read(i: int) -> None:
        embedding_bag(pieces[i], rows, mode="sum")

    return lambda: each(len(pieces), read)


def _plain(asked: MutantTable, table: MutantTable, neighbours: list[list[set[int]]]) -> list[Exchanges]:
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
