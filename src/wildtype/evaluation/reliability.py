"""Reliability of probabilities: how often what was predicted with a probability happened.

Rows are grouped by their number of unseen genes, and put into bins of equal counts by predicted probability.
A calibrated model has the observed share of each bin at its mean probability (Murphy & Winkler 1977).

Legend: m rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wildtype.evaluation.metrics import Floats

BINS = 10
Z = 1.959964
"""Normal quantile of a 95 % interval."""


@dataclass(frozen=True)
class ReliabilityBin:
    """Rows of one phenotype and number of unseen genes with similar predicted probabilities.

    Attributes
    ----------
    phenotype : str
        Name of the class.
    unseen : int
        Number of genes of each row without a visible training cross; without a grid: without a training row.
    rows : int
        Number of rows.
    predicted : float
        Mean predicted probability.
    observed : float
        Share of rows that are calls.
    low, high : float
        95 % interval of that share (Wilson 1927), which takes rows as independent.
    """

    phenotype: str
    unseen: int
    rows: int
    predicted: float
    observed: float
    low: float
    high: float

    @property
    def group(self) -> str:
        """The rows in words."""
        counted = "no" if not self.unseen else str(self.unseen)
        return f"{self.phenotype}: {counted} unseen gene{'' if self.unseen == 1 else 's'}"


def reliability(
    phenotype: str, call: Floats, probability: Floats, unseen: NDArray[np.int64], *, bins: int = BINS
) -> list[ReliabilityBin]:
    """Return the bins of every number of unseen genes, by rising probability.

    Parameters
    ----------
    phenotype : str
        Name of the class.
    call, probability : float64 [m]
        Labels, 0 or 1, and predictions; rows without a finite prediction are left out.
    unseen : int64 [m]
        Number of unseen genes.
    bins : int
        Bins of each group; fewer where it has fewer rows.
    """
    found = []
    for count in np.unique(unseen).tolist():
        rows = np.flatnonzero((unseen == count) & np.isfinite(probability))
        rows = rows[np.argsort(probability[rows], kind="stable")]
        for part in np.array_split(rows, min(bins, len(rows)) or 1):
            if not part.size:
                continue
            share = float(call[part].mean())
            low, high = wilson(share, part.size)
            mean = float(probability[part].mean())
            found.append(ReliabilityBin(phenotype, count, int(part.size), mean, share, low, high))
    return found


def wilson(share: float, rows: int) -> tuple[float, float]:
    """Return the 95 % score interval of a share among so many independent rows."""
    # Unlike the normal interval it stays within 0 and 1, and has a width where nothing was observed.
    centre = (share + Z * Z / (2 * rows)) / (1 + Z * Z / rows)
    half = Z / (1 + Z * Z / rows) * math.sqrt(share * (1 - share) / rows + Z * Z / (4 * rows * rows))
    return max(centre - half, 0.0), min(centre + half, 1.0)


def largest_gap(found: Sequence[ReliabilityBin]) -> ReliabilityBin:
    """Return the bin whose observed share is farthest from its mean probability."""
    return max(found, key=lambda one: abs(one.observed - one.predicted))
