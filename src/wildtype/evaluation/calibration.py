"""Coverage and width of prediction intervals on test rows, group by group.

Groups are those of `evaluation.conformal`: a number of genes, and the number of them without a training row.
Rows with unseen genes are never pooled with others, because a mean over both would hide too narrow intervals.

Legend: m test rows · l levels.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from wildtype.errors import DatasetError
from wildtype.evaluation.bootstrap import bootstrap, clusters_for, find_clusters, interval
from wildtype.evaluation.conformal import Conformal
from wildtype.evaluation.metrics import Floats, Mask, spearman
from wildtype.models.checkpoint import Checkpoint
from wildtype.mutants import MutantTable

LEVELS = tuple(round(0.05 * i, 2) for i in range(1, 20))
"""Levels of a calibration plot."""


@dataclass(frozen=True)
class Coverage:
    """Share of test rows of one group whose label is inside an interval of one level.

    Attributes
    ----------
    phenotype, group : str
        Which rows; ``order`` genes each, ``unseen`` of them in no training row.
    level : float
        Nominal coverage.
    rows, without : int
        Number of test rows, and of those without an interval.
    coverage : float
        Share of the others with the label inside; NaN if there are none.
    low, high : float
        95 % interval of the coverage from a bootstrap over genes (NaN: not computed).
    width : float
        Mean width in the phenotype's unit.
    ranked : float
        Spearman correlation of width and size of the error: above 0, wide intervals warn of large errors. NaN
        where all are as wide.
    calibration_rows, calibration_clusters : int
        Number of validation rows that calibrate the intervals, and of their clusters.
    reason : str
        Reason why some rows have no interval; empty if all have one.
    """

    phenotype: str
    group: str
    order: int
    unseen: int
    level: float
    rows: int
    without: int
    coverage: float
    low: float
    high: float
    width: float
    ranked: float
    calibration_rows: int
    calibration_clusters: int
    reason: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)


def measure_coverage(
    checkpoint: Checkpoint, levels: Sequence[float], *, replicates: int = 0, seed: int = 0
) -> list[Coverage]:
    """Return the coverage of every group of test rows at every level.

    Parameters
    ----------
    checkpoint : Checkpoint
        Of a finished run, with its test rows, which neither trained the weights nor calibrated the intervals.
    levels : sequence of float
        Nominal coverages.
    replicates, seed : int
        Of the bootstrap for the 95 % interval; 0: none.

    Raises
    ------
    ConfigError
        If a level is not between 0 and 1.
    DatasetError
        If the run has no test rows.
    CheckpointError
        If the checkpoint was made without its validation rows.
    """
    conformal, known = Conformal(checkpoint), checkpoint.known
    test = known.rows("test")
    if not len(test):
        raise DatasetError("the run of this checkpoint has no test rows to measure coverage on")
    values, sd = checkpoint.predict_with_sd(test)
    labels = conformal.labels(test, "test")
    found = []
    for level in levels:
        around = conformal.intervals(test, values, sd, level)
        for group, members in conformal.groups(test):
            name = conformal.phenotypes[group.phenotype]
            rows = members[test.phenotype[members] == known.phenotypes.index(name)]
            if not rows.size:
                continue
            low, high = around.low[rows, group.phenotype], around.high[rows, group.phenotype]
            there = np.isfinite(low)
            any_there = bool(there.any())
            truth = labels[rows]
            inside = (low <= truth) & (truth <= high)
            width, error = (high - low)[there], np.abs(truth - values[rows, group.phenotype])[there]
            bounds = math.nan, math.nan
            if any_there and replicates:
                bounds = _bounds(test.take(rows[there]), inside[there], replicates, seed)
            calibration, clusters = conformal.rows(group)
            prefixes = (f"no interval for {name}: ", "no interval: ")
            whys = [why for at, why in around.reasons if why.startswith(prefixes) and np.isin(rows, at).any()]
            found.append(
                Coverage(
                    phenotype=name,
                    group=str(group),
                    order=group.order,
                    unseen=group.unseen,
                    level=float(level),
                    rows=rows.size,
                    without=int((~there).sum()),
                    coverage=float(inside[there].mean()) if any_there else math.nan,
                    low=bounds[0],
                    high=bounds[1],
                    width=float(width.mean()) if any_there else math.nan,
                    ranked=spearman(width, error),
                    calibration_rows=calibration,
                    calibration_clusters=clusters,
                    reason="; ".join(whys),
                )
            )
    return found


def _bounds(table: MutantTable, inside: Mask, replicates: int, seed: int) -> tuple[float, float]:
    """Return the 95 % interval of the share ``inside`` under resampled genes."""

    def share(weights: Floats) -> Floats:
        total = weights.sum(0)
        return np.asarray(inside @ weights / np.where(total > 0, total, np.nan))

    clusters = find_clusters(table, clusters_for(table))
    return interval(bootstrap({"share": share}, clusters, replicates=replicates, seed=seed)["share"])


@dataclass(frozen=True)
class MeanCoverage:
    """Coverage of one group over several runs: mean, and sample standard deviation between runs."""

    phenotype: str
    group: str
    order: int
    unseen: int
    level: float
    runs: int
    rows: int
    coverage: float
    coverage_sd: float
    width: float
    ranked: float

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)


def mean_coverage(runs: Iterable[Sequence[Coverage]]) -> list[MeanCoverage]:
    """Return the mean over runs of every group and level with intervals in at least one run.

    ``rows`` counts the rows with an interval in all runs; every run has the same weight in the means.
    """
    groups: dict[tuple[str, str, float], list[Coverage]] = {}
    for run in runs:
        for found in run:
            if not math.isnan(found.coverage):
                groups.setdefault((found.phenotype, found.group, found.level), []).append(found)
    means = []
    for group in groups.values():
        shares = np.array([found.coverage for found in group])
        first = group[0]
        means.append(
            MeanCoverage(
                phenotype=first.phenotype,
                group=first.group,
                order=first.order,
                unseen=first.unseen,
                level=first.level,
                runs=len(group),
                rows=sum(found.rows - found.without for found in group),
                coverage=float(shares.mean()),
                coverage_sd=float(shares.std(ddof=1)) if len(group) > 1 else math.nan,
                width=float(np.mean([found.width for found in group])),
                ranked=float(np.mean([found.ranked for found in group])),
            )
        )
    return means
