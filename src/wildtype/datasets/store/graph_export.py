"""A store as node and relation tables in a folder."""

from __future__ import annotations

from pathlib import Path

from wildtype.datasets.records import RECORD_VERSION
from wildtype.datasets.store.graph_layout import FORMAT, MANIFEST, NODES, RELATIONS, GraphTable
from wildtype.datasets.store.store import Store
from wildtype.errors import OutputError
from wildtype.files import write_json, writing_folder


def export_graph(store: Store, folder: str | Path) -> dict[str, int]:
    """Write all tables of a store to a new folder, whole or not at all, and return the rows of each file.

    Raises
    ------
    OutputError
        If there is something in the folder already, or it cannot be written.
    DatasetError
        If the store is damaged.
    """
    folder = Path(folder)
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise OutputError(f"there is something at {str(folder)!r} already: name a new folder")
    rows: dict[str, int] = {}
    with writing_folder(folder) as temporary:
        for table in (*NODES, *RELATIONS):
            rows[table.file] = _write(store, table, temporary / table.file)
        write_json(
            temporary / MANIFEST, {"format_version": FORMAT, "record_version": RECORD_VERSION, "rows": rows}
        )
    return rows


def _write(store: Store, table: GraphTable, path: Path) -> int:
    from pyarrow import csv

    count = 0
    with open(path, "wb") as handle:
        handle.write((",".join(table.header) + "\n").encode())
        with store.query(table.sql) as batches:
            options = csv.WriteOptions(include_header=False)
            with csv.CSVWriter(handle, batches.schema, write_options=options) as writer:
                for batch in batches:
                    writer.write_batch(batch)
                    count += batch.num_rows
    return count
