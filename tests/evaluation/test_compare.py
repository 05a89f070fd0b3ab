from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from sklearn import metrics as sk

from wildtype.datasets import Dataset
from wildtype.errors import CheckpointError, ConfigError, DatasetError, ShapeError
from wildtype.evaluation import Comparison, evaluate_predictions
from wildtype.evaluation.bootstrap import bootstrap_weights, find_clusters, two_sided_p
from wildtype.evaluation.comparison import PAIRED
from wildtype.evaluation.metrics import SURE

Factory = Callable[..., Dataset]
Predictions = dict[str, np.ndarray]


def noisy(dataset: Dataset, rows: np.ndarray, **noise: float) -> Predictions:
    """Predict the labels plus independent noise of a given sd per model."""
    truth = dataset.table.value[rows].astype(np.float64)
    return {
        model: truth + np.random.default_rng(i).normal(0, sd, rows.size)
        for i, (model, sd) in enumerate(noise.items())
    }


@pytest.fixture(scope="module")
def dataset(make_pairs: Factory) -> Dataset:
    return make_pairs()


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    return np.arange(0, 200, 2)


def compare(dataset: Dataset, rows: np.ndarray, predictions: Predictions, **more: object) -> Comparison:
    return evaluate_predictions(  # type: ignore[arg-type]
        dataset, rows, predictions, phenotype="epsilon", **({"replicates": 200} | more)
    )


def test_a_baseline_that_wins_is_named(dataset: Dataset, rows: np.ndarray) -> None:
    predictions = noisy(dataset, rows, additive=0.3, boosting=0.05, cell_transformer=0.4)
    result = compare(dataset, rows, predictions, seconds={"boosting": 2.0}, peak_mib={"additive": 90.0})
    assert [score.model for score in result.scores] == ["boosting", "additive", "cell_transformer"]
    assert result.best.model == result.reference == "boosting"
    truth = dataset.table.value[rows]
    for score in result.scores:
        expected = stats.pearsonr(truth, predictions[score.model])[0]
        assert score.pearson.value == pytest.approx(expected)
        assert score.pearson.low < score.pearson.value < score.pearson.high
        assert score.n == 100
        assert score.baseline == (score.model != "cell_transformer")
    delta = result["cell_transformer"].delta
    assert delta is not None
    assert delta.against == "boosting"
    assert delta.value == pytest.approx(
        result["cell_transformer"].pearson.value - result["boosting"].pearson.value
    )
    assert delta.low < delta.value < delta.high < 0
    assert delta.p == pytest.approx(2 / 201)
    assert result["boosting"].delta is None
    assert (result["boosting"].seconds, result["boosting"].peak_mib) == (2.0, None)
    assert result["additive"].peak_mib == 90.0
    ours, theirs = result["cell_transformer"].pearson.value, result["boosting"].pearson.value
    assert result.winner_sentence.startswith(
        f"boosting (baseline) wins: Pearson {theirs:.2f} against {ours:.2f} of cell_transformer "
        "(difference −0."
    )


def test_a_model_that_wins(dataset: Dataset, rows: np.ndarray) -> None:
    result = compare(dataset, rows, noisy(dataset, rows, boosting=0.4, cell_transformer=0.05))
    assert result.reference == "boosting"
    assert result.winner_sentence.startswith("cell_transformer wins: Pearson ")
    assert "of boosting (baseline) (difference +0." in result.winner_sentence


def test_models_that_cannot_be_told_apart(dataset: Dataset, rows: np.ndarray) -> None:
    result = compare(dataset, rows, noisy(dataset, rows, boosting=0.1, cell_transformer=0.1))
    assert (
        "cell_transformer and boosting (baseline) are not distinguishable: Pearson" in result.winner_sentence
    )


def test_baselines_alone_and_one_alone(dataset: Dataset, rows: np.ndarray) -> None:
    two = compare(dataset, rows, noisy(dataset, rows, ridge=0.05, mean=0.5))
    assert two.winner_sentence.startswith("ridge (baseline) wins: Pearson ")
    assert "of mean (baseline)" in two.winner_sentence
    one = compare(dataset, rows, noisy(dataset, rows, cell_transformer=0.05))
    assert one.winner_sentence.startswith("cell_transformer is alone: Pearson 0.9")


def test_who_is_a_baseline_can_be_said(dataset: Dataset, rows: np.ndarray) -> None:
    predictions = noisy(dataset, rows, mine=0.05, cell_transformer=0.4)
    result = compare(dataset, rows, predictions, baselines=["cell_transformer"])
    assert result.reference == "cell_transformer"
    assert not result["mine"].baseline


def test_constant_and_broken_predictions(dataset: Dataset, rows: np.ndarray) -> None:
    predictions = noisy(dataset, rows, ridge=0.1) | {
        "mean": np.zeros(rows.size),
        "diverged": np.full(rows.size, np.nan),
    }
    result = compare(dataset, rows, predictions)
    assert result.best.model == "ridge"
    assert np.isnan(result["mean"].pearson.value)
    assert result["mean"].undefined["pearson"] == "all predictions are equal"
    assert result["mean"].mse.value > 0
    assert result["mean"].delta is None
    assert np.isnan(result["diverged"].mse.value)
    only = compare(dataset, rows, {"mean": np.zeros(rows.size)})
    assert only.winner_sentence == "No model has a defined Pearson, so none wins."


def test_several_conditions_change_the_headline(make_pairs: Factory) -> None:
    dataset = make_pairs(conditions=3)
    rows = np.arange(200)
    result = compare(dataset, rows, noisy(dataset, rows, ridge=0.1, cell_transformer=0.3))
    assert result.headline == "pearson_by_condition"
    assert "Pearson (mean over conditions) 0." in result.winner_sentence
    delta = result["cell_transformer"].delta
    assert delta is not None
    assert delta.value == pytest.approx(
        result["cell_transformer"].pearson_by_condition.value - result["ridge"].pearson_by_condition.value
    )


def test_clusters(make_pairs: Factory) -> None:
    pairs, triples, many = make_pairs(), make_pairs(order=3), make_pairs(order=5)
    rows = np.arange(100)
    found = {}
    for name, data in {"pairs": pairs, "triples": triples, "many": many}.items():
        found[name] = compare(data, rows, noisy(data, rows, ridge=0.1))
    assert [c.clusters for c in found.values()] == ["genes", "genes", "gene-sets"]
    assert found["pairs"].notes == ()
    assert "conservative" in found["triples"].notes[0]
    assert "resample gene sets" in found["many"].notes[0]
    by_query = compare(triples, rows, noisy(triples, rows, ridge=0.1), clusters="query-pairs")
    assert by_query.clusters == "query-pairs"
    few = make_pairs(genes=8, rows=20)
    assert any(
        "8 clusters only" in note for note in compare(few, rows[:20], noisy(few, rows[:20], a=1)).notes
    )


def test_fitness_has_no_strong_interactions(dataset: Dataset) -> None:
    rows = np.arange(200, 225)
    result = evaluate_predictions(
        dataset, rows, noisy(dataset, rows, ridge=0.1), phenotype="fitness", replicates=20
    )
    assert result["ridge"].undefined["auroc_strong"] == "the phenotype is not an interaction"
    assert result["ridge"].undefined["auroc_sign"] == "there are 25 positive and 0 negative rows"


def test_deterministic_and_json(dataset: Dataset, rows: np.ndarray) -> None:
    predictions = noisy(dataset, rows, ridge=0.1, cell_transformer=0.2) | {"mean": np.zeros(rows.size)}
    one, two = (compare(dataset, rows, predictions, split="random") for _ in range(2))
    assert one.to_json() == two.to_json()
    assert compare(dataset, rows, predictions, seed=1).to_json() != one.to_json()
    stored = json.loads(json.dumps(one.to_json(), allow_nan=False))
    again = Comparison.from_json(stored)
    assert again.to_json() == one.to_json()
    assert again.winner_sentence == one.winner_sentence
    assert np.isnan(again["mean"].pearson.value)


@pytest.mark.parametrize("damage", ["rows", "scores"])
def test_damaged_records_are_refused(dataset: Dataset, rows: np.ndarray, damage: str) -> None:
    record = compare(dataset, rows, noisy(dataset, rows, ridge=0.1), replicates=5).to_json()
    with pytest.raises(CheckpointError, match="not a stored comparison"):
        Comparison.from_json({key: value for key, value in record.items() if key != damage})
    with pytest.raises(CheckpointError, match="not a stored comparison"):
        Comparison.from_json(record | {"scores": []})


def test_refusals(dataset: Dataset, rows: np.ndarray) -> None:
    good = noisy(dataset, rows, ridge=0.1)
    with pytest.raises(ConfigError, match="at least one model"):
        compare(dataset, rows, {})
    with pytest.raises(ConfigError, match="baselines names 'other'; compared models: ridge"):
        compare(dataset, rows, good, baselines=["other"])
    with pytest.raises(ShapeError, match=r"ridge has predictions of shape \(99,\)"):
        compare(dataset, rows, {"ridge": good["ridge"][1:]})
    with pytest.raises(DatasetError, match="1 of 101 rows are not of phenotype 'epsilon'"):
        compare(dataset, np.append(rows, 210), {"ridge": np.zeros(101)})
    with pytest.raises(DatasetError, match="no rows"):
        compare(dataset, rows[:0], {"ridge": np.zeros(0)})
    with pytest.raises(DatasetError, match="no phenotype 'tau'"):
        evaluate_predictions(dataset, rows, good, phenotype="tau")
    result = compare(dataset, rows, good)
    with pytest.raises(ConfigError, match="'boosting' was not compared; compared models: ridge"):
        result["boosting"]
    with pytest.raises(ConfigError, match="'rmse' is not a metric"):
        result.best.estimate("rmse")


def plain_metric(metric: str, truth: np.ndarray, predicted: np.ndarray) -> float:
    """Compute a metric of ``PAIRED`` from its definition on rows that may stand several times."""
    calls = bool(np.isin(truth, (0, 1)).all())
    if metric == "pearson":
        return float(np.corrcoef(truth, predicted)[0, 1])
    if metric == "rmse":
        return float(np.sqrt(np.mean((truth - predicted) ** 2)))
    if metric == "brier":
        return float(np.mean((truth - predicted) ** 2))
    if metric == "bias":
        return float(abs(predicted.mean() - truth.mean()))
    if metric == "log_loss":
        return float(sk.log_loss(truth, np.clip(predicted, SURE, 1 - SURE), labels=[0, 1]))
    sign = 1 if calls or metric.startswith("positive") else -1
    return float(sk.average_precision_score(truth == 1 if calls else sign * truth >= 0.1, sign * predicted))


@pytest.mark.parametrize("calls", [False, True])
def test_differences_of_every_headline_metric_by_a_plain_loop(dataset: Dataset, calls: bool) -> None:
    rows = np.arange(150)
    if calls:
        value = dataset.table.value.copy()
        value[rows] = value[rows] > 0
        dataset = replace(dataset, table=replace(dataset.table, value=value))
    truth = dataset.table.value[rows].astype(np.float64)
    predictions = noisy(dataset, rows, mine=0.1, ridge=0.2, boosting=0.4)
    predictions["boosting"] += 0.3
    result = compare(dataset, rows, predictions, replicates=40, seed=3, baselines=["ridge", "boosting"])
    clusters = find_clusters(dataset.table.take(rows), "genes")
    weights = np.concatenate([*bootstrap_weights(clusters, 40, 3)], axis=1).astype(int)
    metrics = ["pearson", "rmse", "bias", "positive/average_precision"]
    metrics += ["log_loss", "brier", "average_precision"] if calls else ["negative/average_precision"]
    assert set(result["mine"].differences) == {"ridge", "boosting"}
    for other, found in result["mine"].differences.items():
        assert set(metrics) <= set(found) <= set(PAIRED)
        for metric in metrics:
            mine, theirs = predictions["mine"], predictions[other]
            plain = [
                plain_metric(metric, *(np.repeat(v, w) for v in (truth, mine)))
                - plain_metric(metric, *(np.repeat(v, w) for v in (truth, theirs)))
                for w in weights.T
            ]
            value = plain_metric(metric, truth, mine) - plain_metric(metric, truth, theirs)
            delta = found[metric]
            assert delta.value == pytest.approx(value, abs=1e-9), metric
            np.testing.assert_allclose([delta.low, delta.high], np.quantile(plain, [0.025, 0.975]), atol=1e-9)
            assert delta.p == two_sided_p(np.array(plain))
    # A baseline has a difference to the best one alone, and that of the headline metric is its delta.
    worse = next(name for name in ("ridge", "boosting") if name != result.reference)
    assert list(result[worse].differences) == [result.reference]
    for name in ("mine", worse):
        assert result[name].delta == result[name].differences[result.reference][result.headline]
    again = Comparison.from_json(json.loads(json.dumps(result.to_json(), allow_nan=False)))
    assert again["mine"].differences == result["mine"].differences


def test_records_of_earlier_versions_have_no_differences(dataset: Dataset, rows: np.ndarray) -> None:
    record = compare(dataset, rows, noisy(dataset, rows, ridge=0.1, mine=0.2), replicates=5).to_json()
    for key in ("strong", "strong_positive", "other_quantity"):
        del record[key]
    for score in record["scores"]:
        for key in ("differences", "pearson_gene_removed", "pearson_shuffled"):
            del score[key]
    again = Comparison.from_json(record)
    assert again.strong is None
    assert again["mine"].differences == {}
    assert np.isnan(again["mine"].pearson_gene_removed.value)


def test_labels_of_other_rows_change_nothing(dataset: Dataset, rows: np.ndarray) -> None:
    predictions = noisy(dataset, rows, ridge=0.1)
    value = dataset.table.value.copy()
    value[np.setdiff1d(np.arange(value.size), rows)] += 1
    other = replace(dataset, table=replace(dataset.table, value=value))
    one, two = (compare(d, rows, predictions) for d in (dataset, other))
    assert one.scores == two.scores
