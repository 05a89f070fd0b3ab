"""`LinearColumns`: a weighted sum of columns of pairs, which says more than trees do from few pairs.

Legend: m rows · f columns.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import nnls
from torch import Tensor, nn

from wildtype.nn.forest import load_sizes

PENALTIES = tuple(10.0 ** (step / 2) for step in range(13))
FLAT = 1e-6
"""Columns of a smaller standard deviation, relative to the largest, are rounding."""

Doubles = NDArray[np.float64]


class LinearColumns(nn.Module):
    """A linear model in buffers, so that a checkpoint holds it; without gradients.

    What is not a number counts as what another column says, where one stands in for it, and else as 0; values
    beyond those of training count as the nearest of them. An empty one, as made by the constructor, takes the
    sizes of the buffers that are loaded into it.

    Attributes
    ----------
    weight, low, high : float64 [f]
        Of each column, and the range of its values in training.
    stand_in : int64 [f]
        The column further right that is read where a column is not a number; -1: none.
    start : float64 []
    left_out : float64 [m]
        Squared error of each training row that is left out, of a fit by ridge regression; else empty. A
        checkpoint does not hold it.
    """

    weight: Tensor
    low: Tensor
    high: Tensor
    stand_in: Tensor
    start: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("stand_in", torch.zeros(0, dtype=torch.int64))
        for name in ("weight", "low", "high"):
            self.register_buffer(name, torch.zeros(0, dtype=torch.float64))
        self.register_buffer("start", torch.zeros((), dtype=torch.float64))
        self.left_out = np.zeros(0)

    @classmethod
    def fit(
        cls,
        x: NDArray[np.float32],
        y: Doubles,
        weights: Doubles,
        columns: NDArray[np.bool_],
        *,
        rising: bool,
        stand_in: NDArray[np.int64] | None = None,
    ) -> LinearColumns:
        """Fit labels [m] by some columns of x [m, f].

        Parameters
        ----------
        weights : float64 [m]
            How many mutants each row stands for.
        columns : bool [f]
            Those that get a weight.
        rising : bool
            Whether weights are at least 0 (Lawson & Hanson 1974, chapter 23); else they are those of ridge
            regression whose penalty has the least error when rows are left out.
        stand_in : int64 [f], optional
            As of the attribute; no column has one by default.
        """
        from sklearn.linear_model import RidgeCV

        out = cls()
        out.stand_in = torch.full(x.shape[1:], -1) if stand_in is None else torch.from_numpy(stand_in)
        values = out._numbers(torch.from_numpy(x)).numpy()
        share = weights / weights.sum()
        mean = share @ values
        sd = np.sqrt(share @ (values - mean) ** 2)
        used = np.flatnonzero(columns & (sd > FLAT * sd[columns].max(initial=0)))
        standard = (values[:, used] - mean[used]) / sd[used]
        middle = float(share @ y)
        found = np.zeros(x.shape[1])
        if used.size:
            if rising:
                found[used] = _non_negative(standard, y - middle, share) / sd[used]
            else:
                ridge = RidgeCV(PENALTIES, fit_intercept=False, store_cv_results=True)
                found[used] = ridge.fit(standard, y - middle, sample_weight=weights).coef_ / sd[used]
                out.left_out = ridge.cv_results_[:, PENALTIES.index(ridge.alpha_)]
        out.weight = torch.from_numpy(found)
        out.low, out.high = torch.from_numpy(values.min(axis=0)), torch.from_numpy(values.max(axis=0))
        out.start = torch.tensor(middle - float(mean @ found), dtype=torch.float64)
        return out

    def __len__(self) -> int:
        return len(self.weight)

    def clearly_better(self, smaller: LinearColumns) -> bool:
        """Return whether these columns leave less error than fewer ones: by two standard errors.

        Rows are left out one by one, the same by both. From few rows the error itself is uncertain, and the
        simpler of two models with similar errors is the better guess (Breiman et al., Classification and
        Regression Trees, 1984, section 3.4.3).
        """
        gain = smaller.left_out - self.left_out
        return bool(gain.mean() > 2 * gain.std() / np.sqrt(len(gain)))

    @torch.no_grad()
    def forward(self, x: Tensor) -> Tensor:
        """Return the sums [b] for columns [b, f]."""
        values = torch.minimum(torch.maximum(self._numbers(x), self.low), self.high)
        return values @ self.weight + self.start

    def _numbers(self, x: Tensor) -> Tensor:
        """Return columns as numbers, float64 [b, f]."""
        values = x.double()
        replaced = torch.nonzero(self.stand_in >= 0)[:, 0].tolist()
        if replaced:
            values = values.clone()
        # From the right: what stands in for a column may have been filled itself.
        for column in reversed(replaced):
            other = values[:, self.stand_in[column]]
            values[:, column] = torch.where(values[:, column].isnan(), other, values[:, column])
        return torch.nan_to_num(values)

    def _load_from_state_dict(self, state: dict[str, Any], prefix: str, *rest: Any) -> None:
        if f"{prefix}weight" not in state:
            return  # a model of before there were linear parts has none
        # A model of before a column could stand in for another one has no such buffer.
        state.setdefault(
            f"{prefix}stand_in", torch.full_like(state[f"{prefix}weight"], -1, dtype=torch.int64)
        )
        load_sizes(self, state, prefix)
        super()._load_from_state_dict(state, prefix, *rest)
        others, place = self.stand_in, torch.arange(len(self.stand_in))
        if len(others) != len(self) or not ((others == -1) | ((others > place) & (others < len(self)))).all():
            raise ValueError("a weighted sum of columns reads one in place of another that there is not")


def _non_negative(x: Doubles, y: Doubles, share: Doubles) -> Doubles:
    """Return w ≥ 0 that minimises Σ share (y − x w)², of centred x [m, k] and y [m]."""
    inner = (x * share[:, None]).T @ x
    # With LLᵀ = XᵀX, ‖Lᵀw − L⁻¹Xᵀy‖² is the same problem in k rows; a small ridge keeps equal columns apart.
    lower = np.linalg.cholesky(inner + 1e-6 * np.eye(len(inner)))
    return np.asarray(nnls(lower.T, np.linalg.solve(lower, x.T @ (share * y)))[0])
