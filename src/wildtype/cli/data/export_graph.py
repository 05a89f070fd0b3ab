"""`wildtype data export-graph`: the store as tables that a graph database bulk-loads."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wildtype.cli.data.query import StoreFile
from wildtype.cli.output import Json, console, print_json


def export_graph(
    folder: Annotated[Path, typer.Argument(help="A new folder.")], store: StoreFile = None, json: Json = False
) -> None:
    """Write all nodes and relations of the store as CSV files with typed headers."""
    from rich.table import Table

    from wildtype.datasets.store import Store, store_path
    from wildtype.datasets.store.graph_export import export_graph

    with Store.open(store or store_path(), read_only=True) as opened:
        rows = export_graph(opened, folder)
    if json:
        print_json(rows)
        return
    table = Table("file", "rows")
    for file, count in rows.items():
        table.add_row(file, f"{count:,}")
    console().print(table)
