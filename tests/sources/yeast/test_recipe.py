"""What a recipe makes of a store: fitness of single mutants, notes, and the way from the files."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.sources.yeast.stored import stored
from wildtype.datasets import Dataset
from wildtype.datasets.stages.policies import Policies
from wildtype.datasets.store import Query, Store
from wildtype.errors import DatasetError
from wildtype.mutants import Kind
from wildtype.organism import Organism
from wildtype.sources.yeast.recipe import Recipe, single_fitness
from wildtype.sources.yeast.screens.single_fitness import FITNESS, by_gene, read_strains

SINGLE = Query().study("costanzo2016").phenotype("fitness").order(1)
RECIPE = Recipe(
    name="made-up",
    studies=("costanzo2010",),
    query=Query().study("costanzo2010").value(max=0),
    targets=("epsilon",),
    notes=("as it is", lambda dataset: f"{len(dataset)} rows"),
    phenotype={"strong": 0.5},
)


def test_single_fitness_is_that_of_the_organisms_feature(small, organism: Organism) -> None:
    """Deletions go before alleles, an allele counts once, strains with a suppressor are left out."""
    with stored(small.path, organism) as store:
        at_30 = store.select(SINGLE.environment(temperature=30))
    value, sd, kind, source = single_fitness(at_30, organism)
    expected, spread = by_gene(read_strains(small.path, organism.genes), len(organism.genes))
    np.testing.assert_allclose(value, expected[:, 0], rtol=1e-6)
    np.testing.assert_allclose(sd, spread[:, 0], rtol=1e-6)
    assert source == "costanzo2016:fitness"
    assert np.isfinite(value).sum() == 4
    assert Kind(kind[organism.genes.find("TFC3")]) is Kind.REDUCED
    assert set(kind[np.isfinite(value)]) == {Kind.ABSENT, Kind.REDUCED}


def test_an_allele_with_two_numbers_counts_once(small, organism: Organism) -> None:
    small.replace(
        FITNESS,
        "YAL001C_tsq508\tYAL001C\ttfc3-g349e\t0.8658\t0.1789\t0.8285",
        "YAL001C_tsq508\tYAL001C\ttfc3-g349e\t0.8658\t0.1789\t0.4285",
    )
    with stored(small.path, organism) as store:
        value, *_ = single_fitness(store.select(SINGLE.environment(temperature=30)), organism)
        apart, *_ = single_fitness(
            store.select(SINGLE.environment(temperature=30)), organism, Policies(alleles="apart")
        )
    assert value[organism.genes.find("TFC3")] == pytest.approx(((0.8285 + 0.4285) / 2 + 0.9395) / 2)
    np.testing.assert_array_equal(value, apart)


def test_single_fitness_is_one_phenotype(small, organism: Organism) -> None:
    with stored(small.path, organism) as store:
        everything = store.select(Query().study("costanzo2010", "costanzo2016"))
    with pytest.raises(DatasetError, match="is one phenotype, received fitness, epsilon: select one"):
        single_fitness(everything, organism)


@pytest.fixture
def store(small, organism: Organism):
    with stored(small.path, organism) as opened:
        yield opened


def test_the_card_leads_from_the_files_to_the_table(store: Store, organism: Organism) -> None:
    dataset = RECIPE.build(store, organism)
    first, query = dataset.stages[:2]
    assert (first.rows_in, first.rows_out, query.rows_out) == (10, 7, 6)
    assert query.dropped == {"measurement that the dataset is not about": 1}  # the positive score
    assert len(dataset) + sum(dataset.excluded.values()) == 10
    assert dataset.notes == ("as it is", f"{len(dataset)} rows")
    assert dataset.phenotypes[0].strong == 0.5
    assert dataset.noise == "no replicate measurements: no noise guide"
    assert dataset.single_fitness is None


def test_other_facts_make_another_entry_in_the_cache(store: Store, organism: Organism) -> None:
    first = RECIPE.build(store, organism)
    noted = replace(RECIPE, notes=("otherwise",)).build(store, organism)
    assert (noted.notes, noted.sha256) == (("otherwise",), first.sha256)
    assert replace(RECIPE, noise="said").build(store, organism).noise == "said"
    strong = replace(RECIPE, phenotype={"strong": 0.25}).build(store, organism)
    assert strong.phenotypes[0].strong == 0.25
    everything = replace(RECIPE, query=Query().study("costanzo2010")).build(store, organism)
    assert len(everything) == len(first) + 1
    assert RECIPE.build(store, organism).card() == first.card()


def test_a_guide_sees_every_number_and_the_other_study_if_it_is_there(
    store: Store, organism: Organism
) -> None:
    seen = []

    def guide(apart: Dataset, other: Dataset | None) -> str:
        seen.append((len(apart), None if other is None else len(other)))
        return ""

    others = Query().study("costanzo2016-dcell")
    recipe = replace(RECIPE, name="guided", noise=guide, compared=others)
    assert recipe.build(store, organism).noise == "no replicate measurements: no noise guide"
    store.drop("costanzo2016-dcell")
    recipe.build(store, organism)
    assert seen == [(5, 4), (5, None)]


def test_a_store_without_readings_starts_at_the_measurements(store: Store, organism: Organism) -> None:
    store.ingest(store.select(Query().study("costanzo2010")), replace=True)
    dataset = RECIPE.build(store, organism)
    assert (dataset.stages[0].stage, dataset.stages[0].step) == ("raw", "selected")
    assert dataset.stages[0].rows_in == 6 == len(dataset) + sum(dataset.excluded.values())
