"""Metrics against scipy and scikit-learn, weighted ones against repeated rows."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats
from sklearn import metrics as sk

from wildtype.errors import ShapeError
from wildtype.evaluation.metrics import (
    IN_UNIT,
    METRICS,
    SURE,
    Undefined,
    among,
    auroc_statistic,
    bind,
    pearson_statistic,
)
from wildtype.evaluation.pair_scores import NO_PAIRS, PAIR_METRICS


@st.composite
def scored(draw: st.DrawFn, low: int = 4) -> tuple[np.ndarray, np.ndarray]:
    rows = draw(st.integers(low, 25))
    coarse = st.integers(-6, 6).map(lambda i: i / 4)  # many ties, zeros and both signs
    return tuple(draw(hnp.arrays(np.float64, rows, elements=coarse)) for _ in range(2))  # type: ignore[return-value]


@pytest.mark.slow
@given(scored())
def test_against_scipy_and_sklearn(case: tuple[np.ndarray, np.ndarray]) -> None:
    truth, predicted = case
    values = bind(truth, predicted, strong=0.5).values(truth.size)
    assert values["mse"] == pytest.approx(sk.mean_squared_error(truth, predicted))
    if np.ptp(truth) and np.ptp(predicted):
        assert values["pearson"] == pytest.approx(stats.pearsonr(truth, predicted)[0], abs=1e-9)
        assert values["spearman"] == pytest.approx(stats.spearmanr(truth, predicted)[0], abs=1e-9)
    else:
        assert math.isnan(values["pearson"])
    if np.ptp(truth):
        assert values["r2"] == pytest.approx(sk.r2_score(truth, predicted))
    signed = truth != 0
    if np.unique(truth[signed] > 0).size == 2:
        assert values["auroc_sign"] == pytest.approx(sk.roc_auc_score(truth[signed] > 0, predicted[signed]))
    else:
        assert math.isnan(values["auroc_sign"])
    strong = np.abs(truth) >= 0.5
    if np.unique(strong).size == 2:
        assert values["auroc_strong"] == pytest.approx(sk.roc_auc_score(strong, np.abs(predicted)))
    negative = truth < 0
    if negative.sum() > 1 and np.ptp(truth[negative]) and np.ptp(predicted[negative]):
        expected = stats.pearsonr(truth[negative], predicted[negative])[0]
        assert values["pearson_negatives"] == pytest.approx(expected, abs=1e-9)


@given(scored(), st.integers(0, 2**32 - 1))
def test_integer_weights_repeat_rows(case: tuple[np.ndarray, np.ndarray], seed: int) -> None:
    truth, predicted = case
    weights = np.random.default_rng(seed).integers(0, 4, (truth.size, 3))
    bound = bind(truth, predicted, strong=0.5)
    for column in weights.T:
        again = bind(np.repeat(truth, column), np.repeat(predicted, column), strong=0.5)
        expected = again.values(int(column.sum()))
        for name in set(METRICS) - {"spearman"}:  # whose ranks stay those of all rows
            if name in bound.statistics:
                found = float(bound.statistics[name](column[:, None].astype(np.float64))[0])
                assert found == pytest.approx(expected[name], abs=1e-6, nan_ok=True)


@given(scored(), st.integers(0, 2**32 - 1))
def test_weights_against_sklearn(case: tuple[np.ndarray, np.ndarray], seed: int) -> None:
    truth, predicted = case
    weights = np.random.default_rng(seed).uniform(0.1, 2.0, truth.size)
    signed = truth != 0
    assume(np.unique(truth[signed] > 0).size == 2)
    bound = bind(truth, predicted)
    column = weights[:, None]
    assert bound.statistics["auroc_sign"](column)[0] == pytest.approx(
        sk.roc_auc_score(truth[signed] > 0, predicted[signed], sample_weight=weights[signed])
    )
    assert bound.statistics["mse"](column)[0] == pytest.approx(
        sk.mean_squared_error(truth, predicted, sample_weight=weights)
    )
    assert bound.statistics["r2"](column)[0] == pytest.approx(
        sk.r2_score(truth, predicted, sample_weight=weights)
    )
    if np.ptp(predicted):
        covariance = np.cov(truth, predicted, aweights=weights)
        expected = covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1])
        assert bound.statistics["pearson"](column)[0] == pytest.approx(expected, abs=1e-9)


def test_all_weightings_at_once_equal_one_by_one() -> None:
    rng = np.random.default_rng(0)
    truth, predicted = rng.normal(size=(2, 50))
    weights = rng.integers(0, 3, (50, 7)).astype(np.float64)
    for statistic in bind(truth, predicted, strong=0.5).statistics.values():
        one_by_one = [statistic(weights[:, [r]])[0] for r in range(7)]
        np.testing.assert_allclose(statistic(weights), one_by_one, rtol=1e-12)


def test_mean_over_conditions() -> None:
    rng = np.random.default_rng(1)
    condition = np.repeat([0, 3, 5], 20)
    truth = rng.normal(size=60) + condition
    predicted = truth + rng.normal(size=60)
    by_hand = [stats.pearsonr(truth[condition == c], predicted[condition == c])[0] for c in (0, 3, 5)]
    values = bind(truth, predicted, condition=condition).values(60)
    assert values["pearson_by_condition"] == pytest.approx(np.mean(by_hand))
    assert values["pearson_by_condition"] < values["pearson"]


def test_zero_has_no_sign() -> None:
    truth = np.array([1e-9, -1e-9, 0.0, 0.2, -0.2])
    bound = bind(truth, np.array([-5.0, 5.0, 0.0, 1.0, -1.0]))
    assert bound.values(5)["auroc_sign"] == 1.0


def test_reasons_instead_of_warnings() -> None:
    truth = np.array([0.9, 0.8, 0.7])
    bound = bind(truth, np.full(3, 0.1 + 0.2))
    assert bound.undefined == {
        "pearson": "all predictions are equal",
        "pearson_by_condition": "all rows have one condition",
        "spearman": "all predictions are equal",
        "auroc_sign": "there are 3 positive and 0 negative rows",
        "auroc_strong": "the phenotype is not an interaction",
        "pearson_negatives": "0 rows are too few",
        **dict.fromkeys(("average_precision", "log_loss", "brier"), "labels are no calls (0 and 1)"),
        **dict.fromkeys(PAIR_METRICS, NO_PAIRS),
    }
    assert set(bound.statistics) == {"mse", "bias", "r2"}
    assert bind([1.0, 1.0], [0.0, 1.0]).undefined["pearson"] == "all labels are equal"
    broken = bind(truth, [0.1, np.nan, 0.3])
    assert broken.undefined["mse"] == "1 labels or predictions are not finite"
    assert broken.undefined["pearson"] == "1 predictions are not finite"
    one_flat = bind([0.0, 1.0, 0.0, 1.0], [0.0, 1.0, 2.0, 2.0], condition=[0, 0, 1, 1])
    assert one_flat.undefined["pearson_by_condition"] == "in condition 1, all predictions are equal"
    assert set(bind([], []).undefined) == set(METRICS)


def test_undefined_under_a_weighting_is_nan() -> None:
    pearson = pearson_statistic([1.0, 2.0, 3.0], [1.0, 3.0, 2.0])
    weights = np.array([[1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
    assert np.isfinite(pearson(weights)).tolist() == [True, False, False]
    auroc = auroc_statistic(np.array([True, False]), [1.0, 0.0])
    assert np.isfinite(auroc(np.array([[1.0, 1.0], [1.0, 0.0]]))).tolist() == [True, False]


def test_large_offset_keeps_precision() -> None:
    rng = np.random.default_rng(2)
    truth, predicted = rng.normal(size=(2, 100))
    plain = bind(truth, predicted).values(100)["pearson"]
    assert bind(truth + 1e6, predicted - 1e6).values(100)["pearson"] == pytest.approx(plain, abs=1e-8)


def test_lengths_must_fit() -> None:
    with pytest.raises(ShapeError, match="same"):
        bind([1.0, 2.0], [1.0])
    with pytest.raises(Undefined):
        auroc_statistic(np.array([True, True]), [0.0, 1.0])


@settings(max_examples=20)
@given(st.integers(0, 10_000), st.integers(2, 60))
def test_average_precision_is_that_of_scikit_learn_ties_and_weights_included(seed: int, rows: int) -> None:
    rng = np.random.default_rng(seed)
    truth = np.zeros(rows)
    truth[: 1 + rng.integers(rows - 1)] = 1
    predicted = rng.integers(0, 6, rows).astype(float)
    statistic = bind(truth, predicted).statistics["average_precision"]
    weights = rng.integers(0, 4, (rows, 3)).astype(float)
    weights[0] += 1  # one call is always drawn
    wanted = [sk.average_precision_score(truth, predicted, sample_weight=w) for w in weights.T]
    np.testing.assert_allclose(statistic(weights), wanted, rtol=1e-9)


def test_calls_are_ranked_by_the_prediction_itself_and_other_labels_have_no_average_precision() -> None:
    truth = np.array([0.0, 0.0, 1.0, 1.0])
    predicted = np.array([-9.0, 0.1, 0.2, 0.3])
    values = bind(truth, predicted, strong=0.5).values(4)
    assert (values["auroc_strong"], values["average_precision"]) == (1.0, 1.0)
    assert bind(truth + 0.5, predicted).undefined["average_precision"] == "labels are no calls (0 and 1)"
    assert np.isnan(bind(np.ones(4), predicted).values(4)["average_precision"])


def test_bias_is_the_mean_prediction_minus_the_mean_label_under_any_weights() -> None:
    rng = np.random.default_rng(3)
    truth, predicted = rng.normal(size=(2, 40))
    weights = rng.uniform(0, 2, (40, 3))
    bound = bind(truth, predicted)
    assert bound.values(40)["bias"] == pytest.approx(predicted.mean() - truth.mean())
    wanted = [np.average(predicted, weights=w) - np.average(truth, weights=w) for w in weights.T]
    np.testing.assert_allclose(bound.statistics["bias"](weights), wanted, rtol=1e-9)
    assert bind(truth, np.full(40, np.nan)).undefined["bias"] == "40 labels or predictions are not finite"


@settings(max_examples=20)
@given(st.integers(0, 10_000), st.integers(2, 60))
def test_log_loss_and_brier_are_those_of_scikit_learn(seed: int, rows: int) -> None:
    rng = np.random.default_rng(seed)
    truth = np.zeros(rows)
    truth[: 1 + rng.integers(rows - 1)] = 1
    predicted, weights = rng.uniform(0.01, 0.99, rows), rng.uniform(0.1, 2, (rows, 2))
    found = bind(truth, predicted).statistics
    logs = [sk.log_loss(truth, predicted, sample_weight=w, labels=[0, 1]) for w in weights.T]
    squares = [np.average((truth - predicted) ** 2, weights=w) for w in weights.T]
    np.testing.assert_allclose(found["log_loss"](weights), logs, rtol=1e-9)
    np.testing.assert_allclose(found["brier"](weights), squares, rtol=1e-9)


def test_a_certain_and_wrong_prediction_has_a_finite_log_loss() -> None:
    values = bind([0.0, 1.0], [-0.5, 1.5]).values(2)
    assert values["log_loss"] == pytest.approx(-np.log(1 - SURE))
    assert values["brier"] == pytest.approx(0.25)
    assert bind([0.0, 1.0], [1.0, 0.0]).values(2)["log_loss"] == pytest.approx(-np.log(SURE))


def test_errors_of_another_quantity_are_undefined_for_the_reason_given() -> None:
    rng = np.random.default_rng(4)
    truth, why = rng.normal(size=30), "S-scores are no epsilon"
    bound = bind(truth, 0.1 * truth + rng.normal(size=30), strong=0.5, other_quantity=why)
    assert {name: bound.undefined[name] for name in IN_UNIT} == dict.fromkeys(IN_UNIT, why)
    assert {"pearson", "spearman", "auroc_sign", "auroc_strong"} <= set(bound.statistics)


def test_positive_labels_may_have_their_own_threshold() -> None:
    truth, predicted = np.array([-2.5, -2.0, 0.0, 2.0, 2.5]), np.array([-3.0, -0.1, 0.2, 1.0, 2.0])
    bound = bind(truth, predicted, strong=2.5, strong_positive=2.0)
    wanted = sk.roc_auc_score([1, 0, 0, 1, 1], np.abs(predicted))
    assert bound.values(5)["auroc_strong"] == pytest.approx(wanted)


@pytest.mark.parametrize("rows", [[2, 3, 4], [4, 2, 3], [0, 2, 4], [3], []])
def test_a_statistic_of_some_rows_is_given_their_weights(rows: list[int]) -> None:
    """Neighbours by a view, others by a copy; a mask and positions say the same."""
    weights = np.random.default_rng(0).uniform(size=(6, 2))
    at = np.array(rows, np.int64)
    np.testing.assert_array_equal(among(at, np.asarray)(weights), weights[at])
    mask = np.isin(np.arange(6), at)
    np.testing.assert_array_equal(among(mask, np.asarray)(weights), weights[mask])
