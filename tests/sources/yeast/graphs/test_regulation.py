"""Regulation of transcription."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from wildtype.errors import SourceError
from wildtype.organism import GeneIndex
from wildtype.sources.yeast.graphs.regulation import (
    BOTH,
    DOCUMENTED,
    GOLD,
    MOTIFS,
    RESPONSE_STUDIES,
    RESPONSES,
    TFLINK_FILE,
    gene_of_protein,
    has_documented,
    has_regulatory,
    read_documented,
    read_gold_standard,
    read_motifs,
    read_regulation_matrix,
    read_regulatory,
    read_responses,
    read_tflink,
)


def test_matrix_gives_edges_from_regulator_to_target(small, genes: GeneIndex) -> None:
    relation, reading = read_regulatory(small.path, genes)
    gcn4, rox3, tfc3, vps8 = (genes.find(name) for name in ("GCN4", "ROX3", "TFC3", "VPS8"))
    assert relation.directed
    assert sorted(zip(*relation.endpoints()[:2], strict=True)) == sorted([(gcn4, tfc3), (rox3, vps8)])
    assert reading.rows == 5  # the entries that are 1
    assert reading.dropped == {"unknown gene": 2, "self-loop": 1}


def test_lines_give_edges_from_regulator_to_target(small, genes: GeneIndex) -> None:
    relation, reading = read_documented(small.path, genes)
    gcn4, rox3, rim8, tfc3, vps8 = (genes.find(name) for name in ("GCN4", "ROX3", "RIM8", "TFC3", "VPS8"))
    assert sorted(zip(*relation.endpoints()[:2], strict=True)) == sorted(
        [(gcn4, tfc3), (rox3, tfc3), (rim8, vps8)]
    )
    assert reading.dropped == {"unknown gene": 2, "duplicate": 1}
    assert "stand-in for TFLink" in relation.note
    assert relation.adjacency[tfc3, gcn4] == 0


def test_protein_names() -> None:
    assert gene_of_protein(["Gcn4p", "YGR067C", "2Doc", "p", "Cap1p", "hap"]) == [
        "GCN4",
        "YGR067C",
        "2Doc",
        "p",
        "CAP1",
        "hap",
    ]


def test_entries_other_than_0_and_1_name_the_line(small, genes: GeneIndex) -> None:
    small.replace(BOTH, "YAL002W\t0\t1\t0", "YAL002W\t0\t-1\t0")
    with pytest.raises(SourceError, match="line 3: received '-1', expected entries that are 0 or 1"):
        read_regulatory(small.path, genes)


def test_a_matrix_without_ones_is_refused(small, genes: GeneIndex) -> None:
    small.write(BOTH, "SystematicName\tYEL009C\nYAL001C\t0\n")
    with pytest.raises(SourceError, match="no entry that is 1"):
        read_regulatory(small.path, genes)


def test_a_third_field_names_the_line(small, genes: GeneIndex) -> None:
    small.replace(DOCUMENTED, "YAL001C,Rox3p", "YAL001C,Rox3p,1")
    with pytest.raises(SourceError, match="line 2: received 3 fields, expected 2"):
        read_documented(small.path, genes)


RAW_MATRIX = "DNABinding_AND_Expr_TF_act_OR_inh_RegulationMatrix_Documented_2020511.csv"
RAW_PAIRS = "RegulationTwoColumnTable_Documented_2013927.tsv"


def edges(relation) -> list[tuple[int, int]]:
    return sorted((int(r), int(c)) for r, c in zip(*relation.endpoints()[:2], strict=True))


@pytest.mark.parametrize("separator", [";", "\t"])
def test_the_portals_matrix_has_regulators_in_its_rows(raw, genes: GeneIndex, separator: str) -> None:
    """The file is written by hand in the portal's layout: no mirror holds the portal's own files."""
    raw.remove(BOTH)
    raw.write(RAW_MATRIX, raw.text(RAW_MATRIX).replace(";", separator))
    relation, reading = read_regulatory(raw.path, genes)
    gcn4, rox3, tfc3, vps8, efb1 = (genes.find(name) for name in ("GCN4", "ROX3", "TFC3", "VPS8", "EFB1"))
    assert edges(relation) == sorted([(gcn4, tfc3), (gcn4, efb1), (rox3, vps8)])
    assert reading.rows == 5  # the entries that are 1
    assert reading.dropped == {"unknown gene": 2}  # Abf1p is no gene of the small list, MEL1 neither
    assert relation.version == "2020511"
    assert relation.note.endswith("1 regulators that are no gene of the index: Abf1p")


def test_a_portals_matrix_turned_round_is_refused(raw, genes: GeneIndex) -> None:
    raw.write(RAW_MATRIX, ";Gcn4p;Rox3p\nYAL001C;1;0\nVPS8;0;1\nEFB1;1;0\n")
    with pytest.raises(SourceError, match="expected regulators there: turn the table round"):
        read_regulation_matrix(raw.path / RAW_MATRIX, genes, "regulatory")


def test_the_portals_two_columns_hold_the_regulator_first(raw, genes: GeneIndex) -> None:
    raw.remove(DOCUMENTED)
    relation, reading = read_documented(raw.path, genes)
    gcn4, rox3, tfc3, vps8 = (genes.find(name) for name in ("GCN4", "ROX3", "TFC3", "VPS8"))
    assert edges(relation) == sorted([(gcn4, tfc3), (rox3, vps8)])
    assert reading.dropped == {"unknown gene": 1, "self-loop": 1}
    assert "stand-in for TFLink" in relation.note
    assert "2Doc" in relation.note


def test_an_export_goes_before_the_portals_files_and_without_either_none_is_there(
    raw, genes: GeneIndex
) -> None:
    assert read_regulatory(raw.path, genes)[0].version == "2019-07-13"
    assert read_documented(raw.path, genes)[0].version == "2020 export"
    for file in (BOTH, DOCUMENTED, RAW_MATRIX, RAW_PAIRS):
        raw.remove(file)
    assert not has_regulatory(raw.path)
    assert not has_documented(raw.path)
    with pytest.raises(SourceError, match="has no fixed link"):
        read_regulatory(raw.path, genes)


def test_several_dates_of_one_matrix_are_refused(raw, genes: GeneIndex) -> None:
    raw.remove(BOTH)
    raw.write(RAW_MATRIX.replace("2020511", "2013927"), raw.text(RAW_MATRIX))
    with pytest.raises(SourceError, match="holds 2 releases"):
        read_regulatory(raw.path, genes)


TEXTBOOK = (
    ("GAL4", "GAL1"), ("GCN4", "HIS4"), ("SWI4", "CLN1"), ("MSN2", "CTT1"), ("ADR1", "ADH2"),
    ("LEU3", "LEU1"), ("YAP1", "TRX2"), ("STE12", "FUS1"), ("RAP1", "RPL3"),
)  # fmt: skip


@pytest.mark.real
def test_real_documented_regulation(mirror: Path, real_genes: GeneIndex) -> None:
    relation, reading = read_documented(mirror, real_genes)
    assert reading.rows == 193943
    assert reading.rows == reading.kept + sum(reading.dropped.values())
    assert relation.edges + relation.dropped["self-loop"] == 190053
    lost = relation.note.partition("6 regulators that are no gene of the index: ")[2]
    assert lost.split(", ") == ["2Doc", "6Doc", "7Doc", "Flo8p", "Pul4p", "Rof1p"]
    for regulator, target in TEXTBOOK:
        assert relation.adjacency[real_genes.find(regulator), real_genes.find(target)] == 1
    assert relation.adjacency[real_genes.find("GAL1"), real_genes.find("GAL4")] == 0


@pytest.mark.real
def test_real_regulation_with_both_kinds_of_evidence(mirror: Path, real_genes: GeneIndex) -> None:
    relation, reading = read_regulatory(mirror, real_genes)
    assert reading.rows == 11486
    assert reading.rows == reading.kept + sum(reading.dropped.values())
    assert relation.adjacency[real_genes.find("GAL4"), real_genes.find("GAL1")] == 1
    documented = read_documented(mirror, real_genes)[0].adjacency
    shared = relation.adjacency.multiply(documented).nnz
    assert shared > 0.97 * relation.edges  # regulators point the same way in both files


def test_the_gold_standard_points_from_regulator_to_target(raw, genes: GeneIndex) -> None:
    relation, reading = read_gold_standard(raw.path, genes)
    assert relation.adjacency[genes.find("GCN4"), genes.find("TFC3")] == 1
    assert relation.adjacency[genes.find("ROX3"), genes.find("TFC3")] == 1
    assert (relation.edges, relation.directed, relation.weighted) == (2, True, False)
    assert relation.note.startswith("1 of the edges repress")
    assert (reading.rows, reading.dropped) == (3, {"unknown gene": 1})


def test_motifs_are_counted_without_the_sign_of_repressors(raw, genes: GeneIndex) -> None:
    relation, reading = read_motifs(raw.path, genes)
    assert relation.adjacency[genes.find("GCN4"), genes.find("TFC3")] == 3
    assert relation.adjacency[genes.find("GCN4"), genes.find("ROX3")] == 2
    assert reading.dropped == {"self-loop": 1}
    assert "1 counts are negative" in relation.note


def test_responses_weigh_by_their_largest_score(raw, genes: GeneIndex) -> None:
    relation, reading = read_responses(raw.path, genes)
    assert relation.adjacency[genes.find("GCN4"), genes.find("TFC3")] == np.float32(2.5)
    assert reading.dropped == {"unknown gene": 1, "score 0": 1, "duplicate": 1}
    assert "measurement of deletions" in relation.note


@pytest.mark.parametrize(
    ("reader", "file", "old", "new", "message"),
    [
        (read_gold_standard, GOLD.name, "\t1\t-1", "\t1\t-2", "line 2: received '-2', expected entries"),
        (read_gold_standard, GOLD.name, "\t1\t-1", "\t1", "line 2: received 2, expected 3 fields"),
        (read_motifs, MOTIFS.name, "\t3\t0", "\t3.5\t0", "line 2: received '3.5', expected whole numbers"),
        (read_responses, RESPONSES.name, "-2.5", "low", "line 2: received 'low', expected a number"),
        (read_responses, RESPONSES.name, "pvalue", "p", "line 1: received the header"),
    ],
)
def test_damage_names_the_line(
    raw, genes: GeneIndex, reader, file: str, old: str, new: str, message: str
) -> None:
    raw.replace(file, old, new)
    with pytest.raises(SourceError, match=message):
        reader(raw.path, genes)


@pytest.mark.real
def test_real_files(mirror: Path, real_genes: GeneIndex) -> None:
    found = {}
    for reader in (read_gold_standard, read_motifs, read_responses):
        relation, reading = reader(mirror, real_genes)
        assert reading.rows == reading.kept + sum(reading.dropped.values())
        found[relation.name] = (reading.rows, relation.edges)
    assert found == {
        "regulatory_gold_standard": (1403, 1395),
        "regulatory_motifs": (71865, 71664),
        "regulatory_responses": (6605, 6062),
    }
    assert RESPONSE_STUDIES.published["rows"] == 6605


def test_accessions_decide_before_names(raw, genes: GeneIndex, accessions) -> None:
    relation, reading = read_tflink(raw.path, genes, accessions)
    gcn4, rox3, tfc3, vps8 = (genes.find(name) for name in ("GCN4", "ROX3", "TFC3", "VPS8"))
    pairs = sorted(zip(*relation.endpoints()[:2], strict=True))
    assert pairs == sorted([(gcn4, tfc3), (gcn4, vps8), (rox3, tfc3)])
    assert relation.directed
    assert reading.rows == 7 == reading.kept + sum(reading.dropped.values())
    assert reading.dropped == {
        "another organism": 1,
        "unknown gene": 1,
        "ambiguous gene name": 1,
        "duplicate": 1,
    }
    assert reading.renamed == 1  # FUN15 is an alias
    assert relation.note.endswith("genes found by UniProt accession, else name")


def test_without_accessions_the_names_decide(raw, genes: GeneIndex) -> None:
    relation, reading = read_tflink(raw.path, genes)
    assert relation.edges == 2
    assert reading.dropped["unknown gene"] == 3
    assert relation.note.endswith("genes found by name")


def test_a_protein_of_two_genes_is_ambiguous(raw, genes: GeneIndex, accessions) -> None:
    raw.write(TFLINK_FILE.name, raw.text(TFLINK_FILE.name).replace("P03069", "P61830"))
    reading = read_tflink(raw.path, genes, accessions)[1]
    assert reading.dropped["ambiguous gene name"] == 4


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("Name.TF\tName.Target", "Name.Target\tName.TF", "line 1: received the header"),
        ("MEL1\tchromatin", "MEL1chromatin", "line 6: received 14 fields, expected 15"),
    ],
)
def test_damage_names_the_line_of_tflink(raw, genes: GeneIndex, old: str, new: str, message: str) -> None:
    raw.replace(TFLINK_FILE.name, old, new)
    with pytest.raises(SourceError, match=message):
        read_tflink(raw.path, genes)


def test_the_missing_file_is_named(small, genes: GeneIndex) -> None:
    with pytest.raises(SourceError, match=r"TFLink_Sacch.*is not in .*fetch it from https"):
        read_tflink(small.path, genes)
