"""Expected errors: the weights of a known process are found, and none is below 0."""

from __future__ import annotations

import numpy as np
import pytest

from wildtype.evaluation.error_scale import LEAST, ErrorScale, hats


def process(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return quantities, errors, and their expected sizes: 0.5 + 2 x, whatever the third quantity is."""
    rng = np.random.default_rng(seed)
    x = np.column_stack([np.ones(rows), rng.exponential(size=rows), rng.exponential(size=rows)])
    size = 0.5 + 2 * x[:, 1]
    return x, size * np.abs(rng.normal(size=rows)) / np.sqrt(2 / np.pi), size


def test_weights_of_a_known_process() -> None:
    x, error, _ = process(20_000, 0)
    found = ErrorScale.fit(x, error)
    np.testing.assert_allclose(found.weight, [0.5, 2.0, 0.0], atol=0.1)
    new, _, size = process(500, 1)
    np.testing.assert_allclose(found.expected(new), size, rtol=0.15)


@pytest.mark.parametrize("seed", range(5))
def test_weights_are_at_least_zero_and_follow_units(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, error, _ = process(300, seed)
    x[:, 2] = 5.0 - 0.5 * x[:, 1] + rng.random(300)  # larger where errors are smaller
    found = ErrorScale.fit(x, error)
    assert (found.weight >= 0).all()
    other = ErrorScale.fit(x * [1.0, 1e6, 1e-6], 1e3 * error)
    np.testing.assert_allclose(other.expected(x * [1.0, 1e6, 1e-6]), 1e3 * found.expected(x), rtol=1e-6)


def test_no_row_is_certain() -> None:
    x = np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 1.0], [1.0, 1.0], [1.0, 1.0]])
    found = ErrorScale.fit(x, np.array([0.0, 0.0, 1.0, 2.0, 3.0]))
    assert found.expected(x)[0] == pytest.approx(LEAST * 2.0)
    without = ErrorScale.fit(x, np.zeros(5))
    assert (without.expected(x) == 1.0).all()
    rare = ErrorScale.fit(x, np.array([0.0, 0.0, 0.0, 0.0, 1e-12]))
    assert np.isfinite(rare.expected(x)).all()
    assert (rare.expected(x) > 0).all()


def test_hats_make_a_piecewise_linear_function() -> None:
    knots, heights = np.array([-1.0, 0.0, 0.5, 2.0]), np.array([3.0, 1.0, 4.0, 2.0])
    value = np.array([-5.0, -1.0, -0.5, 0.0, 0.25, 1.25, 2.0, 9.0])
    found = hats(value, knots)
    np.testing.assert_allclose(found.sum(1), 1.0)
    np.testing.assert_allclose(found @ heights, [3.0, 3.0, 2.0, 1.0, 2.5, 3.0, 2.0, 2.0])
    assert hats(value, knots[:1]).tolist() == [[1.0]] * 8
