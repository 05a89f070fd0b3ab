"""Additive effects, low-rank completion and profile neighbours against their definitions in float64."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from wildtype.evidence.completion import (
    BLOCK,
    FLOOR,
    KERNEL_SHARE,
    MIXED_NEIGHBOURS,
    NEIGHBOURS,
    PASSES,
    PRIOR,
    RANK,
    SHRINKAGE,
    Additive,
    low_rank,
    mixed_neighbours,
    profile_completion,
    smoothed,
    spectrum,
)
from wildtype.evidence.pair_matrix import PairMatrix
from wildtype.evidence.smoothing import TILE
from wildtype.nn.threads import each


def random_matrix(seed: int, s: int = 14, density: float = 0.6, rank: int = 3, noise: float = 0.1):
    """Return a matrix of low rank with additive effects and noise, known at random."""
    rng = np.random.default_rng(seed)
    factors, effect = rng.normal(size=(s, rank)), rng.normal(size=s)
    values = factors @ np.diag(rng.choice([-1.0, 1.0], rank)) @ factors.T + effect[:, None] + effect + 0.3
    error = noise * rng.normal(size=(s, s))
    known = np.triu(rng.random((s, s)) < density, 1)
    both = (values + error + error.T).astype(np.float32)
    return PairMatrix(np.arange(s), np.zeros(s, np.uint8), both, known | known.T)


def scrambled(matrix: PairMatrix) -> PairMatrix:
    """Return a matrix with other values in unknown cells."""
    noise = np.random.default_rng(9).normal(size=matrix.values.shape).astype(np.float32) * 100
    values = np.where(matrix.known, matrix.values, noise + noise.T)
    return PairMatrix(matrix.gene, matrix.kind, values, matrix.known)


def plain_additive(matrix: PairMatrix) -> tuple[float, np.ndarray]:
    s, y, known = len(matrix), matrix.values.astype(np.float64), matrix.known
    mean = sum(y[i, j] for i in range(s) for j in range(s) if known[i, j]) / known.sum()
    u = np.zeros(s)
    for _ in range(PASSES):
        new = np.zeros(s)
        for i in range(s):
            cells = [y[i, j] - mean - u[j] for j in range(s) if known[i, j]]
            new[i] = sum(cells) / (len(cells) + SHRINKAGE)
        u = (u + new) / 2
    return mean, u


def plain_low_rank(residual: np.ndarray, known: np.ndarray, rank: int, iterations: int = 6) -> np.ndarray:
    low = np.zeros_like(residual)
    for _ in range(iterations):
        values, vectors = np.linalg.eigh(np.where(known, residual, low))
        order = np.argsort(-np.abs(values))
        threshold = abs(values[order[rank]]) if rank < len(values) else 0.0
        kept = order[:rank]
        soft = np.sign(values[kept]) * np.maximum(np.abs(values[kept]) - threshold, 0)
        low = (vectors[:, kept] * soft) @ vectors[:, kept].T
    return low


def plain_profile_completion(matrix: PairMatrix) -> np.ndarray:
    s, known = len(matrix), matrix.known
    mean, u = plain_additive(matrix)
    base = mean + u[:, None] + u[None, :]
    residual = np.where(known, matrix.values - base, 0)
    values, vectors = np.linalg.eigh(plain_low_rank(residual, known, RANK))
    profiles = vectors * np.sqrt(np.abs(values))
    near = np.zeros((s, s))
    for i in range(s):
        cosine = np.array(
            [
                profiles[i] @ profiles[j] / np.linalg.norm(profiles[i]) / np.linalg.norm(profiles[j])
                for j in range(s)
            ]
        )
        cosine[i] = -1
        for j in np.argsort(-cosine)[:NEIGHBOURS]:
            near[i, j] = cosine[j] ** 3 if cosine[j] > FLOOR else 0
    out = np.zeros((s, s))
    for i in range(s):
        for j in range(s):
            top = sum(near[i, k] * residual[k, j] + near[j, k] * residual[k, i] for k in range(s))
            weight = sum(near[i, k] * known[k, j] + near[j, k] * known[k, i] for k in range(s))
            out[i, j] = base[i, j] + top / (weight + PRIOR)
    return out


@given(st.integers(0, 1000), st.floats(0, 1))
@settings(max_examples=20, deadline=None)
def test_additive_equals_its_passes(seed: int, density: float) -> None:
    matrix = random_matrix(seed, density=density)
    found = Additive.of(matrix)
    if not matrix.known.any():
        assert found.mean == 0
        assert not found.effect.any()
        return
    mean, u = plain_additive(matrix)
    assert found.mean == pytest.approx(mean, abs=1e-5)
    np.testing.assert_allclose(found.effect, u, atol=1e-5)
    np.testing.assert_allclose(found.matrix(), mean + u[:, None] + u[None, :], atol=1e-5)


def test_additive_settles_on_a_full_matrix() -> None:
    u = np.linspace(-1, 1, 200)
    known = ~np.eye(200, dtype=bool)
    matrix = PairMatrix(
        np.arange(200), np.zeros(200, np.uint8), (0.5 + u[:, None] + u).astype(np.float32), known
    )
    found = Additive.of(matrix)
    assert found.mean == pytest.approx(0.5, abs=1e-4)
    np.testing.assert_allclose(found.effect, u * 199 / 204, atol=0.02)


@pytest.mark.parametrize(("s", "rank"), [(14, 3), (14, 14), (120, 4)])
def test_the_spectrum_is_that_of_largest_magnitude(s: int, rank: int) -> None:
    rng = np.random.default_rng(s)
    size = np.sort(np.append(rng.normal(size=s - 4) * 0.1, [9, -7, 5, -4]))
    basis = np.linalg.qr(rng.normal(size=(s, s)))[0]
    matrix = ((basis * size) @ basis.T).astype(np.float32)
    found = spectrum((matrix + matrix.T) / 2, rank)
    np.testing.assert_allclose(found.values[:4], [9, -7, 5, -4][:rank], rtol=1e-4)
    kept = np.argsort(-np.abs(size))[:rank]
    np.testing.assert_allclose(found.matrix(), (basis[:, kept] * size[kept]) @ basis[:, kept].T, atol=1e-3)
    np.testing.assert_array_equal(found.matrix(), found.matrix().T)
    again = spectrum((matrix + matrix.T) / 2, rank, found.vectors)
    np.testing.assert_allclose(again.matrix(), found.matrix(), atol=1e-3)


@given(st.integers(0, 1000), st.integers(1, 14))
@settings(max_examples=20, deadline=None)
def test_low_rank_equals_soft_impute(seed: int, rank: int) -> None:
    matrix = random_matrix(seed)
    want = plain_low_rank(matrix.values.astype(np.float64), matrix.known, rank)
    np.testing.assert_allclose(low_rank(matrix.values, matrix.known, rank).matrix(), want, atol=5e-4)


def test_low_rank_by_subspaces_equals_that_by_all_eigenvalues() -> None:
    matrix = random_matrix(0, s=150, density=0.7)
    want = plain_low_rank(matrix.values.astype(np.float64), matrix.known, 5)
    found = low_rank(matrix.values, matrix.known, 5).matrix()
    assert np.abs(found - want).max() < 0.02 * np.abs(want).max()


def test_a_dense_map_of_low_rank_is_recovered() -> None:
    matrix = random_matrix(1, s=120, density=0.5, noise=0.02)
    hidden = ~matrix.known & ~np.eye(120, dtype=bool)
    additive = Additive.of(matrix)
    residual = np.where(matrix.known, matrix.values - additive.matrix(), np.float32(0))
    found = additive.matrix() + low_rank(residual, matrix.known, 6, 30).matrix()
    assert np.corrcoef(found[hidden], matrix.values[hidden])[0, 1] > 0.97
    assert np.corrcoef(additive.matrix()[hidden], matrix.values[hidden])[0, 1] < 0.9


@given(st.integers(0, 1000))
@settings(max_examples=8, deadline=None)
def test_profile_completion_equals_its_definition(seed: int) -> None:
    matrix = random_matrix(seed, s=12)
    found = profile_completion(matrix, Additive.of(matrix))
    np.testing.assert_allclose(found, plain_profile_completion(matrix), atol=2e-3)
    np.testing.assert_array_equal(found, found.T)


@pytest.mark.parametrize("s", [9, TILE, 2 * TILE + 40])
@pytest.mark.parametrize("every", [False, True])
def test_smoothing_equals_its_definition_tile_by_tile(s: int, every: bool) -> None:
    rng = np.random.default_rng(s)
    matrix = random_matrix(s, s=s)
    residual = np.where(matrix.known, matrix.values, np.float32(0))
    near = sparse.random_array((s, s), density=6 / s, format="csr", dtype=np.float32, rng=rng)
    known = None if every else matrix.known
    sums = near.astype(np.float64) @ residual.astype(np.float64)
    masses = near.astype(np.float64) @ (np.ones((s, s)) if every else matrix.known.astype(np.float64))
    found = smoothed(residual, known, near)
    np.testing.assert_allclose(found, (sums + sums.T) / (masses + masses.T + PRIOR), atol=2e-6)
    np.testing.assert_array_equal(found, found.T)
    np.testing.assert_array_equal(found, smoothed(residual, known, near, each))


def test_a_completion_of_several_blocks_is_symmetric_and_leaves_known_cells() -> None:
    s = 2 * BLOCK + 30
    matrix = random_matrix(0, s=s, density=0.7)
    found = low_rank(matrix.values, matrix.known, 4, 2)
    low = found.matrix()
    np.testing.assert_array_equal(low, low.T)
    exact = (found.vectors.astype(np.float64) * found.values) @ found.vectors.T.astype(np.float64)
    np.testing.assert_allclose(low, exact, atol=1e-5)
    completed = matrix.values.copy()
    found.complete(completed, matrix.known)
    np.testing.assert_array_equal(completed[matrix.known], matrix.values[matrix.known])
    np.testing.assert_allclose(completed[~matrix.known], exact[~matrix.known], atol=1e-5)


def test_values_of_unknown_cells_change_no_bit() -> None:
    matrix = random_matrix(3, s=60)
    one, two = ((m, Additive.of(m)) for m in (matrix, scrambled(matrix)))
    np.testing.assert_array_equal(one[1].effect, two[1].effect)
    np.testing.assert_array_equal(profile_completion(*one), profile_completion(*two))
    np.testing.assert_array_equal(
        low_rank(one[0].values, matrix.known, 4).matrix(), low_rank(two[0].values, matrix.known, 4).matrix()
    )


def test_mixed_neighbours_are_alike_by_profile_and_kernel() -> None:
    rng = np.random.default_rng(3)
    s = MIXED_NEIGHBOURS + 30
    matrix = random_matrix(3, s=s)
    residual = np.where(matrix.known, matrix.values, np.float32(0))
    solution = low_rank(residual, matrix.known, 5)
    features = np.abs(rng.normal(size=(s, 4))) * (rng.random((s, 1)) < 0.9)  # some strains are like nothing
    kernel = (features @ features.T).astype(np.float32)
    found = mixed_neighbours(solution, kernel).toarray()
    profile, kernel = solution.profiles().astype(np.float64), kernel.astype(np.float64)
    for i in range(s):
        weight = np.zeros(s)
        for j in range(s):
            if j != i:
                cosine = profile[i] @ profile[j] / np.linalg.norm(profile[i]) / np.linalg.norm(profile[j])
                size = kernel[i, i] * kernel[j, j]
                alike = kernel[i, j] / np.sqrt(size) if size else 0.0
                weight[j] = max(cosine, 0) + KERNEL_SHARE * np.sqrt(alike)
        least = np.sort(weight)[-MIXED_NEIGHBOURS]
        expected = np.where((weight >= least) & (weight > FLOOR), weight**3, 0)
        np.testing.assert_allclose(found[i], expected, rtol=1e-3, atol=1e-5)
