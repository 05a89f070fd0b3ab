"""Rows of a store as `Measurements`, in the canonical order.

Legend: m selected rows · k perturbations of one mutant · Σk perturbations of all.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from wildtype.datasets.measurements import Floats, Ints, Measurements
from wildtype.datasets.reading import ReadReport
from wildtype.datasets.records import (
    Compound,
    Environment,
    PerturbationKind,
    PhenotypeDefinition,
    Publication,
    Study,
)
from wildtype.datasets.store.canonical import with_ordered_names
from wildtype.datasets.store.connection import query_rows, registered
from wildtype.errors import DatasetError
from wildtype.memory import release_memory
from wildtype.mutants.ragged import BLOCK, entries_of

if TYPE_CHECKING:
    import pyarrow as pa
    from duckdb import DuckDBPyConnection

_WANTED = "wanted"


def fetch(connection: DuckDBPyConnection, ids: NDArray[np.int64] | None) -> Measurements:
    """Return the measurements of these ids (None: all), in the canonical order.

    Raises
    ------
    DatasetError
        If an id is no measurement's, or there are none at all.
    """
    if ids is None:
        ids = _ids(connection, "SELECT id FROM measurement ORDER BY id")
    if not len(ids):
        raise DatasetError("the query gives no measurements: widen it, or ingest a study first")
    # By blocks: as they come from the database, rows are three times as large.
    parts = []
    for start in range(0, len(ids), BLOCK):
        parts.append(_block(connection, ids[start : start + BLOCK]))
        if start:
            release_memory()
    rows = parts[0] if len(parts) == 1 else with_ordered_names(Measurements.concatenate(parts))
    if (np.diff(rows.study) >= 0).all():
        return rows
    return rows.take(np.argsort(rows.study, kind="stable"))  # rows of a study are in order of their ids


def _ids(connection: DuckDBPyConnection, sql: str, **values: int) -> Ints:
    found: Ints = connection.sql(sql, params=values).to_arrow_table()["id"].to_numpy()
    return found


def _block(connection: DuckDBPyConnection, ids: Ints) -> Measurements:
    import pyarrow as pa

    with registered(connection, _WANTED, pa.table({"id": ids})):
        # The range lets the database pass over all other parts of the table.
        found = connection.sql(
            f"SELECT * FROM measurement SEMI JOIN {_WANTED} USING (id) WHERE id BETWEEN $low AND $high "
            "ORDER BY id",
            params={"low": int(ids[0]), "high": int(ids[-1])},
        ).to_arrow_table()
    if len(ids) != found.num_rows:
        unknown = np.setdiff1d(ids, found["id"].to_numpy())
        raise DatasetError(
            f"{unknown[0]} is not the id of a measurement: select the id of the view measurements"
        )
    return _measurements(connection, found)


def fetch_study(connection: DuckDBPyConnection, number: int) -> Measurements:
    """Return all measurements of one study, in the canonical order."""
    return fetch(
        connection,
        _ids(connection, "SELECT id FROM measurement WHERE study = $number ORDER BY id", number=number),
    )


def _measurements(connection: DuckDBPyConnection, found: pa.Table) -> Measurements:
    studies = read_studies(connection)
    environments, phenotypes = _environments(connection), _phenotypes(connection)
    perturbations = connection.sql("SELECT * FROM perturbation ORDER BY number").to_arrow_table()
    flat, offsets = _perturbations(connection, found["genotype"].to_numpy())
    number = perturbations["number"].to_numpy()
    at = np.searchsorted(number, flat)
    genes, gene = _codes(perturbations["gene"])
    alleles, allele = _codes(perturbations["allele"])
    kind = np.array([PerturbationKind[name.upper()] for name in perturbations["kind"].to_pylist()], np.uint8)
    texts = {name: _codes(found[name]) for name in ("trait", "replicate", "reference")}
    named = {study: code for code, study in enumerate(sorted(studies, key=lambda n: studies[n].name))}

    def coded(column: str, known: Iterable[int]) -> Ints:
        numbers = np.array(list(known), np.int64)
        order = np.argsort(numbers)
        at: Ints = order[np.searchsorted(numbers[order], found[column].to_numpy())]
        return at

    rows = Measurements(
        studies=tuple(studies[number] for number in named),
        study=coded("study", named),
        environments=tuple(environments.values()),
        environment=coded("environment", environments),
        phenotypes=tuple(phenotypes.values()),
        phenotype=coded("phenotype", phenotypes),
        genes=genes,
        gene=gene[at],
        alleles=alleles,
        allele=allele[at],
        kind=kind[at],
        dose=_floats(perturbations["dose"])[at],
        offsets=offsets,
        traits=texts["trait"][0],
        trait=texts["trait"][1],
        replicates=texts["replicate"][0],
        replicate=texts["replicate"][1],
        references=texts["reference"][0],
        reference=texts["reference"][1],
        n=found["n"].to_numpy(),
        **{name: _floats(found[name]) for name in ("value", "sd", "se", "p")},
    )
    return with_ordered_names(rows)


def _perturbations(connection: DuckDBPyConnection, genotype: NDArray[np.int32]) -> tuple[Ints, Ints]:
    """Return the numbers [Σk] of all rows' perturbations and where each row's begin [m+1]."""
    import pyarrow as pa

    # Each genotype is fetched once, however many of its measurements are selected.
    distinct, code = np.unique(genotype, return_inverse=True)
    with registered(connection, _WANTED, pa.table({"number": distinct})):
        found = connection.sql(
            f"SELECT perturbations FROM genotype SEMI JOIN {_WANTED} USING (number) "
            "WHERE number BETWEEN $low AND $high ORDER BY number",
            params={"low": int(distinct[0]), "high": int(distinct[-1])},
        ).to_arrow_table()
    lists = found["perturbations"].combine_chunks()
    starts = lists.offsets.to_numpy().astype(np.int64)
    at, offsets = entries_of(starts[code], np.diff(starts)[code])
    return lists.values.to_numpy(zero_copy_only=False).astype(np.int64)[at], offsets


def _codes(texts: pa.ChunkedArray) -> tuple[tuple[str, ...], Ints]:
    encoded = texts.combine_chunks().dictionary_encode()
    return tuple(encoded.dictionary.to_pylist()), encoded.indices.to_numpy().astype(np.int64)


def _floats(numbers: pa.ChunkedArray) -> Floats:
    return np.asarray(numbers.to_numpy(), dtype=np.float64)  # NULL becomes NaN


def _number(value: float | None) -> float:
    return math.nan if value is None else value


def read_studies(connection: DuckDBPyConnection) -> dict[int, Study]:
    """Return every study by its number, by name."""
    files: dict[int, dict[str, str]] = {}
    for study, name, sha256 in query_rows(connection, "SELECT study, name, sha256 FROM file ORDER BY ALL"):
        files.setdefault(study, {})[name] = sha256
    publications = {
        number: Publication(citation=citation, doi=doi, pubmed=pubmed)
        for number, citation, doi, pubmed in query_rows(
            connection, "SELECT number, citation, doi, pubmed FROM publication"
        )
    }
    return {
        number: Study(
            name=name,
            publication=publications[publication],
            organism=organism,
            licence=licence,
            files=files.get(number, {}),
            notes=tuple(notes),
        )
        for number, name, publication, organism, licence, notes in query_rows(
            connection, "SELECT number, name, publication, organism, licence, notes FROM study ORDER BY name"
        )
    }


def read_readings(connection: DuckDBPyConnection) -> dict[int, tuple[ReadReport, ...]]:
    """Return the reports on the rows of every study's files, by the number of the study."""
    dropped: dict[tuple[int, int], dict[str, int]] = {}
    for study, reading, reason, rows in query_rows(
        connection, "SELECT study, reading, reason, rows FROM dropped ORDER BY study, reading, position"
    ):
        dropped.setdefault((study, reading), {})[reason] = rows
    readings: dict[int, tuple[ReadReport, ...]] = {}
    for study, position, file, use, rows, kept, renamed in query_rows(
        connection, "SELECT * FROM reading ORDER BY study, position"
    ):
        reading = ReadReport(file, use, rows, kept, dropped.get((study, position), {}), renamed)
        readings[study] = (*readings.get(study, ()), reading)
    return readings


def _environments(connection: DuckDBPyConnection) -> dict[int, Environment]:
    compounds: dict[int, list[Compound]] = {}
    for environment, name, dose, unit in query_rows(
        connection,
        "SELECT x.environment, c.name, c.dose, c.unit FROM environment_compound x "
        "JOIN compound c ON c.number = x.compound ORDER BY ALL",
    ):
        compounds.setdefault(environment, []).append(Compound(name=name, dose=_number(dose), unit=unit))
    return {
        number: Environment(
            medium=medium, temperature=_number(temperature), compounds=tuple(compounds.get(number, ()))
        )
        for number, medium, temperature in query_rows(
            connection, "SELECT number, medium, temperature FROM environment ORDER BY number"
        )
    }


def _phenotypes(connection: DuckDBPyConnection) -> dict[int, PhenotypeDefinition]:
    names = ("name", "unit", "direction", "level", "min_order", "strong", "description")
    rows = query_rows(connection, f"SELECT number, {', '.join(names)} FROM phenotype ORDER BY number")
    return {number: PhenotypeDefinition(**dict(zip(names, values, strict=True))) for number, *values in rows}
