"""Digenic interactions of 2010, raw and thresholded."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wildtype.datasets.measurements import Measurements
from wildtype.datasets.reading import ReadReport
from wildtype.datasets.records import PerturbationKind
from wildtype.errors import SourceError
from wildtype.organism import GeneIndex
from wildtype.sources.yeast.screens.costanzo2010 import (
    INTERMEDIATE,
    INTERMEDIATE_TABLE,
    PUBLISHER,
    RAW_TABLE,
    RESERVED_CROSSES,
    RESERVED_GENES,
    STRINGENT,
    STRINGENT_TABLE,
    STUDY_OF_RESERVED,
    STUDY_OF_STRINGENT,
    parse_strain,
    read,
    read_reserved,
    read_stringent,
)

DELETION = PerturbationKind.DELETION
RAW = [  # query, its name, array, its name, epsilon, sd, p, query fitness, sd, array fitness, sd, fitness, sd
    "YAL002W\tVPS8\tYAL043C-A\tYAL043C-A\t-0.2\t0.03\t1.5e-08\t0.9\t0.05\t1.01\t0.02\t0.7\t0.04",
    "YAL043C-A\tYAL043C-A\tYAL002W\tVPS8\t-0.2\t0.03\t1.5e-08\t1.0\t0.03\t0.91\t0.05\t0.71\t0.04",
    "YAL001C_tsq508\ttfc3-g349e\tyal002w\tVPS8\t0.01\t0.02\t0.4\t0.6\t0.1\t0.91\t0.05\t0.55\t0.06",
    "YAL001C_damp\tTFC3_damp\tQ0045\tCOX1\t0.02\t0.02\t0.3\tNaN\tNaN\tNaN\tNaN\t0.9\tNaN",
    "YAL002W\tVPS8\tYFL039C\tACT1\tNaN\tNaN\tNaN\t0.9\t0.05\t0.8\t0.1\tNaN\tNaN",
    "YAL002W\tVPS8\tYAR044W\tYAR044W\t0.1\t0.02\t0.04\t0.9\t0.06\t0.97\t0.01\t0.9\t0.05",
    "YAL002W\tVPS8\tYCL074W\tYCL074W\t0.1\t0.02\t0.04\t0.9\t0.05\t1\t0.01\t1\t0.05",
    "YAL002W\tVPS8\tDOUBLE\tDOUBLE\t0.1\t0.02\t0.04\t0.9\t0.05\t1\t0.01\t1\t0.05",
    "YAL002W\tVPS8\tYAL002W\tVPS8\t-0.6\t0.02\t0.001\t0.9\t0.05\t0.91\t0.05\t0.2\t0.05",
]


def write_raw(folder: Path, rows: Sequence[str] = RAW) -> Path:
    path = folder / RAW_TABLE.name
    path.write_bytes(gzip.compress(("\n".join(rows) + "\n").encode(), compresslevel=1))
    return path


def collected(folder: Path, genes: GeneIndex) -> tuple[Measurements, list[ReadReport]]:
    readings: list[ReadReport] = []
    return read(folder, genes, collect=readings.append), readings


def facts(measurements: Measurements) -> set[tuple[object, ...]]:
    return {
        (
            record.phenotype.name,
            record.replicate,
            record.value,
            None if np.isnan(record.sd) else record.sd,
            *(f"{p.gene} {p.kind.name.lower()} {p.allele}".strip() for p in record.genotype.perturbations),
        )
        for record in measurements.records()
    }


def test_the_raw_table_in_the_published_layout(tmp_path: Path, screen_genes: GeneIndex) -> None:
    """The file is written by hand: 13 columns, no header, compressed; all numbers are invented."""
    write_raw(tmp_path)
    measurements, readings = collected(tmp_path, screen_genes)
    pair, merged = ("YAL002W deletion", "YAL043C-A deletion"), ("YAL002W deletion", "YAR042W deletion")
    sensitive = ("YAL001C temperature_sensitive tfc3-g349e", "YAL002W deletion")
    reduced = ("Q0045 deletion", "YAL001C reduced_expression tfc3_damp")
    assert facts(measurements) == {
        ("epsilon", "query YAL002W", -0.2, 0.03, *pair),
        ("epsilon", "query YAL043C-A", -0.2, 0.03, *pair),
        ("epsilon", "query YAL001C_tsq508", 0.01, 0.02, *sensitive),
        ("epsilon", "query YAL001C_damp", 0.02, 0.02, *reduced),
        ("epsilon", "query YAL002W", 0.1, 0.02, *merged),
        ("fitness", "query YAL002W", 0.7, 0.04, *pair),
        ("fitness", "query YAL043C-A", 0.71, 0.04, *pair),
        ("fitness", "query YAL001C_tsq508", 0.55, 0.06, *sensitive),
        ("fitness", "query YAL001C_damp", 0.9, None, *reduced),
        ("fitness", "query YAL002W", 0.9, 0.05, *merged),
        ("fitness", "query YAL002W", 0.9, 0.05, "YAL002W deletion"),
        ("fitness", "query YAL002W", 0.9, 0.06, "YAL002W deletion"),  # another sd: another number
        ("fitness", "query YAL043C-A", 1.0, 0.03, "YAL043C-A deletion"),
        ("fitness", "query YAL001C_tsq508", 0.6, 0.1, "YAL001C temperature_sensitive tfc3-g349e"),
        ("fitness", "array YAL043C-A", 1.01, 0.02, "YAL043C-A deletion"),
        ("fitness", "array YAL002W", 0.91, 0.05, "YAL002W deletion"),
        ("fitness", "array yal002w", 0.91, 0.05, "YAL002W deletion"),
        ("fitness", "array YFL039C", 0.8, 0.1, "YFL039C deletion"),
        ("fitness", "array YAR044W", 0.97, 0.01, "YAR042W deletion"),
    }
    lost = {"unknown gene": 1, "ambiguous gene name": 1, "query and array of one gene": 1}
    again = "the number of another row again"
    assert {reading.use: (reading.rows, reading.kept, reading.dropped) for reading in readings} == {
        "epsilon": (9, 5, {**lost, "no score given": 1}),
        "fitness of crosses": (9, 5, {**lost, "no fitness given": 1}),
        "fitness of query strains": (9, 4, {"no fitness given": 1, again: 4}),
        "fitness of array strains": (
            9,
            5,
            {"unknown gene": 1, "ambiguous gene name": 1, "no fitness given": 1, again: 1},
        ),
    }
    assert len(measurements) == 19
    p = {r.value: r.p for r in measurements.records() if r.phenotype.name == "epsilon"}
    assert p == {-0.2: 1.5e-08, 0.01: 0.4, 0.02: 0.3, 0.1: 0.04}


def test_the_raw_table_goes_before_its_thresholded_part(small, tmp_path: Path, genes: GeneIndex) -> None:
    measurements, readings = collected(small.path, genes)
    assert [reading.file for reading in readings] == [STRINGENT]
    assert (readings[0].rows, readings[0].kept) == (10, 7)
    assert {phenotype.name for phenotype in measurements.phenotypes} == {"epsilon"}
    write_raw(tmp_path, ["YAL002W\tVPS8\tYDL227C\tHO\t0\t0\t1\t1\t0\t1\t0\t1\t0"])
    measurements, readings = collected(small.path, genes)
    assert {reading.file for reading in readings} == {RAW_TABLE.name}
    assert len(measurements) == 4


def test_the_intermediate_list_goes_before_the_stringent_one_which_stays_a_study(
    small, genes: GeneIndex
) -> None:
    stringent, _ = collected(small.path, genes)
    weaker = "YAL005C\tSSA1\tYAL002W\tVPS8\t-0.0800\t0.0300\t0.05\n"
    small.write(INTERMEDIATE, small.text(STRINGENT) + weaker)
    measurements, readings = collected(small.path, genes)
    assert [(r.file, r.rows, r.kept) for r in readings] == [(INTERMEDIATE, 11, 8)]
    assert facts(measurements) - facts(stringent) == {
        ("epsilon", "query YAL005C", -0.08, 0.03, "YAL002W deletion", "YAL005C deletion")
    }
    alone = read_stringent(small.path, genes, collect=readings.append)
    assert facts(alone) == facts(stringent)
    assert (alone.studies[0].name, readings[-1].file) == (STUDY_OF_STRINGENT, STRINGENT)
    # without that list, the wider one is cut as the publisher cut it
    small.remove(STRINGENT)
    assert facts(read_stringent(small.path, genes, collect=readings.append)) == facts(stringent)
    assert readings[-1].dropped["score between the cut-offs of the list"] == 1


def test_what_is_set_aside_is_read_under_the_names_of_today(small, genes: GeneIndex) -> None:
    lines = ["orf_a\torf_b", "YAL002W\tYAR044W", "YAR042W\tYAL002W", "YAL002W\tYCL074W", "YAR044W\tYAR042W"]
    small.write(RESERVED_CROSSES.name + ".gz", "\n".join([*lines, "YAL003W\tYAL001C"]) + "\n")
    readings: list[ReadReport] = []

    def sets() -> set[tuple[str, ...]]:
        found = read_reserved(small.path, genes, collect=readings.append)
        assert found.studies[0].name == STUDY_OF_RESERVED
        return {tuple(sorted(p.gene for p in r.genotype.perturbations)) for r in found.records()}

    crosses = {("YAL002W", "YAR042W"), ("YAL001C", "YAL003W")}
    assert sets() == crosses
    assert readings[0].dropped == {"unknown gene": 1, "both strains of one gene": 1, "listed twice": 1}
    small.write(RESERVED_GENES.name + ".gz", "YAR044W\nYCL074W\nYEL009C\n")
    assert sets() == crosses | {("YAR042W",), ("YEL009C",)}
    assert (readings[-1].rows, readings[-1].kept, readings[-1].renamed) == (3, 2, 1)
    small.remove(RESERVED_CROSSES.name + ".gz")
    with pytest.raises(SourceError, match="costanzo2010_reserved_crosses.tsv is not in .*: optional"):
        read_reserved(small.path, genes)


@given(order=st.permutations(RAW))
@settings(max_examples=15)
def test_the_order_of_rows_does_not_matter(
    order: list[str], screen_genes: GeneIndex, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.getbasetemp() / "order2010"
    folder.mkdir(exist_ok=True)
    write_raw(folder)
    expected = facts(read(folder, screen_genes))
    write_raw(folder, order)
    assert facts(read(folder, screen_genes)) == expected


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "YAL001C_tsq508",
            "YAL001C_ph1",
            "line 3: received 'YAL001C_ph1', expected an ORF name, alone or foll",
        ),
        (
            "\t0.01\t0.02\t0.4",
            "\t0.01\t-0.02\t0.4",
            "line 3: received '-0.02', expected a standard deviation",
        ),
        ("\t0.6\t0.1\t", "\t0.6\t-0.1\t", "line 3: received '-0.1', expected a standard deviation"),
        ("0.55\t0.06", "0.55\t-1", "line 3: received '-1', expected a standard deviation"),
        ("\t0.01\t0.02\t0.4", "\t0.01\t0.02\t4", "line 3: received '4', expected a p-value of 0 to 1"),
        ("\t0.01\t0.02\t0.4", "\tlow\t0.02\t0.4", "line 3: received 'low', expected a number in 'field 5'"),
        ("0.55\t0.06", "0.55", "line 3: received 12 fields, expected 13"),
    ],
)
def test_damage_of_the_raw_table_names_the_line(
    tmp_path: Path, screen_genes: GeneIndex, old: str, new: str, message: str
) -> None:
    assert sum(old in row for row in RAW) == 1
    path = write_raw(tmp_path, [row.replace(old, new) for row in RAW])
    with pytest.raises(SourceError, match=rf"{path.name}, {message}"):
        read(tmp_path, screen_genes)


def test_missing_truncated_and_foreign_raw_tables_are_refused(
    tmp_path: Path, screen_genes: GeneIndex
) -> None:
    with pytest.raises(SourceError, match=rf"{INTERMEDIATE_TABLE.name} is not in .*in a browser from"):
        read(tmp_path, screen_genes)
    with pytest.raises(SourceError, match=rf"{STRINGENT_TABLE.name} is not in .*in a browser from"):
        read_stringent(tmp_path, screen_genes)
    path = write_raw(tmp_path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(SourceError, match="is cut short"):
        read(tmp_path, screen_genes)
    write_raw(tmp_path, ["b0001\tthrL\tb0002\tthrA\t0\t0\t1\t1\t0\t1\t0\t1\t0"])
    with pytest.raises(SourceError, match="no row is of genes of 'yeast', expected most"):
        read(tmp_path, screen_genes)


@pytest.mark.parametrize(
    ("text", "allele", "expected"),
    [
        ("YAL002W", "VPS8", ("YAL002W", DELETION, "")),
        ("YAL043C-A", "", ("YAL043C-A", DELETION, "")),
        ("YAL001C_tsq508", "tfc3-g349e", ("YAL001C", PerturbationKind.TEMPERATURE_SENSITIVE, "tfc3-g349e")),
        ("YAL001C_tsq508", "", ("YAL001C", PerturbationKind.TEMPERATURE_SENSITIVE, "tsq508")),
        ("YAL001C_damp", "TFC3_damp", ("YAL001C", PerturbationKind.REDUCED_EXPRESSION, "tfc3_damp")),
        ("YAL001C_damp", "", ("YAL001C", PerturbationKind.REDUCED_EXPRESSION, "damp")),
        ("YAL001C_sn5", "", None),
        ("_damp", "", None),
    ],
)
def test_the_suffix_says_what_was_done(text: str, allele: str, expected) -> None:
    found = parse_strain(text, allele)
    assert (None if found is None else (found[0].orfs[0], *found[1])) == (expected and (*expected, ""))


def test_the_publisher_gives_https_addresses_or_says_what_to_do() -> None:
    raw, intermediate, stringent, *reserved = PUBLISHER.files
    assert raw.urls == (f"https://boonelab.ccbr.utoronto.ca/supplement/costanzo2009/{raw.name}",)
    for table in (intermediate, stringent):
        assert not table.urls
        assert "in a browser" in table.gated
    for table in reserved:
        assert not table.urls
        assert table.gated.startswith("optional")


def test_suffixes_are_hypomorphs_and_bare_names_deletions(small, genes: GeneIndex) -> None:
    measurements, readings = collected(small.path, genes)
    lost = {"unknown gene": 1, "ambiguous gene name": 1, "query and array of one gene": 1}
    assert [(r.rows, r.kept, r.dropped, r.renamed) for r in readings] == [(10, 7, lost, 1)]
    kinds = {
        record.replicate: [p.kind.name.lower() for p in record.genotype.perturbations if p.gene == "YAL001C"]
        for record in measurements.records()
    }
    assert kinds["query YAL001C_tsq508"] == kinds["query YAL001C_tsq99"] == ["temperature_sensitive"]
    assert kinds["query YAL001C_damp"] == ["reduced_expression"]
    assert {kind.name for kind in map(PerturbationKind, measurements.kind)} == {
        "DELETION",
        "TEMPERATURE_SENSITIVE",
        "REDUCED_EXPRESSION",
    }


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "_tsq508\t",
            "_ph1\t",
            "line 3: received 'YAL001C_ph1', expected an ORF name, alone or followed by _tsqN",
        ),
        ("-0.4000", "low", "line 3: received 'low', expected a number in 'field 5'"),
        ("-0.4000\t0.0300", "-0.4000\t-0.03", "line 3: received '-0.03', expected a standard deviation"),
        (
            "0.2500\t0.0400\t0.0",
            "0.2500\t0.0400\t1.5",
            "line 5: received '1.5', expected a p-value of 0 to 1",
        ),
        ("\t-0.4000\t", "\t", "line 3: received 6 fields, expected 7"),
    ],
)
def test_damage_names_the_line(small, genes: GeneIndex, old: str, new: str, message: str) -> None:
    small.replace(STRINGENT, old, new)
    with pytest.raises(SourceError, match=message):
        read(small.path, genes)


def test_a_truncated_file_is_refused(small, genes: GeneIndex) -> None:
    path = small.path / STRINGENT
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(SourceError, match="is cut short"):
        read(small.path, genes)


def test_a_file_of_another_organism_is_refused(small, genes: GeneIndex) -> None:
    small.write(STRINGENT, "b0001\tthrL\tb0002\tthrA\t-0.2\t0.01\t0.01\n")
    with pytest.raises(SourceError, match="no row is of genes of 'yeast', expected most"):
        read(small.path, genes)


@pytest.mark.real
def test_real_measurements(mirror: Path, real_genes: GeneIndex) -> None:
    measurements, readings = collected(mirror, real_genes)
    assert [(r.file, r.rows, r.kept, r.dropped) for r in readings] == [
        (INTERMEDIATE, 155_045, 154_762, {"unknown gene": 283})
    ]
    assert (np.abs(measurements.value) >= 0.08).all()
    assert (measurements.p <= 0.05).all()


@pytest.mark.real
def test_the_real_stringent_list(mirror: Path, real_genes: GeneIndex) -> None:
    readings: list[ReadReport] = []
    measurements = read_stringent(mirror, real_genes, collect=readings.append)
    assert [(r.file, r.rows, r.kept, r.dropped) for r in readings] == [
        (STRINGENT, 60608, 60533, {"unknown gene": 75})
    ]
    assert len(measurements) == 60533
    kinds = [PerturbationKind.TEMPERATURE_SENSITIVE, PerturbationKind.REDUCED_EXPRESSION]
    assert np.unique(measurements.row[np.isin(measurements.kind, kinds)]).size == 14136
    assert (measurements.p < 0.05).all()
    assert np.isfinite(measurements.sd).all()
    value = measurements.value
    assert value[value < 0].max() <= -0.12
    assert value[value > 0].min() >= 0.16


@pytest.mark.real
def test_real_crosses_that_are_set_aside(mirror: Path, real_genes: GeneIndex) -> None:
    readings: list[ReadReport] = []
    measurements = read_reserved(mirror, real_genes, collect=readings.append)
    assert [(r.rows, r.kept) for r in readings] == [(519_360, 516_224), (251, 248)]
    assert np.bincount(measurements.order).tolist() == [0, 248, 516_224]
