"""`wildtype data features`: the features of every gene, their sources, and possible leaks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wildtype.cli.output import Json, console, print_json


def features(
    name: Annotated[str, typer.Argument(help="An organism.")],
    for_: Annotated[
        str, typer.Option("--for", help="A dataset: also show the blocks refused for its targets.")
    ] = "",
    embeddings: Annotated[
        list[Path] | None, typer.Option(help="A file of vectors by gene name, as data.embeddings takes it.")
    ] = None,
    json: Json = False,
) -> None:
    """Print the feature blocks of an organism: columns, genes with values, source, possible leaks."""
    from wildtype.errors import DatasetError
    from wildtype.organism.features import feature_cards
    from wildtype.report.data_tables import print_features
    from wildtype.sources.catalogue import load_dataset, load_organism

    organism = load_organism(name)
    for path in embeddings or []:
        organism = organism.with_features(path)
    targets: list[str] = []
    if for_:
        dataset = load_dataset(for_)
        if dataset.organism.name != organism.name:
            raise DatasetError(
                f"dataset {for_!r} is of organism {dataset.organism.name!r}, not of {name!r}: "
                f"name one of its own"
            )
        targets = [s for p in dataset.phenotypes if p.name in dataset.targets for s in p.sources]
    cards = feature_cards(organism.features, targets)
    if json:
        print_json(cards)
    else:
        print_features(organism, cards, console())
