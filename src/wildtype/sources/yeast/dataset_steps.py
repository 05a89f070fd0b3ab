"""Steps of single datasets: what is done to their measurements before the stages that all datasets share."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from wildtype.datasets.measurements import Measurements, coded
from wildtype.datasets.reading import StageReport
from wildtype.datasets.records import Compound, PerturbationKind, PhenotypeDefinition
from wildtype.errors import DatasetError
from wildtype.mutants.ragged import ranks

REPEATED = "the number of 30 °C repeated at 26 °C"
CALL = PhenotypeDefinition(
    name="call",
    unit="1 called, 0 background",
    min_order=2,
    strong=0.5,
    description="whether the study called the combination an interaction: a pair by epsilon of either sign, "
    "a triple by negative tau",
)
"""The phenotype of calls."""


def once_per_strain(measurements: Measurements) -> tuple[Measurements, StageReport]:
    """Return fitness of strains without the 26 °C numbers that repeat the strain's 30 °C number.

    The table gives the number of 30 °C (value and sd alike) at 26 °C too for all but temperature-sensitive
    strains: it was measured once. Strains with a suppressor are left as they are, for the stages to drop.
    """
    m = measurements
    temperature = np.array([environment.temperature for environment in m.environments])[m.environment]
    suppressed = np.zeros(len(m), bool)
    suppressed[m.row[m.kind == PerturbationKind.SUPPRESSOR]] = True
    number = ranks(m.replicate, m.value, m.sd)  # equal where strain (the replicate), value and sd are
    again = (temperature == 26) & ~suppressed & np.isin(number, number[temperature == 30])
    # Only at 26 °C, and only beside the equal number at 30 °C of the same strain: nothing unique is lost.
    left = m.take(~again)
    merged = {REPEATED: int(again.sum())}
    return left, StageReport("raw", "temperatures", "once per strain", len(m), len(left), merged=merged)


def by_environment(measurements: Measurements) -> tuple[Measurements, StageReport]:
    """Return measurements with every environment turned into a trait of its phenotype.

    A trait is named by its compounds (with doses, where they are stated). No two environments may have the
    same compounds; the rest of the environment must be common to all.

    Raises
    ------
    DatasetError
        If environments have the same compounds, or differ in medium or temperature too.
    """
    m = measurements
    used = [m.environments[e] for e in np.unique(m.environment)]
    names = {e.id: ", ".join(map(_spelled, e.compounds)) or "reference" for e in used}
    bare = {e.id: e for e in (e.model_copy(update={"compounds": ()}) for e in used)}
    if len(set(names.values())) < len(names) or len(bare) > 1:
        raise DatasetError(
            f"environments of {m.studies[0].name} cannot be phenotypes: expected all to differ in compounds "
            f"and in nothing else, received {'; '.join(map(str, used))}"
        )
    # Codes of traits follow their names, so that the order of phenotypes does not depend on the file.
    traits, code = coded([names.get(e.id, "") for e in m.environments])
    turned = replace(
        m,
        environments=tuple(bare.values()),
        environment=np.zeros(len(m), np.int64),
        phenotypes=tuple(p.model_copy(update={"level": "trait"}) for p in m.phenotypes),
        traits=traits,
        trait=code[m.environment],
    )
    noted = {"environment that became part of the phenotype": len(m)}
    return turned, StageReport("raw", "environments", "a phenotype each", len(m), len(m), noted=noted)


def _spelled(compound: Compound) -> str:
    dose = "" if np.isnan(compound.dose) else f" {compound.dose:g} {compound.unit}".rstrip()
    return compound.name + dose


def as_calls(measurements: Measurements) -> tuple[Measurements, StageReport]:
    """Return listed calls, scores or signs of pairs and triples, as one phenotype that is 1 for all."""
    m = measurements
    called = replace(
        m,
        phenotypes=(CALL,),
        phenotype=np.zeros(len(m), np.int64),
        value=np.ones(len(m)),
        sd=np.full(len(m), np.nan),
        se=np.full(len(m), np.nan),
        p=np.full(len(m), np.nan),
    )
    return called, StageReport("raw", "calls", "1 for every listed one", len(m), len(m))
