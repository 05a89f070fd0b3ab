"""`wildtype data precompute`: the masks of a dataset's mutants, stored."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wildtype.cli.data.estimate import Relations, WithMetabolism, human_bytes, human_seconds, load
from wildtype.cli.output import Json, console, notes, print_json

CHECKED = 256


def precompute(
    dataset: Annotated[str, typer.Argument(help="A dataset.")],
    layout: Annotated[str, typer.Option(help="uint8, bits, indices or nodes.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="A folder that does not exist yet.")],
    relations: Relations = None,
    metabolism: WithMetabolism = False,
    json: Json = False,
) -> None:
    """Estimate, write the masks of every mutant, and compare some of them with generated ones."""
    import numpy as np
    from rich.progress import Progress

    from wildtype.mutants.precomputed import PrecomputedMasks, estimate, write_masks

    data, graph = load(dataset, relations, metabolism)
    (row,) = estimate(graph, data.table, output, layouts=[layout])
    notes().print(
        f"{human_bytes(row.bytes)}, about {human_seconds(row.build_seconds)} (measured on "
        f"{row.sample_mutants:,} mutants); {human_bytes(row.free_bytes)} are free there",
        soft_wrap=True,
    )
    with Progress(console=notes(), disable=json, transient=True) as progress:
        bar = progress.add_task(f"masks as {layout}", total=row.mutants)
        write_masks(
            graph,
            data.table,
            output,
            layout,
            progress=lambda done, total: progress.update(bar, completed=done, total=total),
        )
    masks = PrecomputedMasks.open(output, graph, data.table)
    rows = np.unique(np.linspace(0, len(masks) - 1, CHECKED).astype(np.int64))
    masks.check(rows)
    result = {
        "dataset": dataset,
        "layout": layout,
        "folder": str(output),
        "mutants": len(masks),
        "bytes": row.bytes,
        "compared_with_generated": len(rows),
    }
    if json:
        print_json(result)
        return
    console().print(
        f"{len(masks):,} mutants in {output}: {human_bytes(row.bytes)}; {len(rows)} of them were read "
        f"back and are as generated",
        soft_wrap=True,
    )
