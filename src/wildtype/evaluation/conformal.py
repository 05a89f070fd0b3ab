"""Conformal prediction intervals from the validation rows of a run, honest about genes never seen.

Split conformal prediction (Vovk, Gammerman & Shafer 2005): with scores s = abs(label - prediction) of n rows
that were not trained on, a new row of the same kind is covered at level 1 - a by the ceil((n+1)(1-a))-th
smallest score. Where an ensemble says how far its members lie apart, s is divided by (sd + offset), so that
intervals widen with disagreement (Lei et al. 2018, section 5.2); the offset, the median sd of the rows, keeps
members that happen to agree from promising certainty.

*Groups* (Mondrian): a query is judged by validation rows of its own phenotype, its own number of genes and
its own number of genes that no training row has. Where there are none, or too few for the level, there is no
interval but a reason: another group would promise what nobody has measured.

*Clusters*: rows that lack the same gene go wrong together, so that n rows of K unseen genes say less than n
rows. Pooling them covers too little (a test simulates it), and treating genes as the units, as hierarchical
conformal prediction does (Lee, Barber & Willett 2023), covers far too much while K is small. So the quantile
is calibrated by leaving clusters out: row i is held against quantiles of the rows that share no unseen gene
with it; the smallest quantile that covers 1 - a of all rows in this way is taken, and the median of its
thresholds is the one for queries. Where every row is a cluster of its own this differs from the plain rule by
one rank at most, and the plain rule is used. Unlike that, the calibrated quantile has no guarantee for every
sample size: it is right on average over draws of genes, to within a per cent or two from ten clusters on.

A run chooses its epoch by the same validation rows; `docs/uncertainty.md` says what that does to coverage.

Legend: m queries · p phenotypes · n rows of a group · c cluster columns · K clusters.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from wildtype.datasets.draws import count_genes
from wildtype.errors import CheckpointError, ConfigError
from wildtype.evidence.reference import PARTS
from wildtype.models.checkpoint import Checkpoint
from wildtype.mutants import Kind, MutantTable

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LEFT_OUT = 512
"""Most clusters that are left out in turn; of more, these many are taken evenly."""


def check_level(level: float) -> None:
    """Raise ``ConfigError`` unless ``level`` is a share strictly between 0 and 1."""
    if not 0 < level < 1:
        raise ConfigError(f"interval={level:g} is no coverage: ask for one between 0 and 1, as in 0.9")


class Quantile:
    """The score that covers a share of new rows, from scores of rows that may come in clusters.

    Parameters
    ----------
    score : float64 [n]
        Of rows that were not trained on.
    clusters : int64 [n, c]
        Rows that have a number in common, in any column, are not independent.
    """

    def __init__(self, score: Floats, clusters: Ints) -> None:
        order = np.argsort(score, kind="stable")
        self.score = score[order]
        member = clusters[order]
        names, at, counts = np.unique(member, axis=0, return_inverse=True, return_counts=True)
        at = at.reshape(-1)
        self.clustered = bool((np.unique(member, return_counts=True)[1] > 1).any())
        self.clusters = len(np.unique(member))
        self._below: list[Floats] = []  # of each cluster left out: share of the others below its rows
        self._others: list[int] = []
        self._gaps: list[Ints] = []  # where in the order of all rows those are that were left out
        if not self.clustered:
            return
        chosen = np.unique(np.linspace(0, len(names) - 1, min(len(names), LEFT_OUT)).astype(np.int64))
        self._weight = counts[chosen]
        for k in chosen.tolist():
            out = (member[:, :, None] == names[k]).any((1, 2))
            before = np.cumsum(~out)
            others = int(before[-1])
            self._below.append(before[at == k] / others if others else np.ones(counts[k]))
            self._others.append(others)
            gaps = np.flatnonzero(out)
            self._gaps.append(gaps - np.arange(gaps.size))

    def __len__(self) -> int:
        return len(self.score)

    def at(self, level: float) -> float:
        """Return the score at a coverage; infinite where the rows, or their clusters, are too few for it."""
        n = len(self)
        if not self.clustered:
            rank = math.ceil((n + 1) * level - 1e-9)
            return float(self.score[rank - 1]) if rank <= n else math.inf
        below = np.sort(np.concatenate(self._below))
        share = below[min(math.ceil(level * below.size - 1e-9), below.size) - 1]
        thresholds = []
        for others, gaps in zip(self._others, self._gaps, strict=True):
            rank = math.floor(share * others + 1e-9)  # so many others are below, the next one covers
            inside = rank < others
            thresholds.append(
                self.score[rank + np.searchsorted(gaps, rank, side="right")] if inside else math.inf
            )
        ordered = np.argsort(thresholds, kind="stable")
        reached = np.cumsum(self._weight[ordered])
        middle = np.searchsorted(reached, reached[-1] / 2)
        return float(thresholds[ordered[middle]])


@dataclass(frozen=True)
class Group:
    """Which validation rows a query is judged by.

    Attributes
    ----------
    phenotype : int
        Position among the model's outputs.
    order : int
        Genes per row.
    unseen : int
        How many of them no training row has.
    """

    phenotype: int
    order: int
    unseen: int

    def __str__(self) -> str:
        if not self.unseen:
            return f"{_genes(self.order)}, all seen"
        return f"{_genes(self.order)}, {'all' if self.unseen == self.order else self.unseen} unseen"


def _genes(count: int) -> str:
    return f"{count} gene{'' if count == 1 else 's'}"


@dataclass(frozen=True, eq=False)
class Intervals:
    """Intervals of m queries and p phenotypes.

    Attributes
    ----------
    low, high : float64 [m, p]
        In the phenotypes' units; NaN where there is no honest interval.
    reasons : tuple of (int64 array, str)
        Rows without an interval, and why.
    """

    low: Floats
    high: Floats
    reasons: tuple[tuple[Ints, str], ...]


class Conformal:
    """Intervals of a trained model, from the validation rows of its run.

    Parameters
    ----------
    checkpoint : Checkpoint
        With its validation rows.

    Raises
    ------
    CheckpointError
        If the checkpoint was made without them.
    """

    def __init__(self, checkpoint: Checkpoint) -> None:
        known, rows = checkpoint.known, checkpoint.validation
        at = np.flatnonzero(known.part == PARTS.index("validation"))
        if rows is None:
            raise CheckpointError(
                "this checkpoint has no intervals, for it was made without predictions of its validation "
                "rows: train again"
            )
        if len(rows) != at.size:
            raise CheckpointError(
                f"this checkpoint is damaged: it has predictions of {len(rows)} validation rows and knows "
                f"{at.size}: train again"
            )
        self.phenotypes = [p["name"] for p in checkpoint.phenotypes]
        self.split = str(checkpoint.origin.get("split", "unknown"))
        self._seen = np.zeros(len(checkpoint.genes), bool)
        self._seen[known.table.take(known.part == PARTS.index("train")).gene] = True
        self._table = known.table.take(at)
        names = {name: i for i, name in enumerate(self.phenotypes)}
        output = np.array([names.get(name, -1) for name in known.phenotypes], np.int64)
        self._phenotype = output[self._table.phenotype]
        self._rows = rows
        self._residual = np.abs(self._table.value.astype(np.float64) - rows.predicted)
        self._kinds = np.isin(np.arange(len(Kind)), self._table.kind)
        self._groups = _rows_of_groups(self._phenotype, self._table.order, self.unseen(self._table))
        self._quantiles: dict[Group, tuple[Quantile, float]] = {}

    def unseen(self, table: MutantTable) -> Ints:
        """Return [M] how many genes of each row no training row has."""
        return count_genes(table, ~self._seen)

    def groups(self, table: MutantTable) -> Iterator[tuple[Group, Ints]]:
        """Yield the groups that some queries [m] are in, phenotype by phenotype, and the rows of each."""
        same = np.zeros(len(table), np.int64)
        found = _rows_of_groups(same, table.order, self.unseen(table))
        for p in range(len(self.phenotypes)):
            for group, rows in found.items():
                yield replace(group, phenotype=p), rows

    def rows(self, group: Group) -> tuple[int, int]:
        """Return how many validation rows, and clusters of them, a group has."""
        if group not in self._groups:
            return 0, 0
        quantile = self._quantile(group)[0]
        return len(quantile), quantile.clusters

    def intervals(self, table: MutantTable, values: Floats, sd: Floats, level: float) -> Intervals:
        """Return intervals around predictions.

        Parameters
        ----------
        table : MutantTable
            The m queries.
        values, sd : float64 [m, p]
            What the model predicts, as ``Checkpoint.predict_with_sd`` returns it.
        level : float
            Share of queries whose true value is to be inside.

        Raises
        ------
        ConfigError
            If the level is not between 0 and 1.
        """
        check_level(level)
        half = np.full(values.shape, np.nan)
        reasons: list[tuple[Ints, str]] = []
        strange = count_other_kinds(table, self._kinds) > 0
        elsewhere = ~np.isin(table.condition, self._table.condition)
        for group, rows in self.groups(table):
            score, why = self._score(group, level)
            if why:
                reasons.append((rows, f"no interval for {self.phenotypes[group.phenotype]}: {why}"))
                continue
            offset = self._quantile(group)[1]
            scale = sd[rows, group.phenotype] + offset if math.isfinite(offset) else 1.0
            half[rows, group.phenotype] = score * scale
        for bad, what in ((strange, "did such a thing to a gene"), (elsewhere, "was in this condition")):
            if bad.any():
                half[bad] = np.nan
                reasons.append((np.flatnonzero(bad), f"no interval: no validation row {what}"))
        return Intervals(values - half, values + half, tuple(reasons))

    def _score(self, group: Group, level: float) -> tuple[float, str]:
        """Return the score that covers a group at a level, and why there is none."""
        if group not in self._groups:
            lacks = (
                f"no validation row had {_genes(group.order)} of which training has none"
                if group.unseen and group.unseen == group.order
                else f"no validation row had {_genes(group.order)} of which training lacks {group.unseen}"
                if group.unseen
                else f"no validation row had {_genes(group.order)} that training has"
            )
            return math.nan, f"{lacks} (split {self.split})"
        quantile, _ = self._quantile(group)
        score = quantile.at(level)
        if math.isfinite(score):
            return score, ""
        clusters = f" from {quantile.clusters} clusters" if quantile.clustered else ""
        return math.nan, f"{len(quantile)} validation rows{clusters} like it are too few for {level:g}"

    def _quantile(self, group: Group) -> tuple[Quantile, float]:
        """Return a group's quantiles, and the offset of its scale: NaN where there is no sd."""
        if group in self._quantiles:
            return self._quantiles[group]
        rows = self._groups[group]
        sd = self._rows.sd[rows]
        offset = float(np.median(sd)) if np.isfinite(sd).all() else math.nan
        score = self._residual[rows]
        if offset > 0:
            score = score / (sd + offset)
        else:  # a single model, or members that all say the same
            offset = math.nan
        found = self._quantiles[group] = Quantile(score, self._clusters(rows, group.unseen)), offset
        return found

    def _clusters(self, rows: Ints, unseen: int) -> Ints:
        """Return [n, c] what rows of a group share: unseen genes, what the split held out, or their set."""
        table, unit = self._table.take(rows), self._rows.unit[rows]
        columns = table.gene[~self._seen[table.gene]].reshape(rows.size, unseen)
        if (unit >= 0).any():
            beside = np.where(unit >= 0, unit, unit.max() + 1 + table.set_id)
        elif not unseen:
            beside = table.set_id
        else:
            return columns
        return np.column_stack([columns, len(self._seen) + beside])


def count_other_kinds(table: MutantTable, known: NDArray[np.bool_]) -> Ints:
    """Return [M] how many perturbations of each row are of a kind that is not flagged in ``known``."""
    return np.bincount(table.row, weights=~known[table.kind], minlength=len(table)).astype(np.int64)


def _rows_of_groups(phenotype: Ints, order: Ints, unseen: Ints) -> dict[Group, Ints]:
    if not phenotype.size:
        return {}
    keys, at = np.unique(np.stack([phenotype, order, unseen], axis=1), axis=0, return_inverse=True)
    rows = np.argsort(at.reshape(-1), kind="stable")
    bounds = np.cumsum(np.bincount(at.reshape(-1), minlength=len(keys)))[:-1]
    parts = np.split(rows, bounds)
    return {Group(*key): part for key, part in zip(keys.tolist(), parts, strict=True)}
