"""`wildtype data verify`: check that publishers' files and cached datasets are unchanged."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wildtype.cli.output import Json, console, notes, print_json


def verify(
    folder: Annotated[
        Path | None, typer.Argument(help="Folder of publishers' files; that of the cache if not given.")
    ] = None,
    json: Json = False,
) -> None:
    """Check every file against its publisher's checksum, and every organism and dataset against its own."""
    from rich.table import Table

    from wildtype.errors import SourceError
    from wildtype.sources.verify import verify as verify_all

    done = verify_all(folder)
    if json:
        print_json([one.to_json() for one in done])
    elif not done:
        notes().print("there is nothing to verify: no publishers' files, no organisms, no datasets")
    else:
        table = Table("kind", "name", "publisher", "state")
        for one in done:
            table.add_row(one.kind, one.name, one.publisher, one.state)
        console().print(table)
    damaged = [one for one in done if one.state == "damaged"]
    if damaged:
        reasons = "; ".join(f"{one.name}: {one.remark}" for one in damaged)
        verb = "is" if len(damaged) == 1 else "are"
        raise SourceError(f"{len(damaged)} of {len(done)} {verb} damaged: {reasons}")
