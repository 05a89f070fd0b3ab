"""Whatever happens to a publisher's file, it is read with every row accounted for, or refused by name."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings

from tests.sources.yeast.graphs.mutations import mutations
from wildtype.datasets.reading import ReadReport
from wildtype.errors import SourceError
from wildtype.sources.yeast.graphs import (
    complexes,
    gene_ontology,
    interactions,
    pair_lists,
    regulation,
    string,
)

MATRIX = "DNABinding_AND_Expr_TF_act_OR_inh_RegulationMatrix_Documented_2020511.csv"


def _annotated(folder, genes, accessions):
    annotations, reading = gene_ontology.read_annotations(folder, genes)
    if len(annotations.terms) > 1:
        gene_ontology.annotation_block(annotations, len(genes), "go_process")
    return [reading]


def _relations(*reads) -> list[ReadReport]:
    return [reading for _, reading in reads]


READERS: dict[str, Callable] = {
    "4932.protein.links.detailed.v12.0.txt.gz": lambda f, g, a: _relations(*string.read_string(f, g, "12.0")),
    "4932.protein.aliases.v12.0.txt.gz": lambda f, g, a: _relations(*string.read_string(f, g, "12.0")),
    interactions.BIOGRID_FILE.name: lambda f, g, a: _relations(*interactions.read_biogrid(f, g)),
    interactions.SGD_FILE.name: lambda f, g, a: _relations(*interactions.read_sgd_interactions(f, g)),
    regulation.TFLINK_FILE.name: lambda f, g, a: _relations(regulation.read_tflink(f, g, a)),
    complexes.FILE.name: lambda f, g, a: _relations(complexes.read_complexes(f, g, a)),
    gene_ontology.ONTOLOGY.name: _annotated,
    gene_ontology.FILE.name: _annotated,
    MATRIX: lambda f, g, a: _relations(regulation.read_regulation_matrix(f / MATRIX, g, "regulatory")),
    "coexpression_hu2007_bionic.txt": lambda f, g, a: _relations(
        pair_lists.read_pair_list(f, g, "coexpression_hu2007")
    ),
    regulation.GOLD.name: lambda f, g, a: _relations(regulation.read_gold_standard(f, g)),
    regulation.MOTIFS.name: lambda f, g, a: _relations(regulation.read_motifs(f, g)),
    regulation.RESPONSES.name: lambda f, g, a: _relations(regulation.read_responses(f, g)),
}


@pytest.mark.slow
@pytest.mark.parametrize("file", READERS)
def test_a_changed_file_is_read_or_refused(raw, genes, accessions, file: str) -> None:
    original = raw.text(file)
    assert READERS[file](raw.path, genes, accessions)  # the file is good to begin with

    @settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
    @given(mutations())
    def check(change: Callable[[str], bytes]) -> None:
        raw.write(file, change(original))
        message, readings = str(raw.path), []
        try:
            readings = READERS[file](raw.path, genes, accessions)
        except SourceError as error:
            message = str(error)
        assert str(raw.path) in message
        for reading in readings:
            assert reading.rows == reading.kept + sum(reading.dropped.values())

    check()


@pytest.mark.parametrize("file", READERS)
def test_a_file_cut_short_in_transfer_is_refused(raw, genes, accessions, file: str) -> None:
    path = raw.path / file
    original = path.read_bytes()
    for cut in (1, len(original) // 2, len(original) - 1):
        path.write_bytes(original[:cut])
        with pytest.raises(SourceError, match=file.replace(".", r"\.")):
            READERS[file](raw.path, genes, accessions)
