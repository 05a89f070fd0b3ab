"""How a model learned: every term of its loss, the share of each, and the validation score, epoch by epoch.

Legend: e epochs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from wildtype.evaluation.metrics import Floats

if TYPE_CHECKING:
    import pandas as pd

TERM, SHARE, TOTAL = "loss/", "share/", "loss"
SCORE, ERROR = "validation/pearson", "validation/error"


@dataclass(frozen=True, eq=False)
class LearningCurves:
    """Means over the steps of each epoch, NaN where nothing was logged.

    Attributes
    ----------
    epochs : float64 [E]
        Numbers of the epochs, from 1.
    total : float64 [E]
        The whole objective.
    terms : mapping of str to float64 [E]
        Each term of the loss as logged, before its weight: ``data`` and one per prior.
    shares : mapping of str to float64 [E]
        What each weighted term is of the objective, from 0 to 1.
    score, error : float64 [E]
        On validation rows: the score that epochs are compared by (mean Pearson over phenotypes), and the
        mean squared error of scaled labels.
    """

    epochs: Floats
    total: Floats
    terms: Mapping[str, Floats]
    shares: Mapping[str, Floats]
    score: Floats
    error: Floats

    @property
    def best(self) -> int | None:
        """Position of the epoch with the highest validation score; None where none was logged."""
        return int(np.nanargmax(self.score)) if np.isfinite(self.score).any() else None


def learning_curves(log: pd.DataFrame) -> LearningCurves | None:
    """Return the curves of a log with one row per step and one per validation; None where it has no rows."""
    if "epoch" not in log or not len(log):
        return None
    means = log.groupby("epoch").mean()
    nothing = np.full(len(means), np.nan)

    def column(name: str) -> Floats:
        return means[name].to_numpy(np.float64) if name in means else nothing

    def named(prefix: str) -> dict[str, Floats]:
        return {
            name.removeprefix(prefix): column(name) for name in map(str, means) if name.startswith(prefix)
        }

    return LearningCurves(
        means.index.to_numpy(np.float64) + 1,
        column(TOTAL),
        named(TERM),
        named(SHARE),
        column(SCORE),
        column(ERROR),
    )
