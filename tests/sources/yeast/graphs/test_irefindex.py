"""Physical interactions."""

from __future__ import annotations

from pathlib import Path

import pytest

from wildtype.errors import SourceError
from wildtype.organism import GeneIndex
from wildtype.sources.yeast.graphs.irefindex import IREFINDEX, read_physical


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
