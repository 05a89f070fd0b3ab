"""STRING, both versions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from wildtype.errors import ConfigError, SourceError
from wildtype.organism import GeneIndex
from wildtype.sources.yeast.graphs.string import CHANNELS_91, NODES_91, PAIRS, read_string


def test_channels_hold_scores_over_1000_in_both_directions(small, genes: GeneIndex) -> None:
    read = {relation.name: (relation, reading) for relation, reading in read_string(small.path, genes)}
    assert len(read) == 6
    coexpression, reading = read["string_coexpression"]
    assert coexpression.adjacency[0, 1] == coexpression.adjacency[1, 0] == np.float32(0.999)
    assert (coexpression.edges, coexpression.directed, coexpression.weighted) == (1, False, True)
    assert reading.dropped == {"score 0 in this channel": 2, "unknown gene": 1}
    assert "combined score >= 900" in coexpression.note
    assert "genetic interactions" not in coexpression.note
    for name in ("string_experimental", "string_database"):
        assert "genetic interactions" in read[name][0].note
    for relation, reading in read.values():
        assert reading.rows == reading.kept + sum(reading.dropped.values())
        assert reading.dropped == dict(relation.dropped)


def test_version_91_counts_nodes_from_one_and_merges_both_orders(small, genes: GeneIndex) -> None:
    read = read_string(small.path, genes, "9.1")
    assert [relation.name for relation, _ in read] == [f"string_{channel}" for channel in CHANNELS_91]
    relation, reading = read[0]
    cox1, tfc3 = genes.find("Q0045"), genes.find("YAL001C")
    assert relation.adjacency[cox1, tfc3] == np.float32(0.15)
    assert relation.edges == 1
    assert reading.dropped == {"score 0 in this channel": 1, "unknown gene": 1, "duplicate": 1}
    assert {relation.version for relation, _ in read} == {"9.1"}


def test_an_unknown_version_is_refused(small, genes: GeneIndex) -> None:
    with pytest.raises(ConfigError, match=r"STRING '12\.0' is not known: choose one of 11\.5, 9\.1"):
        read_string(small.path, genes, "12.0")


@pytest.mark.parametrize("score", ["1001", "-1"])
def test_scores_out_of_range_name_line_and_channel(small, genes: GeneIndex, score: str) -> None:
    small.replace(PAIRS, "YAL005C\t120", f"YAL005C\t{score}")
    with pytest.raises(
        SourceError, match=f"line 3: received '{score}', expected a neighborhood score of 0 to 1000"
    ):
        read_string(small.path, genes)


def test_misspelt_channel_is_refused(small, genes: GeneIndex) -> None:
    small.replace(PAIRS, "cooccurence", "cooccurrence")
    with pytest.raises(SourceError, match="line 1: received the header"):
        read_string(small.path, genes)


@pytest.mark.parametrize(
    ("line", "message"),
    [("0\t1\t0.5", "a node number of 1 to 4"), ("5\t1\t0.5", "a node number"),
     ("1.5\t1\t0.5", "a node number"),
     ("1\t2\t1.5", "a fusion score of 0 to 1"), ("1\t2\tNaN", "a number")],
)  # fmt: skip
def test_version_91_refuses_bad_nodes_and_scores(small, genes: GeneIndex, line: str, message: str) -> None:
    name = "string_v9.1_fusion.tsv.gz"
    small.write(name, small.text(name) + line + "\n")
    with pytest.raises(SourceError, match=f"line 5: received .*expected {message}"):
        read_string(small.path, genes, "9.1")


def test_missing_node_list_is_named(small, genes: GeneIndex) -> None:
    small.remove(NODES_91)
    with pytest.raises(SourceError, match=NODES_91):
        read_string(small.path, genes, "9.1")


@pytest.mark.real
def test_real_channels(mirror: Path, real_genes: GeneIndex) -> None:
    read = {relation.name: (relation, reading) for relation, reading in read_string(mirror, real_genes)}
    some = {
        "neighborhood": 7656, "fusion": 492, "cooccurence": 1231, "coexpression": 54317,
        "experimental": 48190, "database": 29231,
    }  # fmt: skip
    for channel, pairs in some.items():
        relation, reading = read[f"string_{channel}"]
        assert reading.rows == 63309
        assert reading.rows - relation.dropped["score 0 in this channel"] == pairs
        assert relation.edges + relation.dropped.get("unknown gene", 0) == pairs
    experimental = read["string_experimental"][0].adjacency

    def score(a: str, b: str) -> float:
        return float(experimental[real_genes.find(a), real_genes.find(b)])

    assert score("CDC48", "UFD1") == pytest.approx(0.999)
    assert score("PRE7", "PRE4") == pytest.approx(0.998)
    assert score("TFC3", "TFC1") == pytest.approx(0.916)
    assert score("GAL1", "HO") == 0


@pytest.mark.real
def test_real_channels_of_version_91(mirror: Path, real_genes: GeneIndex) -> None:
    lines = {"neighborhood": 91220, "fusion": 2722, "cooccurence": 5328, "database": 66972}
    for relation, reading in read_string(mirror, real_genes, "9.1"):
        assert reading.rows == lines[relation.name.removeprefix("string_")]
        assert relation.dropped["duplicate"] == relation.edges  # both orders stand in the file
        assert reading.rows == reading.kept + sum(reading.dropped.values())
