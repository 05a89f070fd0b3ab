"""`wildtype organism`: one file per command."""

from __future__ import annotations

import typer

from wildtype.cli.organism.export import export
from wildtype.cli.organism.import_organism import import_
from wildtype.cli.organism.list import list_
from wildtype.cli.organism.show import show
from wildtype.cli.organism.template import template

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
app.command("list")(list_)
app.command("import")(import_)
app.command()(show)
app.command()(export)
app.command()(template)
