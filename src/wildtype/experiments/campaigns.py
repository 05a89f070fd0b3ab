"""Replayed campaigns of a run on a grid: over its hidden test crosses, and over its external tests.

Legend: M rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from wildtype.datasets import Phenotype
from wildtype.evaluation.campaign import Campaign, calibrated, replay
from wildtype.experiments.data import RunData
from wildtype.experiments.external import ExternalRows

Predictions = Mapping[str, NDArray[np.float64]]


def replay_campaigns(
    data: RunData,
    predicted: Predictions,
    validated: Predictions,
    outside: Sequence[ExternalRows],
    external: Sequence[Predictions],
) -> list[Campaign]:
    """Return a campaign per phenotype of crosses, and one for negative interactions of each external test.

    Parameters
    ----------
    data : RunData
        With a grid.
    predicted, validated : mapping of str to float64 [M]
        By model, of the test and of the validation rows; the latter calibrate the probability of a hit.
    outside, external
        External tests and their predictions. Their hits are of other measurements than those of the
        validation rows, so that none are expected.
    """
    test, validation = data.part("test"), data.part("validation")
    found = []
    for p, phenotype in enumerate(data.dataset.phenotypes):
        if phenotype.of_cross not in ("effect", "negative", "positive"):
            continue
        rows, known = test.phenotype == p, validation.phenotype == p
        sign = -1.0 if phenotype.of_cross == "effect" else 1.0
        scores, probabilities = {}, {}
        for model, values in predicted.items():
            if not np.isfinite(values[rows]).all() or not rows.any():
                continue
            scores[model] = sign * values[rows]
            score = sign * validated[model][known]
            if len(score) and np.isfinite(score).all():
                hit = _hits(phenotype, validation.value[known])
                probabilities[model] = calibrated(score, hit, scores[model])
        if scores:
            hit = _hits(phenotype, test.value[rows])
            found.append(replay(phenotype.name, hit, scores, probabilities, what=_what(phenotype)))
    for one, models in zip(outside, external, strict=True):
        kind = one.dataset.phenotypes[0]
        scores = {model: -values for model, values in models.items() if np.isfinite(values).all()}
        if scores and kind.form == "scalar":
            found.append(replay(one.key, _hits(kind, one.table.value), scores, {}, what=_what(kind)))
    return found


def _hits(phenotype: Phenotype, value: NDArray[np.float32]) -> NDArray[np.bool_]:
    if phenotype.form == "class":
        return np.asarray(value == 1)
    return np.asarray(value <= -phenotype.strong)


def _what(phenotype: Phenotype) -> str:
    if phenotype.form == "class":
        return f"listed as {phenotype.of_cross}"
    return f"{phenotype.name} at most −{phenotype.strong:g}"
