"""`BoostedTrees`: histogram gradient boosting, for baselines on features and for trees over evidence.

Legend: m rows · f features.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wildtype.seeds import derive

if TYPE_CHECKING:
    from wildtype.nn.forest import Forest

LEAVES = (15, 31)
MAX_ITERATIONS = 400
DEFAULT_ITERATIONS = 150
PATIENCE = 25
FEW_ROWS = 20_000
BINS = 255
DRAWN = 0.6
"""Share of the columns that each tree may use."""


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
        Models averaged; they differ in the columns that each tree may use.
    seed : int

    Attributes
    ----------
    chosen : dict
        ``leaves`` and ``iterations``.
    forest : Forest
        The trees as arrays, which can be stored.

    Raises
    ------
    ConfigError
        If LightGBM's compiled library cannot be loaded.
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
        # Slow to import, both: a list of baselines does without.
        from wildtype.models.lightgbm_trees import lightgbm, table_settings, trees_of
        from wildtype.nn.forest import Forest

        columns = _distinct(x)
        library, table = lightgbm(), table_settings(BINS)
        data = library.Dataset(x[:, columns], y, weight=weights, params=table)
        choices = [int(fixed["leaves"])] if "leaves" in fixed else list(leaves if len(held) else leaves[:1])
        stop = len(held) > 0 and "iterations" not in fixed
        limit = MAX_ITERATIONS if stop else int(fixed.get("iterations", DEFAULT_ITERATIONS))
        # Few rows are fitted by half as many trees of twice the weight.
        rate = 0.05 if len(y) >= FEW_ROWS else 0.1

        def fitted(number: int, trees: int, bag: int, **more: Any) -> Any:
            asked = {
                "learning_rate": rate,
                "num_leaves": number,
                "min_data_in_leaf": 20,
                "lambda_l2": 1.0,
                "feature_fraction": DRAWN,
                "seed": derive(seed, "boosting", bag) % 2**31,
            }
            return library.train(table | asked, data, trees, **more)

        best, first = math.inf, None
        # Only a strictly smaller error replaces a choice, so ties keep the first.
        for number in choices:
            model = fitted(number, limit, 0, **_held_out(library, data, held_x[:, columns], held, stop))
            trees = model.best_iteration if stop else limit
            said = model.predict(held_x[:, columns], num_iteration=trees) if len(held) else held
            error = float(np.mean((said - held) ** 2)) if len(held) else 0.0
            if error < best:
                best, first = error, model
                self.chosen: dict[str, float] = {"leaves": number, "iterations": trees}
        # Further bags take the number of trees of the first: early stopping of each would choose it anew, on
        # the same held-out rows.
        number, trees = int(self.chosen["leaves"]), int(self.chosen["iterations"])
        models = [first, *(fitted(number, trees, bag) for bag in range(1, bags))]
        self.forest: Forest = Forest.of(
            [
                tree
                for model in models
                for tree in trees_of(model.dump_model(num_iteration=trees), columns, 1 / bags)
            ]
        )

    def predict(self, x: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return predictions [m] for features [m, f]."""
        import torch

        return np.asarray(self.forest(torch.from_numpy(x)).numpy())


def _held_out(
    library: Any, data: Any, x: NDArray[np.float32], y: NDArray[np.float32], stop: bool
) -> dict[str, Any]:
    """Return what ends training after ``PATIENCE`` trees that help none of the held-out rows."""
    if not stop:
        return {}
    return {
        "valid_sets": [library.Dataset(x, y, reference=data)],
        "callbacks": [library.early_stopping(PATIENCE, verbose=False)],
    }


def _distinct(x: NDArray[np.float32]) -> NDArray[np.int64]:
    """Return the columns of x [m, f] that have a value and differ from all earlier ones; at least one."""
    # Trees draw columns at random: copies would be drawn more often than other features.
    first: dict[bytes, int] = {}
    for i, column in enumerate(x.T):
        if not np.isnan(column).all():
            first.setdefault(blake2b(column.tobytes()).digest(), i)
    return np.array(sorted(first.values()) or [0], np.int64)
