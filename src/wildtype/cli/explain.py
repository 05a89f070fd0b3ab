"""`wildtype explain`: what models have learned, and how well runs of different seeds agree."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wildtype.cli.output import Json, Plugins, console, notes, print_json


def command(
    runs: Annotated[
        list[Path], typer.Argument(help="Run directories; several must differ in their seeds only.")
    ],
    sets: Annotated[
        list[str] | None,
        typer.Option("--set", help="Explain the prediction of this mutant, such as SGS1,SRS2:reduced."),
    ] = None,
    phenotype: Annotated[str, typer.Option(help="Phenotype of the explained predictions.")] = "",
    condition: Annotated[str | None, typer.Option(help="One of the dataset's conditions.")] = None,
    only: Annotated[
        list[str] | None, typer.Option(help="Only this section: heads, free, latents or mutants.")
    ] = None,
    annotations: Annotated[
        Path | None,
        typer.Option(
            help="Gene sets to test: a table with columns gene and term; for yeast also a directory of "
            "publishers' files."
        ),
    ] = None,
    mutants: Annotated[int, typer.Option(help="Most mutants to cluster by their latents.")] = 400,
    attended: Annotated[int, typer.Option(help="Genes per row that count as attended to.")] = 10,
    graphs: Annotated[int, typer.Option(help="Random graphs of equal degrees, per relation.")] = 5,
    exchanges: Annotated[int, typer.Option(help="Exchanges of lists between genes, for free heads.")] = 100,
    rows: Annotated[int, typer.Option(help="Most genes per relation, for regularised heads.")] = 2000,
    top: Annotated[int, typer.Option(help="Genes, sets and measured mutants to keep in a list.")] = 10,
    seed: Annotated[int, typer.Option(help="Random seed.")] = 0,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write everything to this .json file.")
    ] = None,
    save: Annotated[
        bool, typer.Option("--save", help="Write explain.json into every run directory, for its report.")
    ] = False,
    draw: Annotated[
        Path | None, typer.Option(help="Draw the latents in this .svg, .png or .pdf file.")
    ] = None,
    plugin: Plugins = None,
    json: Json = False,
) -> None:
    """Explain trained models: heads and their relations, free heads, clusters of latents, and mutants.

    Every finding is printed with the agreement of the models.
    """
    from rich.text import Text

    from wildtype.errors import ConfigError
    from wildtype.experiments.explain import explain_runs
    from wildtype.experiments.folder import EXPLANATION
    from wildtype.files import write_json
    from wildtype.inference.explaining.explain import SECTIONS, ExplanationRequest
    from wildtype.inference.sets import parse_set
    from wildtype.report.explanation import check_drawing, draw_latents, print_explanation

    if output is not None and output.suffix != ".json":
        raise ConfigError(f"cannot tell the format of {str(output)!r}: end it in .json")
    if draw is not None:
        check_drawing(draw)
    request = ExplanationRequest(
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
        # A plain string would be read as markup here, whatever the console.
        found = explain_runs(
            runs, request, annotations=annotations, report_progress=lambda text: status.update(Text(text))
        )
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
