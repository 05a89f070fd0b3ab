"""Principal components that come out the same every time."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from wildtype.errors import SourceError
from wildtype.organism.components import DENSE, components, spread
from wildtype.seeds import generator


@pytest.mark.parametrize("rows", [40, DENSE + 60])
def test_scores_are_the_leading_singular_directions_with_fixed_signs(rows: int) -> None:
    matrix = generator(0, "test").standard_normal((rows, rows - 10))
    scores = components(matrix, 5, "test")
    values = np.linalg.svd(matrix, compute_uv=False)
    np.testing.assert_allclose(np.linalg.norm(scores, axis=0), values[:5], rtol=1e-6)
    np.testing.assert_allclose(components(-matrix, 5, "test"), -scores, atol=1e-6)  # loadings keep their sign
    np.testing.assert_array_equal(components(matrix, 5, "test"), scores)
    np.testing.assert_allclose(components(sparse.csr_array(matrix), 5, "test"), scores, atol=1e-6)


def test_a_small_matrix_gives_fewer_components_and_an_empty_one_none() -> None:
    assert components(np.array([[1.0, 0, 2], [0, 1, 0]]), 64, "test").shape == (2, 2)
    for matrix in (np.zeros((5, 4)), np.ones((1, 4))):
        with pytest.raises(SourceError, match="the table gives a"):
            components(matrix, 3, "the table")


def test_spread_leaves_other_genes_missing() -> None:
    out = spread(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([2, 0]), 4)
    np.testing.assert_array_equal(out, [[3, 4], [np.nan, np.nan], [1, 2], [np.nan, np.nan]])
