from __future__ import annotations

import numpy as np
from scipy import sparse, stats

from wildtype.inference.explaining.free_heads import exchanges, in_relation, relations_attended, sets_attended
from wildtype.organism import Relation
from wildtype.organism.gene_sets import GeneSets
from wildtype.seeds import generator

N, TOP = 120, 5


def relation(seed: int) -> Relation:
    draw = np.random.default_rng(seed)
    return Relation.from_edges(f"r{seed}", *draw.integers(0, N, (2, 300)), N, directed=seed % 2 == 0)


def lists(planted: Relation | None, seed: int, weight: np.ndarray | None = None) -> np.ndarray:
    """Five other genes for every gene; one of them a partner in the planted relation, where there is any."""
    draw = np.random.default_rng(seed)
    out = np.empty((N, TOP), np.int64)
    for i in range(N):
        chance = np.ones(N) if weight is None else weight.copy()
        chance[i] = 0
        out[i] = draw.choice(N, TOP, replace=False, p=chance / chance.sum())
        if planted is not None:
            partners = np.flatnonzero(planted.adjacency[[i]].toarray())
            if len(partners) and partners[0] not in out[i]:
                out[i, 0] = partners[0]
    return out


def given(of: Relation, count: int = 60) -> np.ndarray:
    degree = np.diff(of.adjacency.indptr) + np.diff(of.transpose.indptr)
    return exchanges(degree, count, generator(0, "test"))


def test_counts_are_those_of_a_loop() -> None:
    one, attended, other = relation(0), lists(None, 1), given(relation(0), 3)
    edges = {(int(a), int(b)) for a, b, _ in zip(*one.endpoints(), strict=True)}
    found, null = in_relation(attended, one, other)
    assert found == sum((i, j) in edges or (j, i) in edges for i in range(N) for j in attended[i].tolist())
    assert null[2] == sum(
        (i, j) in edges or (j, i) in edges for i in range(N) for j in attended[other[2, i]].tolist()
    )


def test_a_planted_relation_is_found_and_others_are_not() -> None:
    graphs = [relation(seed) for seed in range(6)]
    attended = lists(graphs[2], 7)
    counted = [in_relation(attended, one, given(one)) for one in graphs]
    found = relations_attended(
        tuple(one.name for one in graphs),
        np.array([one for one, _ in counted]),
        np.array([null for _, null in counted]).T,
    )
    assert [one.name for one in found if one.q < 0.05] == ["r2"]
    assert found[2].fold > 3
    assert found[2].q >= found[2].p
    # The same lists in the hands of other genes say nothing.
    shuffled = attended[np.random.default_rng(0).permutation(N)]
    counted = [in_relation(shuffled, one, given(one)) for one in graphs]
    found = relations_attended(
        tuple(one.name for one in graphs),
        np.array([one for one, _ in counted]),
        np.array([null for _, null in counted]).T,
    )
    assert not [one.name for one in found if one.q < 0.05]


def test_hubs_alone_are_no_enrichment() -> None:
    """That attention falls on genes with many partners is so whoever attends."""
    draw = np.random.default_rng(3)
    weight = 1 / np.arange(1, N + 1)
    hubs = Relation.from_edges("hubs", *draw.choice(N, (2, 400), p=weight / weight.sum()), N, directed=False)
    found, null = in_relation(lists(None, 3, weight), hubs, given(hubs))
    assert found > 2 * in_relation(lists(None, 3), hubs, given(hubs))[0]
    (one,) = relations_attended(("hubs",), np.array([found]), null[:, None])
    assert one.fold < 1.2
    assert one.p > 0.01


def sets(draw: np.random.Generator) -> GeneSets:
    table = draw.random((N, 15)) < 0.06
    table[:3] = True
    return GeneSets("term", tuple(f"t{i}" for i in range(15)), sparse.csr_array(table * 1.0))


def test_sets_are_counted_as_a_loop_does_and_a_planted_one_is_found() -> None:
    named = sets(np.random.default_rng(4))
    table = named.table.toarray() > 0
    attended = lists(None, 5)
    for i in np.flatnonzero(table[:, 4]):
        attended[i, 0] = [j for j in np.flatnonzero(table[:, 4]) if j != i][i % 2]
    found = sets_attended(attended, named)
    for t, one in enumerate(found):
        hit = table[attended, t].any(1)
        assert one.count == (hit & table[:, t]).sum()
        chance = stats.hypergeom(N, hit.sum(), table[:, t].sum())
        np.testing.assert_allclose([one.expected, one.sd], [chance.mean(), chance.std()])
        assert one.p == stats.hypergeom.sf(one.count - 1, N, hit.sum(), table[:, t].sum())
    assert [one.name for one in found if one.q < 0.05] == ["t4"]
    shuffled = sets_attended(attended[np.random.default_rng(1).permutation(N)], named)
    assert not [one.name for one in shuffled if one.q < 0.05]


def test_a_gene_that_all_attend_to_enriches_none_of_its_sets() -> None:
    named = sets(np.random.default_rng(6))
    attended = lists(None, 8)
    attended[:, 0] = 0  # which is in every set
    attended[0, 0] = 1
    found = sets_attended(attended, named)
    assert all(one.count >= named.sizes[t] - 1 for t, one in enumerate(found))
    assert all(one.p > 0.5 for one in found)


def test_lists_are_exchanged_among_equal_degrees() -> None:
    degree = np.repeat([0, 5, 100], 40)
    for row in exchanges(degree, 20, generator(1, "test")):
        np.testing.assert_array_equal(np.sort(row), np.arange(N))
        np.testing.assert_array_equal(degree[row], degree)
    assert not (exchanges(degree, 2, generator(1, "test"))[0] == np.arange(N)).all()


def test_where_nothing_is_planted_little_is_found() -> None:
    """Of counts like the expected ones, no more than a twentieth or so has p below 0.05."""
    draw = np.random.default_rng(0)
    names = tuple(map(str, range(2000)))
    found = relations_attended(names, draw.poisson(8, 2000), draw.poisson(8, (100, 2000)).astype(float))
    assert np.mean([one.p < 0.05 for one in found]) < 0.06
    assert not [one for one in found if one.q < 0.05]
    (rare,) = relations_attended(("rare",), np.array([1]), np.zeros((100, 1)))
    assert rare.p > 0.005  # one rare count is no discovery
    assert relations_attended((), np.zeros(0, np.int64), np.zeros((10, 0))) == []
