"""`wildtype data ingest`: studies from a folder of publishers' files into the store."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wildtype.cli.data.query import StoreFile
from wildtype.cli.output import Json, console, notes, print_json


def ingest(
    folder: Annotated[Path, typer.Option("--from", help="Folder of publishers' files.")],
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[STUDY]...", help="Studies; without, all that are there.")
    ] = None,
    store: StoreFile = None,
    json: Json = False,
) -> None:
    """Read studies of yeast mutants into the store, each whole or not at all, and print what was dropped."""
    from rich.table import Table
    from rich.text import Text

    from wildtype.datasets.store import Store, store_path
    from wildtype.sources.yeast import readers
    from wildtype.sources.yeast.genes.sgd import read_genes

    genes = read_genes(folder)[0]
    path = store or store_path()
    table, left_out, rows = Table("study", "measurements", "file", "what became of its rows"), [], []
    with Store.open(path) if path.is_file() else Store.create(path) as opened:
        for one in readers.ingest(opened, folder, genes, names or ()):
            rows.append(one.to_json())
            if one.left_out:
                left_out.append(one.name)
            for i, reading in enumerate(one.readings):
                what, _, became = str(reading).partition(": ")
                first = (one.name, f"{one.measurements:,}") if i == 0 else ("", "")
                table.add_row(*map(Text, (*first, what, f"{reading.use}: {became}")))
    if json:
        print_json(rows)
        return
    console().print(table)
    if left_out:
        notes().print("files not in the folder: " + ", ".join(left_out), soft_wrap=True)
