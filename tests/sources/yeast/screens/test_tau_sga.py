"""Fitness standards and test output of the trigenic scoring pipeline: small files, and the real ones."""

from __future__ import annotations

import gzip
import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from wildtype.datasets.measurements import Measurements
from wildtype.datasets.reading import ReadReport
from wildtype.datasets.records import Measurement, PerturbationKind
from wildtype.errors import SourceError
from wildtype.organism import GeneIndex
from wildtype.sources.columns import read_columns
from wildtype.sources.yeast.screens import kuzmin2018, tau_sga
from wildtype.sources.yeast.screens.sga_strains import HO
from wildtype.sources.yeast.screens.tau_sga import PUBLISHER, read

GENES = GeneIndex(
    ["YAL001C", "YAL002W", "YAL003W", "YAL005C", "YFL039C", HO],
    aliases={"YAL003W": ["DOUBLE"], "YAL005C": ["DOUBLE", "YAL999C"]},
)
RESCORED_HEADER = (
    "Query Strain ID\tArray Strain ID\tAdjusted genetic interaction score (epsilon or tau)\tP-value\t"
    "Double/triple mutant fitness\tDouble/triple mutant fitness standard deviation\n"
)
STRAINS_HEADER = "Strain\tOrf\tCommon\tAllele\n"
ASSIGNMENT_HEADER = "StrainID1\tORF1\tStrainID2\tORF2\tDMstrainID\tSM1strainID\tSM2strainID\tAnnotation\n"
SMALL = {
    tau_sga.RESCORED.name: RESCORED_HEADER
    + "YAL001C+YAL002W_tm1\tYAL003W_dma1\t-0.0300\t3.1e-01\t0.6900\t0.0240\n"
    + "YAL001C+YDL227C_tm2\tYFL039C_tsa7\t0.0200\t0.0\t0.5200\t0.0300\n"
    + "YAL001C+YAL002W_tm1\tYAL999C_dma5\t0.1000\t0.5\t0.9000\t0.0100\n"
    + "YAL001C+YAL002W_tm1\tYAL002W_dma9\t0.1000\t0.5\t0.9000\t0.0100\n"
    + "YAL001C+YAL002W_tm1\tYBR999C_dma9\t0.1000\t0.5\t0.9000\t0.0100\n",
    tau_sga.SCORED.name: (
        "YAL001C+YAL002W_tm1\tYAL003W_dma1\t-15.1\t12.0\t3.1e-1\t0.800000\tNaN\t0.9\t0.01\t0.72\t0.69\t0.024\n"
        "YAL001C+YDL227C_tm2\tYFL039C_tsa7\t10.0\t12.0\t0.0\tNaN\tNaN\t0.5\t0.02\t0.5\t0.52\t0.03\n"
        "YAL001C+YDL227C_tm2\tYAL005C_dma5\t10.0\t12.0\t0.1\tNaN\tNaN\t0.8\t0.02\t0.8\t0.75\t0.04\n"
    ),
    tau_sga.SINGLES_26.name: (
        "YAL002W_sn1\t1.0\t0.01\nYAL002W_sn1\t1.0\t0.01\nYFL039C_tsa7\t0.5\t0.02\nYFL039C_tsa7\t0.6\t0.03\n"
        "YAL003W_sn4\tNaN\tNaN\nundefined_tsq1471\t0.9\t0.1\nDOUBLE_sn1\t0.9\t0.1\nYAL005C_S3\t0.7\t0.1\n"
    ),
    tau_sga.SINGLES_30.name: "YAL002W_sn1\t1.0\t0.01\nYFL039C_damp9\t0.4\t0.02\n",
    tau_sga.MINI_ARRAY.name: (
        "YAL003W_dma1\t0.9\t0.01\nYAL001C_tm2\t0.85\tNaN\nYAL001C+YAL002W_tm1\t0.8\tNaN\n"
    ),
    tau_sga.QUERY_STANDARD.name: (
        "URA3control+YDL227C_y13096\tNaN\tNaN\nYAL001C+YDL227C_tm2\t0.9\t0.9\nYAL001C+YAL002W_tm1\t0.75\t0.04\n"
        "YAL003W+YFL039C_tm9\t0.6\t0.6\nYAL002W+YAL005C_y14387\tNaN\tNaN\n"
    ),
    tau_sga.STRAINS.name: STRAINS_HEADER
    + "YAL001C_tsq5\tYAL001C\tTFC3\ttfc3-g349e\nYAL002W_dma6\tYAL002W\tVPS8\tvps8\n"
    + "YAL003W_dma1\tYAL003W\tEFB1\tefb1\nYFL039C_tsa7\tYFL039C\tACT1\tact1-101\n"
    + "YAL005C_S3\tYAL005C\tSSA1\tssa1-supp2\nYFL039C_damp9\tYFL039C\tACT1\tact1_damp\n",
    kuzmin2018.ASSIGNMENT.name: ASSIGNMENT_HEADER + "tsq5\tYAL001C\tdma6\tYAL002W\ttm1\ttm2\ttm3\tTspace\n",
}
USES = ("epsilon", "trigenic epsilon", "fitness of crosses")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in SMALL.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def load(folder: Path, genes: GeneIndex = GENES) -> tuple[Measurements, dict[tuple[str, str], ReadReport]]:
    readings: list[ReadReport] = []
    measured = read(folder, genes, collect=readings.append)
    for reading in readings:
        assert reading.rows == reading.kept + sum(reading.dropped.values())
    tables = {tau_sga.STRAINS.find(folder).name, kuzmin2018.ASSIGNMENT.find(folder).name}  # type: ignore[union-attr]
    assert sum(reading.kept for reading in readings if reading.file not in tables) == len(measured)
    return measured, {(reading.file, reading.use): reading for reading in readings}


def records(measured: Measurements, phenotype: str) -> list[Measurement]:
    return [record for record in measured.records() if record.phenotype.name == phenotype]


def spelled(record: Measurement) -> list[tuple[str, str, str]]:
    return [(p.gene, p.kind.name, p.allele) for p in record.genotype.perturbations]


QUERY = [("YAL001C", "TEMPERATURE_SENSITIVE", "tfc3-g349e"), ("YAL002W", "DELETION", "")]


def test_the_score_of_triple_mutants_is_raw(folder: Path) -> None:
    measured, readings = load(folder)
    first, renamed = records(measured, "trigenic epsilon")
    assert (first.value, first.p) == (-0.03, 0.31)
    assert spelled(first) == [*QUERY, ("YAL003W", "DELETION", "")]
    assert spelled(renamed)[-1][0] == "YAL005C"
    assert not any("tau" in phenotype.name for phenotype in measured.phenotypes)
    reading = readings[tau_sga.RESCORED.name, "trigenic epsilon"]
    assert reading.dropped == {"unknown gene": 1, "query and array of one gene": 1}
    assert reading.renamed == 1


def test_control_queries_give_epsilon(folder: Path) -> None:
    measured, readings = load(folder)
    listed, only_scored = records(measured, "epsilon")
    assert spelled(listed) == [
        QUERY[0],
        (HO, "DELETION", ""),
        ("YFL039C", "TEMPERATURE_SENSITIVE", "act1-101"),
    ]
    assert (listed.value, listed.p, listed.replicate) == (0.02, 0.0, "query YAL001C+YDL227C_tm2")
    assert (listed.sd, only_scored.sd) == (0.03, 0.04)
    assert only_scored.value == pytest.approx(0.75 - 0.8)  # observed minus expected fitness
    again = {"the same cross as in the other file": 1}
    assert [readings[tau_sga.SCORED.name, use].dropped for use in USES[:2]] == [again, again]
    crosses = [r for r in records(measured, "fitness") if r.replicate.startswith("query")]
    assert [(r.value, r.sd) for r in crosses] == [(0.69, 0.024), (0.52, 0.03), (0.9, 0.01), (0.75, 0.04)]


def test_standards_give_every_number_of_a_strain_once(folder: Path) -> None:
    measured, readings = load(folder)
    reading = readings[tau_sga.SINGLES_26.name, "fitness of strains of one ORF"]
    reasons = ("unknown gene", "ambiguous gene name", "no fitness given", "the number of another row again")
    assert reading.dropped == dict.fromkeys(reasons, 1)
    at_26 = [r for r in records(measured, "fitness") if str(r.environment) == "not stated, 26 °C"]
    assert sorted((r.replicate, r.value) for r in at_26) == [
        ("strain YAL002W_sn1", 1.0),
        ("strain YAL005C_S3", 0.7),
        ("strain YFL039C_tsa7", 0.5),
        ("strain YFL039C_tsa7", 0.6),
    ]
    suppressed = next(r for r in at_26 if r.replicate.endswith("S3"))
    assert spelled(suppressed) == [("YAL005C", "DELETION", ""), ("YAL005C", "SUPPRESSOR", "ssa1-supp2")]
    (damp,) = (r for r in records(measured, "fitness") if r.replicate == "strain YFL039C_damp9")
    assert spelled(damp) == [("YFL039C", "REDUCED_EXPRESSION", "act1_damp")]
    assert damp.environment.temperature == 30
    # The 12-column output repeats the standards; only what they lack is new.
    assert readings[tau_sga.SCORED.name, "fitness of query strains"].kept == 0
    assert readings[tau_sga.SCORED.name, "fitness of array strains"].kept == 2


def test_a_fitness_repeated_as_its_deviation_is_none_for_controls(folder: Path) -> None:
    measured, readings = load(folder)
    found = {r.replicate: (r.value, r.sd) for r in records(measured, "fitness")}
    assert found["strain YAL001C+YDL227C_tm2"][0] == 0.9
    assert math.isnan(found["strain YAL001C+YDL227C_tm2"][1])
    assert found["strain YAL003W+YFL039C_tm9"] == (0.6, 0.6)  # a double mutant: taken at its word
    reading = readings[tau_sga.QUERY_STANDARD.name, "fitness of strains of two ORFs"]
    assert reading.dropped == {"unknown gene": 1, "no fitness given": 1}


def test_alleles_of_queries_come_from_their_source_strains(folder: Path) -> None:
    measured, _ = load(folder)
    found = {r.replicate: spelled(r) for r in records(measured, "fitness")}
    assert found["strain YAL001C_tm2"] == [QUERY[0]]  # by the assignment
    assert found["strain YAL001C+YAL002W_tm1"] == QUERY
    assert found["strain YAL003W+YFL039C_tm9"] == [  # not assigned: by what strains there are of the gene
        ("YAL003W", "DELETION", ""),
        ("YFL039C", "TEMPERATURE_SENSITIVE", ""),
    ]


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        (tau_sga.RESCORED, "YAL003W_dma1", "YAL003W", "line 2: received 'YAL003W', expected a strain"),
        (tau_sga.RESCORED, "YAL003W_dma1", "YAL003W+YAL002W_tm4", "line 2: .* expected an array strain"),
        (tau_sga.RESCORED, "YAL001C+YDL227C_tm2", "YAL001C_tm2", "line 3: .* expected a query strain"),
        (tau_sga.RESCORED, "3.1e-01", "3.1", "line 2: received '3.1', expected a p-value"),
        (tau_sga.RESCORED, "0.0240", "-0.0240", "line 2: .* expected a standard deviation"),
        (tau_sga.RESCORED, "Adjusted genetic", "Genetic", "line 1: received the header"),
        (tau_sga.SCORED, "\t-15.1", "", "line 1: received 11 fields, expected 12"),
        (tau_sga.SCORED, "0.024", "-1", "line 1: received '-1', expected a standard deviation"),
        (tau_sga.SINGLES_26, "0.7\t", "x\t", "line 8: received 'x', expected a number"),
        (tau_sga.SINGLES_26, "YAL005C_S3", "YAL005C_Q3", "line 8: received 'YAL005C_Q3', expected a strain"),
        (tau_sga.QUERY_STANDARD, "0.04", "-0.04", "line 3: .* expected a standard deviation"),
        (
            tau_sga.STRAINS,
            "YAL002W_dma6\tYAL002W",
            "YAL002W_dma6\tYAL003W",
            "line 3: .* expected a strain of",
        ),
        (kuzmin2018.ASSIGNMENT, "SM1strainID", "SM", "line 1: received the header"),
    ],
)
def test_damage_names_the_line(folder: Path, file, old: str, new: str, message: str) -> None:
    text = SMALL[file.name]
    assert old in text
    (folder / file.name).write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(SourceError, match=message):
        read(folder, GENES)


@pytest.mark.parametrize("name", SMALL)
def test_a_missing_or_truncated_file_is_named(folder: Path, name: str) -> None:
    path = folder / name
    whole = gzip.compress(path.read_bytes(), mtime=0)
    path.unlink()
    with pytest.raises(SourceError, match=f"{name} is not in .*: fetch it from https://raw.githubuser"):
        read(folder, GENES)
    path.write_bytes(whole[:-9])
    with pytest.raises(SourceError, match=f"{name} is cut short"):
        read(folder, GENES)


@given(
    st.sampled_from(list(SMALL)),
    st.integers(0, 8),
    st.integers(0, 12),
    st.sampled_from(["", "NaN", "1e308", "-1", "x_tm1", "YAL001C_sn1", HO, "a+b_tm1", '"', "\t", " ", "\0"]),
)
@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_mutated_file_is_read_or_refused(folder: Path, name: str, line: int, cell: int, new: str) -> None:
    rows = [row.split("\t") for row in SMALL[name].splitlines()]
    row = rows[line % len(rows)]
    row[cell % len(row)] = new
    (folder / name).write_text("\n".join("\t".join(cells) for cells in rows) + "\n", encoding="utf-8")
    refusal = name
    try:
        load(folder)
    except SourceError as error:
        refusal = str(error)
    finally:
        (folder / name).write_text(SMALL[name], encoding="utf-8")
    assert name in refusal


def test_the_order_of_rows_changes_nothing(folder: Path) -> None:
    expected = Counter(repr(record) for record in load(folder)[0].records())
    for file in (tau_sga.SCORED, tau_sga.SINGLES_26, tau_sga.QUERY_STANDARD):
        lines = SMALL[file.name].splitlines()[::-1]
        (folder / file.name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert Counter(repr(record) for record in load(folder)[0].records()) == expected


def test_addresses_are_pinned() -> None:
    assert all(url.startswith("https://") for file in PUBLISHER.files for url in file.urls)
    assert any("raw trigenic epsilon" in note for note in PUBLISHER.notes)


@pytest.mark.slow
@pytest.mark.real
def test_real_files(mirror: Path, real_genes: GeneIndex) -> None:
    measured, readings = load(mirror, real_genes)
    counts = {use: readings["kuzmin_tausga_rescored_trigenic.tsv.gz", use] for use in USES}
    assert [(r.rows, r.kept) for r in counts.values()] == [(2976, 2976), (1789, 1789), (4765, 4765)]
    one, two = "fitness of strains of one ORF", "fitness of strains of two ORFs"
    assert {key: (r.rows, r.kept) for key, r in readings.items() if key[1] in (one, two)} == {
        ("sga_smf_t26_150803.tsv.gz", one): (14167, 12307),
        ("sga_smf_t30_150803.tsv.gz", one): (13557, 11870),
        ("sga_smf_dmquery_miniarray_180208.tsv.gz", one): (1783, 1717),
        ("sga_smf_dmquery_miniarray_180208.tsv.gz", two): (275, 234),
        ("sga_double_mutant_query_fitness.tsv.gz", two): (1585, 1363),
    }
    assert not any("tau" in phenotype.name for phenotype in measured.phenotypes)
    names = np.array([p.name for p in measured.phenotypes])[measured.phenotype]
    assert Counter(names.tolist()) == {"fitness": 32290, "epsilon": 2976, "trigenic epsilon": 1789}
    assert (measured.kind == PerturbationKind.SUPPRESSOR).sum() == 347


@pytest.mark.real
def test_real_score_is_observed_minus_expected(mirror: Path) -> None:
    rescored = read_columns(
        tau_sga.RESCORED.require(mirror),
        types=(str, str, float, float, float, float),
        header=tuple(RESCORED_HEADER.strip().split("\t")),
    )
    scored = read_columns(tau_sga.SCORED.require(mirror), types=(str, str, *[float] * 10))
    row = {(scored.text(0)[i], scored.text(1)[i]): i for i in range(len(scored))}
    at = np.array([row[rescored.text(0)[i], rescored.text(1)[i]] for i in range(len(rescored))])
    epsilon = scored.numbers(10)[at] - scored.numbers(9)[at]
    assert np.abs(rescored.numbers(2) - epsilon).max() < 5.001e-5
    triple = np.array([HO not in name for name in rescored.text(0).names])[rescored.text(0).code]
    assert triple.sum() == 1789
    # One scale per query turns the score's standard deviation into that of the fitness: it is epsilon's, too.
    query, scale = scored.text(0).code, scored.numbers(11) / scored.numbers(3)
    for one in np.unique(query):
        assert np.ptp(scale[query == one]) < 2e-4 * scale[query == one].mean()
    assert np.abs(scored.numbers(10) - scored.numbers(9) - scored.numbers(2) * scale).max() < 5e-6
    # Control queries have no fitness, and the expected one is the array's.
    control = np.isnan(scored.numbers(5))
    assert control.sum() == 2976
    assert np.array_equal(scored.numbers(9)[control], scored.numbers(7)[control])
