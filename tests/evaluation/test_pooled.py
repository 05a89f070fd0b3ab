"""Folds pooled, seeds averaged, one bootstrap of genes for all: against plain loops."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from tests.tiny import tiny_dataset
from wildtype.evaluation.bootstrap import bootstrap_weights, find_clusters
from wildtype.evaluation.compare import evaluate_predictions
from wildtype.evaluation.comparison import Comparison
from wildtype.evaluation.metrics import bind
from wildtype.evaluation.pair_scores import pairs_of
from wildtype.evaluation.pooled import pool
from wildtype.evaluation.predicted_rows import gene_sets
from wildtype.evaluation.summary import Summary
from wildtype.report.comparison_tables import summary_to_markdown

Frames = dict[int, pd.DataFrame]


def stored(seed: int, rows: int = 120) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    pairs = np.stack([rng.choice(20, 2, replace=False) for _ in range(rows)])
    truth = rng.normal(0, 0.1, rows)
    return pd.DataFrame(
        {
            "genes": [f"G{a:02d},G{b:02d}" for a, b in pairs],
            "condition": "reference",
            "value": truth,
            "mine": truth + rng.normal(0, 0.1, rows) + 0.05,
            "ridge": truth + rng.normal(0, 0.2, rows),
        }
    )


@pytest.fixture(scope="module")
def like() -> Comparison:
    dataset, rows = tiny_dataset().select(["epsilon"]), np.arange(50)
    truth = dataset.table.value[rows].astype(float)
    return evaluate_predictions(
        dataset,
        rows,
        {"mine": truth, "ridge": -truth, "elsewhere": truth},
        phenotype="epsilon",
        baselines=["ridge"],
        replicates=60,
    )


def plain(summary: Summary, frames: Frames, metric: Callable[[np.ndarray, np.ndarray], float]) -> tuple:
    """Return value and interval of each model and of their difference, from repeated rows."""
    table, _ = gene_sets(pd.concat(frames.values())["genes"])
    columns = [*bootstrap_weights(find_clusters(table, "genes"), 60, 0)]
    weights = np.concatenate(columns, axis=1).astype(int)
    assert summary.pooled is not None
    replicates: dict[str, list[float]] = {"mine": [], "ridge": []}
    for w in [np.ones(len(table), int), *weights.T]:
        parts = np.split(w, np.cumsum([len(f) for f in frames.values()])[:-1])
        for model, found in replicates.items():
            each = [
                metric(*(np.repeat(frame[name].to_numpy(), part) for name in ("value", model)))
                for frame, part in zip(frames.values(), parts, strict=True)
            ]
            found.append(float(np.mean(each)))
    mine, ridge = (np.array(found) for found in replicates.values())
    return mine, ridge


def test_means_over_seeds_and_their_paired_differences(like: Comparison) -> None:
    frames = {seed: stored(seed) for seed in (0, 4, 7)}
    summary = pool(frames, like)
    pooled = summary.pooled
    assert pooled is not None
    assert (summary.seeds, pooled.rows, pooled.cluster_count) == ((0, 4, 7), 360, 20)
    assert set(summary.models) == {"mine", "ridge"}  # not every run predicted the third
    for name, metric in (
        ("pearson", lambda y, p: float(np.corrcoef(y, p)[0, 1])),
        ("mse", lambda y, p: float(np.mean((y - p) ** 2))),
        ("bias", lambda y, p: float(p.mean() - y.mean())),
    ):
        mine, ridge = plain(summary, frames, metric)
        for model, found in (("mine", mine), ("ridge", ridge)):
            estimate = pooled[model].estimate(name)
            assert estimate.value == pytest.approx(found[0], abs=1e-9)
            expected = np.quantile(found[1:], [0.025, 0.975])
            np.testing.assert_allclose([estimate.low, estimate.high], expected, atol=1e-9)
        if name == "pearson":
            delta = pooled["mine"].differences["ridge"]["pearson"]
            assert delta.value == pytest.approx(mine[0] - ridge[0], abs=1e-9)
            expected = np.quantile((mine - ridge)[1:], [0.025, 0.975])
            np.testing.assert_allclose([delta.low, delta.high], expected, atol=1e-9)
    # Mean and SD are those of the seeds' own tables.
    for metric in ("pearson", "pearson_gene_removed", "pearson_shuffled", "mse"):
        alone = []
        for frame in frames.values():
            pairs = pairs_of(gene_sets(frame["genes"])[0])
            alone.append(bind(frame["value"], frame["mine"], pairs=pairs).values(120)[metric])
        spread = summary.models["mine"][metric]
        assert spread.mean == pytest.approx(np.mean(alone))
        assert spread.sd == pytest.approx(np.std(alone, ddof=1))
        assert pooled["mine"].estimate(metric).value == pytest.approx(spread.mean)


def test_rows_of_a_seed_are_one_set(like: Comparison) -> None:
    """Pooled folds are scored together: not the mean of the folds' correlations."""
    folds = [stored(0), stored(1).assign(value=lambda f: f["value"] + 1, mine=lambda f: f["mine"] + 1)]
    together = pd.concat(folds, ignore_index=True)
    found = pool({0: together}, like).models["mine"]["pearson"].mean
    assert found == pytest.approx(np.corrcoef(together["value"], together["mine"])[0, 1])
    assert found > np.mean([np.corrcoef(f["value"], f["mine"])[0, 1] for f in folds]) + 0.1


def test_markdown_has_intervals_and_differences(like: Comparison) -> None:
    text = summary_to_markdown(pool({0: stored(0), 1: stored(1)}, like, ["folds 0, 1 of a seed are pooled"]))
    assert "mean ± SD over 2 seeds (seeds 0, 1); 120 test rows in the first" in text
    header, _, *rows = [line for line in text.splitlines() if line.startswith("|")]
    for title in ("95 %", "RMSE", "bias", "AP of strong negatives", "Pearson without gene effects"):
        assert f"| {title} |" in header
    assert rows[0].startswith("| mine |")
    assert (
        "folds 0, 1 of a seed are pooled; 240 rows in all; 95 % intervals from 60 resamples of 20 genes"
        in text
    )
    assert "mine minus each baseline, paired by resample [95 %]:" in text
    assert any(row.startswith("| ridge | +0.") for row in rows)
