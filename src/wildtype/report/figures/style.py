"""How figures look, on a page and in a publication.

Figures are drawn by matplotlib in the colours of ``LIGHT``. For a page, every colour with a role becomes a
variable of the page's style, so that it follows light and dark mode; text stays text in the page's font.
Colours of models are Okabe and Ito's (2008) or near them, and densities go from light to dark in one hue.
Lines also differ by dashes and markers, for readers with colour vision deficiency.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from markupsafe import Markup

from wildtype.errors import ConfigError
from wildtype.files import writing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = (".svg", ".pdf", ".png")
LIGHT = {
    "paper": "#ffffff", "ink": "#1c2126", "quiet": "#5b6570", "line": "#dde1e6",
    "model": "#0072b2", "baseline": "#d55e00", "other": "#7b858f",
    "d0": "#c9def1", "d1": "#a6cae8", "d2": "#7db1dc", "d3": "#5292c6", "d4": "#2a6fab", "d5": "#0f4c86",
    "d6": "#06285a",
}  # fmt: skip
"""Colours by role; ``d0`` to ``d6`` are steps of a density."""
DARK = {
    "model": "#5cb8f0", "baseline": "#ff9a52", "other": "#98a2ac",
    "d0": "#2a4a66", "d1": "#2f6190", "d2": "#3a7ab5", "d3": "#5795d0", "d4": "#82b3e2", "d5": "#b1d3f2",
    "d6": "#eaf5ff",
}  # fmt: skip
"""The same on a dark page, which brings paper, ink, quiet and line itself."""
SERIES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6bb1", "#7f7f7f")
"""Further series, alike on light and dark."""
DASHES = ("-", "--", "-.", ":")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
DENSITY = tuple(LIGHT[f"d{i}"] for i in range(7))

FONT_PAGE, FONT_PRINT = 9.5, 7.0
"""Points."""


def figure_colours() -> str:
    """Return the colours of figures as variables of a page's style, for light, dark and print."""
    roles = [role for role in LIGHT if role in DARK]

    def variables(colours: dict[str, str]) -> str:
        return "".join(f"--{role}:{colours[role]};" for role in roles)

    return (
        f":root{{{variables(LIGHT)}}}@media (prefers-color-scheme:dark){{:root{{{variables(DARK)}}}}}"
        f"@media print{{:root{{{variables(LIGHT)}}}}}"
    )


@contextmanager
def drawing(font: float) -> Iterator[None]:
    """Draw with fonts of this size in points, independently of names in the data and of a user's settings."""
    import matplotlib

    # parse_math and usetex are off: a gene or phenotype with dollar signs is text, and no formula to parse.
    # Font type 42 embeds outlines that journals accept; a fixed hashsalt gives the same file for the same
    # figure.
    thin, ink, quiet = font / 12, LIGHT["ink"], LIGHT["quiet"]
    settings: Any = {
        "font.family": "DejaVu Sans", "font.size": font, "axes.titlesize": font * 1.1,
        "axes.labelsize": font, "xtick.labelsize": font * 0.92, "ytick.labelsize": font * 0.92,
        "legend.fontsize": font * 0.92, "figure.titlesize": font * 1.15, "axes.titleweight": "normal",
        "axes.titlelocation": "left",
        "text.color": ink, "axes.labelcolor": ink, "axes.edgecolor": quiet, "xtick.color": quiet,
        "ytick.color": quiet, "xtick.labelcolor": ink, "ytick.labelcolor": ink, "grid.color": LIGHT["line"],
        "axes.linewidth": thin, "xtick.major.width": thin, "ytick.major.width": thin,
        "xtick.minor.width": thin / 2, "ytick.minor.width": thin / 2, "grid.linewidth": thin,
        "xtick.major.size": font / 3, "ytick.major.size": font / 3, "lines.linewidth": font / 6,
        "lines.markersize": font / 2.2, "axes.spines.top": False, "axes.spines.right": False,
        "legend.frameon": False, "legend.handlelength": 2.4, "axes.unicode_minus": True,
        "text.parse_math": False, "text.usetex": False, "axes.formatter.use_mathtext": False,
        "figure.facecolor": LIGHT["paper"], "axes.facecolor": "none",
        "pdf.fonttype": 42, "svg.fonttype": "none", "svg.hashsalt": "wildtype",
    }  # fmt: skip
    # From the defaults, so that a user's matplotlibrc does not change published figures.
    with warnings.catch_warnings(), matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(settings)
        warnings.filterwarnings("ignore", "Glyph .* missing from")  # names may be in any script
        yield


def plain(name: object, most: int = 48) -> str:
    """Return a name as a figure can hold it: one line without control characters, cut where it is long."""
    text = "".join(c if c.isprintable() else " " for c in str(name).encode("utf-8", "replace").decode())
    return text if len(text) <= most else f"{text[: most - 1]}…"


def check_target(target: Path) -> None:
    """Refuse a file whose suffix is not that of a figure format; raises ``ConfigError``."""
    if target.suffix.lower() not in FORMATS:
        raise ConfigError(f"cannot tell the format of {str(target)!r}: end it in {', '.join(FORMATS)}")


def save(figure: Figure, target: Path) -> None:
    """Write a figure, within `drawing`; the same figure gives the same file.

    Raises
    ------
    ConfigError
        If the suffix is not that of a figure format.
    OutputError
        If the file cannot be written.
    """
    check_target(target)
    kind = target.suffix.lower()[1:]
    # Dates would make two files of one figure differ.
    metadata = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}.get(kind)
    # Into memory first: where a write fails, matplotlib's PDF writer fails again while it cleans up, with an
    # error that hides the first.
    drawn = io.BytesIO()
    figure.savefig(drawn, format=kind, metadata=metadata, dpi=300)
    with writing(target) as path:
        path.write_bytes(drawn.getvalue())


# ------------------------------------------------------------------------------------------------- for a page

_ROLES = {colour: role for role, colour in LIGHT.items()}
_NUMBER = re.compile(r"-?\d+\.\d+")
_RECTANGLE = re.compile(r"M (\S+) (\S+) L (\S+) \2 L \3 (\S+) L \1 \4 (?:L \1 \2 )?z ?")


def page_svg(make: Callable[[], Figure], key: str, about: str) -> Markup:
    """Draw a figure for a page and return it as an ``svg`` element.

    Parameters
    ----------
    make : callable
        Makes the figure.
    key : str
        Letters and digits that no other figure of the page has; its ids begin with them.
    about : str
        What it shows, for those who cannot see it.
    """
    out = io.BytesIO()
    with drawing(FONT_PAGE):
        make().savefig(out, format="svg", transparent=True, metadata={"Date": None})
    root = ElementTree.fromstring(out.getvalue())
    # matplotlib draws the same ids (clip paths, markers) in every figure. On one page the first would win, so
    # ids that are referred to get the figure's key, and all others are dropped.
    words = " ".join(value for element in root.iter() for value in element.attrib.values())
    used = set(re.findall(r"#([\w-]+)", words)) & {element.get("id", "") for element in root.iter()}
    _clean(root, key, used)
    for name in ("width", "height", "version"):
        root.attrib.pop(name, None)
    root.attrib |= {"role": "img", "aria-label": about}
    # Safe as markup: ElementTree escapes all texts and attributes, and only matplotlib makes elements.
    return Markup(ElementTree.tostring(root, encoding="unicode"))


def _clean(element: ElementTree.Element, key: str, used: set[str]) -> None:
    """Remove namespaces and metadata, and tie colours to the page's style and ids to the figure's key."""
    # Within HTML, svg elements have no namespace prefix.
    element.tag = element.tag.rpartition("}")[2]
    kept = {}
    for name, value in element.attrib.items():
        name = name.rpartition("}")[2]
        if name == "id":
            if value not in used:
                continue
            value = f"{key}-{value}"
        elif name in ("d", "transform", "x", "y", "points"):
            # A hundredth of a point is invisible; shorter numbers keep a page of six runs below 3 MB.
            value = _NUMBER.sub(lambda found: f"{float(found[0]):.2f}".rstrip("0").rstrip("."), value)
            value = " ".join(value.split())
            value = _RECTANGLE.sub(r"M\1 \2H\3V\4H\1z", value) if name == "d" else value
        elif name == "style":
            value = re.sub("#[0-9a-f]{6}", lambda found: _variable(found[0]), value)
        if name in ("href", "clip-path", "style", "fill", "stroke"):
            value = re.sub(r"#([\w-]+)", lambda found: _with_key(found[1], key, used), value)
        kept[name] = value
    element.attrib.clear()
    element.attrib.update(kept)
    for child in list(element):
        # A style element would apply to the whole page, and to all other figures.
        if child.tag.rpartition("}")[2] in ("metadata", "style"):
            element.remove(child)
        else:
            _clean(child, key, used)
    if element.tag != "text":
        element.text = None
    element.tail = None


def _variable(colour: str) -> str:
    return f"var(--{_ROLES[colour]})" if colour in _ROLES else colour


def _with_key(name: str, key: str, used: set[str]) -> str:
    return f"#{key}-{name}" if name in used else f"#{name}"
