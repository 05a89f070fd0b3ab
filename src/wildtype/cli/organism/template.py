"""`wildtype organism template`: an example of an `organism.yaml`."""

from __future__ import annotations

from wildtype.cli.output import NewFile, give_example


def template(output: NewFile = None) -> None:
    """Write an example of an organism.yaml with explanations, to fill in and import."""
    from wildtype.sources.user_organisms.template import TEMPLATE

    give_example(TEMPLATE, output)
