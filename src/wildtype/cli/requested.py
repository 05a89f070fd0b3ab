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
    typer.Option(
        "--set", help="Genes of one mutant, such as SGS1,SRS2, CDC28:reduced,CLN2 or PDR5:overexpressed@4."
    ),
]
SetFile = Annotated[
    Path | None,
    typer.Option(
        "--file",
        help="CSV or Parquet file with a column 'genes', and kind, dose and condition of each row in columns "
        "of these names; - reads one set per line from standard input.",
    ),
]


def requested_rows(sets: list[str] | None, file: Path | None) -> RequestedRows:
    """Return the sets of both options, and the other columns of the file, which is read in blocks.

    Raises ``SourceError`` as in `read_lines` where standard input is to be read.
    """
    import pandas as pd

    from wildtype.inference.prediction_file import RequestedRows
    from wildtype.inference.sets import COLUMN, parse_set, read_lines

    first = [parse_set(text) for text in sets or []]
    table = None if file is None or str(file) == "-" else file
    if table is None and file is not None:
        first += read_lines(sys.stdin)
    return RequestedRows(pd.DataFrame({COLUMN: first}, dtype=object), table)
