"""The trigenic datasets by name: tau and fitness of triple mutants, with their doubles and singles."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wildtype.errors import DatasetError
from wildtype.mutants import Kind
from wildtype.organism import GeneIndex, Organism
from wildtype.phenotypes import Dataset
from wildtype.phenotypes.measurements import Measurements
from wildtype.phenotypes.stages.build import build_dataset
from wildtype.phenotypes.stages.policies import Policies
from wildtype.sources.text import Collector, ignore
from wildtype.sources.yeast.screens import kuzmin2018, kuzmin2020
from wildtype.sources.yeast.screens.sga_strains import HO
from wildtype.sources.yeast.screens.trigenic_table import FITNESS, TAU

TRIGENIC_2018 = "yeast-trigenic-kuzmin2018"
TRIGENIC = "yeast-trigenic-kuzmin"
READERS: Mapping[str, tuple[Callable[..., Measurements], ...]] = {
    TRIGENIC_2018: (kuzmin2018.read,),
    TRIGENIC: (kuzmin2018.read, kuzmin2020.read),
}
"""Readers of the studies of a dataset, by its name."""
NOISE = (
    "replicates of these screens are said to correlate with r = 0.49 to 0.59: a rough guide from the "
    "literature, no bound, and not measured on these rows"
)
ONE_SIDED = (
    "tau of the 2018 study is one-sided: its public table has no trigenic score above 0, so a correlation on "
    "it says nothing about positive interactions"
)
TWO_SIDED = "tau of the 2020 study has both signs, and is of pairs of paralogs only: the two studies differ"
PUBLISHED = (
    "figures of others to compare with (tau, the publishers' full files, test Pearson r): random split, "
    "ridge 0.400, embedding MLP 0.426, original transformer 0.4455; query-pair split, ridge 0.185, above the "
    "transformer's 0.139"
)
SINGLE_FITNESS = (
    "the study's own fitness of single mutants (arrays and control queries): of a deletion where there is "
    "one, else of the reduced alleles"
)


def build_trigenic(
    name: str,
    folder: str | Path,
    organism: Organism,
    *,
    alleles: str = "averaged",
    collect: Collector = ignore,
) -> Dataset:
    """Build a trigenic dataset from a folder of publishers' files.

    Rows are tau and trigenic epsilon of triple mutants, epsilon of double mutants, and fitness of triple,
    double and single mutants. Control queries lose their deletion of the neutral locus HO.

    Parameters
    ----------
    name : str
        One of ``READERS``.
    folder : path
        Holds the files under any of their names.
    organism : Organism
        Positions refer to its genes.
    alleles : {"averaged", "apart"}
        How several alleles of one gene are treated.
    collect : callable, optional
        Called with what became of the rows of every file.

    Raises
    ------
    DatasetError
        If there is no such dataset.
    ConfigError
        If the allele policy is unknown.
    SourceError
        If a file is missing, damaged or not in the published layout.
    """
    if name not in READERS:
        raise DatasetError(f"there is no trigenic dataset {name!r}; known datasets: {', '.join(READERS)}")
    genes: GeneIndex = organism.genes
    parts = [read(folder, genes, collect=collect) for read in READERS[name]]
    notes = (ONE_SIDED, *((TWO_SIDED,) if len(parts) > 1 else ()), PUBLISHED)
    dataset = build_dataset(
        Measurements.concatenate(parts),
        organism,
        name=name,
        policies=Policies(neutral=(HO,), alleles=alleles),
        targets=(TAU.name,),
        notes=notes,
        noise=NOISE,
    )
    fitness, sd = _single_fitness(dataset)
    source = dataset.phenotypes[dataset.phenotype_index(FITNESS.name)].source
    return replace(
        dataset,
        single_fitness=fitness,
        single_fitness_sd=sd,
        single_fitness_source=source,
        policies=dict(dataset.policies) | {"single fitness": SINGLE_FITNESS},
    )


def _single_fitness(dataset: Dataset) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return fitness and its sd [n] of single mutants as the dataset's rows have it (NaN: not known)."""
    table, n = dataset.table, len(dataset.organism.genes)
    value, sd = np.full(n, np.nan, np.float32), np.full(n, np.nan, np.float32)
    singles = (table.order == 1) & (table.phenotype == dataset.phenotype_index(FITNESS.name))
    kind, gene = (column[table.offsets[:-1][singles]] for column in (table.kind, table.gene))
    for wanted in (Kind.REDUCED, Kind.ABSENT):  # deletions last: they replace the hypomorphs
        rows = np.flatnonzero(singles)[kind == wanted]
        value[gene[kind == wanted]], sd[gene[kind == wanted]] = table.value[rows], table.sd[rows]
    return value, sd
