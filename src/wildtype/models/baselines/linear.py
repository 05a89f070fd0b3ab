"""Linear baselines: the training mean, additive ridge, and additive ridge with repeated gene pairs.

Legend: m rows · k genes of a row · c columns of the design · a ridge penalty (alpha).
"""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, lsqr

from wildtype.models.baselines.base import Baseline, squared_error, weighted_mean
from wildtype.mutants import Kind, MutantTable
from wildtype.mutants.rows import Codes, pairs_of
from wildtype.organism import Organism

ALPHAS = tuple(10.0 ** (step / 2) for step in range(-3, 6))


class MeanBaseline(Baseline):
    """The mean of the training labels."""

    name: ClassVar[str] = "mean"
    description: ClassVar[str] = "mean of the training labels"

    def _fit(
        self,
        organism: Organism,
        train: MutantTable,
        validation: MutantTable,
        single_fitness: NDArray[np.float32] | None,
        seed: int,
    ) -> None:
        self._mean = weighted_mean(train.value, train.weights)

    def _predict(self, table: MutantTable) -> NDArray[np.float64]:
        return np.full(len(table), self._mean)


def terms(table: MutantTable, n: int, *, pairs: bool) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Return the groups of additive terms of every row as (row, code), each [Σ terms].

    Groups: gene, gene × kind, condition, gene × condition, and with ``pairs`` pair and pair × condition.
    Codes are unique within a group; a term that only one value of the training rows can take (one kind, one
    condition) is the same column as its parent and is left to ``Design`` to drop.
    """
    rows, condition = np.arange(len(table)), table.condition
    groups = [
        (table.row, table.gene),
        (table.row, table.gene * len(Kind) + table.kind),
        (rows, condition),
        (table.row, condition[table.row] * n + table.gene),
    ]
    if pairs:
        row, left, right = pairs_of(table)
        groups += [(row, left * n + right), (row, (condition[row] * n + left) * n + right)]
    return groups


class Design:
    """Sparse design matrix over the terms seen in training; unseen terms are all-zero.

    Pair terms count from the second training row on: a column that only one row uses predicts nothing else.
    """

    def __init__(self, table: MutantTable, n: int, *, pairs: bool) -> None:
        self.n, self.pairs = n, pairs
        kinds, conditions = len(np.unique(table.kind)) > 1, len(np.unique(table.condition)) > 1
        # Terms in the order of `terms`; with one kind or condition, its columns would repeat those of the
        # genes.
        use = [True, kinds, conditions, conditions] + ([True, conditions] if pairs else [])
        self.books = [
            Codes(code, at_least=1 if at < 4 else 2) if used else None
            for at, ((_, code), used) in enumerate(zip(terms(table, n, pairs=pairs), use, strict=True))
        ]

    def matrix(self, table: MutantTable) -> sparse.csr_array:
        """Return the design of a table as float64 [m, c]."""
        rows, cols, start = [], [], 0
        for book, (row, code) in zip(self.books, terms(table, self.n, pairs=self.pairs), strict=True):
            if book is None:
                continue
            at = book.find(code)
            rows.append(row[at >= 0])
            cols.append(at[at >= 0] + start)
            start += len(book)
        row, col = np.concatenate(rows), np.concatenate(cols)
        return sparse.csr_array((np.ones(len(row)), (row, col)), shape=(len(table), start))


def ridge(
    x: sparse.csr_array, y: NDArray[np.float64], alpha: float, rows: NDArray[np.float64] | None = None
) -> tuple[NDArray[np.float64], float]:
    """Return (weights [c], intercept) that minimise ‖y − Xw − b‖² + alpha ‖w‖², b unpenalised.

    Columns are centred implicitly, so X stays sparse; solved by LSQR (Paige & Saunders, ACM TOMS 8,
    1982). With the number of mutants ``rows`` [m] that each row stands for, the squares of the errors are
    multiplied by it.
    """
    if rows is not None:
        return _weighted_ridge(x, y, alpha, rows)
    mean = np.asarray(x.mean(axis=0)).reshape(-1)
    level = float(y.mean())
    # Stored once by rows, since LSQR multiplies with it in every iteration.
    transpose = sparse.csr_array(x.T)
    # (X − 1 mᵀ) w = X w − (m·w) 1 and (X − 1 mᵀ)ᵀ r = Xᵀ r − m Σ r: a centred X itself would be dense.
    centred = LinearOperator(
        x.shape,
        matvec=lambda w: x @ w.reshape(-1) - mean @ w.reshape(-1),
        rmatvec=lambda r: transpose @ r.reshape(-1) - mean * r.sum(),
        dtype=np.float64,
    )
    # LSQR's ``damp`` is the square root of the penalty. y is centred too, which leaves b unpenalised. The
    # start is 0: from another x0, scipy's LSQR would penalise ‖w − x0‖² instead of ‖w‖².
    weights = lsqr(centred, y - level, damp=math.sqrt(alpha), atol=1e-8, btol=1e-8, iter_lim=500)[0]
    return weights, level - float(mean @ weights)


def _weighted_ridge(
    x: sparse.csr_array, y: NDArray[np.float64], alpha: float, rows: NDArray[np.float64]
) -> tuple[NDArray[np.float64], float]:
    """Return `ridge` with Σ_i rows_i (error_i)² in place of the plain squares."""
    mean, level = np.asarray(x.T @ rows).reshape(-1) / rows.sum(), float(np.average(y, weights=rows))
    root = np.sqrt(rows)
    # Rows times √w make weighted squares plain ones; centring comes first: D (X − 1 mᵀ), D = diag(√w).
    scaled = sparse.csr_array(x.multiply(root[:, None]))
    transpose = sparse.csr_array(scaled.T)
    centred = LinearOperator(
        x.shape,
        matvec=lambda w: scaled @ w.reshape(-1) - root * (mean @ w.reshape(-1)),
        rmatvec=lambda r: transpose @ r.reshape(-1) - mean * (root @ r.reshape(-1)),
        dtype=np.float64,
    )
    weights = lsqr(centred, root * (y - level), damp=math.sqrt(alpha), atol=1e-8, btol=1e-8, iter_lim=500)[0]
    return weights, level - float(mean @ weights)


class AdditiveRidge(Baseline):
    """One additive effect per gene (and per gene × kind, gene × condition), ridge-penalised.

    Any order; an unseen gene adds nothing. The penalty is chosen by the squared error on the validation rows.
    """

    name: ClassVar[str] = "additive_ridge"
    description: ClassVar[str] = "one additive effect per gene, ridge"
    _pairs: ClassVar[bool] = False

    def _fit(
        self,
        organism: Organism,
        train: MutantTable,
        validation: MutantTable,
        single_fitness: NDArray[np.float32] | None,
        seed: int,
    ) -> None:
        self._design = Design(train, self._n, pairs=self._pairs)
        x, y = self._design.matrix(train), train.value.astype(np.float64)
        # From the strongest penalty down, which a tie prefers.
        alphas = (self.fixed["alpha"],) if "alpha" in self.fixed else ALPHAS[::-1]
        if len(alphas) > 1 and not len(validation):
            alphas = (1.0,)
        held_out = self._design.matrix(validation)
        best = math.inf
        for alpha in alphas:
            weights, intercept = ridge(x, y, alpha, train.weights)
            error = squared_error(held_out @ weights + intercept, validation)
            if error < best:
                best, self._weights, self._intercept = error, weights, intercept
                self.chosen = {"alpha": alpha}

    def _predict(self, table: MutantTable) -> NDArray[np.float64]:
        return np.asarray(self._design.matrix(table) @ self._weights + self._intercept)


class PairRidge(AdditiveRidge):
    """Additive ridge plus one effect per gene pair (and pair × condition) that several training rows share.

    For repeated genotypes and higher orders. Where every pair is measured once, it equals ``additive_ridge``.
    """

    name: ClassVar[str] = "pair_ridge"
    description: ClassVar[str] = "additive ridge plus one effect per repeated gene pair"
    _pairs: ClassVar[bool] = True
