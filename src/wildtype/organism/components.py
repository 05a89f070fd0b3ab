"""Principal components with fixed signs, and features of annotated genes made of them.

The same input gives the same features on every run.

Legend: n genes · m annotated genes · t terms · f components.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import svds

from wildtype.errors import SourceError
from wildtype.organism.features import FeatureBlock
from wildtype.seeds import generator

DENSE = 256
"""Up to this many rows or columns all components are computed at once, which cannot fail to converge."""
LEAST_GENES = 3
"""Terms with fewer genes carry no information about other genes."""


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
    # A singular vector is defined up to its sign; fixing it makes features comparable between runs.
    largest = np.abs(loadings).argmax(1)
    loadings = loadings * np.sign(loadings[np.arange(k), largest])[:, None]
    return np.asarray(loadings.T, dtype=np.float64)


def spread(scores: NDArray[np.float64], genes: NDArray[np.int64], n: int) -> NDArray[np.float32]:
    """Return rows [m, f] laid out over all n genes, NaN for the others."""
    out = np.full((n, scores.shape[1]), np.nan, dtype=np.float32)
    out[genes] = scores
    return out


def annotation_block(
    table: sparse.csr_array,
    genes: NDArray[np.int64],
    n: int,
    name: str,
    *,
    source: str = "",
    note: str = "",
    count: int = 64,
    what: str = "the table of annotations",
) -> FeatureBlock:
    """Return a block [n, f] of the leading components of annotations with the terms of an ontology.

    A term with g of m genes weighs ln(m / g) (Resnik 1995, Using information content to evaluate semantic
    similarity in a taxonomy); terms of all genes or of fewer than three carry no information and are left
    out. Genes that the table lacks are NaN.

    Parameters
    ----------
    table : csr [m, t]
        1 where a gene is annotated with a term or with one below it in the ontology.
    genes : int64 [m]
        Positions of the table's rows.
    n : int
        Number of genes of the organism.
    name, source, note : str
        Of the block; the note begins with the number of terms used.
    count : int
        Components f (fewer where the table is smaller).
    what : str
        Names the table in messages.

    Raises
    ------
    SourceError
        If no term distinguishes genes.
    """
    m, width = table.shape
    size = np.bincount(table.indices, minlength=width)
    informative = np.flatnonzero((size >= LEAST_GENES) & (size < m))
    weighted = sparse.csr_array(table[:, informative] * np.log(m / size[informative])[None, :])
    scores = components(weighted, count, what)
    about = f"{informative.size:,} of {width:,} terms (at least {LEAST_GENES} genes)"
    return FeatureBlock(
        name,
        spread(scores, genes, n),
        tuple(f"component{i + 1}" for i in range(scores.shape[1])),
        source=source,
        note=f"{about}; {note}" if note else about,
        comparable=False,
    )
