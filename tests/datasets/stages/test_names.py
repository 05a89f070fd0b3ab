from __future__ import annotations

import numpy as np
import pytest

from tests.datasets.stages.made import EPSILON, SALT, SIZE, WARM, YPD, measured, one
from wildtype.datasets.records import Environment, PhenotypeDefinition
from wildtype.datasets.stages.names import chosen_condition, name_conditions, name_phenotypes
from wildtype.errors import ConfigError, DatasetError


def test_traits_and_studies_name_phenotypes() -> None:
    rows = measured(
        one("G1", phenotype=SIZE, trait="length"),
        one("G1", "G2", phenotype=EPSILON),
        one("G1"),
        one("G1", phenotype=SIZE, trait="area"),
        one("G2", study="second2020"),
        one("G1"),
    )
    phenotypes, code = name_phenotypes(rows, "pooled")
    assert [p.name for p in phenotypes] == ["fitness", "size:area", "size:length", "epsilon"]
    assert [phenotypes[c].name for c in code] == [
        "size:length",
        "epsilon",
        "fitness",
        "size:area",
        "fitness",
        "fitness",
    ]
    assert phenotypes[0].sources == ("first2018:fitness", "second2020:fitness")
    assert phenotypes[1].sources == ("first2018:size",)
    assert (phenotypes[1].unit, phenotypes[3].min_order) == ("µm²", 2)
    apart, code = name_phenotypes(rows, "apart")
    assert [apart[c].name for c in code[[2, 4]]] == ["first2018:fitness", "second2020:fitness"]
    assert apart[code[4]].source == "second2020:fitness"


def test_studies_that_mean_different_things_are_not_pooled() -> None:
    other = PhenotypeDefinition(name="fitness", unit="doublings per hour", min_order=0)
    rows = measured(one("G1"), one("G2", study="second2020", phenotype=other))
    with pytest.raises(DatasetError, match=r"'fitness' has unit .* in first2018 and .* in second2020: keep"):
        name_phenotypes(rows, "pooled")
    assert len(name_phenotypes(rows, "apart")[0]) == 2


def test_descriptions_and_thresholds_of_pooled_studies() -> None:
    other = PhenotypeDefinition(name="fitness", min_order=0, strong=0.2, description="colony size")
    rows = measured(one("G1"), one("G2", study="second2020", phenotype=other))
    (phenotype,), _ = name_phenotypes(rows, "pooled")
    assert (phenotype.strong, phenotype.description) == (0.2, "colony size")


def test_a_name_that_two_phenotypes_would_share() -> None:
    twin = PhenotypeDefinition(name="size:area")
    with pytest.raises(DatasetError, match="both called 'size:area'"):
        name_phenotypes(
            measured(one("G1", phenotype=SIZE, trait="area"), one("G1", phenotype=twin)), "pooled"
        )


def test_the_reference_has_fewest_compounds_then_most_rows() -> None:
    places = np.array([0, 0, 0, 1, 1, 2])
    names, code = name_conditions([SALT, WARM, YPD, Environment()], places)
    assert names == (str(WARM), str(YPD), str(SALT))
    assert [names[c] for c in code] == [str(SALT)] * 3 + [str(WARM)] * 2 + [str(YPD)]


def test_a_tie_is_broken_by_name() -> None:
    for environments in ([WARM, YPD], [YPD, WARM]):
        names, _ = name_conditions(environments, np.array([0, 1]))
        assert names == (str(YPD), str(WARM))


def test_environments_that_are_spelled_alike_stay_apart() -> None:
    close = Environment(medium="YPD", temperature=30.0000001)
    assert str(close) == str(YPD)
    names, code = name_conditions([YPD, close, YPD], np.array([0, 1, 2]))
    assert len(set(names)) == 2
    assert all(name.startswith("YPD, 30 °C [") for name in names)
    assert code[0] == code[2] != code[1]


def test_a_condition_that_is_not_there() -> None:
    with pytest.raises(ConfigError, match="no measurement was made in environment 'ice'; there are: YPD; SC"):
        chosen_condition(["YPD", "SC"], "ice")
