"""Boosted trees with constraints: as LightGBM predicts, monotone, and averaged over sets of columns."""

from __future__ import annotations

from dataclasses import replace

import lightgbm
import numpy as np
import pytest
import torch

from wildtype.models.lightgbm_trees import trees_of
from wildtype.models.monotone_trees import BinnedColumns, TreeSettings
from wildtype.nn.forest import Forest

SETTINGS = TreeSettings(iterations=30, learning_rate=0.1, leaves=15, least_rows=10)


@pytest.fixture(scope="module")
def problem() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1500, 6)).astype(np.float32)
    x[rng.random(x.shape) < 0.2] = np.nan
    x[:, 5] = np.abs(rng.normal(size=1500))  # a column without NaN
    y = np.nan_to_num(x[:, 0]) + np.sin(3 * np.nan_to_num(x[:, 1])) + 0.5 * rng.normal(size=1500)
    return x, y.astype(np.float64), rng.integers(1, 4, 1500).astype(np.float64)


def test_stored_trees_predict_what_lightgbm_predicts(problem: tuple[np.ndarray, ...]) -> None:
    x, y, weights = problem
    asked = {"num_leaves": 15, "min_data_in_leaf": 10, "verbose": -1, "num_threads": 1}
    columns = np.array([0, 1, 2, 5])
    booster = lightgbm.train(asked, lightgbm.Dataset(x[:, columns], y, weight=weights), 20)
    forest = Forest.of(list(trees_of(booster.dump_model(), columns, 0.5)))
    new = np.random.default_rng(1).normal(size=(300, 6)).astype(np.float32)
    new[::3, 1] = np.nan
    new[::7, 5] = np.nan  # never missing in training
    expected = booster.predict(new[:, columns]) / 2
    np.testing.assert_allclose(forest(torch.from_numpy(new)).numpy(), expected, atol=1e-9)


@pytest.mark.parametrize("bound", [1, -1])
@pytest.mark.parametrize("calls", [False, True])
def test_predictions_are_monotone_in_columns_with_a_sign(
    problem: tuple[np.ndarray, ...], bound: int, calls: bool
) -> None:
    x, y, weights = problem
    label = (y > 1).astype(np.float64) if calls else y
    every = np.arange(6)
    grid = np.zeros((50, 6), np.float32)
    grid[:, 1] = np.linspace(-2, 2, 50)

    def steps(sign: int, bound: int) -> np.ndarray:
        binned = BinnedColumns(x, np.array([0, sign, 0, 0, 0, 0]), [every])
        found = binned.forest(np.arange(1500), label, weights, SETTINGS, bound=bound, calls=calls)
        return np.diff(found(torch.from_numpy(grid)).numpy())

    assert (steps(1, bound) * bound >= -1e-12).all()
    free = steps(0, bound)
    assert (free > 1e-3).any()
    assert (free < -1e-3).any()
    np.testing.assert_array_equal(steps(1, 0), free)


def test_a_subset_that_is_fuller_than_the_table_is_read_within_its_bounds() -> None:
    # LightGBM crashes here where it bundles columns: it expects 7,000 values of a bundle and meets 96,000.
    rng = np.random.default_rng(0)
    full = np.sort(rng.choice(20_000, 1500, replace=False))
    x = np.full((20_000, 64), np.nan, np.float32)
    x[full] = rng.integers(0, 2, (1500, 64))
    y = x[full, 0] + 2.0 * x[full, 1] + rng.normal(size=1500)
    settings = replace(SETTINGS, iterations=3)

    def predicted(table: np.ndarray, rows: np.ndarray) -> np.ndarray:
        binned = BinnedColumns(table, np.zeros(64, np.int64), [np.arange(64)])
        return binned.forest(rows, y, np.ones(1500), settings)(torch.from_numpy(x[full])).numpy()

    np.testing.assert_array_equal(predicted(x, full), predicted(x[full], np.arange(1500)))


def test_drawn_thresholds_are_others(problem: tuple[np.ndarray, ...]) -> None:
    x, y, weights = problem
    binned = BinnedColumns(x, np.zeros(6, np.int64), [np.arange(6)])

    def error(settings: TreeSettings) -> float:
        forest = binned.forest(np.arange(1500), y, weights, settings)
        return float(np.mean((forest(torch.from_numpy(x)).numpy() - y) ** 2))

    best, drawn = error(SETTINGS), error(replace(SETTINGS, drawn_thresholds=True))
    assert best < drawn < y.var()


def test_a_forest_is_the_mean_over_sets_of_columns_and_bags(problem: tuple[np.ndarray, ...]) -> None:
    x, y, weights = problem
    rows = np.flatnonzero(y > -1)
    sets = [np.array([0, 1]), np.array([1, 2, 5])]
    sign = np.zeros(6, np.int64)
    new = torch.from_numpy(x[:200])

    def forest(chosen: list[np.ndarray], bags: int) -> np.ndarray:
        found = BinnedColumns(x, sign, chosen).forest(rows, y[rows], weights[rows], SETTINGS, bags=bags)
        return found(new).numpy()

    both = forest(sets, 1)
    assert not np.allclose(both, forest(sets[:1], 1))
    assert not np.allclose(both, forest(sets, 2))
    one, other = (
        BinnedColumns(x, sign, sets).forest(rows, y[rows], weights[rows], SETTINGS, sets=[at])(new).numpy()
        for at in range(2)
    )
    np.testing.assert_allclose(both, (one + other) / 2, atol=1e-12)
    np.testing.assert_array_equal(both, forest(sets, 1))
    # Columns outside of a set are not read.
    other = x.copy()
    other[:, 3:5] = 0
    found = BinnedColumns(x, sign, sets).forest(rows, y[rows], weights[rows], SETTINGS)
    np.testing.assert_array_equal(found(torch.from_numpy(other[:200])).numpy(), both)


def test_one_class_is_a_constant_logit(problem: tuple[np.ndarray, ...]) -> None:
    x, _, weights = problem
    binned = BinnedColumns(x, np.zeros(6, np.int64), [np.arange(6)])
    rows = np.arange(100)
    found = binned.forest(rows, np.zeros(100), weights[:100], SETTINGS, calls=True)
    total = weights[:100].sum()
    expected = np.log(0.5 / (total + 1) / (1 - 0.5 / (total + 1)))
    np.testing.assert_allclose(found(torch.from_numpy(x[:3])).numpy(), expected)
