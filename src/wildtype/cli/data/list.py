"""`wildtype data list`: what can be loaded."""

from __future__ import annotations

from wildtype.cli.output import Json, console, print_json


def list_(json: Json = False) -> None:
    """List every dataset, its organism, and whether it is built."""
    from rich.table import Table

    from wildtype.sources.catalogue import DATASETS, IN_SILICO, is_built

    rows = [
        {
            "dataset": name,
            "organism": organism,
            "built": is_built(name),
            "made from": "simulation" if organism in IN_SILICO else "publishers' files",
        }
        for name, organism in DATASETS.items()
    ]
    if json:
        print_json(rows)
        return
    table = Table("dataset", "organism", "made from", "built")
    for row in rows:
        table.add_row(row["dataset"], row["organism"], row["made from"], "yes" if row["built"] else "no")  # type: ignore[arg-type]
    console().print(table)
