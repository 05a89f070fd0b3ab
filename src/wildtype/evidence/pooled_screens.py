"""`pooled`: the visible cells of a screen and those of other screens as one matrix, in the unit of the first.

Two screens of one organism share genes, and what one of them lacks the other may have measured: a gene that
was never crossed here has a row of the pooled matrix where it was crossed elsewhere, and so an effect, a
profile, and neighbours of similar profiles. Units differ (an S-score is no ε), but both rise together: of the
cells that both measured, the expected value here is fitted as a function of the value there that never falls
(isotonic regression, Barlow et al., Statistical Inference under Order Restrictions, 1972).

Legend: s strains of the pooled matrix.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from wildtype.evidence.pair_matrix import KINDS, PairMatrix

FEWEST = 200
"""Cells that both screens measured, from which on the link of their units is fitted."""

Ints = NDArray[np.int64]
Floats = NDArray[np.float32]


def pooled(own: PairMatrix, others: Sequence[PairMatrix]) -> PairMatrix:
    """Return one matrix of all strains: cells of ``own`` as they are, others in its unit where it has none.

    A cell that several others measured is the mean of what they say. A screen that shares fewer than 200
    visible cells with ``own`` is left out, since nothing says what its values mean here.
    """
    linked = [(other, found) for other in others if (found := _in_unit_of(own, other)) is not None]
    codes = np.unique(np.concatenate([matrix.codes for matrix in (own, *(other for other, _ in linked))]))
    s = len(codes)
    values, count = np.zeros((s, s), np.float32), np.zeros((s, s), np.uint8)
    for other, found in linked:
        at = np.ix_(*[np.searchsorted(codes, other.codes)] * 2)
        values[at] += np.where(other.known, found, 0)
        count[at] += other.known
    values /= np.maximum(count, 1)
    # Row by row: own cells are nearly all that there are, and matrices of them are what takes the memory.
    place = np.searchsorted(codes, own.codes)
    for row, own_values, own_known in zip(place, own.values, own.known, strict=True):
        columns = place[own_known]
        values[row, columns] = own_values[own_known]
        count[row, columns] = 1
    return PairMatrix(codes // KINDS, (codes % KINDS).astype(np.uint8), values, count > 0, own.of_grid)


def _in_unit_of(own: PairMatrix, other: PairMatrix) -> Floats | None:
    """Return what the cells [s, s] of another screen let expect in the unit of ``own``; None: not known."""
    from scipy.optimize import isotonic_regression  # scikit-learn would take 90 MB more

    # Of a gene with other strains there, the strain of the same kind: another allele is another mutant.
    _, here, there = np.intersect1d(own.codes, other.codes, assume_unique=True, return_indices=True)
    both = np.triu(own.known[np.ix_(here, here)] & other.known[np.ix_(there, there)])
    if both.sum() < FEWEST:
        return None
    value, of = np.unique(other.values[np.ix_(there, there)][both], return_inverse=True)
    count = np.bincount(of)
    mean = np.bincount(of, own.values[np.ix_(here, here)][both]) / count
    # Between two values in a straight line, and level beyond the last ones.
    return np.interp(other.values, value, isotonic_regression(mean, weights=count).x).astype(np.float32)
