"""Boosted trees as arrays: what can be stored, and what they predict."""

from __future__ import annotations

import numpy as np
import torch

from wildtype.models.boosted_trees import BoostedTrees


def test_a_table_without_a_value_is_answered_by_the_mean() -> None:
    nothing, y = np.full((100, 3), np.nan, np.float32), np.arange(100, dtype=np.float32)
    trees = BoostedTrees(nothing, y, nothing[:5], y[:5], {}, bags=2, seed=0)
    np.testing.assert_allclose(trees.predict(nothing[:2]), 49.5, rtol=1e-6)


def test_a_split_by_whether_a_value_is_missing_is_stored_as_a_finite_number() -> None:
    draw = np.random.default_rng(0)
    x = draw.normal(size=(400, 2)).astype(np.float32)
    x[::2, 0] = np.nan
    missing = np.isnan(x[:, 0]).astype(np.float32)
    trees = BoostedTrees(x, missing, x[:0], missing[:0], {"iterations": 5}, bags=1, seed=0)
    forest = trees.forest
    assert forest.split.isfinite().all()  # checkpoints refuse others
    asked = np.array([[np.nan, 0.0], [-3.0, 0.0], [np.finfo(np.float32).max, 0.0]], np.float32)
    np.testing.assert_allclose(forest(torch.from_numpy(asked)).numpy(), trees.predict(asked), rtol=1e-12)
