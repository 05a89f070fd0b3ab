"""The console of tables, remarks and progress bars: plain text, with hidden characters as escapes."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import IO, Any, TextIO, cast

from rich.console import Console, ConsoleOptions, RenderableType, RenderHook
from rich.file_proxy import FileProxy
from rich.segment import Segment
from rich.style import Style
from rich.text import Text

from wildtype.characters import VisibleStream, unchanged, visible


class PlainConsole(Console):
    """A console that prints names as they are: no markup, no emoji, no escape sequences from data.

    Colours and the movements of progress bars, which Rich itself writes, stay.

    Parameters
    ----------
    **options
        Of ``rich.console.Console``.
    """

    def __init__(self, **options: Any) -> None:
        # "[red]" and ":dog:" are texts of a path or a name, not a style and a picture.
        super().__init__(markup=False, emoji=False, **options)

    @property
    def file(self) -> IO[str]:
        """Where the text goes, behind the streams that would show Rich's own escape sequences."""
        return unchanged(super().file)

    @file.setter
    def file(self, new: IO[str]) -> None:
        self._file = new

    def render_str(self, text: str, **options: Any) -> Text:
        """Return a text with hidden characters as escapes, so that columns have their widths."""
        return super().render_str(visible(text), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the pieces of what is printed; all text passes here, whatever it was made from."""
        for text, style, control in super().render(renderable, options):
            if control:
                yield Segment(text, style, control)
            else:
                # A link is an escape sequence whose address nobody sees.
                unlinked = style.update_link(None) if isinstance(style, Style) and style.link else style
                yield Segment(visible(text), unlinked)

    def push_render_hook(self, hook: RenderHook) -> None:
        """Begin a progress bar; what others print meanwhile is shown as plain text too."""
        super().push_render_hook(hook)
        # Rich's proxy turns escape sequences into colours and links: it must see them as escapes.
        for name in ("stdout", "stderr"):
            stream = getattr(sys, name)
            if isinstance(stream, FileProxy):
                setattr(sys, name, VisibleStream(cast(TextIO, stream)))
