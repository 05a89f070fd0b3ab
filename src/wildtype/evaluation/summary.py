"""Several runs: mean and sd over seeds of one question, model by model; and the trials of a search."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from wildtype.errors import ConfigError
from wildtype.evaluation.comparison import Comparison, Score

METRICS = ("pearson", "spearman", "mse", "auroc_sign", "auroc_strong", "pearson_negatives")


@dataclass(frozen=True)
class Spread:
    """Mean and sample standard deviation over runs (NaN for a single run), and the number of runs."""

    mean: float
    sd: float
    runs: int


@dataclass(frozen=True)
class Summary:
    """All runs of one dataset, phenotype and split.

    Attributes
    ----------
    dataset, phenotype, split : str
        What was predicted, and how rows were split.
    seeds : tuple of int
        Seeds of the runs, in order.
    rows : int
        Test rows of the first run.
    headline : str
        The metric that models are ranked by.
    models : dict of str to dict of str to Spread
        By model, best first, then by metric.
    seconds : dict of str to float
        Mean seconds per model, NaN where not measured.
    wins : dict of str to int
        In how many runs each model was best.
    baselines : tuple of str
        Which of the models are baselines.
    pooled : Comparison or None
        Of the stored rows of all runs: a metric is the mean over seeds of its value on the pooled rows of a
        seed's folds, and one bootstrap of genes for all of them makes the intervals. None where rows were
        not stored, or are no single numbers.
    """

    dataset: str
    phenotype: str
    split: str
    seeds: tuple[int, ...]
    rows: int
    headline: str
    models: dict[str, dict[str, Spread]]
    seconds: dict[str, float]
    wins: dict[str, int]
    baselines: tuple[str, ...] = ()
    pooled: Comparison | None = None

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        pooled = None if self.pooled is None else self.pooled.to_json()
        return asdict(replace(self, pooled=None)) | {"pooled": pooled}


def summarise(comparisons: Iterable[Comparison]) -> list[Summary]:
    """Group comparisons by dataset, phenotype and split, and summarise each group over its seeds.

    Runs of one seed are merged into one table with the models of all.

    Raises
    ------
    ConfigError
        If two runs of one seed have the same model, or different rows.
    """
    groups: dict[tuple[str, str, str], dict[int, Comparison]] = {}
    for comparison in comparisons:
        question = (comparison.dataset, comparison.phenotype, comparison.split)
        group = groups.setdefault(question, {})
        other = group.get(comparison.seed)
        group[comparison.seed] = comparison if other is None else joined(other, comparison)
    return [_summary(list(group.values())) for group in groups.values()]


def joined(first: Comparison, second: Comparison) -> Comparison:
    """Return one comparison with the models of both runs of a seed; baselines that both hold count once.

    Raises
    ------
    ConfigError
        If both trained the same model, or were tested on different rows.
    """
    where = f"two runs on {first.dataset}, {first.phenotype}, split {first.split}, seed {first.seed}"
    if (first.dataset_sha256, first.rows) != (second.dataset_sha256, second.rows):
        raise ConfigError(f"{where} were tested on different rows: summarise them separately")
    known = {score.model for score in first.scores}
    twice = [score.model for score in second.scores if score.model in known and not score.baseline]
    if twice:
        raise ConfigError(f"{where} both trained {twice[0]}: leave one of them out")
    scores = [*first.scores, *(score for score in second.scores if score.model not in known)]

    def rank(score: Score) -> float:
        value = score.estimate(first.headline).value
        return float("inf") if np.isnan(value) else -value

    return replace(first, scores=tuple(sorted(scores, key=rank)))


def _summary(group: list[Comparison]) -> Summary:
    first = group[0]
    names = list(dict.fromkeys(score.model for comparison in group for score in comparison.scores))
    models: dict[str, dict[str, Spread]] = {}
    seconds: dict[str, float] = {}
    for name in names:
        scores = [score for comparison in group for score in comparison.scores if score.model == name]
        metrics = dict.fromkeys((first.headline, *METRICS))
        models[name] = {m: spread([score.estimate(m).value for score in scores]) for m in metrics}
        timed = [score.seconds for score in scores if score.seconds is not None]
        seconds[name] = float(np.mean(timed)) if timed else float("nan")
    best = [comparison.best.model for comparison in group]

    def rank(name: str) -> float:
        mean = models[name][first.headline].mean
        return float("inf") if np.isnan(mean) else -mean

    return Summary(
        dataset=first.dataset,
        phenotype=first.phenotype,
        split=first.split,
        seeds=tuple(comparison.seed for comparison in group),
        rows=first.rows,
        headline=first.headline,
        models={name: models[name] for name in sorted(names, key=rank)},
        seconds=seconds,
        wins={name: best.count(name) for name in names},
        baselines=tuple({s.model: None for comparison in group for s in comparison.scores if s.baseline}),
    )


def spread(values: Sequence[float]) -> Spread:
    """Return mean and sd of the values that are defined."""
    known = np.array([value for value in values if not np.isnan(value)])
    if not known.size:
        return Spread(float("nan"), float("nan"), 0)
    sd = float(known.std(ddof=1)) if known.size > 1 else float("nan")
    return Spread(float(known.mean()), sd, int(known.size))


@dataclass(frozen=True)
class Trial:
    """One set of settings of a search, and its result.

    Attributes
    ----------
    number : int
        From 0, in order.
    state : str
        ``finished``, ``cut short`` (after fewer epochs than others, and below their median), ``failed``.
    params : dict
        Values by setting.
    score : float or None
        Validation score, as ``training.validation`` defines it: of the finished model, trees included; of a
        trial that was cut short, of its best epoch.
    epochs : int
        Number of epochs with a validation.
    seconds : float or None
        Wall time; None if the trial was interrupted and resumed.
    why : str
        Reason of a failure.
    """

    number: int
    state: str
    params: dict[str, str | int | float]
    score: float | None
    epochs: int
    seconds: float | None
    why: str
