"""`MapColumns`: what a map says about a pair of genes, of which every known pair was measured.

A list of significant pairs with a grid is mostly zeros. A map (an E-MAP, a library of dual knock-downs) has a
number in every cell, most of it noise, so that completions of several ranks answer by themselves.

Legend: n genes · s strains · m pairs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wildtype.evidence.completion import Additive, low_rank
from wildtype.evidence.learned_kernel import StrainKernel
from wildtype.evidence.pair_matrix import PairMatrix
from wildtype.evidence.row_products import row_products
from wildtype.evidence.sampled_factors import sampled_factors

RANKS = (5, 10, 20, 40)
"""Of completions of their own: the first terms of a completion of a higher rank are no good one."""

Ints = NDArray[np.int64]
Floats = NDArray[np.float32]


class MapColumns:
    """Further columns of pairs from one visible map.

    Parameters
    ----------
    matrix : PairMatrix
    additive : Additive
        Of the matrix.
    residual : float32 [s, s]
        What the additive model leaves of known cells, 0 elsewhere.
    kernel : StrainKernel
        Of the strains of the matrix.
    seed : int
    """

    def __init__(
        self, matrix: PairMatrix, additive: Additive, residual: Floats, kernel: StrainKernel, *, seed: int = 0
    ) -> None:
        factors = sampled_factors(residual, matrix.known, kernel[:], seed=seed)
        self._completed = {
            f"rank {k} alone": low_rank(residual, matrix.known, k, seed=seed).matrix() for k in RANKS
        }
        self._completed["completed by factors"] = factors
        # Kernel ridge on one side gives [n, s], and on both [n, n], which is the product of two of [n, s].
        self._one = kernel.predict(factors)
        self._weights = kernel.predict(np.eye(len(matrix), dtype=np.float32))
        mean = additive.effect.mean() if len(matrix) else 0.0
        centred = (additive.effect - mean).astype(np.float32)[:, None]
        self._unseen_effect = mean + kernel.predict(centred)[:, 0].astype(np.float64)
        self._additive = additive

    def __call__(self, gene: Ints, strain: Ints) -> list[tuple[str, Floats]]:
        """Return the columns of pairs of genes [m, 2] with these strains [m, 2], -1: none."""
        seen = strain >= 0
        at = np.maximum(strain, 0)
        both: NDArray[np.bool_] = np.asarray(seen.all(axis=1))

        def where(there: NDArray[np.bool_], value: NDArray[np.floating]) -> Floats:
            return np.where(there, value, np.nan).astype(np.float32)

        def cells(matrix: Floats, rows: Ints, columns: Ints) -> Floats:
            return matrix[rows, columns] if matrix.size else np.zeros(len(rows), np.float32)

        out = [
            (name, where(both, cells(matrix, at[:, 0], at[:, 1]))) for name, matrix in self._completed.items()
        ]
        one = [where(seen[:, 1 - i], cells(self._one, gene[:, i], at[:, 1 - i])) for i in range(2)]
        out.append(("kernel factors low", np.fmin(*one)))
        out.append(("kernel factors high", np.fmax(*one)))
        product = row_products(self._one, gene[:, 0], self._weights, gene[:, 1])
        out.append(("kernel factors both", product))
        own = self._additive.effect
        effect = np.where(seen, own[at] if len(own) else 0.0, self._unseen_effect[gene])
        out.append(("kernel additive", (self._additive.mean + effect.sum(axis=1)).astype(np.float32)))
        return out
