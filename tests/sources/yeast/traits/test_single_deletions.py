"""Phenotypes of single deletions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from wildtype.errors import SourceError
from wildtype.organism import GeneIndex
from wildtype.sources.yeast.traits.single_deletions import STUDIES, phenotype_block, read_study, standardise

BY_SOURCE = {study.source: study for study in STUDIES}


def test_missing_values_stay_missing_and_quoted_names_are_read(small, genes: GeneIndex) -> None:
    table = read_study(small.path, BY_SOURCE["deutschbauer2005:growth"], genes)
    assert table.values.shape == (12, 4)
    assert np.isnan(table.values[genes.find("GCN4")]).all()
    assert np.isnan(table.values[1, 3])  # an empty cell
    table = read_study(small.path, BY_SOURCE["mulleder2016:amino_acids"], genes)
    assert table.values[genes.find("VPS8")].tolist() == [3.4, 2.4]
    assert table.report.dropped == {"unknown gene": 1}


def test_a_cell_that_is_no_number_names_line_and_column(small, genes: GeneIndex) -> None:
    study = BY_SOURCE["breslow2008:growth"]
    small.replace(study.file, "YAL003W\t", "YAL003W\tslow")
    with pytest.raises(SourceError, match="line 4: received 'slow.*expected a number in 'hap a"):
        read_study(small.path, study, genes)


def test_standardising_clips_outliers_and_drops_columns_that_say_nothing() -> None:
    values = np.full((300, 4), np.nan)
    values[:250, 0] = np.arange(250)
    values[0, 0] = 1e9  # an outlier
    values[:250, 1] = 3.0  # no variation
    values[:20, 2] = np.arange(20)  # too few strains
    values[50:250, 3] = np.arange(200)
    out = standardise(values)
    assert out.shape == (300, 2)
    assert np.abs(out).max() < 3
    measured = np.isfinite(values[:, 0])
    assert out[measured, 0].mean() == pytest.approx(0, abs=1e-9)
    assert out[measured, 0].std() == pytest.approx(1)
    assert (out[~measured, 0] == 0).all()


def test_the_block_names_every_source_and_leaves_unmeasured_genes_missing(small, genes: GeneIndex) -> None:
    tables = [read_study(small.path, study, genes) for study in STUDIES]
    block = phenotype_block(tables)
    assert {study.source for study in STUDIES} <= set(block.measured)
    assert "costanzo2021:growth" in block.measured
    assert "costanzo2016:fitness" not in block.measured
    missing = [genes.names[i] for i in np.flatnonzero(np.isnan(block.values).all(1))]
    assert missing == ["YAL004W", "YAR042W", "YGL045W", "YBL093C", "Q0045"]


def test_the_unit_of_a_study_does_not_matter(small, genes: GeneIndex) -> None:
    tables = [read_study(small.path, study, genes) for study in STUDIES]
    before = phenotype_block(tables).values
    tables[5].values[:] *= 1000
    np.testing.assert_allclose(phenotype_block(tables).values, before, atol=1e-5)


@pytest.mark.real
def test_real_phenotypes(mirror: Path, real_genes: GeneIndex) -> None:
    rows = {"vizeacoumar2010:morphology": (3796, 90), "mattiazzi2020:morphology": (4580, 17),
            "costanzo2021:growth": (3222, 14), "mulleder2016:amino_acids": (4173, 19)}  # fmt: skip
    for source, (strains, columns) in rows.items():
        table = read_study(mirror, BY_SOURCE[source], real_genes)
        assert (table.report.rows, table.report.kept) == (strains, strains)  # all row names are current ORFs
        assert table.values.shape == (6604, columns)
    assert table.values[real_genes.find("GDH1"), 2] == pytest.approx(4.7, abs=0.1)  # glutamate
