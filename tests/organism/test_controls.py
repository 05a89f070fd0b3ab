"""Rewired relations keep every degree and nothing else; what is read off the graphs follows them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tiny import tiny_organism
from wildtype.errors import ConfigError
from wildtype.organism import GeneFeatures, GeneGraphs, Organism, Relation
from wildtype.organism.controls import choose_relations, merge_relations, rewire, rewire_relations
from wildtype.organism.graph_features import graph_features, spectral_components
from wildtype.organism.relations import Appended


def random_relation(n: int, m: int, *, directed: bool, seed: int = 0, weighted: bool = True) -> Relation:
    draw = np.random.default_rng(seed)
    # squares: some genes have many partners, others few
    rows, cols = (np.floor(n * draw.random(m) ** 2).astype(np.int64) for _ in range(2))
    weights = draw.random(m) + 0.1 if weighted else None
    return Relation.from_edges("made", rows, cols, n, weights, directed=directed, note="made up")


def edges(relation: Relation) -> set[tuple[int, int]]:
    rows, cols, _ = relation.endpoints()
    return set(zip(rows.tolist(), cols.tolist(), strict=True))


@settings(max_examples=40)
@given(n=st.integers(1, 30), m=st.integers(0, 200), directed=st.booleans(), seed=st.integers(0, 1000))
def test_degrees_and_weights_are_kept(n: int, m: int, directed: bool, seed: int) -> None:
    relation = random_relation(n, m, directed=directed, seed=seed)
    random = rewire(relation, seed)
    for before, after in ((relation.adjacency, random.adjacency), (relation.transpose, random.transpose)):
        np.testing.assert_array_equal(np.diff(before.indptr), np.diff(after.indptr))
    rows, cols, weights = random.endpoints()
    assert (rows != cols).all()
    assert len(edges(random)) == rows.size  # none stands twice
    np.testing.assert_array_equal(np.sort(weights), np.sort(relation.endpoints()[2]))
    if directed:  # a source keeps its weights
        for i in range(n):
            mine, before = (r.adjacency[[i]].data for r in (random, relation))
            np.testing.assert_array_equal(np.sort(mine), np.sort(before))
    else:
        assert abs(random.adjacency - random.adjacency.T).max() == 0


@pytest.mark.parametrize("directed", [False, True])
def test_few_edges_stay_and_equal_seeds_give_equal_graphs(directed: bool) -> None:
    relation = random_relation(400, 2000, directed=directed, weighted=False)
    random, again, other = rewire(relation, 0), rewire(relation, 0), rewire(relation, 1)
    same = len(edges(random) & edges(relation))
    # what two graphs of these degrees share by chance: twice the expectation of the configuration model
    out, into = np.diff(relation.adjacency.indptr), np.diff(relation.transpose.indptr)
    rows, cols, _ = relation.endpoints()
    assert same < 2 * (out[rows] * into[cols]).sum() / relation.nnz
    assert edges(random) == edges(again) != edges(other)
    share = same if directed else same // 2
    assert random.note == (
        f"made up; rewired at random with every degree kept (seed 0): {share:,} of {relation.edges:,} edges "
        "are as they were"
    )


def test_swaps_reach_every_graph_of_these_degrees_about_equally_often() -> None:
    """Six genes of one partner each have 15 matchings; each must come up about as often as the others."""
    relation = Relation.from_edges("matching", [0, 2, 4], [1, 3, 5], 6, directed=False)
    found: dict[frozenset[tuple[int, int]], int] = {}
    for seed in range(225):
        key = frozenset(edges(rewire(relation, seed)))
        found[key] = found.get(key, 0) + 1
    assert len(found) == 15
    chi_squared = sum((count - 15) ** 2 / 15 for count in found.values())
    assert chi_squared < 36.1  # 14 degrees of freedom, p = 0.001; the seeds are fixed


def test_a_complete_graph_cannot_be_rewired() -> None:
    rows, cols = np.triu_indices(6, 1)
    relation = Relation.from_edges("complete", rows, cols, 6, directed=False)
    assert edges(rewire(relation, 0)) == edges(relation)


def with_graph_features(organism: Organism) -> Organism:
    blocks = [*organism.features.values(), *graph_features(organism.graphs, components=3, minimum_edges=1)]
    return replace(organism, features=GeneFeatures(blocks))


def test_what_is_read_off_a_relation_goes_with_it() -> None:
    organism = with_graph_features(tiny_organism())
    assert set(organism.features) == {"shape", "degrees", "spectral.physical", "spectral.regulatory"}
    only = choose_relations(organism, ["physical"])
    assert list(only.graphs) == ["physical"]
    assert set(only.features) == {"shape", "degrees", "spectral.physical"}
    assert only.features["degrees"].columns == ("physical",)
    np.testing.assert_array_equal(
        only.features["degrees"].values[:, 0], organism.features["degrees"].values[:, 0]
    )
    assert "without the gene graphs regulatory" in only.description
    without = choose_relations(organism, without=["physical"])
    assert without.features["degrees"].columns == ("regulatory.out", "regulatory.in")
    bare = choose_relations(organism, without=["physical", "regulatory"])
    assert (list(bare.graphs), list(bare.features)) == ([], ["shape"])
    assert choose_relations(organism) is organism


def test_unknown_relations_are_one_sentence() -> None:
    organism = tiny_organism()
    with pytest.raises(ConfigError, match=r"data\.graphs names 'ppi'.*known: physical, regulatory"):
        choose_relations(organism, ["ppi"])
    with pytest.raises(ConfigError, match=r"data\.without names 'ppi'"):
        choose_relations(organism, without=["ppi"])
    with pytest.raises(ConfigError, match="'physical' is in both data.graphs and data.without"):
        choose_relations(organism, ["physical"], ["physical"])


def test_merged_relations_are_their_union() -> None:
    tiny = tiny_organism()
    n = len(tiny.genes)
    weighted = Relation.from_edges("scored", [0, 1, 1], [1, 2, 1], n, [0.5, 0.9, 1.0], directed=False)
    organism = replace(tiny, graphs=GeneGraphs([*tiny.graphs.values(), weighted]))
    merged = merge_relations(organism, {"both": ["physical", "scored"]})
    assert list(merged.graphs) == ["both", "regulatory"]  # in the place of the first part
    union = merged.graphs["both"]
    parts = [organism.graphs[name].adjacency.toarray() for name in ("physical", "scored")]
    np.testing.assert_array_equal(union.adjacency.toarray(), np.maximum(*parts))
    assert (union.directed, union.weighted, dict(union.dropped)) == (False, True, {})
    assert "both merged from physical, scored" in merged.description
    directed = merge_relations(organism, {"all": ["scored", "regulatory"]}).graphs["all"]
    parts = [organism.graphs[name].adjacency.toarray() for name in ("scored", "regulatory")]
    np.testing.assert_array_equal(directed.adjacency.toarray(), np.maximum(*parts))
    assert directed.directed
    assert merge_relations(organism, {}) is organism


def test_what_is_read_off_merged_relations_is_that_of_their_union() -> None:
    organism = with_graph_features(tiny_organism())
    merged = merge_relations(organism, {"both": ["regulatory", "physical"]})
    assert set(merged.features) == {"shape", "degrees", "spectral.both"}
    made = {block.name: block for block in graph_features(merged.graphs, components=3, minimum_edges=1)}
    for name, block in made.items():
        assert merged.features[name].columns == block.columns
        np.testing.assert_array_equal(merged.features[name].values, block.values)
    assert set(merge_relations(tiny_organism(), {"both": ["regulatory", "physical"]}).features) == {"shape"}


def test_pairs_of_an_appended_gene_are_known_where_every_part_knows_them() -> None:
    edges = {"a": ([19, 0], [1, 1]), "b": ([19], [2])}
    graphs = [
        Relation.from_edges(name, *ends, len(tiny_organism().genes), directed=True)
        for name, ends in edges.items()
    ]
    # 19-1 is an edge of a and 19-2 one of b; 19-3 is none of either; 19-4 is none of a, and not known to b.
    valid = {"a": np.array([[19, 19, 19], [1, 3, 4]]), "b": np.array([[19, 19], [2, 3]])}
    organism = replace(tiny_organism(), graphs=GeneGraphs(graphs), appended=Appended(np.array([19]), valid))
    merged = merge_relations(organism, {"both": ["a", "b"]}).appended
    assert {name: pairs.tolist() for name, pairs in merged.valid.items()} == {"both": [[19] * 3, [1, 2, 3]]}


@pytest.mark.parametrize(
    ("merge", "message"),
    [
        ({"a": ["physical", "ppi"]}, r"data\.merge names 'ppi'.*known: physical, regulatory"),
        ({"a": ["physical"]}, "makes 'a' of 1 relation: name two or more"),
        ({"a": ["physical", "physical"]}, "names relation 'physical' more than once"),
        ({"regulatory": ["physical", "physical"]}, "more than once"),
    ],
)
def test_merging_that_makes_no_sense_is_one_sentence(merge: dict[str, list[str]], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        merge_relations(tiny_organism(), merge)


def test_spectral_positions_are_those_of_the_random_graphs() -> None:
    organism = with_graph_features(tiny_organism(n=60))
    random = rewire_relations(organism, 3)
    assert list(random.graphs) == list(organism.graphs)
    for name, relation in random.graphs.items():
        values = random.features[f"spectral.{name}"].values
        np.testing.assert_array_equal(values, spectral_components(relation, 3))
        assert not np.allclose(values, organism.features[f"spectral.{name}"].values, equal_nan=True)
    for kept in ("shape", "degrees"):
        np.testing.assert_array_equal(random.features[kept].values, organism.features[kept].values)
    np.testing.assert_array_equal(
        graph_features(random.graphs)[0].values, random.features["degrees"].values
    )  # degrees of the random graphs are the same numbers
