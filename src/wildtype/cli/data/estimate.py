"""`wildtype data estimate`: bytes and time to store the masks of a dataset's mutants."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wildtype.cli.output import Json, console, print_json

if TYPE_CHECKING:
    from wildtype.datasets import Dataset
    from wildtype.mutants.cell_graph import CellGraph

Relations = Annotated[
    str | None, typer.Option(help="Relations, separated by commas; all with edges if not given.")
]
WithMetabolism = Annotated[
    bool,
    typer.Option("--metabolism", help="Include edges of gene rules and between reactions and metabolites."),
]


def estimate(
    dataset: Annotated[str, typer.Argument(help="A dataset.")],
    layout: Annotated[str, typer.Option(help="uint8, bits, indices, nodes, or all.")] = "all",
    relations: Relations = None,
    metabolism: WithMetabolism = False,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="Folder for the masks; the free space of its disk is checked."),
    ] = Path("."),
    seconds: Annotated[float, typer.Option(help="Largest duration of the timed sample of a layout.")] = 1.0,
    json: Json = False,
) -> None:
    """Estimate the bytes and the time to store all masks; nothing is kept on disk."""
    from rich.table import Table

    from wildtype.mutants.precomputed import LAYOUTS
    from wildtype.mutants.precomputed import estimate as estimated

    data, graph = load(dataset, relations, metabolism)
    layouts = LAYOUTS if layout == "all" else (layout,)
    rows = estimated(graph, data.table, output, layouts=layouts, seconds=seconds)
    if json:
        print_json([asdict(row) | {"fits": row.fits} for row in rows])
        return
    table = Table("layout", "size", "time to build", "measured on", "free there", "fits")
    for row in rows:
        table.add_row(
            row.layout,
            human_bytes(row.bytes),
            human_seconds(row.build_seconds),
            f"{row.sample_mutants:,} mutants",
            human_bytes(row.free_bytes),
            "yes" if row.fits else "no",
        )
    first = rows[0]
    out = console()
    out.print(
        f"{dataset}: {first.mutants:,} mutants, {len(graph.relations)} relations, "
        f"{first.edges:,} stored edges; the sample was written to {first.sample_folder}",
        soft_wrap=True,
    )
    out.print(table)


def load(dataset: str, relations: str | None, metabolism: bool) -> tuple[Dataset, CellGraph]:
    """Return a dataset and the wiring of its organism, with the relations named in a list with commas."""
    from wildtype.mutants.cell_graph import CellGraph
    from wildtype.sources.catalogue import load_dataset

    names = None if relations is None else [name.strip() for name in relations.split(",") if name.strip()]
    data = load_dataset(dataset)
    return data, CellGraph.of(data.organism, names, metabolism=metabolism)


def human_bytes(count: float) -> str:
    """Return a number of bytes with a decimal unit: 840,751,890,000 is 841 GB."""
    for unit in ("B", "kB", "MB", "GB", "TB"):
        # 999.5 rounds to 1,000 in three digits, which is 1 of the next unit.
        if count < 999.5 or unit == "TB":
            return f"{count:.0f} B" if unit == "B" else f"{count:.3g} {unit}"
        count /= 1000
    raise AssertionError


def human_seconds(seconds: float) -> str:
    """Return a duration in a readable unit: 5400 is 1.5 h."""
    for unit, size in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.2g} s"
