"""Finding strong interactions: quality of the top of a ranked list, and of the ranking.

A row is a hit if its label is at least ``strong`` from zero, the threshold of the phenotype. There are three
lists:

==========  ============================  =========================
list        a hit                         ranked by
==========  ============================  =========================
strong      abs(label) ≥ strong           abs(prediction), falling
negative    label ≤ -strong               prediction, rising
positive    label ≥ strong                prediction, falling
==========  ============================  =========================

Where positive labels have a threshold of their own (S-scores), it replaces ``strong`` for them.

=====================  ==============================================================================
average_precision      sum over the list of (rise of recall) · precision; rows with equal predictions enter
                       together, as in scikit-learn's ``average_precision_score``; a random order scores the
                       share of hits
precision@k            share of hits among the first k rows; its expectation over random orders of rows with
                       equal predictions
precision@hits         the same with k as large as there are hits: 1 for a perfect list
enrichment@k           precision@k over the share of hits: 1 for a random order
=====================  ==============================================================================

Under bootstrap weights a row of weight w is in the list w times, so the first k rows are the first k of the
resample. Where the resample has fewer rows, the metric is undefined.

Legend: m rows · r weightings · g groups of rows with equal score.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from wildtype.evaluation.bootstrap import Clusters, IntervalEstimate, bootstrap_weights, interval
from wildtype.evaluation.metrics import Floats, Mask, strong_rows

LISTS = ("strong", "negative", "positive")
TOP = (10, 50, 100)
METRICS = (
    "average_precision",
    *(f"precision@{k}" for k in (*TOP, "hits")),
    *(f"enrichment@{k}" for k in (*TOP, "hits")),
)


class Ranking:
    """Rows in order of a score, of which some are hits.

    Parameters
    ----------
    hit : bool [M]
        Which rows are to be found.
    score : float64 [M]
        Finite; the highest comes first.
    """

    def __init__(self, hit: Mask, score: Floats) -> None:
        self._order = np.argsort(-score, kind="stable")
        self._hit = hit[self._order].astype(np.float64)[:, None]
        ordered = score[self._order]
        self._last = np.flatnonzero(np.append(ordered[1:] != ordered[:-1], True))  # of each group of ties

    def metrics(self, weights: Floats) -> dict[str, Floats]:
        """Return every metric [R] under weights [M, R]; NaN where one is not defined."""
        ordered = weights[self._order]
        taken = np.cumsum(ordered, axis=0)[self._last]  # [g, r] rows down to each group's end
        ordered *= self._hit  # in place: weights of many resamples are large
        found = np.cumsum(ordered, axis=0)[self._last]
        rows, hits = taken[-1], found[-1]
        defined = (rows > 0) & (hits > 0)
        share = np.where(defined, hits, np.nan) / np.where(defined, rows, 1.0)
        rises = np.diff(found, axis=0, prepend=0.0)
        precision = np.divide(found, taken, out=np.zeros_like(found), where=taken > 0)
        out = {"average_precision": (rises * precision).sum(0) / np.where(defined, hits, np.nan)}
        for k in TOP:
            out[f"precision@{k}"] = _at(np.full(len(rows), float(k)), taken, found)
        out["precision@hits"] = _at(hits, taken, found)
        for name in (*TOP, "hits"):
            out[f"enrichment@{name}"] = out[f"precision@{name}"] / share
        return out


def _at(k: Floats, taken: Floats, found: Floats) -> Floats:
    """Return the share of hits [R] among the first k [R] rows, of lists [g, r] that may be shorter."""
    at = np.minimum((taken < k).sum(0), len(taken) - 1)  # the group that the k-th row is in
    column = np.arange(len(k))
    before = np.where(at > 0, taken[at - 1, column], 0.0)
    hits_before = np.where(at > 0, found[at - 1, column], 0.0)
    size, hits = taken[at, column] - before, found[at, column] - hits_before
    # Of a group of ties that the k-th row cuts, hits and misses are in random order: the expected number of
    # hits among its first k - before rows is their share of the group (hypergeometric mean).
    inside = np.divide(hits * (k - before), size, out=np.zeros_like(k), where=size > 0)
    possible = (k > 0) & (k <= taken[-1])
    return np.where(possible, (hits_before + inside) / np.where(possible, k, 1.0), np.nan)


def rankings(
    truth: Floats, prediction: Floats, strong: float, strong_positive: float | None = None
) -> dict[str, Ranking]:
    """Return the lists of a model that have at least one hit; none where a prediction is not finite."""
    if not np.isfinite(prediction).all():
        return {}
    found = {
        "strong": (strong_rows(truth, strong, strong_positive), np.abs(prediction)),
        "negative": (truth <= -strong, -prediction),
        "positive": (truth >= (strong if strong_positive is None else strong_positive), prediction),
    }
    return {name: Ranking(hit, score) for name, (hit, score) in found.items() if hit.any()}


def retrieval_estimates(
    truth: ArrayLike,
    predictions: Mapping[str, ArrayLike],
    strong: float,
    clusters: Clusters,
    *,
    strong_positive: float | None = None,
    replicates: int = 1000,
    seed: int = 0,
) -> dict[str, dict[str, IntervalEstimate]]:
    """Return every metric of every model with its 95 % interval, by model and ``list/metric``.

    The resamples are those of ``compare.evaluate_predictions`` for the same clusters and seed. Undefined
    metrics (a list without hits, fewer rows than k, a prediction that is not finite) are left out.

    Parameters
    ----------
    truth : float64 [M]
        Labels.
    predictions : mapping of str to float64 [M]
        By model, in the phenotype's unit.
    strong : float
        Absolute label from which a row is a hit.
    strong_positive : float, optional
        The same of positive labels, where their threshold is another.
    clusters, replicates, seed
        Of the bootstrap.
    """
    y = np.asarray(truth, dtype=np.float64)
    ranked = {
        (model, name): ranking
        for model, predicted in predictions.items()
        for name, ranking in rankings(
            y, np.asarray(predicted, dtype=np.float64), strong, strong_positive
        ).items()
    }
    equal = np.ones((y.size, 1))
    values = {key: ranking.metrics(equal) for key, ranking in ranked.items()}
    drawn: dict[tuple[str, str], list[dict[str, Floats]]] = {key: [] for key in ranked}
    for weights in bootstrap_weights(clusters, replicates, seed) if ranked else ():
        for key, ranking in ranked.items():
            drawn[key].append(ranking.metrics(weights))
    out: dict[str, dict[str, IntervalEstimate]] = {model: {} for model in predictions}
    for (model, name), found in values.items():
        for metric in METRICS:
            value = float(found[metric][0])
            if not math.isnan(value):
                parts = np.concatenate([part[metric] for part in drawn[model, name]])
                out[model][f"{name}/{metric}"] = IntervalEstimate(value, *interval(parts))
    return out
