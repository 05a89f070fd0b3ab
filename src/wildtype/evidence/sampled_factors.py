"""Completion of a measured map of pairs by factors that are averaged over their posterior.

Singular values cut at a threshold (`wildtype.evidence.completion.low_rank`) need a rank and a threshold, and
the best of both differ from screen to screen. Here the noise, the size of every factor, and with it the rank,
are sampled with the factors themselves (Bayesian probabilistic matrix factorisation, Salakhutdinov & Mnih,
ICML 2008). Genes that are alike have similar factors: each factor is a draw of a Gaussian process over genes.

Legend: s strains · r factors.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wildtype.compiled import njit
from wildtype.seeds import generator

FACTORS = 16
SWEEPS, BURN = 60, 20
"""Sweeps of the sampler, and how many of them are not averaged."""
KERNEL_SHARE = 0.6
"""Share of a factor's variance that the kernel explains; the rest is the strain's own."""
LEAST = 1e-6
"""Added to variances, in units of the residuals': a screen without noise must not divide by 0."""

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]


def sampled_factors(residual: Floats, known: NDArray[np.bool_], kernel: Floats, *, seed: int = 0) -> Floats:
    """Return the posterior mean of U Vᵀ [s, s], made symmetric; of unknown cells nothing is read.

    R_ij = u_i · v_j + e_ij on known cells, e_ij ~ N(0, 1/τ). Every column of U and V [s, r] is
    N(0, C / γ) with C = 0.6 k̂ + 0.4 I, k̂_ij = k_ij / √(k_ii k_jj), and a precision γ of its own, which draws
    columns that explain nothing to 0. Gibbs sampling: the rows of U given V, γ and τ, one after the other,
    then those of V, then τ; 60 sweeps, the last 40 are averaged. O(sweeps · s² r²).

    Both triangles of the symmetric map are fitted, so that U and V need not be equal, which eigenvalues of
    both signs would not allow.

    Parameters
    ----------
    residual : float32 [s, s]
        Symmetric.
    known : bool [s, s]
        Symmetric.
    kernel : float32 [s, s]
        Of the strains, positive semidefinite; a strain with 0 on the diagonal is like no other.
    """
    s, rng = len(residual), generator(seed, "sampled factors")
    cells = np.where(known, residual, 0).astype(np.float64)
    count = float(known.sum())
    scale = np.sqrt((cells**2).sum() / count) if count else 0.0
    if not scale:
        return np.zeros((s, s), np.float32)
    cells /= scale
    seen = known.astype(np.float64)
    inverse = np.linalg.inv(prior_covariance(kernel))
    u, v = (rng.normal(size=(s, FACTORS)) * 0.3 * FACTORS**-0.25 for _ in range(2))
    precision, total = 1.0, np.zeros((s, s))
    for sweep in range(SWEEPS):
        for own, other in ((u, v), (v, u)):
            shape, rate = 1 + s / 2, LEAST**0.5 + 0.5 * np.einsum("ik,ik->k", own, inverse @ own)
            gamma = rng.gamma(shape, 1 / rate)
            normal, target = row_equations(cells, seen, other, precision)
            at = np.arange(FACTORS)
            normal[:, at, at] += inverse.diagonal()[:, None] * gamma
            covariance = np.linalg.inv(normal)
            root = np.linalg.cholesky((covariance + covariance.transpose(0, 2, 1)) / 2)
            draw = np.einsum("ikl,il->ik", root, rng.normal(size=own.shape))
            sample_rows(own, covariance, target, inverse, gamma, draw)
        fitted = u @ v.T
        error = float(((cells - fitted)[known] ** 2).sum())
        precision = float(rng.gamma(1 + count / 2, 1 / (0.5 * error + LEAST * count)))
        if sweep >= BURN:
            total += fitted
    mean = total * (scale / (SWEEPS - BURN))
    return np.asarray((mean + mean.T) / 2, np.float32)


def prior_covariance(kernel: Floats) -> Doubles:
    """Return 0.6 k̂ + 0.4 I [s, s] with 1 on its diagonal."""
    size = np.sqrt(np.maximum(kernel.diagonal(), 0).astype(np.float64))
    size[size == 0] = np.inf
    out = KERNEL_SHARE * kernel / size[:, None] / size
    np.fill_diagonal(out, 1.0)
    return np.asarray(out, np.float64)


def row_equations(cells: Doubles, seen: Doubles, other: Doubles, precision: float) -> tuple[Doubles, Doubles]:
    """Return τ Σ_j v_j v_jᵀ [s, r, r] and τ Σ_j R_ij v_j [s, r] of every row, over its known cells j."""
    s, r = other.shape
    products = (other[:, :, None] * other[:, None, :]).reshape(s, r * r)
    return precision * (seen @ products).reshape(s, r, r), precision * (cells @ other)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def sample_rows(own: Any, covariance: Any, target: Any, inverse: Any, gamma: Any, draw: Any) -> None:
    """Draw the rows [s, r] one after the other, each given all others: its conditional mean plus ``draw``.

    The mean of row i is Σ_i (t_i − γ ∘ Σ_{j ≠ i} C⁻¹_ij u_j), with Σ_i ``covariance`` [s, r, r] of the row,
    t_i ``target`` [s, r], and C⁻¹ ``inverse`` [s, s].
    """
    s, r = own.shape
    wanted = np.empty(r)
    for i in range(s):
        wanted[:] = 0.0
        for j in range(s):
            if j != i:
                for k in range(r):
                    wanted[k] += inverse[i, j] * own[j, k]
        for k in range(r):
            wanted[k] = target[i, k] - gamma[k] * wanted[k]
        for k in range(r):
            value = draw[i, k]
            for other in range(r):
                value += covariance[i, k, other] * wanted[other]
            own[i, k] = value
