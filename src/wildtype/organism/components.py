"""Principal components with fixed signs: the same input gives the same features on every run."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import svds

from wildtype.errors import SourceError
from wildtype.seeds import generator

DENSE = 256
"""Up to this many rows or columns all components are computed at once, which cannot fail to converge."""


def components(matrix: NDArray[np.float64] | sparse.csr_array, count: int, what: str) -> NDArray[np.float64]:
    """Return the scores [m, min(count, m, f)] of the leading singular vectors of ``matrix`` [m, f].

    Raises
    ------
    SourceError
        As ``leading_vectors`` does.
    """
    return np.asarray(matrix @ leading_vectors(matrix, count, what), dtype=np.float64)


def leading_vectors(
    matrix: NDArray[np.float64] | sparse.csr_array, count: int, what: str
) -> NDArray[np.float64]:
    """Return the loadings [f, min(count, m, f)] of the leading right singular vectors of ``matrix`` [m, f].

    The largest loading of every component is positive, and the iteration starts from a fixed vector.

    Raises
    ------
    SourceError
        If the matrix is too small or all zero, so that it has no components; ``what`` names it.
    """
    k = min(count, *matrix.shape)
    if k < 1 or not matrix.max() > matrix.min():
        raise SourceError(
            f"{what} gives a {matrix.shape} matrix without any variation, expected many genes and columns"
        )
    if min(matrix.shape) <= DENSE:
        dense = matrix if isinstance(matrix, np.ndarray) else matrix.toarray()
        loadings = np.linalg.svd(dense, full_matrices=False)[2][:k]
    else:
        start = generator(0, "singular vectors").standard_normal(min(matrix.shape))
        _, values, loadings = svds(matrix, k=k, v0=start)
        loadings = loadings[np.argsort(-values, kind="stable")]
    largest = np.abs(loadings).argmax(1)
    loadings = loadings * np.sign(loadings[np.arange(k), largest])[:, None]
    return np.asarray(loadings.T, dtype=np.float64)


def spread(scores: NDArray[np.float64], genes: NDArray[np.int64], n: int) -> NDArray[np.float32]:
    """Return rows [m, f] laid out over all n genes, NaN for the others."""
    out = np.full((n, scores.shape[1]), np.nan, dtype=np.float32)
    out[genes] = scores
    return out
