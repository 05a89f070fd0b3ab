"""Tables for people: CSV and Parquet are read, CSV is written without spreadsheet formulas, and objects have
short HTML in notebooks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wildtype.errors import SourceError, reason_of
from wildtype.unpacking import opened, read_parquet

if TYPE_CHECKING:
    import pandas as pd

FORMULA = re.compile(r"[=+\-@\t\r\n]")
"""First characters of a cell that a spreadsheet program evaluates as a formula (CSV injection)."""


def read_frame(path: str | Path, what: str, texts: type | Mapping[str, type] = str) -> pd.DataFrame:
    """Read a CSV or Parquet file.

    Parameters
    ----------
    path : str or path
        Of the file.
    what : str
        What is to be read from it, for messages.
    texts : type or mapping
        Types of the columns of a CSV file.

    Raises
    ------
    SourceError
        If the file is missing or cannot be read as a table.
    """
    import pandas as pd
    import pyarrow as pa

    path = Path(path)
    if not path.is_file():
        raise SourceError(f"there is no file {str(path)!r} to read {what} from: check the path")
    try:
        if path.suffix == ".parquet":
            # What pandas noted about the table when it was written may be damaged, and is not needed.
            frame: pd.DataFrame = read_parquet(path).to_pandas(ignore_metadata=True)
            return frame
        with opened(path) as stream:
            return pd.read_csv(stream, dtype=texts)
    except (pa.ArrowException, ValueError, OSError, EOFError) as error:
        raise SourceError(
            f"{str(path)!r} cannot be read as a table ({reason_of(error)}): give CSV or Parquet"
        ) from error


def frame_to_csv(frame: pd.DataFrame) -> str:
    """Return a table as CSV in which no text is a spreadsheet formula."""
    # Numbers stay: a minus sign in front of a number is no formula.
    texts = frame.select_dtypes("object").columns
    safe = frame.assign(**{name: frame[name].map(harmless) for name in texts})
    return str(safe.rename(columns=harmless).to_csv(index=False))


def harmless(cell: Any) -> Any:
    """Return a text with an apostrophe in front if it begins like a formula, anything else unchanged."""
    return f"'{cell}" if isinstance(cell, str) and FORMULA.match(cell) else cell


def facts_html(title: str, facts: Iterable[tuple[str, object]]) -> str:
    """Return a small HTML table of facts about an object, as notebooks show it; texts are escaped."""
    rows = "".join(
        f'<tr><th style="text-align:left">{escape(name)}</th>'
        f'<td style="text-align:left">{escape(str(value))}</td></tr>'
        for name, value in facts
    )
    return f"<strong>{escape(title)}</strong><table>{rows}</table>"
