"""`wildtype embed`: latents of mutants as a table, and the measured mutants whose latents are nearest."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wildtype.cli.output import Json, Plugins, check_format, give_frame
from wildtype.cli.requested import SetFile, Sets, requested_rows


def command(
    run: Annotated[Path, typer.Argument(help="Run or checkpoint directory.")],
    sets: Sets = None,
    file: SetFile = None,
    measured: Annotated[int, typer.Option(help="Also so many measured mutants, drawn at random.")] = 0,
    nearest: Annotated[
        int, typer.Option(help="Instead of latents, so many measured mutants that are most like each mutant.")
    ] = 0,
    among: Annotated[int, typer.Option(help="Measured mutants that --nearest searches, at most.")] = 2000,
    latent: Annotated[str, typer.Option(help="Only this latent, such as z_S.")] = "",
    member: Annotated[int, typer.Option(help="Which model of an ensemble, from 1.")] = 1,
    condition: Annotated[
        str | None, typer.Option(help="One of the dataset's conditions; the reference by default.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Random seed.")] = 0,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write to this .csv, .parquet or .json file.")
    ] = None,
    plugin: Plugins = None,
    json: Json = False,
) -> None:
    """Write the latents of mutants as a table, or find the interventions that look like them."""
    from wildtype.errors import GeneSetError

    if output is not None:
        check_format(output)
    requested = requested_rows(sets, file).all()
    if requested.empty and not measured:
        raise GeneSetError(
            "there is nothing to embed: name genes with --set A,B, give --file, or --measured 400"
        )
    from wildtype.inference.embed import Embedding
    from wildtype.inference.predictor import load

    embedding = Embedding(load(run).core, member=member, condition=condition, seed=seed)
    table = embedding.table(requested, measured)
    give_frame(
        embedding.nearest(table, nearest, among=among, latent=latent)
        if nearest
        else embedding.frame(table, latent=latent),
        output,
        json,
    )
