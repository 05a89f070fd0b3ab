"""Mutants that a command is asked about: options, and how they are read."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from wildtype.inference.prediction_file import RequestedRows

Sets = Annotated[
    list[str] | None,
    typer.Option("--set", help="Genes of one mutant, such as SGS1,SRS2 or CDC28:reduced,CLN2."),
]
SetFile = Annotated[
    Path | None,
    typer.Option("--file", help="CSV or Parquet file with a column 'genes'; - reads standard input."),
]


def requested_sets(sets: list[str] | None, file: Path | None) -> list[list[str]]:
    """Return the sets of both options, each as its genes; errors as in `read_sets` and `read_lines`."""
    from wildtype.inference.sets import parse_set, read_lines, read_sets

    found = [parse_set(text) for text in sets or []]
    if file is not None:
        found += read_lines(sys.stdin) if str(file) == "-" else read_sets(file)
    return found


def requested_rows(sets: list[str] | None, file: Path | None) -> RequestedRows:
    """Return the sets of both options, and the other columns of the file, which is read in blocks."""
    import pandas as pd

    from wildtype.inference.prediction_file import RequestedRows
    from wildtype.inference.sets import COLUMN

    table = None if file is None or str(file) == "-" else file
    first = requested_sets(sets, file if table is None else None)
    return RequestedRows(pd.DataFrame({COLUMN: first}, dtype=object), table)
