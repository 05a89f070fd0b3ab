"""What commands share: where tables and JSON go."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer
from rich.console import Console

from wildtype.files import finite

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


def console() -> Console:
    """Return the console of tables: as wide as the terminal, 120 columns where there is none."""
    out = Console()
    return out if out.is_terminal else Console(width=120)


def notes() -> Console:
    """Return the console of remarks that are not the result."""
    return Console(stderr=True, highlight=False)


def print_json(value: Any) -> None:
    """Print a JSON-like value; NaN becomes null."""
    typer.echo(json.dumps(finite(value), indent=2, allow_nan=False))
