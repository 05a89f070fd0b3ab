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
average_precision      sum over the list of (rise of recall) · precision (Manning, Raghavan and Schütze 2008,
                       section 8.4); a random order scores the share of hits
auroc                  probability that a hit is above another row, ties count half (Mann & Whitney 1947)
precision@k            share of hits among the first k rows; its expectation over random orders of rows with
                       equal scores
precision@hits         the same with k as large as there are hits: 1 for a perfect list
enrichment@k           precision@k over the share of hits: 1 for a random order
=====================  ==============================================================================

Rows with equal scores enter together: sums over thresholds, and not over rows, do not depend on the order of
ties. All metrics of a list come from one pass down its rows, for all weightings at once.

Legend: m rows · r weightings · t lengths of a list.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wildtype.compiled import njit

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

TOP = (10, 50, 100)
PLACES = (*map(str, TOP), "hits")
LISTS = ("strong", "negative", "positive")
METRICS = ("average_precision", *(f"precision@{k}" for k in PLACES), *(f"enrichment@{k}" for k in PLACES))


@njit(cache=True, nogil=True, error_model="numpy")
def _descend(order, last, hit, weights, lengths, out):  # type: ignore[no-untyped-def]
    """Fill ``out`` [2 + t, r] with average precision, AUROC, and precision within each of ``lengths`` [t, r].

    ``order``, ``last`` and ``hit`` [m] are of the rows from the highest score down: the row, whether it is
    the last of its group of ties, whether it is a hit. ``weights`` is [r, m]: one weighting fits the cache.
    Undefined values are NaN.
    """
    r, m = weights.shape
    t = lengths.shape[0]
    for j in range(r):
        weight = weights[j]
        taken, found = 0.0, 0.0  # down to this row
        rows, hits = 0.0, 0.0  # down to the group of ties before it
        precision, area = 0.0, 0.0
        out[2:, j] = np.nan
        waiting = t
        for i in range(m):
            w = weight[order[i]]
            taken += w
            if hit[i]:
                found += w
            size = taken - rows
            if not last[i] or size <= 0.0:
                continue
            rise = found - hits
            if rise > 0.0:
                precision += rise * found / taken
            # Misses of this group are below all hits above it, and level with its own.
            area += (size - rise) * (hits + 0.5 * rise)
            if waiting > 0:
                for k in range(t):
                    # Of a group of ties that the k-th row cuts, hits and misses are in random order: the
                    # expected number of hits among its first rows is their share (hypergeometric mean).
                    if rows < lengths[k, j] <= taken:
                        out[2 + k, j] = (hits + rise * (lengths[k, j] - rows) / size) / lengths[k, j]
                        waiting -= 1
            rows, hits = taken, found
        misses = taken - found
        out[0, j] = precision / found if found > 0.0 else np.nan
        out[1, j] = area / (found * misses) if found > 0.0 and misses > 0.0 else np.nan


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
        self._hit = np.ascontiguousarray(hit[self._order])
        ordered = score[self._order]
        self._last = np.append(ordered[1:] != ordered[:-1], True)
        self._hits = hit.astype(np.float64)

    def _descend(self, weights: Floats, lengths: Floats) -> Floats:
        out = np.empty((2 + len(lengths), weights.shape[1]))
        by_weighting = np.asarray(weights.T, dtype=np.float64)
        # Those of `bootstrap_weights`, or of neighbouring rows among them, need no copy.
        if by_weighting.strides[1] != by_weighting.itemsize:
            by_weighting = np.ascontiguousarray(by_weighting)
        _descend(self._order, self._last, self._hit, by_weighting, lengths, out)
        return out

    def average_precision(self, weights: Floats) -> Floats:
        """Return the average precision [R] under weights [M, R]; NaN without hits."""
        return np.asarray(self._descend(weights, np.empty((0, weights.shape[1])))[0])

    def auroc(self, weights: Floats) -> Floats:
        """Return the area under the ROC curve [R] under weights [M, R]; NaN without hits or other rows."""
        return np.asarray(self._descend(weights, np.empty((0, weights.shape[1])))[1])

    def metrics(self, weights: Floats) -> Floats:
        """Return every metric of ``METRICS`` [K, R] under weights [M, R]; NaN where one is not defined.

        A row of weight w is in the list w times, so the first k rows are the first k of the resample. Where
        it has fewer rows, precision and enrichment are undefined.
        """
        rows, hits = np.stack([np.ones(len(weights)), self._hits]) @ weights
        top = np.broadcast_to(np.array(TOP, np.float64)[:, None], (len(TOP), len(hits)))
        found = self._descend(weights, np.vstack([top, hits]))
        precision = found[2:]
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where((rows > 0) & (hits > 0), hits / rows, np.nan)
        return np.vstack([found[:1], precision, precision / share])


def strong_rows(truth: Floats, strong: float, strong_positive: float | None = None) -> Mask:
    """Return which labels [M] are strong; positive ones by their threshold, where it differs."""
    return (truth <= -strong) | (truth >= (strong if strong_positive is None else strong_positive))


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
