"""`wildtype evaluate`: the honest table of a run again, or of several runs together."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wildtype.cli.output import Json, console, print_json


def command(
    runs: Annotated[list[Path], typer.Argument(help="Run folders; several are summed up over their seeds.")],
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown, for documents.")] = False,
    each: Annotated[
        bool, typer.Option("--each", help="One table per phenotype instead of their mean.")
    ] = False,
    json: Json = False,
) -> None:
    """Print the comparison of one run, or mean and SD over several runs of the same data and split.

    Of a run with several phenotypes this is the mean over them; --each prints the table of every one.
    """
    from wildtype.evaluation.summary import summarise
    from wildtype.report.summary import print_summary, summary_to_markdown
    from wildtype.report.table import print_comparison, to_markdown
    from wildtype.runs.run import Run

    finished = [Run(path) for path in runs]
    chosen = [
        {run.across.phenotype: run.across} if run.across is not None and not each else run.comparisons
        for run in finished
    ]
    if len(finished) > 1:
        groups = summarise(comparison for tables in chosen for comparison in tables.values())
        if json:
            print_json([group.to_json() for group in groups])
        for group in [] if json else groups:
            if markdown:
                typer.echo(summary_to_markdown(group))
            else:
                print_summary(group, console())
        return
    if json:
        print_json({name: comparison.to_json() for name, comparison in chosen[0].items()})
    for comparison in [] if json else chosen[0].values():
        if markdown:
            typer.echo(to_markdown(comparison))
        else:
            print_comparison(comparison, console())
