"""The trigenic datasets, built from made-up files in the published layouts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.sources.yeast import trigenic_files as files
from tests.sources.yeast.stored import build, stored
from wildtype.datasets import Dataset
from wildtype.errors import DatasetError
from wildtype.mutants import Kind
from wildtype.organism import GeneIndex, Organism
from wildtype.seeds import generator
from wildtype.sources.yeast import build_dataset
from wildtype.sources.yeast.screens.sga_strains import HO
from wildtype.sources.yeast.strain_datasets import TRIGENIC, TRIGENIC_2018

ORFS = sorted({o for pair in files.PAIRS for o in pair[::2]} | {s.partition("_")[0] for s, _ in files.ARRAYS})
ORGANISM = Organism("yeast", GeneIndex([*ORFS, HO], organism="yeast"))
NAMES = (TRIGENIC_2018, TRIGENIC)
PAIRS, ARRAYS = len(files.PAIRS), len(files.ARRAYS)
TRIPLES = PAIRS * ARRAYS


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("trigenic")
    files.write_2018(path)
    files.write_2020(path)
    return path


@pytest.fixture(scope="module")
def both(folder: Path) -> dict[str, Dataset]:
    with stored(folder, ORGANISM) as store:
        return {name: build_dataset(name, store, ORGANISM) for name in NAMES}


def rows(dataset: Dataset, phenotype: str) -> dict[str, float]:
    frame = dataset.select([phenotype]).to_pandas()
    return dict(zip(frame.genes, frame.value, strict=True))


def test_rows_by_phenotype_and_number_of_genes(both: dict[str, Dataset]) -> None:
    singles = len(ORFS)
    for name, studies in ((TRIGENIC_2018, 1), (TRIGENIC, 2)):
        card = both[name].card()
        assert card["rows_by_phenotype_and_order"] == {
            "fitness": {"1": singles, "2": 2 * TRIPLES + studies * PAIRS, "3": studies * TRIPLES},
            "epsilon": {"2": 2 * TRIPLES},  # the same control queries in both studies: one mean
            "tau": {"3": studies * TRIPLES},
            "trigenic epsilon": {"3": studies * TRIPLES},
        }
        assert both[name].name == name
        assert both[name].targets == ("tau",)
    sources = {p.name: p.source for p in both[TRIGENIC].phenotypes}
    assert sources["tau"] == "kuzmin2018:tau + kuzmin2020:tau"
    assert {p.name: p.min_order for p in both[TRIGENIC].phenotypes} == {
        "fitness": 1,
        "epsilon": 2,
        "tau": 3,
        "trigenic epsilon": 3,
    }


def test_every_row_of_the_files_becomes_part_of_a_row_or_is_counted(
    folder: Path, both: dict[str, Dataset]
) -> None:
    dataset = both[TRIGENIC]
    first, query = dataset.stages[:2]
    assert (first.stage, query.step) == ("files", "query")
    assert first.policy == "Data File S1_Raw genetic interaction dataset.tsv + TableS1.tsv + TableS3.tsv"
    with stored(folder, ORGANISM) as store:
        readings = [reading for study in store.studies() for reading in study.readings]
        measured = sum(study.rows for study in store.studies())
    assert first.rows_in == sum(reading.rows for reading in readings)
    assert first.rows_out == query.rows_out == measured  # every measurement of the studies is chosen
    assert first.rows_in == len(dataset) + sum(dataset.excluded.values())


def test_the_neutral_locus_is_taken_out_and_alleles_are_kinds(both: dict[str, Dataset]) -> None:
    dataset = both[TRIGENIC_2018]
    assert dataset.organism.genes.find(HO) not in dataset.table.gene
    assert any("neutral locus (YDL227C) is not represented" in note for note in dataset.notes)
    given = next(cross for cross in files.crosses() if cross.cells[4] == "trigenic")
    genes = ",".join(sorted(["YGR109C", "YPR120C", "YAL048C"], key=ORFS.index))
    assert rows(dataset, "tau")[genes] == pytest.approx(given.tau, abs=1e-6)
    reduced = {
        dataset.organism.genes.names[g] for g in dataset.table.gene[dataset.table.kind == Kind.REDUCED]
    }
    assert {"YDR170C", "YBR152W", "YBL034C"} <= reduced
    assert "YPR120C" not in reduced


def test_one_sided_tau_is_said(both: dict[str, Dataset]) -> None:
    first, second = (both[name].select(["tau"]).table.value for name in (TRIGENIC_2018, TRIGENIC))
    assert (first <= 0).all()
    assert (second > 0).any()
    for dataset in both.values():
        assert any("one-sided" in note for note in dataset.notes)
        assert any("ridge 0.400" in note and "0.4455" in note and "0.185" in note for note in dataset.notes)
        assert "0.49 to 0.59" in dataset.noise
    assert sum("both signs" in note for note in both[TRIGENIC].notes) == 1


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("split", ["random", "query-pair"])
@pytest.mark.parametrize("phenotypes", [["tau"], ["tau", "fitness"]])
def test_splits_work(both: dict[str, Dataset], name: str, split: str, phenotypes: list[str]) -> None:
    dataset = both[name].select(phenotypes)
    made = dataset.split(split, seed=1)
    assert len(made.train) > len(made.test) > 0
    assert sum(made.dropped.values()) + sum(map(len, (made.train, made.validation, made.test))) == len(
        dataset
    )
    if split == "query-pair":
        held = {frozenset(pair) for part in made.held_out_pairs.values() for pair in part}
        assert held <= {frozenset(pair[::2]) for pair in files.PAIRS + files.PAIRS_2020}  # the true queries


def test_single_fitness_is_the_studies_own(both: dict[str, Dataset]) -> None:
    dataset = both[TRIGENIC_2018]
    assert dataset.single_fitness is not None
    assert np.isfinite(dataset.single_fitness[: len(ORFS)]).all()
    assert np.isnan(dataset.single_fitness[len(ORFS)])  # HO: only beside another gene
    fitness = rows(dataset, "fitness")
    assert dataset.single_fitness[0] == pytest.approx(fitness[ORFS[0]])
    assert dataset.single_fitness_source == "kuzmin2018:fitness"
    assert both[TRIGENIC].single_fitness_source == "kuzmin2018:fitness + kuzmin2020:fitness"


def test_a_deletion_is_preferred_for_single_fitness(tmp_path: Path) -> None:
    ts = ("YGR109C+YPR120C_tm1", "clb6Δ+clb5Δ", "YAL048C_tsa1", "gem1-1", "trigenic", "-0.3", "-0.2", "0.1",
          "0.8", "0.3000", "0.46", "0.03")  # fmt: skip
    deletion = (*ts[:2], "YAL048C_dma2", "gem1Δ", *ts[4:9], "0.9500", *ts[10:])
    files.write_2018(tmp_path, [deletion, ts])
    dataset = build(TRIGENIC_2018, tmp_path, ORGANISM)
    assert dataset.single_fitness is not None
    assert dataset.single_fitness[ORFS.index("YAL048C")] == pytest.approx(0.95)


def test_the_order_of_rows_does_not_change_the_hash(tmp_path: Path, both: dict[str, Dataset]) -> None:
    rows = files.crosses()
    rows = [rows[i] for i in generator(0, "order of rows").permutation(len(rows))]
    files.write_2018(tmp_path, rows)
    again = build(TRIGENIC_2018, tmp_path, ORGANISM)
    assert again.sha256 == both[TRIGENIC_2018].sha256


def test_repeated_gene_triples_are_merged_and_counted(tmp_path: Path) -> None:
    one = next(cross.cells for cross in files.crosses() if cross.cells[4] == "trigenic")
    strain = (*one[:2], "YAL048C_dma9", *one[3:6], "-0.500000", *one[7:])
    allele = (*one[:2], "YAL048C_tsa9", "gem1-2", *one[4:])
    files.write_2018(tmp_path, [one, strain, allele])
    dataset = build(TRIGENIC_2018, tmp_path, ORGANISM)
    tau = dataset.select(["tau"])
    assert len(tau) == 2  # the deletion and the hypomorph are different mutants
    assert dataset.excluded["merged: replicates of one mutant"] == 1
    assert (
        dataset.excluded["merged: duplicate entry (same value and sd)"] == 3
    )  # raw score, fitness, array fitness
    assert sorted(tau.table.value.tolist())[0] == pytest.approx((float(one[6]) - 0.5) / 2)
    second = (*one[:2], "YAL048C_tsa8", "gem1-3", *one[4:6], "-0.700000", *one[7:])
    files.write_2018(tmp_path, [allele, second])
    merged = build(TRIGENIC_2018, tmp_path, ORGANISM)
    apart = build(TRIGENIC_2018, tmp_path, ORGANISM, alleles="apart")
    assert (len(merged.select(["tau"])), len(apart.select(["tau"]))) == (1, 2)


def test_strains_with_suppressors_are_left_out_and_counted(tmp_path: Path) -> None:
    one = next(cross.cells for cross in files.crosses() if cross.cells[4] == "trigenic")
    files.write_2018(tmp_path, [one, (*one[:2], "YMR197C_tsa635", "vti1-11-supp1", *one[4:])])
    dataset = build(TRIGENIC_2018, tmp_path, ORGANISM)
    assert len(dataset.select(["tau"])) == 1
    assert dataset.excluded["strain with a suppressor mutation"] == 4  # tau, raw score, fitness, array


def test_a_missing_study_is_named(tmp_path: Path) -> None:
    files.write_2018(tmp_path)
    with pytest.raises(DatasetError, match="'yeast-trigenic-kuzmin' needs the study 'kuzmin2020'"):
        build(TRIGENIC, tmp_path, ORGANISM)
