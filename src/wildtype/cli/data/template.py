"""`wildtype data template`: an example of a table that can be imported."""

from __future__ import annotations

from wildtype.cli.output import NewFile, give_example


def template(output: NewFile = None) -> None:
    """Write an example table with explanations, to fill in and import."""
    from wildtype.sources.user_tables.vocabulary import template as example

    give_example(example(), output)
