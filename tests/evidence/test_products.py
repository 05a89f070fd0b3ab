from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from wildtype.evidence import products
from wildtype.evidence.products import entries, row_products


@given(st.integers(0, 10_000), st.integers(1, 9), st.integers(1, 9), st.integers(1, 9), st.integers(0, 30))
@settings(max_examples=80, deadline=None)
def test_row_products_equal_the_dense_product_at_the_queries(seed, rows, others, n, queries):
    rng = np.random.default_rng(seed)
    left, one, two = (rng.random((r, n)) * (rng.random((r, n)) < 0.4) for r in (rows, others, others))
    pattern = (rng.random((others, n)) < 0.5).astype(np.float32)
    right = sparse.csr_array(pattern)
    at = right.nonzero()
    channels = np.stack([one[at], two[at]], axis=1).astype(np.float32)
    i, j = rng.integers(0, rows, queries), rng.integers(-1, others, queries)
    got = row_products(sparse.csr_array(left.astype(np.float32)), i, right, channels, j)
    want = np.stack([left @ (one * pattern).T, left @ (two * pattern).T], axis=-1)
    want = np.where(j[:, None] >= 0, want[i, j], 0)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_blocks_and_chunks_change_nothing(monkeypatch):
    rng = np.random.default_rng(0)
    matrix = sparse.random_array((50, 50), density=0.3, rng=rng, dtype=np.float32).tocsr()
    i, j = rng.integers(0, 50, 400), rng.integers(0, 50, 400)
    whole = row_products(matrix, i, matrix, matrix.data[:, None], j)
    monkeypatch.setattr(products, "BLOCK", 7)
    monkeypatch.setattr(products, "CHUNK", 100)
    np.testing.assert_allclose(row_products(matrix, i, matrix, matrix.data[:, None], j), whole, rtol=1e-6)
    np.testing.assert_array_equal(entries(matrix, i, j), matrix.toarray()[i, j])
    assert entries(matrix, i[:0], j[:0]).shape == (0,)
