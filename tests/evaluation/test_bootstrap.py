"""The cluster bootstrap: its weights by definition, its coverage by simulation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wildtype.errors import ConfigError, ShapeError
from wildtype.evaluation import bootstrap as module
from wildtype.evaluation.bootstrap import (
    Clusters,
    bootstrap,
    bootstrap_weights,
    find_clusters,
    interval,
    two_sided_p,
)
from wildtype.evaluation.metrics import mse_statistic, pearson_statistic
from wildtype.mutants import MutantTable

SETS = st.lists(st.sets(st.integers(0, 7), max_size=4).map(sorted), min_size=1, max_size=12)


def all_weights(clusters: Clusters, replicates: int, seed: int = 0) -> np.ndarray:
    return np.concatenate(list(bootstrap_weights(clusters, replicates, seed)), axis=1)


@given(SETS, st.integers(0, 99))
def test_a_row_weighs_the_product_of_its_genes(sets: list[list[int]], seed: int) -> None:
    singles = [[g] for g in range(8)]
    weights = all_weights(find_clusters(MutantTable.from_sets(singles + sets), "genes"), 5, seed)
    multiplicity = weights[:8]
    np.testing.assert_array_equal(multiplicity.sum(0), 8)
    for row, genes in zip(weights[8:], sets, strict=True):
        np.testing.assert_array_equal(row, np.prod(multiplicity[genes], axis=0))


def test_draws_depend_on_the_seed_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    table = MutantTable.from_sets([[0, 1], [1, 2], [0, 3], [4, 5]])
    clusters = find_clusters(table, "genes")
    whole = all_weights(clusters, 20, 3)
    monkeypatch.setattr(module, "_ENTRIES", 30)
    pieces = list(bootstrap_weights(clusters, 20, 3))
    assert len(pieces) > 1
    np.testing.assert_array_equal(np.concatenate(pieces, axis=1), whole)
    assert not np.array_equal(all_weights(clusters, 20, 4), whole)


def test_query_pair_clusters() -> None:
    queries, arrays = [(0, 1), (2, 3)], [4, 5, 6]
    table = MutantTable.from_sets([(*q, a) for q in queries for a in arrays])
    clusters = find_clusters(table, "query-pairs")
    assert clusters.pools == (2, 3)
    weights = all_weights(clusters, 30).reshape(2, 3, 30)
    assert set(weights.sum((0, 1)).tolist()) <= {6.0}  # Σ over queries × Σ over arrays = 2 × 3
    for first in range(3):
        for second in range(3):  # a product of a query and an array has rank one
            np.testing.assert_array_equal(
                weights[0, first] * weights[1, second], weights[0, second] * weights[1, first]
            )
    with pytest.raises(ShapeError, match="matrix of order 3"):
        find_clusters(MutantTable.from_sets([[0, 1]]), "query-pairs")


def test_gene_set_clusters_keep_conditions_together() -> None:
    table = MutantTable.from_sets([[0, 1], [2], [0, 1]], condition=[0, 0, 1])
    weights = all_weights(find_clusters(table, "gene-sets"), 50)
    np.testing.assert_array_equal(weights[0], weights[2])
    np.testing.assert_array_equal(weights[0] + weights[1], 2)


def simulate(
    rng: np.random.Generator, genes: int, rows: int, shared: float, own: float
) -> tuple[MutantTable, np.ndarray]:
    """Draw pairs whose errors share gene effects; the expected squared error is 2 shared² + own²."""
    upper = np.stack(np.triu_indices(genes, 1), axis=1)
    pairs = upper[np.sort(rng.choice(len(upper), rows, replace=False))]
    error = rng.normal(0, shared, genes)[pairs].sum(1) + rng.normal(0, own, rows)
    return MutantTable.from_matrix(pairs), error


def coverage(shared: float, own: float, name: str, trials: int = 80) -> tuple[float, float]:
    """Return how often the interval of the mse holds the expected one, and its mean width."""
    rng = np.random.default_rng(11)
    hits, widths = 0, []
    for seed in range(trials):
        table, error = simulate(rng, 40, 200, shared, own)
        statistic = {"mse": mse_statistic(error, np.zeros_like(error))}
        low, high = interval(
            bootstrap(statistic, find_clusters(table, name), replicates=200, seed=seed)["mse"]
        )
        hits += low <= 2 * shared**2 + own**2 <= high
        widths.append(high - low)
    return hits / trials, float(np.mean(widths))


def test_rows_that_share_genes_need_the_gene_bootstrap() -> None:
    by_gene, gene_width = coverage(1.0, 0.5, "genes")
    by_row, row_width = coverage(1.0, 0.5, "gene-sets")
    assert by_gene >= 0.82  # percentile intervals of a skewed statistic with 40 clusters fall short of 0.95
    assert by_row <= 0.75
    assert row_width < 0.7 * gene_width


def test_independent_rows_are_covered_conservatively() -> None:
    by_gene, gene_width = coverage(0.0, 1.0, "genes", trials=40)
    _, row_width = coverage(0.0, 1.0, "gene-sets", trials=40)
    assert by_gene >= 0.95
    assert gene_width < 2 * row_width  # variance is at most threefold for pairs: a factor of √3, plus noise


def test_replicates_of_two_models_are_paired() -> None:
    rng = np.random.default_rng(0)
    table, truth = simulate(rng, 30, 150, 1.0, 1.0)
    near = truth + rng.normal(size=150)
    statistics = {"one": pearson_statistic(truth, near), "same": pearson_statistic(truth, 3 * near + 2)}
    drawn = bootstrap(statistics, find_clusters(table, "genes"), replicates=50)
    np.testing.assert_allclose(drawn["one"], drawn["same"], atol=1e-9)
    assert drawn["one"].std() > 0.01


def test_interval_and_p() -> None:
    values = np.arange(1.0, 1001.0)
    assert interval(values) == pytest.approx((25.975, 975.025))
    assert two_sided_p(values) == pytest.approx(2 / 1001)
    assert two_sided_p(-values) == pytest.approx(2 / 1001)
    assert two_sided_p(values - 500.5) == 1.0
    assert two_sided_p(np.zeros(10)) == 1.0
    mostly_missing = np.where(values < 600, np.nan, values)
    assert np.isnan(interval(mostly_missing)).all()
    assert np.isnan(two_sided_p(mostly_missing))
    few_missing = np.where(values < 101, np.nan, values)
    assert interval(few_missing) == pytest.approx((123.475, 977.525))


def test_refusals() -> None:
    table = MutantTable.from_sets([[0, 1]])
    with pytest.raises(ConfigError, match="'rows' is not a kind of cluster"):
        find_clusters(table, "rows")
    with pytest.raises(ConfigError, match="at least 1"):
        bootstrap({}, find_clusters(table, "genes"), replicates=0)
    with pytest.raises(ShapeError, match="no rows to resample"):
        bootstrap({}, find_clusters(table.take(np.zeros(0, np.int64)), "genes"))
