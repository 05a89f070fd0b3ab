"""Pages: blocks of plain data, which templates turn into one HTML file without scripts.

Templates escape every text (Jinja2's autoescape), so that names from data are never markup; only drawings
made here are `Markup`. A page loads nothing from outside, follows the reader's light or dark mode, fits a
phone, and prints in light colours.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from wildtype.report.text_table import NONE

# A second protection behind the escaping: if markup from data ever reached a page, it could load and run
# nothing, also in a file that is opened from a disk or a shared folder.
POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""Content security policy: nothing is loaded or run, and only the page's inline style applies."""

Cell = object
"""Of a table or a list: shown as text, `Markup` as it is, None as a dash."""


class Block:
    """A piece of a page; ``kind`` names its macro in ``templates/blocks.html``."""

    kind: ClassVar[str]


@dataclass(frozen=True)
class Text(Block):
    """A paragraph; ``style`` is its class."""

    text: Cell
    style: str = ""
    kind = "text"


@dataclass(frozen=True)
class Heading(Block):
    """A heading within a section."""

    text: str
    kind = "heading"


@dataclass(frozen=True)
class Code(Block):
    """A command or a file, letter by letter."""

    text: str
    kind = "code"


@dataclass(frozen=True)
class Notes(Block):
    """Short sentences as a list."""

    notes: Sequence[Cell]
    style: str = "notes"
    kind = "notes"


@dataclass(frozen=True)
class Facts(Block):
    """Names and values, one pair a line."""

    facts: Sequence[tuple[Cell, Cell]]
    kind = "facts"


@dataclass(frozen=True)
class Table(Block):
    """A table that scrolls by itself where it is too wide.

    The first cell heads its row. A row that begins with an empty string is set off as a total.
    """

    caption: Cell
    head: Sequence[Cell]
    rows: Sequence[Sequence[Cell]]
    style: str = ""
    kind = "table"


@dataclass(frozen=True)
class Details(Block):
    """Blocks that are folded up below a summary."""

    summary: str
    blocks: Sequence[Block]
    kind = "details"


@dataclass(frozen=True)
class Group(Block):
    """Blocks that are laid out together, by the style's class."""

    style: str
    blocks: Sequence[Block]
    kind = "group"


@dataclass(frozen=True)
class Figure(Block):
    """A drawing with its title and its numbers."""

    title: str
    drawing: Markup
    numbers: Sequence[Block] = ()
    kind = "figure"


@dataclass(frozen=True)
class Card(Block):
    """A framed fact or two."""

    title: Cell
    blocks: Sequence[Block]
    kind = "card"


@dataclass(frozen=True)
class Drawing(Block):
    """A drawing without a title."""

    drawing: Markup
    kind = "drawing"


@dataclass(frozen=True)
class Section(Block):
    """A section with a heading, which links to itself unless ``linked`` is false."""

    key: str
    title: Cell
    blocks: Sequence[Block]
    linked: bool = True
    kind = "section"


def lines(cells: Iterable[Cell]) -> Markup:
    """Return cells with line breaks between them."""
    # `Markup.join` escapes every plain text; a join of `str` would not.
    return Markup("<br>").join(cell if isinstance(cell, Markup) else str(cell) for cell in cells)


@cache
def templates() -> Environment:
    """Return the templates of all pages; every name in them must be defined."""
    # StrictUndefined: a misspelt name is an error in a test, and not an empty place on a page.
    return Environment(
        loader=PackageLoader("wildtype.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        finalize=lambda value: NONE if value is None else value,
    )


def style_sheet(name: str) -> str:
    """Return one style sheet of the pages."""
    return templates().get_template(name).render()


def render(template: str, *, title: str, styles: Sequence[str], colours: str = "", **data: object) -> str:
    """Return a page.

    Parameters
    ----------
    template : str
        A file in ``templates/`` that extends ``page.html``.
    title : str
        Plain text.
    styles : sequence of str
        Style sheets in ``templates/`` beside that of all pages.
    colours : str
        Computed style; it is not escaped and holds no text from data.
    **data
        What the template shows.
    """
    made = templates().get_template(template)
    text = made.render(
        title=title, styles=["page.css", *styles], colours=Markup(colours), policy=POLICY, **data
    )
    # Names may hold halves of surrogate pairs, which no encoding can write.
    return text.encode("utf-8", "replace").decode()


def show(blocks: Sequence[Block]) -> Markup:
    """Return blocks as HTML, for a part of a page."""
    made = templates().get_template("blocks.html").module
    return Markup(made.show(blocks))  # type: ignore[attr-defined]  # macros are attributes of the module


def facts(values: Mapping[str, object]) -> Facts:
    """Return a mapping as names and values."""
    return Facts(list(values.items()))
