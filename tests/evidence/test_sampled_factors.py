"""The sampled completion of a map against its plain definitions, and what it may read."""

from __future__ import annotations

import numpy as np

from wildtype.evidence.sampled_factors import prior_covariance, row_equations, sample_rows, sampled_factors

S, R = 12, 3


def planted(s: int = 40, rank: int = 3, hidden: float = 0.3) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a symmetric matrix of low rank, itself with noise, and known cells."""
    rng = np.random.default_rng(0)
    u = rng.normal(size=(s, rank))
    truth = (u * [2.0, -1.5, 1.0]) @ u.T
    noise = rng.normal(size=(s, s))
    known = np.triu(rng.random((s, s)) > hidden, 1)
    known |= known.T
    noisy = (truth + (noise + noise.T) / 2).astype(np.float32)
    return truth, noisy, known


def test_rows_are_drawn_around_the_solution_of_their_normal_equations() -> None:
    rng = np.random.default_rng(1)
    own, other = rng.normal(size=(2, S, R))
    seen = np.triu(rng.random((S, S)) > 0.4, 1).astype(float)
    seen += seen.T
    cells, gamma, tau = rng.normal(size=(S, S)) * seen, np.array([0.5, 1.0, 2.0]), 1.7
    half = rng.normal(size=(S, S))
    inverse = np.linalg.inv(half @ half.T + np.eye(S))
    normal, target = row_equations(cells, seen, other, tau)
    covariance = np.empty_like(normal)
    wanted = own.copy()
    for i in range(S):
        v = other[seen[i] > 0]
        precision = tau * v.T @ v + inverse[i, i] * np.diag(gamma)
        np.testing.assert_allclose(normal[i], tau * v.T @ v, atol=1e-12)
        pull = sum(inverse[i, j] * wanted[j] for j in range(S) if j != i)
        wanted[i] = np.linalg.solve(precision, tau * v.T @ cells[i][seen[i] > 0] - gamma * pull) + 0.25
        covariance[i] = np.linalg.inv(precision)
    sample_rows(own, covariance, target, inverse, gamma, np.full((S, R), 0.25))
    np.testing.assert_allclose(own, wanted, atol=1e-10)


def test_hidden_cells_of_a_planted_matrix_are_found_and_nothing_of_them_is_read() -> None:
    truth, noisy, known = planted()
    kernel = np.eye(len(truth), dtype=np.float32)
    found = sampled_factors(np.where(known, noisy, np.float32(0)), known, kernel)
    np.testing.assert_array_equal(found, found.T)
    hidden = ~known & ~np.eye(len(truth), dtype=bool)
    assert np.corrcoef(found[hidden], truth[hidden])[0, 1] > 0.9
    spoilt = np.where(known, noisy, np.float32(1e6))
    np.testing.assert_array_equal(found, sampled_factors(spoilt, known, kernel))
    assert not np.array_equal(found, sampled_factors(noisy, known | ~known, kernel))


def test_a_kernel_says_what_a_strain_without_a_cell_is_like() -> None:
    truth, noisy, known = planted(hidden=0.0)
    twin = len(truth) - 1
    known[twin] = known[:, twin] = False
    kernel = np.eye(len(truth), dtype=np.float32)
    alone = sampled_factors(noisy, known, kernel)[twin]
    kernel[0, twin] = kernel[twin, 0] = 0.99
    found = sampled_factors(noisy, known, kernel)[twin]
    others = slice(1, twin)
    assert np.corrcoef(found[others], truth[0, others])[0, 1] > 0.8
    assert np.abs(alone[others]).mean() < 0.5 * np.abs(found[others]).mean()


def test_the_prior_has_unit_variance_also_of_strains_that_are_like_no_other() -> None:
    kernel = np.array([[4.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 0.0]], np.float32)
    expected = np.array([[1.0, 0.3, 0.0], [0.3, 1.0, 0.0], [0.0, 0.0, 1.0]])
    np.testing.assert_allclose(prior_covariance(kernel), expected, atol=1e-7)


def test_nothing_known_gives_zeros() -> None:
    nothing = np.zeros((4, 4), bool)
    assert not sampled_factors(np.ones((4, 4), np.float32), nothing, np.eye(4, dtype=np.float32)).any()
    assert (
        sampled_factors(np.zeros((0, 0), np.float32), nothing[:0, :0], np.zeros((0, 0), np.float32)).size == 0
    )
