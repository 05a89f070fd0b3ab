"""Neighbours of genes are the same whenever they are asked for."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from wildtype.evidence.nearest_genes import NearestGenes
from wildtype.evidence.neighbour_kernels import Csr
from wildtype.evidence.pieces import one_after_the_other

N, R = 30, 4


def csr(matrix: sparse.csr_array) -> Csr:
    return Csr(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64), matrix.data)


def nearest(calls: list[int]) -> tuple[NearestGenes, np.ndarray]:
    """Return genes by drawn similarities and, by its definition, how alike all of them are [n, n]."""
    draw = np.random.default_rng(0)
    embedded, profiles = (
        sparse.random_array((N, columns), density=0.2, rng=draw, dtype=np.float32).tocsr()
        for columns in (N, 12)
    )
    known = draw.random(N) < 0.8
    dense = profiles.toarray()
    alike = embedded.toarray() + np.maximum(dense @ dense.T, 0) ** 2
    alike[:, ~known] = 0
    np.fill_diagonal(alike, 0)

    def run(count: int, work: object) -> None:
        calls.append(count)
        one_after_the_other(count, work)  # type: ignore[arg-type]

    return NearestGenes(known, csr(embedded), csr(profiles), csr(profiles.T.tocsr()), R, run), alike


def test_rows_are_the_most_similar_genes_in_whatever_order_they_are_asked_for() -> None:
    calls: list[int] = []
    found, alike = nearest(calls)
    every = found.of()
    for i in range(N):
        best = np.sort(alike[i][alike[i] > 1e-4])[::-1][:R]
        assert every.score[i, : len(best)] == pytest.approx(best, abs=1e-6)
        assert alike[i, every.gene[i, : len(best)]] == pytest.approx(best, abs=1e-6)
        assert (every.gene[i, len(best) :] == -1).all()
    later, _ = nearest(calls)
    for genes in ([7, 3, 7, -1], [3, 20], [-1]):
        later.of(np.array(genes))
    made = later.of(np.array([3, 7, 20]))
    for column, whole in zip(made, every, strict=True):
        np.testing.assert_array_equal(column[[3, 7, 20]], whole[[3, 7, 20]])
    assert (made.gene[[0, 1]] == -1).all()  # nobody asked about them
    for column, whole in zip(later.of(), every, strict=True):
        np.testing.assert_array_equal(column, whole)


def test_a_row_is_made_once() -> None:
    calls: list[int] = []
    found, _ = nearest(calls)
    for genes in ([1, 2], [2, 1, -1], [5], []):
        found.of(np.array(genes, np.int64))
    assert calls == [1, 1]
