"""Completion of a matrix of strain pairs: additive effects, low rank, and low rank with profile neighbours.

Every function reads the values of known cells only, and returns symmetric matrices.

Legend: s strains · r rank.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from wildtype.evidence.pair_matrix import PairMatrix
from wildtype.evidence.pieces import Run, one_after_the_other
from wildtype.organism.similarity import nearest, strongest, unit_rows
from wildtype.seeds import generator

SHRINKAGE = 5.0
PASSES = 12
RANK, ITERATIONS = 120, 6
"""Of `profile_completion`."""
OVERSAMPLES = 10
NEIGHBOURS, FLOOR = 40, 0.05
"""Profile neighbours of a strain; cosines of profiles below the floor are chance."""
PRIOR = 0.3
"""Weight of a residual of 0 beside the neighbours' residuals."""
MIXED_NEIGHBOURS, KERNEL_SHARE = 60, 0.7
"""Neighbours of a strain by profile and kernel, and the weight of the kernel beside the cosine."""

BLOCK = 512
"""Rows of a low-rank matrix that are made together."""

Floats = NDArray[np.float32]
Effects = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Additive:
    """Additive model of the pairs of strains: ``mean`` + ``effect[i]`` + ``effect[j]``.

    Attributes
    ----------
    mean : float
    effect : float64 [s]
    """

    mean: float
    effect: Effects

    @classmethod
    def of(cls, matrix: PairMatrix) -> Additive:
        """Fit to the known cells.

        mu is the mean of all known cells, 0 without any. From u = 0, each of 12 passes computes for every
        strain u'_i = Σ_j (Y_ij − mu − u_j) / (n_i + 5) over its n_i known cells, and then halves the step:
        u = (u + u') / 2. Costs 12 products of an s × s matrix with a vector.
        """
        known = matrix.known.astype(np.float32)
        count = known.sum(axis=1, dtype=np.float64)
        cells = count.sum()
        # Unknown cells may hold anything: they are multiplied by 0 before any sum.
        sums = np.where(matrix.known, matrix.values, 0).sum(axis=1, dtype=np.float64)
        mean = float(sums.sum() / cells) if cells else 0.0
        effect = np.zeros(len(matrix))
        for _ in range(PASSES):
            others = (known @ effect.astype(np.float32)).astype(np.float64)
            # All effects step at once: without the half step, a full matrix oscillates (eigenvalue −1).
            effect = (effect + (sums - count * mean - others) / (count + SHRINKAGE)) / 2
        return cls(mean, effect)

    def matrix(self) -> Floats:
        """Return the model of every pair of strains [s, s]."""
        u = self.effect.astype(np.float32)
        # Both effects are added first: the other order rounds differently on both sides of the diagonal.
        out = u[:, None] + u[None, :]
        out += np.float32(self.mean)
        return out


def residuals(matrix: PairMatrix, additive: Additive, into: Floats | None = None) -> Floats:
    """Return what the additive model leaves of known cells [s, s], 0 elsewhere; perhaps ``into`` an array."""
    out = np.subtract(matrix.values, additive.matrix(), out=into)
    out[~matrix.known] = 0
    return out


@dataclass(frozen=True, eq=False)
class Spectrum:
    """A symmetric matrix of low rank: ``vectors`` diag(``values``) ``vectors``ᵀ.

    Attributes
    ----------
    values : float32 [r]
        Eigenvalues, largest magnitude first; they may be negative.
    vectors : float32 [s, r]
        Orthonormal columns.
    """

    values: Floats
    vectors: Floats

    def matrix(self) -> Floats:
        """Return the matrix [s, s], symmetric to the bit."""
        out = np.empty((len(self.vectors),) * 2, np.float32)
        for rows, block in self._blocks():
            # A product rounds differently on both sides of the diagonal: cells below it are those above.
            above = block[:, rows.start :]
            out[rows, rows.start :], out[rows.start :, rows] = above, above.T
            square = out[rows, rows]
            square[:] = (square + square.T) / 2
        return out

    def complete(self, matrix: Floats, known: NDArray[np.bool_]) -> None:
        """Write into another matrix [s, s] the cells that it does not know."""
        for rows, block in self._blocks():
            write_unknown(matrix[rows], known[rows], block)

    def _blocks(self) -> Iterator[tuple[slice, Floats]]:
        """Yield blocks of rows and their cells [b, s]."""
        scaled = self.vectors * self.values
        for start in range(0, len(scaled), BLOCK):
            rows = slice(start, start + BLOCK)
            yield rows, _product(scaled[rows], self.vectors.T)

    def profiles(self) -> Floats:
        """Return the position [s, r] of each strain: eigenvectors times the root of their magnitude."""
        return np.asarray(self.vectors * np.sqrt(np.abs(self.values)))


def spectrum(matrix: Floats, rank: int, start: Floats | None = None, *, seed: int = 0) -> Spectrum:
    """Return the eigenpairs of largest magnitude of a symmetric matrix [s, s].

    Subspace iteration with Rayleigh-Ritz (Halko, Martinsson & Tropp, SIAM Review 53, 2011): two products with
    the matrix, four more without a ``start`` [s, ≥ r] near the solution. Exact where the subspace is half of
    the matrix or more.
    """
    s = len(matrix)
    rank = min(rank, s)
    if 2 * (rank + OVERSAMPLES) >= s:
        values, vectors = np.linalg.eigh(matrix)
    else:
        warm = start is not None and start.shape[1] >= rank
        basis = (
            start
            if start is not None and warm
            else generator(seed, "spectrum").normal(size=(s, rank + OVERSAMPLES)).astype(np.float32)
        )
        for _ in range(1 if warm else 5):
            # Columns all turn towards the first eigenvector: they are made orthogonal between products.
            basis = _orthogonal(_product(matrix, basis))
        values, inner = np.linalg.eigh(basis.T @ _product(matrix, basis))
        vectors = basis @ inner
    order = np.argsort(-np.abs(values), kind="stable")[:rank]
    return Spectrum(values[order].astype(np.float32), np.ascontiguousarray(vectors[:, order], np.float32))


def _product(left: Floats, right: Floats) -> Floats:
    """Return left · right by torch, whose threads would be in the way of NumPy's between its other work."""
    import torch

    product: Floats = (torch.from_numpy(left) @ torch.from_numpy(right)).numpy()
    return product


def _orthogonal(columns: Floats) -> Floats:
    """Return an orthonormal basis [s, r] of some columns, seven times as fast by torch as by NumPy."""
    import torch

    basis: Floats = torch.linalg.qr(torch.from_numpy(columns)).Q.numpy()
    return basis


def low_rank(
    residual: Floats, known: NDArray[np.bool_], rank: int, iterations: int = ITERATIONS, *, seed: int = 0
) -> Spectrum:
    """Complete a symmetric matrix [s, s] by a soft-thresholded one of rank r (soft-impute by EM).

    E step: unknown cells take the values of the present solution, at first 0. M step: the r eigenvalues of
    largest magnitude, each drawn towards 0 by the magnitude of the next one, w_{r+1}, so that the spectrum
    ends continuously (Mazumder, Hastie & Tibshirani, JMLR 11, 2010).
    """
    filled = np.where(known, residual, np.float32(0))
    start = None
    for iteration in range(iterations):
        found = spectrum(filled, rank + 1, start, seed=seed)
        start = found.vectors
        size = np.abs(found.values)
        # A rank that reaches the whole matrix leaves no next eigenvalue: nothing is thresholded.
        threshold = size[rank] if len(size) > rank else np.float32(0)
        values = np.sign(found.values) * np.maximum(size - threshold, 0)
        solution = Spectrum(values[:rank].astype(np.float32), found.vectors[:, :rank])
        if iteration + 1 < iterations:
            solution.complete(filled, known)
    return solution


def write_unknown(matrix: Floats, known: NDArray[np.bool_], found: Floats) -> None:
    """Write what was found [r, s] into the cells of a matrix [r, s] that are not known."""
    import torch

    kept = torch.from_numpy(matrix)
    torch.where(torch.from_numpy(known), kept, torch.from_numpy(found), out=kept)


def profile_neighbours(solution: Spectrum) -> sparse.csr_array:
    """Return S [s, s]: for every strain its 40 nearest by the cosine of profiles, with weight cosine³."""
    unit = unit_rows(solution.profiles())
    out = nearest(unit, np.arange(len(unit)), NEIGHBOURS, FLOOR)
    # The cube leaves few neighbours much weight: most cosines of many noisy columns are small.
    out.data = (out.data**3).astype(np.float32)
    return out


class Square(Protocol):
    """A matrix [s, s] that is read by blocks of rows [b, s], and its diagonal."""

    def __getitem__(self, rows: Any, /) -> Any:
        """Return a block of rows."""

    def diagonal(self) -> Floats:
        """Return the diagonal [s]."""


def mixed_neighbours(solution: Spectrum, kernel: Square) -> sparse.csr_array:
    """Return S [s, s]: for every strain its 60 nearest by profile and kernel, with weight (cosine + 0.7 √k̂)³.

    Profiles of strains with few visible crosses are noise, of which a kernel of what is known about genes
    knows nothing. k̂_ij = k_ij / √(k_ii k_jj) of the kernel [s, s], and negative cosines count as 0.
    """
    unit = unit_rows(solution.profiles())
    size = np.sqrt(np.maximum(kernel.diagonal(), 1e-12))

    def weight(block: NDArray[np.int64]) -> Floats:
        alike = np.sqrt(np.maximum(kernel[block] / size[block, None] / size, 0))
        return np.asarray(np.maximum(unit[block] @ unit.T, 0) + np.float32(KERNEL_SHARE) * alike)

    out = strongest(weight, len(unit), np.arange(len(unit)), MIXED_NEIGHBOURS, FLOOR)
    out.data = (out.data**3).astype(np.float32)
    return out


def profile_completion(matrix: PairMatrix, additive: Additive, *, seed: int = 0) -> Floats:
    """Return the MATRIX prediction of every pair of strains [s, s], before its scale c.

    A is the additive model of the matrix, R = Y − A on known cells and 0 elsewhere, M marks known cells, and
    S holds `profile_neighbours` of the completion of R of rank 120. The prediction is A and what `smoothed`
    gives: residuals of the same pair with either strain replaced by one of similar profile.
    """
    residual = residuals(matrix, additive)
    near = profile_neighbours(low_rank(residual, matrix.known, RANK, seed=seed))
    return np.asarray(additive.matrix() + smoothed(residual, matrix.known, near))


def smoothed(
    residual: Floats, known: NDArray[np.bool_] | None, near: sparse.csr_array, run: Run = one_after_the_other
) -> Floats:
    """Return (SR + (SR)ᵀ) / (SM + (SM)ᵀ + 0.3) [s, s]: means of residuals R [s, s] over neighbours S.

    R is 0 where nothing is known, and M marks known cells; without it, every cell is. An unknown cell gets a
    value, and a known one is replaced by those of its neighbours.
    """
    from wildtype.evidence.smoothing import TILE, smooth_tiles

    s, out = len(residual), np.empty_like(residual)
    if known is None:
        flags, below = np.zeros((0, 0), np.uint8), np.asarray(near.sum(axis=1), np.float32)
    else:
        flags, below = known.view(np.uint8), np.zeros(s, np.float32)

    def work(i: int) -> None:
        rows = (near.indptr, near.indices, near.data)
        smooth_tiles(i * TILE, *rows, residual, flags, below, PRIOR, out)

    run(-(-s // TILE), work)
    return out
