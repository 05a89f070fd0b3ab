"""The tables of a store, and the flat view that users' SQL reads.

Every fact is stored once. Entities have an `id`, the content id of their record, equal on every machine, and
a `number`, which only joins the tables of one store. Unknown numbers are NULL, absent texts are empty.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from wildtype.datasets.records import RECORD_VERSION
from wildtype.datasets.store.connection import query_rows
from wildtype.errors import DatasetError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

SCHEMA_VERSION = 1
"""Version of the tables below; a store with a later one is refused."""

ENTITIES = {
    "publication": "citation VARCHAR, doi VARCHAR, pubmed VARCHAR",
    "environment": "medium VARCHAR, temperature DOUBLE, label VARCHAR",
    "compound": "name VARCHAR, dose DOUBLE, unit VARCHAR",
    "phenotype": "name VARCHAR, unit VARCHAR, direction VARCHAR, level VARCHAR, min_order BIGINT, "
    "strong DOUBLE, description VARCHAR",
    "perturbation": "gene VARCHAR, kind VARCHAR, allele VARCHAR, dose DOUBLE",
    "genotype": "n_genes INTEGER, perturbations INTEGER[]",
}
"""Tables of what several studies may share: their columns beside `number` and `id`."""

_OTHERS = {
    "meta": "schema_version INTEGER, record_version INTEGER",
    "study": "number BIGINT, id UUID, name VARCHAR, publication INTEGER, organism VARCHAR, licence VARCHAR, "
    "notes VARCHAR[]",
    "file": "study BIGINT, name VARCHAR, sha256 VARCHAR",
    "reading": "study BIGINT, position INTEGER, file VARCHAR, use VARCHAR, rows BIGINT, kept BIGINT, "
    "renamed BIGINT",
    "dropped": "study BIGINT, reading INTEGER, position INTEGER, reason VARCHAR, rows BIGINT",
    "environment_compound": "environment INTEGER, compound INTEGER",
    "measurement": "id BIGINT, study BIGINT, genotype INTEGER, environment INTEGER, phenotype INTEGER, "
    "trait VARCHAR, value DOUBLE, sd DOUBLE, se DOUBLE, p DOUBLE, n BIGINT, replicate VARCHAR, "
    "reference VARCHAR",
}

# Positions in the lists of `words` are the numbers of perturbations, with NULL where a number is not in use.
_VIEW = """
CREATE VIEW measurements AS
WITH words AS (
    SELECT list(gene ORDER BY number) AS genes, list(kind ORDER BY number) AS kinds,
           list(allele ORDER BY number) AS alleles, list(dose ORDER BY number) AS doses
    FROM (SELECT unnest(range(1, 1 + (SELECT max(number) FROM perturbation))) AS number)
    LEFT JOIN perturbation USING (number)
), compounds AS (
    SELECT x.environment, list(c.name ORDER BY c.name) AS names
    FROM environment_compound x JOIN compound c ON c.number = x.compound GROUP BY x.environment
)
SELECT
    m.id, s.name AS study,
    replace(g.id::VARCHAR, '-', '') AS genotype,
    coalesce(list_select(words.genes, g.perturbations), []) AS genes,
    coalesce(list_select(words.kinds, g.perturbations), []) AS kinds,
    coalesce(list_select(words.alleles, g.perturbations), []) AS alleles,
    coalesce(list_select(words.doses, g.perturbations), []) AS doses,
    g.n_genes,
    e.label AS environment, e.medium, e.temperature, coalesce(c.names, []) AS compounds,
    f.name AS phenotype, f.unit, m.trait,
    m.value, m.sd, m.se, m.p, m.n, m.replicate, m.reference,
    s.organism, p.citation, p.doi
FROM measurement m
JOIN study s ON s.number = m.study
JOIN publication p ON p.number = s.publication
JOIN genotype g ON g.number = m.genotype
JOIN environment e ON e.number = m.environment
LEFT JOIN compounds c ON c.environment = m.environment
JOIN phenotype f ON f.number = m.phenotype
CROSS JOIN words
"""


def create_tables(connection: DuckDBPyConnection) -> None:
    """Create the tables and the view in an empty database."""
    connection.begin()
    for name, columns in ENTITIES.items():
        connection.execute(f"CREATE TABLE {name} (number INTEGER, id UUID, {columns})")
    for name, columns in _OTHERS.items():
        connection.execute(f"CREATE TABLE {name} ({columns})")
    connection.execute(_VIEW)
    connection.execute("INSERT INTO meta VALUES (?, ?)", [SCHEMA_VERSION, RECORD_VERSION])
    connection.commit()


def is_store(connection: DuckDBPyConnection) -> bool:
    """Return whether a database has the tables of a store."""
    return bool(query_rows(connection, "SELECT 1 FROM duckdb_tables() WHERE table_name = 'meta'"))


def check_version(connection: DuckDBPyConnection, place: str) -> None:
    """Raise ``DatasetError`` unless the database at `place` holds tables of this version."""
    if not is_store(connection):
        raise DatasetError(f"{place} is a DuckDB database but not a store of measurements: name another file")
    ((schema, record),) = query_rows(connection, "SELECT schema_version, record_version FROM meta")
    if schema > SCHEMA_VERSION or record > RECORD_VERSION:
        raise DatasetError(
            f"the store {place} has versions {schema} (tables) and {record} (records), this program knows up "
            f"to {SCHEMA_VERSION} and {RECORD_VERSION}: update wildtype"
        )


def study_number(name: str) -> int:
    """Return the number [31 bits] of a study, which depends on its name alone.

    It heads the ids of the study's measurements: ``id = number · 2³² + position`` in the canonical order, so
    that equal studies have equal ids in every store.
    """
    # 31 bits, so that the id of a measurement stays a positive 64-bit integer.
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=4).digest(), "big") >> 1
