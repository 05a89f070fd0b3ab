"""Products of rows against their plain definition, and the same bits in any company."""

from __future__ import annotations

import numpy as np
import pytest

from wildtype.evidence.row_products import row_products


@pytest.mark.parametrize(
    ("d", "first", "last"), [(1, 0, 1), (7, 0, 7), (64, 3, 50), (439, 20, 439), (5, 5, 5)]
)
def test_they_are_weighted_sums_over_columns(d: int, first: int, last: int) -> None:
    draw = np.random.default_rng(d)
    left, right = (draw.normal(size=(n, d)).astype(np.float32) for n in (30, 20))
    at, to = draw.integers(-1, 30, 300), draw.integers(-1, 20, 300)
    weight = draw.normal(size=last - first).astype(np.float32)
    found = row_products(left, at, right, to, weight, first)
    columns = slice(first, last)
    expected = np.einsum(
        "mr,r,mr->m", *(x.astype(np.float64) for x in (left[at, columns], weight, right[to, columns]))
    )
    there = (at >= 0) & (to >= 0)
    assert np.isnan(found[~there]).all()
    assert not there.all()
    np.testing.assert_allclose(found[there], expected[there], atol=2e-5)
    alone = [row_products(left, at[[m]], right, to[[m]], weight, first)[0] for m in range(300)]
    np.testing.assert_array_equal(found, np.array(alone))


def test_without_weights_every_column_counts_once() -> None:
    rows = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert row_products(rows, np.array([0, 1]), rows, np.array([1, 1])).tolist() == [14.0, 50.0]
