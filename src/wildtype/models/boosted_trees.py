"""`BoostedTrees`: histogram gradient boosting, for baselines on features and for trees over evidence.

Legend: m rows · f features.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from wildtype.seeds import derive

if TYPE_CHECKING:
    from sklearn.ensemble import HistGradientBoostingRegressor

    from wildtype.nn.forest import Forest

LEAVES = (15, 31)
MAX_ITERATIONS = 400
DEFAULT_ITERATIONS = 150
FEW_ROWS = 20_000


class BoostedTrees:
    """Histogram gradient boosting, averaged over a few seeds, on distinct columns with values in training.

    Leaves per tree are those with the least error on the held-out rows; so is the number of trees (early
    stopping on the rows given: a random internal split would share its genes with training).

    Parameters
    ----------
    x, y : float32 [m, f], [m]
        Training rows; NaN in ``x`` is a value of its own.
    held_x, held : float32 [h, f], [h]
        Held-out features and labels; without rows, default settings are used.
    fixed : mapping
        Values of ``leaves`` and ``iterations`` that are not chosen on held-out rows.
    weights : float64 [m], optional
        How many mutants each training row stands for; without, itself alone.
    leaves : sequence of int
        Leaves per tree to choose from.
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
        held: NDArray[np.float32],
        fixed: Mapping[str, float],
        *,
        bags: int,
        seed: int,
        leaves: Sequence[int] = LEAVES,
        weights: NDArray[np.float64] | None = None,
    ) -> None:
        self._columns = _distinct(x)
        x, held_x = x[:, self._columns], held_x[:, self._columns]
        choices = [int(fixed["leaves"])] if "leaves" in fixed else list(leaves if len(held) else leaves[:1])
        stop = len(held) > 0 and "iterations" not in fixed
        # Few rows are fitted by half as many trees of twice the weight.
        rate = 0.05 if len(y) >= FEW_ROWS else 0.1
        best, first = math.inf, None
        # Only a strictly smaller error replaces a choice, so ties keep the first.
        for number in choices:
            limit = MAX_ITERATIONS if stop else int(fixed.get("iterations", DEFAULT_ITERATIONS))
            model = self._model(rate, number, limit, stop, seed, 0)
            held_out = {"X_val": held_x, "y_val": held} if stop else {}
            model.fit(x, y, sample_weight=weights, **held_out)
            error = float(np.mean((model.predict(held_x) - held) ** 2)) if len(held) else 0.0
            if error < best:
                best, first = error, model
                self.chosen: dict[str, float] = {"leaves": number, "iterations": int(model.n_iter_)}
        assert first is not None
        # Further bags take the number of trees of the first: early stopping of each would choose it anew, on
        # the same held-out rows.
        self._models = [first]
        for bag in range(1, bags):
            model = self._model(
                rate, int(self.chosen["leaves"]), int(self.chosen["iterations"]), False, seed, bag
            )
            self._models.append(model.fit(x, y, sample_weight=weights))

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
            # scikit-learn takes seeds below 2³².
            random_state=derive(seed, "boosting", bag) % 2**32,
        )

    def predict(self, x: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return predictions [m] for features [m, f]."""
        x = x[:, self._columns]
        return np.asarray(np.mean([model.predict(x) for model in self._models], axis=0))

    def forest(self) -> Forest:
        """Return the trees as arrays, which can be stored and predict the same."""
        return _forest(self._models, self._columns)


def _forest(models: Sequence[Any], columns: NDArray[np.int64]) -> Forest:
    """Return the trees of scikit-learn's models on ``columns`` of the features; their sum is the mean."""
    import torch

    from wildtype.nn.forest import Forest, Tree

    trees: list[Tree] = []
    for model in models:
        for (tree,) in model._predictors:
            nodes = tree.nodes
            # Values are divided by the number of models here, so that the sum over all trees is the mean
            # of models; features are numbered as before columns were left out.
            leaf = nodes["is_leaf"].astype(bool)
            feature = np.where(leaf, -1, columns[nodes["feature_idx"].astype(np.int64)])
            child = np.stack([nodes["left"], nodes["right"]], axis=1).astype(np.int64)
            # A split by whether a value is missing has the threshold inf. The largest float64 sends every
            # float32 the same way, and checkpoints hold finite numbers only.
            threshold = np.minimum(nodes["num_threshold"], np.finfo(np.float64).max)
            split = np.where(leaf, nodes["value"] / len(models), threshold)
            missing_left = nodes["missing_go_to_left"].astype(bool)
            parts = map(torch.from_numpy, (feature, child, split, missing_left))
            trees.append(cast("Tree", tuple(parts)))
    start = float(np.mean([np.ravel(model._baseline_prediction)[0] for model in models]))
    return Forest.of(trees, start)


def _distinct(x: NDArray[np.float32]) -> NDArray[np.int64]:
    """Return the columns of x [m, f] that have a value and are not the same as an earlier one."""
    # Splits draw a random 30 % of columns: copies would be drawn more often than other features.
    first: dict[bytes, int] = {}
    for i, column in enumerate(x.T):
        if not np.isnan(column).all():
            first.setdefault(blake2b(column.tobytes()).digest(), i)
    return np.array(sorted(first.values()), np.int64)
