"""What commands share: plug-ins, and where tables and JSON go."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from wildtype.errors import ConfigError
from wildtype.files import finite, writing

if TYPE_CHECKING:
    import pandas as pd


def _load(files: list[Path] | None) -> list[Path] | None:
    from wildtype.plugins import load_plugins

    load_plugins(files)
    return files


Plugins = Annotated[
    list[Path] | None,
    typer.Option(
        "--plugin",
        metavar="FILE",
        callback=_load,
        is_eager=True,
        help="Python file that registers a model or baseline; may be given several times.",
    ),
]
"""Files of plug-ins, loaded while the command line is read: a command need only name the option."""
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


def check_format(output: Path) -> None:
    """Refuse a file name whose ending says no format that a table can be written in."""
    if output.suffix not in (".csv", ".parquet", ".json"):
        raise ConfigError(f"cannot tell the format of {str(output)!r}: end it in .csv, .parquet or .json")


def give_frame(frame: pd.DataFrame, output: Path | None, as_json: bool) -> None:
    """Write a table to a file, in the format that its ending says and whole or not at all; or print it: for a
    person on a terminal, else as CSV or JSON.
    """
    from wildtype.tables import frame_to_csv

    if output is None:
        if as_json:
            typer.echo(frame.to_json(orient="records", indent=2))
        elif console().is_terminal:
            console().print(frame.to_string(index=False))
        else:
            typer.echo(frame_to_csv(frame), nl=False)
        return
    with writing(output) as path:
        if output.suffix == ".csv":
            path.write_text(frame_to_csv(frame), encoding="utf-8", newline="")
        elif output.suffix == ".json":
            frame.to_json(path, orient="records", indent=2)
        else:
            frame.to_parquet(path, index=False)
