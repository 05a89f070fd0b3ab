"""`ErrorScale`: how large the error of a prediction is expected to be, from what is known beside it.

Prediction intervals are as wide as the errors that a mutant like the query is expected to have (locally
weighted conformal prediction; Lei et al. 2018, section 5.2). The expected size of an error is a weighted sum
of quantities that no label of the query enters, with weights of at least 0: none is expected to be below 0.

Legend: m rows · k quantities or knots.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

Floats = NDArray[np.float64]

ROUNDS = 4
"""Fits of the weights; rows count by the inverse of what the last fit expects, as large errors vary more."""
TINY = 1e-9
"""The same, relative to the largest error, where most rows have none."""
LEAST = 0.25
"""Smallest expected error, relative to the median: no combination of quantities promises certainty."""


@dataclass(frozen=True, eq=False)
class ErrorScale:
    """Expected sizes of errors.

    Attributes
    ----------
    weight : float64 [k]
        At least 0.
    least : float
        No error is expected to be smaller.
    """

    weight: Floats
    least: float

    @classmethod
    def fit(cls, quantities: Floats, error: Floats) -> Self:
        """Fit the sizes of errors [m] by quantities [m, k], each at least 0."""
        if not error.any():
            return cls(np.zeros(quantities.shape[1]), 1.0)
        size = np.abs(quantities).mean(0)
        x = quantities / np.where(size > 0, size, 1.0)
        expected, least = np.full(len(error), error.mean()), 0.0
        weight = np.zeros(x.shape[1])
        for _ in range(ROUNDS):
            weight = nnls(x / expected[:, None], error / expected)[0]
            expected = x @ weight
            least = max(LEAST * float(np.median(expected)), TINY * float(error.max()))
            expected = np.maximum(expected, least)
        return cls(weight / np.where(size > 0, size, 1.0), least)

    def expected(self, quantities: Floats) -> Floats:
        """Return the expected sizes of errors [m] for quantities [m, k]."""
        return np.maximum(quantities @ self.weight, self.least)


def hats(value: Floats, knots: Floats) -> Floats:
    """Return hat functions of values [m], [m, k]: 1 at its ascending knot and 0 at all others, with sum 1.

    Their weighted sums are the functions that are linear between knots and constant beyond them.
    """
    return np.column_stack([np.interp(value, knots, unit) for unit in np.eye(len(knots))])
