"""Principal components with fixed signs: the same input gives the same features on every run."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import svds

from wildtype.errors import SourceError
from wildtype.seeds import generator


def components(matrix: NDArray[np.float64] | sparse.csr_array, count: int, what: str) -> NDArray[np.float64]:
    """Return the scores [m, min(count, rank bound)] of the leading singular vectors of ``matrix`` [m, f].

    The largest loading of every component is positive, and the iteration starts from a fixed vector.

    Raises
    ------
    SourceError
        If the matrix is too small or all zero, so that it has no components; ``what`` names it.
    """
    k = min(count, min(matrix.shape) - 1)
    if k < 1 or not abs(matrix).max() > 0:
        raise SourceError(
            f"{what} gives a {matrix.shape} matrix without any variation, expected many genes and columns"
        )
    start = generator(0, "singular vectors").standard_normal(min(matrix.shape))
    _, values, loadings = svds(matrix, k=k, v0=start, return_singular_vectors="vh")
    loadings = loadings[np.argsort(-values, kind="stable")]
    largest = np.abs(loadings).argmax(1)
    loadings = loadings * np.sign(loadings[np.arange(k), largest])[:, None]
    return np.asarray(matrix @ loadings.T, dtype=np.float64)


def spread(scores: NDArray[np.float64], genes: NDArray[np.int64], n: int) -> NDArray[np.float32]:
    """Return rows [m, f] laid out over all n genes, NaN for the others."""
    out = np.full((n, scores.shape[1]), np.nan, dtype=np.float32)
    out[genes] = scores
    return out
