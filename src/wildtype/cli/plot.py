"""`wildtype plot`: one figure of a run, or of several, for a publication."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wildtype.cli.output import Plugins, notes

KINDS = """comparison: every model with its interval and the noise ceiling;
predicted: predicted against measured values;
calibration: observed against nominal coverage of intervals;
reliability: observed share of calls against predicted probability;
error: error by order, by effect and by query;
learning: terms of the loss, their shares, the validation score;
time: time of a training step by phase."""


def command(
    kind: Annotated[str, typer.Argument(help=KINDS)],
    runs: Annotated[list[Path], typer.Argument(help="Directories of finished runs.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="A .pdf, .svg or .png file.")],
    plugin: Plugins = None,
) -> None:
    """Draw one figure, one or two journal columns wide, with embedded fonts."""
    from wildtype.experiments.report import write_plot

    write_plot(kind, runs, output)
    notes().print(f"figure: {output}", soft_wrap=True)
