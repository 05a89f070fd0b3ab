"""`wildtype organism template`: an example of an `organism.yaml`."""

from __future__ import annotations

from typing import Annotated

import typer

from wildtype.cli.output import NewFile, give_example


def template(
    name: Annotated[
        str, typer.Argument(help="An organism made of publishers' files (yeast), to add your own to.")
    ] = "",
    output: NewFile = None,
) -> None:
    """Write an example of an organism.yaml with explanations, to fill in and import."""
    from wildtype.sources.user_organisms.description import text_of_built_in
    from wildtype.sources.user_organisms.template import TEMPLATE

    give_example(text_of_built_in(name) if name else TEMPLATE, output)
