"""Replayed campaigns on planted labels."""

from __future__ import annotations

import numpy as np
import pytest

from wildtype.errors import ShapeError
from wildtype.evaluation.campaign import RANDOM, calibrated, replay


def test_batches_are_taken_from_the_top_of_the_list() -> None:
    hit = np.zeros(20, bool)
    hit[[3, 4, 9, 19]] = True
    score = -np.arange(20.0)
    found = replay("x", hit, {"model": score, "worst": -score}, {"model": score}, batches=3, size=5)
    assert found["model"].found == (2.0, 1.0, 0.0)
    assert found["model"].expected == (-10.0, -35.0, -60.0)
    assert found["worst"].found == (1.0, 0.0, 1.0)
    assert found["worst"].expected == ()
    assert found[RANDOM].found == (1.0, 1.0, 1.0)
    assert [one.policy for one in found.outcomes] == ["model", "worst", RANDOM]
    assert (found.rows, found.hits) == (20, 4)
    assert "model finds 3 of 4 hits" in found.lines()[0]
    assert found.to_json()["outcomes"][1] == {"policy": "worst", "found": [1.0, 0.0, 1.0], "expected": []}


def test_a_short_list_has_a_short_last_batch() -> None:
    found = replay("x", np.ones(7, bool), {"model": np.arange(7.0)}, {}, batches=5, size=5)
    assert found["model"].found == (5.0, 2.0)
    with pytest.raises(ShapeError, match="model has scores"):
        replay("x", np.ones(7, bool), {"model": np.arange(6.0)}, {})


def test_expected_hits_are_those_found_where_labels_are_planted() -> None:
    rng = np.random.default_rng(0)
    # The chance of a hit rises with a score that is on no scale of probabilities.
    score = rng.normal(size=40_000)
    hit = rng.random(40_000) < 1 / (1 + np.exp(4 - 2 * score))
    known, hidden = np.arange(20_000), np.arange(20_000, 40_000)
    noise = rng.normal(size=20_000)
    probability = calibrated(score[known], hit[known], score[hidden])
    blind = calibrated(noise, hit[known], noise)
    scores = {"model": score[hidden], "blind": noise}
    found = replay("x", hit[hidden], scores, {"model": probability, "blind": blind})
    total = {one.policy: (sum(one.found), sum(one.expected)) for one in found.outcomes}
    assert len(found["model"].found) == 5
    assert total["model"][1] == pytest.approx(total["model"][0], rel=0.2)
    assert total["model"][0] > 5 * total[RANDOM][0]
    assert total["blind"][0] < 2 * total[RANDOM][0]
    assert ((probability >= 0) & (probability <= 1)).all()
    assert (np.diff(probability[np.argsort(score[hidden])]) >= 0).all()
