"""Gradient boosting on label-free features of genes and gene pairs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from wildtype.models.baselines.base import Baseline, squared_error
from wildtype.mutants import MutantTable
from wildtype.organism import Organism
from wildtype.seeds import derive

if TYPE_CHECKING:
    from sklearn.ensemble import HistGradientBoostingRegressor

LEAVES = (15, 31)
MAX_ITERATIONS = 400
DEFAULT_ITERATIONS = 150
BAGS = 3
FEW_ROWS = 20_000  # below, half as many trees of twice the weight


class BoostedTrees:
    """Histogram gradient boosting, averaged over a few seeds, on the columns that say something in training.

    Leaves per tree are those with the least error on the held-out rows; so is the number of trees (early
    stopping on the rows given: a random internal split would share its genes with training).

    Parameters
    ----------
    x, y : float32 [m, f], [m]
        Training rows; NaN in ``x`` is a value of its own.
    held_x, held : float32 [h, f], MutantTable
        Held-out features and rows; without rows, default settings are used.
    fixed : mapping
        Values of ``leaves`` and ``iterations`` that are given in advance.
    bags : int
        Models averaged; they differ in the features each split may draw from.
    seed : int

    Attributes
    ----------
    chosen : dict
        ``leaves`` and ``iterations``.
    """

    def __init__(
        self,
        x: NDArray[np.float32],
        y: NDArray[np.float32],
        held_x: NDArray[np.float32],
        held: MutantTable,
        fixed: Mapping[str, float],
        *,
        bags: int,
        seed: int,
    ) -> None:
        self._columns = np.flatnonzero([np.unique(c[~np.isnan(c)]).size > 0 for c in x.T])
        x, held_x = x[:, self._columns], held_x[:, self._columns]
        choices = [int(fixed["leaves"])] if "leaves" in fixed else list(LEAVES if len(held) else LEAVES[:1])
        stop = len(held) > 0 and "iterations" not in fixed
        rate = 0.05 if len(y) >= FEW_ROWS else 0.1
        best, first = math.inf, None
        for leaves in choices:
            limit = MAX_ITERATIONS if stop else int(fixed.get("iterations", DEFAULT_ITERATIONS))
            model = self._model(rate, leaves, limit, stop, seed, 0)
            model.fit(x, y, X_val=held_x, y_val=held.value) if stop else model.fit(x, y)
            error = squared_error(model.predict(held_x), held) if len(held) else 0.0
            if error < best:
                best, first = error, model
                self.chosen: dict[str, float] = {"leaves": leaves, "iterations": int(model.n_iter_)}
        assert first is not None
        self._models = [first]
        for bag in range(1, bags):
            model = self._model(
                rate, int(self.chosen["leaves"]), int(self.chosen["iterations"]), False, seed, bag
            )
            self._models.append(model.fit(x, y))

    @staticmethod
    def _model(
        rate: float, leaves: int, iterations: int, stop: bool, seed: int, bag: int
    ) -> HistGradientBoostingRegressor:
        from sklearn.ensemble import HistGradientBoostingRegressor

        return HistGradientBoostingRegressor(
            learning_rate=rate,
            max_iter=iterations,
            max_leaf_nodes=leaves,
            min_samples_leaf=20,
            l2_regularization=1.0,
            max_features=0.3,
            early_stopping=stop,
            n_iter_no_change=25,
            tol=0.0,
            random_state=derive(seed, "boosting", bag) % 2**32,
        )

    def predict(self, x: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return predictions [m] for features [m, f]."""
        x = x[:, self._columns]
        return np.asarray(np.mean([model.predict(x) for model in self._models], axis=0))


class Boosting(Baseline):
    """Histogram gradient boosting on what the organism says about the genes of a row and their pairs."""

    name: ClassVar[str] = "boosting"
    description: ClassVar[str] = (
        "gradient boosting on graph, feature and single-fitness features of gene pairs"
    )

    def _fit(
        self,
        organism: Organism,
        train: MutantTable,
        validation: MutantTable,
        single_fitness: NDArray[np.float32] | None,
        seed: int,
    ) -> None:
        x, held = self._groundwork.features(train), self._groundwork.features(validation)
        self._trees = BoostedTrees(x, train.value, held, validation, self.fixed, bags=BAGS, seed=seed)
        self.chosen = self._trees.chosen

    def _predict(self, table: MutantTable) -> NDArray[np.float64]:
        return self._trees.predict(self._groundwork.features(table))
