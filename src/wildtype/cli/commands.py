"""All commands of `wildtype`, as one application: loaded by the entry point, which can already be stopped."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from wildtype.cli import (
    ablate,
    data,
    doctor,
    embed,
    evaluate,
    explain,
    organism,
    plot,
    predict,
    profile,
    report,
    reproduce,
    screen,
    serve,
    train,
    tune,
)

app = typer.Typer(
    name="wildtype",
    help="Predict what a cell does when genes are removed, added or overexpressed.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode=None,
)
app.add_typer(
    data.app, name="data", help="Organisms and datasets: list, fetch, build, ingest, query, import, verify."
)
app.add_typer(
    organism.app, name="organism", help="Organisms: list, import from your files, show, export, template."
)
app.command("train")(train.command)
app.command("ablate")(ablate.command)
app.command("tune")(tune.command)
app.command("evaluate")(evaluate.command)
app.command("predict")(predict.command)
app.command("screen")(screen.command)
app.command("embed")(embed.command)
app.command("explain")(explain.command)
app.command("report")(report.command)
app.command("plot")(plot.command)
app.command("reproduce")(reproduce.command)
app.add_typer(profile.app, name="profile", help="Where the time of a training run goes.")
app.command("serve")(serve.command)
app.command("doctor")(doctor.command)


def _version(requested: bool) -> None:
    if requested:
        from wildtype import __version__

        typer.echo(__version__)
        raise typer.Exit()


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    # The environment also reaches processes that a command starts, such as workers of a screen.
    if debug:
        os.environ["WILDTYPE_DEBUG"] = "1"
