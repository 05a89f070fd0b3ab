"""Regulation as other studies prepared it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from wildtype.errors import SourceError
from wildtype.organism import GeneIndex
from wildtype.sources.yeast.graphs.regulatory_priors import (
    GOLD,
    MOTIFS,
    PUBLISHERS,
    RESPONSES,
    read_gold_standard,
    read_motifs,
    read_responses,
)


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
    assert PUBLISHERS[1].published["rows"] == 6605
