"""Mutants that a command is asked about: options, and how they are read."""

from __future__ import annotations

import csv
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
        "of these names; - reads such a table, or one set per line, from standard input.",
    ),
]


def requested_rows(sets: list[str] | None, file: Path | None) -> RequestedRows:
    """Return the sets of both options, and the other columns of the file, which is read in blocks.

    Standard input is a table in CSV if its first line names a column ``genes``, else one set per line.

    Raises ``SourceError`` as in `read_lines` and `frame_of_text` where it is to be read.
    """
    import pandas as pd

    from wildtype.inference.prediction_file import RequestedRows
    from wildtype.inference.sets import COLUMN, check_plan, parse_set, read_lines
    from wildtype.tables import frame_of_text

    first = [parse_set(text) for text in sets or []]
    table = None if file is None or str(file) == "-" else file
    if table is None and file is not None:
        text = sys.stdin.read()
        if COLUMN in next(csv.reader([text.partition("\n")[0].rstrip("\r")]), []):
            piped = check_plan("standard input", frame_of_text(text, "standard input"))
            before = pd.DataFrame({COLUMN: first}, dtype=object)
            return RequestedRows(pd.concat([before, piped], ignore_index=True) if first else piped, None)
        first += read_lines(text.splitlines())
    return RequestedRows(pd.DataFrame({COLUMN: first}, dtype=object), table)
