"""Highest Pearson correlation that noisy labels allow: a rough guide from their standard deviations."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from wildtype.datasets import Dataset

LIMITS = (
    "assumes that sd is the standard error of the label, that errors are independent of each other and of "
    "the true value, and that rows were not selected by their label; where only significant rows are listed "
    "the variance between rows is inflated and the guide too high, and where sd is that of single replicates "
    "it is too low"
)
"""Assumptions of the guide."""


@dataclass(frozen=True)
class NoiseGuide:
    """Highest Pearson correlation expected of a perfect model: a rough guide, not a bound.

    Attributes
    ----------
    ceiling : float
        sqrt(1 − mean(sd²) / var(label)): the correlation of the true values with the labels (classical test
        theory: Lord and Novick 1968, section 3.4). NaN where it is not known, for the ``reason`` given.
    rows, rows_with_sd : int
        Number of rows, and of those with a known sd, which the guide is computed from.
    stated : str
        Statement of the dataset about its noise.
    reason : str
        Why there is no ceiling; empty where there is one.
    limits : str
        Assumptions of the guide.
    """

    ceiling: float
    rows: int
    rows_with_sd: int
    stated: str
    reason: str = ""
    limits: str = LIMITS

    def __str__(self) -> str:
        if math.isnan(self.ceiling):
            return f"no noise ceiling: {self.reason}. Stated: {self.stated}"
        return (
            f"rough guide to the highest Pearson: {self.ceiling:.2f}, from the sd of {self.rows_with_sd:,} "
            f"of {self.rows:,} rows; {self.limits}. Stated: {self.stated}"
        )


def noise_guide(dataset: Dataset, rows: ArrayLike) -> NoiseGuide:
    """Return the guide for rows [M] of one phenotype of a dataset."""
    at = np.asarray(rows, dtype=np.int64)
    table = dataset.table
    return guide(table.value[at].astype(np.float64), table.sd[at].astype(np.float64), dataset.noise)


def guide(value: NDArray[np.float64], sd: NDArray[np.float64], stated: str = "") -> NoiseGuide:
    """Return the guide for labels [M] of one phenotype and their sd [M], NaN where it is not known."""
    known = np.isfinite(sd)
    variance = float(value[known].var()) if known.any() else 0.0
    reason = ""
    if known.sum() < 2:
        reason = f"{int(known.sum())} rows have a known sd"
    elif not (sd[known] > 0).any():
        reason = "all known sd are 0 (labels without noise)"
    elif variance == 0:
        reason = "all labels are equal"
    # var(label) = var(truth) + mean(sd²), so corr(truth, label)² = var(truth) / var(label) = 1 − noise /
    # variance.
    noise = float((sd[known] ** 2).mean()) if known.any() else 0.0
    if not reason and noise >= variance:
        reason = "the mean squared sd exceeds the variance of the labels"
    ceiling = math.nan if reason else math.sqrt(1.0 - noise / variance)
    return NoiseGuide(ceiling, value.size, int(known.sum()), stated, reason)
