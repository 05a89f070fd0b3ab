"""Units as tokens: what they are made of, and what is carried over from their genes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from wildtype.errors import AmbiguousGeneError, DatasetError, GeneSetError, UnknownGeneError
from wildtype.evaluation.predicted_rows import gene_sets
from wildtype.organism import (
    Coordinates,
    FeatureBlock,
    GeneFeatures,
    GeneGraphs,
    GeneIndex,
    Organism,
    Relation,
)
from wildtype.organism.in_units import in_units
from wildtype.organism.storage import read_organism, save_organism

OPERONS = {"op1": ["a", "b"], "op2": ["c", "B"], "op3": ["d"], "op1again": ["b", "a"]}


@pytest.fixture
def organism() -> Organism:
    genes = GeneIndex(["a", "b", "c", "d", "e"], {"a": "dnaA"}, {"d": ["dee"]}, "tiny", {"a": "starts"})
    directed = Relation.from_edges("regulates", [0, 1, 4], [2, 3, 0], 5, [1.0, 2.0, 3.0], directed=True)
    pairs = Relation.from_edges("binds", [0, 3], [1, 4], 5, directed=False)
    values = np.array([[1, 2], [3, np.nan], [5, np.nan], [7, 8], [9, 10]], np.float32)
    return Organism(
        "tiny",
        genes,
        GeneGraphs([directed, pairs]),
        GeneFeatures([FeatureBlock("block", values, ("x", "y"))]),
        essential=np.array([True, False, False, False, True]),
        dubious=np.array([True, True, True, False, True]),
        coordinates=Coordinates(
            np.array([1, 1, 2, 1, 0]),
            np.array([10.0, 1.0, 5.0, 20.0, np.nan]),
            np.array([12.0, 3.0, 6.0, 30.0, np.nan]),
            np.array([1, 1, -1, -1, 0], np.int8),
        ),
    )


def test_tokens_are_units_and_the_genes_in_none(organism: Organism) -> None:
    made = in_units(organism, OPERONS)
    assert made.genes.names == ("op1", "op2", "op3", "e")
    assert made.units is not None
    assert [made.units.members(token) for token in range(4)] == [("a", "b"), ("b", "c"), ("d",), ("e",)]
    assert [made.genes.find(name) for name in ("op1again", "a,b", "dnaA", "dee", "e")] == [0, 0, 0, 2, 3]
    # Gene b is in two units, so it names neither.
    assert "b" not in made.genes
    assert made.genes.descriptions == {"op1": "a: starts"}


def test_names_of_tokens_have_no_mark_that_separates_tokens(organism: Organism) -> None:
    made = in_units(organism, {"a,b": ["a", "b"], "c; d": ["c", "d"]})
    assert made.genes.names == ("a+b", "c+d", "e")
    assert made.genes.standard["a+b"] == "dnaA+b"
    # Tables that write a unit by its genes are read as before.
    assert [made.genes.find(name) for name in ("a,b", "dnaA,b", "c; d", "c,d")] == [0, 0, 1, 1]
    table, names = gene_sets(
        pd.Series([",".join(made.genes.names[g] for g in pair) for pair in [(0, 1), (1, 2)]])
    )
    assert [[names[g] for g in genes] for genes in table.sets()] == [["a+b", "c+d"], ["c+d", "e"]]


def test_what_is_known_of_genes_is_carried_over(organism: Organism) -> None:
    made = in_units(organism, OPERONS)
    assert made.units is not None
    member = made.units.table.toarray() > 0
    for name, relation in organism.graphs.items():
        gene_weights = relation.adjacency.toarray()
        expected = np.zeros((4, 4), np.float32)
        for u in range(4):
            for v in range(4):
                if u != v:
                    expected[u, v] = gene_weights[np.ix_(member[u], member[v])].max()
        assert np.array_equal(made.graphs[name].adjacency.toarray(), expected), name
        assert made.graphs[name].directed == relation.directed
    expected_features = np.array([[2, 2], [4, np.nan], [7, 8], [9, 10]], np.float32)
    assert np.array_equal(made.features["block"].values, expected_features, equal_nan=True)
    assert made.essential is not None
    assert made.essential.tolist() == [True, False, False, True]
    assert made.dubious is not None
    assert made.dubious.tolist() == [True, True, False, True]
    places = made.coordinates
    assert places is not None
    # Genes b and c lie on different chromosomes; e has no place.
    assert places.chromosome.tolist() == [1, 0, 1, 0]
    assert places.start[[0, 2]].tolist() == [1, 20]
    assert places.end[[0, 2]].tolist() == [12, 30]
    assert np.isnan(places.start[[1, 3]]).all()
    assert places.strand.tolist() == [1, 0, -1, 0]


def test_units_that_share_a_gene_overlap_and_are_one_group(organism: Organism) -> None:
    chained = in_units(organism, {"u": ["a", "b"], "v": ["b", "c"], "w": ["c", "d"]})
    units = chained.units
    assert units is not None
    first, second = np.array([0, 0, 1, 0, 3]), np.array([1, 2, 2, 0, 0])
    assert units.overlapping(first, second).tolist() == [True, False, True, True, False]
    assert units.groups[0] == units.groups[1] == units.groups[2] != units.groups[3]


def test_a_unit_is_found_by_its_genes(organism: Organism) -> None:
    units = in_units(organism, OPERONS).units
    assert units is not None
    assert units.find(["b", "dnaA"]) == 0
    assert units.find(["d"]) == 2
    with pytest.raises(UnknownGeneError, match=r"made of just b; units with all of them: a\+b, b\+c"):
        units.find(["b"])


def test_storage_restriction_and_added_genes_keep_units(organism: Organism, tmp_path) -> None:
    made = in_units(organism, OPERONS)
    save_organism(made, tmp_path / "organism")
    read = read_organism(tmp_path / "organism")
    assert made.units is not None
    assert read.units is not None
    assert read.units.genes == made.units.genes
    assert np.array_equal(read.units.table.toarray(), made.units.table.toarray())
    some = made.restrict(np.array([3, 1]))
    assert some.units is not None
    assert [some.units.members(token) for token in range(2)] == [("e",), ("b", "c")]
    wider = made.add_gene("foreign")
    assert wider.units is not None
    assert wider.units.members(4) == ("foreign",)
    assert wider.units.table.sum() == made.units.table.sum() + 1


def test_wrong_units_are_refused(organism: Organism) -> None:
    with pytest.raises(UnknownGeneError, match=r"unit 'x': .*'zz'"):
        in_units(organism, {"x": ["zz"]})
    with pytest.raises(GeneSetError, match=r"unit 'x' is empty"):
        in_units(organism, {"x": []})
    with pytest.raises(GeneSetError, match=r"unit 'x' names a more than once"):
        in_units(organism, {"x": ["a", "dnaA"]})
    with pytest.raises(GeneSetError, match=r"unit 'c' is named like gene c, which it does not hold"):
        in_units(organism, {"c": ["a"]})
    with pytest.raises(DatasetError, match="tokens of organism 'tiny' are units already"):
        in_units(in_units(organism, OPERONS), OPERONS)
    ambiguous = replace(organism, genes=GeneIndex("abcde", aliases={"a": ["z"], "b": ["z"]}, organism="tiny"))
    with pytest.raises(AmbiguousGeneError, match="unit 'x'"):
        in_units(ambiguous, {"x": ["z"]})
    made = in_units(organism, OPERONS)
    with pytest.raises(DatasetError, match="units are 4, 'tiny' has 5 tokens"):
        replace(organism, units=made.units)
