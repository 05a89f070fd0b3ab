"""The comparison tables of a run: every model on the same test rows, by phenotype and over all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wildtype.datasets.closed_forms import CLOSED_FORMS
from wildtype.errors import DatasetError
from wildtype.evaluation.compare import evaluate_predictions
from wildtype.evaluation.comparison import Comparison
from wildtype.evaluation.over_phenotypes import evaluate_across, evaluate_profiles, evaluate_vector
from wildtype.experiments.baselines import triples
from wildtype.experiments.data import RunData
from wildtype.experiments.settings.schema import TrainConfig
from wildtype.models.checkpoint import Checkpoint


def compare_phenotypes(
    config: TrainConfig,
    data: RunData,
    predicted: dict[str, NDArray[np.float64]],
    seconds: dict[str, float],
    peak: dict[str, float],
) -> dict[str, Comparison]:
    """Return the table of every phenotype outside of groups, and of every group."""
    phenotype = data.dataset.table.phenotype[data.split.test]
    closed = triples(data)

    def options(i: int) -> dict[str, Any]:
        return {
            "baselines": [name for name in applicable(predicted, i) if name != config.model.name],
            "split": data.split.name,
            "seconds": applicable(seconds, i),
            "peak_mib": applicable(peak, i),
            "replicates": config.run.replicates,
            "seed": config.seed,
        }

    def applicable(values: dict[str, Any], i: int) -> dict[str, Any]:
        # A closed form predicts triples from their pairs; of other phenotypes it has no numbers.
        return {name: value for name, value in values.items() if i in closed or name not in CLOSED_FORMS}

    found = {}
    for i, p in enumerate(data.dataset.phenotypes):
        rows = phenotype == i
        if not rows.any() or p.form == "gene":
            continue
        if p.group:
            if p.group in found:
                continue
            members = [j for j, other in enumerate(data.dataset.phenotypes) if other.group == p.group]
            rows = np.isin(phenotype, members)
            found[p.group] = evaluate_vector(
                data.dataset,
                data.split.test[rows],
                {name: v[rows] for name, v in applicable(predicted, i).items()},
                data.scaler,
                p.group,
                **options(i),
            )
            continue
        found[p.name] = evaluate_predictions(
            data.dataset,
            data.split.test[rows],
            {name: values[rows] for name, values in applicable(predicted, i).items()},
            phenotype=p.name,
            **options(i),
        )
    return found


def compare_profile_phenotypes(
    config: TrainConfig, data: RunData, checkpoint: Checkpoint, seconds: dict[str, float]
) -> dict[str, Comparison]:
    """Return the table of every phenotype with one number per gene: the model, and the mean profile."""
    train, test, found = data.part("train"), data.part("test"), {}
    for i, p in enumerate(data.dataset.phenotypes):
        rows, learned = np.flatnonzero(test.phenotype == i), np.flatnonzero(train.phenotype == i)
        if p.form != "gene" or not rows.size:
            continue
        assert train.profile is not None
        assert train.profiles is not None
        # The baseline: the mean over training rows, gene by gene, of what was measured.
        seen = train.profiles[train.profile[learned]]
        known = np.isfinite(seen)
        mean = np.where(known, seen, 0).sum(0) / np.maximum(known.sum(0), 1)
        model = checkpoint.predict_profiles(test.take(rows), i)
        found[p.name] = evaluate_profiles(
            data.dataset,
            data.split.test[rows],
            {config.model.name: model, "mean": np.broadcast_to(mean, model.shape)},
            data.scaler,
            p.name,
            baselines=["mean"],
            split=data.split.name,
            seconds={config.model.name: seconds[config.model.name]},
            replicates=config.run.replicates,
            seed=config.seed,
        )
    return found


def compare_across(
    config: TrainConfig,
    data: RunData,
    predicted: dict[str, NDArray[np.float64]],
    seconds: dict[str, float],
    peak: dict[str, float],
    log: Callable[[str], None],
) -> Comparison | None:
    """Return the mean over phenotypes; None, and a line in the log, where too few allow a correlation."""
    try:
        return evaluate_across(
            data.dataset,
            data.split.test,
            predicted,
            baselines=[name for name in predicted if name != config.model.name],
            split=data.split.name,
            seconds=seconds,
            peak_mib=peak,
            replicates=config.run.replicates,
            seed=config.seed,
        )
    except DatasetError as error:  # too few phenotypes have labels that differ; their own tables remain
        log(str(error))
        return None
