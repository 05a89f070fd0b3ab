"""`Comparison`, `Score`, `Difference`: how several models did on identical rows, as records."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields
from typing import Any

from wildtype.errors import CheckpointError, ConfigError
from wildtype.evaluation.bootstrap import NAN, UNDEFINED, IntervalEstimate
from wildtype.evaluation.metrics import METRICS
from wildtype.files import finite
from wildtype.tables import facts_html

HEADLINES = {
    "pearson": "Pearson",
    "pearson_by_condition": "Pearson (mean over conditions)",
    "average_precision": "average precision",
}
"""Metrics that models are ranked by, and their names in sentences."""
PAIRED = (
    "pearson",
    "pearson_by_condition",
    "pearson_gene_removed",
    "spearman",
    "average_precision",
    "negative/average_precision",
    "positive/average_precision",
    "rmse",
    "log_loss",
    "brier",
    "bias",
)
"""Metrics with paired differences between models: a metric, or a list and a metric of it. ``rmse`` is the
root of ``mse``, and ``bias`` here its absolute value: of these two, of log loss and of Brier the lower is
better.
"""


@dataclass(frozen=True)
class Difference:
    """A metric of a model minus that of ``against``, paired by resample; p is two-sided."""

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
    average_precision, log_loss, brier, pearson_gene_removed, pearson_shuffled : IntervalEstimate
        As defined in ``wildtype.evaluation.metrics``.
    delta : Difference or None
        Of the headline metric, to the reference; None for the reference itself and where it is undefined.
    differences : dict of str to dict of str to Difference
        By name of the other model, then by metric of ``PAIRED``: of a model that is no baseline to every
        baseline, and of every model to the reference. Metrics that one of both lacks are left out.
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
    pearson_gene_removed: IntervalEstimate = UNDEFINED
    pearson_shuffled: IntervalEstimate = UNDEFINED
    delta: Difference | None = None
    seconds: float | None = None
    peak_mib: float | None = None
    undefined: Mapping[str, str] = field(default_factory=dict)
    retrieval: Mapping[str, IntervalEstimate] = field(default_factory=dict)
    differences: Mapping[str, Mapping[str, Difference]] = field(default_factory=dict)

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
    strong, strong_positive : float or None
        Thresholds of strong labels; None where the phenotype has none.
    other_quantity : str
        Why predictions are another quantity than the labels; empty where they are the same.
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
    strong: float | None = None
    strong_positive: float | None = None
    other_quantity: str = ""

    def __getitem__(self, model: str) -> Score:
        for score in self.scores:
            if score.model == model:
                return score
        known = ", ".join(score.model for score in self.scores)
        raise ConfigError(f"{model!r} was not compared; compared models: {known}")

    def __repr__(self) -> str:
        return (
            f"Comparison({self.phenotype} of {self.dataset}, split {self.split}, {self.rows:,} rows: "
            f"{self.winner_sentence})"
        )

    def _repr_html_(self) -> str:
        name = HEADLINES[self.headline]
        scores = [
            (score.model, f"{name} {found.value:.3f}{_bracket(found)}")
            for score in self.scores
            for found in [score.estimate(self.headline)]
        ]
        return facts_html(f"{self.phenotype} of {self.dataset}: {self.winner_sentence}", scores)

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
            # Fields with defaults are not in records of earlier versions.
            own = {f.name: record[f.name] for f in fields(cls) if f.name in record or f.default is MISSING}
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


def _difference(record: Mapping[str, Any]) -> Difference:
    return Difference(record["against"], *(_number(record[key]) for key in ("value", "low", "high", "p")))


def _score_from_json(record: Mapping[str, Any]) -> Score:
    # Not in records of earlier versions.
    absent = {name: asdict(UNDEFINED) for name in METRICS}
    record = absent | {"retrieval": {}, "differences": {}} | dict(record)
    own = {f.name: record[f.name] for f in fields(Score)}
    own["retrieval"] = {
        name: IntervalEstimate(**{key: _number(value) for key, value in found.items()})
        for name, found in record["retrieval"].items()
    }
    for metric in METRICS:
        own[metric] = IntervalEstimate(**{key: _number(value) for key, value in record[metric].items()})
    own["delta"] = None if record["delta"] is None else _difference(record["delta"])
    own["differences"] = {
        against: {metric: _difference(delta) for metric, delta in found.items()}
        for against, found in record["differences"].items()
    }
    return Score(**own)
