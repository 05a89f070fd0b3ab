"""`wildtype data template`: an example of a table that can be imported."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def template(
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write to this new file instead of the terminal.")
    ] = None,
) -> None:
    """Write an example table with explanations, to fill in and import."""
    from wildtype.errors import OutputError
    from wildtype.files import write_text
    from wildtype.sources.user_tables.vocabulary import template as example

    if output is None:
        typer.echo(example(), nl=False)
        return
    if output.exists():
        raise OutputError(f"{str(output)!r} exists already: name a new file")
    write_text(output, example())
