"""`wildtype data build`: an organism and its datasets, from publishers' files or by simulation."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wildtype.cli.output import Json, console, print_json

if TYPE_CHECKING:
    from wildtype.organism import Organism
    from wildtype.phenotypes import Dataset


def build(
    organism: Annotated[str, typer.Argument(help="yeast, ecoli-core or ecoli-ijo1366.")],
    source: Annotated[Path | None, typer.Option("--from", help="Folder of publishers' files.")] = None,
    alleles: Annotated[
        str, typer.Option(help="averaged: alleles of a gene pair give one row; apart: one row each.")
    ] = "averaged",
    json: Json = False,
) -> None:
    """Build an organism and all its datasets, and print what was kept and what was dropped."""
    from wildtype.organism import Organism
    from wildtype.report.table import print_card, print_relations
    from wildtype.sources import catalogue

    cards = []

    def report(built: Organism | Dataset) -> None:
        if isinstance(built, Organism):
            if not json:
                print_relations(built, console())
            return
        cards.append(built.card())
        if not json:
            print_card(cards[-1], console())

    catalogue.build(organism, source, alleles=alleles, report=report)
    if json:
        print_json(cards)
