"""`wildtype organism template`: an example of an `organism.yaml`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def template(
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write to this new file instead of the terminal.")
    ] = None,
) -> None:
    """Write an example of an organism.yaml with explanations, to fill in and import."""
    from wildtype.errors import OutputError
    from wildtype.files import write_text
    from wildtype.sources.user_organisms.template import TEMPLATE

    if output is None:
        typer.echo(TEMPLATE, nl=False)
        return
    if output.exists():
        raise OutputError(f"{str(output)!r} exists already: name a new file")
    write_text(output, TEMPLATE)
