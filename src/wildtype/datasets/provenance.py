"""Provenance groups: studies of one laboratory that are partly one set of plates.

What the studies of a group measured of one mutant is one measurement, whatever their numbers are. The
catalogue declares the groups (`sources.catalogue.PROVENANCE`), and a dataset holds those of its studies. A
high correlation declares nothing: `agreement` above `ALARM` is a reason to look.

Legend: m measurements · p phenotypes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from wildtype.datasets.dataset_record import Phenotype
from wildtype.mutants.ragged import ragged_ranks, ranks

if TYPE_CHECKING:
    from wildtype.datasets.measurements import Measurements
    from wildtype.mutants import MutantTable

Groups = Mapping[str, tuple[str, ...]]
"""Studies of each group by its name; the first of them that measured a mutant stands for the group."""
ALARM = 0.99
"""Correlation of two sets above which they may be one measurement under two names."""
FEWEST = 3
"""A correlation over fewer values is not quoted."""


def group_of(study: str, groups: Groups) -> str:
    """Return the name of a study's group; a study without one stands for itself."""
    return next((name for name, studies in groups.items() if study in studies), study)


def groups_of(phenotypes: Iterable[Phenotype], groups: Groups) -> set[str]:
    """Return the groups that phenotypes were measured in, and the studies of theirs without one."""
    sources = [source for phenotype in phenotypes for source in phenotype.sources]
    return {group_of(source.partition(":")[0], groups) for source in sources}


def sources_of_group(sources: Iterable[str], groups: Groups) -> set[str]:
    """Return sources (``"study:phenotype"``) and the same phenotypes of all studies of their groups."""
    out = set()
    for source in sources:
        study, colon, phenotype = source.partition(":")
        studies = groups.get(group_of(study, groups), (study,))
        out |= {one + colon + phenotype for one in studies} | {source}
    return out


def one_measurement(phenotypes: Sequence[Phenotype], groups: Groups) -> NDArray[np.int64]:
    """Return a number [p] per phenotype, equal for one phenotype of several studies of one group."""
    keys: dict[tuple[str, ...], int] = {}
    out = []
    for place, phenotype in enumerate(phenotypes):
        study, colon, rest = phenotype.name.partition(":")
        # Of studies kept apart the name begins with the study (`stages.convert.name_phenotypes`).
        of_study = colon and any(source.startswith(f"{study}:") for source in phenotype.sources)
        name = rest if of_study else phenotype.name
        found = sorted(groups_of([phenotype], groups))
        grouped = any(group in groups for group in found)
        out.append(keys.setdefault((name, *found) if grouped else (str(place),), place))
    return np.array(out, np.int64)


def measured_again(measurements: Measurements, groups: Groups) -> NDArray[np.bool_]:
    """Return which measurements [m] repeat one of a study that goes before theirs in their group.

    That is: of the same genotype, phenotype, trait and environment, with whatever number.
    """
    m = measurements
    names = [study.name for study in m.studies]
    group = [group_of(name, groups) for name in names]
    place = [groups[g].index(n) if g in groups else 0 for n, g in zip(names, group, strict=True)]
    of_group = np.array([group.index(g) for g in group], np.int64)[m.study]
    precedence = np.array(place, np.int64)[m.study]
    environments = [environment.id for environment in m.environments]
    environment = np.array([environments.index(e) for e in environments], np.int64)[m.environment]
    defined = [(phenotype.name, phenotype.unit) for phenotype in m.phenotypes]
    phenotype = np.array([defined.index(d) for d in defined], np.int64)[m.phenotype]
    cell = ranks(m.genotypes[1], phenotype, m.trait, environment, of_group)
    first = np.full(int(cell.max(initial=-1)) + 1, len(names) + max(place, default=0))
    np.minimum.at(first, cell, precedence)
    return np.asarray(precedence > first[cell])


def agreement(first: MutantTable, second: MutantTable) -> tuple[float, int]:
    """Return Pearson r of two tables on the gene sets that both have, and the number of these.

    Each gene set counts once: with the mean over its kinds of perturbation and alleles. The tables are of
    one phenotype each, and on one gene index; r is NaN for fewer than 3 gene sets.
    """
    offsets = np.concatenate([first.offsets, first.offsets[-1] + second.offsets[1:]])
    # Both tables are ranked together: equal gene sets have equal ranks in both.
    sets = ragged_ranks([np.concatenate([first.gene, second.gene])], offsets)
    here, there = (
        _means(code, table.value.astype(np.float64))
        for code, table in zip((sets[: len(first)], sets[len(first) :]), (first, second), strict=True)
    )
    shared, at_here, at_there = np.intersect1d(here[0], there[0], return_indices=True)
    return correlation(here[1][at_here], there[1][at_there], len(shared)), len(shared)


def _means(
    code: NDArray[np.int64], value: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    distinct, group = np.unique(code, return_inverse=True)
    return distinct, np.bincount(group, value) / np.bincount(group)


def correlation(x: NDArray[np.float64], y: NDArray[np.float64], comparisons: int) -> float:
    """Return Pearson r; NaN of too few comparisons, or of equal values."""
    if comparisons < FEWEST or np.ptp(x) == 0 or np.ptp(y) == 0:
        return float("nan")
    return float(np.corrcoef(x, y)[0, 1])
