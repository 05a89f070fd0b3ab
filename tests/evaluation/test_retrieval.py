"""Retrieval metrics against scikit-learn, against their plain definition, and under weights."""

from __future__ import annotations

import json
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.metrics import average_precision_score

from wildtype.datasets import Dataset
from wildtype.evaluation import Comparison, evaluate_predictions
from wildtype.evaluation.retrieval import METRICS, TOP, Ranking, rankings


@st.composite
def lists(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    rows = draw(st.integers(2, 30))
    hit = draw(hnp.arrays(np.bool_, rows))
    assume(hit.any())
    return hit, draw(hnp.arrays(np.float64, rows, elements=st.integers(-4, 4).map(float)))  # many ties


def one(ranking: Ranking, weights: np.ndarray) -> dict[str, float]:
    return {name: float(value[0]) for name, value in named(ranking, weights[:, None].astype(float)).items()}


def named(ranking: Ranking, weights: np.ndarray) -> dict[str, np.ndarray]:
    return dict(zip(METRICS, ranking.metrics(weights), strict=True))


def first_rows(hit: np.ndarray, score: np.ndarray, k: int) -> float:
    """Expected share of hits among the first k, ties in random order: by hand."""
    taken, found = 0, 0.0
    for value in np.unique(score)[::-1]:
        group = hit[score == value]
        space = min(k - taken, group.size)
        found += group.sum() * space / group.size
        taken += space
    return found / k


@settings(max_examples=40)
@given(lists(), st.integers(0, 2**32 - 1))
def test_against_sklearn(case: tuple[np.ndarray, np.ndarray], seed: int) -> None:
    hit, score = case
    weights = np.random.default_rng(seed).uniform(0.1, 2.0, hit.size)
    for w in (np.ones(hit.size), weights):
        expected = average_precision_score(hit, score, sample_weight=w)
        assert one(Ranking(hit, score), w)["average_precision"] == pytest.approx(expected)


@settings(max_examples=40)
@given(lists())
def test_first_rows_by_hand(case: tuple[np.ndarray, np.ndarray]) -> None:
    hit, score = case
    values = one(Ranking(hit, score), np.ones(hit.size))
    for name, k in (*((str(k), k) for k in TOP), ("hits", int(hit.sum()))):
        if k > hit.size:
            assert math.isnan(values[f"precision@{name}"])
        else:
            expected = first_rows(hit, score, k)
            assert values[f"precision@{name}"] == pytest.approx(expected)
            assert values[f"enrichment@{name}"] == pytest.approx(expected / hit.mean())


@settings(max_examples=40)
@given(lists(), st.integers(0, 2**32 - 1))
def test_integer_weights_repeat_rows(case: tuple[np.ndarray, np.ndarray], seed: int) -> None:
    hit, score = case
    columns = np.random.default_rng(seed).integers(0, 4, (hit.size, 3))
    together = named(Ranking(hit, score), columns.astype(float))
    for r, w in enumerate(columns.T):
        if not (hit * w).any():
            assert math.isnan(together["average_precision"][r])
            continue
        again = one(Ranking(np.repeat(hit, w), np.repeat(score, w)), np.ones(w.sum()))
        for name in METRICS:
            assert together[name][r] == pytest.approx(again[name], nan_ok=True), name


def test_three_lists() -> None:
    truth = np.array([-0.3, -0.1, 0.0, 0.05, 0.2])
    found = rankings(truth, np.array([0.1, -0.5, 0.0, 0.3, 0.2]), 0.1)
    best = {name: one(ranking, np.ones(5))["precision@hits"] for name, ranking in found.items()}
    assert best == pytest.approx({"strong": 2 / 3, "negative": 1 / 2, "positive": 0.0})
    assert list(rankings(truth, truth, 0.25)) == ["strong", "negative"]
    assert rankings(truth, np.full(5, np.nan), 0.1) == {}


def test_perfect_and_random_lists() -> None:
    rng = np.random.default_rng(0)
    hit = rng.random(4000) < 0.1
    best = one(Ranking(hit, hit + 0.1 * rng.random(4000)), np.ones(4000))
    assert best["average_precision"] == best["precision@hits"] == best["precision@100"] == 1.0
    assert best["enrichment@hits"] == pytest.approx(1 / hit.mean())
    flat = one(Ranking(hit, np.zeros(4000)), np.ones(4000))
    assert [flat[f"enrichment@{k}"] for k in (10, 50, 100, "hits")] == pytest.approx([1.0] * 4)
    assert flat["average_precision"] == pytest.approx(hit.mean())


def test_comparison_holds_them(make_pairs: Callable[..., Dataset]) -> None:
    dataset, rows = make_pairs(), np.arange(100)
    truth = dataset.table.value[rows].astype(float)
    predicted = {
        "ridge": truth + np.random.default_rng(0).normal(0, 0.1, 100),
        "broken": np.full(100, np.nan),
    }
    result = evaluate_predictions(dataset, rows, predicted, phenotype="epsilon", replicates=100)
    found = result["ridge"].retrieval
    expected = average_precision_score(np.abs(truth) >= 0.1, np.abs(predicted["ridge"]))
    estimate = found["strong/average_precision"]
    assert estimate.value == pytest.approx(expected)
    assert estimate.low < estimate.value < estimate.high
    assert "strong/precision@100" in found
    assert result["broken"].retrieval == {}
    record = json.loads(json.dumps(result.to_json(), allow_nan=False))
    assert Comparison.from_json(record)["ridge"].retrieval == found
    for score in record["scores"]:
        del score["retrieval"]  # as an earlier version wrote it
    assert Comparison.from_json(record)["ridge"].retrieval == {}
    fitness = evaluate_predictions(
        dataset, np.arange(200, 225), {"mean": np.zeros(25)}, phenotype="fitness", replicates=5
    )
    assert fitness["mean"].retrieval == {}


def test_positive_labels_may_have_their_own_threshold() -> None:
    truth, predicted = np.array([-2.6, -2.1, 0.0, 2.1, 2.6]), np.array([-3.0, -1.0, 0.0, 1.0, 2.0])

    def first(strong_positive: float | None) -> dict[str, float]:
        lists = rankings(truth, predicted, 2.5, strong_positive)
        weights = np.ones((5, 1))
        return {name: float(named(one, weights)["precision@hits"][0]) for name, one in lists.items()}

    assert first(None) == {"strong": 1.0, "negative": 1.0, "positive": 1.0}
    # Three hits, the third of which shares its rank with a row that is none.
    assert first(2.0) == {"strong": pytest.approx(2.5 / 3), "negative": 1.0, "positive": 1.0}
    lists = rankings(truth, predicted, 2.5, 2.0).values()
    hits = [named(one, np.ones((5, 1)))["enrichment@hits"][0] for one in lists]
    np.testing.assert_allclose(hits, [2.5 / 3 / 0.6, 5.0, 2.5])
