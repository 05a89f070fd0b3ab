"""Characters that a reader cannot see: control characters, marks of direction, zero-width marks, surrogates.

A terminal obeys some of them (colours, titles, the text order), and a name that holds one looks like another
name. The command line shows them as escapes, and imported names are refused.
"""

from __future__ import annotations

import contextlib
import sys
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Any, TextIO, cast

from wildtype.errors import shown

HIDDEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode categories of control and format characters, surrogates, and separators of lines and paragraphs."""
_WHITE = str.maketrans("", "", "\n\t")


def hidden_in(text: str) -> str:
    """Return the first hidden character of a name as an escape, as in messages; an empty text without one."""
    # isprintable is one pass in C: names without hidden characters, nearly all, cost nothing more.
    if text.isprintable():
        return ""
    return next((_escaped(c) for c in text if unicodedata.category(c) in HIDDEN), "")


def name_fault(name: str) -> str:
    """Return why a text cannot be a name: its first hidden character; an empty text if it has none.

    Whatever is imported is checked here, since two names that look alike would be two things.
    """
    found = hidden_in(name)
    return f"{shown(name)} holds the hidden character {found}: write the name without it" if found else ""


def first_fault(names: Iterable[str]) -> str:
    """Return `name_fault` of the first of several texts that has one; an empty text if none has."""
    return next(filter(None, map(name_fault, names)), "")


def visible(text: str) -> str:
    """Return a text with its hidden characters as escapes; line ends and tabs stay."""
    if text.translate(_WHITE).isprintable():
        return text
    return "".join(_escaped(c) if c not in "\n\t" and unicodedata.category(c) in HIDDEN else c for c in text)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


class VisibleStream:
    """A text stream that shows hidden characters, and characters that its encoding lacks, as escapes.

    Parameters
    ----------
    unchanged : text stream
        Where the text goes. What must stay as it is, such as colours, is written to it directly.
    """

    # No ``buffer``: bytes written there would pass unchecked.
    buffer = None

    def __init__(self, unchanged: TextIO) -> None:
        self.unchanged = unchanged

    def __getattr__(self, name: str) -> Any:
        return getattr(self.unchanged, name)

    def write(self, text: str) -> int:
        """Write a text; returns its length."""
        write_encoded(visible(text), self.unchanged)
        return len(text)

    def writelines(self, lines: Iterator[str]) -> None:
        """Write several texts."""
        for line in lines:
            self.write(line)


def write_encoded(text: str, stream: TextIO) -> None:
    """Write a text to a stream, with escapes of characters that its encoding lacks."""
    try:
        stream.write(text)
    except UnicodeEncodeError:
        encoding = stream.encoding or "ascii"
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))


def unchanged(stream: Any) -> TextIO:
    """Return the stream behind all streams that change what is written to them."""
    while True:
        # Rich puts a proxy in place of standard output while a progress bar is shown.
        behind = getattr(stream, "unchanged", None) or getattr(stream, "rich_proxied_file", None)
        if behind is None:
            return cast(TextIO, stream)
        stream = behind


@contextlib.contextmanager
def only_visible_output() -> Iterator[None]:
    """Let nothing that is printed here reach standard output or standard error with hidden characters."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (cast(TextIO, VisibleStream(stream)) for stream in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
