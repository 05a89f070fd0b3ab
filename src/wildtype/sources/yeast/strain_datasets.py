"""Datasets of yeast strains with one changed gene, three or many, each a recipe over stored measurements.

Single-mutant fitness of 2016, tau of triple mutants with their doubles and singles, calls, deletions of many
genes in many drugs, and traits of single deletions. A screen in several environments or of several traits
becomes one phenotype each, so that every model and baseline predicts them side by side; of strains of one
genotype the mean is the label.

Notes and noise guides are part of a stored dataset: a changed sentence makes a new one.
"""

from __future__ import annotations

from typing import Any

from wildtype.datasets.background import Background
from wildtype.datasets.stages.policies import Policies
from wildtype.datasets.store import Query
from wildtype.mutants.selection import Selection
from wildtype.sources.yeast import facts
from wildtype.sources.yeast.dataset_steps import CALL, as_calls, by_environment, once_per_strain
from wildtype.sources.yeast.recipe import Recipe, Singles
from wildtype.sources.yeast.screens import celaj2020, costanzo2016, kuzmin2018, kuzmin2020
from wildtype.sources.yeast.screens.parts import FITNESS
from wildtype.sources.yeast.screens.sga_strains import HO
from wildtype.sources.yeast.screens.single_fitness import SINGLE_FITNESS
from wildtype.sources.yeast.screens.trigenic_table import TAU
from wildtype.sources.yeast.traits.phenome import (
    COSTANZO2021,
    JORGENSEN,
    MATTIAZZI,
    MULLEDER,
    VIZEACOUMAR,
    Study,
)

SCREEN_2016 = costanzo2016.PUBLISHER.name
FITNESS_2016 = "yeast-fitness-costanzo2016"
TRIGENIC_2018 = "yeast-trigenic-kuzmin2018"
TRIGENIC = "yeast-trigenic-kuzmin"
XGA = "yeast-xga-celaj2020"
CALLS = "yeast-calls-kuzmin2018"
CONDITIONS_2021 = "yeast-growth-costanzo2021"
MORPHOLOGY_2020 = "yeast-morphology-mattiazzi2020"
MORPHOLOGY_2010 = "yeast-morphology-vizeacoumar2010"
METABOLOME_2016 = "yeast-metabolome-mulleder2016"
CELL_SIZE_2002 = "yeast-cellsize-jorgensen2002"
SCREENS_TRIGENIC = (kuzmin2018.PUBLISHER.name, kuzmin2020.PUBLISHER.name)
_SINGLE = Query().study(SCREEN_2016).phenotype(FITNESS.name).order(1)
SINGLES_2016 = Singles((SCREEN_2016,), _SINGLE.environment(temperature=30), SINGLE_FITNESS)
_ONE_SIDED = (
    "tau of the 2018 study is one-sided: its public table has no trigenic score above 0, so a correlation on "
    "it says nothing about positive interactions"
)
_TWO_SIDED = "tau of the 2020 study has both signs, and is of pairs of paralogs only: the two studies differ"
_PUBLISHED = (
    "figures of others to compare with (tau, the publishers' full files, test Pearson r): random split, "
    "ridge 0.400, embedding MLP 0.426, original transformer 0.4455; query-pair split, ridge 0.185, above the "
    "transformer's 0.139"
)
_TRIGENIC_NOISE = (
    "replicates of these screens are said to correlate with r = 0.49 to 0.59: a rough guide from the "
    "literature, no bound, and not measured on these rows"
)
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


def _trigenic(name: str, studies: tuple[str, ...], *notes: str, selection: Selection | None = None) -> Recipe:
    fitness = Query().study(*studies).phenotype(FITNESS.name).order(1, 2)  # a control query is a gene and HO
    return Recipe(
        name=name,
        studies=studies,
        query=Query().study(*studies),
        targets=(TAU.name,),
        policies=Policies(neutral=(HO,)),
        phenotype={} if selection is None else {"selection": selection},
        singles=Singles(studies, fitness, facts.OWN_SINGLES),
        notes=(*notes, _PUBLISHED),
        noise=_TRIGENIC_NOISE,
    )


def _traits(name: str, study: Study, *notes: str, **further: Any) -> Recipe:
    """Return the recipe of all traits of single deletions that a study measured."""
    measured = study.phenotype.name
    # Features are made of whole tables, which `study.source` names: none may feed predictions of its traits.
    source = " + ".join(sorted({study.source, f"{study.name}:{measured}"}))
    return Recipe(
        name=name,
        studies=(study.name,),
        query=Query().study(study.name).phenotype(measured),
        policies=Policies(environments="pooled"),
        phenotype={"source": source},
        notes=(_SINGLES, *notes),
        noise=facts.NO_REPLICATES,
        **further,
    )


STRAINS = (
    Recipe(
        name=FITNESS_2016,
        studies=(SCREEN_2016,),
        query=_SINGLE,
        uses=("fitness at 30 °C", "fitness at 26 °C"),
        targets=(FITNESS.name,),
        step=once_per_strain,
        notes=(
            "26 °C rows are temperature-sensitive alleles only: for deletions and DAmP alleles the table "
            "repeats the 30 °C number",
            lambda dataset: facts.row_counts(dataset) + "; a row is one strain at one temperature",
        ),
        noise="the standard deviations are over control screens of one strain; there is no replicate study",
    ),
    # The table lists no positive score; that of 2020 lists both signs, so that both together have no rule.
    _trigenic(TRIGENIC_2018, SCREENS_TRIGENIC[:1], _ONE_SIDED, selection=Selection(negative=0.0)),
    _trigenic(TRIGENIC, SCREENS_TRIGENIC, _ONE_SIDED, _TWO_SIDED),
    Recipe(
        name=CALLS,
        studies=(kuzmin2018.STUDY_OF_CALLS,),
        query=Query().study(kuzmin2018.STUDY_OF_CALLS),
        targets=(CALL.name,),
        policies=Policies(neutral=(HO,)),
        step=as_calls,
        background=Background(),
        singles=SINGLES_2016,
        notes=(_ONE_PHENOTYPE,),
        noise=_ASSUMED,
    ),
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
"""Recipes of strains with one changed gene, three or many."""
