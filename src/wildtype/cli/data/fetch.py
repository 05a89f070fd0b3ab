"""`wildtype data fetch`: publishers' files into a folder, from their addresses or from a folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wildtype.cli.output import Json, console, notes, print_json

if TYPE_CHECKING:
    from wildtype.sources.fetch import Fetched


def fetch(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]...", help="Publishers, or publisher/file; all are listed if none is given."
        ),
    ] = None,
    to: Annotated[
        Path | None, typer.Option("--to", help="Folder for the files; the cache if not given.")
    ] = None,
    source: Annotated[
        Path | None, typer.Option("--from", help="Folder of files fetched by hand, to be checked and copied.")
    ] = None,
    json: Json = False,
) -> None:
    """Fetch publishers' files, check them, and list those that must be fetched by hand."""
    from wildtype.errors import SourceError
    from wildtype.sources.fetch import fetch as fetch_files

    if not names:
        _list(json)
        return
    done: list[Fetched] = []
    failure = None
    try:
        fetch_files(names, to, source=source, progress=not json, report=done.append)
    except SourceError as error:
        # Shown after the table, so that the files that were obtained are listed as well.
        failure = error
    if json:
        print_json([one.to_json() for one in done])
    elif done:
        _print(done)
    if failure is not None:
        raise failure


def _print(done: list[Fetched]) -> None:
    from rich.table import Table

    table = Table("publisher", "file", "state", "checksum")
    for one in done:
        checked = "as published" if one.confirmed else ("none published" if one.path else "")
        table.add_row(one.publisher, one.file, one.state, checked)
    console().print(table)
    for one in done:
        if one.remark:
            notes().print(f"{one.file}: {one.remark}", soft_wrap=True)
    folders = sorted({str(one.path.parent) for one in done if one.path is not None})
    for folder in folders:
        notes().print(f"folder: {folder}", soft_wrap=True)


def _list(json: bool) -> None:
    from rich.table import Table

    from wildtype.sources.publishers import publishers

    known = publishers().values()
    if json:
        print_json(
            [
                {
                    "name": publisher.name,
                    "title": publisher.title,
                    "licence": publisher.licence,
                    "citation": publisher.publication.citation,
                    "notes": list(publisher.notes),
                    "files": [
                        {
                            "name": file.name,
                            "urls": list(file.urls),
                            "sha256": file.sha256,
                            "by hand": file.gated,
                        }
                        for file in publisher.files
                    ],
                }
                for publisher in known
            ]
        )
        return
    table = Table("publisher", "what it is", "files", "by hand", "licence")
    for publisher in known:
        by_hand = sum(not file.urls for file in publisher.files)
        table.add_row(
            publisher.name, publisher.title, str(len(publisher.files)), str(by_hand or ""), publisher.licence
        )
    console().print(table)
