"""The gene list and the essential genes."""

from __future__ import annotations

from pathlib import Path

import pytest

from wildtype.errors import SourceError
from wildtype.organism import GeneIndex
from wildtype.sources.yeast.genes.sgd import ESSENTIAL, FEATURES, read_essential, read_genes


def test_only_orfs_are_genes_in_file_order_with_all_their_names(small) -> None:
    genes, reading, about = read_genes(small.path)
    assert genes.names[:3] == ("YAL001C", "YAL002W", "YAL003W")
    assert len(genes) == reading.kept == 12
    assert reading.rows == reading.kept + sum(reading.dropped.values())
    assert genes.find("TFC3") == genes.find("tau 138") == 0
    assert genes.label(3) == "YAL004W"
    assert "12 ORFs" in about
    assert "1 dubious" in about


def test_an_alias_that_names_another_feature_is_left_out(small) -> None:
    genes, _, about = read_genes(small.path)
    assert "FLO8" not in genes  # a blocked reading frame, and an alias of YAL005C in the file
    assert "YG100" in genes
    assert about.endswith("another feature: 1")


def test_the_publishers_own_name_goes_first(small) -> None:
    lines = small.text(FEATURES).split("\r\n")
    small.write("SGD_features.tab", "\r\n".join(lines[:4]) + "\r\n")
    genes, reading, _ = read_genes(small.path)
    assert genes.names == ("YAL001C", "YAL002W")
    assert reading.file == "SGD_features.tab"


def test_a_missing_gene_list_says_where_it_is(small) -> None:
    small.remove(FEATURES)
    with pytest.raises(SourceError, match=r"SGD_features\.tab is not in .*fetch it from https://sgd-archive"):
        read_genes(small.path)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "ORF\tVerified\tYAL002W",
            "ORF\tVerified\tYAL001C",
            "line 3: received 'YAL001C', expected an ORF name",
        ),
        ("ORF\tVerified\tYAL002W", "ORF\tVerified\t", "line 3: received '', expected an ORF name"),
        ("ORF\tVerified\tYAL002W", "ORF\tYAL002W", "line 3: received 15 fields, expected 16"),
    ],
)
def test_damaged_feature_rows_name_the_line(small, old: str, new: str, message: str) -> None:
    small.replace(FEATURES, old, new)
    with pytest.raises(SourceError, match=message):
        read_genes(small.path)


def test_a_file_without_orfs_is_refused(small) -> None:
    small.write(FEATURES, small.text(FEATURES).replace("\tORF\t", "\tgene\t"))
    with pytest.raises(SourceError, match="no row of type ORF"):
        read_genes(small.path)


def test_essential_genes_with_notes_repeats_blank_lines_and_case(small, genes: GeneIndex) -> None:
    essential, reading = read_essential(small.path, genes)
    assert [genes.names[i] for i in essential.nonzero()[0]] == ["YAL001C", "YAL003W", "YFL039C"]
    assert reading.dropped == {"unknown gene": 1, "listed twice": 1, "blank line": 1}
    assert reading.rows == reading.kept + sum(reading.dropped.values())


def test_essential_file_of_another_layout_is_refused(small, genes: GeneIndex) -> None:
    small.replace(ESSENTIAL, "RECORD #\tORF", "ORF\tRECORD #")
    with pytest.raises(SourceError, match="line 1: received the header"):
        read_essential(small.path, genes)


@pytest.mark.real
def test_real_gene_list(mirror: Path, real_genes: GeneIndex) -> None:
    about = read_genes(mirror)[2]
    assert len(real_genes) == 6604
    assert "717 dubious, 728 uncharacterized, 5,159 verified" in about
    assert len(real_genes.standard) == 5144
    for name, orf in {"GAL4": "YPL248C", "ACT1": "YFL039C", "HO": "YDL227C", "COX1": "Q0045"}.items():
        assert real_genes.names[real_genes.find(name)] == orf
    assert len(real_genes.descriptions) == 6604
    assert "galactose" in real_genes.descriptions["YPL248C"].lower()


@pytest.mark.real
def test_real_essential_genes(mirror: Path, real_genes: GeneIndex) -> None:
    essential, reading = read_essential(mirror, real_genes)
    assert reading.rows == 1176
    assert reading.kept == int(essential.sum()) == 1150
    assert reading.rows == reading.kept + sum(reading.dropped.values())
    assert all(essential[real_genes.find(g)] for g in ("ACT1", "CDC28", "TUB1", "PGK1"))
    assert not any(essential[real_genes.find(g)] for g in ("HIS3", "URA3", "GAL1"))
