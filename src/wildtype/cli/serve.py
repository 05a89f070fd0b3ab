"""`wildtype serve`: a local page where genes are typed and predictions read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wildtype.cli.output import Plugins, notes


def command(
    run: Annotated[Path, typer.Argument(help="Run or checkpoint folder.")],
    host: Annotated[
        str, typer.Option(help="Address of this machine to serve at; only this machine reaches the default.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to serve at; 0 takes any that is free.")] = 8765,
    open_: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    evidence: Annotated[
        Path | None, typer.Option(help="Own measurements to look up, too, as for predict.")
    ] = None,
    plugin: Plugins = None,
) -> None:
    """Serve a page where genes are typed: predictions with intervals, nearest measured mutants, neighbours.

    Ctrl-C ends it.
    """
    import webbrowser

    from wildtype.inference.own_evidence import read_evidence
    from wildtype.inference.predictor import load
    from wildtype.report.serving.answers import Answers
    from wildtype.report.serving.server import Server

    predictor = load(run)
    if evidence is not None:
        predictor = predictor.with_evidence(read_evidence(evidence))
    answers = Answers(predictor, run.resolve().name)
    with Server(answers, host, port) as server:
        answers.wake()
        if not server.is_local:
            notes().print(
                f"whoever reaches this machine at {host} can use the page and read what the model knows: "
                f"leave --host out unless you mean that",
                soft_wrap=True,
            )
        typer.echo(f"serving {run} at {server.url} until Ctrl-C")
        if open_:
            webbrowser.open(server.url)
        server.serve_forever()
