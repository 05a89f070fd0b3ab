"""The three datasets: what a row is, and that every row of the source is accounted for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from wildtype.errors import ConfigError, DatasetError, SourceError
from wildtype.mutants import Kind
from wildtype.organism import Organism
from wildtype.phenotypes import Dataset
from wildtype.phenotypes.reading import Reading
from wildtype.sources.yeast import DATASETS, build_dataset
from wildtype.sources.yeast.datasets import DIGENIC_2010, DIGENIC_2016, FITNESS_2016
from wildtype.sources.yeast.screens.costanzo2010 import STRINGENT
from wildtype.sources.yeast.screens.costanzo2016 import FILES
from wildtype.sources.yeast.screens.single_fitness import FITNESS


def rows(dataset: Dataset) -> dict[tuple[str, str, str], float]:
    frame = dataset.to_pandas()
    return {(r.genes, r.kinds, r.condition): r.value for r in frame.itertuples()}


@pytest.mark.parametrize("alleles", ["averaged", "apart"])
@pytest.mark.parametrize("name", DATASETS)
def test_every_row_of_the_source_is_kept_or_counted(
    small, organism: Organism, name: str, alleles: str
) -> None:
    readings: list[Reading] = []
    dataset = build_dataset(name, small.path, organism, alleles=alleles, collect=readings.append)
    assert dataset.name == name
    assert len(readings) == 1
    assert readings[0].kept == len(dataset)
    assert readings[0].rows == len(dataset) + sum(dataset.excluded.values())
    assert f"{readings[0].rows:,} rows read" in " ".join(dataset.notes)


def test_digenic_2010_merges_orientations_and_alleles_and_keeps_kinds(small, organism: Organism) -> None:
    dataset = build_dataset(DIGENIC_2010, small.path, organism)
    assert rows(dataset) == pytest.approx(
        {
            ("YAL001C,YAL002W", "reduced,absent", "reference"): -0.3,
            ("YAL001C,YDL227C", "reduced,absent", "reference"): 0.25,
            ("YAL002W,YAL003W", "absent,absent", "reference"): -0.3,
            ("YAL002W,YAR042W", "absent,absent", "reference"): -0.3,
            ("YAL002W,YDL227C", "absent,absent", "reference"): -0.2,
        }
    )
    assert dataset.phenotypes[0].source == "costanzo2010:epsilon"
    assert dataset.phenotypes[0].min_order == 2
    assert dataset.single_fitness is not None
    assert dataset.single_fitness[organism.genes.find("VPS8")] == pytest.approx(0.9)
    assert dataset.single_fitness_source == "costanzo2016:fitness"
    apart = build_dataset(DIGENIC_2010, small.path, organism, alleles="apart")
    assert len(apart) == len(dataset) + 1
    assert dataset.policies["alleles"].startswith("averaged: ")
    assert apart.policies["alleles"].startswith("apart: ")


def test_digenic_2016_reduces_essential_genes_without_a_deletion_strain(small, organism: Organism) -> None:
    dataset = build_dataset(DIGENIC_2016, small.path, organism)
    assert rows(dataset)["YAL001C,YDL227C", "reduced,absent", "reference"] == pytest.approx(0.01)
    small.replace(FITNESS, "YAL001C_damp174\tYAL001C\ttfc3_damp", "YAL001C_sn174\tYAL001C\ttfc3")
    dataset = build_dataset(DIGENIC_2016, small.path, organism)
    assert rows(dataset)["YAL001C,YDL227C", "absent,absent", "reference"] == pytest.approx(0.01)
    assert any("reduced if it is essential" in note for note in dataset.notes)
    assert dataset.excluded["merged: reciprocal orientation"] == 1


def test_fitness_keeps_no_measurement_twice(small, organism: Organism) -> None:
    dataset = build_dataset(FITNESS_2016, small.path, organism)
    assert rows(dataset) == pytest.approx(
        {
            ("YAL001C", "reduced", "30C"): 0.884,
            ("YAL001C", "reduced", "26C"): 0.8658,
            ("YAL002W", "absent", "30C"): 0.9,
            ("YAL002W", "reduced", "30C"): 0.5,
            ("YAR042W", "absent", "30C"): 1.01,
            ("YFL039C", "reduced", "30C"): 0.6,
        },
        abs=1e-6,
    )
    assert dataset.conditions == ("30C", "26C")
    assert dataset.excluded["strain with a suppressor mutation"] == 2


def test_other_studies_are_optional_for_the_noise_guide(small, organism: Organism) -> None:
    small.remove(FILES[0])
    assert "2016 release" not in build_dataset(DIGENIC_2010, small.path, organism).noise
    with pytest.raises(SourceError, match=FILES[0]):
        build_dataset(DIGENIC_2016, small.path, organism)


@pytest.mark.parametrize(
    ("name", "file"), [(DIGENIC_2010, STRINGENT), (DIGENIC_2010, FITNESS), (FITNESS_2016, FITNESS)]
)
def test_a_missing_file_is_named(small, organism: Organism, name: str, file: str) -> None:
    small.remove(file)
    with pytest.raises(SourceError, match=file):
        build_dataset(name, small.path, organism)


def test_unknown_names_and_policies_are_refused(small, organism: Organism) -> None:
    with pytest.raises(DatasetError, match="no yeast dataset 'yeast-x'; known datasets: yeast-digenic"):
        build_dataset("yeast-x", small.path, organism)
    with pytest.raises(ConfigError, match="allele policy 'best' is not known"):
        build_dataset(FITNESS_2016, small.path, organism, alleles="best")


@pytest.mark.real
def test_real_digenic_2010(mirror: Path, real_organism: Organism) -> None:
    dataset = build_dataset(DIGENIC_2010, mirror, real_organism)
    assert len(dataset) + sum(dataset.excluded.values()) == 60608
    assert len(dataset) == 51590
    pairs = dataset.table.gene.reshape(-1, 2)
    assert (pairs[:, 0] < pairs[:, 1]).all()
    keys = np.column_stack([pairs, dataset.table.kind.reshape(-1, 2)])
    assert len(np.unique(keys, axis=0)) == len(dataset)
    value = dataset.table.value
    assert (value > 0).mean() == pytest.approx(0.095, abs=0.002)
    find = real_organism.genes.find
    at = (pairs == sorted((find("ARP1"), find("BIM1")))).all(1)
    assert value[at] == pytest.approx(-0.60, abs=0.01)
    assert "r = 0.67 (793 comparisons" in dataset.noise
    assert "r = 0.86 on 453 shared pairs" in dataset.noise


@pytest.mark.real
def test_real_digenic_2016(mirror: Path, real_organism: Organism) -> None:
    dataset = build_dataset(DIGENIC_2016, mirror, real_organism)
    assert len(dataset) + sum(dataset.excluded.values()) == 10698
    assert dataset.table.value.mean() == pytest.approx(-0.016, abs=0.005)
    assert (
        dataset.table.kind == Kind.ABSENT
    ).all()  # the two genes listed as essential have deletion strains


@pytest.mark.real
def test_real_fitness(mirror: Path, real_organism: Organism) -> None:
    dataset = build_dataset(FITNESS_2016, mirror, real_organism)
    table = dataset.table
    assert len(dataset) + sum(dataset.excluded.values()) == 2 * 10859
    assert (table.kind[table.condition == 1] == Kind.REDUCED).all()  # 26 °C is new only for ts alleles
    keys = np.column_stack([table.gene, table.kind, table.condition])
    assert len(np.unique(keys, axis=0)) == len(dataset)
    assert table.value[(table.condition == 0) & (table.kind == Kind.ABSENT)].mean() > 0.9
