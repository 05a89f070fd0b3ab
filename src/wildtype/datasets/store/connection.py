"""A locked-down connection to the file of a store, and its errors as sentences."""

from __future__ import annotations

import contextlib
import errno
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wildtype.errors import DatasetError, OutputError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

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


def connect(path: Path, *, read_only: bool) -> DuckDBPyConnection:
    """Return a connection to the DuckDB file at `path`.

    Raises
    ------
    DatasetError
        If it is no database, is damaged, or is in use.
    """
    import duckdb

    with plainly(path):
        return duckdb.connect(str(path), read_only=read_only, config=LOCKED_DOWN)


def query_rows(connection: DuckDBPyConnection, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    """Return all rows of a query with ``?`` for values."""
    return connection.execute(sql, values).fetchall()


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
    except duckdb.OutOfMemoryException as error:
        raise DatasetError(
            f"the query on the store {path} needs more memory than there is: ask for fewer rows at once"
        ) from error
    except duckdb.ConnectionException as error:
        raise DatasetError(
            f"the store {path} is already open in this program in another way: close that first"
        ) from error
    except duckdb.Error as error:
        raise _explain(str(error), path) from error


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
