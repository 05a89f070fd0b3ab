"""Deduplicate and aggregate: rows of one mutant become one row, and what is assumed is added.

All sums run over rows in canonical order (`StagedRows.sorted`), so that results do not depend on the order
in which rows are read.
A p-value belongs to its number: merged rows keep one where they agree on it, else none, which is counted.

Legend: m rows · g groups.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from wildtype.datasets.dataset_record import Phenotype
from wildtype.datasets.reading import StageReport
from wildtype.datasets.records import PerturbationKind
from wildtype.datasets.stages.policies import Policies
from wildtype.datasets.stages.rows import StagedRows
from wildtype.errors import ConfigError
from wildtype.mutants import Kind
from wildtype.mutants.ragged import repeated
from wildtype.organism import Organism

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
FLOOR = 0.1
"""An sd below this part of its phenotype's median is replaced (it rests on too few replicates)."""
AGAIN = "duplicate entry (same value and sd)"
REPLICATES = "replicates of one mutant"
NO_SD = "replicate without sd beside one that has it"
ALLELES = "alleles averaged"
ASSUMED = "essential genes with fitness 0, assumed"
SEVERAL_P = "p-value left out: the merged rows have different ones"
FITNESS = "fitness"
"""Name of the phenotype whose value is known where a deletion is lethal."""


def average(group: Ints, value: Floats, sd: Floats) -> tuple[Floats, Floats]:
    """Return mean and sd [g] per group 0 … g-1: sd² = mean of the known sd² + variance between members.

    The sd of a group without any known sd is NaN; a group of one keeps its numbers to the last bit.
    """
    size = np.bincount(group)
    mean = np.bincount(group, value) / size
    # Two passes: subtracting the mean first avoids cancellation of large squares.
    between = np.bincount(group, (value - mean[group]) ** 2) / size
    known = np.isfinite(sd)
    count = np.bincount(group, known)
    within = np.bincount(group, np.where(known, sd, 0.0) ** 2) / np.maximum(count, 1)
    spread = np.where(count > 0, np.sqrt(within + between), np.nan)
    return mean, _single(group, size, sd, spread)


def weighted(group: Ints, value: Floats, sd: Floats, floor: Floats) -> tuple[Floats, Floats]:
    """Return mean weighted by 1/sd² and its sd 1/√Σ(1/sd²) [g] per group 0 … g-1.

    Parameters
    ----------
    group : int64 [m]
        Group of every row.
    value, sd, floor : float64 [m]
        An sd below its floor counts as the floor. Rows without sd are left out of a group in which another
        row has one; a group without any is a plain mean with sd NaN. A group of one keeps its numbers.
    """
    size = np.bincount(group)
    known = np.isfinite(sd)
    any_known = np.bincount(group, known) > 0
    trusted = np.maximum(sd, floor)
    exact = known & (trusted == 0)  # a phenotype without noise: all its known sd are 0
    weight = np.where(exact, 1.0, 1.0 / np.where(known & ~exact, trusted, 1.0) ** 2)
    # Without a known sd a replicate has no weight, unless none of its group has one: then all count alike.
    weight = np.where(known, weight, np.where(any_known[group], 0.0, 1.0))
    total = np.bincount(group, weight)
    mean = np.bincount(group, weight * value) / total
    spread = np.where(np.bincount(group, exact) > 0, 0.0, 1.0 / np.sqrt(total))
    spread = np.where(any_known, spread, np.nan)
    return _single(group, size, value, mean), _single(group, size, sd, spread)


def sampled(group: Ints, value: Floats, sd: Floats) -> tuple[Floats, Floats]:
    """Return mean and sd [g] over n - 1 per group 0 … g-1; a group of one keeps its numbers.

    The sd given with each member is that of another, smaller sample, and says nothing about these.
    """
    size = np.bincount(group)
    mean = np.bincount(group, value) / size
    squares = np.bincount(group, (value - mean[group]) ** 2)
    return _single(group, size, value, mean), _single(
        group, size, sd, np.sqrt(squares / np.maximum(size - 1, 1))
    )


def _single(group: Ints, size: Ints, given: Floats, computed: Floats) -> Floats:
    # A weighted mean of one rounds (w x / w); measurements without replicates keep every bit.
    alone = size[group] == 1
    out = computed.copy()
    out[group[alone]] = given[alone]
    return out


def agreed(group: Ints, p: Floats, member: NDArray[np.bool_]) -> tuple[Floats, int]:
    """Return the p-value [g] of every group whose members have one and the same, NaN for the others.

    Parameters
    ----------
    group : int64 [m]
        Group of every row, ascending.
    p : float64 [m]
        P-values (NaN: not known, which is another one than any that is).
    member : bool [m]
        Rows whose p-value counts.

    Returns
    -------
    p : float64 [g]
        NaN too where no row is a member.
    lost : int
        Groups without a p-value although a member has one.
    """
    start = _first(group)
    # NaN spreads through minimum and maximum, so a group with an unknown p never agrees.
    least = np.minimum.reduceat(np.where(member, p, np.inf), start)
    most = np.maximum.reduceat(np.where(member, p, -np.inf), start)
    one = np.where(least == most, least, np.nan)
    there = np.logical_or.reduceat(member & ~np.isnan(p), start)
    return one, int((there & np.isnan(one)).sum())


def sd_floor(phenotype: Ints, sd: Floats) -> Floats:
    """Return the floor of sd of every phenotype: a tenth of the (lower) median of its rows' positive sd.

    It is 0 for a phenotype without any. Rows [m] are all rows of the dataset.
    """
    rows = np.flatnonzero(sd > 0)
    rows = rows[np.lexsort((sd[rows], phenotype[rows]))]
    floor = np.zeros(int(phenotype.max()) + 1 if phenotype.size else 0)
    count = np.bincount(phenotype[rows], minlength=len(floor))
    start = np.cumsum(count) - count
    there = count > 0
    # The lower median is a measured number, the same whatever the number of rows is even or odd.
    floor[there] = FLOOR * sd[rows[start[there] + (count[there] - 1) // 2]]
    return floor


def deduplicate(rows: StagedRows, policies: Policies) -> tuple[StagedRows, StageReport]:
    """Return the rows in canonical order, every number once unless every entry counts, and the report.

    A p-value given in only some of the rows of a number belongs to that number.
    """
    before, lost = len(rows), 0
    # Equal numbers of one genotype are neighbours in this order, so a copy is found by one comparison.
    rows = rows.sorted()
    same = np.zeros(before, bool)
    same[1:] = (policies.listed_again != "every") & (
        (np.diff(rows.identity) == 0)
        & (rows.value[1:] == rows.value[:-1])
        & ((rows.sd[1:] == rows.sd[:-1]) | (np.isnan(rows.sd[1:]) & np.isnan(rows.sd[:-1])))
        & (rows.replicate[1:] == rows.replicate[:-1])
    )
    if same.any():
        p, lost = agreed(np.cumsum(~same) - 1, rows.p, ~np.isnan(rows.p))
        rows = replace(rows.take(~same), p=p)
    counts = {AGAIN: int(same.sum())}
    return rows, StageReport(
        "deduplicate",
        "listed again",
        policies.listed_again,
        before,
        len(rows),
        merged=counts,
        noted={SEVERAL_P: lost},
    )


def merge_replicates(rows: StagedRows, policies: Policies, floor: Floats) -> tuple[StagedRows, StageReport]:
    """Return one row per genotype, condition and phenotype of sorted rows, and the report.

    ``floor`` is that of every phenotype (`sd_floor`), where means are weighted.
    """
    before, group = len(rows), rows.identity
    left_out = lost = 0
    if policies.replicates != "apart":
        member = np.ones(before, bool)
        if policies.replicates == "mean":
            value, sd = average(group, rows.value, rows.sd)
        elif policies.replicates == "mean and sd":
            value, sd = sampled(group, rows.value, rows.sd)
        else:
            known = np.isfinite(rows.sd)
            member = known | (np.bincount(group, known) == 0)[group]
            left_out = int((~member).sum())
            value, sd = weighted(group, rows.value, rows.sd, floor[rows.phenotype])
        p, lost = agreed(group, rows.p, member)
        rows = replace(rows.take(_first(group)), value=value, sd=sd, p=p)
    merged = {REPLICATES: before - len(rows) - left_out}
    return rows, StageReport(
        "aggregate",
        "replicates",
        policies.replicates,
        before,
        len(rows),
        {NO_SD: left_out},
        merged,
        noted={SEVERAL_P: lost},
    )


def merge_alleles(rows: StagedRows, policies: Policies) -> tuple[StagedRows, StageReport]:
    """Return one row per gene set, kinds, doses, condition and phenotype of sorted rows, and the report."""
    before, group, lost = len(rows), rows.mutant, 0
    if policies.alleles == "averaged":
        value, sd = average(group, rows.value, rows.sd)
        p, lost = agreed(group, rows.p, np.ones(before, bool))
        rows = replace(rows.take(_first(group)), value=value, sd=sd, p=p)
    counts = {ALLELES: before - len(rows)}
    return rows, StageReport(
        "aggregate", "alleles", policies.alleles, before, len(rows), merged=counts, noted={SEVERAL_P: lost}
    )


def add_essential(
    rows: StagedRows, phenotypes: tuple[Phenotype, ...], organism: Organism, undosed: int, policies: Policies
) -> tuple[StagedRows, StageReport]:
    """Return sorted rows with the fitness 0 of lethal deletions added where no deletion was measured.

    Parameters
    ----------
    rows : StagedRows
        Aggregated rows, sorted; merging keeps them so.
    phenotypes : tuple of Phenotype
        What ``rows.phenotype`` refers to.
    organism : Organism
        Knows which genes are essential.
    undosed : int
        Rank of the dose that is not stated.
    policies : Policies
        Whether.

    Raises
    ------
    ConfigError
        If rows are to be added and the organism does not list essential genes.
    """
    before, added = len(rows), 0
    measured = [p for p in np.unique(rows.phenotype) if _is_fitness(phenotypes[p])]
    if policies.essential == "fitness 0" and measured:
        if organism.essential is None:
            raise ConfigError(
                f"organism {organism.name!r} does not list essential genes: take essential='keep'"
            )
        single = np.repeat(rows.order == 1, rows.order) & (rows.kind == Kind.ABSENT)
        for phenotype in measured:
            seen = np.zeros(len(organism.genes), bool)
            # Only a measured deletion counts: a hypomorph of an essential gene may live.
            seen[rows.gene[single & (rows.phenotype[rows.row] == phenotype)]] = True
            genes = np.flatnonzero(organism.essential & ~seen)
            added += len(genes)
            rows = _append(rows, genes, phenotype, undosed)
            single = np.concatenate([single, np.zeros(len(genes), bool)])
        rows = rows.sorted()
    report = StageReport(
        "aggregate", "essential", policies.essential, before, len(rows), added={ASSUMED: added}
    )
    return rows, report


def _is_fitness(phenotype: Phenotype) -> bool:
    of_one_study = phenotype.name == phenotype.source and phenotype.name.endswith(f":{FITNESS}")
    return phenotype.name == FITNESS or of_one_study


def _append(rows: StagedRows, genes: Ints, phenotype: int, undosed: int) -> StagedRows:
    """Return the rows with a single deletion of value 0 added for every gene [a]."""

    def each(number: int) -> Ints:
        return np.full(len(genes), number, np.int64)

    unknown = np.full(len(genes), np.nan)
    deletions = StagedRows(
        gene=genes,
        recorded=each(PerturbationKind.DELETION),
        kind=each(Kind.ABSENT),
        allele=each(0),
        dose=each(undosed),
        offsets=np.arange(len(genes) + 1),
        phenotype=each(phenotype),
        condition=each(int(rows.condition.min())),
        replicate=repeated(np.zeros(1, np.int32), len(genes)),
        value=np.zeros(len(genes)),
        sd=unknown,
        p=unknown,
    )
    return StagedRows.concatenate([rows, deletions])


def _first(group: Ints) -> Ints:
    """Return the first row of every group of neighbouring rows."""
    return np.flatnonzero(np.concatenate([[True], np.diff(group) != 0])[: len(group)])
