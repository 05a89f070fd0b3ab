"""`wildtype evaluate`: the comparison table of one or several runs, and further results on test rows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from wildtype.cli.output import Json, Plugins, console, print_json


def command(
    runs: Annotated[list[Path], typer.Argument(help="Run directories; several are summarised over seeds.")],
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
    intervals: Annotated[
        float | None,
        typer.Option(help="Print the observed coverage and width of intervals of this coverage, as in 0.9."),
    ] = None,
    calibration: Annotated[
        Path | None,
        typer.Option(help="Draw nominal against observed coverage into this .svg, .png or .pdf file."),
    ] = None,
    retrieval: Annotated[
        bool, typer.Option("--retrieval", help="Print how well strong interactions are found.")
    ] = False,
    each: Annotated[
        bool, typer.Option("--each", help="One table per phenotype or group, instead of the mean.")
    ] = False,
    agreement: Annotated[
        bool, typer.Option("--agreement", help="Print how closely runs agree on common test rows.")
    ] = False,
    plugin: Plugins = None,
    json: Json = False,
) -> None:
    """Print the comparison of one run, or mean and SD over several runs of the same data and split.

    Of several runs, folds of one seed are pooled and seeds averaged, with paired intervals over all rows.
    External tests and their groups have a table each.

    For several phenotypes this is the mean over them; --each prints the table of every phenotype, or of
    every group of them (vectors.csv lists the members of a group).
    """
    asked: dict[str, Any] = {}
    if intervals is not None:
        asked["intervals"] = _coverage(runs, (intervals,), None, json)
    if calibration is not None:
        asked["calibration"] = _coverage(runs, None, calibration, json)
    if retrieval:
        asked["retrieval"] = _retrieved(runs, json)
    if agreement:
        asked["agreement"] = _agreement(runs, json)
    if not asked:
        show_comparison(runs, markdown, each, json)
    elif json:
        print_json(asked)


def show_comparison(runs: list[Path], markdown: bool, each: bool, json: bool) -> None:
    """Print the table of a run, or the summary of several over their seeds."""
    from wildtype.experiments.pooled import summaries_of
    from wildtype.experiments.stored import Run
    from wildtype.report.comparison_tables import (
        comparison_to_markdown,
        print_comparison,
        print_summary,
        summary_to_markdown,
    )

    finished = [Run(path) for path in runs]
    if len(finished) > 1:
        groups = summaries_of(finished, each=each)
        if json:
            print_json([group.to_json() for group in groups])
        for group in [] if json else groups:
            if markdown:
                typer.echo(summary_to_markdown(group))
            else:
                print_summary(group, console())
        return
    chosen = finished[0].comparisons if each else finished[0].tables()
    if json:
        print_json({name: comparison.to_json() for name, comparison in chosen.items()})
    for comparison in [] if json else chosen.values():
        if markdown:
            typer.echo(comparison_to_markdown(comparison))
        else:
            print_comparison(comparison, console())


def _coverage(runs: list[Path], levels: tuple[float, ...] | None, drawing: Path | None, json: bool) -> Any:
    """Print, draw or return the coverage of one run's groups, or its mean over runs."""
    from wildtype.evaluation.calibration import LEVELS, MeanCoverage, mean_coverage, measure_coverage
    from wildtype.models.checkpoint import load_checkpoint
    from wildtype.report.comparison_tables import print_coverage, print_mean_coverage
    from wildtype.report.figures.calibration import draw_reliability

    replicates = 0 if levels is None or len(runs) > 1 else 1000
    found = [
        measure_coverage(load_checkpoint(path), levels or LEVELS, replicates=replicates) for path in runs
    ]
    means: list[MeanCoverage] = mean_coverage(found) if len(runs) > 1 else []
    if drawing is not None:
        draw_reliability(means or found[0], drawing)
    if json:
        return [one.to_json() for one in (means or found[0])]
    if len(runs) > 1:
        print_mean_coverage(means, console())
    else:
        print_coverage(found[0], console())
    return None


def _retrieved(runs: list[Path], json: bool) -> Any:
    from wildtype.experiments.stored import Run
    from wildtype.report.comparison_tables import print_retrieved, retrieval_json

    compared = {str(path): Run(path).comparisons for path in runs}
    for comparisons in [] if json else compared.values():
        for comparison in comparisons.values():
            print_retrieved(comparison, console())
    return {
        path: {name: retrieval_json(comparison) for name, comparison in comparisons.items()}
        for path, comparisons in compared.items()
    }


def _agreement(runs: list[Path], json: bool) -> Any:
    from wildtype.evaluation.agreement import agreement, read_predictions
    from wildtype.report.comparison_tables import print_agreement

    found = agreement([read_predictions(path) for path in runs])
    if not json:
        print_agreement(found, console())
    return [one.to_json() for one in found]
