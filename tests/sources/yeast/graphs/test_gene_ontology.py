"""Annotations of genes; the files are written by hand in the published layouts: no mirror holds them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from wildtype.errors import ConfigError, MissingFileError, SourceError
from wildtype.organism import GeneIndex
from wildtype.sources.gaf import Annotations
from wildtype.sources.yeast.graphs.gene_ontology import (
    FILE,
    GO,
    ONTOLOGY,
    annotation_block,
    present,
    read_annotations,
    read_go_process,
    read_go_table,
    read_go_terms,
)


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


def test_rare_and_universal_terms_are_left_out_and_the_leak_is_named(small, genes: GeneIndex) -> None:
    block, reading = read_go_process(small.path, genes)
    assert block.note.startswith("3 of 4 terms")
    assert "may leak" in block.note
    assert block.measured == ()
    assert reading.rows == 13
    assert reading.dropped == {"unknown gene": 1}
    assert np.isfinite(block.values).all()


def test_a_gene_without_a_row_is_missing(small, genes: GeneIndex) -> None:
    text = small.text(GO)
    small.write(GO, "\n".join(line for line in text.split("\n") if not line.startswith("YEL009C")))
    block, _ = read_go_process(small.path, genes)
    missing = np.flatnonzero(np.isnan(block.values).all(1))
    assert [genes.names[i] for i in missing] == ["YEL009C"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("YAL002W\t1\t1", "YAL002W\t1\t2", "line 3: received .*, expected 4 entries that are 0 or 1"),
        ("YAL002W\t1\t1", "YAL002W\t1", "line 3: received .*, expected 4 entries"),
        ("YAL002W\t1\t1", "YAL002W\t1 1", "line 3: received .*, expected 4 entries"),
        ("ORF\t", "gene\t", "line 1: received .*, expected ORF"),
    ],
)
def test_damage_names_the_line_of_table(small, genes: GeneIndex, old: str, new: str, message: str) -> None:
    small.replace(GO, old, new)
    with pytest.raises(SourceError, match=message):
        read_go_process(small.path, genes)


@pytest.mark.real
def test_real_components_bring_genes_of_one_process_together(mirror: Path, real_genes: GeneIndex) -> None:
    block, reading = read_go_process(mirror, real_genes)
    assert block.values.shape == (6604, 64)
    assert (reading.rows, reading.kept) == (5911, int(np.isfinite(block.values).all(1).sum()))

    def cosine(a: str, b: str) -> float:
        x, y = (block.values[real_genes.find(name)] for name in (a, b))
        return float(x @ y / (np.linalg.norm(x) * np.linalg.norm(y)))

    assert cosine("RPN1", "RPN2") > 0.8
    assert cosine("RPN1", "RPN2") > cosine("RPN1", "GAL4") + 0.3


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
