from __future__ import annotations

import numpy as np
from scipy import sparse

from wildtype.inference.explaining.enrichment import (
    chance,
    enrichments,
    pairs_in_relation,
    pairs_in_sets,
    shuffles,
)
from wildtype.organism import Relation
from wildtype.organism.gene_sets import GeneSets
from wildtype.seeds import generator

N, TOP = 120, 5


def relation(seed: int) -> Relation:
    draw = np.random.default_rng(seed)
    return Relation.from_edges(f"r{seed}", *draw.integers(0, N, (2, 300)), N, directed=seed % 2 == 0)


def attended(planted: Relation | None, seed: int) -> np.ndarray:
    """Pairs of every gene and five others; a third of them edges of the planted relation."""
    draw = np.random.default_rng(seed)
    pairs = [(i, j) for i in range(N) for j in draw.choice(N - 1, TOP, replace=False) + 1]
    if planted is not None:
        rows, columns, _ = planted.endpoints()
        for at in draw.choice(len(pairs), len(pairs) // 3, replace=False):
            edge = draw.integers(len(rows))
            pairs[at] = rows[edge], columns[edge]
    return np.array(pairs)


def places(of: Relation, count: int = 60) -> np.ndarray:
    degree = np.diff(of.adjacency.indptr) + np.diff(of.transpose.indptr)
    return shuffles(degree, count, generator(0, "test"))


def test_counts_are_those_of_a_loop() -> None:
    one, pairs = relation(0), attended(None, 1)
    edges = {(int(a), int(b)) for a, b, _ in zip(*one.endpoints(), strict=True)}
    found, null = pairs_in_relation(pairs, one, places(one, 3))
    assert found == sum((i, j) in edges or (j, i) in edges for i, j in pairs.tolist())
    place = places(one, 3)[2]
    moved = place[pairs].tolist()
    assert null[2] == sum((i, j) in edges or (j, i) in edges for i, j in moved)


def test_a_planted_relation_is_found_and_others_are_not() -> None:
    graphs = [relation(seed) for seed in range(6)]
    pairs = attended(graphs[2], 7)
    counted = [pairs_in_relation(pairs, one, places(one)) for one in graphs]
    found = enrichments(
        tuple(one.name for one in graphs),
        np.array([one for one, _ in counted]),
        np.array([null for _, null in counted]).T,
    )
    assert [one.q < 0.05 for one in found] == [name == "r2" for name in (g.name for g in graphs)]
    assert found[2].fold > 3
    assert found[2].q >= found[2].p


def test_hubs_alone_are_no_enrichment() -> None:
    """Attention that falls on genes of large degree is what shuffles of equal degrees do, too."""
    draw = np.random.default_rng(3)
    weight = 1 / np.arange(1, N + 1)
    weight /= weight.sum()
    ends = draw.choice(N, (2, 400), p=weight)
    hubs = Relation.from_edges("hubs", *ends, N, directed=False)
    pairs = np.array(
        [(i, j) for i in range(N) for j in draw.choice(N, TOP, replace=False, p=weight) if i != j]
    )
    found, null = pairs_in_relation(pairs, hubs, places(hubs))
    uniform = shuffles(np.zeros(N, np.int64), 60, generator(0, "test"))
    uniform = np.array([draw.permutation(N) for _ in uniform])
    assert found > 2 * pairs_in_relation(pairs, hubs, uniform)[1].mean()
    (one,) = enrichments(("hubs",), np.array([found]), null[:, None])
    assert one.fold < 1.4


def test_sets_are_counted_as_a_loop_does_and_a_planted_one_is_found() -> None:
    draw = np.random.default_rng(4)
    table = draw.random((N, 15)) < 0.06
    sets = GeneSets("term", tuple(f"t{i}" for i in range(15)), sparse.csr_array(table * 1.0))
    pairs = attended(None, 5)
    inside = np.flatnonzero(table[:, 4])
    pairs[:12] = [draw.choice(inside, 2, replace=False) for _ in range(12)]
    moved = shuffles(table.sum(1), 60, generator(0, "test"))
    found, null = pairs_in_sets(pairs, sets, moved)
    for t in range(15):
        assert found[t] == sum(bool(table[i, t] and table[j, t]) for i, j in pairs)
        assert null[1, t] == sum(bool(table[moved[1, i], t] and table[moved[1, j], t]) for i, j in pairs)
    assert [e.name for e in enrichments(sets.names, found, null) if e.q < 0.05] == ["t4"]


def test_shuffles_are_permutations_among_equal_degrees() -> None:
    degree = np.repeat([0, 5, 100], 40)
    for row in shuffles(degree, 20, generator(1, "test")):
        np.testing.assert_array_equal(np.sort(row), np.arange(N))
        np.testing.assert_array_equal(degree[row], degree)
    assert not (shuffles(degree, 2, generator(1, "test"))[0] == np.arange(N)).all()


def test_chance_is_uniform_enough_where_nothing_is_planted() -> None:
    """Of counts like the shuffled ones, no more than a twentieth or so has p below 0.05."""
    draw = np.random.default_rng(0)
    p = chance(draw.poisson(8, 4000), draw.poisson(8, (100, 4000)).astype(float))
    assert (p < 0.05).mean() < 0.06
    assert chance(np.array([1, 3]), np.zeros((100, 2)))[0] > 0.005  # one rare count is no discovery
    assert enrichments((), np.zeros(0, np.int64), np.zeros((10, 0))) == []
