"""Mutants that a command is asked about: options, and how they are read."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    import pandas as pd

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


def requested_table(sets: list[str] | None, file: Path | None) -> pd.DataFrame:
    """Return the sets of both options as a table: ``genes``, and the other columns of the file."""
    import pandas as pd

    from wildtype.inference.sets import COLUMN, read_plan

    of_file = file is not None and str(file) != "-"
    first = pd.DataFrame({COLUMN: requested_sets(sets, None if of_file else file)}, dtype=object)
    plan = read_plan(file) if of_file and file is not None else first.iloc[:0]
    return plan if first.empty else pd.concat([first, plan], ignore_index=True)[list(plan.columns)]
