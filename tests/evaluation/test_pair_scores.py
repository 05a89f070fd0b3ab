"""Scores of pairs against their plain definitions, in double precision."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from wildtype.datasets import Dataset
from wildtype.evaluation import evaluate_predictions
from wildtype.evaluation.metrics import Undefined, bind, gene_removed_statistic, one_gene_statistic
from wildtype.evaluation.pair_scores import NO_PAIRS, PAIR_METRICS, pairs_of, without_gene_effects
from wildtype.mutants import MutantTable


def scored(rows: int, genes: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return random pairs, some of them twice, labels and predictions with gene effects."""
    rng = np.random.default_rng(seed)
    pairs = np.stack([rng.choice(genes, 2, replace=False) for _ in range(rows)])
    effect = rng.normal(size=genes)
    truth = effect[pairs].sum(1) + rng.normal(size=rows)
    return truth, truth + effect[pairs].sum(1) + rng.normal(size=rows), 3 * pairs + 100


def value(statistic: Callable[[np.ndarray], np.ndarray], rows: int) -> float:
    return float(statistic(np.ones((rows, 1)))[0])


@pytest.mark.parametrize(("rows", "genes"), [(300, 20), (60, 40), (45, 40)])
def test_gene_effects_are_those_of_least_squares(rows: int, genes: int) -> None:
    truth, predicted, pairs = scored(rows, genes)
    design = (pairs[:, :, None] == np.unique(pairs)).sum(1).astype(np.float64)
    rest = [y - design @ np.linalg.lstsq(design, y, rcond=None)[0] for y in (truth, predicted)]
    np.testing.assert_allclose(without_gene_effects(truth, pairs), rest[0], atol=1e-9)
    if rows < 2 * genes:
        with pytest.raises(Undefined, match="rows of .* genes leave too little beside gene effects"):
            gene_removed_statistic(truth, predicted, pairs)
        return
    found = value(gene_removed_statistic(truth, predicted, pairs), rows)
    assert found == pytest.approx(stats.pearsonr(*rest)[0], abs=1e-9)


def test_any_sum_of_gene_effects_changes_nothing() -> None:
    truth, predicted, pairs = scored(200, 30)
    other = predicted + np.random.default_rng(1).normal(0, 5, 400)[pairs].sum(1) + 3
    one, two = (value(gene_removed_statistic(truth, p, pairs), 200) for p in (predicted, other))
    assert one == pytest.approx(two, abs=1e-9)
    assert np.corrcoef(truth, other)[0, 1] < np.corrcoef(truth, predicted)[0, 1] - 0.1
    additive = np.random.default_rng(2).normal(size=400)[pairs].sum(1).astype(np.float32)
    with pytest.raises(Undefined, match="nothing is left of the predictions without additive gene effects"):
        gene_removed_statistic(truth, additive, pairs)


@pytest.mark.parametrize(("rows", "genes"), [(120, 12), (25, 30)])
def test_shuffled_by_a_plain_loop(rows: int, genes: int) -> None:
    truth, predicted, pairs = scored(rows, genes)
    drawn = []
    for i, pair in enumerate(pairs.tolist()):
        of_gene = [
            [j for j in range(rows) if g in pairs[j] and not set(pair) <= set(pairs[j].tolist())]
            for g in pair
        ]
        of_gene = [others for others in of_gene if others]
        drawn += [(i, j, 1 / len(of_gene) / len(others)) for others in of_gene for j in others]
    i, j, weight = (np.array(column) for column in zip(*drawn, strict=True))
    covariance = np.cov(truth[i], predicted[j], aweights=weight)
    expected = covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1])
    assert value(one_gene_statistic(truth, predicted, pairs), rows) == pytest.approx(expected, abs=1e-12)
    # Many seeded draws come to the same.
    rng = np.random.default_rng(0)
    at = rng.choice(len(i), 400_000, p=weight / weight.sum())
    assert np.corrcoef(truth[i[at]], predicted[j[at]])[0, 1] == pytest.approx(expected, abs=0.01)


def test_what_the_scores_say() -> None:
    rng = np.random.default_rng(3)
    pairs = np.stack(np.triu_indices(40, 1), 1)
    effect, own = rng.normal(size=40)[pairs].sum(1), rng.normal(size=len(pairs))
    found = {
        name: bind(effect + own, predicted, pairs=pairs).values(len(pairs))
        for name, predicted in (("genes", effect + 0.1 * rng.normal(size=len(own))), ("pairs", own))
    }
    assert found["genes"]["pearson"] > 0.7
    assert abs(found["genes"]["pearson_gene_removed"]) < 0.1
    assert found["genes"]["pearson_shuffled"] > 0.3
    assert found["pairs"]["pearson_gene_removed"] > 0.99
    assert abs(found["pairs"]["pearson_shuffled"]) < 0.05


def test_equal_weights_of_any_size_and_rows_left_out() -> None:
    truth, predicted, pairs = scored(80, 15)
    for make in (gene_removed_statistic, one_gene_statistic):
        statistic = make(truth, predicted, pairs)
        found = statistic(np.stack([np.ones(80), np.full(80, 3.0), np.zeros(80)], 1))
        assert found[0] == pytest.approx(found[1])
        assert np.isnan(found[2])
    with pytest.raises(Undefined, match="no two rows share exactly one gene"):
        one_gene_statistic(truth[:4], predicted[:4], np.arange(8).reshape(4, 2))


def test_only_tables_of_pairs_have_them(make_pairs: Callable[..., Dataset]) -> None:
    dataset, rows = make_pairs(), np.arange(150)
    truth = dataset.table.value[rows].astype(np.float64)
    predicted = truth + np.random.default_rng(0).normal(0, 0.1, 150)
    score = evaluate_predictions(dataset, rows, {"a": predicted}, phenotype="epsilon", replicates=30)["a"]
    pairs = dataset.table.take(rows).matrix(2)
    expected = bind(truth, predicted, pairs=pairs).values(150)
    for metric in PAIR_METRICS:
        found = score.estimate(metric)
        assert found.value == pytest.approx(expected[metric])
        assert found.low < found.value < found.high
    triples = make_pairs(order=3)
    score = evaluate_predictions(triples, rows, {"a": predicted}, phenotype="epsilon", replicates=5)["a"]
    assert {score.undefined[metric] for metric in PAIR_METRICS} == {NO_PAIRS}


def test_a_gene_is_another_one_in_each_condition() -> None:
    table = MutantTable.from_sets([[0, 1], [0, 1], [1, 2]], condition=[0, 1, 1])
    pairs = pairs_of(table)
    assert pairs is not None
    assert set(pairs[0]).isdisjoint(pairs[1])
    assert len(set(pairs[1]) & set(pairs[2])) == 1
    assert pairs_of(MutantTable.from_sets([[0, 1], [2]])) is None
