"""Tables as text: for a terminal, and as Markdown for a document.

Names come from users and publishers, so they are set as plain text: brackets in them are never markup.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from wildtype.evaluation.bootstrap import IntervalEstimate

_PLAIN = str.maketrans(
    {
        "−": "-",
        "–": "-",
        "—": "-",
        "·": "|",
        "→": "->",
        "Δ": "d",
        "ρ": "rho",
        "≥": ">=",
        "²": "^2",
        "…": "...",
    }
    | {"ε": "epsilon", "τ": "tau", "±": "+/-", "×": "x", "Σ": "sum", "√": "sqrt", "≤": "<=", "∅": "0"}
)
NONE = "–"


def plain_text(value: object, console: Console, style: str = "") -> Text:
    """Return text without markup, respelled where the terminal's encoding cannot show it."""
    # `Text` is never parsed for markup: a gene named "[red]" or "[/]" prints as it is.
    spelled = str(value)
    try:
        spelled.encode(console.encoding)
    except (UnicodeEncodeError, LookupError):
        spelled = spelled.translate(_PLAIN).encode("ascii", "replace").decode()
    return Text(spelled, style=style)


def print_line(text: object, console: Console, style: str = "") -> None:
    """Print one line or paragraph as plain text."""
    console.print(plain_text(text, console, style))


def plain_table(
    console: Console, columns: Sequence[str], numeric: Iterable[int] = (), title: str = "", widest: int = 0
) -> Table:
    """Return a table without rows that fits a terminal.

    Parameters
    ----------
    console : Console
        Whose width and encoding the table fits.
    columns : sequence of str
        Headings; where all are empty, none is printed.
    numeric : iterable of int
        Columns of figures, by position: set to the right and never wrapped.
    title : str
        Above the table; none where it is empty.
    widest : int
        Least width of the first column.
    """
    right = set(numeric)
    table = Table(
        title=plain_text(title, console, "bold") if title else None,
        title_justify="left",
        box=box.SIMPLE_HEAD,
        padding=(0, 1 if console.width >= 110 else 0, 0, 0),
        pad_edge=False,
        show_edge=False,
        show_header=any(columns),
    )
    for i, column in enumerate(columns):
        table.add_column(
            plain_text(column, console),
            justify="right" if i in right else "left",
            overflow="fold",
            no_wrap=i in right,
            min_width=widest if i == 0 and widest else None,
        )
    return table


def print_table(
    console: Console,
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    numeric: Iterable[int] = (),
    title: str = "",
    notes: Iterable[object] = (),
    bold: int | None = None,
    widest: int = 0,
) -> None:
    """Print a table (`plain_table`), with row ``bold`` emphasised and ``notes`` below it, one a line."""
    table = plain_table(console, columns, numeric, title, widest)
    for number, cells in enumerate(rows):
        style = "bold" if number == bold else ""
        table.add_row(*(plain_text(cell, console, style) for cell in cells))
    console.print(table)
    for note in notes:
        print_line(note, console, "dim")


def markdown_table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, figures: bool = False) -> str:
    """Return a table as Markdown; with ``figures``, all columns but the first are set to the right."""
    ruler = ["---", *["---:" if figures else "---"] * (len(columns) - 1)]
    escaped = [[markdown_cell(cell) for cell in row] for row in (columns, *rows)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (escaped[0], ruler, *escaped[1:]))


def markdown_cell(value: object) -> str:
    """Return a value as a cell of Markdown: one line, with bars escaped, as they would end the cell."""
    return str(value).replace("|", "\\|").replace("\n", " ")


def decimals(value: float, digits: int = 2) -> str:
    """Return a number with so many decimals, or a dash where it is not defined."""
    # U+2212 is as wide as a plus sign and never breaks a line; JSON and CSV keep the hyphen.
    return NONE if math.isnan(value) else f"{value:.{digits}f}".replace("-", "−")


def with_interval(estimate: IntervalEstimate) -> str:
    """Return a metric and its 95 % interval where it has one."""
    if math.isnan(estimate.value) or math.isnan(estimate.low):
        return decimals(estimate.value)
    return f"{decimals(estimate.value)} [{decimals(estimate.low)}, {decimals(estimate.high)}]"


def signed_decimals(value: float, digits: int = 3) -> str:
    """Return a number with its sign and so many decimals."""
    return NONE if math.isnan(value) else f"{value:+.{digits}f}".replace("-", "−")
