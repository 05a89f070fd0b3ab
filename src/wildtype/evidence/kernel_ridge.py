"""Kernel ridge for pairs of genes: two-step ridge and pairwise ridge, for genes that no row has, too.

Kernels are inner products of a map of genes (`wildtype.organism.gene_kernels`), so that a kernel matrix of
strains is never made: with K = ΦΦᵀ, K (K + λI)⁻¹ = Φ (ΦᵀΦ + λI)⁻¹ Φᵀ. The axes of the map are turned first so
that ΦᵀΦ = diag(v) over the strains; every inverse is then a division.

Legend: n genes · s strains · m pairs · d width of the map · l ridge penalties (lambdas).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wildtype.evidence.completion import Additive, low_rank, residuals
from wildtype.evidence.pair_matrix import PairMatrix
from wildtype.seeds import generator

LAMBDAS = tuple(10.0 ** (step / 2) for step in range(5, -7, -1))
FOLDS = 5
FILL_RANK = 40
"""Of the completion that fills unmeasured cells and the diagonal."""
HIDDEN = 0.1
"""Fraction of cells that is hidden to choose the penalty of pairs of seen genes."""
SEEN, ONE, NONE = "seen", "one_unseen", "unseen"
"""Names of the penalties of two-step ridge: of pairs with both genes seen, with one unseen, with both."""
BLOCK = 65536
TOLERANCE, MOST = 1e-4, 100
"""Relative residual at which conjugate gradients stop, and their largest number of iterations."""

Floats = NDArray[np.floating[Any]]
Ints = NDArray[np.int64]


def turned(phi: Floats, gene: Ints) -> tuple[Floats, Floats]:
    """Return a map [n, d] in axes where ΦᵀΦ over strains of genes [s] is diagonal, and its diagonal [d]."""
    strains = phi[gene]
    values, vectors = np.linalg.eigh(strains.T @ strains)
    # A Gram matrix has no negative eigenvalue; rounding makes some that would exceed small penalties.
    return phi @ vectors, np.maximum(values, 0)


@dataclass(frozen=True, eq=False)
class PairModel:
    """Additive effects and interactions that are bilinear in a map of genes.

    Attributes
    ----------
    phi : [n, d]
        Map of all genes.
    mean : float
    effect : float64 [s]
        Additive effect of each strain.
    effect_map : [d]
        The effect of an unseen gene is its row of ``phi`` times this.
    seen, unseen : [d, d]
        Interactions φ_aᵀ W φ_b of two seen genes, and of two unseen ones.
    mixed : [d, s]
        Interactions φ_cᵀ w_b of an unseen gene c with a strain b.
    """

    phi: Floats
    mean: float
    effect: NDArray[np.float64]
    effect_map: Floats
    seen: Floats
    mixed: Floats
    unseen: Floats

    def predict(self, genes: Ints, cells: Ints) -> NDArray[np.float64]:
        """Return predictions [m] of pairs of genes [m, 2] at positions [m, 2] of strains, -1: unseen."""
        # Unseen genes first, so that a pair with one of them is (unseen, seen).
        order = np.argsort(cells >= 0, axis=1, kind="stable")
        genes, cells = (np.take_along_axis(x, order, axis=1) for x in (genes, cells))
        found = cells >= 0
        effects = (self.phi @ self.effect_map)[genes].astype(np.float64)
        effects[found] = self.effect[cells[found]]
        out = self.mean + effects.sum(axis=1)
        count = found.sum(axis=1)
        for seen, left, right, of in (
            (2, self.phi @ self.seen, self.phi, genes),
            (1, self.phi, self.mixed.T, np.column_stack([genes[:, 0], cells[:, 1]])),
            (0, self.phi @ self.unseen, self.phi, genes),
        ):
            rows = np.flatnonzero(count == seen)
            out[rows] += row_products(left, right, of[rows])
        return np.asarray(out)


def row_products(left: Floats, right: Floats, rows: Ints) -> NDArray[np.float64]:
    """Return [m] the inner products of rows [m, 2] of two matrices with d columns."""
    out = np.zeros(len(rows))
    # In blocks: the gathered rows of a million pairs would take gigabytes.
    for start in range(0, len(rows), BLOCK):
        i, j = rows[start : start + BLOCK].T
        out[start : start + BLOCK] = np.einsum("md,md->m", left[i], right[j])
    return out


def effect_map(phi: Floats, values: Floats, gene: Ints, effect: NDArray[np.float64]) -> Floats:
    """Return the map [d] that gives additive effects of unseen genes: kernel ridge on those of strains [s].

    The penalty has the smallest squared error when each strain is left out, (b − Hb) / (1 − diag H) in closed
    form (Golub, Heath & Wahba, Technometrics 21, 1979); ``phi`` and ``values`` are `turned` for the strains.
    """
    strains = phi[gene].astype(np.float64)
    best, found = np.inf, np.zeros(strains.shape[1])
    for penalty in LAMBDAS:
        weights = strains.T @ effect / (values + penalty)
        own = (strains**2 / (values + penalty)).sum(axis=1)
        # Rounding can make a strain that nothing else resembles its only source.
        left_out = (effect - strains @ weights) / np.maximum(1 - own, 1e-6)
        if (error := float((left_out**2).sum())) < best:
            best, found = error, weights
    return found.astype(phi.dtype)


def filled_residuals(matrix: PairMatrix, additive: Additive, *, seed: int = 0) -> NDArray[np.float32]:
    """Return Ê [s, s]: known residuals, and their low-rank completion elsewhere and on the diagonal."""
    known = residuals(matrix, additive)
    return np.where(matrix.known, known, low_rank(known, matrix.known, FILL_RANK, seed=seed).matrix())


def two_step_ridge(
    matrix: PairMatrix, phi: Floats, penalties: Mapping[str, float], *, seed: int = 0
) -> PairModel:
    """Return two-step kernel ridge (Stock, Pahikkala, Airola, De Baets & Waegeman, Neural Comput. 30, 2018).

    With H = K (K + λI)⁻¹ over the strains, pairs of seen genes are H Ê Hᵀ; of an unseen gene c and a seen
    one, k_cᵀ (K + λI)⁻¹ Ê; of two unseen genes, the same on both sides. Additive effects of unseen genes are
    those of `effect_map`. O(s² d).

    Parameters
    ----------
    matrix : PairMatrix
    phi : [n, d]
        Map of all genes.
    penalties : mapping
        The λ of ``seen``, ``one_unseen`` and ``unseen``.
    """
    additive = Additive.of(matrix)
    filled = filled_residuals(matrix, additive, seed=seed).astype(phi.dtype, copy=False)
    phi, values = turned(phi, matrix.gene)
    strains = phi[matrix.gene]
    half = strains.T @ filled
    both = half @ strains

    def divided(penalty: float) -> Floats:
        # (V + λI)⁻¹ ΦᵀÊΦ (V + λI)⁻¹ for a diagonal V.
        return np.asarray(both / np.multiply.outer(values + penalty, values + penalty))

    return PairModel(
        phi,
        additive.mean,
        additive.effect,
        effect_map(phi, values, matrix.gene, additive.effect),
        divided(penalties[SEEN]),
        half / (values + penalties[ONE])[:, None],
        divided(penalties[NONE]),
    )


def choose_penalties(matrix: PairMatrix, phi: Floats, *, seed: int = 0) -> dict[str, float]:
    """Return the penalties of `two_step_ridge` with the smallest squared error in inner folds.

    Five folds of genes choose those for unseen genes: everything, completion included, is fitted without the
    cells of the fold's genes. A tenth of the known cells is hidden to choose that for two seen genes.
    """
    genes = np.unique(matrix.gene)
    fold = generator(seed, "inner gene folds").permutation(len(genes)) % FOLDS
    of_strain = fold[np.searchsorted(genes, matrix.gene)]
    errors = {name: np.zeros(len(LAMBDAS)) for name in (SEEN, ONE, NONE)}
    for k in range(FOLDS):
        held, rest = np.flatnonzero(of_strain == k), np.flatnonzero(of_strain != k)
        if held.size and matrix.known[np.ix_(rest, rest)].any():
            _add_gene_fold(errors, matrix, phi, held, rest, seed)
    errors[SEEN] = _cell_errors(matrix, phi, seed)
    # Strong penalties stand first: without a cell to judge by, nothing is learned of unseen genes.
    return {name: LAMBDAS[int(error.argmin())] for name, error in errors.items()}


def _add_gene_fold(
    errors: dict[str, NDArray[np.float64]], matrix: PairMatrix, phi: Floats, held: Ints, rest: Ints, seed: int
) -> None:
    """Add the squared errors of every penalty on the cells of held strains."""
    visible = matrix.part(rest)
    additive = Additive.of(visible)
    filled = filled_residuals(visible, additive, seed=seed).astype(phi.dtype, copy=False)
    phi, values = turned(phi, visible.gene)
    strains, unseen = phi[visible.gene], phi[matrix.gene[held]]
    half = strains.T @ filled
    both = half @ strains
    one, none = np.ix_(held, rest), np.ix_(held, held)
    bias = unseen @ effect_map(phi, values, visible.gene, additive.effect)
    target = matrix.values[one] - (additive.mean + additive.effect + bias[:, None])
    pairs = matrix.values[none] - (additive.mean + bias[:, None] + bias[None, :])
    for at, penalty in enumerate(LAMBDAS):
        divided = unseen / (values + penalty)
        errors[ONE][at] += _squared(divided @ half, target, matrix.known[one])
        errors[NONE][at] += _squared(divided @ both @ divided.T, pairs, matrix.known[none])


def _cell_errors(matrix: PairMatrix, phi: Floats, seed: int) -> NDArray[np.float64]:
    """Return the squared error [l] of H Ê Hᵀ on hidden cells, for every penalty."""
    draw = np.triu(generator(seed, "inner cells").random(matrix.known.shape, np.float32) < HIDDEN)
    hidden = matrix.known & (draw | draw.T)
    visible = PairMatrix(matrix.gene, matrix.kind, matrix.values, matrix.known & ~hidden)
    additive = Additive.of(visible)
    filled = filled_residuals(visible, additive, seed=seed).astype(phi.dtype, copy=False)
    phi, values = turned(phi, matrix.gene)
    strains = phi[matrix.gene]
    both = strains.T @ filled @ strains
    target = matrix.values - additive.matrix()
    divided = (strains / (values + penalty) for penalty in LAMBDAS)
    return np.array([_squared(of @ both @ of.T, target, hidden) for of in divided])


def _squared(predicted: Floats, wanted: Floats, known: NDArray[np.bool_]) -> float:
    return float(((predicted - wanted)[known].astype(np.float64) ** 2).sum())


def pairwise_ridge(matrix: PairMatrix, phi: Floats, penalty: float, start: Floats | None = None) -> Floats:
    """Return W [d, d], symmetric, that minimises Σ (E_ij − φ_iᵀ W φ_j)² + λ ‖W‖² over known cells i < j.

    It is kernel ridge on pairs with k((a, b), (c, d)) = K_ac K_bd + K_ad K_bc and the penalty 2λ, since
    k = 2 ⟨sym(φ_a φ_bᵀ), sym(φ_c φ_dᵀ)⟩. Known zeros of a grid stand among the cells like any value; unknown
    cells enter no sum. Conjugate gradients of two products of s² d each per iteration, stopped at a relative
    residual of 1e-4.

    Parameters
    ----------
    matrix : PairMatrix
        With values E, as `residuals` gives them.
    phi : [n, d]
        Map of all genes, `turned` for the strains: without it, iterations are many.
    penalty : float
        λ, above 0.
    start : [d, d], optional
        Symmetric weights to start from, of another penalty.
    """
    strains = phi[matrix.gene]
    known = matrix.known.astype(phi.dtype)
    values = np.einsum("sd,sd->d", strains, strains)
    # The matrix is as symmetric as W: half of the sum over all cells is the sum over i < j.
    target = strains.T @ (np.where(matrix.known, matrix.values, 0).astype(phi.dtype) @ strains) / 2

    def normal(weights: Floats) -> Floats:
        predicted = strains @ weights @ strains.T
        predicted *= known
        found = strains.T @ (predicted @ strains) / 2 + penalty * weights
        # Rounding must not leave the space of symmetric matrices, on which the operator is definite.
        return np.asarray((found + found.T) / 2)

    # A matrix whose cells are known at random with density p has the operator p/2 v_i v_j + λ in turned axes.
    density = float(matrix.known.mean()) if len(matrix) else 0.0
    inverse = 1 / (density / 2 * np.multiply.outer(values, values) + penalty)
    weights = np.zeros_like(target) if start is None else start
    residual = target - normal(weights) if start is not None else target
    enough = TOLERANCE * float(np.linalg.norm(target))
    direction, size = np.zeros_like(target), 1.0
    for _ in range(MOST):
        if float(np.linalg.norm(residual)) <= enough:
            break
        scaled = inverse * residual
        new = float((scaled * residual).sum())
        direction = scaled + (new / size) * direction
        size = new
        image = normal(direction)
        step = new / float((direction * image).sum())
        weights, residual = weights + step * direction, residual - step * image
    return weights
