"""`wildtype report`: everything about a run, or several, as one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wildtype.cli.output import Plugins, notes


def command(
    runs: Annotated[list[Path], typer.Argument(help="Folders of finished runs.")],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="The page; report.html in the run's folder if not said."),
    ] = None,
    screen: Annotated[
        int, typer.Option(help="Mutants to predict for the list of those not yet measured; 0: no list.")
    ] = 10_000,
    plugin: Plugins = None,
) -> None:
    """Write one HTML file that holds all it shows: tables, figures, mutants, and how the run was made."""
    from wildtype.errors import ConfigError
    from wildtype.experiments.folder import REPORT
    from wildtype.experiments.report import write_report

    if output is None and len(runs) > 1:
        raise ConfigError("say where the page of several runs goes, as in -o report.html")
    target = runs[0] / REPORT if output is None else output
    write_report(runs, target, screened=screen)
    notes().print(f"page: {target}", soft_wrap=True)
