"""`BinnedColumns`: boosted trees that rise with the columns that are in units of what they predict.

Neighbours' residuals, completed matrices and kernel ridge all say a number for ε. A tree that fell where one
of them rises would follow noise, so that their splits are constrained. LightGBM bins a table once for several
outputs, and reads the drawn columns alone (Ke et al., NeurIPS 30, 2017).

Legend: m rows · f columns.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wildtype.models.lightgbm_trees import lightgbm, table_settings, trees_of
from wildtype.nn.forest import Forest, Tree
from wildtype.seeds import derive

BINS = 127
DRAWN = 0.3
"""Share of the columns that each tree may use."""


@dataclass(frozen=True)
class TreeSettings:
    """Size of a forest.

    Attributes
    ----------
    iterations : int
        Trees.
    learning_rate : float
        Weight of each.
    leaves : int
        Most leaves of a tree.
    least_rows : int
        Fewest rows of a leaf.
    drawn_thresholds : bool
        Whether a node chooses among one drawn threshold per column, instead of all (Geurts, Ernst & Wehenkel,
        Machine Learning 63, 2006).
    """

    iterations: int
    learning_rate: float
    leaves: int
    least_rows: int
    drawn_thresholds: bool = False


class BinnedColumns:
    """A table of columns that trees of several outputs learn from.

    Parameters
    ----------
    x : float32 [m, f]
        NaN is a value of its own.
    sign : int [f]
        1: predictions may not fall where the column rises; 0: they may.
    sets : sequence of int64 [·]
        Columns that each forest may use; the forests of all sets are averaged.

    Raises
    ------
    ConfigError
        If LightGBM's compiled library cannot be loaded.
    """

    def __init__(
        self, x: NDArray[np.float32], sign: NDArray[np.int64], sets: Sequence[NDArray[np.int64]]
    ) -> None:
        library = lightgbm()
        self._sign, self._sets = sign, sets
        self._fixed: dict[str, Any] = {
            **table_settings(BINS),
            # Columns are dropped by the rows of one output otherwise.
            "feature_pre_filter": False,
        }
        self._data = [library.Dataset(x[:, columns], params=self._fixed).construct() for columns in sets]

    def forest(
        self,
        rows: NDArray[np.int64],
        y: NDArray[np.float64],
        weights: NDArray[np.float64],
        settings: TreeSettings,
        *,
        sets: Sequence[int] | None = None,
        bound: int = 1,
        calls: bool = False,
        bags: int = 1,
        seed: int = 0,
    ) -> Forest:
        """Return the mean of the forests of sets of columns and ``bags`` seeds.

        Parameters
        ----------
        rows : int64 [r]
            Ascending: those that have a label.
        y, weights : float64 [r]
            Labels, and how many mutants each row stands for.
        settings : TreeSettings
        sets : sequence of int, optional
            Positions of the sets of columns; without, all.
        bound : int
            Where a column of sign 1 rises, predictions may not fall (1), may not rise (-1), or may do
            both (0).
        calls : bool
            Whether labels are 0 and 1: trees then minimise the log loss, and their sum is a logit.
        """
        if calls and len(np.unique(y)) < 2:
            # One class only: its logit, a row's weight away from certainty.
            share = (float(np.sum(weights * y)) + 0.5) / (float(np.sum(weights)) + 1)
            return Forest.of([], math.log(share / (1 - share)))
        asked = self._fixed | {
            "objective": "binary" if calls else "regression",
            "learning_rate": settings.learning_rate,
            "num_leaves": settings.leaves,
            "min_data_in_leaf": settings.least_rows,
            "extra_trees": settings.drawn_thresholds,
            "lambda_l2": 1.0,
            "feature_fraction": DRAWN,
        }
        trees: list[Tree] = []
        chosen = range(len(self._sets)) if sets is None else sets
        for at in chosen:
            # Labels set before a subset is made are those of the whole table.
            data = self._data[at].subset(rows).construct()
            data.set_label(y)
            data.set_weight(weights)
            columns = self._sets[at]
            sign = {"monotone_constraints": (self._sign[columns] * bound).tolist()}
            for bag in range(bags):
                drawn = {"seed": derive(seed, f"boosting {at}", bag) % 2**31}
                found = lightgbm().train(asked | sign | drawn, data, settings.iterations)
                trees += trees_of(found.dump_model(), columns, 1 / (bags * len(chosen)))
        return Forest.of(trees)
