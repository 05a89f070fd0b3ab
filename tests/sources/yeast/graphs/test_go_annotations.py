"""Annotations of genes; the files are written by hand in the published layouts: no mirror holds them."""

from __future__ import annotations

import numpy as np
import pytest

from wildtype.errors import ConfigError, SourceError
from wildtype.organism import GeneIndex
from wildtype.sources.yeast.graphs.go_annotations import (
    FILE,
    Annotations,
    annotation_block,
    present,
    read_annotations,
)
from wildtype.sources.yeast.graphs.obo import FILE as ONTOLOGY


def carried(annotations: Annotations, genes: GeneIndex, name: str) -> set[str]:
    row = annotations.gene.tolist().index(genes.find(name))
    table = annotations.table
    return {annotations.terms[i] for i in table.indices[table.indptr[row] : table.indptr[row + 1]]}


def test_annotations_hold_for_the_terms_above(raw, genes: GeneIndex) -> None:
    annotations, reading = read_annotations(raw.path, genes)
    whole = {"GO:0000002", "GO:0000001", "GO:0000005", "GO:0008150"}
    for name in ("TFC3", "VPS8", "EFB1"):  # by its id, an alternative id, an obsolete one
        assert carried(annotations, genes, name) == whole
    assert carried(annotations, genes, "HO") == {"GO:0000006", "GO:0008150"}
    assert set(annotations.table.data) == {1.0}
    assert annotations.gene.tolist() == sorted(annotations.gene.tolist())
    assert reading.rows == 12 == reading.kept + sum(reading.dropped.values())
    assert reading.dropped == {
        "obsolete term": 1,
        "evidence IGI left out": 1,
        "negated (NOT)": 1,
        "evidence ND left out": 1,
        "unknown gene": 1,
        "term of another namespace": 1,
        "unknown term": 1,
    }
    assert reading.renamed == 2


def test_evidence_codes_are_the_callers_choice(raw, genes: GeneIndex) -> None:
    every = read_annotations(raw.path, genes, without=())[0]
    assert carried(every, genes, "SSA1") == {"GO:0000006", "GO:0008150"}
    strict, reading = read_annotations(raw.path, genes, without=("IGI", "IPI", "ND"))
    assert genes.find("GCN4") not in strict.gene
    assert reading.dropped["evidence IPI left out"] == 1
    assert strict.without == ("IGI", "IPI", "ND")


def test_another_namespace(raw, genes: GeneIndex) -> None:
    annotations, _ = read_annotations(raw.path, genes, namespace="molecular_function")
    assert annotations.terms == ("GO:0003674",)
    with pytest.raises(ConfigError, match="no namespace 'process': choose one of biological_process"):
        read_annotations(raw.path, genes, namespace="process")


def test_block_of_components_says_what_was_left_out(raw, genes: GeneIndex) -> None:
    annotations, _ = read_annotations(raw.path, genes)
    block = annotation_block(annotations, len(genes), "go_process")
    assert block.values.shape[0] == len(genes)
    assert np.isfinite(block.values).all(1).sum() == len(annotations.gene)
    np.testing.assert_allclose(block.values[0], block.values[1])  # the same terms
    assert "evidence codes left out: IGI, ND" in block.note
    assert "leak" not in block.note
    every = annotation_block(read_annotations(raw.path, genes, without=())[0], len(genes), "go_process")
    assert every.note.endswith(
        "evidence codes left out: none; annotations inferred from genetic interactions may leak"
    )


def test_the_order_of_rows_does_not_matter(raw, genes: GeneIndex) -> None:
    before = read_annotations(raw.path, genes)[0]
    lines = raw.text(FILE.name).rstrip("\n").split("\n")
    raw.write(FILE.name, "\n".join([*lines[:2], *reversed(lines[2:])]) + "\n")
    after = read_annotations(raw.path, genes)[0]
    assert before.terms == after.terms
    assert (before.table != after.table).nnz == 0


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("2.2\n!\n", "2.2\nA" + 15 * "\t" + "\n", "line 2: received 16, expected 15 or 17 fields"),
        ("!gaf-version: 2.2\n!\n", "gaf-version: 2.2\n", "line 1: received 1 fields, expected at least 15"),
    ],
)
def test_damage_names_the_line(raw, genes: GeneIndex, old: str, new: str, message: str) -> None:
    raw.replace(FILE.name, old, new)
    with pytest.raises(SourceError, match=message):
        read_annotations(raw.path, genes)


def test_an_ontology_without_the_namespace_is_refused(raw, genes: GeneIndex) -> None:
    with pytest.raises(SourceError, match=r"go-basic\.obo has no term in cellular_component"):
        read_annotations(raw.path, genes, namespace="cellular_component")


def test_annotations_without_a_usable_row_are_refused(raw, genes: GeneIndex) -> None:
    with pytest.raises(SourceError, match="no usable annotation in biological_process"):
        read_annotations(raw.path, genes, without=("IDA", "IMP", "IEA", "IPI", "IGI", "ND"))


def test_both_files_are_needed(raw) -> None:
    assert present(raw.path)
    raw.remove(ONTOLOGY.name)
    assert not present(raw.path)
