"""Replayed campaigns: which hidden mutants a laboratory measures first, and how many hits it finds.

A policy ranks mutants whose labels are hidden from all models, and measures the first batches of its list.
Found are the hits among them. Expected is the sum of their probabilities, which a calibration on validation
rows makes of any score. No model learns from an earlier batch.

Legend: m hidden mutants · v validation rows · k mutants of a batch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wildtype.errors import ShapeError
from wildtype.evaluation.metrics import Floats, Mask
from wildtype.files import finite

BATCHES, SIZE = 5, 96
"""Batches of a campaign, and mutants of one: the wells of a plate."""
RANDOM = "random"
"""Name of the policy that measures mutants in any order."""


@dataclass(frozen=True)
class PolicyOutcome:
    """Hits of one policy, by batch.

    Attributes
    ----------
    policy : str
        The model whose score ranks the mutants, or ``random``.
    found : tuple of float
        Hits among the mutants of each batch; of ``random`` the mean over all orders.
    expected : tuple of float
        Sums of probabilities; empty where there are none.
    """

    policy: str
    found: tuple[float, ...]
    expected: tuple[float, ...] = ()


@dataclass(frozen=True)
class Campaign:
    """The outcomes of all policies on the same hidden mutants.

    Attributes
    ----------
    name, hit : str
        What is searched for: a name, and in words what counts as a hit.
    rows, hits : int
        Hidden mutants, and hits among all of them.
    size : int
        Mutants of a batch; the last one may have fewer.
    outcomes : tuple of PolicyOutcome
        By hits found in all batches, most first.
    """

    name: str
    hit: str
    rows: int
    hits: int
    size: int
    outcomes: tuple[PolicyOutcome, ...]

    def __getitem__(self, policy: str) -> PolicyOutcome:
        return next(one for one in self.outcomes if one.policy == policy)

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        record: dict[str, Any] = finite(asdict(self))
        return record

    def lines(self) -> list[str]:
        """Return one sentence per policy."""
        found = []
        for one in self.outcomes:
            batches = " + ".join(f"{hits:.3g}" for hits in one.found)
            expected = f", expected {sum(one.expected):.1f}" if one.expected else ""
            found.append(
                f"campaign {self.name}: {one.policy} finds {sum(one.found):.3g} of {self.hits:,} hits "
                f"({self.hit}) among {self.rows:,} mutants, in batches of {self.size}: {batches}{expected}"
            )
        return found


def calibrated(score: Floats, hit: Mask, of: Floats) -> Floats:
    """Return the probability of a hit [m] for scores ``of`` [m], from rows whose hits are known.

    Isotonic regression (Zadrozny & Elkan 2002): the rising function of the score with the least squared
    error. Scores beyond those of the known rows get the probability of the nearest.

    Parameters
    ----------
    score, hit : float64 [v], bool [v]
        Of validation rows at their natural rate.
    of : float64 [m]
    """
    from sklearn.isotonic import IsotonicRegression

    model = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip").fit(score, hit.astype(np.float64))
    return np.asarray(model.predict(of), np.float64)


def replay(
    name: str,
    hit: Mask,
    scores: Mapping[str, Floats],
    probabilities: Mapping[str, Floats],
    *,
    what: str = "",
    batches: int = BATCHES,
    size: int = SIZE,
) -> Campaign:
    """Replay a campaign over hidden mutants, for each model and for a random order.

    Parameters
    ----------
    name, what : str
        Name of the campaign, and what a hit is.
    hit : bool [m]
        Which mutants are hits; no policy sees it.
    scores : mapping of str to float64 [m]
        By model; the highest is measured first. Equal scores keep the order of rows.
    probabilities : mapping of str to float64 [m]
        By model, of a hit; models without have no expected hits.
    batches, size : int
        Number of batches, and mutants in each.

    Raises
    ------
    ShapeError
        If a model has not one score per mutant.
    """
    m = len(hit)
    starts = [start for start in range(0, batches * size, size) if start < m]

    def per_batch(values: NDArray[Any]) -> tuple[float, ...]:
        return tuple(float(values[start : start + size].sum()) for start in starts)

    outcomes = []
    for model, score in scores.items():
        if np.shape(score) != hit.shape:
            raise ShapeError(f"{model} has scores of shape {np.shape(score)}, expected {hit.shape}")
        order = np.argsort(-score, kind="stable")
        probability = probabilities.get(model)
        expected = () if probability is None else per_batch(probability[order])
        outcomes.append(PolicyOutcome(model, per_batch(hit[order]), expected))
    outcomes.sort(key=lambda one: -sum(one.found))
    # The mean over all orders: one drawn order would differ from it by chance.
    chance = per_batch(np.full(m, hit.mean() if m else 0.0))
    return Campaign(name, what, m, int(hit.sum()), size, (*outcomes, PolicyOutcome(RANDOM, chance, chance)))
