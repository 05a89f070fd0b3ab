"""One study into the tables of a store, column by column; and out of them.

Everything here runs inside a transaction of the caller.

Legend: M measurements · k perturbations of one mutant · Σk perturbations of all · G different genotypes.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wildtype.datasets.measurements import Ints, Measurements
from wildtype.datasets.reading import ReadReport
from wildtype.datasets.records import Environment, Publication, Record
from wildtype.datasets.store.canonical import canonical_blocks
from wildtype.datasets.store.connection import query_rows, registered
from wildtype.datasets.store.schema import study_number
from wildtype.errors import DatasetError
from wildtype.memory import release_memory
from wildtype.mutants.ragged import BLOCK, entries_of

if TYPE_CHECKING:
    import pyarrow as pa
    from duckdb import DuckDBPyConnection

_STAGED = "staged"  # name under which columns are handed to the database


def insert_study(
    connection: DuckDBPyConnection, parts: Sequence[Measurements], readings: Sequence[ReadReport]
) -> None:
    """Insert the rows of one study, given in parts, and the reports on the rows of its files.

    Raises
    ------
    DatasetError
        If another study's name leads to the same ids.
    """
    study = parts[0].studies[parts[0].study[0]]
    number = study_number(study.name)
    for (taken,) in query_rows(connection, "SELECT name FROM study WHERE number = ?", [number]):
        raise DatasetError(f"the study {study.name!r} would have the ids of {taken!r}: rename it")
    (publication,) = _publications(connection, [study.publication])
    connection.execute(
        "INSERT INTO study VALUES (?, ?, ?, ?, ?, ?, ?)",
        [
            number,
            uuid.UUID(study.id),
            study.name,
            int(publication),
            study.organism,
            study.licence,
            list(study.notes),
        ],
    )
    _insert_many(connection, "file", [(number, name, sha256) for name, sha256 in study.files.items()])
    _insert_readings(connection, number, readings)
    start = 0
    for rows in canonical_blocks(parts):
        _insert_measurements(
            connection,
            number,
            rows,
            start,
            genotype=_genotypes(connection, rows),
            environment=_environments(connection, rows.environments)[rows.environment],
            phenotype=_phenotypes(connection, rows)[rows.phenotype],
        )
        start += len(rows)
        if start > BLOCK:
            release_memory()


def delete_study(connection: DuckDBPyConnection, name: str) -> None:
    """Delete a study, its measurements, and everything that only they referred to."""
    number = study_number(name)
    for table, column in (
        ("measurement", "study"),
        ("dropped", "study"),
        ("reading", "study"),
        ("file", "study"),
        ("study", "number"),
    ):
        connection.execute(f"DELETE FROM {table} WHERE {column} = ?", [number])
    for table, column, used in (
        ("genotype", "number", "SELECT genotype FROM measurement"),
        ("perturbation", "number", "SELECT unnest(perturbations) FROM genotype"),
        ("environment", "number", "SELECT environment FROM measurement"),
        ("environment_compound", "environment", "SELECT number FROM environment"),
        ("compound", "number", "SELECT compound FROM environment_compound"),
        ("phenotype", "number", "SELECT phenotype FROM measurement"),
        ("publication", "number", "SELECT publication FROM study"),
    ):
        connection.execute(f"DELETE FROM {table} WHERE {column} NOT IN (SELECT * FROM ({used}))")


def _insert_many(connection: DuckDBPyConnection, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
    if rows:
        marks = ", ".join("?" * len(rows[0]))
        connection.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)


def _insert_readings(connection: DuckDBPyConnection, study: int, readings: Sequence[ReadReport]) -> None:
    _insert_many(
        connection,
        "reading",
        [(study, i, r.file, r.use, r.rows, r.kept, r.renamed) for i, r in enumerate(readings)],
    )
    _insert_many(
        connection,
        "dropped",
        [
            (study, i, j, reason, count)
            for i, reading in enumerate(readings)
            for j, (reason, count) in enumerate(reading.dropped.items())
        ],
    )


def _insert_staged(connection: DuckDBPyConnection, table: str, columns: pa.Table) -> None:
    with registered(connection, _STAGED, columns):
        connection.execute(f"INSERT INTO {table} SELECT * FROM {_STAGED}")


def _numbers(connection: DuckDBPyConnection, table: str, ids: pa.Array, columns: dict[str, Any]) -> Ints:
    """Return the number of every entity, inserting those that the table does not hold yet.

    Parameters
    ----------
    ids : UUID array
        Content ids, each once.
    columns : dict of str to array
        The table's further columns.
    """
    import pyarrow as pa

    with registered(connection, _STAGED, pa.table({"position": np.arange(len(ids)), "id": ids})):
        known = connection.sql(
            f"SELECT position, number FROM {_STAGED} JOIN {table} USING (id)"
        ).to_arrow_table()
    numbers = np.zeros(len(ids), np.int64)
    numbers[known["position"].to_numpy()] = known["number"].to_numpy()
    new = np.flatnonzero(numbers == 0)
    if not new.size:
        return numbers
    numbers[new] = _last(connection, table) + 1 + np.arange(len(new))
    # Numbers go on from the last one; they join tables of one store and never leave it.
    inserted = pa.table({"number": pa.array(numbers, pa.int32()), "id": ids, **columns})
    _insert_staged(connection, table, inserted.take(new))
    return numbers


def _last(connection: DuckDBPyConnection, table: str) -> int:
    ((number,),) = query_rows(connection, f"SELECT coalesce(max(number), 0) FROM {table}")
    return int(number)


def _uuids(halves: NDArray[np.uint64]) -> pa.Array:
    """Return ids, given as two halves [m, 2], as UUIDs."""
    import pyarrow as pa

    data = pa.py_buffer(np.ascontiguousarray(halves.astype(">u8")))
    return pa.ExtensionArray.from_storage(
        pa.uuid(), pa.FixedSizeBinaryArray.from_buffers(pa.binary(16), len(halves), [None, data])
    )


def _ids(records: Iterable[Record]) -> pa.Array:
    parts = [(int(record.id[:16], 16), int(record.id[16:], 16)) for record in records]
    return _uuids(np.array(parts, dtype=np.uint64).reshape(-1, 2))


def _floats(numbers: Any) -> pa.Array:
    import pyarrow as pa

    return pa.array(np.asarray(numbers, dtype=np.float64), from_pandas=True)  # NaN becomes NULL


def _publications(connection: DuckDBPyConnection, publications: Sequence[Publication]) -> Ints:
    columns = {name: [getattr(p, name) for p in publications] for name in ("citation", "doi", "pubmed")}
    return _numbers(connection, "publication", _ids(publications), columns)


def _phenotypes(connection: DuckDBPyConnection, rows: Measurements) -> Ints:
    names = ("name", "unit", "direction", "level", "min_order", "strong", "description")
    columns = {name: [getattr(p, name) for p in rows.phenotypes] for name in names}
    return _numbers(connection, "phenotype", _ids(rows.phenotypes), columns)


def _environments(connection: DuckDBPyConnection, environments: Sequence[Environment]) -> Ints:
    before = _last(connection, "environment")
    numbers = _numbers(
        connection,
        "environment",
        _ids(environments),
        {
            "medium": [e.medium for e in environments],
            "temperature": _floats([e.temperature for e in environments]),
            "label": [str(e) for e in environments],
        },
    )
    compounds = {c.id: c for environment in environments for c in environment.compounds}
    columns = {
        "name": [c.name for c in compounds.values()],
        "dose": _floats([c.dose for c in compounds.values()]),
        "unit": [c.unit for c in compounds.values()],
    }
    compound = _numbers(connection, "compound", _ids(compounds.values()), columns) if compounds else ()
    number = dict(zip(compounds, compound, strict=True))
    _insert_many(
        connection,
        "environment_compound",
        [
            (int(at), int(number[c.id]))
            for environment, at in zip(environments, numbers, strict=True)
            if at > before
            for c in environment.compounds
        ],
    )
    return numbers


def _genotypes(connection: DuckDBPyConnection, rows: Measurements) -> Ints:
    """Return the number [M] of every row's genotype."""
    import pyarrow as pa

    distinct, code = rows.distinct_perturbations
    perturbation = _numbers(
        connection,
        "perturbation",
        _ids(distinct),
        {
            "gene": [p.gene for p in distinct],
            "kind": [p.kind.name.lower() for p in distinct],
            "allele": [p.allele for p in distinct],
            "dose": _floats([p.dose for p in distinct]),
        },
    )
    first, genotype = rows.genotypes
    at, offsets = entries_of(rows.offsets[first], rows.order[first])
    lists = pa.ListArray.from_arrays(
        pa.array(offsets, pa.int32()), pa.array(perturbation[code[at]], pa.int32())
    )
    columns = {"n_genes": pa.array(_genes_per_row(rows)[first], pa.int32()), "perturbations": lists}
    return _numbers(connection, "genotype", _uuids(rows.genotype_key[first]), columns)[genotype]


def _genes_per_row(rows: Measurements) -> Ints:
    """Return how many different genes [M] every row perturbs; perturbations of one gene are neighbours."""
    new = np.ones(len(rows.gene), bool)
    new[1:] = (np.diff(rows.row) > 0) | (np.diff(rows.gene) != 0)
    return np.bincount(rows.row[new], minlength=len(rows))


def _insert_measurements(
    connection: DuckDBPyConnection, study: int, rows: Measurements, start: int, **numbers: Ints
) -> None:
    import pyarrow as pa

    def texts(codes: Ints, names: Sequence[str]) -> pa.Array:
        return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), pa.array(names, pa.string()))

    columns = {
        # The id depends on the study's name and the canonical position, so equal studies have equal ids.
        "id": (study << 32) + start + np.arange(len(rows)), "study": np.full(len(rows), study),
        **{name: pa.array(codes, pa.int32()) for name, codes in numbers.items()},
        "trait": texts(rows.trait, rows.traits),
        **{name: _floats(getattr(rows, name)) for name in ("value", "sd", "se", "p")},
        "n": rows.n, "replicate": texts(rows.replicate, rows.replicates),
        "reference": texts(rows.reference, rows.references),
    }  # fmt: skip
    _insert_staged(connection, "measurement", pa.table(columns))
