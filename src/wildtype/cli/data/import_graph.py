"""`wildtype data import-graph`: node and relation tables into the store."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wildtype.cli.data.query import StoreFile
from wildtype.cli.output import Json, console, print_json


def import_graph(
    folder: Annotated[Path, typer.Argument(help="A folder that export-graph wrote.")],
    store: StoreFile = None,
    json: Json = False,
) -> None:
    """Add all studies of exported node and relation tables to a store, made if there is none."""
    from rich.table import Table

    from wildtype.datasets.store import store_path
    from wildtype.datasets.store.graph_import import import_graph

    rows = import_graph(folder, store or store_path())
    if json:
        print_json(rows)
        return
    table = Table("study", "measurements")
    for study, count in rows.items():
        table.add_row(study, f"{count:,}")
    console().print(table)
