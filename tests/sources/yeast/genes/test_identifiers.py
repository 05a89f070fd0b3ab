"""Lists of names."""

from __future__ import annotations

from pathlib import Path

import pytest

from wildtype.errors import SourceError
from wildtype.organism import GeneIndex
from wildtype.sources.text import match_genes
from wildtype.sources.yeast.genes.identifiers import read_sgd_ids, read_standard_names

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
