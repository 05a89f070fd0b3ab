"""Conversion of measurements row by row, and the names of phenotypes and conditions."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.datasets.stages.made import EPSILON, ORGANISM, SALT, SIZE, WARM, YPD, measured, one, sensitive
from wildtype.datasets.reading import StageReport
from wildtype.datasets.records import (
    Environment,
    Measurement,
    Perturbation,
    PerturbationKind,
    PhenotypeDefinition,
)
from wildtype.datasets.stages.convert import Conversion, chosen_condition, name_conditions, name_phenotypes
from wildtype.datasets.stages.policies import Policies
from wildtype.errors import ConfigError, DatasetError
from wildtype.mutants import Kind


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


def convert(*records: Measurement, **settings: object) -> Conversion:
    return Conversion(measured(*records), ORGANISM, Policies(**settings))  # type: ignore[arg-type]


def report(conversion: Conversion, step: str) -> StageReport:
    return next(report for report in conversion.reports if report.step == step)


def suppressed(gene: str) -> Perturbation:
    return Perturbation(gene=gene, kind=PerturbationKind.SUPPRESSOR)


def test_kinds_by_effect() -> None:
    rows = [one(Perturbation(gene="G1", kind=kind)) for kind in PerturbationKind if kind.name != "SUPPRESSOR"]
    conversion = convert(*rows)
    seen = {
        PerturbationKind(r).name: Kind(k).name
        for r, k in zip(conversion.rows.recorded, conversion.rows.kind, strict=True)
    }
    assert seen == {
        "DELETION": "ABSENT",
        "REDUCED_EXPRESSION": "REDUCED",
        "TEMPERATURE_SENSITIVE": "REDUCED",
        "OTHER_ALLELE": "REDUCED",
        "OVEREXPRESSION": "OVEREXPRESSED",
        "ADDITION": "ADDED",
    }


def test_strains_with_a_suppressor_are_left_out_or_it_is_not_represented() -> None:
    rows = (one("G1"), one(sensitive("G2"), suppressed("X9")), one(sensitive("G2"), suppressed("G2")))
    dropped = convert(*rows)
    assert len(dropped.rows) == 1
    assert report(dropped, "suppressors").dropped == {"strain with a suppressor mutation": 2}
    ignored = convert(*rows, suppressors="ignore")
    assert ignored.rows.gene.tolist() == [0, 1, 1]
    assert ignored.rows.kind.tolist() == [Kind.ABSENT, Kind.REDUCED, Kind.REDUCED]
    assert report(ignored, "suppressors").noted == {"suppressor mutation not represented": 2}


def test_control_queries_with_a_neutral_locus_become_singles_and_pairs() -> None:
    rows = (one("G1", "HO"), one("G1", "HO", "G2"), one("HO"), one("G2"))
    plain = convert(*rows)
    assert plain.rows.order.tolist() == [2, 3, 1, 1]
    for name in ("HO", "homo"):  # by any of its names
        without = convert(*rows, neutral=(name,))
        assert without.rows.gene.tolist() == [0, 0, 1, 1]
        assert without.rows.offsets.tolist() == [0, 1, 3, 3, 4]
        assert report(without, "neutral loci").noted == {"perturbation of a neutral locus taken out": 3}


def test_a_neutral_locus_that_does_not_exist() -> None:
    with pytest.raises(ConfigError, match="neutral locus 'G11' is not in organism 'toy'; did you mean G1"):
        convert(one("G1"), neutral=("G11",))


def test_rows_with_genes_that_the_organism_lacks() -> None:
    foreign = Perturbation(gene="crtE", kind=PerturbationKind.ADDITION)
    conversion = convert(one("G1", "X9"), one("G1", foreign), one("X9", foreign), one("G1"))
    assert conversion.rows.gene.tolist() == [0]
    assert report(conversion, "genes").dropped == {
        "gene that the organism does not have": 2,
        "foreign gene added": 1,
    }


def test_one_gene_perturbed_twice() -> None:
    conversion = convert(
        one(sensitive("G2", "a"), "G1", sensitive("G2", "b")), one("G1", "G2"), one("G2", sensitive("G2"))
    )
    assert conversion.rows.gene.tolist() == [0, 1]
    assert report(conversion, "repeated genes").dropped == {"one gene perturbed twice": 2}


def test_a_row_of_too_few_genes_for_its_phenotype() -> None:
    rows = (one("G1", "HO", phenotype=EPSILON), one("G1", "G2", phenotype=EPSILON), one())
    conversion = convert(*rows, neutral=("HO",))
    assert conversion.rows.order.tolist() == [2, 0]
    dropped = report(conversion, "fewest genes").dropped
    assert dropped == {"fewer genes perturbed than the phenotype is defined for": 1}


def test_environments_apart_pooled_or_one() -> None:
    rows = (one("G1", environment=SALT), one("G1", environment=WARM), one("G2", environment=WARM), one("G1"))
    apart = convert(*rows)
    assert apart.conditions == (str(WARM), str(YPD), str(SALT))
    assert apart.rows.condition.tolist() == [2, 0, 0, 1]
    pooled = convert(*rows, environments="pooled")
    assert (pooled.conditions, set(pooled.rows.condition)) == (("pooled",), {0})
    chosen = convert(*rows, environments="one", environment=str(SALT))
    assert (chosen.conditions, len(chosen.rows), set(chosen.rows.condition)) == ((str(SALT),), 1, {0})
    assert report(chosen, "environments").dropped == {"measured in another environment": 3}
    with pytest.raises(ConfigError, match="no measurement was made in environment 'ice'"):
        convert(*rows, environments="one", environment="ice")


def test_sd_from_the_standard_error() -> None:
    rows = (one("G1", sd=0.3, se=9, n=4), one("G2", se=0.1, n=4), one("G3", se=0.1), one("G4", n=4))
    given = convert(*rows)
    np.testing.assert_array_equal(given.rows.sd, [0.3, math.nan, math.nan, math.nan])
    derived = convert(*rows, sd="derived")
    np.testing.assert_array_equal(derived.rows.sd, [0.3, 0.2, math.nan, math.nan])
    assert report(derived, "sd").noted == {"sd derived from standard error and number of replicates": 1}


def test_doses_and_alleles_tell_mutants_apart() -> None:
    conversion = convert(
        one(Perturbation(gene="G1", dose=2)),
        one("G1"),
        one(Perturbation(gene="G1", dose=1)),
        one(sensitive("G1", "b")),
        one(sensitive("G1", "a")),
        one(Perturbation(gene="G1", kind=PerturbationKind.REDUCED_EXPRESSION, allele="a")),
    )
    np.testing.assert_array_equal(conversion.doses, [1, 2, math.nan])
    assert conversion.rows.dose.tolist() == [1, 2, 0, 2, 2, 2]
    assert conversion.rows.mutant.tolist() == [1, 2, 0, 3, 3, 3]
    assert conversion.rows.identity.tolist() == [1, 2, 0, 5, 4, 3]
