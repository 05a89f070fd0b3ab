"""The bench of unseen foreign genes at toy size."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.foreign_gene import bench_foreign_gene, foreign_groups, without_genes
from wildtype.datasets import Dataset
from wildtype.sources.catalogue import load_organism
from wildtype.sources.insilico import build_dose_dataset

FEW = {"reduced": (0.2,), "overexpressed": (1.5,), "doubles": 900, "random_share": 0.0}


@pytest.fixture(scope="module")
def doses() -> Dataset:
    organism = load_organism("ecoli-core-foreign")
    found = build_dose_dataset("ecoli-core-doses", organism, progress=False, processes=1, **FEW)
    return found.select(["fitness"])


def test_every_foreign_gene_is_tested_once_and_in_no_training_row(doses: Dataset) -> None:
    groups = foreign_groups(doses, 3, seed=1)
    names = np.array(doses.organism.genes.names)
    assert doses.organism.foreign is not None
    assert sorted(gene for group in groups for gene in group) == sorted(names[doses.organism.foreign])
    for place, test in enumerate(groups):
        validation = groups[(place + 1) % 3]
        split = without_genes(doses, test, validation)
        split.check(doses)
        held = {doses.organism.genes.find(gene) for gene in (*test, *validation)}
        assert not held & set(doses.table.take(split.train).gene.tolist())
        carries = {doses.organism.genes.find(gene) for gene in test}
        rows = [set(genes) for genes in doses.table.take(split.test).sets()]
        assert rows
        assert all(row & carries for row in rows)


@pytest.mark.slow
def test_report(doses: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.foreign_gene.load_dataset", lambda name: replace(doses, name=name))
    report = bench_foreign_gene(groups=2, seeds=1, epochs=1, rows=100, replicates=20)
    assert json.loads(json.dumps(report)) == report
    assert set(report["models"]) > {"cell_transformer", "mean", "boosting"}
    foreign = np.bincount(doses.table.row, doses.organism.foreign[doses.table.gene])
    # A pair of two foreign genes is dropped where one of them validates.
    assert (foreign == 1).sum() <= report["rows"] <= (foreign >= 1).sum()
    assert report["other_rows"] == 100
