"""`wildtype data build`: an organism and its datasets, from publishers' files or by simulation."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wildtype.cli.output import Json, console, notes, print_json

if TYPE_CHECKING:
    from wildtype.sources.catalogue import Built


def build(
    organism: Annotated[str, typer.Argument(help="yeast, ecoli-core, ecoli-core-foreign or ecoli-ijo1366.")],
    source: Annotated[Path | None, typer.Option("--from", help="Folder of publishers' files.")] = None,
    alleles: Annotated[
        str, typer.Option(help="averaged: one row for all alleles of a gene pair; apart: one row for each.")
    ] = "averaged",
    string: Annotated[
        str,
        typer.Option(
            help="Build only a variant of the organism, with this version of STRING, for data.organism."
        ),
    ] = "",
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Print the whole card of each: stages, policies, counts.")
    ] = False,
    json: Json = False,
) -> None:
    """Build an organism and the datasets whose files are there; print a line about each."""
    from wildtype.errors import DatasetError
    from wildtype.organism import Organism
    from wildtype.report.data_tables import card_line, organism_line, print_card, print_relations
    from wildtype.sources import catalogue

    cards: list[dict[str, Any]] = []

    def report(built: Built) -> None:
        if isinstance(built, catalogue.LeftOut):
            cards.append({"name": built.name, "left_out": built.why})
            notes().print(f"{built.name} is left out: {built.why}", soft_wrap=True)
        elif isinstance(built, Organism):
            if verbose and not json:
                print_relations(built, console())
            elif not json:
                console().print(organism_line(built), highlight=False, soft_wrap=True)
        else:
            cards.append(built.card())
            if verbose and not json:
                print_card(cards[-1], console())
            elif not json:
                console().print(card_line(cards[-1]), highlight=False, soft_wrap=True)

    if string:
        if source is None:
            raise DatasetError("--string needs a folder of publishers' files: name it with --from FOLDER")
        built = catalogue.build_variant(organism, source, string=string)
        report(built)
        cards.append({"name": built.name, "relations": list(built.graphs)})
    else:
        catalogue.build(organism, source, alleles=alleles, report=report)
    if json:
        print_json(cards)
    elif not verbose and not string:
        notes().print("`wildtype data show NAME` prints what was kept and dropped; --verbose does so for all")
