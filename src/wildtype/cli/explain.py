"""`wildtype explain`: what models have learned, and on which of it their seeds agree."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wildtype.cli.output import Json, Plugins, console, notes, print_json


def command(
    runs: Annotated[
        list[Path], typer.Argument(help="Run folders; several are seeds of one model, and so are members.")
    ],
    sets: Annotated[
        list[str] | None,
        typer.Option("--set", help="Explain the prediction of this mutant, as in SGS1,SRS2:reduced."),
    ] = None,
    phenotype: Annotated[str, typer.Option(help="Of which mutants are explained.")] = "",
    condition: Annotated[str | None, typer.Option(help="One of the dataset's conditions.")] = None,
    only: Annotated[
        list[str] | None, typer.Option(help="Only this: heads, free, latents or mutants.")
    ] = None,
    annotations: Annotated[
        Path | None,
        typer.Option(
            help="Gene sets to look for: a table with columns gene and term; of yeast also a folder of "
            "publishers' files."
        ),
    ] = None,
    mutants: Annotated[int, typer.Option(help="Mutants whose latents are looked at.")] = 400,
    attended: Annotated[int, typer.Option(help="Genes per row that count as attended to.")] = 10,
    graphs: Annotated[int, typer.Option(help="Random graphs of equal degrees per relation.")] = 5,
    exchanges: Annotated[int, typer.Option(help="Exchanges of lists between genes, for free heads.")] = 100,
    rows: Annotated[int, typer.Option(help="Genes that are asked per relation, at most.")] = 2000,
    top: Annotated[int, typer.Option(help="Genes, sets and measured mutants to keep in a list.")] = 10,
    seed: Annotated[int, typer.Option(help="Of all draws.")] = 0,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write everything to this .json file.")
    ] = None,
    save: Annotated[
        bool, typer.Option("--save", help="Write explain.json into every run folder, for its report.")
    ] = False,
    draw: Annotated[
        Path | None, typer.Option(help="Draw the latents into this .svg, .png or .pdf file.")
    ] = None,
    plugin: Plugins = None,
    json: Json = False,
) -> None:
    """Print how well heads recover their relations, what free heads attend to, clusters of latents, and what
    carries the predictions of mutants; beside every claim, how far the models agree.
    """
    from wildtype.errors import ConfigError
    from wildtype.experiments.explain import explain_runs
    from wildtype.experiments.folder import EXPLANATION
    from wildtype.files import write_json
    from wildtype.inference.explaining.explain import SECTIONS, Asked
    from wildtype.inference.sets import parse_set
    from wildtype.report.explanation import check_drawing, draw_latents, print_explanation

    if output is not None and output.suffix != ".json":
        raise ConfigError(f"cannot tell the format of {str(output)!r}: end it in .json")
    if draw is not None:
        check_drawing(draw)
    asked = Asked(
        sets=[parse_set(text) for text in sets or []],
        phenotype=phenotype,
        condition=condition,
        sections=tuple(only or SECTIONS),
        mutants=mutants,
        attended=attended,
        graphs=graphs,
        exchanges=exchanges,
        rows=rows,
        top=top,
        seed=seed,
    )
    with notes().status("opening runs") as status:
        found = explain_runs(runs, asked, annotations=annotations, report_progress=status.update)
    record = found.to_json()
    if draw is not None:
        draw_latents(found.latents, draw)
    if output is not None:
        write_json(output, record)
    if save:
        for run in runs:
            write_json(run / EXPLANATION, record)
    if json:
        print_json(record)
    else:
        print_explanation(found, console())
