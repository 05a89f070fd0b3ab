"""`wildtype organism show`: the card of an organism."""

from __future__ import annotations

from typing import Annotated

import typer

from wildtype.cli.output import Json, console, print_json


def show(name: Annotated[str, typer.Argument(help="An organism.")], json: Json = False) -> None:
    """Print an organism's card: what it holds, and what became of every row of every file."""
    from wildtype.report.organism_card import print_organism
    from wildtype.sources.user_organisms.register import read_card

    card = read_card(name)
    if json:
        print_json(card)
        return
    print_organism(card, console())
