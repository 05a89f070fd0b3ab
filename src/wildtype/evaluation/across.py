"""Models over many phenotypes: the mean, over phenotypes, of a metric in each, with one interval for it.

Rows of one mutant stand once for every phenotype it was measured for. So the bootstrap draws genes (or gene
sets) once for all phenotypes: what they have in common through their mutants is in the interval.

Legend: m rows of all phenotypes · r weightings.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wildtype.errors import DatasetError
from wildtype.evaluation.compare import Comparison, compare_bound
from wildtype.evaluation.metrics import Bound, Floats, Statistic, bind

if TYPE_CHECKING:
    from wildtype.datasets import Dataset

AVERAGED = ("pearson", "pearson_by_condition", "spearman", "r2", "auroc_strong", "average_precision")
"""Metrics that mean the same whatever the phenotype; squared errors are in units of their own."""
CORRELATIONS = ("pearson", "pearson_by_condition", "spearman")
CONSTANT = "all predictions are equal"
Ints = NDArray[np.int64]


def evaluate_across(
    dataset: Dataset,
    rows: ArrayLike,
    predictions: Mapping[str, ArrayLike],
    *,
    baselines: Collection[str] | None = None,
    seconds: Mapping[str, float] | None = None,
    peak_mib: Mapping[str, float] | None = None,
    clusters: str = "auto",
    split: str = "",
    replicates: int = 1000,
    seed: int = 0,
) -> Comparison:
    """Score predictions of several models by the mean over phenotypes of every metric of ``AVERAGED``.

    A phenotype counts once, whatever its number of rows. One whose labels allow no correlation (all equal, or
    fewer than two) is left out for all models and counted. A correlation of predictions that are all equal
    within a phenotype counts as 0, unless that is so in all of them; that is counted too.

    Parameters
    ----------
    dataset : Dataset
        Holds the labels.
    rows : int64 [M]
        Row numbers, of two or more phenotypes.
    predictions : mapping of str to float64 [M]
        Model name to predictions, each in the unit of its row's phenotype.
    baselines, seconds, peak_mib, clusters, split, replicates, seed
        As in ``evaluate_predictions``.

    Returns
    -------
    Comparison
        Its ``phenotype`` is ``"mean over p phenotypes"``; squared errors, and metrics of signs, are
        undefined.

    Raises
    ------
    DatasetError
        If fewer than two phenotypes have labels that allow a correlation.
    """
    at = np.asarray(rows, dtype=np.int64)
    table = dataset.table.take(at)
    members: list[tuple[int, Ints]] = []
    left_out = []
    for p in np.unique(table.phenotype):
        of_p = np.flatnonzero(table.phenotype == p)
        truth = table.value[of_p]
        if "pearson" in bind(truth, truth).statistics:
            members.append((int(p), of_p))
        else:
            left_out.append(dataset.phenotypes[p].name)
    if len(members) < 2:
        raise DatasetError(
            f"{len(members)} phenotypes of dataset {dataset.name!r} have labels that allow a correlation, "
            "expected at least 2 to average over: compare on the phenotype itself"
        )
    bound, constant = {}, {}
    for model, predicted in predictions.items():
        parts = [_bind(dataset, at[of_p], np.asarray(predicted)[of_p], p) for p, of_p in members]
        bound[model] = _mean(parts, [of_p for _, of_p in members])
        constant[model] = sum(part.undefined.get("pearson") == CONSTANT for part in parts)
    notes = [
        f"{model} predicts one number in {count} of {len(members)} phenotypes: a correlation of 0 there"
        for model, count in constant.items()
        if 0 < count < len(members)
    ]
    notes.append("squared errors and metrics of signs are not averaged over phenotypes: see each by itself")
    if left_out:
        notes.append(f"left out, since labels allow no correlation: {', '.join(left_out)}")
    return compare_bound(
        dataset,
        at,
        bound,
        phenotype=f"mean over {len(members)} phenotypes",
        baselines=baselines,
        seconds=seconds,
        peak_mib=peak_mib,
        clusters=clusters,
        split=split,
        replicates=replicates,
        seed=seed,
        noise=dataset.noise,
        notes=notes,
    )


def _bind(dataset: Dataset, at: Ints, predicted: NDArray[np.float64], p: int) -> Bound:
    table, kind = dataset.table.take(at), dataset.phenotypes[p]
    strong = kind.strong if kind.min_order >= 2 else None
    return bind(table.value, predicted, strong=strong, condition=table.condition)


def _mean(parts: Sequence[Bound], rows: Sequence[Ints]) -> Bound:
    """Return the mean over phenotypes, bound to all rows [M]; ``rows`` says which are whose."""
    statistics: dict[str, Statistic] = {}
    undefined: dict[str, str] = {}
    for metric in AVERAGED:
        found: list[Statistic] = []
        for part in parts:
            if metric in part.statistics:
                found.append(part.statistics[metric])
            elif metric in CORRELATIONS and part.undefined[metric] == CONSTANT:
                found.append(_zero)
            else:
                undefined[metric] = part.undefined[metric]
                break
        if len(found) == len(parts) and all(statistic is _zero for statistic in found):
            undefined[metric] = CONSTANT
        elif len(found) == len(parts):
            statistics[metric] = _averaged(found, rows)
    return Bound(statistics, undefined)


def _zero(weights: Floats) -> Floats:
    return np.zeros(weights.shape[1])


def _averaged(found: Sequence[Statistic], rows: Sequence[Ints]) -> Callable[[Floats], Floats]:
    def statistic(weights: Floats) -> Floats:
        total = np.zeros(weights.shape[1])
        for part, of_part in zip(found, rows, strict=True):
            total += part(weights[of_part])
        return total / len(found)

    return statistic
