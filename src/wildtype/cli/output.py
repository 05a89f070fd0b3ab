"""Shared parts of commands: plug-ins, and the output of tables and JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wildtype.characters import unchanged, write_encoded
from wildtype.errors import ConfigError, OutputError
from wildtype.files import finite, write_text
from wildtype.terminal import PlainConsole

if TYPE_CHECKING:
    import pandas as pd


def _load(files: list[Path] | None) -> list[Path] | None:
    # A callback of the option, so that no command can forget it: is_eager loads the files before other
    # arguments are read, and help without --plugin imports nothing.
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
"""Plug-in files, loaded while the command line is parsed: a command only declares the option."""
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
NewFile = Annotated[
    Path | None, typer.Option("-o", "--output", help="Write to this new file instead of the terminal.")
]


def console() -> PlainConsole:
    """Return the console of tables: as wide as the terminal, 120 columns where there is none."""
    # Rich falls back to 80 columns in a pipe, where wide tables would be wrapped in the middle of numbers.
    out = PlainConsole()
    return out if out.is_terminal else PlainConsole(width=120)


def notes() -> PlainConsole:
    """Return the console of remarks that are not the result."""
    # Standard error, so that a pipe receives nothing but the table or the JSON.
    return PlainConsole(stderr=True, highlight=False)


def print_json(value: Any) -> None:
    """Print a JSON-like value; NaN becomes null."""
    # Python writes NaN as a bare word, which is no JSON and stops other readers.
    _print_json_text(json.dumps(finite(value), indent=2, allow_nan=False))


def _print_json_text(text: str) -> None:
    # JSON escapes hidden characters itself, all but this one.
    typer.echo(text.replace("\x7f", "\\u007f"))


def check_format(output: Path) -> None:
    """Refuse a file whose suffix is not that of a table format; raises ``ConfigError``."""
    if output.suffix not in (".csv", ".parquet", ".json"):
        raise ConfigError(f"cannot tell the format of {str(output)!r}: end it in .csv, .parquet or .json")


def give_example(text: str, output: Path | None) -> None:
    """Write an example to a new file, or print it; raises ``OutputError`` if the file is there."""
    if output is None:
        typer.echo(text, nl=False)
        return
    if output.exists():
        raise OutputError(f"{str(output)!r} exists already: name a new file")
    write_text(output, text)


def give_frame(frame: pd.DataFrame, output: Path | None, as_json: bool) -> None:
    """Write a table atomically to a file, in the format of its suffix, or print it.

    On a terminal it is printed as aligned text, elsewhere as CSV; with ``as_json`` always as JSON.
    """
    from wildtype.tables import frame_to_csv, writing_frame

    if output is None:
        if as_json:
            _print_json_text(frame.to_json(orient="records", indent=2, double_precision=15))
        elif console().is_terminal:
            console().print(frame.to_string(index=False))
        else:
            # A pipe receives the bytes that a file would hold.
            write_encoded(frame_to_csv(frame), unchanged(sys.stdout))
        return
    with writing_frame(output) as writer:
        writer.write(frame)
