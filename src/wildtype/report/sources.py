"""The table of sources: what became of the rows of every file, beside what its publisher states."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

HEADINGS = ("publisher", "file", "becomes", "rows", "kept", "dropped, by reason", "published")
Row = Mapping[str, Any]


def sources_markdown(rows: Sequence[Row]) -> str:
    """Return one Markdown table per group, and the files that are not there; rows as ``Surveyed.to_json``."""
    parts = []
    for group, cells in _groups(rows):
        lines = [f"### {group[0].upper()}{group[1:]}", ""]
        lines += ["| " + " | ".join(HEADINGS) + " |", "| --- | --- | --- | ---: | ---: | --- | --- |"]
        lines += ["| " + " | ".join(text.replace("|", "\\\\|") for text in row) + " |" for row in cells]
        parts.append("\n".join(lines))
    absent = _absent(rows)
    if absent:
        parts.append("Not in the folder, and so not read: " + ", ".join(f"`{name}`" for name in absent) + ".")
    return "\n\n".join(parts) + "\n"


def print_sources(rows: Sequence[Row], console: Console) -> None:
    """Print the same for people."""
    from rich.table import Table
    from rich.text import Text

    for group, cells in _groups(rows):
        table = Table(*HEADINGS[:-1], title=group)
        for row in cells:
            table.add_row(*(Text(text.strip("`")) for text in row[:-1]))
        console.print(table)
    absent = _absent(rows)
    if absent:
        console.print("not in the folder: " + ", ".join(absent), markup=False)


def _groups(rows: Sequence[Row]) -> Iterator[tuple[str, list[tuple[str, ...]]]]:
    for group in dict.fromkeys(row["group"] for row in rows):
        told: set[str] = set()
        cells: list[tuple[str, ...]] = []
        for row in rows:
            if row["group"] != group or row["left_out"]:
                continue
            whose = ", ".join(row["publishers"])
            published = "" if whose in told else _counts(row["published"])
            told.add(whose)
            renamed = f"; {row['renamed']:,} of the kept by an older name" if row["renamed"] else ""
            cells.append(
                (
                    whose,
                    f"`{row['file']}`",
                    row["becomes"],
                    f"{row['rows']:,}",
                    f"{row['kept']:,}",
                    (_counts(row["dropped"]) or "–") + renamed,
                    published or "–",
                )
            )
        if cells:
            yield group, cells


def _counts(counts: Mapping[str, int]) -> str:
    return "; ".join(f"{count:,} {what}" for what, count in counts.items())


def _absent(rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(row["reader"] for row in rows if row["left_out"]))
