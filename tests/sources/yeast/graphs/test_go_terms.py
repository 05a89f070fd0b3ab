"""Terms of the Gene Ontology as sets of genes."""

from __future__ import annotations

from pathlib import Path

import pytest

from wildtype.errors import MissingFileError
from wildtype.organism import GeneIndex
from wildtype.sources.yeast.graphs.go_annotations import read_annotations
from wildtype.sources.yeast.graphs.go_terms import read_go_terms
from wildtype.sources.yeast.graphs.ontology import GO, read_go_table


def test_terms_are_those_of_the_table_by_gene(small, genes: GeneIndex) -> None:
    found = read_go_terms(small.path, genes)
    table = read_go_table(small.path, genes)
    assert found.names == table.terms
    assert len(found.names) == 4
    for row, gene in enumerate(table.genes.tolist()):
        assert (found.table[[gene]].toarray() == table.table[[row]].toarray()).all()
    assert found.table.nnz == table.table.nnz
    assert found.kind == "term"


def test_annotations_take_the_place_of_the_table(raw, genes: GeneIndex) -> None:
    (raw.path / GO).unlink()
    found = read_go_terms(raw.path, genes)
    annotations, _ = read_annotations(raw.path, genes)
    assert found.names == annotations.names
    for row, gene in enumerate(annotations.gene.tolist()):
        assert (found.table[[gene]].toarray() == annotations.table[[row]].toarray()).all()
    assert "without IGI, ND" in found.source


def test_neither_is_one_sentence(small, genes: GeneIndex) -> None:
    (small.path / GO).unlink()
    with pytest.raises(MissingFileError, match="go_bp_140819"):
        read_go_terms(small.path, genes)


@pytest.mark.real
def test_real_terms_are_read(mirror: Path, real_genes: GeneIndex) -> None:
    found = read_go_terms(mirror, real_genes)
    assert len(found) == 4_373
    inside = found.table[:, [found.names.index("mitochondrial genome maintenance")]]
    assert real_genes.find("MIP1") in inside.nonzero()[0]
