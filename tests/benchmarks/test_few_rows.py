"""The bench of small tables, on rows of the tiny organism."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import few_rows
from benchmarks.few_rows import SmallTable, bench_few_rows
from tests.tiny import tiny_dataset
from wildtype.errors import ConfigError

TABLE = SmallTable("tiny-growth", "epsilon", 60)


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(few_rows, "load_dataset", lambda name: tiny_dataset())
    monkeypatch.setattr(few_rows, "TABLES", {"tiny": TABLE})


def test_a_table_is_drawn_by_its_seed_and_of_its_genes_alone() -> None:
    rows = TABLE.draw(0).table
    assert len(rows) == 60
    np.testing.assert_array_equal(TABLE.draw(0).table.gene, rows.gene)
    assert not np.array_equal(TABLE.draw(1).table.gene, rows.gene)
    few = SmallTable("tiny-growth", "epsilon", 60, genes=6).draw(0).table
    assert 0 < len(few) <= 15
    assert len(np.unique(few.gene)) <= 6


@pytest.mark.slow
def test_it_compares_the_model_with_the_best_baseline_of_every_split() -> None:
    (row,) = bench_few_rows(["tiny"], splits=2)["rows"]
    assert (row["table"], row["rows"]) == ("tiny", 60)
    assert row["difference"] == pytest.approx(row["r"] - row["best_baseline_r"])
    assert -1 <= row["r"] <= 1
    assert row["standard_error"] >= 0


@pytest.mark.slow
def test_it_measures_intervals_and_says_where_there_is_none() -> None:
    (row,) = bench_few_rows(["tiny"], splits=2, draw=200, intervals=True)["rows"]
    assert (row["table"], row["rows"]) == ("tiny", 200)
    assert row["with_interval"] > 0.5
    assert 0.5 < row["coverage"] <= 1
    (row,) = bench_few_rows(["tiny"], splits=2, draw=40, intervals=True)["rows"]
    assert row["with_interval"] == 0
    assert np.isnan(row["coverage"])


def test_an_unknown_table_is_named() -> None:
    with pytest.raises(ConfigError, match="no table 'tinny'"):
        bench_few_rows(["tinny"])
