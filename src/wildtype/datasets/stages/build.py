"""From measurements to a dataset: all stages in their order, and what each did on the dataset's card."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from wildtype.datasets.dataset import Dataset
from wildtype.datasets.measurements import Measurements, recoded
from wildtype.datasets.reading import StageReport
from wildtype.datasets.stages.aggregate import (
    ASSUMED,
    add_essential,
    deduplicate,
    merge_alleles,
    merge_replicates,
    sd_floor,
)
from wildtype.datasets.stages.convert import IGNORED, NEUTRAL, POOLED, Conversion
from wildtype.datasets.stages.policies import Policies
from wildtype.datasets.stages.rows import StagedRows
from wildtype.errors import DatasetError
from wildtype.memory import release_memory
from wildtype.mutants import MutantTable
from wildtype.mutants.ragged import distinct, joined_columns
from wildtype.organism import Organism

Singles = NDArray[np.float32]
DEFAULT = Policies()
_REMARKS = {
    IGNORED: "{count:,} rows are of strains with a suppressor mutation that is not represented",
    NEUTRAL: "in {count:,} rows a perturbation of a neutral locus ({neutral}) is not represented",
    POOLED: "environments are pooled, although measurements were made in several",
    ASSUMED: "{count:,} rows give essential genes fitness 0: assumed, not measured",
}
"""Remark on the dataset's card for every step that changed rows."""


def build_dataset(
    measurements: Measurements,
    organism: Organism,
    *,
    name: str,
    policies: Policies = DEFAULT,
    targets: Sequence[str] | None = None,
    single_fitness: Singles | None = None,
    single_fitness_sd: Singles | None = None,
    single_fitness_source: str = "",
    notes: Sequence[str] = (),
    noise: str = "no replicate measurements: no noise guide",
    citation: str = "",
    before: Sequence[StageReport] = (),
) -> Dataset:
    """Build a dataset from measurements; the order in which these come changes nothing, not even a bit.

    Steps: standard deviations, environments, suppressors, neutral loci, genes, repeated genes and fewest
    genes (convert); numbers listed again (deduplicate); replicates, alleles and essential genes (aggregate).
    Rows are sorted by phenotype, condition, number of genes, genes, kinds, doses, alleles, value.

    Parameters
    ----------
    measurements : Measurements
        As selected from a store: M rows.
    organism : Organism
        Its gene index is the dataset's.
    name : str
        Name of the dataset.
    policies : Policies
        How rows are converted and merged.
    targets : sequence of str, optional
        Phenotypes that models predict; all of them unless given. A trait is ``phenotype:trait``.
    single_fitness, single_fitness_sd : float32 [n], optional
        See ``Dataset``; ``single_fitness_source`` names the phenotype they are from.
    notes : sequence of str
        Remarks, besides those of the stages.
    noise, citation : str
        See ``Dataset``; the citation is that of the studies unless given.
    before : sequence of StageReport
        Reports of earlier steps, from a publisher's file on; the last ends with M rows.

    Raises
    ------
    DatasetError
        If no row is left, studies mean different things by one phenotype, a target is not there, or the
        reports of earlier steps end with another number of rows.
    ConfigError
        If the policies name a gene or an environment that is not there, or ask for essential genes of an
        organism that does not know them.
    """
    if before and before[-1].rows_out != len(measurements):
        raise DatasetError(
            f"dataset {name!r}: {before[-1].rows_out:,} rows came out of {before[-1].step!r}, but "
            f"{len(measurements):,} measurements came in: this is a fault of wildtype, please report it"
        )
    conversion = Conversion(measurements, organism, policies)
    reports = [*before, StageReport("raw", "selected", "as stored", len(measurements), len(measurements))]
    reports += conversion.reports
    rows = conversion.rows
    rows, merged = _merged(rows, policies)
    reports += merged
    undosed = len(conversion.doses) - 1
    rows, report = add_essential(rows, conversion.phenotypes, organism, undosed, policies)
    reports.append(report)
    if not len(rows):
        lost = "; ".join(f"{count:,} {reason}" for reason, count in _excluded(reports).items())
        raise DatasetError(
            f"dataset {name!r}: no row is left of {len(measurements):,} measurements"
            + (f" ({lost}): choose other policies or select other rows" if lost else ": select some")
        )
    phenotypes, phenotype = distinct(rows.phenotype)
    conditions, condition = distinct(rows.condition)
    dose = recoded(conversion.doses, rows.dose).astype(np.float32)
    kept = tuple(conversion.phenotypes[p] for p in phenotypes)
    return Dataset(
        name=name,
        organism=organism,
        table=MutantTable(
            gene=rows.gene.astype(np.int64),
            offsets=rows.offsets,
            kind=rows.kind.astype(np.uint8),
            condition=condition.astype(np.int64),
            phenotype=phenotype.astype(np.int64),
            value=rows.value.astype(np.float32),
            sd=rows.sd.astype(np.float32),
            dose=None if np.isnan(dose).all() else dose,
            p=None if np.isnan(rows.p).all() else rows.p.astype(np.float32),
        ),
        phenotypes=kept,
        conditions=tuple(conversion.conditions[c] for c in conditions),
        targets=tuple(p.name for p in kept) if targets is None else tuple(targets),
        excluded=_excluded(reports),
        policies=policies.described(),
        single_fitness=single_fitness,
        single_fitness_sd=single_fitness_sd,
        single_fitness_source=single_fitness_source,
        noise=noise,
        notes=(*notes, *_remarks(reports, policies)),
        citation=citation or _citation(measurements),
        stages=tuple(reports),
    )


def _merged(rows: StagedRows, policies: Policies) -> tuple[StagedRows, list[StageReport]]:
    """Return the rows in canonical order, one per mutant as the policies have it, and the reports.

    Mutants are merged some at a time, since sorting takes several times the memory of the rows.
    """
    # Copies first, or a number listed twice would weigh twice; replicates before the means over alleles.
    parts, reports = _each(deduplicate, rows.apart(), policies)
    floor = np.zeros(0)
    if policies.replicates == "inverse variance":
        # A median is of all rows, in whatever parts they are merged.
        floor = sd_floor(*(joined_columns([getattr(p, name) for p in parts]) for name in ("phenotype", "sd")))
    parts, replicates = _each(partial(merge_replicates, floor=floor), parts, policies)
    parts, alleles = _each(merge_alleles, parts, policies)
    return StagedRows.concatenate(parts), [reports, replicates, alleles]


def _each(
    merge: Callable[[StagedRows, Policies], tuple[StagedRows, StageReport]],
    parts: Iterable[StagedRows],
    policies: Policies,
) -> tuple[list[StagedRows], StageReport]:
    merged = []
    for part in parts:
        merged.append(merge(part, policies))
        if len(merged) > 1:
            release_memory()
    return [rows for rows, _ in merged], StageReport.together([report for _, report in merged])


def _excluded(reports: Sequence[StageReport]) -> dict[str, int]:
    out: dict[str, int] = {}
    for report in reports:
        for reason, count in report.excluded.items():
            out[reason] = out.get(reason, 0) + count
    return out


def _remarks(reports: Sequence[StageReport], policies: Policies) -> list[str]:
    counts: dict[str, int] = {}
    for report in reports:
        counts |= dict(report.added) | dict(report.noted)
    neutral = ", ".join(policies.neutral)
    return [
        remark.format(count=counts[reason], neutral=neutral)
        for reason, remark in _REMARKS.items()
        if reason in counts
    ]


def _citation(measurements: Measurements) -> str:
    used = np.unique(measurements.study)
    return "; ".join(sorted({measurements.studies[s].publication.citation for s in used}))
