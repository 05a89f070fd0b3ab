"""`OverModels`: one number over several trained models, and what else is counted or compared across them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy import stats


@dataclass(frozen=True)
class OverModels:
    """A claim's number in every model.

    Attributes
    ----------
    mean, sd : float
        Over the models that have it (sd with n - 1); the sd of one is NaN: no agreement is known.
    each : tuple of float
        In the order of the models; NaN where a model has none.
    """

    mean: float
    sd: float
    each: tuple[float, ...]

    @classmethod
    def of(cls, values: Sequence[float]) -> OverModels:
        """Return one value per model together."""
        each = tuple(float(value) for value in values)
        there = [value for value in each if not math.isnan(value)]
        mean = float(np.mean(there)) if there else math.nan
        sd = float(np.std(there, ddof=1)) if len(there) > 1 else math.nan
        return cls(mean, sd, each)


def rank_agreement(values: Sequence[NDArray[np.float64]]) -> float:
    """Return the mean Spearman correlation of all pairs of models; NaN for one, and where it is undefined."""
    found = [
        float(stats.spearmanr(one, two).statistic)
        for one, two in combinations(values, 2)
        if np.ptp(one) > 0 and np.ptp(two) > 0
    ]
    return float(np.mean(found)) if found else math.nan
