"""People's SQL reads the store and nothing else, also where the store is open for writing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.datasets.store.examples import drawn
from wildtype.datasets.store import Store
from wildtype.errors import DatasetError
from wildtype.files import sha256_of_file

WRITES = {
    "DROP TABLE study": "DROP",
    "INSERT INTO study SELECT * FROM study": "INSERT",
    "UPDATE measurement SET value = 0": "UPDATE",
    "CREATE TEMP TABLE t AS SELECT 1": "CREATE",
    "CREATE OR REPLACE VIEW measurements AS SELECT 1 AS id": "CREATE",
    "WITH x AS (DELETE FROM measurement RETURNING id) SELECT id FROM x": "would change the store",
    "WITH x AS (INSERT INTO meta VALUES (9, 9) RETURNING 1) SELECT 1 FROM x": "would change the store",
    "BEGIN; DELETE FROM study; COMMIT": "3 statements",
    "SELECT 1; DROP TABLE study": "2 statements",
    "COMMIT": "TRANSACTION",
    "EXPLAIN ANALYZE DELETE FROM study": "EXPLAIN",
    "CHECKPOINT": "one SELECT",
    "SELECT * FROM query('DROP TABLE study')": "cannot be answered",
}
REACHES = {
    "SELECT * FROM read_csv('{secret}')": "Cannot access",
    "SELECT * FROM read_text('{secret}')": "Cannot access",
    "SELECT * FROM read_blob('{secret}')": "Cannot access",
    "SELECT * FROM glob('{folder}/*')": "Cannot access",
    "SELECT * FROM '{secret}'": "Cannot access",
    "SELECT * FROM read_parquet('https://example.org/x.parquet')": "one|nothing else|cannot",
    "ATTACH '{folder}/new.duckdb'": "ATTACH",
    "ATTACH '{secret}' AS other (READ_ONLY)": "ATTACH",
    "COPY study TO '{folder}/out.csv'": "COPY",
    "COPY (SELECT 1) TO '{folder}/out.csv'": "COPY",
    "EXPORT DATABASE '{folder}/out'": "EXPORT",
    "INSTALL httpfs": "LOAD",
    "LOAD httpfs": "LOAD",
    "SET enable_external_access = true": "SET",
    "SET lock_configuration = false": "SET",
    "PRAGMA enable_external_access": "one SELECT|cannot be answered",
    "SELECT secret FROM frame": "cannot be answered",
    "SELECT getenv('HOME')": "cannot be answered",
    "": "0 statements",
    "-- nothing": "0 statements",
    "SELEC id FROM measurements": "cannot be answered: syntax error",
    "SELECT vale FROM measurements": 'vale.*"value"',
    "SELECT 'a'::INTEGER AS id FROM measurements": "cannot be answered",
    "SELECT id FROM measurements WHERE study = ?": "cannot be answered",
}


@pytest.fixture(scope="module", params=[False, True], ids=["writable", "read-only"])
def opened(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    path = tmp_path_factory.mktemp("sandbox") / "store.duckdb"
    with Store.create(path) as store:
        store.ingest(drawn(30))
        before = store.content_hash()
    with Store.open(path, read_only=request.param) as store:
        yield store
        assert store.content_hash() == before


@pytest.mark.parametrize("sql", [*WRITES, *REACHES])
def test_sql_that_does_more_than_read_is_refused(opened: Store, tmp_path: Path, sql: str) -> None:
    import pandas as pd

    frame = pd.DataFrame({"secret": [1]})  # a variable that SQL could take for a table
    secret = tmp_path / "secret.csv"
    secret.write_text("id\n1\n")
    on_disk = sha256_of_file(opened.path)
    text = sql.format(secret=secret, folder=tmp_path)
    with pytest.raises(DatasetError, match=(WRITES | REACHES)[sql]) as refused, opened.query(text) as batches:
        batches.read_all()
    assert "\n" not in str(refused.value)
    with pytest.raises(DatasetError):
        opened.select(text)
    assert opened.studies()[0].rows == 30
    assert sha256_of_file(opened.path) == on_disk
    assert [path.name for path in tmp_path.iterdir()] == ["secret.csv"]
    assert len(frame) == 1


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT phenotype, count(*) FROM measurements GROUP BY 1",
        "WITH a AS (SELECT 1 AS one) SELECT * FROM a -- a remark",
        "FROM measurements SELECT id LIMIT 3;",
        "DESCRIBE measurements",
        "VALUES (1), (2)",
        "SELECT * FROM genotype",
    ],
)
def test_sql_that_reads_is_answered(opened: Store, sql: str) -> None:
    with opened.query(sql) as batches:
        assert batches.read_all().num_rows > 0


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT value, study FROM measurements", "value DOUBLE, study VARCHAR: .* must give the column id"),
        ("SELECT id FROM genotype", "id UUID"),
        ("SELECT 7::BIGINT AS id", "7 is not the id of a measurement"),
        ("SELECT NULL::BIGINT AS id", "NULL"),
        ("SELECT id FROM measurements WHERE value > 100", "gives no measurements"),
    ],
)
def test_measurements_are_named_by_their_id(opened: Store, sql: str, message: str) -> None:
    with pytest.raises(DatasetError, match=message):
        opened.select(sql)


def test_an_id_counts_once_and_further_columns_do_not_matter(opened: Store) -> None:
    sql = "SELECT value, id FROM measurements UNION ALL SELECT n, id FROM measurements ORDER BY 1 DESC"
    assert len(opened.select(sql)) == 30


def test_reading_in_batches_leaves_the_store_usable(opened: Store) -> None:
    with opened.query("SELECT range AS i FROM range(500000)") as batches:
        first = next(iter(batches)).num_rows
        assert len(opened.select()) == 30
    assert 0 < first < 500_000
