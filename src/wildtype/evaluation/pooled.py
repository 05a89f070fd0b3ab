"""Several runs of one question on their stored rows: folds pooled, means over seeds, paired intervals.

Folds of a gene split test every gene once, so a seed's folds together are one set of test rows. Seeds are
repeats: a metric is the mean over seeds of its value on each seed's pooled rows. The bootstrap draws genes
once for the rows of all seeds, since a gene is the same gene in each of them.

Legend: m rows of one seed · M rows of all seeds · r weightings.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from wildtype.evaluation.compare import rank_models
from wildtype.evaluation.comparison import Comparison
from wildtype.evaluation.metrics import METRICS, Bound, among, bind, mean_of
from wildtype.evaluation.pair_scores import pairs_of
from wildtype.evaluation.predicted_rows import gene_sets
from wildtype.evaluation.retrieval import METRICS as OF_LIST
from wildtype.evaluation.summary import Spread, Summary, spread

if TYPE_CHECKING:
    import pandas as pd


def pool(frames: Mapping[int, pd.DataFrame], like: Comparison, notes: Sequence[str] = ()) -> Summary:
    """Return the summary of the stored rows of one question.

    Parameters
    ----------
    frames : mapping of int to pandas.DataFrame
        By seed, the rows of all its folds: ``genes``, ``condition``, ``value`` and a column per model.
    like : Comparison
        Of one of the runs: names, thresholds, replicates, and which models are baselines. Models of it that
        are not in every frame are left out.
    notes : sequence of str
        Remarks for the reader.
    """
    import pandas as pd

    together = pd.concat(frames.values(), ignore_index=True)
    table, _ = gene_sets(together["genes"])
    condition = np.unique(together["condition"].astype(str), return_inverse=True)[1].reshape(-1)
    table = replace(table, condition=condition.astype(np.int64))
    models = [s.model for s in like.scores if all(s.model in frame for frame in frames.values())]
    ends = np.cumsum([0, *(len(frame) for frame in frames.values())])
    rows = [np.arange(start, stop) for start, stop in pairwise(ends.tolist())]
    of_seed: dict[str, list[Bound]] = {model: [] for model in models}
    for at in rows:
        part = table.take(at)
        pairs = pairs_of(part)
        for model in models:
            own = bind(
                together["value"].to_numpy(np.float64)[at],
                together[model].to_numpy(np.float64)[at],
                strong=like.strong,
                strong_positive=like.strong_positive,
                condition=part.condition,
                pairs=pairs,
                other_quantity=like.other_quantity,
            )
            of_seed[model].append(own)
    baselines = [score.model for score in like.scores if score.baseline and score.model in models]
    comparison = rank_models(
        table,
        {model: _mean(parts, rows) for model, parts in of_seed.items()},
        dataset=like.dataset,
        dataset_sha256=like.dataset_sha256,
        phenotype=like.phenotype,
        noise=like.noise,
        notes=notes,
        baselines=baselines,
        split=like.split,
        replicates=like.replicates,
    )
    figures = {
        model: [_values(part, len(at)) for part, at in zip(parts, rows, strict=True)]
        for model, parts in of_seed.items()
    }
    headline = comparison.headline

    def rank(model: str, i: int) -> float:
        value = figures[model][i].get(headline, math.nan)
        return -math.inf if math.isnan(value) else value

    best = [max((rank(model, i), model) for model in models)[1] for i in range(len(rows))]
    return Summary(
        dataset=like.dataset,
        phenotype=like.phenotype,
        split=like.split,
        seeds=tuple(frames),
        rows=len(rows[0]),
        headline=headline,
        models={score.model: _spreads(figures[score.model]) for score in comparison.scores},
        seconds=dict.fromkeys(models, math.nan),
        wins={model: best.count(model) for model in models},
        baselines=tuple(baselines),
        pooled=comparison,
    )


def _mean(parts: Sequence[Bound], rows: Sequence[np.ndarray]) -> Bound:
    """Return the mean over seeds of every metric that all of them have, bound to the rows [M] of all."""
    undefined = {name: reason for part in parts for name, reason in part.undefined.items()}
    statistics, lists = (
        {
            name: mean_of([among(at, one[name]) for at, one in zip(rows, found, strict=True)])
            for name in found[0]
            if all(name in one for one in found)
        }
        for found in ([part.statistics for part in parts], [part.lists for part in parts])
    )
    return Bound(statistics, undefined, lists)


def _values(bound: Bound, rows: int) -> dict[str, float]:
    """Return every metric of one seed, with the root of the squared error and all metrics of lists."""
    values = bound.values(rows)
    values["rmse"] = math.sqrt(values["mse"])
    equal = np.ones((rows, 1))
    for name, statistic in bound.lists.items():
        found = statistic(equal)[:, 0].tolist()
        values |= {f"{name}/{metric}": value for metric, value in zip(OF_LIST, found, strict=True)}
    return values


def _spreads(figures: Sequence[Mapping[str, float]]) -> dict[str, Spread]:
    names = dict.fromkeys([*METRICS, "rmse", *(name for found in figures for name in found)])
    return {name: spread([found.get(name, math.nan) for found in figures]) for name in names}
