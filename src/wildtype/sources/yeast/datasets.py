"""The yeast datasets by name, each a recipe over stored measurements.

Digenic interactions of 2010 and 2016, single-mutant fitness of 2016, tau of triple mutants with their doubles
and singles, and those of `wildtype.sources.yeast.tasks`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from wildtype.datasets import Dataset
from wildtype.datasets.measurements import Measurements
from wildtype.datasets.reading import StageReport
from wildtype.datasets.records import PerturbationKind
from wildtype.datasets.stages.policies import Policies
from wildtype.datasets.store import Query, Store
from wildtype.errors import DatasetError, MissingFileError
from wildtype.mutants import Kind
from wildtype.mutants.ragged import ranks
from wildtype.organism import GeneIndex, Organism
from wildtype.sources.yeast.agreement import between_datasets, between_rows
from wildtype.sources.yeast.measured import ingest
from wildtype.sources.yeast.recipe import Recipe, Singles
from wildtype.sources.yeast.screens import costanzo2010, costanzo2016, kuzmin2018, kuzmin2020
from wildtype.sources.yeast.screens.sga_strains import HO
from wildtype.sources.yeast.screens.single_fitness import SINGLE_FITNESS
from wildtype.sources.yeast.screens.trigenic_table import EPSILON, FITNESS, TAU
from wildtype.sources.yeast.tasks import TASKS, calls

DIGENIC_2010 = "yeast-digenic-costanzo2010"
DIGENIC_2016 = "yeast-digenic-costanzo2016"
FITNESS_2016 = "yeast-fitness-costanzo2016"
TRIGENIC_2018 = "yeast-trigenic-kuzmin2018"
TRIGENIC = "yeast-trigenic-kuzmin"
SCREEN_2010, SCREEN_2016, PAIRS_2016 = (
    publisher.name for publisher in (costanzo2010.PUBLISHER, costanzo2016.PUBLISHER, costanzo2016.DCELL)
)
SCREENS_TRIGENIC = (kuzmin2018.PUBLISHER.name, kuzmin2020.PUBLISHER.name)
REPEATED = "the number of 30 °C repeated at 26 °C"

_NEGATIVE, _POSITIVE = costanzo2010.NEGATIVE, costanzo2010.POSITIVE
_LISTED = Query(  # as the publisher cut the raw table, so that either table gives the same dataset
    (
        *Query().study(SCREEN_2010).phenotype(EPSILON.name).p_below(0.05).conditions,
        f"(value <= {_NEGATIVE}e0 OR value >= {_POSITIVE}e0)",
    )
)
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


def _rows(dataset: Dataset) -> str:
    """Return how many rows the files have, as the first stage counted them."""
    first = dataset.stages[0]
    if first.stage != "files":
        return "the store does not say how many rows the files have"
    renamed = sum(first.noted.values())
    return f"{first.rows_in:,} rows read; {renamed:,} of the kept ones name an ORF by an older name of SGD"


def _signs(dataset: Dataset) -> str:
    return (
        f"{100 * float((dataset.table.value > 0).mean()):.1f} % of the rows are positive: part of any "
        "correlation is telling the signs apart, so read AUROC of the sign and the correlation within "
        "negatives beside it"
    )


def _kinds(dataset: Dataset) -> str:
    table, genes = dataset.table, dataset.organism.genes
    reduced = table.kind == Kind.REDUCED
    essential = dataset.organism.essential
    surprising = ~reduced & (np.zeros(len(genes), bool) if essential is None else essential)[table.gene]
    return (
        f"{np.unique(table.row[reduced]).size:,} rows have a temperature-sensitive or DAmP allele "
        f"(kind reduced); {np.unique(table.row[surprising]).size:,} rows delete, by the strain's name, a "
        "gene that the deletion project listed as essential (kind absent)"
    )


def _genes(dataset: Dataset) -> str:
    return (
        f"{len(dataset.measured_genes())} genes, all of GO:0006281 (DNA repair) or GO:0000790 (nuclear "
        "chromatin)"
    )


def _no_strains(dataset: Dataset) -> str:
    reduced = np.unique(dataset.table.gene[dataset.table.kind == Kind.REDUCED]).size
    return (
        "the files give no strains: a gene is reduced if it is essential and the study has no deletion "
        f"strain of it ({reduced} genes), else absent; no standard deviations"
    )


def _agreement(dataset: Dataset, other: Dataset | None, year: str) -> str:
    r, count = (math.nan, 0) if other is None else between_datasets(dataset, other)
    if math.isnan(r):
        return ""
    return (
        f"against the {year} release r = {r:.2f} on {count:,} shared pairs (the 2016 release probably "
        "re-scores part of the 2010 screens, and 2010 lists significant scores only)"
    )


def _noise_2010(apart: Dataset, other: Dataset | None) -> str:
    r, count = between_rows(apart)
    parts = [_agreement(apart, other, "2016")]
    if not math.isnan(r):
        parts.insert(
            0,
            f"two different alleles or strains of the same gene pair correlate with r = {r:.2f} ({count:,} "
            "comparisons; alleles differ in truth too, and only significant scores are listed: a rough "
            "guide, no bound)",
        )
    return "; ".join(part for part in parts if part)


def _noise_2016(apart: Dataset, other: Dataset | None) -> str:
    return _agreement(apart, other, "2010")


def once_per_strain(measurements: Measurements) -> tuple[Measurements, StageReport]:
    """Return fitness of strains without the 26 °C numbers that repeat the strain's 30 °C number.

    The table gives the number of 30 °C (value and sd alike) at 26 °C too for all but temperature-sensitive
    strains: it was measured once. Strains with a suppressor are left as they are, for the stages to drop.
    """
    m = measurements
    temperature = np.array([environment.temperature for environment in m.environments])[m.environment]
    suppressed = np.zeros(len(m), bool)
    suppressed[m.row[m.kind == PerturbationKind.SUPPRESSOR]] = True
    number = ranks(m.replicate, m.value, m.sd)  # a replicate is a strain
    again = (temperature == 26) & ~suppressed & np.isin(number, number[temperature == 30])
    left = m.take(~again)
    merged = {REPEATED: int(again.sum())}
    return left, StageReport("raw", "temperatures", "once per strain", len(m), len(left), merged=merged)


def _trigenic(name: str, studies: tuple[str, ...], *notes: str) -> Recipe:
    fitness = Query().study(*studies).phenotype(FITNESS.name).order(1, 2)  # a control query is a gene and HO
    return Recipe(
        name=name,
        studies=studies,
        query=Query().study(*studies),
        targets=(TAU.name,),
        policies=Policies(neutral=(HO,)),
        singles=Singles(studies, fitness, _OWN_SINGLES),
        notes=(*notes, _PUBLISHED),
        noise=_TRIGENIC_NOISE,
    )


_ALL = (
    Recipe(
        name=DIGENIC_2010,
        studies=(SCREEN_2010,),
        query=_LISTED,
        uses=(EPSILON.name,),
        targets=(EPSILON.name,),
        phenotype={"strong": _POSITIVE},
        singles=_SINGLES_2016,
        notes=(
            f"thresholded by the publisher: only significant pairs, epsilon <= {_NEGATIVE} or >= "
            f"{_POSITIVE}, p < 0.05; a pair that is not listed was not measured to be zero",
            _signs,
            _kinds,
            _rows,
        ),
        noise=_noise_2010,
        compared=_UNSELECTED,
    ),
    Recipe(
        name=DIGENIC_2016,
        studies=(PAIRS_2016,),
        query=_UNSELECTED,
        uses=(EPSILON.name,),
        targets=(EPSILON.name,),
        # the scores are those of the screen, and features made from it give them away
        phenotype={"strong": costanzo2016.STRONG, "source": f"{SCREEN_2016}:{EPSILON.name}"},
        singles=_SINGLES_2016,
        notes=("not thresholded: pairs stand here whether or not they interact", _genes, _no_strains, _rows),
        noise=_noise_2016,
        compared=_LISTED,
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
            lambda dataset: _rows(dataset) + "; a row is one strain at one temperature",
        ),
        noise="the standard deviations are over control screens of one strain; there is no replicate study",
    ),
    _trigenic(TRIGENIC_2018, SCREENS_TRIGENIC[:1], _ONE_SIDED),
    _trigenic(TRIGENIC, SCREENS_TRIGENIC, _ONE_SIDED, _TWO_SIDED),
    calls(_SINGLES_2016),
    *TASKS,
)
RECIPES: Mapping[str, Recipe] = {recipe.name: recipe for recipe in _ALL}
"""Every dataset by name."""


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
    for study in dict.fromkeys(study for recipe in RECIPES.values() for study in recipe.needed):
        try:
            for _ in ingest(store, folder, genes, [study]):
                pass
        except MissingFileError as error:
            absent[study] = str(error)
    return absent


def build_dataset(name: str, store: Store, organism: Organism, *, alleles: str = "averaged") -> Dataset:
    """Build a yeast dataset from stored measurements; equal questions are answered from the cache.

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
