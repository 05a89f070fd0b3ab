"""From measurements of one number per gene (expression) to a dataset whose rows are mutants.

Legend: m measurements · b mutants · n genes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wildtype.datasets.dataset import Dataset
from wildtype.datasets.dataset_record import Phenotype
from wildtype.datasets.measurements import Measurements
from wildtype.datasets.records import PerturbationKind
from wildtype.datasets.stages.convert import EFFECT
from wildtype.errors import DatasetError
from wildtype.mutants import MutantTable
from wildtype.mutants.identity import grouping
from wildtype.organism import Organism

WILD_TYPE = "measurement of the wild type"
UNKNOWN = "perturbed gene that the organism does not have"
SUPPRESSOR = "strain with a suppressor"
NO_TARGET = "measured gene that the organism does not have"
OTHER = "phenotype that has no number per gene"


def profile_dataset(measurements: Measurements, organism: Organism, *, name: str) -> Dataset:
    """Return one row per mutant and environment, with its mean over replicates of every gene's number.

    The profiles take 4 b n bytes, whatever the number of measurements; while they are made, some 100 bytes
    per measurement are held.

    Parameters
    ----------
    measurements : Measurements
        As a publisher's reader gives them; those of phenotypes of level ``gene`` are used.
    organism : Organism
        Its gene index is the dataset's, for what is perturbed and for what is measured.
    name : str
        Of the dataset.

    Raises
    ------
    DatasetError
        If none of the measurements is of a phenotype per gene, they are of several, or none is left.
    """
    m = measurements
    per_gene = [i for i, definition in enumerate(m.phenotypes) if definition.level == "gene"]
    used = [i for i in per_gene if (m.phenotype == i).any()]
    if len(used) != 1:
        known = ", ".join(m.phenotypes[i].name for i in used) or "none"
        raise DatasetError(f"dataset {name!r}: expected one phenotype with a number per gene, found {known}")
    place = {gene: i for i, gene in enumerate(organism.genes.names)}
    position = np.array([place.get(gene, -1) for gene in m.genes], np.int64)
    target = np.array([place.get(trait, -1) for trait in m.traits], np.int64)[m.trait]
    order = np.diff(m.offsets)
    row = np.repeat(np.arange(len(order)), order)
    unknown, suppressed = np.zeros(len(order), bool), np.zeros(len(order), bool)
    unknown[row[position[m.gene] < 0]] = True
    suppressed[row[m.kind == PerturbationKind.SUPPRESSOR]] = True
    left = np.ones(len(order), bool)
    excluded: dict[str, int] = {}
    reasons: tuple[tuple[str, NDArray[np.bool_]], ...] = (
        (OTHER, m.phenotype != used[0]), (WILD_TYPE, order == 0), (SUPPRESSOR, suppressed),
        (UNKNOWN, unknown), (NO_TARGET, target < 0),
    )  # fmt: skip
    for reason, wrong in reasons:
        if count := int((left & wrong).sum()):
            excluded[reason] = count
        left &= ~wrong
    if not left.any():
        raise DatasetError(
            f"dataset {name!r}: no measurement is left of {len(order):,}: check the gene index"
        )
    kept = np.flatnonzero(left)
    inside = left[row]
    effect = np.array([EFFECT[kind] for kind in PerturbationKind], np.uint8)
    environments, condition = np.unique(m.environment[kept], return_inverse=True)
    # `grouping` looks at tables of several phenotypes only: the measured genes take their place.
    each = MutantTable.build(
        position[m.gene][inside],
        np.concatenate([[0], np.cumsum(order[kept])]),
        kind=effect[m.kind[inside].astype(np.int64)],
        condition=condition.reshape(-1),
        phenotype=target[kept],
    )
    found = grouping(each)
    first = np.arange(len(each)) if found is None else found.first
    mutant = np.arange(len(each)) if found is None else found.mutant
    n = len(organism.genes)
    cell = mutant * n + target[kept]
    strains = np.bincount(cell, minlength=len(first) * n)
    # Float64 sums in the order of rows; the profile is rounded to float32 once, at the end.
    total = np.bincount(cell, weights=m.value[kept], minlength=len(first) * n)
    mean = np.where(strains > 0, total / np.maximum(strains, 1), np.nan)
    mutants = each.take(first)
    definition = m.phenotypes[used[0]]
    studies = sorted({m.studies[s].name for s in np.unique(m.study[kept])})
    merged = int((strains > 1).sum())
    return Dataset(
        name=name,
        organism=organism,
        table=MutantTable.build(
            mutants.gene,
            mutants.offsets,
            kind=mutants.kind,
            condition=mutants.condition,
            profile=np.arange(len(first)),
            profiles=mean.reshape(len(first), n).astype(np.float32),
        ),
        phenotypes=(
            Phenotype(
                definition.name,
                unit=definition.unit,
                source=" + ".join(f"{study}:{definition.name}" for study in studies),
                description=definition.description,
                form="gene",
            ),
        ),
        conditions=tuple(str(m.environments[e]) for e in environments),
        targets=(definition.name,),
        excluded=excluded,
        policies={"replicates": f"the mean; {merged:,} numbers are of several strains or reporters"},
        citation="; ".join(sorted({m.studies[s].publication.citation for s in np.unique(m.study[kept])})),
    )
