from __future__ import annotations

import math

import numpy as np
import pytest

from tests.datasets.stages.made import EPSILON, ORGANISM, SALT, WARM, YPD, measured, one, sensitive
from wildtype.datasets.records import Measurement, Perturbation, PerturbationKind
from wildtype.datasets.stages.convert import Conversion
from wildtype.datasets.stages.policies import Policies
from wildtype.datasets.stages.report import StageReport
from wildtype.errors import ConfigError
from wildtype.mutants import Kind


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
