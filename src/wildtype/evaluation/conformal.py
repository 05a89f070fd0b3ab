"""Conformal prediction intervals, calibrated on the validation rows of a run, also for unseen genes.

Split conformal prediction (Vovk, Gammerman & Shafer 2005): let s be the scores of n rows that were not
trained on. A new row of the same kind is covered at level 1 - a by the ceil((n+1)(1-a))-th smallest score.

*Widths* differ between mutants: s is abs(label - prediction) divided by the error that is expected of the row
(Lei et al. 2018, section 5.2; `evaluation.error_scale`). It is expected from the prediction (a piecewise
linear function); the sd over the members of an ensemble; how widely training labels of the row's genes vary;
and, of a cross, the chance that it is listed. Each half of the rows is scored by the expectation of the other
half. Where rows are few, s is divided by (sd over members + median sd), or by 1 for a single model.

*Crosses that are not listed* have no label, only a class. Where the screen tells mean and sd of their values,
a value is drawn from the normal distribution for each of them: intervals hold for any cross, not for the list
with zeros. Where it does not, there is no interval. A class has a probability and needs no interval.

*Groups* (Mondrian): a query is calibrated on validation rows of its phenotype, its number of genes and its
number of genes without a training row. If there are none, or too few for the level, there is a reason instead
of an interval, because the errors of another group may be smaller.

*Clusters*: errors of rows with a common unseen gene are correlated, so n rows of K unseen genes hold less
information than n independent rows. Pooling the rows covers too little (a test simulates it). Taking genes as
units, as hierarchical conformal prediction does (Lee, Barber & Willett 2023), covers far too much while K is
small. So the quantile is calibrated by leaving clusters out: row i is compared with quantiles of the rows
that share no unseen gene with it. The smallest quantile that covers 1 - a of all rows in this way is taken,
and the median of its thresholds serves new queries. If every row is a cluster of its own, this differs from
the plain rule by one rank at most, and the plain rule is used. Unlike the plain rule, the calibrated quantile
has no guarantee at every sample size; averaged over draws of genes it is right to within one or two per cent
from ten clusters on.

A run chooses its epoch by the same validation rows; `docs/uncertainty.md` reports the effect on coverage.

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
from wildtype.evaluation.error_scale import ErrorScale, hats
from wildtype.models.checkpoint import Checkpoint
from wildtype.mutants import Kind, MutantTable
from wildtype.mutants.selection import CLASSES, Selection
from wildtype.seeds import generator

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LEFT_OUT = 512
"""Most clusters to leave out in turn; of more clusters, an evenly spaced choice of this size. Where every row
has one cluster, it bounds the thresholds only, and all rows are judged."""
FEWEST_ROWS, FEWEST_CLUSTERS = 300, 20
"""Of fewer validation rows or clusters no expected errors are learned: widths would follow chance."""
KNOTS = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
"""Quantiles of predictions at which the expected error, a piecewise linear function of them, may bend."""
SHRINKAGE = 5.0
"""Rows of the average gene that count beside those of a gene, when its labels' spread is estimated."""


def check_level(level: float) -> None:
    """Raise ``ConfigError`` unless ``level`` is a share strictly between 0 and 1."""
    if isinstance(level, str) or not 0 < level < 1:
        given = repr(level) if isinstance(level, str) else f"{level:g}"
        raise ConfigError(f"interval={given} is no coverage: give one between 0 and 1, such as 0.9")


class Quantile:
    """Quantiles of scores that cover a given share of new rows, from rows that may be clustered.

    Parameters
    ----------
    score : float64 [n]
        Scores of rows that were not trained on.
    clusters : int64 [n, c]
        Cluster numbers of each row; rows with a common number, in any column, are not independent.
    """

    def __init__(self, score: Floats, clusters: Ints) -> None:
        order = np.argsort(score, kind="stable")
        self.score = score[order]
        member = clusters[order]
        names, at, counts = np.unique(member, axis=0, return_inverse=True, return_counts=True)
        at = at.reshape(-1)
        self.clustered = bool((np.unique(member, return_counts=True)[1] > 1).any())
        self.clusters = len(np.unique(member))
        # Per set of clusters left out: for each of its rows the share of the other rows with a lower score;
        # the number of other rows; and gaps, from which their j-th smallest score is found without another
        # sort.
        self._below: list[Floats] = []
        self._others: list[int] = []
        self._gaps: list[Ints] = []
        if not self.clustered:
            return
        disjoint = clusters.shape[1] == 1
        if disjoint:  # a sum tells the shares of all rows: a choice of clusters would be a small sample
            self._below.append(_below_of_others(at, counts))
        chosen = np.unique(np.linspace(0, len(names) - 1, min(len(names), LEFT_OUT)).astype(np.int64))
        self._weight = counts[chosen]
        for k in chosen.tolist():
            # Rows with exactly these clusters are judged together, by rows that share none of them.
            out = (member[:, :, None] == names[k]).any((1, 2))
            before = np.cumsum(~out)
            others = int(before[-1])
            if not disjoint:
                self._below.append(before[at == k] / others if others else np.ones(counts[k]))
            self._others.append(others)
            # The g-th row left out, at position x of all rows, comes after x - g of the others: the others of
            # rank j ≥ x - g are shifted by it.
            gaps = np.flatnonzero(out)
            self._gaps.append(gaps - np.arange(gaps.size))

    def __len__(self) -> int:
        return len(self.score)

    def at(self, level: float) -> float:
        """Return the score at a coverage; infinite if rows, or their clusters, are too few for it."""
        n = len(self)
        if not self.clustered:
            # n + 1, as the new row is exchangeable with the n others: its rank is uniform on 1 … n + 1. The
            # 1e-9 keeps a product such as 10 · 0.9 = 9.000000000000002 from being rounded up to 10.
            rank = math.ceil((n + 1) * level - 1e-9)
            return float(self.score[rank - 1]) if rank <= n else math.inf
        # A row is covered by quantile q of the others if a share below q of them has a lower score. So the
        # smallest q that covers a share ``level`` of all rows is the quantile of these shares at the level.
        below = np.sort(np.concatenate(self._below))
        share = below[min(math.ceil(level * below.size - 1e-9), below.size) - 1]
        thresholds = []
        for others, gaps in zip(self._others, self._gaps, strict=True):
            rank = math.floor(share * others + 1e-9)  # this many others are below, the next one covers
            inside = rank < others
            thresholds.append(
                self.score[rank + np.searchsorted(gaps, rank, side="right")] if inside else math.inf
            )
        # Every choice of left-out clusters gives a threshold; take their median, weighted by the rows they
        # judge.
        ordered = np.argsort(thresholds, kind="stable")
        reached = np.cumsum(self._weight[ordered])
        middle = np.searchsorted(reached, reached[-1] / 2)
        return float(thresholds[ordered[middle]])


@dataclass(frozen=True)
class Group:
    """Validation rows that a query is calibrated on.

    Attributes
    ----------
    phenotype : int
        Position among the model's outputs.
    order : int
        Genes per row.
    unseen : int
        Number of these genes without a training row.
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


def _below_of_others(cluster: Ints, counts: Ints) -> Floats:
    """Return the share [n] of the rows of other clusters that are before each row; rows ascend by score."""
    n = len(cluster)
    inside = np.empty(n, np.int64)  # rows of the own cluster before each row
    inside[np.argsort(cluster, kind="stable")] = np.arange(n) - np.repeat(np.cumsum(counts) - counts, counts)
    others = n - counts[cluster]
    return np.where(others > 0, (np.arange(n) - inside) / np.maximum(others, 1), 1.0)


@dataclass(frozen=True, eq=False)
class _Calibrated:
    """What the intervals of a group are made of."""

    scale: ErrorScale
    quantile: Quantile


SD, BESIDE = 0, 3
"""Of the quantities of `Conformal._quantities`: the sd over members, and how many are before the hats."""


@dataclass(frozen=True, eq=False)
class Intervals:
    """Intervals of m queries and p phenotypes.

    Attributes
    ----------
    low, high : float64 [m, p]
        In the phenotypes' units; NaN where there is no valid interval.
    reasons : tuple of (int64 array, str)
        Rows without an interval, and the reason.
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
        table = known.rows("validation")
        if rows is None:
            raise CheckpointError(
                "this checkpoint has no intervals, for it was made without predictions of its validation "
                "rows: train again"
            )
        if len(rows) != len(table):
            raise CheckpointError(
                f"this checkpoint is damaged: it has predictions of {len(rows)} validation rows and knows "
                f"{len(table)}: train again"
            )
        self.phenotypes = [p["name"] for p in checkpoint.phenotypes]
        self._of_cross = [str(p.get("of_cross", "")) for p in checkpoint.phenotypes]
        self._unlisted = _unlisted(checkpoint)
        self.split = str(checkpoint.origin.get("split", "unknown"))
        self._known, self._seen = known, known.seen_genes()
        self._table = table
        names = {name: i for i, name in enumerate(self.phenotypes)}
        self._output = np.array([names.get(name, -1) for name in known.phenotypes], np.int64)
        self._phenotype = self._output[self._table.phenotype]
        self._rows = rows
        self._residual = np.abs(self.labels(self._table, "validation") - rows.predicted)
        self._kinds = np.isin(np.arange(len(Kind)), self._table.kind)
        self._groups = _rows_of_groups(self._phenotype, self._table.order, self.unseen(self._table))
        self._calibrated: dict[Group, _Calibrated] = {}
        self._spreads: dict[int, Floats] = {}
        self._knots_of: dict[int, Floats] = {}

    def labels(self, table: MutantTable, part: str) -> Floats:
        """Return what intervals should cover: the values [m] of rows; of unlisted crosses, values drawn.

        Each part of the split has draws of its own: test rows that had those of validation rows would be
        covered for no other reason.
        """
        values = table.value.astype(np.float64)
        for output, unlisted in self._unlisted.items():
            rows = np.flatnonzero((self._output[table.phenotype] == output) & (values == 0))
            if unlisted is None:
                values[rows] = np.nan
            else:
                mean, sd = unlisted
                values[rows] = generator(0, f"values of unlisted crosses, {part}").normal(mean, sd, rows.size)
        return values

    def unseen(self, table: MutantTable) -> Ints:
        """Return the number of genes [m] of each row that no training row has."""
        return count_genes(table, ~self._seen)

    def groups(self, table: MutantTable) -> Iterator[tuple[Group, Ints]]:
        """Yield the groups of queries [m] with the positions of their queries, but none of classes."""
        same = np.zeros(len(table), np.int64)
        found = _rows_of_groups(same, table.order, self.unseen(table))
        for p in range(len(self.phenotypes)):
            if self._of_cross[p] not in CLASSES:
                for group, rows in found.items():
                    yield replace(group, phenotype=p), rows

    def rows(self, group: Group) -> tuple[int, int]:
        """Return the number of validation rows of a group, and of their clusters."""
        if group not in self._groups:
            return 0, 0
        rows = self._groups[group]
        return len(rows), len(np.unique(self._clusters(rows, group.unseen)))

    def intervals(self, table: MutantTable, values: Floats, sd: Floats, level: float) -> Intervals:
        """Return intervals around predictions.

        Parameters
        ----------
        table : MutantTable
            The m queries.
        values, sd : float64 [m, p]
            Predictions, as ``Checkpoint.predict_with_sd`` returns them.
        level : float
            Share of queries whose true value should be inside.

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
                # No pooling with other groups: the note is worth more than an interval that is too narrow.
                reasons.append((rows, f"no interval for {self.phenotypes[group.phenotype]}: {why}"))
                continue
            p = group.phenotype
            chance = self._chance(values[rows])
            quantities = self._quantities(p, table.take(rows), values[rows, p], sd[rows, p], chance)
            half[rows, p] = score * self._calibrate(group).scale.expected(quantities)
        # Conditions and kinds of perturbation that calibration has never seen are outside of any guarantee.
        for bad, what in ((strange, "has this kind of perturbation"), (elsewhere, "is in this condition")):
            if bad.any():
                half[bad] = np.nan
                reasons.append((np.flatnonzero(bad), f"no interval: no validation row {what}"))
        return Intervals(values - half, values + half, tuple(reasons))

    def _score(self, group: Group, level: float) -> tuple[float, str]:
        """Return the score that covers a group at a level, and the reason if there is none."""
        if group not in self._groups:
            lacks = (
                f"no validation row had {_genes(group.order)} of which training has none"
                if group.unseen and group.unseen == group.order
                else f"no validation row had {_genes(group.order)} of which training lacks {group.unseen}"
                if group.unseen
                else f"no validation row had {_genes(group.order)} that training has"
            )
            return math.nan, f"{lacks} (split {self.split})"
        if not np.isfinite(self._residual[self._groups[group]]).all():
            return math.nan, "values of crosses that are not listed are not known"
        quantile = self._calibrate(group).quantile
        score = quantile.at(level)
        if math.isfinite(score):
            return score, ""
        clusters = f" from {quantile.clusters} clusters" if quantile.clustered else ""
        return math.nan, f"{len(quantile)} validation rows{clusters} like it are too few for {level:g}"

    def _calibrate(self, group: Group) -> _Calibrated:
        """Return a group's expected errors, and the quantiles of its errors relative to them."""
        if group in self._calibrated:
            return self._calibrated[group]
        rows = self._groups[group]
        clusters, error, sd = self._clusters(rows, group.unseen), self._residual[rows], self._rows.sd[rows]
        x = self._quantities(
            group.phenotype, self._table.take(rows), self._rows.predicted[rows], sd, self._chances(rows)
        )
        if rows.size < FEWEST_ROWS or len(np.unique(clusters)) < FEWEST_CLUSTERS:
            offset = float(np.median(sd)) if np.isfinite(sd).all() else 0.0
            weight = np.zeros(x.shape[1])
            # Hats have the sum 1. Members with equal predictions tell nothing.
            weight[SD], weight[BESIDE:] = (1.0, offset) if offset > 0 else (0.0, 1.0)
            scale = ErrorScale(weight, 0.0)
            expected = scale.expected(x)
        else:
            scale, expected = ErrorScale.fit(x, error), np.zeros(rows.size)
            half = np.unique(clusters[:, 0], return_inverse=True)[1].reshape(-1) % 2 == 0
            for mine in (half, ~half):
                expected[mine] = ErrorScale.fit(x[~mine], error[~mine]).expected(x[mine])
        found = self._calibrated[group] = _Calibrated(scale, Quantile(error / expected, clusters))
        return found

    def _quantities(
        self, p: int, table: MutantTable, predicted: Floats, sd: Floats, chance: Floats
    ) -> Floats:
        """Return what the error of rows [m] is expected from, [m, k]; the first ``BESIDE`` are no hats."""
        spread = np.bincount(table.row, self._spread(p)[table.gene], len(table)) / np.maximum(table.order, 1)
        of_cross = chance if self._of_cross[p] == "effect" else np.zeros(len(table))
        return np.column_stack([np.nan_to_num(sd), spread, of_cross, hats(predicted, self._knots(p))])

    def _knots(self, p: int) -> Floats:
        """Return quantiles of the predictions of validation rows, ascending and distinct."""
        if p not in self._knots_of:
            self._knots_of[p] = np.unique(np.quantile(self._rows.predicted[self._phenotype == p], KNOTS))
        return self._knots_of[p]

    def _spread(self, p: int) -> Floats:
        """Return how widely training labels of each gene [n] vary: the mean distance from their mean."""
        if p not in self._spreads:
            train, n = self._known.rows("train"), len(self._seen)
            table = train.take(self._output[train.phenotype] == p)
            found = np.zeros(n)
            # Of a cross of a grid, labels are those of listed ones alone.
            if len(table) and not self._of_cross[p]:
                away = np.abs(table.value - table.value.mean(dtype=np.float64))
                total = np.bincount(table.gene, away[table.row], n) + SHRINKAGE * away.mean()
                found = total / (np.bincount(table.gene, minlength=n) + SHRINKAGE)
            self._spreads[p] = found
        return self._spreads[p]

    def _chance(self, values: Floats) -> Floats:
        """Return the predicted chance [m] that crosses with these predictions [m, p] are listed."""
        columns = [p for p, what in enumerate(self._of_cross) if what in CLASSES]
        return np.asarray(values[:, columns].sum(1))

    def _chances(self, rows: Ints) -> Floats:
        """Return the chance that the crosses of some validation rows are listed, by their classes' rows."""
        sets, total = self._table.set_id, np.zeros(len(rows))
        for p, what in enumerate(self._of_cross):
            at = np.flatnonzero(self._phenotype == p)
            if what in CLASSES and at.size:
                at = at[np.argsort(sets[at], kind="stable")]
                found = at[np.minimum(np.searchsorted(sets[at], sets[rows]), at.size - 1)]
                total += np.where(sets[found] == sets[rows], self._rows.predicted[found], 0.0)
        return total

    def _clusters(self, rows: Ints, unseen: int) -> Ints:
        """Return the clusters [n, c] of a group's rows: unseen genes, units of the split, or gene sets."""
        table, unit = self._table.take(rows), self._rows.unit[rows]
        columns = table.gene[~self._seen[table.gene]].reshape(rows.size, unseen)
        if (unit >= 0).any():
            beside = np.where(unit >= 0, unit, unit.max() + 1 + table.set_id)
        elif not unseen:
            beside = table.set_id  # repeated measurements of one set have one error of the model
        else:
            return columns
        return np.column_stack([columns, len(self._seen) + beside])


def count_other_kinds(table: MutantTable, known: NDArray[np.bool_]) -> Ints:
    """Return the number of perturbations [m] of each row whose kind is not flagged in ``known``."""
    return np.bincount(table.row, weights=~known[table.kind], minlength=len(table)).astype(np.int64)


def _unlisted(checkpoint: Checkpoint) -> dict[int, tuple[float, float] | None]:
    """Return mean and sd of unlisted crosses for each output that takes them for 0; None: not known."""
    found: dict[int, tuple[float, float] | None] = {}
    # Of a dense screen, in which every cross has its row, nothing is given that a cross is listed.
    if not any(p.get("of_cross") == "listed" for p in checkpoint.phenotypes):
        return found
    rules = [Selection.from_json(p.get("selection")) for p in checkpoint.phenotypes]
    told = [(r.unlisted_mean, r.unlisted_sd) for r in rules if r is not None]
    known = [(mean, sd) for mean, sd in told if mean is not None and sd is not None]
    for p, phenotype in enumerate(checkpoint.phenotypes):
        if phenotype.get("of_cross") == "effect":
            found[p] = known[0] if known else None
    return found


def _rows_of_groups(phenotype: Ints, order: Ints, unseen: Ints) -> dict[Group, Ints]:
    if not phenotype.size:
        return {}
    keys, at = np.unique(np.stack([phenotype, order, unseen], axis=1), axis=0, return_inverse=True)
    rows = np.argsort(at.reshape(-1), kind="stable")
    bounds = np.cumsum(np.bincount(at.reshape(-1), minlength=len(keys)))[:-1]
    parts = np.split(rows, bounds)
    return {Group(*key): part for key, part in zip(keys.tolist(), parts, strict=True)}
