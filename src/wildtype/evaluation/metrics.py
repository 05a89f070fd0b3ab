"""Metrics of predictions, each as one formula over weighted rows.

A metric is first bound to labels and predictions, then applied to any number of weightings of the rows at
once. Equal weights give the metric itself, bootstrap weights give its replicates: one formula serves both.

Legend: m rows · r weightings.

=====================  ==============================================================================
pearson                correlation of prediction and label
pearson_by_condition   mean over conditions of the Pearson within each condition
spearman               Pearson of the mid-ranks among all m rows. Weighted, the ranks stay those of all
                       rows: an approximation, exact for equal weights
mse                    mean squared error, in the phenotype's unit squared; tables print its root, RMSE
bias                   mean prediction minus mean label, in the phenotype's unit
r2                     1 − mse / variance of the labels; negative when worse than their mean
auroc_sign             probability that a row with a positive label is predicted above one with a negative
                       label; rows whose label is zero (within ``ZERO``) are left out
auroc_strong           probability that a strong row (label at least ``strong`` from 0, on either side) has a
                       larger absolute prediction than a weak row; where labels are calls (0 and 1 only),
                       probability that a call is predicted above a row that is none
pearson_negatives      Pearson among rows with negative labels, where predicting the sign earns nothing
average_precision      of labels that are calls: mean, over the calls, of the share of calls among all rows
                       predicted at least as high; random predictions score the share of calls
log_loss               of labels that are calls: mean of −ln of the probability given to what happened, in
                       nats. Predictions are cut to [``SURE``, 1 − ``SURE``]: a baseline that is no
                       probability may reach 0 or beyond
brier                  of labels that are calls: mean squared difference of predicted probability and label
                       (Brier 1950), without a cut
pearson_gene_removed,  of pairs of genes: correlation without additive gene effects, and of labels with
pearson_shuffled       predictions of rows that share one gene (``wildtype.evaluation.pair_scores``)
=====================  ==============================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wildtype.errors import ShapeError
from wildtype.evaluation.pair_scores import (
    ADDITIVE,
    NO_PAIRS,
    PAIR_METRICS,
    shuffled_statistic,
    without_gene_effects,
)
from wildtype.evaluation.retrieval import Ranking, rankings, strong_rows

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
Statistic = Callable[[Floats], Floats]
"""Weights [M, R] to values [..., R]; NaN where the metric is not defined under a weighting."""

METRICS = (
    "pearson",
    "pearson_by_condition",
    "spearman",
    "mse",
    "bias",
    "r2",
    "auroc_sign",
    "auroc_strong",
    "pearson_negatives",
    "average_precision",
    "log_loss",
    "brier",
    *PAIR_METRICS,
)
IN_UNIT = ("mse", "bias", "r2", "log_loss", "brier")
"""Metrics that compare a prediction with the label itself: both must be the same quantity."""
ZERO = 1e-6
"""Labels this close to 0 have no sign: a simulated label is 0 up to the solver's tolerance."""

SURE = 1e-6
"""Smallest chance of the log loss: a certain and wrong prediction costs 13.8 nats, not infinity."""

_FLAT = 1e-12  # share of a column's variance below which it is constant up to rounding


ROWS_PER_GENE = 2
"""Fewest rows per gene of `gene_removed_statistic`: as many effects as there are rows fit any label."""


class Undefined(ValueError):
    """The metric has no value on these rows; the message is the reason."""


def _pair(one: ArrayLike, two: ArrayLike) -> tuple[Floats, Floats]:
    x, y = np.asarray(one, dtype=np.float64), np.asarray(two, dtype=np.float64)
    if x.shape != y.shape or x.ndim != 1:
        raise ShapeError(f"labels have shape {x.shape} and predictions {y.shape}, expected the same [M]")
    return x, y


def _ratio(above: Floats, below: Floats) -> Floats:
    """Return above / below [R], NaN where ``below`` is not positive."""
    defined = below > 0
    return np.where(defined, above / np.where(defined, below, 1.0), np.nan)


def pearson_statistic(truth: ArrayLike, prediction: ArrayLike) -> Statistic:
    """Bind the Pearson correlation to labels and predictions [M]; raises ``Undefined``."""
    columns = []
    for what, values in zip(("labels", "predictions"), _pair(truth, prediction), strict=True):
        if values.size < 2:
            raise Undefined(f"{values.size} rows are too few")
        if not np.isfinite(values).all():
            raise Undefined(f"{int((~np.isfinite(values)).sum())} {what} are not finite")
        if np.ptp(values) <= np.abs(values).max() * _FLAT:
            raise Undefined(f"all {what} are equal")
        # Σw·x² − (Σw·x)² cancels when the mean is large beside the sd. Standardised columns avoid this, and
        # the correlation does not change under an affine map.
        columns.append((values - values.mean()) / values.std())
    x, y = columns
    moments = np.stack([np.ones_like(x), x, y, x * x, y * y, x * y])

    def statistic(weights: Floats) -> Floats:
        total, sx, sy, sxx, syy, sxy = moments @ weights
        total = np.where(total > 0, total, np.nan)
        mx, my = sx / total, sy / total
        vx, vy = sxx / total - mx * mx, syy / total - my * my
        # A resample may hold only rows of one value: rounding errors divided by each other would be a number.
        spread = np.where((vx > _FLAT) & (vy > _FLAT), vx * vy, 0.0)
        return np.clip(_ratio(sxy / total - mx * my, np.sqrt(spread)), -1.0, 1.0)

    return statistic


def _mid_ranks(values: Floats) -> Floats:
    """Return ranks [M] from 1; equal values share the mean of theirs."""
    _, group, sizes = np.unique(values, return_inverse=True, return_counts=True)
    # A group of s ties that ends at rank e covers the ranks e - s + 1, …, e, with the mean e - (s - 1) / 2.
    return np.asarray((np.cumsum(sizes) - (sizes - 1) / 2)[group.reshape(-1)])


def pearson(truth: ArrayLike, prediction: ArrayLike) -> float:
    """Return the Pearson correlation of labels and predictions [M], NaN where it is undefined."""
    return _once(pearson_statistic, truth, prediction)


def spearman(truth: ArrayLike, prediction: ArrayLike) -> float:
    """Return the rank correlation of labels and predictions [M], NaN where it is undefined."""
    return _once(spearman_statistic, truth, prediction)


def _once(
    bind: Callable[[ArrayLike, ArrayLike], Statistic], truth: ArrayLike, prediction: ArrayLike
) -> float:
    """Return a statistic of all rows, each once, NaN where it is undefined."""
    try:
        return float(bind(truth, prediction)(np.ones((np.size(truth), 1)))[0])
    except Undefined:
        return float("nan")


def spearman_statistic(truth: ArrayLike, prediction: ArrayLike) -> Statistic:
    """Bind the rank correlation (ties share their mean rank); raises ``Undefined``."""
    x, y = _pair(truth, prediction)
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise Undefined("labels or predictions are not finite")
    return pearson_statistic(_mid_ranks(x), _mid_ranks(y))


def mse_statistic(truth: ArrayLike, prediction: ArrayLike) -> Statistic:
    """Bind the mean squared error; raises ``Undefined``."""
    x, y = _pair(truth, prediction)
    return _mean_statistic((x - y) ** 2)


def _mean_statistic(values: Floats) -> Statistic:
    """Bind the mean of values [M]; raises ``Undefined``."""
    if not values.size:
        raise Undefined("0 rows are too few")
    if not np.isfinite(values).all():
        raise Undefined(f"{int((~np.isfinite(values)).sum())} labels or predictions are not finite")
    moments = np.stack([values, np.ones_like(values)])  # one product of matrices for sum and total weight
    return lambda weights: _ratio(*(moments @ weights))


def bias_statistic(truth: ArrayLike, prediction: ArrayLike) -> Statistic:
    """Bind the mean prediction minus the mean label; raises ``Undefined``."""
    x, y = _pair(truth, prediction)
    return _mean_statistic(y - x)


def log_loss_statistic(truth: ArrayLike, prediction: ArrayLike) -> Statistic:
    """Bind the mean log loss of probabilities for labels 0 and 1, in nats; raises ``Undefined``."""
    x, y = _pair(truth, prediction)
    y = np.clip(y, SURE, 1.0 - SURE)
    return _mean_statistic(-np.log(np.where(x == 1, y, 1.0 - y)))


def r2_statistic(truth: ArrayLike, prediction: ArrayLike) -> Statistic:
    """Bind the coefficient of determination; raises ``Undefined``."""
    x, y = _pair(truth, prediction)
    mse = mse_statistic(x, y)
    variance = x.var()
    if np.ptp(x) <= np.abs(x).max() * _FLAT:
        raise Undefined("all labels are equal")
    centred = x - x.mean()
    moments = np.stack([centred, centred * centred, np.ones_like(x)])

    def statistic(weights: Floats) -> Floats:
        *sums, total = moments @ weights
        first, second = (_ratio(s, total) for s in sums)
        around = second - first * first
        return 1.0 - _ratio(mse(weights), np.where(around > _FLAT * variance, around, 0.0))

    return statistic


def auroc_statistic(positive: Mask, score: ArrayLike) -> Statistic:
    """Bind the area under the ROC curve of ``score`` [M] for ``positive`` [M]; ties count half.

    Raises ``Undefined`` without rows of both kinds.
    """
    values = np.asarray(score, dtype=np.float64)
    if not np.isfinite(values).all():
        raise Undefined(f"{int((~np.isfinite(values)).sum())} predictions are not finite")
    yes = int(np.count_nonzero(positive))
    if not 0 < yes < values.size:
        raise Undefined(f"there are {yes} positive and {values.size - yes} negative rows")
    return Ranking(positive, values).auroc


def average_precision_statistic(positive: Mask, score: ArrayLike) -> Statistic:
    """Bind average precision of ``score`` [M] for ``positive`` [M]; raises ``Undefined`` without rows of both
    kinds.
    """
    values = np.asarray(score, dtype=np.float64)
    if not np.isfinite(values).all():
        raise Undefined(f"{int((~np.isfinite(values)).sum())} predictions are not finite")
    if positive.all() or not positive.any():
        raise Undefined("calls and other rows are needed")
    return Ranking(positive, values).average_precision


def gene_removed_statistic(truth: ArrayLike, prediction: ArrayLike, pairs: Ints) -> Statistic:
    """Bind the Pearson correlation without additive gene effects; raises ``Undefined``."""
    left = []
    pearson_statistic(truth, prediction)  # the reasons for which no correlation is defined
    genes = np.unique(pairs).size
    if len(pairs) < ROWS_PER_GENE * genes:
        raise Undefined(f"{len(pairs):,} rows of {genes:,} genes leave too little beside gene effects")
    for what, values in zip(("labels", "predictions"), _pair(truth, prediction), strict=True):
        rest = without_gene_effects(values - values.mean(), pairs)
        if rest.std() <= ADDITIVE * values.std():
            raise Undefined(f"nothing is left of the {what} without additive gene effects")
        left.append(rest)
    return pearson_statistic(*left)


def one_gene_statistic(truth: ArrayLike, prediction: ArrayLike, pairs: Ints) -> Statistic:
    """Bind the correlation of labels with predictions of rows that share one gene; raises ``Undefined``."""
    pearson_statistic(truth, prediction)
    statistic = shuffled_statistic(*_pair(truth, prediction), pairs)
    if statistic is None:
        raise Undefined("no two rows share exactly one gene")
    return statistic


def among(rows: Mask | NDArray[np.int64], statistic: Statistic) -> Statistic:
    """Return a statistic of some rows (a mask [M] or positions) as one of all rows [M]."""
    at = np.flatnonzero(rows) if rows.dtype == bool else rows
    if len(at) and (np.diff(at) == 1).all():  # a view of the weights: nothing is copied for each replicate
        beside = slice(int(at[0]), int(at[-1]) + 1)
        return lambda weights: statistic(weights[beside])
    return lambda weights: statistic(weights[at])


def mean_of(parts: Sequence[Statistic]) -> Statistic:
    """Return the unweighted mean of statistics, NaN under a weighting for which one of them is."""
    return lambda weights: np.asarray(np.mean([part(weights) for part in parts], axis=0))


def _by_condition(truth: Floats, prediction: Floats, condition: NDArray[np.int64]) -> Statistic:
    present = np.unique(condition)
    if present.size < 2:
        raise Undefined("all rows have one condition")
    parts = []
    for c in present:
        rows = condition == c
        try:
            parts.append(among(rows, pearson_statistic(truth[rows], prediction[rows])))
        except Undefined as reason:
            raise Undefined(f"in condition {c}, {reason}") from None

    return mean_of(parts)


@dataclass(frozen=True)
class Bound:
    """All metrics of one model on one set of rows.

    Attributes
    ----------
    statistics : dict of str to Statistic
        Those that are defined.
    undefined : dict of str to str
        The reason for each of the others.
    lists : dict of str to Statistic
        ``retrieval.METRICS`` [K, R] by list, of those with a hit.
    """

    statistics: dict[str, Statistic]
    undefined: dict[str, str]
    lists: dict[str, Statistic] = field(default_factory=dict)

    def values(self, rows: int) -> dict[str, float]:
        """Return every metric on all rows, NaN where it is undefined."""
        equal = np.ones((rows, 1))
        return {
            name: float(self.statistics[name](equal)[0]) if name in self.statistics else float("nan")
            for name in METRICS
        }


def bind(
    truth: ArrayLike,
    prediction: ArrayLike,
    *,
    strong: float | None = None,
    strong_positive: float | None = None,
    condition: ArrayLike | None = None,
    pairs: Ints | None = None,
    other_quantity: str = "",
) -> Bound:
    """Bind all metrics to labels and predictions.

    Parameters
    ----------
    truth, prediction : float64 [M]
        In the phenotype's unit.
    strong : float, optional
        Absolute label from which an interaction is strong; without it (fitness, say) ``auroc_strong`` is
        undefined.
    strong_positive : float, optional
        The same of positive labels, where their threshold is another.
    condition : int64 [M], optional
        For ``pearson_by_condition``.
    pairs : int64 [M, 2], optional
        The genes of rows that are pairs (`pair_scores.pairs_of`), for ``PAIR_METRICS``.
    other_quantity : str
        Why labels and predictions are no common quantity; ``IN_UNIT`` is then undefined for this reason.

    Raises
    ------
    ShapeError
        If the lengths differ.
    """
    x, y = _pair(truth, prediction)
    conditions = np.zeros(x.size, np.int64) if condition is None else np.asarray(condition, dtype=np.int64)
    negative, signed = x < -ZERO, np.abs(x) > ZERO
    calls = bool(x.size) and bool(np.isin(x, (0.0, 1.0)).all())

    def auroc_strong() -> Statistic:
        if strong is None:
            raise Undefined("the phenotype is not an interaction")
        return auroc_statistic(strong_rows(x, strong, strong_positive), y if calls else np.abs(y))

    def of_calls(make: Callable[[], Statistic]) -> Callable[[], Statistic]:
        def made() -> Statistic:
            if not calls:
                raise Undefined("labels are no calls (0 and 1)")
            return make()

        return made

    def of_pairs(make: Callable[[Floats, Floats, Ints], Statistic]) -> Callable[[], Statistic]:
        def made() -> Statistic:
            if pairs is None:
                raise Undefined(NO_PAIRS)
            return make(x, y, pairs)

        return made

    makers: dict[str, Callable[[], Statistic]] = {
        "pearson": lambda: pearson_statistic(x, y),
        "pearson_by_condition": lambda: _by_condition(x, y, conditions),
        "spearman": lambda: spearman_statistic(x, y),
        "mse": lambda: mse_statistic(x, y),
        "bias": lambda: bias_statistic(x, y),
        "r2": lambda: r2_statistic(x, y),
        "auroc_sign": lambda: among(signed, auroc_statistic(x[signed] > 0, y[signed])),
        "auroc_strong": auroc_strong,
        "pearson_negatives": lambda: among(negative, pearson_statistic(x[negative], y[negative])),
        "average_precision": of_calls(lambda: average_precision_statistic(x == 1, y)),
        "log_loss": of_calls(lambda: log_loss_statistic(x, y)),
        "brier": of_calls(lambda: mse_statistic(x, y)),
        "pearson_gene_removed": of_pairs(gene_removed_statistic),
        "pearson_shuffled": of_pairs(one_gene_statistic),
    }
    statistics, undefined = {}, {}
    for name, make in makers.items():
        try:
            if other_quantity and name in IN_UNIT:
                raise Undefined(other_quantity)
            statistics[name] = make()
        except Undefined as reason:
            undefined[name] = str(reason)
    lists = {} if strong is None else rankings(x, y, strong, strong_positive)
    return Bound(statistics, undefined, {name: ranking.metrics for name, ranking in lists.items()})
