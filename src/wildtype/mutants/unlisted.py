"""`UnlistedMean`: E[y | screened, not listed] of a cross, from its chances of being listed.

A screen lists values at or below a cut-off l and at or above another u. Let the value of a cross be normal
with mean m and the sd σ that unlisted crosses have. Its two chances of being listed each give m,

    p₋ = Φ((l − m) / σ),    p₊ = 1 − Φ((u − m) / σ),

of which the mean is taken, and between the cut-offs the normal has the mean

    m + σ (φ(a) − φ(b)) / (Φ(b) − Φ(a)),    a = (l − m) / σ,    b = (u − m) / σ

(truncated normal; Johnson, Kotz & Balakrishnan 1994, Continuous Univariate Distributions 1, section 10.1).
A cross that was likely to be listed and was not is expected closer to the cut-off than others, never beyond
it, while E[y] of such a cross, had nobody screened it, may well be.

Legend: m crosses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtri

from wildtype.mutants.selection import CLASSES, Selection

Floats = NDArray[np.float64]
LEAST_CHANCE = 1e-6
"""Chances are kept this far from 0 and 1, where a normal would have no mean."""


def unlisted_name(phenotype: str) -> str:
    """Return the name of E[y | screened, not listed] of a phenotype, in tables and as a column."""
    return f"{phenotype}_unlisted"


@dataclass(frozen=True)
class UnlistedMean:
    """The rule of one screen.

    Attributes
    ----------
    effect, negative, positive : int
        Positions of the value and of both classes among the phenotypes of a run.
    low, high, sd : float
        The cut-offs l < u and σ.
    """

    effect: int
    negative: int
    positive: int
    low: float
    high: float
    sd: float

    @classmethod
    def of(cls, phenotypes: Sequence[Mapping[str, Any]]) -> Self | None:
        """Return the rule of a run's phenotypes (records as a checkpoint holds them).

        None where they are not the value and both classes of one screen, or nobody told the sd of what it did
        not list.
        """
        at = {str(p.get("of_cross", "")): i for i, p in enumerate(phenotypes)}
        if not {"effect", *CLASSES} <= at.keys():
            return None
        rules = [Selection.from_json(p.get("selection")) or Selection() for p in phenotypes]
        negative, positive = (at[name] for name in CLASSES)
        low, high = rules[negative].negative, rules[positive].positive
        sd = next((r.unlisted_sd for r in rules if (r.negative, r.positive) == (low, high)), None)
        if low is None or high is None or sd is None:
            return None
        return cls(at["effect"], negative, positive, low, high, sd)

    def __call__(self, predicted: Floats) -> Floats:
        """Return the mean [m] of crosses that were not listed, from predictions [m, p] of all phenotypes."""
        chances = predicted[:, [self.negative, self.positive]].astype(np.float64)
        down, up = ndtri(np.clip(chances, LEAST_CHANCE, 1 - LEAST_CHANCE)).T
        mean = (self.low + self.high - self.sd * (down - up)) / 2
        a, b = (self.low - mean) / self.sd, (self.high - mean) / self.sd
        # Rounding alone could lead beyond the cut-offs.
        return np.asarray(np.clip(mean + self.sd * _middle(a, b), self.low, self.high))


def _middle(a: Floats, b: Floats) -> Floats:
    """Return the mean of a standard normal between a < b, also where both lie far in one tail."""
    # On the side of the lower tail, where no difference of two numbers near 1 loses its digits.
    turned = a + b > 0
    a, b = np.where(turned, -b, a), np.where(turned, -a, b)
    inside = log_ndtr(b) + np.log1p(-np.exp(log_ndtr(a) - log_ndtr(b)))
    density = -0.5 * np.log(2 * np.pi)
    mean = np.exp(density - a**2 / 2 - inside) - np.exp(density - b**2 / 2 - inside)
    return np.asarray(np.where(turned, -mean, mean))
