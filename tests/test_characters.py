"""Characters that a reader cannot see never reach a terminal."""

from __future__ import annotations

import io
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wildtype.characters import HIDDEN, VisibleStream, hidden_in, only_visible_output, visible
from wildtype.terminal import PlainConsole

EVIL = "\x1b]0;title\x07\x1b[31mred\x9b2J \u202eabc\u2066 \u200b\ufeff\r\u2028 \udce9 \x7f"


def hidden(text: str) -> list[str]:
    return [c for c in text if unicodedata.category(c) in HIDDEN and c not in "\n\t"]


@given(st.text(st.characters(categories=["C", "Z", "L"], include_characters="\n\t\r\x1b")))
def test_a_visible_text_has_no_hidden_characters_and_loses_no_other(text: str) -> None:
    shown = visible(text)
    assert not hidden(shown)
    assert shown == "".join(c.encode("unicode_escape").decode() if c in hidden(text) else c for c in text)
    assert visible(shown) == shown
    assert bool(hidden_in(text)) == any(unicodedata.category(c) in HIDDEN for c in text)


@pytest.mark.parametrize(
    ("name", "found"), [("YAL001C", ""), ("a b\u00a0é漢", ""), ("a\u202eb", "\\u202e"), ("a\nb", "\\n")]
)
def test_the_first_hidden_character_of_a_name_is_spelled(name: str, found: str) -> None:
    assert hidden_in(name) == found


class Terminal(io.StringIO):
    """A terminal that remembers what it receives."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def test_what_is_printed_shows_hidden_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    out, err = Terminal(), Terminal()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    with only_visible_output():
        print(EVIL, "tab\there")
        print(EVIL, file=sys.stderr)
    assert (sys.stdout, sys.stderr) == (out, err)
    assert out.getvalue() == f"{visible(EVIL)} tab\there\n"
    assert err.getvalue() == f"{visible(EVIL)}\n"


def test_characters_that_an_encoding_lacks_are_escapes() -> None:
    bytes_ = io.BytesIO()
    stream = VisibleStream(io.TextIOWrapper(bytes_, "ascii", write_through=True))
    stream.writelines(iter(["ε = ", "1\n"]))
    assert bytes_.getvalue() == b"\\u03b5 = 1\n"


@pytest.mark.parametrize("guarded", [False, True])
def test_a_console_keeps_its_colours_and_shows_those_of_names(
    monkeypatch: pytest.MonkeyPatch, guarded: bool
) -> None:
    from rich.table import Table
    from rich.text import Text

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    out = Terminal()
    monkeypatch.setattr(sys, "stdout", out)
    if guarded:
        monkeypatch.setattr(sys, "stdout", VisibleStream(out))
    console = PlainConsole(width=200, color_system="standard", highlight=False)
    table = Table("[red]x :dog:", box=None)
    table.add_row(EVIL)
    console.print(table)
    console.print(Text(EVIL, style="bold link https://example.org"))
    console.print(EVIL, "[/bold]", highlight=False)
    said = out.getvalue()
    assert "[red]x :dog:" in said
    assert said.count("\\x1b]0;title") == 3
    assert "\x1b]" not in said
    assert "[/bold]" in said
    assert "\x1b[1m" in said  # bold is the program's
    assert not hidden(said.replace("\x1b[1m", "").replace("\x1b[0m", ""))


def test_what_is_printed_beside_a_progress_bar_is_plain_too(monkeypatch: pytest.MonkeyPatch) -> None:
    from rich.progress import Progress

    monkeypatch.setenv("TERM", "xterm")
    out, err = Terminal(), Terminal()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    link = "\x1b]8;;https://example.org\x1b\\name\x1b]8;;\x1b\\ \x1b[31mred"
    with only_visible_output():
        before = sys.stdout
        with Progress(console=PlainConsole(stderr=True), auto_refresh=False, transient=True):
            print(link)
        assert sys.stdout is before
    assert "\x1b]" not in out.getvalue() + err.getvalue()
    assert "\x1b[31m" not in err.getvalue()
    assert "\\x1b[31mred" in err.getvalue()
