"""Datasets of yeast made from the files that their publishers offer: counts and facts."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.sources.yeast.stored import rows, stored
from wildtype.datasets.background import add_background
from wildtype.datasets.stages.build import build_dataset as build_stages
from wildtype.datasets.store import Store
from wildtype.mutants import Kind
from wildtype.mutants.grid import pair_codes
from wildtype.organism import GeneIndex, Organism
from wildtype.sources.text import match_genes
from wildtype.sources.yeast import RECIPES, build_dataset
from wildtype.sources.yeast.dataset_steps import as_calls, by_environment
from wildtype.sources.yeast.pair_datasets import (
    CHROMATIN_2016,
    COLLINS_2007,
    DIGENIC_2010,
    DIGENIC_2016,
    GIS_2018,
    REPAIR_2016,
    SCHULDINER_2005,
    STRINGENT_2010,
    TAU_SGA,
    UPR_2009,
)
from wildtype.sources.yeast.readers import READERS
from wildtype.sources.yeast.screens.kuzmin2018 import read_query_assignment
from wildtype.sources.yeast.strain_datasets import CALLS, FITNESS_2016, XGA


@pytest.fixture(scope="module")
def real_store(mirror: Path, real_organism: Organism) -> Iterator[Store]:
    with stored(mirror, real_organism) as store:
        yield store


@pytest.mark.real
@pytest.mark.slow
def test_the_real_stringent_list_of_2010(real_store: Store, real_organism: Organism) -> None:
    dataset = build_dataset(STRINGENT_2010, real_store, real_organism)
    assert dataset.grid is None
    assert len(dataset) + sum(dataset.excluded.values()) == 60608
    assert len(dataset) == 51478
    # rows that the list has under older names of genes, too
    assert {why: count for why, count in dataset.excluded.items() if "set aside" in why} == {
        "gene set aside for a blind test": 39,
        "cross set aside for a blind test": 101,
    }
    assert any(note.startswith("126 rows are of genes within 200 kb") for note in dataset.notes)
    pairs = dataset.table.gene.reshape(-1, 2)
    assert (pairs[:, 0] < pairs[:, 1]).all()
    keys = np.column_stack([pairs, dataset.table.kind.reshape(-1, 2)])
    assert len(np.unique(keys, axis=0)) == len(dataset)
    value = dataset.table.value
    assert (value > 0).mean() == pytest.approx(0.095, abs=0.002)
    assert dataset.table.p is not None
    assert np.isfinite(dataset.table.p).sum() == 50930  # merged strains and alleles with several have none
    assert np.nanmax(dataset.table.p) < 0.05
    find = real_organism.genes.find
    at = (pairs == sorted((find("ARP1"), find("BIM1")))).all(1)
    assert value[at] == pytest.approx(-0.60, abs=0.01)
    assert "r = 0.67 (793 comparisons" in dataset.noise
    assert "r = 0.86 on 451 shared pairs" in dataset.noise


@pytest.mark.real
@pytest.mark.slow
def test_the_real_screen_of_2010(real_store: Store, real_organism: Organism, mirror: Path) -> None:
    dataset = build_dataset(DIGENIC_2010, real_store, real_organism)
    assert dataset.targets == ("epsilon", "negative", "positive", "epsilon_listed", "epsilon_stringent")
    assert {p.source for p in dataset.phenotypes} == {"costanzo2010:epsilon"}
    assert len(dataset) + sum(dataset.excluded.values()) == 155_045
    assert {why: count for why, count in dataset.excluded.items() if "merged" not in why} == {
        "unknown gene": 283,
        "gene set aside for a blind test": 120,
        "cross set aside for a blind test": 219,
        "cross of linked genes": 306,
    }
    grid, table, genes = dataset.grid, dataset.table, real_organism.genes
    assert grid is not None
    assert (len(np.unique(grid.query_gene)), len(np.unique(grid.array_gene))) == (1574, 3626)
    assert dataset.cross_counts() == {"listed": 133_702, "unlisted": 4_355_880, "unknown": 653_210}
    assert len(dataset) == 133_702
    assert set(table.kind) == {Kind.ABSENT, Kind.REDUCED}
    assert set(grid.array_kind) == {Kind.ABSENT}
    # what is set aside is neither a row nor a known cross, under any name of its genes
    reserved = gzip.decompress((mirror / "costanzo2010_reserved_crosses.tsv.gz").read_bytes()).decode()
    pairs = [line.split("\t") for line in reserved.splitlines()[1:]]
    sides = [match_genes([pair[side] for pair in pairs], genes).position for side in (0, 1)]
    left, right = (side[(sides[0] >= 0) & (sides[1] >= 0)] for side in sides)
    codes = np.unique(pair_codes(left, right, len(genes)))
    held = table.matrix(2)
    assert not np.isin(pair_codes(held[:, 0], held[:, 1], len(genes)), codes).any()
    assert not grid.crossed(left, right, *(np.zeros(len(left), np.uint8),) * 2).any()
    gone = gzip.decompress((mirror / "reserved_genes.txt.gz").read_bytes()).decode().split()
    position = match_genes(gone, genes).position
    assert not np.isin(position, table.gene).any()
    assert not np.isin(position, np.union1d(grid.query_gene, grid.array_gene)).any()
    # nor is a cross of linked genes
    strain, crosses = grid.strains[0], grid.crosses()
    at, of = np.nonzero(np.triu(crosses))
    places = real_organism.coordinates
    assert places is not None
    assert np.nanmin(places.distance(strain[at], strain[of])) > 200
    assert crosses.sum() // 2 == 133_702 + 4_355_880


@pytest.mark.real
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "rows", "lines", "reduced", "negative"),
    [(COLLINS_2007, 149_086, 150_863, 27_525, 0.0595), (SCHULDINER_2005, 68_448, 68_487, 17_529, 0.0328)],
)
def test_real_emaps(
    real_store: Store,
    real_organism: Organism,
    name: str,
    rows: int,
    lines: int,
    reduced: int,
    negative: float,
) -> None:
    dataset = build_dataset(name, real_store, real_organism)
    assert (len(dataset), len(dataset) + sum(dataset.excluded.values())) == (rows, lines)
    assert [(p.name, p.unit) for p in dataset.phenotypes] == [("s_score", "S-score (scale of a t statistic)")]
    assert [(p.strong, p.strong_positive) for p in dataset.phenotypes] == [(2.5, 2.0)]
    assert np.unique(dataset.table.row[dataset.table.kind == Kind.REDUCED]).size == reduced
    assert (dataset.table.value < -2.5).mean() == pytest.approx(negative, abs=0.005)


@pytest.mark.real
@pytest.mark.slow
def test_real_pairs_of_repair_genes_in_nine_conditions(real_store: Store, real_organism: Organism) -> None:
    dataset = build_dataset(GIS_2018, real_store, real_organism)
    assert (len(dataset), len(dataset.measured_genes())) == (630 * 9, 38)
    assert len(dataset) + sum(dataset.excluded.values()) == 757 * 18
    assert dataset.excluded["cross set aside for a blind test"] == 56 * 9
    t, first = dataset.table, dataset.first_target()[0]
    dmso = dataset.phenotype_index("epsilon:DMSO")
    pairs = [
        dict(
            zip(
                map(tuple, t.gene.reshape(-1, 2)[t.phenotype == p].tolist()),
                t.value[t.phenotype == p],
                strict=True,
            )
        )
        for p in (first, dmso)
    ]
    untreated = np.array([[pair[key] for pair in pairs] for key in pairs[0]])
    assert np.corrcoef(untreated.T)[0, 1] == pytest.approx(0.98, abs=0.005)
    find = real_organism.genes.find
    assert pairs[0][tuple(sorted((find("SGS1"), find("MUS81"))))] < -0.4


@pytest.mark.real
@pytest.mark.slow
def test_real_control_crosses(real_store: Store, real_organism: Organism) -> None:
    dataset = build_dataset(TAU_SGA, real_store, real_organism)
    t = dataset.table
    assert len(dataset) == 2968
    assert (t.order == 2).all()
    assert {why: n for why, n in dataset.excluded.items() if "set aside" in why} == {
        "gene set aside for a blind test": 6,
        "cross set aside for a blind test": 2,
    }
    assert dataset.excluded["measurement that the dataset is not about"] == 1789
    assert any(note.endswith("are triple mutants and no rows here: 1,789") for note in dataset.notes)
    queries = [real_organism.genes.find(name) for name in ("YAL015C", "YAL028W", "YAL056W")]
    assert np.isin(t.gene.reshape(-1, 2), queries).any(1).all()
    assert t.p is not None
    assert np.isfinite(t.sd).all()
    assert (t.p < 0.05)[np.abs(t.value) > 0.08].sum() == 24
    assert dataset.single_fitness is not None
    assert np.isfinite(dataset.single_fitness[queries]).all()


@pytest.mark.real
@pytest.mark.slow
def test_real_reporter_of_double_mutants(real_store: Store, real_organism: Organism) -> None:
    dataset = build_dataset(UPR_2009, real_store, real_organism)
    counts = np.bincount(dataset.table.phenotype).tolist()
    assert dict(zip((p.name for p in dataset.phenotypes), counts, strict=True)) == {
        "UPR reporter": 33_806,
        "UPR interaction": 33_654,
    }
    assert len(dataset) + sum(dataset.excluded.values()) == 444 * 445
    assert dataset.targets[0] == "UPR interaction"


@pytest.mark.real
@pytest.mark.slow
def test_the_pairs_of_either_term_are_those_of_both(real_store: Store, real_organism: Organism) -> None:
    both, repair, chromatin = (
        build_dataset(name, real_store, real_organism) for name in (DIGENIC_2016, REPAIR_2016, CHROMATIN_2016)
    )
    assert (len(repair), len(chromatin)) == (6731, 3967)
    assert rows(both) == rows(repair) | rows(chromatin)
    assert {p.source for p in repair.phenotypes} == {"costanzo2016:epsilon"}


@pytest.mark.real
@pytest.mark.slow
def test_real_digenic_2016(real_store: Store, real_organism: Organism) -> None:
    dataset = build_dataset(DIGENIC_2016, real_store, real_organism)
    assert len(dataset) + sum(dataset.excluded.values()) == 10698
    assert dataset.table.value.mean() == pytest.approx(-0.016, abs=0.005)
    assert dataset.table.p is None
    assert (
        dataset.table.kind == Kind.ABSENT
    ).all()  # the two genes listed as essential have deletion strains


@pytest.mark.real
@pytest.mark.slow
def test_real_fitness(real_store: Store, real_organism: Organism) -> None:
    dataset = build_dataset(FITNESS_2016, real_store, real_organism)
    table = dataset.table
    assert len(dataset) + sum(dataset.excluded.values()) == 2 * 10859
    assert (table.kind[table.condition == 1] == Kind.REDUCED).all()  # 26 °C is new only for ts alleles
    keys = np.column_stack([table.gene, table.kind, table.condition])
    assert len(np.unique(keys, axis=0)) == len(dataset)
    assert table.value[(table.condition == 0) & (table.kind == Kind.ABSENT)].mean() > 0.9


@pytest.mark.real
@pytest.mark.slow
def test_xga_as_published(mirror: Path, real_genes: GeneIndex) -> None:
    recipe = RECIPES[XGA]
    m = READERS["celaj2020"](mirror, real_genes)
    resistance = [p.name for p in m.phenotypes].index("drug resistance")
    turned, report = by_environment(m.take(m.phenotype == resistance))
    organism = Organism("yeast", real_genes)
    dataset = build_stages(turned, organism, name=recipe.name, before=[report], policies=recipe.policies)
    assert len(dataset.phenotypes) == 16
    assert len(np.unique(dataset.table.set_id)) * 16 == len(dataset) == 4135 * 16
    assert dataset.table.order.max() == 16
    split = dataset.split("order", order=9, up_to=6)
    assert [len(rows) // 16 for rows in (split.train, split.validation, split.test)] == [1615, 1533, 987]
    single = real_genes.find("YOR153W")  # PDR5, the pump: without it fluconazole and tamoxifen kill
    t = dataset.table
    tamoxifen = dataset.phenotype_index("drug resistance:tamoxifen")
    lacks = np.bincount(t.row, t.gene == single, minlength=len(t)) > 0
    of_drug = t.phenotype == tamoxifen
    assert t.value[of_drug & lacks].mean() < t.value[of_drug & ~lacks].mean() - 0.5


@pytest.mark.real
@pytest.mark.slow
def test_calls_and_their_background_as_published(mirror: Path, real_genes: GeneIndex) -> None:
    recipe = RECIPES[CALLS]
    assert recipe.background is not None
    called, report = as_calls(READERS["kuzmin2018-calls"](mirror, real_genes))
    assert {study.name for study in called.studies} == set(recipe.studies)
    organism = Organism("yeast", real_genes)
    listed = build_stages(called, organism, name=CALLS, before=[report], policies=recipe.policies)
    dataset = add_background(listed, recipe.background)
    t = dataset.table
    assert set(np.unique(t.value)) == {0.0, 1.0}
    assert Kind.REDUCED in t.kind
    for order, per_call in ((2, 2), (3, 10)):
        sets = [np.unique(t.set_id[(t.order == order) & (t.value == value)]) for value in (0, 1)]
        assert len(sets[0]) == per_call * len(sets[1])
        assert not np.isin(*sets).any()
    assert any("drawn with seed 0" in note for note in dataset.notes)
    split = dataset.split("query-pair", 0)
    assert set(t.order[split.test]) == {3}
    assert 0.05 < t.value[split.test].mean() < 0.2
    pairs = read_query_assignment(mirror, real_genes).gene
    known = {frozenset(pair) for pair in pairs.tolist()}
    found = {frozenset(map(real_genes.find, pair)) for pair in split.held_out_pairs["test"]}
    assert found & known  # the pairs found from the triples are those of the study's own list
