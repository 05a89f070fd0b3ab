"""Node and relation tables in a folder, exported from a store or a graph database, into a store.

Every key of a relation must be found among its nodes.

Legend: N nodes of a table · m rows of a relation.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from wildtype.datasets.measurements import Floats, Measurements, coded
from wildtype.datasets.reading import ReadReport
from wildtype.datasets.records import (
    RECORD_VERSION,
    Compound,
    Environment,
    PerturbationKind,
    PhenotypeDefinition,
    Publication,
    Study,
)
from wildtype.datasets.store.graph_export import FORMAT, MANIFEST, NODES, RELATIONS, GraphTable
from wildtype.datasets.store.store import Store
from wildtype.errors import DatasetError, SourceError, reason_of
from wildtype.mutants.ragged import Ints, entries_of

if TYPE_CHECKING:
    import pyarrow as pa


_Made = TypeVar("_Made")
_REMEDY = "export the graph again"


@dataclass(frozen=True, eq=False)
class GraphFiles:
    """All tables of a folder; make one with `read`.

    Attributes
    ----------
    folder : Path
        Where the files are.
    tables : dict of str to pyarrow.Table
        By name, columns named as in the header.
    """

    folder: Path
    tables: dict[str, pa.Table]

    @classmethod
    def read(cls, folder: Path) -> GraphFiles:
        """Read all files of `folder`.

        Raises
        ------
        SourceError
            If one is missing, damaged or not in the layout, or the layout is a later one.
        """
        _check_manifest(folder)
        return cls(folder, {table.name: _read(folder / table.file, table) for table in (*NODES, *RELATIONS)})

    def size(self, node: str) -> int:
        """Return N."""
        return int(self.tables[node].num_rows)

    def texts(self, node: str, column: str) -> list[str]:
        """Return a column [N] of texts."""
        return list(self.tables[node][column].to_pylist())

    def numbers(self, node: str, column: str) -> Floats:
        """Return a column [N] of numbers, NaN where there is none."""
        return np.asarray(self.tables[node][f"{column}:double"].to_numpy(), np.float64)

    def counts(self, name: str, column: str) -> Ints:
        """Return a column of integers; raises ``SourceError`` where one is missing."""
        found = self.tables[name][f"{column}:long"]
        if found.null_count:
            raise SourceError(f"{self.folder / name}.csv has a row without {column}: {_REMEDY}")
        return np.asarray(found.to_numpy(), np.int64)

    def make(self, node: str, record: Callable[[dict[str, Any], int], _Made]) -> tuple[_Made, ...]:
        """Return what `record` makes of the properties and the position of every node [N].

        Numbers that are not there are NaN.

        Raises
        ------
        SourceError
            Naming the first line of which it makes nothing.
        """
        table = self.tables[node].select([name for name in self.tables[node].column_names if name[0] != ":"])
        made = []
        for row, properties in enumerate(table.to_pylist()):
            plain = {
                name.partition(":")[0]: math.nan if value is None else value
                for name, value in properties.items()
                if ":ID" not in name
            }
            try:
                made.append(record(plain, row))
            except (ValueError, KeyError) as error:
                reason = " ".join(str(error).split())
                raise SourceError(
                    f"{self.folder / node}.csv, line {row + 2}: not a {node} ({reason}); {_REMEDY}"
                ) from error
        return tuple(made)

    def links(self, relation: str) -> tuple[Ints, Ints]:
        """Return the positions [m] of both ends among their nodes.

        Raises
        ------
        SourceError
            Naming the first line with a node that there is not.
        """
        import pyarrow.compute as pc

        rows = self.tables[relation]
        ends = []
        for header in rows.column_names[:2]:
            node = _label(header).lower()
            at = pc.index_in(rows[header], value_set=self._keys(node))
            if at.null_count:
                line = at.is_null().to_numpy().argmax() + 2
                raise SourceError(
                    f"{self.folder / relation}.csv, line {line}: {rows[header][line - 2].as_py()!r} is not "
                    f"in {node}.csv; {_REMEDY}"
                )
            ends.append(at.to_numpy().astype(np.int64))
        return ends[0], ends[1]

    def one(self, relation: str) -> Ints:
        """Return the position of the one end [N] to which the relation leads from every starting node.

        Raises
        ------
        SourceError
            If a node has none or several.
        """
        start, end = self.links(relation)
        node = _label(self.tables[relation].column_names[0]).lower()
        wrong = np.flatnonzero(np.bincount(start, minlength=self.size(node)) != 1)
        if wrong.size:
            key = self._keys(node)[int(wrong[0])].as_py()
            raise SourceError(
                f"{self.folder / relation}.csv: {node} {key!r} is not listed exactly once; {_REMEDY}"
            )
        out = np.empty(len(start), np.int64)
        out[start] = end
        return out

    def grouped(self, relation: str) -> list[list[int]]:
        """Return the positions of all ends of every starting node [N], by ``position`` where there is one."""
        start, end = self.links(relation)
        names = self.tables[relation].column_names
        # Databases export rows in any order; a stored position restores that of lists.
        place = self.counts(relation, "position") if "position:long" in names else end
        groups: list[list[int]] = [[] for _ in range(self.size(_label(names[0]).lower()))]
        for i in np.lexsort((place, start)).tolist():
            groups[start[i]].append(int(end[i]))
        return groups

    def _keys(self, node: str) -> pa.ChunkedArray:
        return self.tables[node].column(0)


def _label(header: str) -> str:
    return header.partition("(")[2].rstrip(")")


def _check_manifest(folder: Path) -> None:
    path = folder / MANIFEST
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        versions = found["format_version"], found["record_version"]
        later = versions[0] > FORMAT or versions[1] > RECORD_VERSION
    except FileNotFoundError:
        raise SourceError(f"{str(folder)!r} has no {MANIFEST}: name a folder of exported tables") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SourceError(f"{path} cannot be read ({reason_of(error)}): {_REMEDY}") from error
    if later:
        raise SourceError(
            f"{path} has versions {versions[0]} (layout) and {versions[1]} (records), this program knows up "
            f"to {FORMAT} and {RECORD_VERSION}: update wildtype"
        )


def _read(path: Path, table: GraphTable) -> pa.Table:
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow import csv

    types = {"double": pa.float64(), "long": pa.int64()}
    try:
        with open(path, "rb") as handle:
            received = handle.readline().decode("utf-8").strip().replace('"', "")
        if received != ",".join(table.header):
            raise SourceError(
                f"{path}, line 1: received {received[:120]!r}, expected {','.join(table.header)!r}; {_REMEDY}"
            )
        rows = csv.read_csv(
            path,
            csv.ReadOptions(use_threads=False),  # for the row in its messages
            csv.ParseOptions(newlines_in_values=False),
            csv.ConvertOptions(
                column_types={h: types.get(h.rpartition(":")[2], pa.string()) for h in table.header},
                null_values=[""],
                strings_can_be_null=False,
                quoted_strings_can_be_null=False,
            ),
        )
    except FileNotFoundError:
        raise SourceError(f"{path.name} is not in {str(path.parent)!r}: {_REMEDY}") from None
    except (OSError, UnicodeDecodeError, pa.ArrowException) as error:
        raise SourceError(f"{path} is damaged ({' '.join(str(error).split())}): {_REMEDY}") from error
    if ":ID" in table.header[0] and len(pc.unique(rows.column(0))) < rows.num_rows:
        raise SourceError(f"{path} has a repeated key: {_REMEDY}")
    return rows


def import_graph(folder: str | Path, path: str | Path) -> dict[str, int]:
    """Add all studies of a folder of node and relation tables to the store at `path`, made if there is none.

    Keys only join the tables: ids are made anew from the content of records. Each study is one transaction.

    Returns
    -------
    dict of str to int
        Measurements of every study that was added.

    Raises
    ------
    SourceError
        If a file is missing, damaged, of a later version, or names a node that there is not; nothing is
        written then.
    DatasetError
        If the store holds one of the studies already, nothing is written then either; or as `Store.open`.
    """
    measurements, readings = read_graph(folder)
    path = Path(path)
    with Store.open(path) if path.exists() else Store.create(path) as store:
        present = {stored.name for stored in store.studies()}
        names = [study.name for study in measurements.studies]
        known = next((name for name in names if name in present), None)
        if known is not None:
            raise DatasetError(f"the store {path} holds the study {known!r} already: drop it first")
        rows = {}
        for code, name in enumerate(names):
            part = measurements.take(measurements.study == code)
            store.ingest(part, readings[name])
            rows[name] = len(part)
    return rows


def read_graph(folder: str | Path) -> tuple[Measurements, dict[str, tuple[ReadReport, ...]]]:
    """Return all measurements of a folder of node and relation tables, and the readings of every study.

    Raises
    ------
    SourceError
        If a file is missing, damaged, of a later version, or names a node that there is not.
    """
    graph = GraphFiles.read(Path(folder))
    genotype, perturbation = graph.links("genotype_perturbation")
    counts = np.bincount(genotype, minlength=graph.size("genotype"))
    mutant = graph.one("measurement_genotype")
    at, offsets = entries_of((np.cumsum(counts) - counts)[mutant], counts[mutant])
    flat = perturbation[np.argsort(genotype, kind="stable")][at]
    kinds = graph.make("perturbation", lambda row, _: PerturbationKind[row["kind"].upper()])
    alleles, allele = coded(graph.texts("perturbation", "allele"))
    texts = {name: coded(graph.texts("measurement", name)) for name in ("trait", "replicate", "reference")}
    studies = _studies(graph)
    columns: dict[str, Any] = dict(
        studies=studies,
        study=graph.one("measurement_study"),
        environments=_environments(graph),
        environment=graph.one("measurement_environment"),
        phenotypes=graph.make("phenotype", lambda row, _: PhenotypeDefinition(**row)),
        phenotype=graph.one("measurement_phenotype"),
        genes=tuple(graph.texts("gene", "name:ID(Gene)")),
        gene=graph.one("perturbation_gene")[flat],
        alleles=alleles,
        allele=allele[flat],
        kind=np.array(kinds, np.uint8)[flat],
        dose=graph.numbers("perturbation", "dose")[flat],
        offsets=offsets,
        traits=texts["trait"][0],
        trait=texts["trait"][1],
        replicates=texts["replicate"][0],
        replicate=texts["replicate"][1],
        references=texts["reference"][0],
        reference=texts["reference"][1],
        n=graph.counts("measurement", "n"),
        **{name: graph.numbers("measurement", name) for name in ("value", "sd", "se", "p")},
    )
    try:
        measurements = Measurements(**columns)
    except DatasetError as error:
        raise SourceError(f"the tables in {str(folder)!r} hold what cannot be: {reason_of(error)}") from error
    return measurements, _readings(graph, studies)


def _studies(graph: GraphFiles) -> tuple[Study, ...]:
    publications = graph.make("publication", lambda row, _: Publication(**row))
    notes, note = graph.grouped("study_note"), graph.texts("note", "text")
    files, file = graph.grouped("study_file"), graph.make("file", lambda row, _: (row["name"], row["sha256"]))
    names, publication = graph.texts("study", "name:ID(Study)"), graph.one("study_publication")

    def study(row: dict[str, str], i: int) -> Study:
        return Study(
            name=names[i],
            publication=publications[publication[i]],
            organism=row["organism"],
            licence=row["licence"],
            notes=tuple(note[n] for n in notes[i]),
            files=dict(file[f] for f in files[i]),
        )

    return graph.make("study", study)


def _environments(graph: GraphFiles) -> tuple[Environment, ...]:
    compounds = graph.make("compound", lambda row, _: Compound(**row))
    contained = graph.grouped("environment_compound")
    return graph.make(
        "environment",
        lambda row, i: Environment(
            medium=row["medium"],
            temperature=row["temperature"],
            compounds=tuple(compounds[c] for c in contained[i]),
        ),
    )


def _readings(graph: GraphFiles, studies: tuple[Study, ...]) -> dict[str, tuple[ReadReport, ...]]:
    start, end = graph.links("reading_reason")
    reasons = graph.texts("reason", "text:ID(Reason)")
    dropped: list[dict[str, int]] = [{} for _ in range(graph.size("reading"))]
    rows = graph.counts("reading_reason", "rows")
    for i in np.lexsort((graph.counts("reading_reason", "position"), start)).tolist():
        dropped[start[i]][reasons[end[i]]] = int(rows[i])
    readings = graph.make("reading", lambda row, i: ReadReport(**row, dropped=dropped[i]))
    return {
        study.name: tuple(readings[i] for i in group)
        for study, group in zip(studies, graph.grouped("study_reading"), strict=True)
    }
