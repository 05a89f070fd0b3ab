"""`Store`: all measurements in one file, study by study."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from wildtype.datasets.measurements import Measurements, parts_of
from wildtype.datasets.reading import ReadReport
from wildtype.datasets.records import Study
from wildtype.datasets.store import canonical, ingest, schema, selection
from wildtype.datasets.store.connection import (
    close,
    connect,
    measurement_ids,
    plainly,
    query_rows,
    read_batches,
)
from wildtype.datasets.store.limits import Limits, scratch_of
from wildtype.datasets.store.query import Query
from wildtype.errors import DatasetError, OutputError
from wildtype.files import cache_dir, writing

if TYPE_CHECKING:
    import pyarrow as pa
    from duckdb import DuckDBPyConnection


def store_path() -> Path:
    """Return the default path of the store."""
    return cache_dir() / "store.duckdb"


@dataclass(frozen=True)
class StoredStudy:
    """A study in a store.

    Attributes
    ----------
    study : Study
        What it is, its licence and its citation.
    rows : int
        Measurements.
    readings : tuple of ReadReport
        Reports on the rows of its files.
    """

    study: Study
    rows: int
    readings: tuple[ReadReport, ...]

    @property
    def name(self) -> str:
        """Key of the study in the store."""
        return self.study.name

    @property
    def licence(self) -> str:
        """Terms of its publisher, as far as known."""
        return self.study.licence

    @property
    def citation(self) -> str:
        """What to cite."""
        return self.study.publication.citation


class Store:
    """Measurements in one DuckDB file; make one with `create` or `open` and use it in a ``with`` block.

    A store is written by one process at a time, and read by any number while none writes; it is not to be
    shared between threads. While it is open for writing, or if that process was killed, a log of changes
    is kept beside the file (``.wal``) and is part of it.
    """

    def __init__(
        self, path: Path, connection: DuckDBPyConnection, read_only: bool, limits: Limits, closing: ExitStack
    ) -> None:
        self.path = path
        self.read_only = read_only
        self._limits = limits
        self._connection = connection
        self._closing = closing

    @classmethod
    def create(cls, path: str | Path) -> Self:
        """Make an empty store at `path` and open it for writing.

        Raises
        ------
        DatasetError
            If the file exists.
        OutputError
            If the place cannot be written.
        """
        path = Path(path)
        if path.exists():
            raise DatasetError(f"{path} exists already: open it, or name another file")
        with writing(path) as temporary:
            log = temporary.with_name(f"{temporary.name}.wal")
            try:
                with plainly(path), closing(connect(temporary, read_only=False)) as connection:
                    schema.create_tables(connection)
                # DuckDB says nothing where a write fails as it closes, and leaves the tables in its log.
                complete = not log.exists() and _has_tables(temporary)
            except DatasetError:  # of a new file, that it is damaged
                complete = False
            finally:
                log.unlink(missing_ok=True)
            if not complete:
                raise OutputError(f"cannot write {path}: a write failed; check the disk, and try again")
        return cls.open(path)

    @classmethod
    def open(cls, path: str | Path, *, read_only: bool = False, limits: Limits | None = None) -> Self:
        """Open the store at `path`; what its queries may use is bounded, by default as `Limits` says.

        Raises
        ------
        DatasetError
            If there is none, it is damaged, no store, of a later version, or in use by another process.
        """
        path = Path(path)
        if not path.is_file():
            raise DatasetError(f"there is no store at {path}: create one by ingesting a study")
        limits = limits or Limits()
        with ExitStack() as stack:
            scratch = stack.enter_context(scratch_of(path))
            connection = connect(path, read_only=read_only, limits=limits, scratch=scratch)
            stack.callback(close, connection)
            with plainly(path):
                schema.check_version(connection, str(path))
            return cls(path, connection, read_only, limits, stack.pop_all())

    def close(self) -> None:
        """Write everything to the one file and let other processes have it."""
        with plainly(self.path):
            self._closing.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @contextmanager
    def _transaction(self) -> Iterator[DuckDBPyConnection]:
        if self.read_only:
            raise DatasetError(f"the store {self.path} is open for reading only: open it for writing")
        with plainly(self.path):
            self._connection.begin()
            try:
                yield self._connection
                self._connection.commit()
            except BaseException:
                self._connection.rollback()
                raise

    def ingest(
        self,
        measurements: Measurements | Sequence[Measurements],
        readings: Sequence[ReadReport] = (),
        *,
        replace: bool = False,
    ) -> None:
        """Add all rows of one or more studies, each study in one transaction.

        Whatever ends the process, each study is there completely or as it was before.

        Parameters
        ----------
        measurements : Measurements, or sequence of Measurements
            All rows of each of its studies; a study of millions of rows comes in parts.
        readings : sequence of ReadReport
            Reports on the rows of the files of its one study.
        replace : bool
            Whether a study of the same name is deleted first; otherwise it is an error.

        Raises
        ------
        DatasetError
            If there are no rows, a study is in the store already, two studies share a name, or readings come
            with several studies.
        OutputError
            If the store cannot be written.
        """
        present = {study.name for study in selection.read_studies(self._connection).values()}
        studies: dict[str, list[Measurements]] = {}
        for part in parts_of(measurements):
            for code in np.unique(part.study).tolist():
                mine = part.study == code
                studies.setdefault(part.studies[code].id, []).append(part if mine.all() else part.take(mine))
        names = [parts[0].studies[parts[0].study[0]].name for parts in studies.values()]
        if not names:
            raise DatasetError("there are no measurements to ingest: expected at least one row")
        if len(set(names)) < len(names):
            raise DatasetError(f"two studies share a name among {', '.join(sorted(names))}: rename one")
        if readings and len(names) > 1:
            raise DatasetError(f"readings came with {len(names)} studies: ingest them one by one")
        known = sorted(present & set(names))
        if known and not replace:
            raise DatasetError(
                f"the store {self.path} holds the study {known[0]!r} already: replace it or leave it"
            )
        for name, parts in zip(names, studies.values(), strict=True):
            # Delete and insert in one transaction: an interrupted replacement leaves the old study.
            with self._transaction() as connection:
                if name in present:
                    ingest.delete_study(connection, name)
                ingest.insert_study(connection, parts, readings)

    def drop(self, study: str) -> None:
        """Delete a study; raises ``DatasetError`` naming those there are if it is not one of them."""
        present = [stored.name for stored in self.studies()]
        if study not in present:
            raise DatasetError(
                f"the store {self.path} holds no study {study!r}; it holds {', '.join(present) or 'none'}"
            )
        with self._transaction() as connection:
            ingest.delete_study(connection, study)

    def studies(self) -> tuple[StoredStudy, ...]:
        """Return the studies of the store, by name."""
        with plainly(self.path):
            counts = dict(
                query_rows(self._connection, "SELECT study, count(*) FROM measurement GROUP BY study")
            )
            readings = selection.read_readings(self._connection)
            return tuple(
                StoredStudy(study, counts.get(number, 0), readings.get(number, ()))
                for number, study in selection.read_studies(self._connection).items()
            )

    def query(self, sql: str) -> AbstractContextManager[pa.RecordBatchReader]:
        """Give the result of any SQL that reads, batch by batch, to be read inside a ``with`` block.

        The view ``measurements`` has one row per measurement (``DESCRIBE measurements`` lists its columns).

        Raises
        ------
        DatasetError
            If the SQL is not one statement that reads, is wrong, reaches out of the store, or takes too long.
        """
        return read_batches(self._connection, sql, self.path, self._limits.seconds)

    def select(self, query: Query | str | None = None) -> Measurements:
        """Return measurements in the canonical order, whatever the order in which they came in.

        Parameters
        ----------
        query : Query, str or None
            A query, or SQL that gives the column ``id`` of the view ``measurements`` (an id given twice
            counts once); None: all.

        Raises
        ------
        DatasetError
            If the SQL is not one statement that reads and gives ids of measurements, or there are none.
        """
        ids = self._ids(query)
        with plainly(self.path):
            return selection.fetch(self._connection, ids)

    def content_hash(self, query: Query | str | None = None) -> str:
        """Return the SHA-256 of the selected measurements; no order of rows, files or ingestion matters.

        Raises
        ------
        DatasetError
            As `select`; an empty store has a hash too.
        """
        return canonical.sha256_of_studies(self._by_study(query))

    def _by_study(self, query: Query | str | None) -> Iterator[tuple[str, Measurements]]:
        if query is not None:
            yield from canonical.by_study(self.select(query))
            return
        with plainly(self.path):  # one study after the other, so that a large store fits into memory
            for number, study in selection.read_studies(self._connection).items():
                yield study.name, selection.fetch_study(self._connection, number)

    def _ids(self, query: Query | str | None) -> NDArray[np.int64] | None:
        if query is None:
            return None
        sql = query.sql if isinstance(query, Query) else query
        return measurement_ids(self._connection, sql, self.path, self._limits.seconds)


def _has_tables(path: Path) -> bool:
    with closing(connect(path, read_only=True)) as connection:
        return schema.is_store(connection)
