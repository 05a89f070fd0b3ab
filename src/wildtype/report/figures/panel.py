"""`Panel`: one pair of axes, a text alternative, and its numbers; a figure consists of panels.

A page shows every panel as a separate drawing; a publication has them in one figure.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wildtype.errors import ConfigError
from wildtype.report.figures.style import FONT_PRINT, check_target, drawing, page_svg, plain, save
from wildtype.report.page import Details, Group, Table
from wildtype.report.page import Figure as PageFigure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ONE_COLUMN, TWO_COLUMNS = 3.5, 7.2
"""Inches: how wide figures of journals are."""
PAGE_WIDTH = 4.45
"""Inches of a panel on a page, before it is scaled to its place."""
MOST_PANELS = 24
MOST_WORDS = 2000
"""Letters of a text alternative."""


@dataclass(frozen=True)
class Panel:
    """One pair of axes.

    Attributes
    ----------
    title : str
        Above it.
    about : str
        Content and result in one or two sentences, for screen readers.
    draw : callable
        Draws on axes.
    head, rows : sequences of str
        The numbers as a table; the first column names the rows.
    height : float
        Of the axes with labels, as a share of its width.
    short : str
        Title in a publication, whose caption has the rest; empty: the title.
    """

    title: str
    about: str
    draw: Callable[[Axes], None]
    head: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    height: float = 0.74
    short: str = ""


def panel_figure(panel: Panel, key: str) -> PageFigure:
    """Return a panel as a figure of a page, with its numbers folded up; ``key`` is unique on the page."""

    def make() -> Figure:
        from matplotlib.figure import Figure

        figure = Figure(figsize=(PAGE_WIDTH, PAGE_WIDTH * panel.height), layout="constrained")
        panel.draw(figure.subplots())
        return figure

    drawn = page_svg(make, key, plain(f"{panel.title}. {panel.about}", MOST_WORDS))
    numbers = [Details("numbers", [Table(panel.title, panel.head, panel.rows)])] if panel.rows else []
    return PageFigure(panel.title, drawn, numbers)


def panel_group(panels: Iterable[Panel], key: str) -> list[Group]:
    """Return panels side by side; nothing where there is none."""
    drawn = [panel_figure(panel, f"{key}{i}") for i, panel in enumerate(panels)]
    return [Group("panels", drawn)] if drawn else []


def save_panels(panels: Sequence[Panel], target: Path) -> None:
    """Write panels as one figure of one or two columns, in the format that the ending says.

    Raises
    ------
    ConfigError
        If the ending says no known format, or there are no panels or too many.
    OutputError
        If the file cannot be written.
    """
    check_target(target)
    if not panels:
        raise ConfigError("there is nothing to draw")
    if len(panels) > MOST_PANELS:
        raise ConfigError(f"{len(panels)} panels are too many for one figure: draw fewer runs together")
    with drawing(FONT_PRINT):
        save(drawn_together(panels), target)


def image_of(panels: Sequence[Panel], dots: int = 160) -> NDArray[np.uint8]:
    """Return panels as one image [height, width, 3], with so many dots per inch."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    with drawing(FONT_PRINT):
        figure = drawn_together(panels)
        figure.set_dpi(dots)
        canvas: Any = FigureCanvasAgg(figure)  # its methods carry no types
        canvas.draw()
        return np.asarray(canvas.buffer_rgba())[..., :3].copy()


def drawn_together(panels: Sequence[Panel]) -> Figure:
    """Draw panels as one figure, within `drawing`."""
    from matplotlib.figure import Figure

    # Rows of three where they come out even, since an empty place in a figure looks like an error.
    columns = 1 if len(panels) == 1 else 3 if len(panels) % 3 == 0 else 2
    rows = [panels[i : i + columns] for i in range(0, len(panels), columns)]
    whole = ONE_COLUMN if columns == 1 else TWO_COLUMNS
    least = 0.95 if columns == 3 else 0.0
    heights = [whole / columns * max(*(panel.height for panel in row), least) for row in rows]
    figure = Figure(figsize=(whole, sum(heights)), layout="constrained")
    axes = figure.subplots(len(rows), columns, squeeze=False, height_ratios=heights)
    for i, panel in enumerate(panels):
        place = axes[divmod(i, columns)]
        panel.draw(place)
        letter = f"{chr(ord('a') + i)}  " if len(panels) > 1 else ""
        place.set_title(f"{letter}{panel.short or panel.title}")
    for i in range(len(panels), len(rows) * columns):
        axes[divmod(i, columns)].set_axis_off()
    return figure


def legend_below(axes: Axes, columns: int = 2) -> None:
    """Put the legend below the axes and their label, where it hides nothing."""
    axes.legend(
        loc="upper center", bbox_to_anchor=(0.5, 0.0), borderaxespad=4.0, ncols=columns, columnspacing=1.4
    )


def shown(value: float, digits: int = 3) -> str:
    """Return a number with this many significant digits; a dash where it is undefined."""
    return f"{value:.{digits}g}".replace("-", "−") if math.isfinite(value) else "–"
