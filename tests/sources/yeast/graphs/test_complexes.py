"""Complex Portal."""

from __future__ import annotations

from pathlib import Path

import pytest

from wildtype.errors import SourceError
from wildtype.organism import GeneIndex
from wildtype.sources.yeast.genes.uniprot import read_accessions
from wildtype.sources.yeast.graphs.complexes import FILE, HEADER, read_complexes

TFC3, VPS8, EFB1, SSA1, ACT1 = 0, 1, 2, 4, 11


def test_nested_complexes_alternatives_and_weights(raw, genes: GeneIndex, accessions) -> None:
    """The file is written by hand in the published layout, with a nested complex that is not expanded."""
    relation, reading = read_complexes(raw.path, genes, accessions)
    weight = relation.adjacency
    assert weight[TFC3, VPS8] == weight[VPS8, TFC3] == 1  # of two places, the smallest common complex
    assert weight[TFC3, EFB1] == weight[VPS8, EFB1] == 0.5  # of three places, one complex in another
    assert weight[EFB1, ACT1] == weight[SSA1, ACT1] == 1
    assert weight[EFB1, SSA1] == 0  # alternatives for one place
    assert (relation.edges, relation.directed, relation.weighted) == (5, False, True)
    assert reading.rows == 5 == reading.kept + sum(reading.dropped.values())
    assert reading.dropped == {"complex of another organism": 1, "fewer than two places with a gene": 1}
    assert relation.dropped["duplicate"] == 1
    for lost in ("1 RNA", "1 other molecule", "1 accession without a gene of the index"):
        assert lost in relation.note


def test_small_molecules_of_an_unexpanded_list_are_counted(raw, genes: GeneIndex, accessions) -> None:
    raw.replace(FILE.name, "\tP34111(1)|P39702(2)\n", "\t-\n")
    relation, _ = read_complexes(raw.path, genes, accessions)
    assert "2 small molecule" in relation.note  # once in its own row, once inside the other
    assert relation.adjacency[TFC3, VPS8] == 1


def test_genes_of_one_protein_take_one_place(raw, genes: GeneIndex) -> None:
    twins = {"P34111": (TFC3, VPS8), "P39702": (ACT1,)}
    relation, _ = read_complexes(raw.path, genes, twins)
    assert relation.adjacency[TFC3, ACT1] == relation.adjacency[VPS8, ACT1] == 1
    assert relation.adjacency[TFC3, VPS8] == 0


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("Recommended name\t", "Name\t", "line 1: received the header"),
        ("P34111(2)|Q99999(1)\n", "P34111(2)|Q99999\n", "line 5: received 'Q99999', expected a member with"),
        (
            "\tCPX-1(1)|P32471",
            "\tCPX-2(1)|P32471",
            "line 3: received 'CPX-2', expected a complex that does not",
        ),
        ("CPX-3\tcomplex", "CPX-3 complex", "line 4: received 18 fields, expected 19"),
    ],
)
def test_damage_names_the_line(raw, genes: GeneIndex, accessions, old: str, new: str, message: str) -> None:
    raw.replace(FILE.name, old, new)
    with pytest.raises(SourceError, match=message):
        read_complexes(raw.path, genes, accessions)


def test_the_header_may_stand_without_its_mark_and_rows_in_any_order(
    raw, genes: GeneIndex, accessions
) -> None:
    before = read_complexes(raw.path, genes, accessions)[0].adjacency
    head, *rows = raw.text(FILE.name).rstrip("\n").split("\n")
    assert head.split("\t")[0] == f"#{HEADER[0]}"
    raw.write(FILE.name, "\n".join([head[1:], *reversed(rows)]) + "\n")
    after = read_complexes(raw.path, genes, accessions)[0].adjacency
    assert (before != after).nnz == 0


@pytest.mark.real
def test_real_complexes(mirror: Path, real_genes: GeneIndex) -> None:
    accessions = read_accessions(mirror, real_genes)[0]
    relation, reading = read_complexes(mirror, real_genes, accessions)
    assert (reading.rows, reading.kept) == (620, 601)
    assert reading.dropped == {"fewer than two places with a gene": 19}
    assert (relation.edges, relation.nodes) == (15437, 1948)
    assert relation.note.endswith("members without a gene: 3 accession without a gene of the index")
    weight = relation.adjacency
    for a, b in (("SMC1", "SMC3"), ("RPN1", "RPN2"), ("TFC3", "TFC1")):
        assert 0 < weight[real_genes.find(a), real_genes.find(b)] <= 1
    assert (
        weight[real_genes.find("TFC3"), real_genes.find("TFC1")]
        > weight[real_genes.find("RPL3"), real_genes.find("RPL4A")]
    )
