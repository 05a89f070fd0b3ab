"""The gene list and the essential genes."""

from __future__ import annotations

from pathlib import Path

import pytest

from wildtype.errors import SourceError
from wildtype.organism import GeneIndex
from wildtype.sources.text import match_genes
from wildtype.sources.yeast.genes.sgd import (
    ESSENTIAL,
    FEATURES,
    read_dubious,
    read_essential,
    read_genes,
    read_sgd_ids,
    read_standard_names,
)


def test_only_orfs_are_genes_in_file_order_with_all_their_names(small) -> None:
    genes, reading, about = read_genes(small.path)
    assert genes.names[:3] == ("YAL001C", "YAL002W", "YAL003W")
    assert len(genes) == reading.kept == 12
    assert reading.rows == reading.kept + sum(reading.dropped.values())
    assert genes.find("TFC3") == genes.find("tau 138") == 0
    assert genes.label(3) == "YAL004W"
    assert "12 ORFs" in about
    assert "1 dubious" in about


def test_dubious_orfs(small) -> None:
    genes, _, _ = read_genes(small.path)
    assert [genes.names[i] for i in read_dubious(small.path, genes).nonzero()[0]] == ["YAL004W"]
    small.replace(FEATURES, "ORF\tVerified\tYAL002W", "ORF\tDubious|silenced_gene\tYAL002W")
    assert read_dubious(small.path, genes).sum() == 2


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


IDS, NAMES = "sgd_id_to_systematic_name.lst", "SGDgeneNames.tsv"
LIST = "S000000001  YAL001C\r\nS000000002  YAL002W\r\nS000000099  tA(AGC)D\r\nS000000098  YAR044W\r\n"
TABLE = (
    "Systematic_name\tStandard_name\nYAL001C\tTFC3\nYAL004W\t\nYAL002W\t01-Oct\nYZZ999W\tXYZ1\n"
    "YAL001C\tTFC3\n"
)


@pytest.mark.parametrize("separator", ["  ", "\t"])
def test_sgd_identifiers(small, genes: GeneIndex, separator: str) -> None:
    small.write(IDS, LIST.replace("  ", separator))
    found, reading = read_sgd_ids(small.path, genes)
    assert found == {"S000000001": 0, "S000000002": 1, "S000000098": genes.find("SWH1")}
    assert (reading.dropped, reading.renamed) == ({"unknown gene": 1}, 1)
    assert reading.rows == reading.kept + sum(reading.dropped.values())


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("S000000002", "S2", "line 2: received 'S2', expected an SGD identifier"),
        ("S000000002", "S000000001", "line 2: received 'S000000001', expected an SGD identifier"),
        ("S000000002  YAL002W", "S000000002", "line 2: received 1 fields, expected at least 2"),
    ],
)
def test_damaged_identifiers_name_the_line(small, genes: GeneIndex, old: str, new: str, message: str) -> None:
    small.write(IDS, LIST.replace(old, new))
    with pytest.raises(SourceError, match=message):
        read_sgd_ids(small.path, genes)


def test_standard_names_and_dates_in_their_place(small, genes: GeneIndex) -> None:
    small.write(NAMES, TABLE)
    found, reading = read_standard_names(small.path, genes)
    assert found == {"YAL001C": "TFC3"}
    assert reading.dropped == {
        "unknown gene": 1,
        "no standard name": 1,
        "a spreadsheet's date in place of a name": 1,
        "listed twice": 1,
    }
    assert reading.rows == reading.kept + sum(reading.dropped.values())


def test_standard_names_of_another_layout_are_refused(small, genes: GeneIndex) -> None:
    small.write(NAMES, TABLE.replace("Systematic_name", "ORF"))
    with pytest.raises(SourceError, match="line 1: received the header 'ORF, Standard_name'"):
        read_standard_names(small.path, genes)


LEFT_THE_REFERENCE = [
    "YAR037W",
    "YAR040C",
    "YAR043C",
    "YAR061W",
    "YAR062W",
    "YCL006C",
    "YCL013W",
    "YCL026C",
    "YCL074W",
    "YCL075W",
    "YDR134C",
    "YER108C",
    "YER109C",
    "YFL056C",
    "YFL057C",
    "YIL080W",
    "YIL167W",
    "YIL168W",
    "YIL170W",
    "YIL171W",
    "YIL174W",
    "YIL175W",
    "YIR043C",
    "YLL016W",
    "YLL017W",
    "YOL153C",
    "YOR031W",
    "YPL060C-A",
    "YPL275W",
    "YPL276W",
]
"""Names of a study of 2010 that release R64 does not have."""


@pytest.mark.real
def test_real_lists_agree_with_the_gene_list(mirror: Path, real_genes: GeneIndex) -> None:
    found, reading = read_sgd_ids(mirror, real_genes)
    assert (reading.rows, reading.kept, len(set(found.values()))) == (7030, 6506, 6506)
    names, reading = read_standard_names(mirror, real_genes)
    assert (reading.rows, reading.kept) == (6604, 5142)
    assert reading.dropped == {"no standard name": 1460, "a spreadsheet's date in place of a name": 2}
    assert all(real_genes.standard[gene] == name for gene, name in names.items())
    assert set(real_genes.standard) - set(names) == {"YKL134C", "YPR153W"}  # OCT1 and MAY24


@pytest.mark.real
def test_real_names_that_left_the_reference_are_unknown_and_merged_ones_are_found(
    real_genes: GeneIndex,
) -> None:
    matched = match_genes([*LEFT_THE_REFERENCE, "YAR044W", "YGL046W"], real_genes)
    assert matched.dropped() == {"unknown gene": 30}
    assert [real_genes.names[i] for i in matched.position[-2:]] == ["YAR042W", "YGL045W"]
    assert matched.renamed[-2:].all()
