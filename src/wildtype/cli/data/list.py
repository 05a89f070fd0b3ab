"""`wildtype data list`: what can be loaded."""

from __future__ import annotations

from wildtype.cli.output import Json, console, print_json


def list_(json: Json = False) -> None:
    """List every dataset, its organism, and whether it is built."""
    from rich.table import Table

    from wildtype.sources.catalogue import DATASETS, IN_SILICO, is_built, known_datasets

    def origin(name: str, organism: str) -> str:
        if name not in DATASETS:
            return "own data or a query"
        return "simulation" if organism in IN_SILICO else "publishers' files"

    rows = [
        {"dataset": name, "organism": organism, "built": is_built(name), "made from": origin(name, organism)}
        for name, organism in known_datasets().items()
    ]
    if json:
        print_json(rows)
        return
    table = Table("dataset", "organism", "made from", "built")
    for row in rows:
        table.add_row(row["dataset"], row["organism"], row["made from"], "yes" if row["built"] else "no")  # type: ignore[arg-type]
    console().print(table)
