"""Models against baselines on identical rows: metrics, cluster-bootstrap intervals, paired differences."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wildtype.errors import CheckpointError, ConfigError, DatasetError, ShapeError
from wildtype.evaluation.bootstrap import (
    NAN,
    UNDEFINED,
    Clusters,
    IntervalEstimate,
    bootstrap,
    clusters_for,
    find_clusters,
    interval,
    two_sided_p,
)
from wildtype.evaluation.metrics import METRICS, Bound, Floats, Statistic, bind
from wildtype.evaluation.noise import noise_guide
from wildtype.evaluation.retrieval import retrieval_estimates
from wildtype.files import finite
from wildtype.models.registry import MODELS

if TYPE_CHECKING:
    from wildtype.datasets import Dataset
    from wildtype.mutants import MutantTable

HEADLINES = {
    "pearson": "Pearson",
    "pearson_by_condition": "Pearson (mean over conditions)",
    "average_precision": "average precision",
}
"""Metrics that models are ranked by, and their names in sentences."""

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Difference:
    """Headline metric of a model minus that of ``against``, paired by resample; p is two-sided."""

    against: str
    value: float
    low: float
    high: float
    p: float


@dataclass(frozen=True)
class Score:
    """Metrics of one model on the compared rows.

    Attributes
    ----------
    model : str
        Name.
    baseline : bool
        Whether it counts as a baseline.
    n : int
        Rows.
    pearson, pearson_by_condition, spearman, mse, bias, r2, auroc_sign, auroc_strong, pearson_negatives,
    average_precision, log_loss, brier : IntervalEstimate
        As defined in ``wildtype.evaluation.metrics``.
    delta : Difference or None
        To the reference; None for the reference itself and where the headline metric is undefined.
    seconds : float or None
        Time to fit and predict, where measured.
    peak_mib : float or None
        Peak memory in MiB, where measured.
    undefined : dict of str to str
        Why a metric is NaN.
    retrieval : dict of str to IntervalEstimate
        ``list/metric`` of ``wildtype.evaluation.retrieval``, those that are defined; empty where the
        phenotype has no strong interactions.
    """

    model: str
    baseline: bool
    n: int
    pearson: IntervalEstimate = UNDEFINED
    pearson_by_condition: IntervalEstimate = UNDEFINED
    spearman: IntervalEstimate = UNDEFINED
    mse: IntervalEstimate = UNDEFINED
    bias: IntervalEstimate = UNDEFINED
    r2: IntervalEstimate = UNDEFINED
    auroc_sign: IntervalEstimate = UNDEFINED
    auroc_strong: IntervalEstimate = UNDEFINED
    pearson_negatives: IntervalEstimate = UNDEFINED
    average_precision: IntervalEstimate = UNDEFINED
    log_loss: IntervalEstimate = UNDEFINED
    brier: IntervalEstimate = UNDEFINED
    delta: Difference | None = None
    seconds: float | None = None
    peak_mib: float | None = None
    undefined: Mapping[str, str] = field(default_factory=dict)
    retrieval: Mapping[str, IntervalEstimate] = field(default_factory=dict)

    def estimate(self, metric: str) -> IntervalEstimate:
        """Return a metric by name; raises ``ConfigError`` naming the known ones."""
        if metric not in METRICS:
            raise ConfigError(f"{metric!r} is not a metric; known metrics: {', '.join(METRICS)}")
        found: IntervalEstimate = getattr(self, metric)
        return found


@dataclass(frozen=True)
class Comparison:
    """Scores of several models on identical rows, best first.

    Attributes
    ----------
    dataset, dataset_sha256, phenotype, split : str
        What the rows are.
    rows : int
        Number of rows.
    headline : str
        The metric that models are ranked by: ``pearson``; with several conditions ``pearson_by_condition``;
        with calls as labels ``average_precision``.
    reference : str
        Best baseline by the headline metric on these very rows, which favours it slightly; the best model
        when no baseline has a defined one; empty when no model has.
    clusters, cluster_count, replicates, seed
        How the intervals were made.
    scores : tuple of Score
        By headline metric, undefined ones last.
    noise : str
        Noise guide of the labels.
    notes : tuple of str
        Remarks for the reader.
    """

    dataset: str
    dataset_sha256: str
    phenotype: str
    split: str
    rows: int
    headline: str
    reference: str
    clusters: str
    cluster_count: int
    replicates: int
    seed: int
    scores: tuple[Score, ...]
    noise: str = ""
    notes: tuple[str, ...] = ()

    def __getitem__(self, model: str) -> Score:
        for score in self.scores:
            if score.model == model:
                return score
        known = ", ".join(score.model for score in self.scores)
        raise ConfigError(f"{model!r} was not compared; compared models: {known}")

    @property
    def best(self) -> Score:
        """The model with the highest headline metric."""
        return self.scores[0]

    @property
    def winner_sentence(self) -> str:
        """One sentence: which model is best, or that the best two are not distinguishable.

        It compares the best model that is no baseline with the best baseline; where there is only one of
        these kinds, the best model with the second. A difference is model minus reference.
        """
        name = HEADLINES[self.headline]
        if not self.reference:
            return f"No model has a defined {name}, so none wins."
        against = self[self.reference]
        ranked = [score for score in self.scores if score.delta is not None]
        challenger = next((s for s in ranked if s.baseline != against.baseline), next(iter(ranked), None))
        if challenger is None or challenger.delta is None:
            only = against.estimate(self.headline)
            return f"{_titled(against)} is alone: {name} {only.value:.2f}{_bracket(only)}."
        delta = challenger.delta
        ours, theirs = challenger.estimate(self.headline).value, against.estimate(self.headline).value
        difference = f"difference {signed(delta.value)} [{signed(delta.low)}, {signed(delta.high)}]"
        if delta.low > 0:
            return (
                f"{_titled(challenger)} wins: {name} {ours:.2f} against {theirs:.2f} of {_titled(against)} "
                f"({difference})."
            )
        if delta.high < 0:
            return (
                f"{_titled(against)} wins: {name} {theirs:.2f} against {ours:.2f} of {_titled(challenger)} "
                f"({difference})."
            )
        return (
            f"{_titled(challenger)} and {_titled(against)} are not distinguishable: {name} {ours:.2f} and "
            f"{theirs:.2f} ({difference}, p {delta.p:.2f})."
        )

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-like record; NaN becomes None."""
        record: dict[str, Any] = finite(asdict(self))
        return record | {"best": self.best.model, "winner_sentence": self.winner_sentence}

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Comparison:
        """Rebuild a comparison from ``to_json``; raises ``CheckpointError`` on a record that is not one."""
        try:
            own = {f.name: record[f.name] for f in fields(cls)}
            own["scores"] = tuple(_score_from_json(score) for score in record["scores"])
            own["notes"] = tuple(record["notes"])
            if not own["scores"]:
                raise ValueError("there are no scores")
            return cls(**own)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise CheckpointError(f"this is not a stored comparison ({error!r}): restore the file") from error


def signed(value: float) -> str:
    """Return a number with two decimals, its sign, and a typographic minus."""
    return "nan" if math.isnan(value) else f"{value:+.2f}".replace("-", "−")


def _titled(score: Score) -> str:
    return f"{score.model} (baseline)" if score.baseline else score.model


def _bracket(estimate: IntervalEstimate) -> str:
    return "" if math.isnan(estimate.low) else f" [{estimate.low:.2f}, {estimate.high:.2f}]"


def _number(value: float | None) -> float:
    return NAN if value is None else float(value)


def _score_from_json(record: Mapping[str, Any]) -> Score:
    # Not in records of earlier versions.
    absent = {name: asdict(UNDEFINED) for name in ("average_precision", "bias", "log_loss", "brier")}
    record = absent | dict(record)
    own = {f.name: record[f.name] for f in fields(Score) if f.name != "retrieval"}
    lists = record.get("retrieval", {})  # nor is this
    own["retrieval"] = {
        name: IntervalEstimate(**{key: _number(value) for key, value in found.items()})
        for name, found in lists.items()
    }
    for metric in METRICS:
        own[metric] = IntervalEstimate(**{key: _number(value) for key, value in record[metric].items()})
    if (delta := record["delta"]) is not None:
        own["delta"] = Difference(
            delta["against"], *(_number(delta[key]) for key in ("value", "low", "high", "p"))
        )
    return Score(**own)


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
            other_quantity=other_quantity,
        )

    def retrieve(found: Clusters, replicates: int, seed: int) -> dict[str, dict[str, IntervalEstimate]]:
        if strong is None:
            return {}
        return retrieval_estimates(
            truth,
            predictions,
            strong,
            found,
            strong_positive=strong_positive,
            replicates=replicates,
            seed=seed,
        )

    noise = str(noise_guide(dataset, at))
    return rank_models(dataset, at, bound, phenotype=phenotype, noise=noise, retrieve=retrieve, **options)


def rank_models(
    dataset: Dataset,
    at: Ints,
    bound: Mapping[str, Bound],
    *,
    phenotype: str,
    noise: str,
    notes: Sequence[str] = (),
    retrieve: Callable[[Clusters, int, int], dict[str, dict[str, IntervalEstimate]]] | None = None,
    baselines: Collection[str] | None = None,
    seconds: Mapping[str, float] | None = None,
    peak_mib: Mapping[str, float] | None = None,
    clusters: str = "auto",
    split: str = "",
    replicates: int = 1000,
    seed: int = 0,
) -> Comparison:
    """Rank models by bound metrics on rows [M], with intervals; options as in `evaluate_predictions`."""
    table = dataset.table.take(at)
    values = {model: b.values(at.size) for model, b in bound.items()}
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
    # All metrics of all models go through one pass over the resamples: drawing them costs most.
    statistics: dict[str, Statistic] = {
        f"{metric}/{model}": statistic
        for model, b in bound.items()
        for metric, statistic in b.statistics.items()
    }
    drawn = bootstrap(statistics, found, replicates=replicates, seed=seed)
    retrieved = {} if retrieve is None else retrieve(found, replicates, seed)

    def delta(model: str) -> Difference | None:
        if model == reference or model not in defined:
            return None
        # Both models see the same resample, so what makes its rows hard or easy cancels in the difference.
        differences: Floats = drawn[f"{headline}/{model}"] - drawn[f"{headline}/{reference}"]
        value = values[model][headline] - values[reference][headline]
        return Difference(reference, value, *interval(differences), two_sided_p(differences))

    scores = []
    for model in ranked:
        estimates = {
            metric: IntervalEstimate(values[model][metric], *interval(drawn[f"{metric}/{model}"]))
            for metric in bound[model].statistics
        }
        scores.append(
            Score(
                model=model,
                baseline=is_baseline[model],
                n=at.size,
                **estimates,
                delta=delta(model),
                seconds=(seconds or {}).get(model),
                peak_mib=(peak_mib or {}).get(model),
                undefined=bound[model].undefined,
                retrieval=retrieved.get(model, {}),
            )
        )
    return Comparison(
        dataset=dataset.name,
        dataset_sha256=dataset.sha256,
        phenotype=phenotype,
        split=split,
        rows=int(at.size),
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
