"""Datasets of drugs, calls and traits: one phenotype per column, and nothing of it among the features."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from wildtype.datasets.background import add_background
from wildtype.datasets.measurements import Measurements
from wildtype.datasets.records import Compound, Environment, PhenotypeDefinition, Publication, Study
from wildtype.datasets.stages.build import build_dataset
from wildtype.errors import DatasetError
from wildtype.mutants import Kind
from wildtype.organism import GeneIndex, Organism
from wildtype.sources.yeast import RECIPES
from wildtype.sources.yeast.measured import READERS
from wildtype.sources.yeast.screens.kuzmin2018 import read_query_assignment
from wildtype.sources.yeast.tasks import (
    CALL,
    CALLS,
    CONDITIONS_2021,
    MORPHOLOGY_2020,
    TASKS,
    as_calls,
    by_environment,
)
from wildtype.sources.yeast.traits.single_deletions import STUDIES, measured_as

GROWTH = PhenotypeDefinition(name="growth", min_order=0)
STUDY = Study(name="toy", publication=Publication(citation="nobody"), organism="toy")


def measured(environments: list[Environment]) -> Measurements:
    """Growth of three mutants, one of them twice, in every environment."""
    count = len(environments)
    sets = [[], [0], [0, 1], [0, 1]] * count
    return Measurements.build(
        STUDY,
        genes=("A", "B"),
        gene=[g for s in sets for g in s],
        offsets=np.cumsum([0, *map(len, sets)]),
        environments=environments,
        phenotypes=[GROWTH],
        environment=np.repeat(np.arange(count), 4),
        phenotype=np.zeros(4 * count, np.int64),
        value=np.arange(4.0 * count),
        replicate=["", "", "a", "b"] * count,
    )


def drug(name: str, dose: float = np.nan, unit: str = "", medium: str = "YPD") -> Environment:
    return Environment(medium=medium, compounds=(Compound(name=name, dose=dose, unit=unit),))


def test_every_environment_becomes_a_phenotype_and_strains_their_mean() -> None:
    turned, report = by_environment(
        measured([drug("tamoxifen"), drug("MMS", 0.01, "%"), Environment(medium="YPD")])
    )
    organism = Organism("toy", GeneIndex(["A", "B"], organism="toy"))
    dataset = build_dataset(turned, organism, name="toy", before=[report])
    assert [p.name for p in dataset.phenotypes] == [
        "growth:MMS 0.01 %",
        "growth:reference",
        "growth:tamoxifen",
    ]
    assert {p.source for p in dataset.phenotypes} == {"toy:growth"}
    assert dataset.conditions == ("YPD",)
    of = dataset.table.take(np.flatnonzero(dataset.table.phenotype == 2))
    assert (of.order.tolist(), of.value.tolist()) == ([0, 1, 2], [0.0, 1.0, 2.5])


def test_environments_that_compounds_do_not_tell_apart_are_refused() -> None:
    for two in ([drug("MMS"), drug("MMS", medium="SD")], [drug("MMS"), drug("DMSO", medium="SD")]):
        with pytest.raises(DatasetError, match="differ in compounds and in nothing else"):
            by_environment(measured(two))


def test_calls_are_one_phenotype_whatever_their_sign() -> None:
    called, report = as_calls(measured([drug("MMS")]))
    assert called.phenotypes == (CALL,)
    assert set(called.value) == {1.0}
    assert report.rows_out == 4


def test_features_of_the_own_table_are_refused(small, organism: Organism) -> None:
    block = organism.features["phenotypes"]
    for name, study in ((CONDITIONS_2021, "costanzo2021"), (MORPHOLOGY_2020, "mattiazzi2020")):
        recipe = next(recipe for recipe in TASKS if recipe.name == name)
        sources = str(recipe.phenotype["source"]).split(" + ")
        assert {source.split(":")[0] for source in sources} == {study}
        assert set(sources) & {s for one in STUDIES if one.name == study for s in measured_as(one)}
        assert len(sources) == 2
    # what a query of the store calls its phenotypes is refused too
    used = {source.split(":")[0] for source in block.measured}
    for study in used:
        names = {f"{study}:{p.name}" for p in READERS[study](small.path, organism.genes).phenotypes}
        assert names <= set(block.measured)


@pytest.mark.real
@pytest.mark.slow
def test_xga_as_published(mirror: Path, real_genes: GeneIndex) -> None:
    recipe = TASKS[0]
    m = READERS["celaj2020"](mirror, real_genes)
    resistance = [p.name for p in m.phenotypes].index("drug resistance")
    turned, report = by_environment(m.take(m.phenotype == resistance))
    organism = Organism("yeast", real_genes)
    dataset = build_dataset(turned, organism, name=recipe.name, before=[report], policies=recipe.policies)
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
    listed = build_dataset(called, organism, name=CALLS, before=[report], policies=recipe.policies)
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
