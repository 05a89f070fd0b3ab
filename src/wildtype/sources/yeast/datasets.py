"""The yeast datasets by name, each a recipe over stored measurements.

Digenic interactions of 2010 (the whole screen, or its stringent list) and 2016, E-MAPs, pairs of DNA-repair
genes in nine conditions, control crosses of a trigenic screen, a reporter of the unfolded-protein response in
double mutants, single-mutant fitness of 2016, tau of triple mutants with their doubles and singles; and
deletions of many genes in many drugs, calls, and traits of single deletions. A screen in several environments
or of several traits becomes one phenotype each, so that every model and baseline predicts them side by side;
of strains of one genotype the mean is the label.

Notes and noise guides are part of a stored dataset: a changed sentence makes a new one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from wildtype.datasets import Dataset
from wildtype.datasets.background import Background
from wildtype.datasets.measurements import Measurements, coded
from wildtype.datasets.reading import StageReport
from wildtype.datasets.records import Compound, PerturbationKind, PhenotypeDefinition
from wildtype.datasets.stages.policies import Policies
from wildtype.datasets.store import Query, Store
from wildtype.errors import DatasetError, MissingFileError
from wildtype.mutants.ragged import ranks
from wildtype.mutants.selection import Selection
from wildtype.organism import GeneIndex, Organism
from wildtype.sources.publisher import Publisher
from wildtype.sources.yeast import facts
from wildtype.sources.yeast.readers import ingest
from wildtype.sources.yeast.recipe import UNCHOSEN, Fact, GridSource, Recipe, Singles
from wildtype.sources.yeast.screens import (
    celaj2020,
    costanzo2010,
    costanzo2016,
    diazmejia2018,
    emap,
    jonikas2009,
    kuzmin2018,
    kuzmin2020,
    tau_sga,
)
from wildtype.sources.yeast.screens.parts import EPSILON, FITNESS
from wildtype.sources.yeast.screens.screen_grid import (
    LARGEST_P,
    LINKED_KB,
    UNLISTED_MEAN,
    UNLISTED_SD,
    selection_of,
    without_suppressors,
)
from wildtype.sources.yeast.screens.sga_strains import HO
from wildtype.sources.yeast.screens.single_fitness import SINGLE_FITNESS
from wildtype.sources.yeast.screens.trigenic_table import ENVIRONMENT, TAU, TRIGENIC_EPSILON
from wildtype.sources.yeast.traits.phenome import (
    COSTANZO2021,
    JORGENSEN,
    MATTIAZZI,
    MULLEDER,
    VIZEACOUMAR,
    Study,
)

DIGENIC_2010 = "yeast-digenic-costanzo2010"
STRINGENT_2010 = "yeast-digenic-costanzo2010-stringent"
DIGENIC_2016 = "yeast-digenic-costanzo2016"
FULL_2016 = "yeast-digenic-costanzo2016-full"
REPAIR_2016, CHROMATIN_2016 = "yeast-dcell-repair", "yeast-dcell-chromatin"
COLLINS_2007 = "yeast-emap-collins2007"
SCHULDINER_2005 = "yeast-emap-schuldiner2005"
GIS_2018 = "yeast-gis-diazmejia2018"
TAU_SGA = "yeast-digenic-tausga"
UPR_2009 = "yeast-upr-jonikas2009"
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
SCREEN_2010, SCREEN_2016, PAIRS_2016 = (
    publisher.name for publisher in (costanzo2010.PUBLISHER, costanzo2016.PUBLISHER, costanzo2016.DCELL)
)
SCREENS_TRIGENIC = (kuzmin2018.PUBLISHER.name, kuzmin2020.PUBLISHER.name)
REPEATED = "the number of 30 °C repeated at 26 °C"

_ALL_SCORES = Query().study(SCREEN_2010).phenotype(EPSILON.name)
_INTERMEDIATE, _STRINGENT = costanzo2010.INTERMEDIATE_CUT, costanzo2010.STRINGENT_CUT
_SIGNIFICANT = Query(  # as the publisher cut the raw table, so that it and the list give the same dataset
    (
        *_ALL_SCORES.conditions,
        f"p <= {LARGEST_P}e0",
        f"(value <= {_INTERMEDIATE.negative}e0 OR value >= {_INTERMEDIATE.positive}e0)",
    )
)
_LISTED = Query(
    (
        *Query().study(costanzo2010.STUDY_OF_STRINGENT).phenotype(EPSILON.name).p_below(0.05).conditions,
        f"(value <= {_STRINGENT.negative}e0 OR value >= {_STRINGENT.positive}e0)",
    )
)
_CROSSES_2016 = Query().study(SCREEN_2016).phenotype(EPSILON.name)
_RESERVED = Query().study(costanzo2010.STUDY_OF_RESERVED).phenotype(costanzo2010.RESERVED.name)
_UNSELECTED = Query().study(PAIRS_2016).phenotype(EPSILON.name)
_SINGLE = Query().study(SCREEN_2016).phenotype(FITNESS.name).order(1)
_SINGLES_2016 = Singles((SCREEN_2016,), _SINGLE.environment(temperature=30), SINGLE_FITNESS)
_OWN_SINGLES = (
    "the study's own fitness of single mutants (arrays and control queries): of a deletion where there is "
    "one, else of the reduced alleles"
)
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
_NOT_LISTED = (
    "crosses that are not listed were measured and found small or not significant: in the screen of 2016 "
    f"they have mean {UNLISTED_MEAN:g} and sd {UNLISTED_SD:g}, and 5 % of them are below -0.08"
)
_UNKNOWN = (
    f"crosses of genes within {LINKED_KB:g} kb on one chromosome are unknown, and so are crosses that a file "
    "of the folder sets aside"
)
_STRAINS_OF_GRID = "an unlisted cross of a strain with a reduced allele says little about the deletion"
_S_SCORES = (
    "unselected: every scored pair is a row; an S-score has the scale of a t statistic and is no epsilon"
)
_EMAP_2007 = (
    "studies of one pair agree roughly: with epsilon of Costanzo 2010 (intermediate list) r = 0.61 on 10,241 "
    "pairs, with S-scores of Schuldiner 2005 r = 0.71 on 365 pairs (published files; alleles and conditions "
    "differ: a guide, no bound)"
)
_EMAP_2005 = (
    "studies of one pair agree roughly: with epsilon of Costanzo 2010 (intermediate list) r = 0.62 on 2,542 "
    "pairs, with S-scores of Collins 2007 r = 0.71 on 365 pairs (published files; alleles and conditions "
    "differ: a guide, no bound)"
)
_GIS_NOISE = (
    "the two conditions without a drug agree by r = 0.98 on all pairs, and by 0.55 on the 369 with a neutral "
    "gene, whose epsilon is near 0; the standard error of the reference is 0.029 in the median. Other "
    "studies of one pair agree with it by r = 0.80 (unselected epsilon of Costanzo 2016, 137 pairs) and 0.78 "
    "(S-scores of Collins 2007, 223 pairs): a guide, no bound"
)
_TAU_SGA_NOISE = (
    "no replicate measurements; the standard deviation of a row is the publisher's, over its colonies. 24 of "
    "2,968 scores are beyond 0.08 with p < 0.05, and the others are mostly noise: with epsilon of Costanzo "
    "2010 r = 0.69 on 38 listed pairs, with unselected scores of Costanzo 2016 and Collins 2007 r = -0.04 on "
    "50 pairs and -0.08 on 130 (a guide, no bound)"
)
_UPR_NOISE = (
    "levels have no standard deviation; how many measurements are behind each (1 to 28) is in the store. "
    "Scores of growth are another phenotype: S-scores of Schuldiner 2005 agree with UPR interaction by "
    "r = 0.34 on 4,417 pairs"
)
_NO_ALLELES = (
    "the table gives no alleles: a gene on the list of essential genes is taken to be a DAmP allele "
    "(kind reduced), the others are deletions"
)
_NINE_CONDITIONS = (
    "epsilon (the publisher's GIS) in nine conditions, one phenotype each; reference is the condition "
    "without any compound (NoDrug), and DMSO the other one without a drug; compounds by the table's "
    "abbreviations, doses not stated"
)
_NEUTRAL_PAIRS = (
    "neutral genes of the study, HO among them, are deletions like the others: a pair with one is a row, "
    "and its epsilon is near 0"
)
_GIS_ERRORS = "the publisher's standard errors are in the store; rows have no standard deviation"
_CONTROL_CROSSES = (
    "crosses of three control queries (a gene and ho) with the arrays of the trigenic screens: ho is no "
    "perturbed gene, so a row is a pair of one of three genes with an array's"
)
_NO_QUERY_FITNESS = (
    "the expected fitness of these crosses is the array's alone: the query's own effect is in no epsilon"
)
_REPORTER = "a fluorescent reporter, no growth: no number here is a fitness or an epsilon of fitness"
_HILL = (
    "UPR interaction is the level of the double mutant less the one that the publisher's Hill model expects; "
    "UPR reporter is the level itself, of single mutants (crosses with the wild-type control) too"
)
_UPR_ALLELES = (
    "the file does not say how essential genes were changed: one on the list of essential genes is reduced, "
    "as are named alleles; the others are deletions"
)
_NO_REPLICATES = "no replicate measurements: no noise guide"


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


def _trigenic(name: str, studies: tuple[str, ...], *notes: str, selection: Selection | None = None) -> Recipe:
    fitness = Query().study(*studies).phenotype(FITNESS.name).order(1, 2)  # a control query is a gene and HO
    return Recipe(
        name=name,
        studies=studies,
        query=Query().study(*studies),
        targets=(TAU.name,),
        policies=Policies(neutral=(HO,)),
        phenotype={} if selection is None else {"selection": selection},
        singles=Singles(studies, fitness, _OWN_SINGLES),
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
        noise=_NO_REPLICATES,
        **further,
    )


def _dcell(name: str, terms: tuple[str, ...], genes: Fact) -> Recipe:
    """Return the recipe of the unselected pairs of 2016 among the genes of some GO terms."""
    return Recipe(
        name=name,
        studies=(PAIRS_2016,),
        query=_UNSELECTED if terms == costanzo2016.TERMS else _UNSELECTED.replicate(*terms),
        uses=(EPSILON.name,),
        targets=(EPSILON.name,),
        # the scores are those of the screen, and features made from it give them away
        phenotype={"strong": costanzo2016.STRONG, "source": f"{SCREEN_2016}:{EPSILON.name}"},
        singles=_SINGLES_2016,
        notes=(
            "not thresholded: pairs stand here whether or not they interact",
            genes,
            facts.kinds_without_strains,
            facts.row_counts,
        ),
        noise=facts.noise_2016,
        compared=_LISTED,
    )


def _emap(publisher: Publisher, name: str, noise: str, *notes: str) -> Recipe:
    """Return the recipe of an E-MAP, whose scores are of its strains."""
    return Recipe(
        name=name,
        studies=(publisher.name,),
        query=Query().study(publisher.name),
        uses=(emap.S_SCORE.name,),
        targets=(emap.S_SCORE.name,),
        phenotype={"strong_positive": emap.STRONG_POSITIVE},
        singles=_SINGLES_2016,
        reserved=_RESERVED,
        notes=(_S_SCORES, *notes, facts.allele_kinds, facts.row_counts),
        noise=noise,
    )


def _triple_mutants(dataset: Dataset) -> str:
    """Return how many crosses of the tables are of a double-mutant query."""
    count = sum(stage.dropped.get(UNCHOSEN, 0) for stage in dataset.stages)
    return f"crosses whose query lacks two genes are triple mutants and no rows here: {count:,}"


_ALL = (
    Recipe(
        name=DIGENIC_2010,
        studies=(SCREEN_2010,),
        query=_SIGNIFICANT,
        uses=(EPSILON.name,),
        targets=(EPSILON.name,),
        phenotype={"strong": _INTERMEDIATE.positive},
        singles=_SINGLES_2016,
        grid=GridSource(_ALL_SCORES, _RESERVED),
        notes=(
            facts.whole_screen,
            _NOT_LISTED,
            _UNKNOWN,
            _STRAINS_OF_GRID,
            facts.sign_share,
            facts.allele_kinds,
            facts.row_counts,
        ),
        noise=facts.noise_2010,
        compared=_UNSELECTED,
    ),
    Recipe(
        name=STRINGENT_2010,
        studies=(costanzo2010.STUDY_OF_STRINGENT,),
        query=_LISTED,
        uses=(EPSILON.name,),
        targets=(EPSILON.name,),
        # the scores are those of the screen, and features made from it give them away
        phenotype={
            "strong": _STRINGENT.positive,
            "source": f"{SCREEN_2010}:{EPSILON.name}",
            "selection": selection_of(_STRINGENT),
        },
        singles=_SINGLES_2016,
        reserved=_RESERVED,
        notes=(
            f"thresholded by the publisher: only significant pairs, epsilon <= {_STRINGENT.negative} or >= "
            f"{_STRINGENT.positive}, p < 0.05; a pair that is not listed was measured, or was not crossed: "
            f"{DIGENIC_2010} tells them apart",
            facts.linked_rows,
            facts.sign_share,
            facts.allele_kinds,
            facts.row_counts,
        ),
        noise=facts.noise_2010,
        compared=_UNSELECTED,
    ),
    Recipe(
        name=FULL_2016,
        studies=(SCREEN_2016,),
        query=_CROSSES_2016,
        uses=(EPSILON.name,),
        targets=(EPSILON.name,),
        policies=Policies(environments="pooled"),  # of one cross at 26 and at 30 °C the mean is the label
        step=without_suppressors,
        singles=_SINGLES_2016,
        grid=GridSource(_CROSSES_2016, _RESERVED, dense=True),
        tables=costanzo2016.TABLES,
        phenotype={"strong": costanzo2016.STRONG},
        notes=(facts.every_cross, _UNKNOWN, facts.allele_kinds, facts.row_counts),
        noise=_NO_REPLICATES,
    ),
    _dcell(DIGENIC_2016, costanzo2016.TERMS, facts.go_genes),
    _dcell(REPAIR_2016, (costanzo2016.REPAIR,), "pairs of genes of GO:0006281 (DNA repair)"),
    _dcell(CHROMATIN_2016, (costanzo2016.CHROMATIN,), "pairs of genes of GO:0000790 (nuclear chromatin)"),
    _emap(emap.COLLINS, COLLINS_2007, _EMAP_2007),
    _emap(emap.SCHULDINER, SCHULDINER_2005, _EMAP_2005, _NO_ALLELES),
    Recipe(
        name=GIS_2018,
        studies=(diazmejia2018.PUBLISHER.name,),
        query=Query().study(diazmejia2018.PUBLISHER.name).phenotype(diazmejia2018.EPSILON.name),
        # What others look at, and are tested on, is the first: the condition without any compound.
        targets=tuple(
            f"{diazmejia2018.EPSILON.name}:{'reference' if condition == 'NoDrug' else condition}"
            for condition in diazmejia2018.CONDITIONS
        ),
        step=by_environment,
        singles=_SINGLES_2016,
        reserved=_RESERVED,
        notes=(_NINE_CONDITIONS, _NEUTRAL_PAIRS, _GIS_ERRORS, facts.allele_kinds, facts.row_counts),
        noise=_GIS_NOISE,
    ),
    Recipe(
        name=TAU_SGA,
        studies=(tau_sga.PUBLISHER.name,),
        query=Query().study(tau_sga.PUBLISHER.name).phenotype(EPSILON.name),
        uses=(EPSILON.name, TRIGENIC_EPSILON.name),  # the triple mutants, to count them
        targets=(EPSILON.name,),
        policies=Policies(neutral=(HO,)),
        phenotype={"strong": costanzo2016.STRONG},  # the cut-off of the same laboratories
        singles=Singles(
            (tau_sga.PUBLISHER.name,),
            Query()
            .study(tau_sga.PUBLISHER.name)
            .phenotype(FITNESS.name)
            .order(1, 2)
            .environment(medium=ENVIRONMENT.medium),
            _OWN_SINGLES,
        ),
        reserved=_RESERVED,
        notes=(
            _CONTROL_CROSSES,
            _triple_mutants,
            _NO_QUERY_FITNESS,
            facts.linked_rows,
            facts.allele_kinds,
            facts.row_counts,
        ),
        noise=_TAU_SGA_NOISE,
    ),
    Recipe(
        name=UPR_2009,
        studies=(jonikas2009.PUBLISHER.name,),
        query=Query().study(jonikas2009.PUBLISHER.name),
        uses=(jonikas2009.UPR.name, jonikas2009.UPR_INTERACTION.name),
        targets=(jonikas2009.UPR_INTERACTION.name, jonikas2009.UPR.name),
        reserved=_RESERVED,
        notes=(_REPORTER, _HILL, _UPR_ALLELES, facts.allele_kinds, facts.row_counts),
        noise=_UPR_NOISE,
    ),
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
        singles=_SINGLES_2016,
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
RECIPES: Mapping[str, Recipe] = {recipe.name: recipe for recipe in _ALL}
"""Every dataset by name."""
OPTIONAL = (costanzo2010.STUDY_OF_RESERVED,)
"""Studies that a dataset takes into account where the folder has them."""


def ingest_needed(store: Store, folder: str | Path, genes: GeneIndex) -> dict[str, str]:
    """Read every study that a dataset needs, or compares with, from a folder into a store.

    Parameters
    ----------
    store : Store
        Open for writing; a study that it holds already is replaced.
    folder : path
        Publishers' files.
    genes : GeneIndex
        Names are resolved to its systematic names.

    Returns
    -------
    dict of str to str
        The studies whose files are not there, and which file that is.

    Raises
    ------
    SourceError
        If a file is damaged or not in the published layout.
    """
    absent = {}
    needed = dict.fromkeys(study for recipe in RECIPES.values() for study in recipe.needed)
    for study in (*needed, *OPTIONAL):
        try:
            for _ in ingest(store, folder, genes, [study]):
                pass
        except MissingFileError as error:
            if study in needed:
                absent[study] = str(error)
    return absent


def build_dataset(name: str, store: Store, organism: Organism, *, alleles: str = "averaged") -> Dataset:
    """Build a yeast dataset from stored measurements, or take it from the cache.

    Parameters
    ----------
    name : str
        One of ``RECIPES``.
    store : Store
        Holds the studies that the recipe needs.
    organism : Organism
        The result of ``build_organism``; positions refer to its genes.
    alleles : {"averaged", "apart"}
        How several alleles of one gene are treated.

    Raises
    ------
    DatasetError
        If there is no such dataset, the store lacks a study, or no row is left.
    ConfigError
        If the allele policy is unknown.
    OutputError
        If the cache cannot be written.
    """
    if name not in RECIPES:
        raise DatasetError(f"there is no yeast dataset {name!r}; known datasets: {', '.join(RECIPES)}")
    return RECIPES[name].build(store, organism, alleles=alleles)
