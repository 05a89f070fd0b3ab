from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from wildtype.errors import DatasetError
from wildtype.evaluation.bootstrap import bootstrap, find_clusters, interval
from wildtype.evaluation.comparison import Comparison
from wildtype.evaluation.metrics import mse_statistic
from wildtype.evaluation.predicted_rows import (
    LEAST_ROWS,
    PredictedRows,
    best_and_worst,
    density,
    error_by_effect,
    error_by_order,
    error_by_query,
)
from wildtype.experiments.stored import Run


def frame(rows: int = 400, seed: int = 0) -> pd.DataFrame:
    """Singles, doubles of two queries with many arrays, and triples, in two phenotypes."""
    draw = np.random.default_rng(seed)
    arrays = [f"A{i:03d}" for i in range(rows)]
    genes = [
        a if i % 10 == 0 else f"{a},Q{i % 2}" if i % 10 < 8 else f"{a},Q0,Q1" for i, a in enumerate(arrays)
    ]
    value = draw.normal(0, 0.1, rows)
    value[::7] -= 0.5
    return pd.DataFrame(
        {
            "genes": genes,
            "kinds": "absent",
            "phenotype": np.where(np.arange(rows) % 4 == 3, "fitness", "epsilon"),
            "condition": "reference",
            "value": value.astype(np.float32),
            "sd": np.float32(0.05),
            "model": value + draw.normal(0, 0.05, rows),
            "baseline": draw.normal(0, 0.1, rows),
        }
    )


def some_rows(**options: object) -> PredictedRows:
    return PredictedRows.of(frame(), "epsilon", ["model", "baseline"], unit="fitness", **options)  # type: ignore[arg-type]


def test_rows_are_those_of_the_phenotype() -> None:
    own = frame()[lambda f: f["phenotype"] == "epsilon"]
    rows = some_rows()
    assert len(rows) == len(own)
    assert [",".join(rows.names(i)) for i in range(len(rows))] == own["genes"].tolist()
    np.testing.assert_allclose(rows.measured, own["value"])
    assert rows.pearson("model") == pytest.approx(np.corrcoef(own["value"], own["model"])[0, 1])
    assert rows.noise().ceiling == pytest.approx(
        math.sqrt(1 - 0.05**2 / own["value"].astype(float).var(ddof=0)), rel=1e-5
    )
    with pytest.raises(DatasetError, match="no rows of 'tau'"):
        PredictedRows.of(frame(), "tau", ["model"])
    with pytest.raises(DatasetError, match="no stored predictions of 'oracle'"):
        PredictedRows.of(frame(), "epsilon", ["oracle"])


def test_density_counts_every_row_once() -> None:
    rows = some_rows()
    found = density(rows, "model", bins=20)
    low, high = found.measured[0], found.measured[-1]
    np.testing.assert_array_equal(found.measured, found.predicted)
    np.testing.assert_array_equal(found.measured, density(rows, "baseline", bins=20).measured)
    x, y = rows.measured, rows.predicted["model"]
    inside = (x >= low) & (x <= high) & (y >= low) & (y <= high)
    assert found.counts.sum() == inside.sum()
    assert found.outside == (~inside).sum() < 0.01 * len(rows) + 1
    i, j = 7, 12
    column = (x >= found.measured[i]) & (x < found.measured[i + 1])
    line = (y >= found.predicted[j]) & (y < found.predicted[j + 1])
    assert found.counts[i, j] == (column & line).sum()
    assert found.counts[:, j].sum() > 0


def test_density_of_calls_has_two_columns() -> None:
    data = frame()
    data["value"] = (data["value"] > 0).astype(np.float32)
    rows = PredictedRows.of(data, "epsilon", ["model"], calls=True)
    found = density(rows, "model")
    assert found.counts.shape[0] == 2
    assert found.counts.sum(1) == pytest.approx(
        [(rows.measured == 0).sum(), (rows.measured == 1).sum()], abs=1
    )
    assert [group.label for group in error_by_effect(rows)] == ["no call", "call"]


def test_error_by_order_is_the_root_mean_square() -> None:
    rows = some_rows()
    groups = error_by_order(rows)
    assert [group.label for group in groups] == ["1 gene", "2 genes", "3 genes"]
    assert sum(group.rows for group in groups) == len(rows)
    for k, group in enumerate(groups, 1):
        own = rows.table.order == k
        for model in ("model", "baseline"):
            error = rows.predicted[model][own] - rows.measured[own]
            assert group.errors[model].value == pytest.approx(np.sqrt((error**2).mean()))
    two = np.flatnonzero(rows.table.order == 2)
    statistic = mse_statistic(rows.measured[two], rows.predicted["model"][two])
    clusters = find_clusters(rows.table.take(two), "genes")
    drawn = bootstrap({"mse": statistic}, clusters, replicates=200, seed=0)["mse"]
    found = groups[1].errors["model"]
    assert (found.low, found.high) == pytest.approx(interval(np.sqrt(drawn)))


def test_error_by_effect_covers_all_labels() -> None:
    rows = some_rows()
    groups = error_by_effect(rows)
    assert sum(group.rows for group in groups) == len(rows)
    assert [group.mean for group in groups] == sorted(group.mean for group in groups)
    edges = np.linspace(*np.quantile(rows.measured, [0.005, 0.995]), 10)
    lowest = rows.measured < edges[1]
    assert groups[0].rows == lowest.sum()
    error = (rows.predicted["model"] - rows.measured)[lowest]
    assert groups[0].errors["model"].value == pytest.approx(np.sqrt((error**2).mean()))


def test_error_by_query_finds_the_strains() -> None:
    rows = some_rows(standard={"Q0": "SGS1"})
    found = error_by_query(rows)
    assert {group.label for group in found.groups} == {"SGS1", "Q1", "SGS1 + Q1"}
    assert found.large == 3 <= found.queries
    assert all(group.rows >= LEAST_ROWS for group in found.groups)
    values = [group.errors["model"].value for group in found.groups]
    assert values == sorted(values, reverse=True)
    own = np.array([set(rows.names(i)) > {"Q0"} and len(rows.names(i)) == 2 for i in range(len(rows))])
    group = next(group for group in found.groups if group.label == "SGS1")
    assert group.rows == own.sum()
    alone = PredictedRows.of(frame()[lambda f: ~f["genes"].str.contains(",")], "epsilon", ["model"])
    assert error_by_query(alone).groups == ()


def test_a_prediction_that_is_no_number_spoils_its_own_group_only() -> None:
    data = frame()
    data.loc[0, "model"] = np.nan
    groups = error_by_order(PredictedRows.of(data, "epsilon", ["model", "baseline"]))
    assert math.isnan(groups[0].errors["model"].value)
    assert groups[0].errors["baseline"].value > 0
    assert groups[1].errors["model"].value > 0


def test_best_are_strong_and_worst_are_wrong() -> None:
    rows = some_rows()
    best, worst = best_and_worst(rows, "model", 5)
    error = np.abs(rows.predicted["model"] - rows.measured)
    assert worst.tolist() == np.argsort(-error, kind="stable")[:5].tolist()
    effect = np.abs(rows.measured - np.median(rows.measured))
    strong = np.argsort(-effect, kind="stable")[: len(rows) // 10]
    assert best.tolist() == strong[np.argsort(error[strong], kind="stable")[:5]].tolist()


def test_stored_run_tells_what_the_run_told(tiny_run: Path) -> None:
    run = Run(tiny_run)
    table: Comparison = run.comparisons["epsilon"]
    (rows,) = run.tested
    assert list(rows.predicted) == ["cell_transformer", table.reference]
    assert rows.pearson("cell_transformer") == pytest.approx(
        table["cell_transformer"].pearson.value, abs=1e-6
    )
    (whole,) = error_by_order(rows)
    assert whole.errors["cell_transformer"].value ** 2 == pytest.approx(
        table["cell_transformer"].mse.value, rel=1e-5
    )
    assert run.learning is not None
    assert run.learning.score.tolist() == pytest.approx(run.metrics["fit"]["scores"])
    assert sum(values[0] for values in run.learning.shares.values()) == pytest.approx(1)
    assert {one.group for one in run.coverage} == {"2 genes, all seen"}
