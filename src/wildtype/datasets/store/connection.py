"""A locked-down connection to a store's file, users' SQL in a read-only transaction, errors as sentences."""

from __future__ import annotations

import contextlib
import errno
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wildtype.datasets.store.limits import Bounded, Limits
from wildtype.errors import DatasetError, OutputError

if TYPE_CHECKING:
    import pyarrow as pa
    from duckdb import DuckDBPyConnection, DuckDBPyRelation


LOCKED_DOWN: dict[str, str | bool | int | float | list[str]] = {
    "enable_external_access": "false",  # no files, no network, no other database
    "python_enable_replacements": "false",  # names in SQL are tables, never variables of the caller
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "lock_configuration": "true",
}
"""Settings of every connection, which no SQL can change back."""
REMEDY = "restore it from a copy, or remove it and ingest again"


def connect(
    path: Path, *, read_only: bool, limits: Limits | None = None, scratch: Path | None = None
) -> DuckDBPyConnection:
    """Return a connection to the DuckDB file at `path`; without a folder for scratch files it writes none.

    Raises
    ------
    DatasetError
        If it is no database, is damaged, or is in use.
    """
    import duckdb

    limits = limits or Limits()
    bounds: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": f"{limits.memory_mib}MiB",
        "max_temp_directory_size": f"{limits.scratch_mib}MiB",
        "temp_directory": "" if scratch is None else str(scratch),
    }
    with plainly(path):
        return duckdb.connect(str(path), read_only=read_only, config=LOCKED_DOWN | bounds)


def close(connection: DuckDBPyConnection) -> None:
    """Close a connection, unless a call that was abandoned still uses it: that one ends with the process."""
    import duckdb

    with contextlib.suppress(duckdb.ResourceInUseException):
        connection.close()


def query_rows(connection: DuckDBPyConnection, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    """Return all rows of a query with ``?`` for values."""
    return connection.execute(sql, values).fetchall()


@contextlib.contextmanager
def registered(connection: DuckDBPyConnection, name: str, columns: pa.Table) -> Iterator[None]:
    """Let one SQL statement inside the block see the columns as a table of this name.

    DuckDB holds what was registered until the transaction ends. Of a reader that was read to its end nothing
    is left, of a table all its rows: a transaction of 41 million measurements would hold them all.
    """
    import pyarrow as pa

    batches = columns.to_batches()
    reader = pa.RecordBatchReader.from_batches(columns.schema, (batches.pop(0) for _ in range(len(batches))))
    connection.register(name, reader)
    try:
        yield
    finally:
        connection.unregister(name)


@contextlib.contextmanager
def plainly(path: Path) -> Iterator[None]:
    """Turn errors of DuckDB inside the block into one sentence about the store at `path`.

    Raises
    ------
    DatasetError
        If the store is damaged, in use, or a query needs more memory than there is.
    OutputError
        If the store cannot be written.
    """
    import duckdb

    try:
        yield
    except duckdb.InterruptException:
        raise KeyboardInterrupt from None
    except RuntimeError as error:
        if "Query interrupted" in str(error):  # what DuckDB makes of Ctrl-C
            raise KeyboardInterrupt from None
        raise
    except duckdb.OutOfMemoryException as error:
        raise _too_large(path) from error
    except duckdb.ConnectionException as error:
        raise DatasetError(
            f"the store {path} is already open in this program in another way: close that first"
        ) from error
    except duckdb.Error as error:
        raise _explain(str(error), path) from error


def _too_large(path: Path) -> DatasetError:
    return DatasetError(
        f"the query on the store {path} needs more memory or scratch space than it may use: ask for fewer "
        "rows at once, or allow more (--memory, --scratch)"
    )


def _explain(message: str, path: Path) -> DatasetError | OutputError:
    if "Could not set lock" in message:
        holder = re.search(r"\(PID \d+\)", message)
        return DatasetError(
            f"the store {path} is in use by another process{' ' + holder[0] if holder else ''}: "
            "wait until it has finished"
        )
    if "not a valid DuckDB database" in message:
        return DatasetError(f"{path} is not a store of measurements: name another file, or {REMEDY}")
    for number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM):
        if os.strerror(number) in message:
            return OutputError(f"the store {path} cannot be opened or written: {os.strerror(number).lower()}")
    return DatasetError(f"the store {path} is damaged ({first_line(message)}): {REMEDY}")


def first_line(message: str) -> str:
    """Return an error message of DuckDB without its class and without the SQL it quotes."""
    text = message.partition("\n\nLINE ")[0]
    return " ".join(re.sub(r"^(?:\w+ )*Error: ", "", text).split())


BATCH = 100_000
"""Rows of a result that are held at a time."""


@contextlib.contextmanager
def _relation(
    connection: DuckDBPyConnection, sql: str, path: Path, seconds: float
) -> Iterator[tuple[DuckDBPyRelation, Bounded]]:
    """Give the result of a user's SQL, on a separate connection whose transaction is read-only.

    It is to be read by the bounded calls that come with it.

    Statements that only look like reading (``WITH x AS (DELETE …) SELECT …``) fail in such a transaction.
    """
    import duckdb
    import pyarrow as pa

    with plainly(path):
        cursor = connection.cursor()
    bounded = Bounded(cursor, seconds, path)
    try:
        try:
            statements = cursor.extract_statements(sql)
            if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
                what = f"{len(statements)} statements" if len(statements) != 1 else statements[0].type.name
                raise DatasetError(f"received SQL with {what}, expected one SELECT: a query only reads")
            # The statement type alone does not protect: a SELECT may hold a DELETE in a WITH clause.
            cursor.execute("BEGIN TRANSACTION READ ONLY")
            yield bounded(lambda: cursor.sql(statements[0])), bounded
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
        if not bounded.abandoned:  # else closing would wait for the call that does not end
            cursor.close()


@contextlib.contextmanager
def read_batches(
    connection: DuckDBPyConnection, sql: str, path: Path, seconds: float
) -> Iterator[pa.RecordBatchReader]:
    """Give the rows of a user's SQL, batch by batch; read them inside the block.

    Raises
    ------
    DatasetError
        If the SQL is not one statement that reads, is wrong, reaches out of the store, or takes too long.
    """
    import pyarrow as pa

    def batches(reader: pa.RecordBatchReader, bounded: Bounded) -> Iterator[pa.RecordBatch]:
        while True:
            try:
                batch = bounded(lambda: next(reader, None))
            except OSError as error:  # an error of DuckDB while it computes the batch
                if "Out of Memory" in str(error):
                    raise _too_large(path) from error
                raise DatasetError(f"the SQL cannot be answered: {first_line(str(error))}") from error
            if batch is None:
                return
            yield batch

    with _relation(connection, sql, path, seconds) as (relation, bounded):
        reader = bounded(lambda: relation.to_arrow_reader(BATCH))
        yield pa.RecordBatchReader.from_batches(reader.schema, batches(reader, bounded))


def measurement_ids(
    connection: DuckDBPyConnection, sql: str, path: Path, seconds: float
) -> NDArray[np.int64]:
    """Return the ids of measurements that a user's SQL names, ascending, each once.

    Raises
    ------
    DatasetError
        As `read_batches`; and if the result has no column ``id`` of measurements.
    """
    with _relation(connection, sql, path, seconds) as (relation, bounded):
        columns = dict(zip(relation.columns, relation.types, strict=True))
        if str(columns.get("id")) != "BIGINT":
            given = ", ".join(f"{name} {kind}" for name, kind in columns.items())
            raise DatasetError(
                f"the SQL gives the columns {given}: for measurements it must give the column id of the "
                "view measurements, as in SELECT id FROM measurements WHERE phenotype = 'epsilon'"
            )
        ids = bounded(lambda: relation.select("id").to_arrow_table()["id"])
    if ids.null_count:
        raise DatasetError("the SQL gives an id that is NULL: leave such rows out with WHERE id IS NOT NULL")
    return np.unique(ids.to_numpy())
