"""`wildtype data`: one file per command."""

from __future__ import annotations

import typer

from wildtype.cli.data.build import build
from wildtype.cli.data.list import list_
from wildtype.cli.data.show import show

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
app.command("list")(list_)
app.command()(build)
app.command()(show)
