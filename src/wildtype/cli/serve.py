"""`wildtype serve`: a local page that shows predictions for typed genes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wildtype.cli.evidence import Evidence, EvidenceMapping, with_evidence
from wildtype.cli.output import Plugins, notes


def command(
    run: Annotated[Path, typer.Argument(help="Run or checkpoint directory.")],
    host: Annotated[
        str, typer.Option(help="Address to listen at; the default is reachable from this machine only.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen at; 0 chooses a free one.")] = 8765,
    open_: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    evidence: Evidence = None,
    evidence_mapping: EvidenceMapping = None,
    plugin: Plugins = None,
) -> None:
    """Serve a page that predicts typed mutants, with intervals, nearest measured mutants and gene neighbours.

    Ctrl-C stops the server.
    """
    import webbrowser

    from wildtype.inference.predictor import load
    from wildtype.report.serving.answers import Answers
    from wildtype.report.serving.server import Server

    predictor = load(run)
    predictor = with_evidence(predictor, evidence, evidence_mapping)
    answers = Answers(predictor, run.resolve().name)
    with Server(answers, host, port) as server:
        # The port is bound already: a port in use is an error before the slow first encoding.
        answers.wake()
        if not server.is_local:
            notes().print(
                f"whoever reaches this machine at {host} can use the page and read stored measurements: "
                f"omit --host to serve this machine only",
                soft_wrap=True,
            )
        typer.echo(f"serving {run} at {server.url} until Ctrl-C")
        if open_:
            webbrowser.open(server.url)
        server.serve_forever()
