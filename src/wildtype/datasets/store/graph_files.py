"""Node and relation tables read from a folder, with every key of a relation found among its nodes.

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

from wildtype.datasets.measurements import Floats
from wildtype.datasets.records import RECORD_VERSION
from wildtype.datasets.store.graph_layout import FORMAT, MANIFEST, NODES, RELATIONS, GraphTable
from wildtype.errors import SourceError, reason_of
from wildtype.mutants.ragged import Ints

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
        Where they stand.
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
        """Return a column of whole numbers; raises ``SourceError`` where one is missing."""
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
                f"{self.folder / relation}.csv: {node} {key!r} does not stand there once; {_REMEDY}"
            )
        out = np.empty(len(start), np.int64)
        out[start] = end
        return out

    def grouped(self, relation: str) -> list[list[int]]:
        """Return the positions of all ends of every starting node [N], by ``position`` where there is one."""
        start, end = self.links(relation)
        names = self.tables[relation].column_names
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
        raise SourceError(f"{path} has a key that stands twice: {_REMEDY}")
    return rows
