from __future__ import annotations

import json
import os
from pathlib import Path

import pandas as pd
import pytest

from tests.cli.test_cli import assert_one_sentence, wildtype
from tests.datasets.store.examples import READINGS, drawn
from wildtype.datasets.store import Store


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cli") / "store.duckdb"
    with Store.create(path) as store:
        store.ingest(drawn(100), READINGS)
    return path


def test_a_table_says_how_many_rows_there_are(filled: Path) -> None:
    result = wildtype("data", "query", "SELECT id, genes, value FROM measurements", "--store", str(filled))
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("\n") == 44  # 40 rows, head and frame
    assert "40 of 100 rows shown" in result.stderr
    few = wildtype(
        "data",
        "query",
        "SELECT study, '[red]x' AS y FROM measurements",
        "--limit",
        "0",
        "--store",
        str(filled),
    )
    assert few.stdout.count("│ tiny2024 │ [red]x │") == 100
    assert few.stderr.strip() == "100 rows"


def test_json_and_files_hold_every_row(filled: Path, tmp_path: Path) -> None:
    sql = "SELECT id, genes, doses, value, sum(n) OVER () AS total FROM measurements ORDER BY id"
    shown = json.loads(wildtype("data", "query", sql, "--json", "--store", str(filled)).stdout)
    assert (shown["rows_total"], shown["rows_shown"], len(shown["rows"])) == (100, 100, 100)
    csv, parquet = tmp_path / "o.csv", tmp_path / "o.parquet"
    for output in (csv, parquet):
        result = wildtype("data", "query", sql, "-o", str(output), "--store", str(filled))
        assert (result.returncode, result.stdout) == (0, ""), result.stderr
        assert "100 rows written" in result.stderr
    whole, flat = pd.read_parquet(parquet), pd.read_csv(csv, keep_default_na=False)
    assert whole["id"].tolist() == flat["id"].tolist() == [row["id"] for row in shown["rows"]]
    assert whole["value"].tolist() == flat["value"].tolist() == [row["value"] for row in shown["rows"]]
    assert [";".join(genes) for genes in whole["genes"]] == flat["genes"].tolist()
    assert any(";" in genes for genes in flat["genes"])
    assert {row["total"] for row in shown["rows"]} == set(flat["total"].tolist())


def test_no_cell_of_a_csv_file_is_a_formula(filled: Path, tmp_path: Path) -> None:
    sql = "SELECT '=1+1'::ENUM('=1+1') AS \"=cmd\", '@x' AS y, -1.5 AS z"
    result = wildtype("data", "query", sql, "-o", str(tmp_path / "o.csv"), "--store", str(filled))
    assert result.returncode == 0, result.stderr
    frame = pd.read_csv(tmp_path / "o.csv")
    assert frame.to_dict("list") == {"'=cmd": ["'=1+1"], "y": ["'@x"], "z": [-1.5]}


def test_the_store_in_the_cache_is_the_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WILDTYPE_CACHE", str(tmp_path))
    assert_one_sentence(wildtype("data", "query", "SELECT 1"), str(tmp_path / "store.duckdb"), "no store")


@pytest.mark.parametrize(
    ("words", "needles"),
    [
        (["DROP TABLE study"], ["DROP", "one SELECT"]),
        (["SELECT 1", "-o", "out.xlsx"], ["out.xlsx", ".parquet"]),
        (["SELECT {'a': 1} AS s", "-o", "out.csv"], ["column s", "write .parquet"]),
        (["SELECT 'x'::INTEGER FROM measurements", "-o", "out.parquet"], ["cannot be answered"]),
    ],
)
def test_bad_queries_are_one_sentence_and_write_nothing(
    filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], needles: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert_one_sentence(wildtype("data", "query", *words, "--store", str(filled)), *needles)
    assert not os.listdir(tmp_path)


def test_graph_out_and_in(filled: Path, tmp_path: Path) -> None:
    folder, again = tmp_path / "graph", tmp_path / "again.duckdb"
    rows = json.loads(wildtype("data", "export-graph", str(folder), "--store", str(filled), "--json").stdout)
    assert rows["measurement.csv"] == 100
    result = wildtype("data", "import-graph", str(folder), "--store", str(again))
    assert "│ tiny2024 │ 100          │" in result.stdout, result.stderr
    with Store.open(filled, read_only=True) as first, Store.open(again, read_only=True) as second:
        assert first.content_hash() == second.content_hash()
    assert_one_sentence(
        wildtype("data", "import-graph", str(folder), "--store", str(again)), "'tiny2024' already"
    )
