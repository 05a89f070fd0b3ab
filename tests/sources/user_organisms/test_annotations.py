"""Annotations and their ontology; both files are written by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.sources.user_organisms.files import names_of, read, refused, write
from wildtype.organism import GeneIndex
from wildtype.sources.user_organisms.description import Gaf

GENES = GeneIndex([f"g{i}" for i in range(6)], {"g0": "ALPHA"}, {"g1": ["P1"]}, organism="small")
OBO = """format-version: 1.2
data-version: releases/2025-01-01

[Term]
id: GO:1
name: process
namespace: biological_process

[Term]
id: GO:2
name: repair
namespace: biological_process
is_a: GO:1 ! process

[Term]
id: GO:3
name: excision repair
namespace: biological_process
relationship: part_of GO:2 ! repair

[Term]
id: GO:4
name: binding
namespace: molecular_function
alt_id: GO:44
"""
ROWS = (
    ("P0", "ALPHA", "", "GO:3", "IDA", "", "taxon:83333"),
    ("P1", "x", "", "GO:2", "IDA", "", "taxon:83333"),
    ("P2", "y", "", "GO:2", "IMP", "b|g2", "taxon:83333|taxon:9606"),
    ("P3", "g3", "NOT|involved_in", "GO:3", "IDA", "", "taxon:83333"),
    ("P3", "g3", "", "GO:3", "IGI", "", "taxon:83333"),
    ("P4", "g4", "", "GO:44", "IDA", "", "taxon:83333"),
    ("P5", "g5", "", "GO:3", "IDA", "", "taxon:9606"),
    ("P9", "z", "", "GO:3", "IDA", "", "taxon:83333"),
    ("P3", "g3", "", "GO:1", "IDA", "g1|g2", "taxon:83333"),
)


def gaf(rows: tuple = ROWS) -> str:
    lines = ["!gaf-version: 2.2"]
    for uid, symbol, qualifier, term, evidence, synonyms, taxon in rows:
        cells = [
            "UniProtKB",
            uid,
            symbol,
            qualifier,
            term,
            "PMID:1",
            evidence,
            "",
            "P",
            "",
            synonyms,
            "protein",
        ]
        lines.append("\t".join([*cells, taxon, "20250101", "UniProt", "", ""]))
    return "\n".join(lines) + "\n"


def part(folder: Path, text: str = "", obo: str = OBO, **options: object) -> Gaf:
    path, ontology = write(folder, "small.gaf.gz", text or gaf()), write(folder, "go.obo", obo)
    given = {"name": "go", "aspect": "P", "smallest": 2, "taxon": 83333, "as": ["features", "relation"]}
    return Gaf(path=path, ontology=ontology, format="gaf", **{**given, **options})


def test_terms_hold_upwards_without_not_and_igi(tmp_path: Path) -> None:
    found = read("gene_sets", part(tmp_path), tmp_path, GENES)
    card, ontology = found.cards
    assert (card.rows, card.used) == (9, 4)
    assert card.dropped == {
        "another taxon": 1,
        "negated (NOT)": 1,
        "evidence IGI left out": 1,
        "term of another namespace": 1,
        "unknown gene": 1,
    }
    dense = found.relations[0].adjacency.toarray()
    # repair: g0 (below it), g1, g2; process: those and g3
    assert dense[0, 1] == dense[1, 2] == 0.5
    assert dense[0, 3] == np.float32(1 / 3)
    assert np.flatnonzero(dense.any(0)).tolist() == [0, 1, 2, 3]
    (block,) = found.features
    assert np.isfinite(block.values).all(1).nonzero()[0].tolist() == [0, 1, 2, 3]
    assert "evidence codes left out: IGI" in block.note
    assert found.relations[0].version == "2025-01-01"
    assert (ontology.rows, ontology.used) == (4, 3)
    assert names_of("gene_sets", part(tmp_path), tmp_path) == ["ALPHA", "g3", "g4", "g5", "x", "y", "z"]


def test_aspect_evidence_and_taxon_are_choices(tmp_path: Path) -> None:
    given = part(tmp_path, aspect="", leave_out_evidence=[], taxon=None, smallest=1, **{"as": ["relation"]})
    found = read("gene_sets", given, tmp_path, GENES)
    assert found.cards[0].dropped == {"negated (NOT)": 1, "unknown gene": 1}
    assert "genetic interactions may leak" in found.relations[0].note
    dense = found.relations[0].adjacency.toarray()
    assert dense[0, 3] == dense[0, 5] == 0.5  # excision repair: g0, g3, g5
    assert not dense[4].any()  # the only gene of its term


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("\tIDA\t", "\t", "small.gaf.gz: line 2: received 16, expected 15 or 17 fields"),
        ("taxon:83333", "taxon:1", "no usable annotation in biological_process"),
    ],
)
def test_damage_of_annotations(tmp_path: Path, old: str, new: str, message: str) -> None:
    count = 1 if old.startswith("\t") else -1
    assert message in refused("gene_sets", part(tmp_path, gaf().replace(old, new, count)), tmp_path, GENES)


def test_damage_of_the_ontology_names_its_file(tmp_path: Path) -> None:
    given = part(tmp_path, obo=OBO.replace("is_a: GO:1", "is_a: GO:7"))
    line = refused("gene_sets", given, tmp_path, GENES)
    assert line.startswith("go.obo: ")
    assert "line 13: received the parent 'GO:7'" in line
    (tmp_path / "go.obo").unlink()
    assert refused("gene_sets", given, tmp_path, GENES).startswith("go.obo: there is no such file")


def test_annotations_of_another_organism_name_the_remedy(tmp_path: Path) -> None:
    line = refused("gene_sets", part(tmp_path), tmp_path, GeneIndex(["a"], organism="other"))
    assert "names no gene of organism 'other' (its first names: ALPHA, x, y" in line
