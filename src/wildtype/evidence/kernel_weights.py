"""`kernel_weights`: which kernels of genes explain best which strains have similar interaction profiles."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import nnls

from wildtype.seeds import generator

COMPARED = 1000
"""Strains whose profiles choose the weights of kernels."""


def kernel_weights(
    maps: Mapping[str, sparse.csr_array],
    gene: NDArray[np.int64],
    profiles: NDArray[np.float32],
    *,
    seed: int = 0,
) -> dict[str, float]:
    """Return a weight of every kernel, with sum 1: how well it explains which strains have similar profiles.

    Weights w ≥ 0 minimise ‖PPᵀ − Σ w_m K_m‖² over pairs of strains of different genes, which is the alignment
    of kernels by Cortes, Mohri & Rostamizadeh (JMLR 13, 2012) without centring. They are equal where nothing
    is explained. At most 1,000 strains are compared.

    Parameters
    ----------
    maps : mapping of str to csr [n, ·]
    gene : int64 [s]
        Gene of each strain.
    profiles : float32 [s, ·]
        Interaction profile P of each strain; visible labels alone.
    """
    if len(gene) > COMPARED:
        some = np.sort(generator(seed, "kernel weights").choice(len(gene), COMPARED, replace=False))
        gene, profiles = gene[some], profiles[some]
    # Every kernel has its largest values on the diagonal, which says nothing about other genes.
    other = np.triu(gene[:, None] != gene[None, :])
    similar = (profiles @ profiles.T)[other].astype(np.float64)
    kernels = [(of[gene] @ of[gene].T).toarray()[other] for of in maps.values()]
    inner = np.array([[float(k @ other_k) for other_k in kernels] for k in kernels])
    inner = inner.reshape(len(maps), len(maps))
    aligned = np.array([float(k @ similar) for k in kernels])
    found = np.zeros(len(maps))
    if maps and inner.any() and similar.any():
        # With LLᵀ = ⟨K, K⟩, ‖Lᵀw − L⁻¹⟨K, T⟩‖² is the same problem in as many rows as there are kernels.
        # A small ridge keeps equal kernels apart.
        ridge = 1e-6 * np.trace(inner) * np.eye(len(maps))
        lower = np.linalg.cholesky(inner + ridge)
        found = nnls(lower.T, np.linalg.solve(lower, aligned / np.abs(aligned).max(initial=1e-30)))[0]
    if not found.any():
        found = np.ones(len(maps))
    return dict(zip(maps, (found / found.sum()).tolist(), strict=True))
