"""Two-step and pairwise ridge against explicit kernel systems, on small matrices in float64."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.evidence.test_completion import random_matrix, scrambled
from wildtype.evidence.completion import Additive
from wildtype.evidence.kernel_ridge import (
    LAMBDAS,
    NONE,
    ONE,
    SEEN,
    PairModel,
    choose_penalties,
    effect_map,
    filled_residuals,
    pairwise_ridge,
    residuals,
    turned,
    two_step_ridge,
)
from wildtype.evidence.pair_matrix import PairMatrix

PENALTIES = {SEEN: 0.3, ONE: 2.0, NONE: 0.7}
UNSEEN = 4
"""Genes after those of the matrix."""


def example(seed: int, s: int = 12, d: int = 5):
    """Return a matrix of s strains, and a map in float64 of their genes and a few more."""
    matrix = random_matrix(seed, s=s)
    return matrix, np.random.default_rng(seed + 1).normal(size=(s + UNSEEN, d))


def all_pairs(n: int) -> np.ndarray:
    return np.stack(np.triu_indices(n, 1), 1)


@given(st.integers(0, 1000))
@settings(max_examples=10, deadline=None)
def test_two_step_ridge_equals_explicit_inverses(seed: int) -> None:
    matrix, phi = example(seed)
    s, additive = len(matrix), Additive.of(matrix)
    filled = filled_residuals(matrix, additive).astype(np.float64)
    np.testing.assert_array_equal(filled[matrix.known], residuals(matrix, additive)[matrix.known])
    kernel, identity = phi @ phi.T, np.eye(s)
    train = kernel[:s, :s]

    def smoother(penalty: float) -> np.ndarray:
        return kernel[:, :s] @ np.linalg.inv(train + penalty * identity)

    mixed, unseen = smoother(PENALTIES[ONE]) @ filled, smoother(PENALTIES[NONE])
    seen = smoother(PENALTIES[SEEN])
    model = two_step_ridge(matrix, phi, PENALTIES)
    effects = np.append(additive.effect, phi[s:] @ model_effects(phi, matrix.gene, additive.effect))
    pairs = all_pairs(s + UNSEEN)
    cells = np.where(pairs < s, pairs, -1)
    want = []
    for a, b in pairs:
        if b < s:
            between = (seen @ filled @ seen.T)[a, b]
        elif a < s:
            between = mixed[b, a]
        else:
            between = (unseen @ filled @ unseen.T)[a, b]
        want.append(additive.mean + effects[a] + effects[b] + between)
    np.testing.assert_allclose(model.predict(pairs, cells), want, atol=1e-4)
    np.testing.assert_allclose(model.predict(pairs[:, ::-1], cells[:, ::-1]), want, atol=1e-4)


def model_effects(phi: np.ndarray, gene: np.ndarray, effect: np.ndarray) -> np.ndarray:
    """Return the map [d] of kernel ridge whose penalty has the least error when each strain is left out."""
    x, best = phi[gene], (np.inf, np.zeros(phi.shape[1]))
    for penalty in LAMBDAS:
        errors = []
        for i in range(len(x)):
            rest = np.delete(np.arange(len(x)), i)
            kernel = x[rest] @ x[rest].T + penalty * np.eye(len(rest))
            errors.append(effect[i] - x[i] @ x[rest].T @ np.linalg.solve(kernel, effect[rest]))
        weights = x.T @ np.linalg.solve(x @ x.T + penalty * np.eye(len(x)), effect)
        best = min(best, (float(np.square(errors).sum()), weights), key=lambda found: found[0])
    return best[1]


@given(st.integers(0, 1000))
@settings(max_examples=10, deadline=None)
def test_effects_of_unseen_genes_are_leave_one_out_kernel_ridge(seed: int) -> None:
    rng = np.random.default_rng(seed)
    phi, effect = rng.normal(size=(15, 4)), rng.normal(size=15)
    gene = np.arange(15)
    axes, values = turned(phi, gene)
    found = axes @ effect_map(axes, values, gene, effect)
    np.testing.assert_allclose(found, phi @ model_effects(phi, gene, effect), atol=1e-6)


@given(st.integers(0, 1000), st.sampled_from([0.05, 0.5, 10.0]))
@settings(max_examples=15, deadline=None)
def test_pairwise_ridge_equals_the_explicit_system_of_all_pairs(seed: int, penalty: float) -> None:
    matrix, phi = example(seed)
    s = len(matrix)
    axes, _ = turned(phi, matrix.gene)
    kernel = phi @ phi.T
    rows = np.stack(np.nonzero(np.triu(matrix.known)), 1)
    pairs = all_pairs(s + UNSEEN)

    def pair_kernel(left: np.ndarray, right: np.ndarray) -> np.ndarray:
        (a, b), (c, d) = left.T[:, :, None], right.T[:, None, :]
        return kernel[a, c] * kernel[b, d] + kernel[a, d] * kernel[b, c]

    # The kernel is twice the inner product of sym(φ_a φ_bᵀ), so its penalty is twice that of W.
    system = pair_kernel(rows, rows) + 2 * penalty * np.eye(len(rows))
    labels = matrix.values[rows[:, 0], rows[:, 1]].astype(np.float64)
    want = pair_kernel(pairs, rows) @ np.linalg.solve(system, labels)
    weights = pairwise_ridge(matrix, axes, penalty)
    np.testing.assert_allclose(weights, weights.T, atol=1e-10)
    found = np.einsum("md,md->m", axes[pairs[:, 0]] @ weights, axes[pairs[:, 1]])
    np.testing.assert_allclose(found, want, atol=2e-3 * np.abs(want).max())
    other = pairwise_ridge(matrix, axes, penalty, pairwise_ridge(matrix, axes, 3 * penalty))
    np.testing.assert_allclose(other, weights, atol=2e-3 * np.abs(weights).max())


def test_unknown_cells_change_no_bit() -> None:
    matrix, phi = example(0, s=30)
    pairs = all_pairs(len(phi))
    cells = np.where(pairs < 30, pairs, -1)
    found = []
    for of in (matrix, scrambled(matrix)):
        penalties = choose_penalties(of, phi)
        model = two_step_ridge(of, phi, penalties)
        found.append((penalties, model.predict(pairs, cells), pairwise_ridge(of, phi, 1.0)))
    assert found[0][0] == found[1][0]
    np.testing.assert_array_equal(found[0][1], found[1][1])
    np.testing.assert_array_equal(found[0][2], found[1][2])


def planted(seed: int, s: int, noise: float) -> tuple[PairMatrix, np.ndarray, np.ndarray]:
    """Return a dense map that is bilinear in a map of genes, the map, and all values."""
    rng = np.random.default_rng(seed)
    phi = rng.normal(size=(s + 20, 4)) / 2
    form = rng.normal(size=(4, 4))
    values = phi @ (form + form.T) @ phi.T
    error = noise * rng.normal(size=(s, s))
    known = np.triu(rng.random((s, s)) < 0.7, 1)
    cells = (values[:s, :s] + error + error.T).astype(np.float32)
    return PairMatrix(np.arange(s), np.zeros(s, np.uint8), cells, known | known.T), phi, values


def test_inner_folds_choose_weak_penalties_for_maps_that_explain_and_strong_ones_for_noise() -> None:
    matrix, phi, values = planted(0, 60, 0.05)
    penalties = choose_penalties(matrix, phi)
    assert max(penalties[ONE], penalties[NONE]) <= 10
    model = two_step_ridge(matrix, phi, penalties)
    pairs = all_pairs(80)
    cells = np.where(pairs < 60, pairs, -1)
    found, want = model.predict(pairs, cells), values[pairs[:, 0], pairs[:, 1]]
    for unseen in range(3):
        rows = (cells < 0).sum(1) == unseen
        assert np.corrcoef(found[rows], want[rows])[0, 1] > 0.9
    noise = np.random.default_rng(1).normal(size=phi.shape)
    assert choose_penalties(matrix, noise)[ONE] > penalties[ONE]


@pytest.mark.parametrize("s", [0, 1, 3])
def test_matrices_of_few_strains_without_known_cells(s: int) -> None:
    empty = PairMatrix(
        np.arange(s), np.zeros(s, np.uint8), np.zeros((s, s), np.float32), np.zeros((s, s), bool)
    )
    phi = np.random.default_rng(0).normal(size=(5, 2)).astype(np.float32)
    model = two_step_ridge(empty, phi, choose_penalties(empty, phi))
    pairs = all_pairs(5)
    np.testing.assert_array_equal(model.predict(pairs, np.where(pairs < s, pairs, -1)), 0)
    assert not pairwise_ridge(empty, phi, 1.0).any()


def test_a_model_of_no_pairs_predicts_none() -> None:
    matrix, phi = example(0)
    model = two_step_ridge(matrix, phi, PENALTIES)
    assert isinstance(model, PairModel)
    assert model.predict(np.zeros((0, 2), int), np.zeros((0, 2), int)).shape == (0,)
    without = replace(model, seen=model.seen * 0)
    pairs = np.array([[0, 1]])
    assert without.predict(pairs, pairs)[0] == pytest.approx(model.mean + model.effect[:2].sum())
