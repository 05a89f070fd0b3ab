"""`wildtype data show`: the card of a dataset."""

from __future__ import annotations

from typing import Annotated

import typer

from wildtype.cli.output import Json, console, print_json


def show(name: Annotated[str, typer.Argument(help="A dataset.")], json: Json = False) -> None:
    """Print a dataset's card: what it is, counts, exclusions, policies, noise."""
    from wildtype.report.data_tables import print_card, print_relations
    from wildtype.sources.catalogue import load_dataset

    dataset = load_dataset(name)
    if json:
        print_json(dataset.card())
        return
    print_relations(dataset.organism, console())
    print_card(dataset.card(), console())
