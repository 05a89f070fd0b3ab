"""`wildtype data`: one file per command."""

from __future__ import annotations

import typer

from wildtype.cli.data.build import build
from wildtype.cli.data.estimate import estimate
from wildtype.cli.data.export_graph import export_graph
from wildtype.cli.data.features import features
from wildtype.cli.data.fetch import fetch
from wildtype.cli.data.import_graph import import_graph
from wildtype.cli.data.import_table import import_
from wildtype.cli.data.ingest import ingest
from wildtype.cli.data.list import list_
from wildtype.cli.data.precompute import precompute
from wildtype.cli.data.query import query
from wildtype.cli.data.show import show
from wildtype.cli.data.sources import sources
from wildtype.cli.data.split import split
from wildtype.cli.data.template import template
from wildtype.cli.data.verify import verify

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
app.command("list")(list_)
app.command()(build)
app.command()(show)
app.command()(split)
app.command()(sources)
app.command()(features)
app.command()(fetch)
app.command()(verify)
app.command("import")(import_)
app.command()(template)
app.command()(ingest)
app.command()(query)
app.command()(estimate)
app.command()(precompute)
app.command("export-graph")(export_graph)
app.command("import-graph")(import_graph)
