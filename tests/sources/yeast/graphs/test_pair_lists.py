"""Lists of pairs: protein interactions and co-expression."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from wildtype.errors import DatasetError, SourceError
from wildtype.organism import GeneIndex
from wildtype.sources.yeast.graphs.pair_lists import (
    IREFINDEX,
    LISTS,
    PUBLISHERS,
    read_pair_list,
    read_physical,
)


def test_the_larger_weight_of_a_repeated_pair_counts(raw, genes: GeneIndex) -> None:
    relation, reading = read_pair_list(raw.path, genes, "coexpression_hu2007")
    assert relation.adjacency[0, 1] == relation.adjacency[1, 0] == np.float32(0.8)
    assert (relation.edges, relation.weighted, relation.directed) == (1, True, False)
    assert reading.dropped == {"unknown gene": 1, "duplicate": 1}
    assert "deletion strains" in relation.note


def test_a_list_without_weights(raw, genes: GeneIndex) -> None:
    relation, reading = read_pair_list(raw.path, genes, "ppi_dip")
    assert (relation.edges, relation.weighted) == (2, False)
    assert reading.dropped == {"self-loop": 1}
    assert reading.renamed == 1


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("YAL002W 0.75", "YAL002W", "line 1: received 2 fields, expected 3"),
        ("0.75", "0", "line 1: received '0', expected a weight above 0"),
        ("0.75", "1e-60", "line 1: received '1e-60', expected a weight above 0"),
        ("0.75", "high", "line 1: received 'high', expected a number"),
    ],
)
def test_damage_names_the_line(raw, genes: GeneIndex, old: str, new: str, message: str) -> None:
    raw.replace("coexpression_hu2007_bionic.txt", old, new)
    with pytest.raises(SourceError, match=message):
        read_pair_list(raw.path, genes, "coexpression_hu2007")


def test_unknown_lists_and_missing_files_are_named(raw, genes: GeneIndex) -> None:
    with pytest.raises(DatasetError, match="no list of pairs 'ppi_nobody'"):
        read_pair_list(raw.path, genes, "ppi_nobody")
    with pytest.raises(SourceError, match=r"ppi_gavin2006.txt is not in .*YSHebron/scl-bioinfo"):
        read_pair_list(raw.path, genes, "ppi_gavin2006")


def test_publishers_have_names_of_their_own() -> None:
    assert len({publisher.name for publisher in PUBLISHERS}) == len(LISTS)


REAL = {  # rows (the published count of lines), edges, genes
    "coexpression_hu2007": (14826, 14826, 1101),
    "ppi_dip": (22496, 22449, 4722),
    "ppi_bim": (48286, 48277, 5026),
    "ppi_collins2007": (9074, 9074, 1622),
    "ppi_gavin2006": (7669, 7669, 1854),
    "ppi_krogan2006_core": (7123, 7098, 2697),
    "ppi_krogan2006_extended": (14317, 14247, 3650),
    "ppi_krogan2006_bionic": (7075, 7055, 2670),
}


@pytest.mark.real
@pytest.mark.parametrize("item", LISTS, ids=lambda item: item.relation)
def test_real_lists(mirror: Path, real_genes: GeneIndex, item) -> None:
    relation, reading = read_pair_list(mirror, real_genes, item.relation)
    assert (reading.rows, relation.edges, relation.nodes) == REAL[item.relation]
    assert reading.rows == item.publisher.published["rows"]
    assert reading.rows == reading.kept + sum(reading.dropped.values())
    if relation.name.startswith("ppi") and relation.edges > 20_000:
        for a, b in (("CDC48", "UFD1"), ("RPN1", "RPN2"), ("SMC1", "SMC3"), ("TFC3", "TFC1")):
            assert relation.adjacency[real_genes.find(a), real_genes.find(b)] > 0


def test_publications_self_pairs_and_older_names(small, genes: GeneIndex) -> None:
    relation, reading = read_physical(small.path, genes)
    assert relation.adjacency[0, 1] == relation.adjacency[1, 0] == 1
    assert relation.adjacency[genes.find("YAR042W"), genes.find("HO")] == 1  # the file says YAR044W
    assert (relation.edges, relation.directed, reading.renamed) == (2, False, 1)
    assert reading.dropped == {"unknown gene": 1, "ambiguous gene name": 1, "self-loop": 1, "duplicate": 1}
    assert reading.rows == reading.kept + sum(reading.dropped.values())


def test_another_layout_is_refused(small, genes: GeneIndex) -> None:
    small.replace(IREFINDEX, "PROTEIN_U,PROTEIN_V,PUBMED\n", "")
    with pytest.raises(
        SourceError, match="line 1: received the header 'YAL001C, YAL002W, 123', expected PROTEIN_U"
    ):
        read_physical(small.path, genes)


@pytest.mark.real
def test_real_interactions(mirror: Path, real_genes: GeneIndex) -> None:
    relation, reading = read_physical(mirror, real_genes)
    assert reading.rows == 97810
    assert reading.rows == reading.kept + sum(reading.dropped.values())
    assert (relation.edges, relation.nodes) == (68012, 4759)
    for a, b in (("CDC48", "UFD1"), ("RPN1", "RPN2"), ("SMC1", "SMC3"), ("TFC3", "TFC1")):
        assert relation.adjacency[real_genes.find(a), real_genes.find(b)] == 1
