"""The trigenic screens of paralogs.

No real file is at hand: all are made up in exactly the published layout.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.sources.yeast import trigenic_files as files
from wildtype.datasets.measurements import Measurements
from wildtype.datasets.reading import ReadReport
from wildtype.datasets.records import Measurement
from wildtype.errors import SourceError
from wildtype.organism import GeneIndex
from wildtype.sources.yeast.screens import kuzmin2020
from wildtype.sources.yeast.screens.kuzmin2020 import read
from wildtype.sources.yeast.screens.sga_strains import HO

ORFS = sorted({o for pair in files.PAIRS for o in pair[::2]} | {s.partition("_")[0] for s, _ in files.ARRAYS})
GENES = GeneIndex([*ORFS, HO])
TRIGENIC = (
    "YGR109C+YPR120C_tm1", "clb6Δ+clb5Δ", "YAL048C_dma2", "gem1Δ", "trigenic", "-0.523199", "0.160684",
    "0.00E+00", "0.8705", "0.9500", "-0.0254", "0",
)  # fmt: skip
DIGENIC = (
    "YDL227C+YPR120C_tm2", "hoΔ+clb5Δ", "YMR197C_tsa635", "vti1-11-supp1", "digenic", "0.007534", "0.007534",
    "4.50E-01", "", "0.7494", "0.7800", "NaN",
)  # fmt: skip
DOUBLE, SINGLE = "Double mutant", "Single mutant"
S5 = (
    ("tm1", "YGR109C", "YPR120C", "CLB6", "CLB5", "clb6Δ", "clb5Δ", DOUBLE, "0.87051", "0.007", "-0.1", "0"),
    ("tm2", HO, "YPR120C", "HO", "CLB5", "hoΔ", "clb5Δ", SINGLE, "0.9012", "0.0045", "", ""),
    ("tm5", "YMR199W", "", "CLN1", "", "cln1Δ", "", SINGLE, "0.7", "NaN", "", ""),
    ("tm7", "YMR199W", "YPL256C", "CLN1", "CLN2", "cln1Δ", "cln2Δ", DOUBLE, "NaN", "NaN", "", ""),
    ("tm8", "YGR999C", "YPL256C", "NEW1", "CLN2", "new1Δ", "cln2Δ", DOUBLE, "0.5", "0.01", "", ""),
)
QUERIES, ARRAYS = "fitness of query strains", "fitness of array strains"


def changed(row: Sequence[str], **cells: str) -> list[str]:
    out = list(row)
    for name, value in cells.items():
        out[int(name[1:])] = value
    return out


def write_s5(folder: Path, rows: Sequence[Sequence[str]] = S5) -> Path:
    return files.write_workbook(folder / kuzmin2020.QUERIES[0].name, files.HEADER_S5, rows)


def load(folder: Path) -> tuple[Measurements, dict[tuple[str, str], ReadReport]]:
    readings: list[ReadReport] = []
    measured = read(folder, GENES, collect=readings.append)
    for reading in readings:
        assert reading.rows == reading.kept + sum(reading.dropped.values())
    assert sum(reading.kept for reading in readings) == len(measured)
    return measured, {(reading.file, reading.use): reading for reading in readings}


def records(measured: Measurements, phenotype: str) -> list[Measurement]:
    return [record for record in measured.records() if record.phenotype.name == phenotype]


def spelled(record: Measurement) -> list[tuple[str, str, str]]:
    return [(p.gene, p.kind.name, p.allele) for p in record.genotype.perturbations]


def test_both_tables_are_read_below_their_titles(tmp_path: Path) -> None:
    files.write_2020(tmp_path, [TRIGENIC], [DIGENIC])
    measured, readings = load(tmp_path)
    (tau,) = records(measured, "tau")
    assert (tau.value, tau.p, tau.study) == (0.160684, 0.0, "kuzmin2020")  # positive here, unlike 2018
    (raw,) = records(measured, "trigenic epsilon")
    assert raw.value == -0.523199
    fitness = {r.replicate: r for r in records(measured, "fitness")}
    cross = next(r for r in records(measured, "fitness") if len(r.genotype.perturbations) == 3)
    assert (cross.value, cross.sd) == (-0.0254, 0.0)  # slightly negative, and an sd of 0, as published
    (epsilon,) = records(measured, "epsilon")
    suppressed = [("YMR197C", "TEMPERATURE_SENSITIVE", "vti1-11"), ("YMR197C", "SUPPRESSOR", "vti1-11-supp1")]
    assert spelled(epsilon) == [(HO, "DELETION", ""), *suppressed, ("YPR120C", "DELETION", "")]
    assert math.isnan(fitness["query YDL227C+YPR120C_tm2"].sd)
    assert readings["TableS1.tsv", "tau"].kept == readings["TableS3.tsv", "epsilon"].kept == 1
    assert readings["TableS3.tsv", QUERIES].dropped == {"no fitness given": 1}
    assert set(measured.studies[0].files) == {"TableS1.tsv", "TableS3.tsv"}


def test_a_workbook_holds_the_same(tmp_path: Path) -> None:
    files.write_2020(tmp_path)
    expected = Counter(repr(record) for record in load(tmp_path)[0].records())
    (tmp_path / "TableS3.tsv").unlink()
    given = files.crosses(1, pairs=files.PAIRS_2020, one_sided=False, first_id=1000)
    rows = [row.cells for row in given[len(given) // 2 :]]
    files.write_workbook(tmp_path / "aaz5667-Table-S3.xlsx", files.HEADER_2020, rows)
    assert Counter(repr(record) for record in load(tmp_path)[0].records()) == expected


def test_an_array_fitness_of_both_tables_stands_once(tmp_path: Path) -> None:
    other = changed(TRIGENIC, c0="YMR199W+YPL256C_tm7", c1="cln1Δ+cln2Δ")
    files.write_2020(tmp_path, [TRIGENIC], [other, changed(other, c9="0.9600")])
    measured, readings = load(tmp_path)
    assert readings["TableS3.tsv", ARRAYS].dropped == {"the number of another row again": 1}
    arrays = [r.value for r in records(measured, "fitness") if r.replicate.startswith("array")]
    assert arrays == [0.95, 0.96]


def test_the_fitness_standard_is_found_by_the_end_of_the_identifier(tmp_path: Path) -> None:
    rows = [TRIGENIC, changed(TRIGENIC, c0="YMR199W+YPL256C_tm7", c1="cln1Δ+cln2Δ", c8="0.66")]
    files.write_2020(tmp_path, rows, [DIGENIC])
    path = write_s5(tmp_path)
    measured, readings = load(tmp_path)
    found = {
        (r.replicate, tuple(gene for gene, *_ in spelled(r))): (r.value, r.sd)
        for r in records(measured, "fitness")
        if r.replicate.startswith("query") and len(r.genotype.perturbations) < 3
    }
    without_sd = ("query YMR199W_tm5", ("YMR199W",))
    assert math.isnan(found[without_sd][1])
    assert found.pop(without_sd)[0] == 0.7
    column = ("query YMR199W+YPL256C_tm7", ("YMR199W", "YPL256C"))
    assert found.pop(column)[0] == 0.66  # the standard has no number: the table's column is used
    assert found == {
        ("query YGR109C+YPR120C_tm1", ("YGR109C", "YPR120C")): (0.87051, 0.007),
        ("query YDL227C+YPR120C_tm2", (HO, "YPR120C")): (0.9012, 0.0045),
    }
    given = "fitness of the query given in the fitness standard"
    assert readings["TableS1.tsv", QUERIES].dropped == {given: 1}
    assert readings[path.name, "fitness of query strains listed with 1 ORF(s)"].kept == 1
    double = readings[path.name, "fitness of query strains listed with 2 ORF(s)"]
    assert (double.rows, double.dropped) == (4, {"unknown gene": 1, "no fitness given": 1})
    assert path.name in measured.studies[0].files


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            changed(S5[0], c7="Triple mutant"),
            "row 3: received 'Triple mutant', expected Single mutant or Dou",
        ),
        (changed(S5[0], c7="Single mutant"), "row 3: received 'Single mutant', expected what its ORFs are"),
        (changed(S5[1], c7="Double mutant"), "row 3: received 'Double mutant', expected what its ORFs are"),
        (changed(S5[0], c5=""), "row 3: received '', expected an ORF and its allele"),
        (changed(S5[2], c1=""), "row 3: .* expected an ORF and its allele"),
        (changed(S5[0], c8="high"), "row 3: received 'high', expected a number in 'Fitness'"),
        (changed(S5[0], c9="-1"), "row 3: received '-1', expected a standard deviation of at least 0"),
    ],
)
def test_damage_in_the_standard_names_the_row(tmp_path: Path, row: list[str], message: str) -> None:
    files.write_2020(tmp_path, [TRIGENIC], [DIGENIC])
    write_s5(tmp_path, [row])
    with pytest.raises(SourceError, match=message):
        read(tmp_path, GENES)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (f"{files.TITLE}\n", "", "line 2: received the header"),
        ("gem1Δ", "", "line 3: received '', expected an allele name"),
        ("\t0.9500\t", "\tx\t", "line 3: received 'x', expected a number in 'Array single mutant fitness'"),
        ("\ttrigenic\t", "\t\t", "line 3: received '', expected digenic or trigenic"),
    ],
)
def test_damage_names_the_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    files.write_2020(tmp_path, [TRIGENIC], [DIGENIC])
    path = tmp_path / "TableS1.tsv"
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(SourceError, match=message):
        read(tmp_path, GENES)


def test_damage_in_a_workbook_is_named_too(tmp_path: Path) -> None:
    files.write_2020(tmp_path, [TRIGENIC], [DIGENIC])
    (tmp_path / "TableS1.tsv").unlink()
    bad = changed(TRIGENIC, c7="2")
    files.write_workbook(tmp_path / "aaz5667-Table-S1.xlsx", files.HEADER_2020, [TRIGENIC, bad])
    with pytest.raises(SourceError, match=r"S1\.xlsx, line 4: received '2', expected a p-value"):
        read(tmp_path, GENES)


@pytest.mark.parametrize("name", ["TableS1.tsv", "TableS3.tsv"])
def test_a_missing_table_says_how_to_get_it(tmp_path: Path, name: str) -> None:
    files.write_2020(tmp_path, [TRIGENIC], [DIGENIC])
    (tmp_path / name).unlink()
    with pytest.raises(
        SourceError, match=f"{name} is not in .*: download https://datadryad.org/.* in a browser"
    ):
        read(tmp_path, GENES)


def test_files_of_another_organism_are_refused(tmp_path: Path) -> None:
    files.write_2020(tmp_path, [TRIGENIC], [DIGENIC])
    with pytest.raises(SourceError, match="TableS1.tsv and TableS3.tsv: no row is of genes of 'coli'"):
        read(tmp_path, GeneIndex(["b0001"], organism="coli"))
