"""Fitness of single mutants."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.sources.spreadsheets import xlsx
from wildtype.datasets.reading import ReadReport
from wildtype.datasets.records import Publication, Study
from wildtype.errors import SourceError
from wildtype.mutants import Kind
from wildtype.organism import GeneIndex
from wildtype.sources.yeast.screens.parts import Screen
from wildtype.sources.yeast.screens.single_fitness import (
    FITNESS,
    FITNESS_SOURCE,
    STRAIN_TABLE,
    by_gene,
    deleted_genes,
    expression_only,
    fitness_block,
    measure_strains,
    read_strains,
)

STUDY = Study(name="costanzo2016", publication=Publication(citation="Costanzo et al. 2016"), organism="yeast")


def test_strain_suffix_and_allele_name_say_what_was_done(small, genes: GeneIndex) -> None:
    strains = read_strains(small.path, genes)
    kinds = [Kind(k).name for k in strains.kind[:6]]
    assert kinds == ["ABSENT", "ABSENT", "REDUCED", "REDUCED", "REDUCED", "REDUCED"]
    assert np.flatnonzero(strains.suppressor).tolist() == [7, 8]
    deleted = [genes.names[i] for i in np.flatnonzero(deleted_genes(strains, len(genes)))]
    assert deleted == ["YAL002W", "YAR042W", "YDL227C"]  # the suppressor strain of YAL005C does not count


def test_deletions_go_before_alleles_and_an_allele_counts_once(small, genes: GeneIndex) -> None:
    value, sd = by_gene(read_strains(small.path, genes), len(genes))
    assert value[genes.find("VPS8")] == pytest.approx([0.9, 0.9])  # not the DAmP allele's 0.5
    assert sd[genes.find("VPS8"), 0] == pytest.approx(0.05)
    assert value[genes.find("TFC3"), 0] == pytest.approx(
        (0.8285 + 0.9395) / 2
    )  # tsa508 and tsq508 are one allele
    assert value[genes.find("ACT1")] == pytest.approx([0.6, np.nan], nan_ok=True)
    assert np.isnan(value[genes.find("SSA1")]).all()
    assert value[genes.find("YAR042W"), 0] == pytest.approx(1.01)  # listed as YAR044W


def test_the_block_is_marked_as_measured(small, genes: GeneIndex) -> None:
    block, reading = fitness_block(read_strains(small.path, genes), len(genes))
    assert block.measured == (FITNESS_SOURCE,)
    assert reading.rows == 12 == reading.kept + sum(reading.dropped.values())


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("YAL002W_sn1\t", "YAL002W_xx1\t", "line 2: received 'YAL002W_xx1', expected a strain of 'YAL002W'"),
        ("YAL002W_sn1\tYAL002W", "YAL002W_sn1\tYAL003W", "line 2: .*expected a strain of 'YAL003W'"),
        ("act1-101\tNaN\tNaN\t0.6", "act1-101\tNaN\tNaN\tsick", "line 8: received 'sick', expected a number"),
        (
            "act1-101\tNaN\tNaN\t0.6\tNaN",
            "act1-101\tNaN\tNaN\t0.6\t-1",
            "line 8: .*standard deviation of at least 0",
        ),
        ("act1-101\t", "act1\x14101\t", "line 8: received .*expected a name without hidden"),
        ("(26°)\t", "(26)\t", "line 1: received the header"),
    ],
)
def test_damage_names_the_line(small, genes: GeneIndex, old: str, new: str, message: str) -> None:
    small.replace(FITNESS, old, new)
    with pytest.raises(SourceError, match=message):
        read_strains(small.path, genes)


def as_workbook(text: str) -> bytes:
    """The hand-written table as the publisher's workbook has it: numbers as numbers, NaN as text."""

    def cell(value: str) -> str | float | None:
        try:
            return None if value == "" else value if value == "NaN" else float(value)
        except ValueError:
            return value

    rows = [[cell(value) for value in line.split("\t")] for line in text.rstrip("\n").split("\n")]
    return xlsx({"Sheet1": rows})


def test_the_workbook_and_its_text_form_say_the_same(small, genes: GeneIndex) -> None:
    """Both are written by hand in the publisher's layout; the numbers are invented."""
    text = read_strains(small.path, genes)
    (small.path / STRAIN_TABLE.name).write_bytes(as_workbook(small.text(FITNESS)))
    small.remove(FITNESS)
    workbook = read_strains(small.path, genes)
    assert workbook.allele == text.allele
    np.testing.assert_array_equal(workbook.value, text.value)
    np.testing.assert_array_equal(workbook.sd, text.sd)
    np.testing.assert_array_equal(workbook.gene.position, text.gene.position)


def test_damage_of_the_workbook_names_sheet_and_row(small, genes: GeneIndex) -> None:
    small.replace(FITNESS, "act1-101\tNaN\tNaN\t0.6", "act1-101\tNaN\tNaN\tsick")
    (small.path / STRAIN_TABLE.name).write_bytes(as_workbook(small.text(FITNESS)))
    with pytest.raises(SourceError, match="sheet 'Sheet1', row 8: received 'sick', expected a number"):
        read_strains(small.path, genes)


def test_measurements_keep_every_strain_and_temperature(small, genes: GeneIndex) -> None:
    readings: list[ReadReport] = []
    screen = Screen(STUDY, genes, readings.append)
    measure_strains(screen, STRAIN_TABLE.require(small.path))
    records = [record for part in screen.parts for record in part.records()]
    assert [(r.use, r.rows, r.kept, r.dropped) for r in readings] == [
        ("fitness at 30 °C", 12, 9, {"unknown gene": 1, "no fitness given": 2}),
        ("fitness at 26 °C", 12, 8, {"unknown gene": 1, "no fitness given": 3}),
    ]
    assert len(records) == 17
    found = {
        (record.replicate, record.environment.temperature): (
            record.value,
            record.sd,
            [(p.kind.name.lower(), p.allele) for p in record.genotype.perturbations],
        )
        for record in records
    }
    # Query and array strain, and both temperatures, repeat one number: nothing is merged here.
    for strain in ("YAL002W_sn1", "YAL002W_dma1"):
        for degrees in (26, 30):
            assert found[f"strain {strain}", degrees] == (0.9, 0.05, [("deletion", "")])
    assert found["strain YAL002W_damp9", 26] == (0.5, 0.1, [("reduced_expression", "vps8_damp")])
    sensitive = [("temperature_sensitive", "tfc3-g349e")]
    assert found["strain YAL001C_tsa508", 26] == (0.8658, 0.1789, sensitive)
    assert found["strain YAL001C_tsa508", 30] == (0.8285, 0.1964, sensitive)
    assert found["strain YAL005C_dma30", 30] == (0.7, 0.1, [("deletion", ""), ("suppressor", "ssa1-supp1")])
    assert found["strain YFL039C_tsq1", 30][:1] == (0.6,)
    assert np.isnan(found["strain YFL039C_tsq1", 30][1])
    assert ("strain YFL039C_tsq1", 26) not in found
    assert ("strain YAL003W_S26", 30) not in found


def test_genes_without_any_deletion_or_other_allele(small, genes: GeneIndex) -> None:
    strains = read_strains(small.path, genes)
    assert not expression_only(strains, len(genes)).any()  # TFC3 has temperature-sensitive strains besides
    for suffix in ("tsa508", "tsq508"):
        small.replace(FITNESS, f"YAL001C_{suffix}\tYAL001C\ttfc3-g349e", f"YAL002W_{suffix}\tYAL002W\tvps8-1")
    strains = read_strains(small.path, genes)
    only = [genes.names[i] for i in np.flatnonzero(expression_only(strains, len(genes)))]
    assert only == ["YAL001C"]


@pytest.mark.real
def test_real_strains(mirror: Path, real_genes: GeneIndex) -> None:
    strains = read_strains(mirror, real_genes)
    assert len(strains) == 10859
    assert int(np.isfinite(strains.value[:, 0]).sum()) == 10224
    value, _ = by_gene(strains, len(real_genes))
    assert np.nanmean(value[:, 0]) == pytest.approx(0.91, abs=0.02)
    alleles = [0.5439, 0.9207, 0.6956, 0.7312, 0.8919, 0.8861, 0.8109]  # cdc24-11, -4, -5, -1, -2, -3, -h
    assert value[real_genes.find("CDC24"), 0] == pytest.approx(np.mean(alleles))
