"""Media as conditions: bounds, refusals, and the dataset of the same mutants in all of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.insilico import in_silico
from wildtype.datasets.interactions import epsilon
from wildtype.errors import ConfigError, DatasetError
from wildtype.mutants import MutantTable
from wildtype.organism import Organism
from wildtype.sources.insilico import build_media_dataset
from wildtype.sources.insilico.conditions import CARBON, MEDIA, Medium, in_medium, simulator_in
from wildtype.sources.insilico.models import model_file

NAME = "ecoli-core-media"


@pytest.fixture(scope="module")
def organism() -> Organism:
    return in_silico("ecoli-core")


@pytest.fixture(scope="module")
def model() -> Any:
    from cobra.io import read_sbml_model

    return read_sbml_model(str(model_file("ecoli-core")))


def test_growth_in_every_medium_equals_cobra(organism: Organism, model: Any) -> None:
    gene = organism.genes.find("b0720")
    for medium in MEDIA:
        assert organism.metabolism is not None
        simulator = simulator_in(organism.metabolism, organism, medium, processes=1)
        fitness = simulator.fitness(MutantTable.from_sets([[gene - 1], [gene]]))
        with model:
            for exchange, rate in medium.uptake.items():
                model.reactions.get_by_id(exchange).lower_bound = -rate
            wild = model.slim_optimize()
            assert simulator.wild_type_growth == pytest.approx(wild, abs=1e-6)
            for at, expected in enumerate(fitness):
                with model:
                    model.genes.get_by_id(organism.genes.names[gene - 1 + at]).knock_out()
                    grown = np.nan_to_num(model.slim_optimize())
                assert expected == pytest.approx(grown / wild, abs=2e-6), medium.name


def test_media_allow_as_much_carbon_as_the_reference(model: Any) -> None:
    for medium in MEDIA[2:]:
        (exchange,) = [name for name, rate in medium.uptake.items() if rate > 0]
        (metabolite,) = model.reactions.get_by_id(exchange).metabolites
        assert medium.uptake[exchange] * metabolite.elements["C"] == pytest.approx(CARBON)


def test_a_medium_without_growth_is_refused(organism: Organism) -> None:
    assert organism.metabolism is not None
    starved = Medium("acetate anaerobic", {"EX_glc__D_e": 0.0, "EX_ac_e": 30.0, "EX_o2_e": 0.0})
    with pytest.raises(DatasetError, match="medium 'acetate anaerobic' is refused: the wild type"):
        simulator_in(organism.metabolism, organism, starved)
    with pytest.raises(DatasetError, match="medium 'acetate anaerobic' is refused"):
        build_media_dataset(NAME, organism, media=(*MEDIA, starved), progress=False)
    with pytest.raises(ConfigError, match="names 'EX_glyc_e', which is no reaction"):
        in_medium(organism.metabolism, Medium("glycerol", {"EX_glyc_e": 20.0}))
    with pytest.raises(ConfigError, match="uptake -3 by EX_ac_e must be 0 or more"):
        in_medium(organism.metabolism, Medium("acetate", {"EX_ac_e": -3.0}))
    with pytest.raises(ConfigError, match="every name once"):
        build_media_dataset(NAME, organism, media=MEDIA[:1] * 2, progress=False)


def test_dataset_of_media(organism: Organism) -> None:
    d = build_media_dataset(NAME, organism, progress=False, processes=1, doubles=200)
    t = d.table
    assert d.conditions == tuple(medium.name for medium in MEDIA)
    assert d.conditions[0] == "glucose aerobic"
    assert len(t) == len(MEDIA) * (137 + 200 + 200)
    f = {(c, s): v for s, c, v, p in zip(t.sets(), t.condition, t.value, t.phenotype, strict=True) if p == 0}
    eps = t.take(t.phenotype == 1)
    expected = [
        epsilon(f[c, s], f[c, s[:1]], f[c, s[1:]]) for c, s in zip(eps.condition, eps.sets(), strict=True)
    ]
    np.testing.assert_allclose(eps.value, expected, atol=2e-6)
    assert d.single_fitness is not None
    np.testing.assert_array_equal(d.single_fitness, [f[0, (g,)] for g in range(137)])
    anaerobic = np.array([f[1, (g,)] for g in range(137)])
    assert (anaerobic != d.single_fitness).sum() > 20
    assert "glucose anaerobic 0.212/h (10 genes essential" in " ".join(d.notes)
    held = d.split("screen", seed=0, by="condition")
    held.check(d)
    assert set(held.held_out_screens["test"]) <= set(d.conditions)
