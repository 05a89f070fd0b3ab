"""Two scores of pairs of genes that tell interactions from effects of single genes.

A model that learned no more than how sick a gene's double mutants are on average may correlate well with the
labels of pairs. Both scores stand beside the plain correlation and show how much of it this is.

=====================  ==============================================================================
pearson_gene_removed   correlation of what is left of labels and predictions without additive gene effects:
                       y_ij − u_i − u_j with the u of least squares over the scored rows, fitted without
                       shrinkage to labels and to predictions separately. It is the same for a prediction
                       plus any sum of gene effects
pearson_shuffled       correlation of labels with predictions of other scored rows that share exactly one
                       gene: what a prediction is worth when only one of the genes is right
=====================  ==============================================================================

Under weights, gene effects and the rows that share a gene stay those of all rows: an approximation, exact for
equal weights. Where rows have conditions, a gene is another one in each condition.

Legend: m rows · r weightings · g genes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.sparse.linalg import lsmr

if TYPE_CHECKING:
    from wildtype.mutants import MutantTable

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

PAIR_METRICS = ("pearson_gene_removed", "pearson_shuffled")
NO_PAIRS = "rows are no pairs of genes"
ADDITIVE = 1e-5
"""Share of a column's sd below which its residual is rounding: predictions may be of single precision."""
_TOLERANCE = 1e-13


def pairs_of(table: MutantTable) -> Ints | None:
    """Return the genes [M, 2] of rows that are all pairs, numbered anew in each condition; else None."""
    if not len(table) or (table.order != 2).any():
        return None
    pairs = table.matrix(2).astype(np.int64)
    return np.asarray(pairs + (int(pairs.max()) + 1) * table.condition[:, None])


def without_gene_effects(values: Floats, pairs: Ints) -> Floats:
    """Return values [M] less the best sum of effects of the two genes of each row, by least squares.

    Parameters
    ----------
    values : float64 [M]
        Finite.
    pairs : int64 [M, 2]
        The genes of each row, under any numbers.
    """
    genes, number = np.unique(pairs, return_inverse=True)
    degree = np.bincount(number.reshape(-1), minlength=genes.size)
    # Scaled columns let the iteration converge where genes differ a thousandfold in their number of rows. The
    # constant is in the span of the columns, as each row has two genes.
    scaled = (1.0 / np.sqrt(degree))[number.reshape(-1)]
    design = csr_matrix((scaled, number.reshape(-1), np.arange(len(pairs) + 1) * 2), (len(pairs), genes.size))
    # Rows of one gene alone leave no unique effects, but a unique residual. `conlim` would stop early there.
    effects = lsmr(design, values, atol=_TOLERANCE, btol=_TOLERANCE, conlim=0, maxiter=20 * genes.size + 100)
    return np.asarray(values - design @ effects[0])


def shuffled_statistic(truth: Floats, prediction: Floats, pairs: Ints) -> Callable[[Floats], Floats] | None:
    """Bind the correlation of labels with predictions of rows that share exactly one gene.

    For each row i and each of its two genes g, all other scored rows j that hold g and not the other gene of
    i are drawn equally often, and both genes equally often. The score is the Pearson correlation of y_i and
    p_j over these draws, as their number grows: no seed is needed. A gene without such rows leaves the row to
    its other gene, and a row without any is left out.

    Parameters
    ----------
    truth, prediction : float64 [M]
        Finite, neither of them constant.
    pairs : int64 [M, 2]
        The genes of each row.

    Returns
    -------
    callable or None
        Weights [M, R] to values [R]; None where no two rows share exactly one gene.
    """
    y, p = ((column - column.mean()) / column.std() for column in (truth, prediction))
    genes, number = np.unique(pairs, return_inverse=True)
    gene = np.sort(number.reshape(-1, 2), axis=1)
    _, same = np.unique(gene[:, 0] * np.int64(genes.size) + gene[:, 1], return_inverse=True)
    same = same.reshape(-1)

    def others(column: Floats) -> Floats:
        """Return [M, 2] the sum over rows that share the gene of this side and not the other gene."""
        by_gene = np.bincount(gene[:, 0], column, genes.size) + np.bincount(gene[:, 1], column, genes.size)
        return np.asarray(by_gene[gene] - np.bincount(same, column)[same][:, None])

    count = np.rint(others(np.ones_like(y)))
    share = (count > 0) / np.maximum((count > 0).sum(1, keepdims=True), 1)  # of each gene in the draws
    used = share.sum(1)
    if not used.any():
        return None
    first, second = ((share * others(column) / np.maximum(count, 1)).sum(1) for column in (p, p * p))
    moments = np.stack([used, used * y, used * y * y, first, second, y * first])

    def statistic(weights: Floats) -> Floats:
        total, sy, syy, sp, spp, syp = moments @ weights
        total = np.where(total > 0, total, np.nan)
        my, mp = sy / total, sp / total
        spread = (syy / total - my * my) * (spp / total - mp * mp)
        spread = np.where(spread > ADDITIVE**2, spread, np.nan)
        return np.asarray(np.clip((syp / total - my * mp) / np.sqrt(spread), -1.0, 1.0))

    return statistic
