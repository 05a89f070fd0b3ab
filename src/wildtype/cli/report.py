"""`wildtype report`: one HTML page about one or several runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wildtype.cli.output import Plugins, notes


def command(
    runs: Annotated[list[Path], typer.Argument(help="Directories of finished runs.")],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="The page; default: report.html in the run directory."),
    ] = None,
    screen: Annotated[int, typer.Option(help="Unmeasured mutants to predict and rank; 0: none.")] = 10_000,
    plugin: Plugins = None,
) -> None:
    """Write one self-contained HTML file: tables, figures, mutants, settings and versions of the run."""
    from wildtype.errors import ConfigError
    from wildtype.experiments.folder import REPORT
    from wildtype.experiments.report import write_report
    from wildtype.experiments.stored import Run

    if output is None and len(runs) > 1:
        raise ConfigError(
            "a page of several runs belongs to none of their directories: give a file, as in -o report.html"
        )
    target = runs[0] / REPORT if output is None else output
    write_report([Run(folder) for folder in runs], target, screened=screen)
    notes().print(f"page: {target}", soft_wrap=True)
