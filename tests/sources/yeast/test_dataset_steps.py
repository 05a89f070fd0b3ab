"""Steps of single datasets: repeated numbers, environments as phenotypes, calls."""

from __future__ import annotations

import numpy as np
import pytest

from tests.sources.yeast.stored import stored
from wildtype.datasets.measurements import Measurements
from wildtype.datasets.records import Compound, Environment, PhenotypeDefinition, Publication, Study
from wildtype.datasets.stages.build import build_dataset as build_stages
from wildtype.datasets.store import Query
from wildtype.errors import DatasetError
from wildtype.organism import GeneIndex, Organism
from wildtype.sources.yeast.dataset_steps import CALL, as_calls, by_environment, once_per_strain

STUDY = Study(name="toy", publication=Publication(citation="nobody"), organism="toy")
GROWTH = PhenotypeDefinition(name="growth", min_order=0)


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


def test_a_number_repeated_at_the_other_temperature_is_no_second_measurement(
    small, organism: Organism
) -> None:
    with stored(small.path, organism) as store:
        m = store.select(Query().study("costanzo2016").phenotype("fitness").order(1))
    left, report = once_per_strain(m)
    assert report.merged == {"the number of 30 °C repeated at 26 °C": 5}  # sn1, dma1, damp9, damp174, sn7
    cold = [r for r in left.records() if r.environment.temperature == 26]
    assert sorted(r.replicate for r in cold) == [
        "strain YAL001C_tsa508",
        "strain YAL001C_tsq508",
        "strain YAL005C_dma30",  # with a suppressor: for the stages to drop
    ]


def test_every_environment_becomes_a_phenotype_and_strains_their_mean() -> None:
    turned, report = by_environment(
        measured([drug("tamoxifen"), drug("MMS", 0.01, "%"), Environment(medium="YPD")])
    )
    organism = Organism("toy", GeneIndex(["A", "B"], organism="toy"))
    dataset = build_stages(turned, organism, name="toy", before=[report])
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
