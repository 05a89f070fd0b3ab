"""Models against baselines on identical rows: metrics, cluster-bootstrap intervals, paired differences."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wildtype.errors import ConfigError, DatasetError, ShapeError
from wildtype.evaluation.bootstrap import (
    IntervalEstimate,
    bootstrap,
    clusters_for,
    find_clusters,
    interval,
    two_sided_p,
)
from wildtype.evaluation.comparison import PAIRED, Comparison, Difference, Score
from wildtype.evaluation.metrics import Bound, Floats, Statistic, bind
from wildtype.evaluation.noise import noise_guide
from wildtype.evaluation.pair_scores import pairs_of
from wildtype.evaluation.retrieval import METRICS as OF_LIST
from wildtype.models.registry import MODELS

if TYPE_CHECKING:
    from wildtype.datasets import Dataset
    from wildtype.mutants import MutantTable

Ints = NDArray[np.int64]


def _notes(table: MutantTable, clusters: str, count: int) -> list[str]:
    notes = []
    if clusters == "gene-sets":
        notes.append("intervals resample gene sets: dependence of sets through common genes is not in them")
    elif clusters == "genes" and (table.order >= 3).any():
        notes.append("intervals resample genes, which is conservative for three genes per row")
    if count < 20:
        notes.append(f"intervals rest on {count} clusters only: take them as rough")
    return notes


class ComparisonOptions(TypedDict, total=False):
    """Options of every comparison, as ``evaluate_predictions`` describes them."""

    baselines: Collection[str] | None
    seconds: Mapping[str, float]
    peak_mib: Mapping[str, float]
    clusters: str
    split: str
    replicates: int
    seed: int


def evaluate_predictions(
    dataset: Dataset,
    rows: ArrayLike,
    predictions: Mapping[str, ArrayLike],
    *,
    phenotype: str,
    other_quantity: str = "",
    **options: Unpack[ComparisonOptions],
) -> Comparison:
    """Score predictions of several models on identical rows.

    Parameters
    ----------
    dataset : Dataset
        Holds the labels.
    rows : int64 [M]
        Row numbers, all of ``phenotype``.
    predictions : mapping of str to float64 [M]
        Model name to predictions, in the phenotype's unit. A model with a prediction that is not finite stays
        in the table, with NaN as scores and the reason.
    phenotype : str
        Name of the phenotype.
    other_quantity : str
        Why predictions are another quantity than the labels, as epsilon is for S-scores: errors in the
        label's unit are then undefined. Empty: they are the same.
    baselines : collection of str, optional
        Which models are baselines; by default all that are not registered as neural models.
    seconds, peak_mib : mapping of str to float, optional
        Time in seconds and peak memory in MiB per model.
    clusters : str
        ``genes``, ``query-pairs`` (triples only) or ``gene-sets``; ``auto`` is genes up to three genes per
        row.
    split : str
        Name of the split, for the record.
    replicates, seed : int
        Of the bootstrap; 1,000 and 0 by default.

    Raises
    ------
    ConfigError
        If there is no model, or a name is not one of them.
    DatasetError
        If there are no rows, or some are of another phenotype.
    ShapeError
        If a model has not one prediction per row.
    """
    if not predictions:
        raise ConfigError("there are no predictions to compare: give at least one model")
    for what, named in (
        ("baselines", options.get("baselines") or ()),
        ("seconds", options.get("seconds", ())),
        ("peak_mib", options.get("peak_mib", ())),
    ):
        if unknown := sorted(set(named) - set(predictions)):
            raise ConfigError(f"{what} names {unknown[0]!r}; compared models: {', '.join(predictions)}")
    p = dataset.phenotype_index(phenotype)
    at = np.asarray(rows, dtype=np.int64)
    table = dataset.table.take(at)
    if not at.size:
        raise DatasetError(f"there are no rows of dataset {dataset.name!r} to compare on: check the split")
    if (others := int((table.phenotype != p).sum())) > 0:
        raise DatasetError(
            f"{others} of {at.size} rows are not of phenotype {phenotype!r}: select its rows before comparing"
        )
    truth = table.value.astype(np.float64)
    kind = dataset.phenotypes[p]
    strong, strong_positive = (kind.strong, kind.strong_positive) if kind.min_order >= 2 else (None, None)
    pairs = pairs_of(table)
    bound: dict[str, Bound] = {}
    for model, predicted in predictions.items():
        if np.shape(predicted) != truth.shape:
            raise ShapeError(
                f"{model} has predictions of shape {np.shape(predicted)}, expected {truth.shape}"
            )
        bound[model] = bind(
            truth,
            predicted,
            strong=strong,
            strong_positive=strong_positive,
            condition=table.condition,
            pairs=pairs,
            other_quantity=other_quantity,
        )

    noise = str(noise_guide(dataset, at))
    found = rank_models(
        table,
        bound,
        dataset=dataset.name,
        dataset_sha256=dataset.sha256,
        phenotype=phenotype,
        noise=noise,
        **options,
    )
    return replace(found, strong=strong, strong_positive=strong_positive, other_quantity=other_quantity)


def _estimate(figure: Floats) -> IntervalEstimate:
    """Return the estimate of a metric's value and replicates [1 + R]."""
    return IntervalEstimate(float(figure[0]), *interval(figure[1:]))


def paired_differences(
    own: Mapping[str, Floats], other: Mapping[str, Floats], against: str
) -> dict[str, Difference]:
    """Return the difference of every metric of ``PAIRED`` that two models have.

    Parameters
    ----------
    own, other : mapping of str to float64 [..., 1 + R]
        By metric or list: the value on all rows, then the replicates, under the same resamples for both.
    against : str
        Name of the other model.
    """
    found = {}
    for metric in PAIRED:
        one, two = _paired(own, metric), _paired(other, metric)
        if one is None or two is None or math.isnan(one[0] - two[0]):
            continue
        # Both models see the same resample, so what makes its rows hard or easy cancels in the difference.
        d = one - two
        found[metric] = Difference(against, float(d[0]), *interval(d[1:]), two_sided_p(d[1:]))
    return found


def _paired(figures: Mapping[str, Floats], metric: str) -> Floats | None:
    name, _, of_list = metric.partition("/")
    figure = figures.get("mse" if name == "rmse" else name)
    if figure is None:
        return None
    if of_list:
        return np.asarray(figure[OF_LIST.index(of_list)])
    # Errors of opposite signs must not differ by their sum: the size of the bias is compared.
    return {"rmse": np.sqrt, "bias": np.abs}.get(name, np.asarray)(figure)


def rank_models(
    table: MutantTable,
    bound: Mapping[str, Bound],
    *,
    dataset: str,
    dataset_sha256: str,
    phenotype: str,
    noise: str,
    notes: Sequence[str] = (),
    baselines: Collection[str] | None = None,
    seconds: Mapping[str, float] | None = None,
    peak_mib: Mapping[str, float] | None = None,
    clusters: str = "auto",
    split: str = "",
    replicates: int = 1000,
    seed: int = 0,
) -> Comparison:
    """Rank models by metrics bound to rows [M], with intervals; options as in `evaluate_predictions`."""
    rows = len(table)
    values = {model: b.values(rows) for model, b in bound.items()}
    headline = next(
        (
            name
            for name in ("average_precision", "pearson_by_condition")
            if any(name in b.statistics for b in bound.values())
        ),
        "pearson",
    )

    def rank(model: str) -> tuple[bool, float]:
        value = values[model][headline]
        return math.isnan(value), -value

    ranked = sorted(bound, key=rank)
    defined = [model for model in ranked if not math.isnan(values[model][headline])]
    is_baseline = {model: model not in MODELS if baselines is None else model in baselines for model in bound}
    # Chosen by these very rows, which favours the reference slightly: the comparison errs against the model.
    reference = next((m for m in defined if is_baseline[m]), defined[0] if defined else "")

    found = find_clusters(table, clusters_for(table) if clusters == "auto" else clusters)
    # All metrics of all models go through one pass over the resamples.
    statistics: dict[str, Statistic] = {
        f"{metric}/{model}": statistic
        for model, b in bound.items()
        for metric, statistic in (b.statistics | b.lists).items()
    }
    drawn = bootstrap(statistics, found, replicates=replicates, seed=seed)
    equal = np.ones((rows, 1))
    figures = {
        model: {
            metric: np.append(statistic(equal), drawn[f"{metric}/{model}"], axis=-1)
            for metric, statistic in (b.statistics | b.lists).items()
        }
        for model, b in bound.items()
    }

    scores = []
    for model in ranked:
        own = figures[model]
        against = [other for other in ranked if is_baseline[other] and not is_baseline[model]]
        against += [reference] if reference and reference not in (model, *against) else []
        differences = {other: paired_differences(own, figures[other], other) for other in against}
        scores.append(
            Score(
                model=model,
                baseline=is_baseline[model],
                n=rows,
                **{metric: _estimate(own[metric]) for metric in bound[model].statistics},
                delta=differences.get(reference, {}).get(headline),
                seconds=(seconds or {}).get(model),
                peak_mib=(peak_mib or {}).get(model),
                undefined=bound[model].undefined,
                retrieval={
                    f"{name}/{metric}": _estimate(figure)
                    for name in bound[model].lists
                    for metric, figure in zip(OF_LIST, own[name], strict=True)
                    if not math.isnan(figure[0])
                },
                differences=differences,
            )
        )
    return Comparison(
        dataset=dataset,
        dataset_sha256=dataset_sha256,
        phenotype=phenotype,
        split=split,
        rows=rows,
        headline=headline,
        reference=reference,
        clusters=found.name,
        cluster_count=found.count,
        replicates=replicates,
        seed=seed,
        scores=tuple(scores),
        noise=noise,
        notes=(*notes, *_notes(table, found.name, found.count)),
    )
