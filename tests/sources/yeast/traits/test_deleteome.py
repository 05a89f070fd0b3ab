"""The deleteome: no real file is at hand; the tables are written here in exactly the published layout."""

from __future__ import annotations

import numpy as np
import pytest

from wildtype.datasets.reading import ReadReport
from wildtype.errors import SourceError
from wildtype.organism import GeneIndex
from wildtype.sources.yeast.traits.deleteome import DELETEOME, read

FILE = f"{DELETEOME.name}.gz"
EXPERIMENTS = [
    "vps8-del vs. wt", "tfc3-del-1 vs. wt", "tfc3-del-matA vs. wt-matA", "yal004w-del vs wt",
    "hsn9-del vs. wt", "cms1-del vs. wt", "wt-matA vs. wt", "yeast pool vs. wt", "double-del vs. wt",
]  # fmt: skip
REPORTERS = [("A_1", "YAL001C"), ("A_2", "YAL002W"), ("A_3", "YAL002W"), ("A_4", "YCL074W")]


def table(reporters: list[tuple[str, str]] = REPORTERS, experiments: list[str] = EXPERIMENTS) -> str:
    lines = [
        ["reporterId", "systematicName", "geneSymbol", *(name for name in experiments for _ in range(3))],
        ["dataType"] * 3 + ["M", "A", "p_value"] * len(experiments),
    ]
    for i, (reporter, gene) in enumerate(reporters):
        numbers = [(f"{i - j / 8:g}", "9.5", f"{(i + j) / 100:g}") for j in range(len(experiments))]
        lines.append([reporter, gene, "sym", *(text for triple in numbers for text in triple)])
    return "\n".join("\t".join(line) for line in lines) + "\n"


@pytest.fixture
def older() -> GeneIndex:
    """A gene list that has the names of the experiments, CMS1 with its meaning of today."""
    standard = {"YAL001C": "TFC3", "YAL002W": "VPS8", "YLR003C": "CMS1"}
    return GeneIndex(
        ["YAL001C", "YAL002W", "YAL004W", "YLR003C", "YHR127W"],
        standard,
        {"YAL004W": ["DOUBLE"], "YHR127W": ["HSN1", "DOUBLE"]},
        "yeast",
    )


def test_every_expression_value_names_mutant_and_gene(small, older: GeneIndex) -> None:
    small.write(FILE, table())
    readings: list[ReadReport] = []
    found = read(small.path, older, collect=readings.append)
    rows = {
        (r.genotype.perturbations[0].gene if r.genotype.perturbations else "", r.trait, r.replicate): r
        for r in found.records()
    }
    assert len(rows) == len(found) == 5 * 3
    assert rows["YAL002W", "YAL001C", ""].value == 0.0
    second = rows["YAL001C", "YAL002W", "tfc3-del-matA vs. wt-matA / A_3"]
    assert (second.value, second.p) == (2 - 2 / 8, 0.04)
    assert rows["YAL004W", "YAL001C", ""].p == 0.03
    assert rows["", "YAL001C", "wt-matA vs. wt"].value == -6 / 8
    (reading,) = readings
    assert (reading.rows, reading.kept) == (9 * 4, 15)
    assert reading.dropped == {
        "experiment that is no deletion": 4,
        "gene name that has changed its meaning": 4,
        "unknown gene": 4,
        "ambiguous gene name": 4,
        "reporter of no known gene": 5,
    }


def test_a_name_that_only_an_alias_knows_is_resolved_and_counted(small, older: GeneIndex) -> None:
    small.write(FILE, table(experiments=["hsn1-del vs. wt", "lug1-del vs. wt"]))
    readings: list[ReadReport] = []
    found = read(small.path, older, collect=readings.append)
    assert {r.genotype.perturbations[0].gene for r in found.records()} == {"YHR127W"}
    assert readings[0].renamed == 3
    assert readings[0].dropped["gene name that has changed its meaning"] == 4


def test_values_that_are_not_there_and_foreign_bytes_in_symbols(small, older: GeneIndex) -> None:
    text = table().replace("sym\t0\t", "sym\tNA\t", 1)
    small.write(FILE, text.encode().replace(b"sym", b"s\xe9m", 1))
    readings: list[ReadReport] = []
    found = read(small.path, older, collect=readings.append)
    assert len(found) == 14
    assert readings[0].dropped["no value"] == 1


def test_the_order_of_reporters_does_not_matter(small, older: GeneIndex) -> None:
    small.write(FILE, table())
    first = read(small.path, older)
    head, kinds, *lines = table().splitlines()
    small.write(FILE, "\n".join([head, kinds, *reversed(lines)]) + "\n")
    second = read(small.path, older)
    for found in (first, second):
        assert len(found) == 15
    np.testing.assert_allclose(np.sort(first.value), np.sort(second.value))
    keys = [sorted((r.trait, r.replicate, r.value) for r in found.records()) for found in (first, second)]
    assert keys[0] == keys[1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (table().replace("reporterId", "probe"), "line 1: received 30 names"),
        (table().replace("vps8-del vs. wt\t", "", 1), "line 1: received 29 names"),
        (table().replace("vps8-del", "vps9-del", 1), "line 1: .* expected one experiment three times"),
        (table().replace("\tA\t", "\tB\t", 1), "line 2: received other kinds of data"),
        (table().replace("sym\t0\t", "sym\tlow\t", 1), "line 3: received 'low', expected a number in 'M'"),
        (table().replace("\t0.01\t", "\t1.01\t", 1), "line 3: received '1.01', expected a p-value of 0 to 1"),
        (table().replace("\tsym", "", 1), "line 3: received 29 fields, expected 30"),
        (table().split("\n")[0] + "\n", "ends before line 2"),
        ("\n".join(table().split("\n")[:2]) + "\n", "holds no rows"),
        (table([("A_1", "YCL074W")]), "no value of a gene"),
    ],
)
def test_another_layout_is_refused(small, older: GeneIndex, text: str, message: str) -> None:
    small.write(FILE, text)
    with pytest.raises(SourceError, match=message):
        read(small.path, older)


def test_a_truncated_file_is_named(small, older: GeneIndex) -> None:
    small.write(FILE, table())
    path = small.path / FILE
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(SourceError, match=r"controls\.txt\.gz is cut short"):
        read(small.path, older)
