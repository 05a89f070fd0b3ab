"""Further datasets of yeast: deletions of many genes in many drugs, calls, and traits of single deletions.

What a screen measured in several environments or as several traits becomes one phenotype each, so that every
model and baseline predicts them side by side; of strains of one genotype the mean is the label.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from wildtype.datasets.background import Background
from wildtype.datasets.measurements import Measurements, coded
from wildtype.datasets.reading import StageReport
from wildtype.datasets.records import Compound, PhenotypeDefinition
from wildtype.datasets.stages.policies import Policies
from wildtype.datasets.store import Query
from wildtype.errors import DatasetError
from wildtype.sources.yeast.recipe import Recipe, Singles
from wildtype.sources.yeast.screens import celaj2020, kuzmin2018
from wildtype.sources.yeast.screens.growth import GROWTH
from wildtype.sources.yeast.screens.sga_strains import HO
from wildtype.sources.yeast.traits.phenome import PHENOTYPES
from wildtype.sources.yeast.traits.tables import (
    COSTANZO2021,
    JORGENSEN,
    MATTIAZZI,
    MULLEDER,
    VIZEACOUMAR,
    Study,
)

XGA = "yeast-xga-celaj2020"
CALLS = "yeast-calls-kuzmin2018"
CONDITIONS_2021 = "yeast-growth-costanzo2021"
MORPHOLOGY_2020 = "yeast-morphology-mattiazzi2020"
MORPHOLOGY_2010 = "yeast-morphology-vizeacoumar2010"
METABOLOME_2016 = "yeast-metabolome-mulleder2016"
CELL_SIZE_2002 = "yeast-cellsize-jorgensen2002"

CALL = PhenotypeDefinition(
    name="call",
    unit="1 called, 0 background",
    min_order=2,
    strong=0.5,
    description="whether the study called the combination an interaction: a pair by epsilon of either sign, "
    "a triple by negative tau",
)
"""The phenotype of calls."""
_ONE_PHENOTYPE = (
    "pairs and triples are one phenotype, so that every model may learn of a triple from the pairs in it; "
    "pairs are calls of the control screens (query gene and HO with an array)"
)
_ASSUMED = (
    "the study estimates 40 % false negatives and 20 % false positives among its calls. Rows of value 0 are "
    "background, assumed negative and not measured; about 9 % of the grid was never tested, and where the "
    "files hold a part of the list only, calls of the rest are among the background"
)
_GENOTYPES = (
    "labels are means over all strains of one genotype, both mating types: strains of one genotype are never "
    "on two sides of a split; one phenotype per drug"
)
_FAMILY = "16 genes of one family of transporters: a test of high orders, no statement about the genome"
_STRAINS = (
    "two strains of one genotype are said to correlate with r = 0.73 (mean over drugs of the Pearson in "
    "each; 0.18 for colchicine, 0.93 for beauvericin); labels are means, so this is no bound"
)
_SINGLES = "single deletions: split them by gene, so that nothing of a test gene was measured in training"
_LISTED_SIZE = "selected strains only: those whose size differs were listed, so the distribution has a gap"
_NO_REPLICATES = "no replicate measurements: no noise guide"


def by_environment(measurements: Measurements) -> tuple[Measurements, StageReport]:
    """Return measurements with every environment turned into a trait of its phenotype.

    A trait is named by its compounds (with doses, where they are stated), which must tell the environments
    apart; what is left of the environments is common to all.

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


def calls(singles: Singles) -> Recipe:
    """Return the recipe of the calls of 2018 with their background; ``singles`` as in other datasets."""
    study = kuzmin2018.STUDY_OF_CALLS
    return Recipe(
        name=CALLS,
        studies=(study,),
        query=Query().study(study),
        targets=(CALL.name,),
        policies=Policies(neutral=(HO,)),
        step=as_calls,
        background=Background(),
        singles=singles,
        notes=(_ONE_PHENOTYPE,),
        noise=_ASSUMED,
    )


def _traits(name: str, study: Study, *notes: str, **further: Any) -> Recipe:
    """Return the recipe of all traits of single deletions that a study measured."""
    measured = (PHENOTYPES | GROWTH)[study.name].name
    # Features are made of whole tables, which `study.source` names: none may feed predictions of its traits.
    source = " + ".join(sorted({study.source, f"{study.name}:{measured}"}))
    return Recipe(
        name=name,
        studies=(study.name,),
        query=Query().study(study.name).phenotype(measured),
        policies=Policies(environments="pooled"),
        phenotype={"source": source},
        notes=(_SINGLES, *notes),
        noise=_NO_REPLICATES,
        **further,
    )


TASKS = (
    Recipe(
        name=XGA,
        studies=(celaj2020.PUBLISHER.name,),
        query=Query().study(celaj2020.PUBLISHER.name).phenotype(celaj2020.RESISTANCE_TO_DRUG.name),
        uses=(f"measurements of {celaj2020.RESISTANCE_TO_DRUG.name}",),
        step=by_environment,
        notes=(_GENOTYPES, _FAMILY),
        noise=_STRAINS,
    ),
    _traits(CONDITIONS_2021, COSTANZO2021, "one phenotype per condition", step=by_environment),
    _traits(MORPHOLOGY_2020, MATTIAZZI),
    _traits(MORPHOLOGY_2010, VIZEACOUMAR, "traits are in different units and of one strain each"),
    _traits(METABOLOME_2016, MULLEDER),
    _traits(CELL_SIZE_2002, JORGENSEN, _LISTED_SIZE),
)
"""Their recipes."""
