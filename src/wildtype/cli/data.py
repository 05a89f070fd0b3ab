"""`wildtype data`: what can be loaded, and building it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wildtype.cli.output import Json, console, print_json

if TYPE_CHECKING:
    from wildtype.organism import Organism
    from wildtype.phenotypes import Dataset

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@app.command("list")
def list_(json: Json = False) -> None:
    """List every dataset, its organism, and whether it is built."""
    from rich.table import Table

    from wildtype.sources.catalogue import DATASETS, IN_SILICO, is_built

    rows = [
        {
            "dataset": name,
            "organism": organism,
            "built": is_built(name),
            "made from": "simulation" if organism in IN_SILICO else "publishers' files",
        }
        for name, organism in DATASETS.items()
    ]
    if json:
        print_json(rows)
        return
    table = Table("dataset", "organism", "made from", "built")
    for row in rows:
        table.add_row(row["dataset"], row["organism"], row["made from"], "yes" if row["built"] else "no")  # type: ignore[arg-type]
    console().print(table)


@app.command()
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


@app.command()
def show(name: Annotated[str, typer.Argument(help="A dataset.")], json: Json = False) -> None:
    """Print a dataset's card: what it is, counts, exclusions, policies, noise."""
    from wildtype.report.table import print_card, print_relations
    from wildtype.sources.catalogue import load_dataset

    dataset = load_dataset(name)
    if json:
        print_json(dataset.card())
        return
    print_relations(dataset.organism, console())
    print_card(dataset.card(), console())
