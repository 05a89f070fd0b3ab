"""STRING, both versions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from wildtype.errors import ConfigError, SourceError
from wildtype.organism import GeneIndex
from wildtype.sources.yeast.graphs.string import (
    CHANNELS,
    CHANNELS_91,
    DETAILED,
    NODES_91,
    PAIRS,
    PUBLISHER,
    read_string,
    versions_in,
)


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
    with pytest.raises(
        ConfigError, match=r"STRING '10\.5' is not known: choose one of 11\.5, 12\.0, 11\.0, 9\.1"
    ):
        read_string(small.path, genes, "10.5")


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
    [
        ("0\t1\t0.5", "a node number of 1 to 4"),
        ("5\t1\t0.5", "a node number"),
        ("1.5\t1\t0.5", "a node number"),
        ("1\t2\t1.5", "a fusion score of 0 to 1"),
        ("1\t2\tNaN", "a number"),
    ],
)
def test_version_91_refuses_bad_nodes_and_scores(small, genes: GeneIndex, line: str, message: str) -> None:
    name = "string_v9.1_fusion.tsv.gz"
    small.write(name, small.text(name) + line + "\n")
    with pytest.raises(SourceError, match=f"line 5: received .*expected {message}"):
        read_string(small.path, genes, "9.1")


def test_missing_node_list_is_named(small, genes: GeneIndex) -> None:
    small.remove(NODES_91)
    with pytest.raises(SourceError, match=NODES_91):
        read_string(small.path, genes, "9.1")


DETAILED_12 = DETAILED["12.0"].name


def test_the_publishers_file_gives_one_relation_per_channel(raw, genes: GeneIndex) -> None:
    """The file is written by hand in the published layout: no mirror holds protein.links.detailed."""
    raw.remove("4932.protein.aliases.v12.0.txt.gz")
    read = {relation.name: (relation, reading) for relation, reading in read_string(raw.path, genes, "12.0")}
    assert list(read) == [f"string_{channel}" for channel in CHANNELS]
    experimental, reading = read["string_experimental"]
    assert experimental.adjacency[0, 1] == experimental.adjacency[1, 0] == np.float32(0.455)  # the larger
    assert reading.dropped == {"score 0 in this channel": 3, "unknown gene": 1, "duplicate": 1}
    assert read["string_neighborhood"][0].adjacency[genes.find("COX1"), genes.find("ACT1")] == np.float32(
        0.041
    )
    assert read["string_coexpression"][1].dropped == {
        "score 0 in this channel": 1,
        "unknown gene": 2,
        "duplicate": 1,
    }
    for relation, reading in read.values():
        assert reading.rows == 6 == reading.kept + sum(reading.dropped.values())
        assert relation.version == "12.0"
        assert relation.note.startswith("no cut-off")


def test_a_pair_listed_once_or_twice_in_any_order_is_the_same(raw, genes: GeneIndex) -> None:
    name = "4932.protein.links.detailed.v12.0.txt.gz"
    head, *rows = raw.text(name).rstrip("\n").split("\n")
    before = [relation.adjacency for relation, _ in read_string(raw.path, genes, "12.0")]
    turned = [" ".join([row.split(" ")[1], row.split(" ")[0], *row.split(" ")[2:]]) for row in rows]
    raw.write(name, "\n".join([head, *reversed(rows), *turned]) + "\n")
    after = [relation.adjacency for relation, _ in read_string(raw.path, genes, "12.0")]
    for one, other in zip(before, after, strict=True):
        assert (one != other).nnz == 0


def test_aliases_decide_for_unknown_proteins_where_they_agree(raw, genes: GeneIndex) -> None:
    read = {relation.name: (relation, reading) for relation, reading in read_string(raw.path, genes, "12.0")}
    coexpression, reading = read["string_coexpression"]
    assert coexpression.adjacency[genes.find("SSA1"), genes.find("ACT1")] == np.float32(0.5)
    assert coexpression.adjacency[genes.find("TFC3"), genes.find("ACT1")] == 0  # a known name stays
    assert reading.dropped["ambiguous gene name"] == 1
    assert reading.renamed == 1
    assert "4932.protein.aliases.v12.0.txt.gz" in coexpression.note


def test_text_mining_comes_on_request_only(raw, genes: GeneIndex) -> None:
    relation = read_string(raw.path, genes, "12.0", textmining=True)[-1][0]
    assert relation.name == "string_textmining"
    assert relation.adjacency[0, 1] == np.float32(0.12)
    assert "genetic interactions" in relation.note
    with pytest.raises(ConfigError, match=r"derived files of STRING 11\.5 have no textmining channel"):
        read_string(raw.path, genes, "11.5", textmining=True)


def test_versions_are_found_and_a_publishers_file_goes_before_a_derived_one(raw, genes: GeneIndex) -> None:
    assert versions_in(raw.path) == ["11.5", "12.0", "9.1"]
    raw.write(DETAILED["9.1"].name, raw.text(DETAILED_12))
    assert len(read_string(raw.path, genes, "9.1")) == 6
    with pytest.raises(
        SourceError, match=r"links\.detailed\.v11\.0\.txt\.gz is not in .*fetch it from https"
    ):
        read_string(raw.path, genes, "11.0")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("cooccurence", "cooccurrence", "line 1: received the header"),
        ("4932.YAL003W", "9606.ENSP01", "line 5: received '9606.ENSP01', expected a protein of taxon 4932"),
        ("41 0 0 62", "41 0 0 1062", "line 4: received '?1062'?, expected a coexpression score of 0 to 1000"),
        ("41 0 0 62", "41 0 0 sixty", "line 4: received 'sixty', expected a number"),
        ("0 900 0 905", "0 900 0", "line 4: received 9 fields, expected 10"),
    ],
)
def test_damage_of_the_publishers_file_names_the_line(
    raw, genes: GeneIndex, old: str, new: str, message: str
) -> None:
    raw.replace(DETAILED_12, old, new)
    with pytest.raises(SourceError, match=message):
        read_string(raw.path, genes, "12.0")


def test_a_truncated_publishers_file_is_refused(raw, genes: GeneIndex) -> None:
    path = raw.path / DETAILED_12
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(SourceError, match="cut short"):
        read_string(raw.path, genes, "12.0")


def test_every_address_is_https_and_the_one_without_says_what_to_do() -> None:
    for file in PUBLISHER.files:
        assert all(url.startswith("https://") for url in file.urls)
        assert file.urls or file.gated


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
