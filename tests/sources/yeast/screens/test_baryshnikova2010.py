"""Fitness of single mutants of 2010: the workbook, and the text form of its deletions."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sources.spreadsheets import Cell, xls
from wildtype.datasets.measurements import Measurements
from wildtype.datasets.reading import ReadReport
from wildtype.errors import SourceError
from wildtype.organism import GeneIndex
from wildtype.sources.yeast.screens.baryshnikova2010 import COMPILED, PUBLISHER, SHEET, WORKBOOK, read

STRAINS: list[list[Cell]] = [  # strain, fitness, standard error; no header
    ["YAL002W", 0.7, 0.012],
    ["YAL043C-A", 1.02, 0.004],
    ["Q0045", 0.5, 0.02],
    ["YDL227C", 1.0, 0.001],
    ["YDL227C", 1.03, 0.002],
    ["YAL001C_damp", 0.95, 0.03],
    ["YAL001C_tsq508", 0.6, 0.05],
    ["YAL001C_tsq99", 0.4, None],
    ["yar044w", 1.01, 0.01],
    ["YIL171W_damp", 0.9, 0.01],
    ["DOUBLE", 0.9, 0.01],
    ["YFL039C_tsq1", None, None],
]
WITHDRAWN = [
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
    "YIL171W_damp",
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


def write_workbook(folder: Path, rows: Sequence[Sequence[Cell]] = STRAINS, sheet: str = SHEET) -> Path:
    path = folder / WORKBOOK.name
    path.write_bytes(xls({sheet: rows}))
    return path


def collected(folder: Path, genes: GeneIndex) -> tuple[Measurements, ReadReport]:
    readings: list[ReadReport] = []
    measurements = read(folder, genes, collect=readings.append)
    assert len(readings) == 1
    return measurements, readings[0]


def facts(measurements: Measurements) -> list[tuple[object, ...]]:
    return sorted(
        (
            record.replicate,
            record.value,
            -1.0 if np.isnan(record.se) else record.se,
            record.environment.temperature,
            *((p.gene, p.kind.name.lower(), p.allele) for p in record.genotype.perturbations),
        )
        for record in measurements.records()
    )


def test_the_workbook_in_the_published_layout(tmp_path: Path, screen_genes: GeneIndex) -> None:
    """The .xls file is written by hand, byte by byte, in the published layout; all numbers are invented."""
    write_workbook(tmp_path)
    measurements, reading = collected(tmp_path, screen_genes)
    assert facts(measurements) == [
        ("strain Q0045", 0.5, 0.02, 30, ("Q0045", "deletion", "")),
        ("strain YAL001C_damp", 0.95, 0.03, 30, ("YAL001C", "reduced_expression", "damp")),
        ("strain YAL001C_tsq508", 0.6, 0.05, 26, ("YAL001C", "temperature_sensitive", "tsq508")),
        ("strain YAL001C_tsq99", 0.4, -1.0, 26, ("YAL001C", "temperature_sensitive", "tsq99")),
        ("strain YAL002W", 0.7, 0.012, 30, ("YAL002W", "deletion", "")),
        ("strain YAL043C-A", 1.02, 0.004, 30, ("YAL043C-A", "deletion", "")),
        ("strain YDL227C", 1.0, 0.001, 30, ("YDL227C", "deletion", "")),  # HO is listed twice
        ("strain YDL227C", 1.03, 0.002, 30, ("YDL227C", "deletion", "")),
        ("strain yar044w", 1.01, 0.01, 30, ("YAR042W", "deletion", "")),
    ]
    assert np.isnan(measurements.sd).all()  # what is published is no standard deviation
    assert (reading.rows, reading.kept, reading.renamed) == (12, 9, 1)
    assert reading.dropped == {"unknown gene": 1, "ambiguous gene name": 1, "no fitness given": 1}


@given(order=st.permutations(STRAINS))
@settings(max_examples=15)
def test_the_order_of_rows_does_not_matter(
    order: list[list[Cell]], screen_genes: GeneIndex, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.getbasetemp() / "order_baryshnikova"
    folder.mkdir(exist_ok=True)
    write_workbook(folder)
    expected = facts(read(folder, screen_genes))
    write_workbook(folder, order)
    assert facts(read(folder, screen_genes)) == expected


def test_the_text_form_has_no_errors_and_yields_to_the_workbook(
    tmp_path: Path, screen_genes: GeneIndex
) -> None:
    heading = "hap a/hap alpha | growth (colony size) | standard [standard] | Baryshnikova A~Myers CL, 2010"
    path = tmp_path / f"{COMPILED.name}.gz"
    path.write_bytes(gzip.compress(f"orf\t{heading}\nYAL002W\t0.7\nYCL074W\t1\nYAL043C-A\t\n".encode()))
    measurements, reading = collected(tmp_path, screen_genes)
    assert facts(measurements) == [("strain YAL002W", 0.7, -1.0, 30, ("YAL002W", "deletion", ""))]
    assert (reading.rows, reading.dropped) == (3, {"unknown gene": 1, "no fitness given": 1})
    write_workbook(tmp_path)
    assert collected(tmp_path, screen_genes)[1].file == WORKBOOK.name


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            ["YAL002W_sn1", 0.5, 0.1],
            "row 2: received 'YAL002W_sn1', expected an ORF name, alone or followed by",
        ),
        (["YAL002W", "sick", 0.1], "row 2: received 'sick', expected a number in 'field 2'"),
        (["YAL002W", 0.5, -0.1], "row 2: received '-0.1', expected a standard error of at least 0"),
        (["YAL002W", 0.5, 0.1, 7.0], "row 2: received 4 fields, expected at most 3"),
        ([None, None, None], "row 2: received a blank row"),
    ],
)
def test_damage_names_sheet_and_row(
    tmp_path: Path, screen_genes: GeneIndex, row: list[Cell], message: str
) -> None:
    write_workbook(tmp_path, [STRAINS[0], row, STRAINS[1]])
    with pytest.raises(SourceError, match=rf"{WORKBOOK.name}, sheet '{SHEET}', {message}"):
        read(tmp_path, screen_genes)


def test_missing_damaged_and_foreign_workbooks_are_refused(tmp_path: Path, screen_genes: GeneIndex) -> None:
    with pytest.raises(SourceError, match=rf"{WORKBOOK.name} is not in .*https://static-content"):
        read(tmp_path, screen_genes)
    path = write_workbook(tmp_path, sheet="Sheet1")
    with pytest.raises(SourceError, match=f"has no sheet '{SHEET}'; it has 'Sheet1'"):
        read(tmp_path, screen_genes)
    path.write_bytes(write_workbook(tmp_path).read_bytes()[:1000])
    with pytest.raises(SourceError, match="is not a whole workbook"):
        read(tmp_path, screen_genes)
    write_workbook(tmp_path, [["b0001", 1.0, 0.1]])
    with pytest.raises(SourceError, match="no row is of genes of 'yeast', expected most"):
        read(tmp_path, screen_genes)


@pytest.mark.real
def test_strains_of_withdrawn_orfs_are_dropped_and_counted(tmp_path: Path, real_genes: GeneIndex) -> None:
    """The published identifiers of ORFs that SGD has withdrawn, with invented numbers."""
    rows: list[list[Cell]] = [[strain, 1.0, 0.1] for strain in (*WITHDRAWN, "YAL002W")]
    write_workbook(tmp_path, rows)
    measurements, reading = collected(tmp_path, real_genes)
    assert len(measurements) == 1
    assert reading.dropped == {"unknown gene": 30}
    assert PUBLISHER.published["strains of ORFs that SGD has withdrawn"] == 30


@pytest.mark.real
def test_the_real_text_form(mirror: Path, real_genes: GeneIndex) -> None:
    measurements, reading = collected(mirror, real_genes)
    assert (reading.rows, reading.kept, reading.dropped) == (4573, 4573, {})
    assert len(set(measurements.gene.tolist())) == 4573
    assert measurements.value.min() > 0.06
    assert measurements.value.max() < 1.17
