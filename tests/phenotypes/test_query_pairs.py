from __future__ import annotations

import csv
import gzip
from collections import Counter
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wildtype.mutants import MutantTable
from wildtype.phenotypes.query_pairs import contains_pair, query_pairs

TRIPLES = st.lists(
    st.sets(st.integers(0, 8), min_size=3, max_size=3).map(sorted), min_size=1, unique_by=tuple
)


def greedy_by_definition(triples: list[tuple[int, ...]]) -> dict[tuple[int, ...], tuple[int, int]]:
    left, out = set(triples), {}
    while left:
        counts = Counter(pair for triple in left for pair in combinations(triple, 2))
        best = min(counts, key=lambda pair: (-counts[pair], pair))
        if counts[best] == 1:
            return out | {triple: triple[:2] for triple in left}
        for triple in [t for t in left if set(best) <= set(t)]:
            out[triple] = best
            left.discard(triple)
    return out


@given(TRIPLES)
def test_cover_is_greedy(triples: list[list[int]]) -> None:
    found = query_pairs(np.array(triples, dtype=np.int64))
    expected = greedy_by_definition([tuple(t) for t in triples])
    assert [tuple(pair) for pair in found.tolist()] == [expected[tuple(t)] for t in triples]


def test_recovers_the_queries_of_a_crossed_screen() -> None:
    queries, arrays = [(0, 1), (2, 3), (0, 4)], range(5, 40)
    triples = np.array([(*query, array) for query in queries for array in arrays])
    assert {tuple(pair) for pair in query_pairs(triples).tolist()} == set(queries)


@given(
    st.lists(st.sets(st.integers(0, 6), max_size=5).map(sorted), min_size=1, max_size=12),
    st.lists(st.sets(st.integers(0, 6), min_size=2, max_size=2).map(sorted), min_size=1, max_size=4),
)
def test_contains_pair(sets: list[list[int]], pairs: list[list[int]]) -> None:
    found = contains_pair(MutantTable.from_sets(sets), np.array(pairs), 7)
    assert found.tolist() == [any(set(pair) <= set(s) for pair in pairs) for s in sets]


@pytest.mark.real
def test_finds_the_query_strains_of_the_trigenic_study(mirror: Path) -> None:
    def rows(name: str) -> list[dict[str, str]]:
        with gzip.open(mirror / name, "rt") as handle:
            return list(csv.DictReader(handle, delimiter="\t"))

    calls = rows("kuzmin2018_significant_trigenic_and_digenic_orf.tsv.gz")
    sets = {frozenset(r[f"orf{i}"] for i in (1, 2, 3)) for r in calls if r["type"] == "trigenic"}
    names = sorted(set().union(*sets))
    triples = np.array(sorted(sorted(names.index(g) for g in s) for s in sets if len(s) == 3))
    known = {frozenset((r["ORF1"], r["ORF2"])) for r in rows("kuzmin_tausga_query_assignment.csv.gz")}
    found, told = 0, 0
    for triple, pair in zip(triples.tolist(), query_pairs(triples).tolist(), strict=True):
        strains = {names[i] for i in triple}
        if any(strain <= strains for strain in known):
            told += 1
            found += frozenset(names[i] for i in pair) in known
    assert told > 2000
    assert found / told > 0.99
