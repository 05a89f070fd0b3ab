"""The yeast datasets by name: digenic interactions of 2010 and 2016, and single-mutant fitness of 2016."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from wildtype.errors import DatasetError, SourceError
from wildtype.mutants import Kind, MutantTable
from wildtype.organism import GeneIndex, Organism
from wildtype.phenotypes import Dataset, Phenotype
from wildtype.phenotypes.reading import Reading
from wildtype.sources.text import (
    AMBIGUOUS,
    REMEDY,
    UNKNOWN,
    Collector,
    add_counts,
    count_reasons,
    ignore,
)
from wildtype.sources.yeast.screens import costanzo2010, costanzo2016
from wildtype.sources.yeast.screens.digenic import (
    ALLELES,
    AVERAGED,
    DUPLICATES,
    Screen,
    StrainPairs,
    average,
    check_policy,
    distinct,
)
from wildtype.sources.yeast.screens.single_fitness import (
    FITNESS,
    FITNESS_SOURCE,
    NO_FITNESS,
    SINGLE_FITNESS,
    SUPPRESSOR,
    TEMPERATURES,
    Strains,
    by_gene,
    deleted_genes,
    read_strains,
)

DIGENIC_2010 = "yeast-digenic-costanzo2010"
DIGENIC_2016 = "yeast-digenic-costanzo2016"
FITNESS_2016 = "yeast-fitness-costanzo2016"
EPSILON_UNIT = "fitness units: double-mutant fitness minus the product of the single ones"
CITATION_2016 = (
    "Costanzo et al. 2016, A global genetic interaction network maps a wiring diagram of cellular function, "
    "Science 353:aaf1420"
)
SINGLE_ALLELES = {
    "averaged": "one row per gene, kind and temperature: the mean over alleles; sd is the root of the mean "
    "squared sd plus the variance between alleles",
    "apart": "one row per allele and temperature: a gene can stand several times",
}
FEWEST = 3
"""A correlation over fewer values is not quoted."""


class Builder(Protocol):
    """Builds one dataset from a folder of publishers' files."""

    def __call__(
        self, folder: str | Path, organism: Organism, *, alleles: str, collect: Collector
    ) -> Dataset:
        """Build the dataset; raises ``SourceError`` where a file is missing, damaged or of another layout."""


def build_dataset(
    name: str,
    folder: str | Path,
    organism: Organism,
    *,
    alleles: str = "averaged",
    collect: Collector = ignore,
) -> Dataset:
    """Build a yeast dataset from a folder of publishers' files.

    Parameters
    ----------
    name : str
        One of ``DATASETS``.
    folder : path
        Holds the files under their publishers' names.
    organism : Organism
        The result of ``build_organism``; positions refer to its genes.
    alleles : {"averaged", "apart"}
        How several alleles of one gene are treated.
    collect : callable, optional
        Called with what became of the rows of every source.

    Raises
    ------
    DatasetError
        If there is no such dataset.
    ConfigError
        If the allele policy is unknown.
    SourceError
        If a file is missing, damaged or not in the published layout.
    """
    if name not in DATASETS:
        raise DatasetError(f"there is no yeast dataset {name!r}; known datasets: {', '.join(DATASETS)}")
    check_policy(alleles)
    return DATASETS[name](folder, organism, alleles=alleles, collect=collect)


def _never_deleted(organism: Organism, strains: Strains) -> NDArray[np.bool_]:
    n = len(organism.genes)
    essential = np.zeros(n, bool) if organism.essential is None else organism.essential
    return essential & ~deleted_genes(strains, n)


def _digenic(
    name: str,
    screen: Screen,
    pairs: StrainPairs,
    repeated: Mapping[str, int],
    alleles: str,
    collect: Collector,
) -> tuple[MutantTable, dict[str, int]]:
    table, averaged = pairs.table(alleles)
    excluded = add_counts(screen.excluded, repeated, averaged)
    collect(Reading(" + ".join(screen.files), name, screen.rows, len(table), excluded, screen.renamed))
    return table, excluded


def _rows_note(rows: int, renamed: int) -> str:
    return f"{rows:,} rows read; {renamed:,} of the kept ones name an ORF by an older name of SGD"


def _agreement(pairs: StrainPairs, other: StrainPairs, genes: GeneIndex, year: str) -> str:
    r, count = pairs.agreement(other, len(genes))
    if count < FEWEST:
        return ""
    return (
        f"against the {year} release r = {r:.2f} on {count:,} shared pairs (the 2016 release probably "
        "re-scores part of "
        "the 2010 screens, and 2010 lists significant scores only)"
    )


def digenic_2010(folder: str | Path, organism: Organism, *, alleles: str, collect: Collector) -> Dataset:
    """Build ``yeast-digenic-costanzo2010``: significant epsilon of deletions, ts and DAmP alleles."""
    strains = read_strains(folder, organism.genes)
    screen = costanzo2010.read_pairs(folder, organism.genes)
    pairs, repeated = screen.pairs.merged()
    table, excluded = _digenic(DIGENIC_2010, screen, pairs, repeated, alleles, collect)
    fitness, fitness_sd = by_gene(strains, len(organism.genes))
    r, count = pairs.allele_agreement()
    noise = []
    if count >= FEWEST:
        noise.append(
            f"two different alleles of the same gene pair correlate with r = {r:.2f} ({count:,} "
            "comparisons; alleles "
            "differ in truth too, and only significant scores are listed: a rough guide, no bound)"
        )
    if costanzo2016.present(folder):
        other = costanzo2016.read_pairs(folder, organism.genes, _never_deleted(organism, strains)).pairs
        noise.append(_agreement(pairs, other, organism.genes, "2016"))
    reduced = table.kind == Kind.REDUCED
    essential = np.zeros(len(organism.genes), bool) if organism.essential is None else organism.essential
    surprising = np.unique(table.row[~reduced & essential[table.gene]]).size
    return Dataset(
        name=DIGENIC_2010,
        organism=organism,
        table=table,
        phenotypes=(
            Phenotype(
                "epsilon",
                EPSILON_UNIT,
                "costanzo2010:epsilon",
                min_order=2,
                strong=costanzo2010.POSITIVE,
                description="digenic interaction by synthetic genetic array, colony size",
            ),
        ),
        targets=("epsilon",),
        excluded=excluded,
        policies={
            "alleles": f"{alleles}: {ALLELES[alleles]}",
            "duplicates": DUPLICATES,
            "single fitness": SINGLE_FITNESS,
        },
        single_fitness=fitness[:, 0],
        single_fitness_sd=fitness_sd[:, 0],
        single_fitness_source=FITNESS_SOURCE,
        noise="; ".join(part for part in noise if part) or "no replicate measurements: no noise guide",
        notes=(
            f"thresholded by the publisher: only significant pairs, epsilon <= {costanzo2010.NEGATIVE} or >= "
            f"{costanzo2010.POSITIVE}, p < 0.05; a pair that is not listed was not measured to be zero",
            f"{100 * float((table.value > 0).mean()):.1f} % of the rows are positive: part of any "
            "correlation is telling "
            "the signs apart, so read AUROC of the sign and the correlation within negatives beside it",
            f"{np.unique(table.row[reduced]).size:,} rows have a temperature-sensitive or DAmP allele "
            "(kind reduced); "
            f"{surprising:,} rows delete, by the strain's name, a gene that the deletion project "
            "listed as essential "
            "(kind absent)",
            _rows_note(screen.rows, screen.renamed),
        ),
        citation="Costanzo et al. 2010, The genetic landscape of a cell, Science 327:425",
    )


def digenic_2016(folder: str | Path, organism: Organism, *, alleles: str, collect: Collector) -> Dataset:
    """Build ``yeast-digenic-costanzo2016``: unselected epsilon among the genes of two GO terms."""
    strains = read_strains(folder, organism.genes)
    screen = costanzo2016.read_pairs(folder, organism.genes, _never_deleted(organism, strains))
    pairs, repeated = screen.pairs.merged()
    table, excluded = _digenic(DIGENIC_2016, screen, pairs, repeated, alleles, collect)
    fitness, fitness_sd = by_gene(strains, len(organism.genes))
    noise = ""
    if (Path(folder) / costanzo2010.STRINGENT).is_file():
        other = costanzo2010.read_pairs(folder, organism.genes).pairs.merged()[0]
        noise = _agreement(pairs, other, organism.genes, "2010")
    reduced = np.unique(table.gene[table.kind == Kind.REDUCED]).size
    return Dataset(
        name=DIGENIC_2016,
        organism=organism,
        table=table,
        phenotypes=(
            Phenotype(
                "epsilon",
                EPSILON_UNIT,
                "costanzo2016:epsilon",
                min_order=2,
                strong=costanzo2016.STRONG,
                description="digenic interaction by synthetic genetic array, colony size",
            ),
        ),
        targets=("epsilon",),
        excluded=excluded,
        policies={
            "alleles": "the files name genes, not strains: nothing to average or keep apart",
            "duplicates": DUPLICATES,
            "single fitness": SINGLE_FITNESS,
        },
        single_fitness=fitness[:, 0],
        single_fitness_sd=fitness_sd[:, 0],
        single_fitness_source=FITNESS_SOURCE,
        noise=noise or "no replicate measurements: no noise guide",
        notes=(
            "not thresholded: pairs stand here whether or not they interact",
            f"{len(np.unique(table.gene))} genes, all of GO:0006281 (DNA repair) or GO:0000790 "
            "(nuclear chromatin)",
            "the files give no strains: a gene is reduced if it is essential and the study has no deletion "
            f"strain of it ({reduced} genes), else absent; no standard deviations",
            _rows_note(screen.rows, screen.renamed),
        ),
        citation=f"{CITATION_2016}; pairs as prepared by Ma et al. 2018, Nat Methods 15:290",
    )


def fitness_2016(folder: str | Path, organism: Organism, *, alleles: str, collect: Collector) -> Dataset:
    """Build ``yeast-fitness-costanzo2016``: single-mutant fitness at 30 and 26 °C.

    A row of the source is one strain at one temperature. Query and array strains of one allele carry one
    number, and deletions and DAmP strains the same at both temperatures: both repeats are merged away, so
    that no measurement stands twice.
    """
    strains = read_strains(folder, organism.genes)
    m = len(strains)
    strain, condition = np.repeat(np.arange(m), 2), np.tile(np.arange(2), m)
    value, sd = strains.value.reshape(-1), strains.sd.reshape(-1)
    gene, kind = strains.gene.position[strain], strains.kind[strain].astype(np.int64)
    left = np.ones(2 * m, bool)
    masks: dict[str, NDArray[np.bool_]] = {}

    def drop(reason: str, mask: NDArray[np.bool_]) -> None:
        masks[reason] = left & mask
        left[masks[reason]] = False

    drop(UNKNOWN, gene == -1)
    drop(AMBIGUOUS, gene == -2)
    drop(NO_FITNESS, ~np.isfinite(value))
    drop(SUPPRESSOR, strains.suppressor[strain])
    same = (strains.value[:, 0] == strains.value[:, 1]) & (
        (strains.sd[:, 0] == strains.sd[:, 1]) | np.isnan(strains.sd).all(1)
    )
    drop("merged: the number of 30 °C repeated at 26 °C", (condition == 1) & same[strain])
    rows = np.flatnonzero(left)
    if not rows.size:
        raise SourceError(f"{FITNESS} has no usable fitness, expected thousands: {REMEDY}")
    # One number per allele, whichever strains list it; then, under the default policy, one per gene and kind.
    keys = np.column_stack([gene, kind, condition, strains.allele_number[strain]])[rows]
    first = distinct(keys, value[rows], sd[rows])
    counts = {"merged: the number of one allele listed for another strain": rows.size - first.size}
    keys, value, sd = keys[first], value[rows][first], sd[rows][first]
    if alleles == "averaged":
        unique, group = np.unique(keys[:, :3], axis=0, return_inverse=True)
        value, sd = average(group.reshape(-1), value, sd)
        counts[AVERAGED] = len(keys) - len(unique)
        keys = unique
    table = MutantTable.from_matrix(keys[:, :1], kind=keys[:, 1], condition=keys[:, 2], value=value, sd=sd)
    excluded = count_reasons(masks) | {reason: count for reason, count in counts.items() if count}
    renamed = int(strains.gene.renamed[strain][rows].sum())
    collect(Reading(FITNESS, FITNESS_2016, 2 * m, len(table), excluded, renamed))
    return Dataset(
        name=FITNESS_2016,
        organism=organism,
        table=table,
        phenotypes=(
            Phenotype(
                "fitness",
                source=FITNESS_SOURCE,
                description="colony size relative to wild type, SGA controls",
            ),
        ),
        conditions=TEMPERATURES,
        targets=("fitness",),
        excluded=excluded,
        policies={
            "alleles": f"{alleles}: {SINGLE_ALLELES[alleles]}",
            "duplicates": "numbers that the table repeats for another strain or temperature stand once",
        },
        noise="the standard deviations are over control screens of one strain; there is no replicate study",
        notes=(
            "26 °C rows are temperature-sensitive alleles only: for deletions and DAmP alleles the table "
            "repeats the 30 °C number",
            _rows_note(2 * m, renamed) + "; a row is one strain at one temperature",
        ),
        citation=CITATION_2016,
    )


DATASETS: Mapping[str, Builder] = {
    DIGENIC_2010: digenic_2010,
    DIGENIC_2016: digenic_2016,
    FITNESS_2016: fitness_2016,
}
"""Builders by dataset name."""
