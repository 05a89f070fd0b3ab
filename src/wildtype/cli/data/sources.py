"""`wildtype data sources`: rows read, kept and dropped of every file in a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wildtype.cli.output import Json, console, print_json


def sources(
    folder: Annotated[Path, typer.Option("--from", help="Folder of publishers' files for yeast.")],
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
    json: Json = False,
) -> None:
    """Read every file of a folder; print rows read, kept and dropped by reason, beside published counts."""
    from wildtype.report.data_tables import print_sources, sources_markdown
    from wildtype.sources.yeast.readers import survey

    rows = [one.to_json() for one in survey(folder)]
    if json:
        print_json(rows)
    elif markdown:
        typer.echo(sources_markdown(rows), nl=False)
    else:
        print_sources(rows, console())
