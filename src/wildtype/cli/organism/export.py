"""`wildtype organism export`: an organism as tables that can be imported."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wildtype.cli.output import Json, notes, print_json


def export(
    name: Annotated[str, typer.Argument(help="An organism.")],
    folder: Annotated[Path, typer.Argument(help="A new folder.")],
    json: Json = False,
) -> None:
    """Write an organism as tables with an organism.yaml, from which an equal organism is imported."""
    from wildtype.sources.catalogue import load_organism
    from wildtype.sources.user_organisms.description import YAML
    from wildtype.sources.user_organisms.export import export_organism

    lost = export_organism(load_organism(name), folder)
    for remark in lost:
        notes().print(f"not in tables: {remark}", soft_wrap=True)
    if json:
        print_json({"folder": str(folder), "description": str(folder / YAML), "left_out": lost})
        return
    notes().print(
        f"exported: {folder}; import it with `wildtype organism import {folder / YAML} --name NAME`",
        soft_wrap=True,
    )
