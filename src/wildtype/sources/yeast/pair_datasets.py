"""Datasets of pairs of yeast genes, each a recipe over stored measurements.

Digenic interactions of 2010 (the whole screen, or its stringent list) and 2016, E-MAPs, pairs of DNA-repair
genes in nine conditions, control crosses of a trigenic screen, and a reporter of the unfolded-protein
response in double mutants.

Notes and noise guides are part of a stored dataset: a changed sentence makes a new one.
"""

from __future__ import annotations

from wildtype.datasets import Dataset
from wildtype.datasets.stages.policies import Policies
from wildtype.datasets.store import Query
from wildtype.sources.publisher import Publisher
from wildtype.sources.yeast import facts
from wildtype.sources.yeast.dataset_steps import by_environment
from wildtype.sources.yeast.recipe import UNCHOSEN, Fact, GridSource, Recipe, Singles
from wildtype.sources.yeast.screens import (
    costanzo2010,
    costanzo2016,
    diazmejia2018,
    emap,
    jonikas2009,
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
from wildtype.sources.yeast.screens.trigenic_table import ENVIRONMENT, TRIGENIC_EPSILON
from wildtype.sources.yeast.strain_datasets import SCREEN_2016, SINGLES_2016

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
SCREEN_2010 = costanzo2010.PUBLISHER.name
PAIRS_2016 = costanzo2016.DCELL.name
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
        singles=SINGLES_2016,
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
        singles=SINGLES_2016,
        reserved=_RESERVED,
        notes=(_S_SCORES, *notes, facts.allele_kinds, facts.row_counts),
        noise=noise,
    )


def _triple_mutants(dataset: Dataset) -> str:
    """Return how many crosses of the tables are of a double-mutant query."""
    count = sum(stage.dropped.get(UNCHOSEN, 0) for stage in dataset.stages)
    return f"crosses whose query lacks two genes are triple mutants and no rows here: {count:,}"


PAIRS = (
    Recipe(
        name=DIGENIC_2010,
        studies=(SCREEN_2010,),
        query=_SIGNIFICANT,
        uses=(EPSILON.name,),
        targets=(EPSILON.name,),
        phenotype={"strong": _INTERMEDIATE.positive},
        singles=SINGLES_2016,
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
        singles=SINGLES_2016,
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
        singles=SINGLES_2016,
        grid=GridSource(_CROSSES_2016, _RESERVED, dense=True),
        tables=costanzo2016.TABLES,
        phenotype={"strong": costanzo2016.STRONG},
        notes=(facts.every_cross, _UNKNOWN, facts.allele_kinds, facts.row_counts),
        noise=facts.NO_REPLICATES,
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
        singles=SINGLES_2016,
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
            facts.OWN_SINGLES,
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
)
"""Recipes of pairs."""
