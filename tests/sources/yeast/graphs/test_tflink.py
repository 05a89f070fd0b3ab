"""TFLink; the file is written by hand in the published layout, since no mirror holds it."""

from __future__ import annotations

import pytest

from wildtype.errors import SourceError
from wildtype.organism import GeneIndex
from wildtype.sources.yeast.graphs.tflink import FILE, read_tflink


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
    raw.write(FILE.name, raw.text(FILE.name).replace("P03069", "P61830"))
    reading = read_tflink(raw.path, genes, accessions)[1]
    assert reading.dropped["ambiguous gene name"] == 4


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("Name.TF\tName.Target", "Name.Target\tName.TF", "line 1: received the header"),
        ("MEL1\tchromatin", "MEL1chromatin", "line 6: received 14 fields, expected 15"),
    ],
)
def test_damage_names_the_line(raw, genes: GeneIndex, old: str, new: str, message: str) -> None:
    raw.replace(FILE.name, old, new)
    with pytest.raises(SourceError, match=message):
        read_tflink(raw.path, genes)


def test_the_missing_file_is_named(small, genes: GeneIndex) -> None:
    with pytest.raises(SourceError, match=r"TFLink_Sacch.*is not in .*fetch it from https"):
        read_tflink(small.path, genes)
