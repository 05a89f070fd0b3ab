"""Reliability of probabilities, by number of unseen genes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from wildtype.evaluation.reliability import largest_gap, reliability, wilson


def test_bins_hold_equal_counts_and_compare_share_with_probability() -> None:
    rng = np.random.default_rng(0)
    probability = rng.uniform(size=20_000) ** 3
    call = (rng.random(20_000) < probability).astype(float)
    unseen = (np.arange(20_000) % 4 == 0).astype(np.int64)
    found = reliability("negative", call, probability, unseen)
    assert [one.unseen for one in found] == [0] * 10 + [1] * 10
    assert {one.rows for one in found} == {1500, 500}
    for one in found:
        assert one.low <= one.observed <= one.high
        assert one.observed == pytest.approx(one.predicted, abs=0.08)
    # By hand: the last bin holds the rows with the highest probabilities.
    own = np.flatnonzero(unseen == 1)
    top = own[np.argsort(probability[own])[-500:]]
    assert found[-1].predicted == pytest.approx(probability[top].mean())
    assert found[-1].observed == pytest.approx(call[top].mean())
    wrong = reliability("negative", call, np.clip(probability + 0.3, 0, 1), unseen)
    assert largest_gap(wrong).predicted - largest_gap(wrong).observed > 0.25
    assert found[0].group == "negative: no unseen genes"
    assert found[-1].group == "negative: 1 unseen gene"


def test_few_rows_and_rows_without_a_prediction() -> None:
    probability = np.array([0.1, np.nan, 0.4])
    found = reliability("x", np.array([0.0, 1.0, 1.0]), probability, np.zeros(3, np.int64))
    assert [(one.rows, one.predicted, one.observed) for one in found] == [(1, 0.1, 0.0), (1, 0.4, 1.0)]
    assert reliability("x", np.zeros(2), np.full(2, np.nan), np.zeros(2, np.int64)) == []


def test_wilson_interval_is_that_of_scipy() -> None:
    for hits, rows in ((0, 10), (3, 10), (40, 1000), (10, 10)):
        wanted = stats.binomtest(hits, rows).proportion_ci(0.95, method="wilson")
        assert wilson(hits / rows, rows) == pytest.approx((wanted.low, wanted.high), abs=1e-6)
