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

from wildtype.datasets.query_pairs import (
    contains_pair,
    is_contained,
    query_genes,
    query_pairs,
    query_strains,
    strain_of_rows,
)
from wildtype.mutants import MutantTable

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


@given(
    st.lists(st.sets(st.integers(0, 6), max_size=5).map(sorted), min_size=1, max_size=12),
    st.lists(st.sets(st.integers(0, 6), min_size=2, max_size=2).map(sorted), max_size=4),
)
def test_is_contained(sets: list[list[int]], pairs: list[list[int]]) -> None:
    found = is_contained(np.array(pairs, dtype=np.int64).reshape(-1, 2), MutantTable.from_sets(sets), 7)
    assert found.tolist() == [any(set(pair) <= set(s) for s in sets) for pair in pairs]


@given(st.lists(st.sets(st.integers(0, 7), max_size=4).map(sorted), min_size=1, max_size=40))
def test_strains_in_their_order_give_the_screens_of_the_cover(sets: list[list[int]]) -> None:
    table = MutantTable.from_sets(sets)
    strains = query_strains(table)
    found = strain_of_rows(table, strains, 8)
    for order, cover in ((2, query_genes), (3, query_pairs)):
        of_order = sorted({tuple(s) for s in sets if len(s) == order})
        queries = cover(np.array(of_order, dtype=np.int64).reshape(-1, order)).reshape(-1, order - 1).tolist()
        of_set = dict(zip(of_order, queries, strict=True))
        for row, s in enumerate(sets):
            if len(s) == order:
                assert list(strains[found[row]]) == of_set[tuple(s)]
    assert all(found[row] == -1 for row, s in enumerate(sets) if len(s) not in (2, 3))


def test_the_strain_of_more_sets_comes_first() -> None:
    sets = [(1, 6), (1, 7), (0, 1), (0, 2), (0, 3), (0, 4), (2, 3, 5), (2, 3, 4), (1, 2, 3), (1, 3, 6)]
    table = MutantTable.from_sets(sets)
    assert query_strains(table) == [(0,), (1,), (2, 3), (1, 3)]
    assert strain_of_rows(table, query_strains(table), 8).tolist() == [1, 1, 0, 0, 0, 0, 2, 2, 2, 3]


def test_rows_go_to_the_first_strain_that_fits() -> None:
    table = MutantTable.from_sets([(0, 1), (1, 2), (0, 1, 2), (1, 2, 3), (0, 3), (1,)])
    assert strain_of_rows(table, [(2,), (2, 1), (0, 1), (1,)], 5).tolist() == [3, 0, 1, 1, -1, -1]
    assert strain_of_rows(table, [], 5).tolist() == [-1] * 6


def test_recovers_the_query_genes_of_a_crossed_screen() -> None:
    pairs = np.array([(query, array) for query in (0, 1, 2) for array in range(3, 20)])
    assert query_genes(pairs).tolist() == pairs[:, 0].tolist()


@pytest.mark.real
def test_query_genes_of_pairs_are_a_guess(mirror: Path) -> None:
    with gzip.open(mirror / "costanzo2010_sga_stringent_cutoff_101120.tsv.gz", "rt") as handle:
        rows = [
            (cells[0].split("_")[0], cells[2].split("_")[0]) for cells in csv.reader(handle, delimiter="\t")
        ]
    queries: dict[frozenset[str], set[str]] = {}
    for query, array in rows:
        queries.setdefault(frozenset((query, array)), set()).add(query)
    told = [pair for pair in queries if len(pair) == 2]
    names = sorted(set().union(*told))
    at = {name: i for i, name in enumerate(names)}
    pairs = np.array([sorted(at[g] for g in pair) for pair in told])
    once = np.array([len(queries[pair]) == 1 for pair in told])
    right = np.array([names[g] in queries[pair] for g, pair in zip(query_genes(pairs), told, strict=True)])
    assert (len(told), int(once.sum())) == (51_678, 43_379)
    assert 0.68 < right[once].mean() < 0.73


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
