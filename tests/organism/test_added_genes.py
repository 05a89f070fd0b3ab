"""Genes that are appended to an organism."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.organism.test_metabolic_features import GENES, network
from tests.tiny import same_places, tiny_organism
from wildtype.errors import DatasetError, GeneSetError, SourceError, UnknownGeneError
from wildtype.organism import FeatureBlock, GeneFeatures, GeneGraphs, Organism, Relation
from wildtype.organism.graph_features import graph_features
from wildtype.organism.metabolic_features import metabolic_features
from wildtype.organism.metabolic_graphs import metabolic_graphs
from wildtype.organism.sequence_features import CODONS, SENSE, coding_blocks
from wildtype.organism.storage import read_organism, save_organism

EDGES = {"physical": ["G001", "abc2", ("G003", 0)], "regulatory": [("G004", 0.5)], "regulatory.in": ["G005"]}


@pytest.fixture
def cell() -> Organism:
    """The small network of the tests of features, with what is read off it and a block that is not."""
    graphs = metabolic_graphs(network(), GENES)
    other = FeatureBlock("flux", np.ones((5, 1), np.float32), ("total",))
    blocks = [*metabolic_features(network(), GENES), other, *graph_features(graphs)]
    return Organism("cell", GENES, graphs, GeneFeatures(blocks), network())


def linked(organism: Organism, relation: str, gene: int) -> tuple[set[int], set[int]]:
    graph = organism.graphs[relation]
    return set(graph.adjacency[[gene]].indices.tolist()), set(graph.transpose[[gene]].indices.tolist())


def test_what_is_given_is_an_edge_or_known_and_the_rest_stays() -> None:
    base = tiny_organism()
    wider = base.add_gene("NEW1", features={"shape": {"a": 2.0}}, edges=EDGES)
    assert wider.genes.names == (*base.genes.names, "NEW1")
    assert wider.appended.genes.tolist() == [24]
    assert linked(wider, "physical", 24) == ({1, 2}, {1, 2})
    assert linked(wider, "regulatory", 24) == ({4}, {5})
    assert wider.graphs["regulatory"].adjacency[[24], [4]] == pytest.approx(0.5)
    pairs = {name: set(zip(*p.tolist(), strict=True)) for name, p in wider.appended.valid.items()}
    physical = {(24, 1), (24, 2), (24, 3)}
    assert pairs["physical"] == physical | {(b, a) for a, b in physical}  # 3 is known to be no partner
    assert pairs["regulatory"] == {(24, 4), (5, 24)}
    for name, relation in base.graphs.items():
        inner = wider.graphs[name].restrict(np.arange(24))
        assert (inner.adjacency != relation.adjacency).nnz == 0
    np.testing.assert_array_equal(wider.features["shape"].values[:24], base.features["shape"].values)
    np.testing.assert_array_equal(wider.features["shape"].values[24], [2, np.nan, np.nan])
    assert wider.essential is not None
    assert not wider.essential[24]
    assert wider.coordinates is not None
    assert not wider.coordinates.known[24]
    assert same_places(wider.restrict(np.arange(24)), base)
    assert base.appended.genes.size == 0


def test_a_second_gene_may_be_related_to_the_first() -> None:
    wider = tiny_organism().add_gene("NEW1", edges=EDGES).add_gene("NEW2", edges={"physical": ["NEW1"]})
    assert wider.appended.genes.tolist() == [24, 25]
    assert linked(wider, "physical", 25) == ({24}, {24})
    assert wider.appended.valid["physical"].shape == (2, 8)
    kept = wider.restrict(np.array([1, 3, 25, 24]))
    assert kept.appended.genes.tolist() == [2, 3]
    assert {tuple(p) for p in kept.appended.valid["physical"].T.tolist()} == {
        (3, 0),
        (3, 1),
        (0, 3),
        (1, 3),
        (2, 3),
        (3, 2),
    }
    assert kept.restrict(np.array([0, 1])).appended.genes.size == 0


def test_a_sequence_gives_the_blocks_made_of_sequences() -> None:
    draw = np.random.default_rng(1)
    codons = draw.integers(0, 9, (24, 64)) + 1
    blocks = coding_blocks(codons, np.arange(24), 24, count=5)
    base = replace(tiny_organism(), features=GeneFeatures(blocks))
    one = [c for c, used in zip(CODONS, codons[7], strict=True) for _ in range(used)]
    sense = "".join(c for c in one if SENSE[CODONS.index(c)])
    wider = base.add_gene("COPY", sequence=sense)
    for block in wider.features.values():
        np.testing.assert_allclose(block.values[24], block.values[7], rtol=1e-5, atol=1e-5)
    protein = base.add_gene("PROTEIN", sequence="MKVLA").features
    assert np.isfinite(protein["protein"].values[24]).all()
    assert np.isnan(protein["codon_usage"].values[24]).all()


def test_reactions_make_all_metabolic_pairs_known(cell: Organism) -> None:
    wider = cell.add_gene("new", reactions=["second", ("first", "new and g4")])
    n = len(cell.genes)
    assert wider.metabolism is not None
    assert "new" in wider.metabolism.genes
    whole = metabolic_graphs(wider.metabolism, wider.genes)
    for name in cell.graphs:
        assert linked(wider, name, n) == linked(replace(wider, graphs=whole), name, n)
        pairs = {tuple(p) for p in wider.appended.valid[name].T.tolist()}
        assert pairs == {(n, i) for i in range(n)} | {(i, n) for i in range(n)}
        inner = wider.graphs[name].restrict(np.arange(n))
        assert (inner.adjacency != cell.graphs[name].adjacency).nnz == 0
    g1, g3, g4 = (cell.genes.find(name) for name in ("g1", "g3", "g4"))
    assert linked(wider, "isozyme", n)[0] >= {g1, g3}
    assert linked(wider, "complex", n)[0] == {g4}
    rules = wider.features["rules"]
    assert np.expm1(rules.values[n, rules.columns.index("reactions")]) == pytest.approx(2)
    assert np.isfinite(wider.features["network"].values[n]).any()
    assert np.isnan(wider.features["flux"].values[n]).all()
    degrees = wider.features["degrees"]
    assert np.isfinite(degrees.values[n]).all()
    reaction = degrees.values[n, degrees.columns.index("reaction")]
    assert np.expm1(reaction) == pytest.approx(len(linked(wider, "reaction", n)[0]), rel=1e-5)
    given = cell.add_gene("new", reactions=["second"], edges={"complex": [("g1", 2.0), ("g4", 0)]})
    assert linked(given, "complex", n) == ({g1}, {g1})
    assert given.appended.valid["complex"].shape == (2, 2 * n)


def test_a_relation_that_was_not_read_off_the_network_stays_unknown(cell: Organism) -> None:
    other = Relation.from_edges("complex", [0], [1], 5, [1.0], directed=False)
    graphs = GeneGraphs(other if r.name == "complex" else r for r in cell.graphs.values())
    wider = replace(cell, graphs=graphs).add_gene("new", reactions=["second"])
    assert "complex" not in wider.appended.valid
    assert "reaction" in wider.appended.valid


def test_stored_and_back(tmp_path: Path) -> None:
    codons = np.random.default_rng(1).integers(1, 9, (24, 64))
    base = replace(tiny_organism(), features=GeneFeatures(coding_blocks(codons, np.arange(24), 24, count=5)))
    wider = base.add_gene("NEW1", edges=EDGES)
    save_organism(wider, tmp_path / "o")
    again = read_organism(tmp_path / "o")
    assert_same_appended(again, wider)
    for organism in (wider, again):
        basis = organism.features["codon_usage"].basis
        assert basis is not None
        assert basis.inputs == tuple(c for c, s in zip(CODONS, SENSE, strict=True) if s)


def assert_same_appended(again: Organism, wider: Organism) -> None:
    """Whether two organisms have the same appended genes, and would describe a further one alike."""
    np.testing.assert_array_equal(again.appended.genes, wider.appended.genes)
    assert list(again.appended.valid) == list(wider.appended.valid)
    for name, pairs in wider.appended.valid.items():
        np.testing.assert_array_equal(again.appended.valid[name], pairs)
    for name, block in wider.features.items():
        assert again.features[name].comparable == block.comparable
    a, b = (o.add_gene("X", sequence="ATGGCTGAATTTAAATGG").features["codon_usage"] for o in (again, wider))
    np.testing.assert_array_equal(a.values[-1], b.values[-1])


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"name": "abc3"}, GeneSetError, r"is a name of abc3 \(G003\)"),
        ({"name": " "}, GeneSetError, "is empty"),
        ({"edges": {"physical": ["G0O1"]}}, UnknownGeneError, "did you mean G"),
        ({"edges": {"fysical": ["G001"]}}, DatasetError, "no relation 'fysical'"),
        ({"edges": {"physical.in": ["G001"]}}, DatasetError, "is not directed"),
        ({"edges": {"physical": [("G001", 0.5)]}}, DatasetError, "expected 1, or 0"),
        ({"edges": {"regulatory": [("G001", -1)]}}, DatasetError, "expected a number from 0"),
        ({"edges": {"regulatory": [("G001", 1), ("G001", 2)]}}, DatasetError, "weights 1 and 2"),
        ({"features": {"size": [1]}}, DatasetError, "no feature block 'size'"),
        ({"features": {"shape": [1]}}, DatasetError, "has 3 columns"),
        ({"features": {"shape": {"d": 1}}}, DatasetError, "the column 'd'"),
        ({"reactions": ["PFK"]}, DatasetError, "has no metabolism"),
        ({"sequence": "12"}, SourceError, "the sequence of 'NEW1' has the letter '1'"),
    ],
)
def test_what_does_not_fit_is_refused(given: dict, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        tiny_organism().add_gene(**({"name": "NEW1"} | given))


@pytest.mark.parametrize(
    ("reaction", "message"),
    [
        ("third", "not one of the network's 5"),
        (("first", "g1"), "does not name it"),
        ("uptake", "has no gene rule"),
    ],
)
def test_reactions_that_do_not_fit_are_refused(cell: Organism, reaction: object, message: str) -> None:
    with pytest.raises(DatasetError, match=message):
        cell.add_gene("new", reactions=[reaction])  # type: ignore[list-item]
