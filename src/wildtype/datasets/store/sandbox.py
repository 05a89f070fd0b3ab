"""People's SQL: one statement that reads, in a transaction that cannot write."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from wildtype.datasets.store.connection import first_line, plainly
from wildtype.errors import DatasetError

if TYPE_CHECKING:
    import pyarrow as pa
    from duckdb import DuckDBPyConnection, DuckDBPyRelation

BATCH = 100_000
"""Rows of a result that are held at a time."""


@contextlib.contextmanager
def _relation(connection: DuckDBPyConnection, sql: str, path: Path) -> Iterator[DuckDBPyRelation]:
    """Give the result of people's SQL, on a connection of its own whose transaction is read-only.

    Statements that only look like reading (``WITH x AS (DELETE …) SELECT …``) fail in such a transaction.
    """
    import duckdb
    import pyarrow as pa

    with plainly(path):
        cursor = connection.cursor()
    try:
        try:
            statements = cursor.extract_statements(sql)
            if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
                what = f"{len(statements)} statements" if len(statements) != 1 else statements[0].type.name
                raise DatasetError(f"received SQL with {what}, expected one SELECT: a query only reads")
            cursor.execute("BEGIN TRANSACTION READ ONLY")
            yield cursor.sql(statements[0])
        except duckdb.PermissionException as error:
            raise DatasetError(
                f"the SQL may read the tables of the store and nothing else: {first_line(str(error))}"
            ) from error
        except (
            duckdb.ProgrammingError,
            duckdb.DataError,
            duckdb.NotSupportedError,
            duckdb.TransactionException,
            pa.ArrowException,
        ) as error:
            if "read-only mode" in str(error):
                raise DatasetError("the SQL would change the store, and a query only reads") from error
            raise DatasetError(f"the SQL cannot be answered: {first_line(str(error))}") from error
        except duckdb.Error:
            with plainly(path):
                raise
    finally:
        cursor.close()


@contextlib.contextmanager
def read(connection: DuckDBPyConnection, sql: str, path: Path) -> Iterator[pa.RecordBatchReader]:
    """Give the rows of people's SQL, batch by batch; read them inside the block.

    Raises
    ------
    DatasetError
        If the SQL is not one statement that reads, is wrong, or reaches out of the store.
    """
    with _relation(connection, sql, path) as relation, relation.to_arrow_reader(BATCH) as reader:
        yield reader


def measurement_ids(connection: DuckDBPyConnection, sql: str, path: Path) -> NDArray[np.int64]:
    """Return the ids of measurements that people's SQL names, ascending, each once.

    Raises
    ------
    DatasetError
        As `read`; and if the result has no column ``id`` of measurements.
    """
    with _relation(connection, sql, path) as relation:
        columns = dict(zip(relation.columns, relation.types, strict=True))
        if str(columns.get("id")) != "BIGINT":
            given = ", ".join(f"{name} {kind}" for name, kind in columns.items())
            raise DatasetError(
                f"the SQL gives the columns {given}: for measurements it must give the column id of the "
                "view measurements, as in SELECT id FROM measurements WHERE phenotype = 'epsilon'"
            )
        ids = relation.select("id").to_arrow_table()["id"]
    if ids.null_count:
        raise DatasetError("the SQL gives an id that is NULL: leave such rows out with WHERE id IS NOT NULL")
    return np.unique(ids.to_numpy())
