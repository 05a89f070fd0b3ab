"""The card of an organism as tables on a terminal."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text


def print_organism(card: dict[str, Any], console: Console) -> None:
    """Print what an organism holds, and what became of every row of every file."""
    genes = card["genes"]
    facts = {
        "name": card["name"],
        "description": card["description"],
        "genes": f"{genes['count']:,}" + _units(genes["of_units"]),
        "with a standard name": f"{genes['with_standard_name']:,}",
        "aliases": f"{genes['aliases']:,}",
        "essential": _count(genes["essential"]),
        "with a place": _count(genes["located"]),
    }
    if card["metabolism"] is not None:
        held = card["metabolism"]
        facts["metabolism"] = f"{held['reactions']:,} reactions, {held['genes']:,} genes"
    table = Table(show_header=False)
    for key, text in facts.items():
        table.add_row(Text(key), Text(text))
    for remark in card["remarks"]:
        table.add_row(Text("remark"), Text(remark))
    console.print(table)
    if card["relations"]:
        table = Table("relation", "edges", "genes", "direction", "source")
        for one in card["relations"]:
            direction = "directed" if one["directed"] else "none"
            source = f"{one['source']} {one['version']}".strip()
            row = (one["name"], f"{one['edges']:,}", f"{one['genes']:,}", direction, source)
            table.add_row(*map(Text, row))
        console.print(table)
    if card["features"]:
        table = Table("features", "columns", "genes", "source")
        for one in card["features"]:
            held = (one["name"], f"{one['columns']:,}", f"{one['genes']:,}", one["source"])
            table.add_row(*map(Text, held))
        console.print(table)
    if card["files"]:
        table = Table("file", "for", "rows", "used", "not used, and how it was read")
        for one in card["files"]:
            left = [f"{count:,} {reason}" for reason, count in one["dropped"].items()]
            left += [f"{reason}: {', '.join(names)}" for reason, names in one["examples"].items()]
            left += [one["note"]] if one["note"] else []
            counts = (f"{one['rows']:,}", f"{one['used']:,}")
            table.add_row(*map(Text, (one["file"], one["use"], *counts, "; ".join(left))))
        console.print(table)


def _count(number: int | None) -> str:
    return "not known" if number is None else f"{number:,}"


def _units(genes: int | None) -> str:
    return "" if genes is None else f" units of {genes:,} genes"
