"""`wildtype organism list`: the organisms that can be loaded."""

from __future__ import annotations

from wildtype.cli.output import Json, console, print_json


def list_(json: Json = False) -> None:
    """List every organism, what it is made from, and how many genes it has."""
    from rich.table import Table

    from wildtype.sources.catalogue import organism_facts

    rows = organism_facts()
    if json:
        print_json(rows)
        return
    table = Table("organism", "made from", "genes", "datasets")
    for row in rows:
        genes = "not built" if row["genes"] is None else f"{row['genes']:,}"
        table.add_row(row["organism"], row["made from"], genes, str(row["datasets"]))
    console().print(table)
