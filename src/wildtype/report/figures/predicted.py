"""Predicted against measured values, as a density."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from wildtype.evaluation.predicted_rows import Density, PredictedRows, density
from wildtype.report.figures.panel import Panel
from wildtype.report.figures.style import DENSITY, LIGHT, plain
from wildtype.report.text_table import decimals

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def predicted_panels(rows: PredictedRows, *, by_phenotype: bool = False) -> list[Panel]:
    """Return one panel per model, whose short title names the phenotype instead if ``by_phenotype``."""
    panels = []
    for model in rows.predicted:
        found, r = density(rows, model), rows.pearson(model)
        outside = f", {found.outside:,} of them outside of what is drawn" if found.outside else ""
        about = (
            f"How many of {len(rows):,} test rows{outside} lie where, measured {rows.phenotype} to the right "
            f"and predicted by {model} upwards. Pearson {decimals(r)}. On the dashed line both are equal."
        )
        panels.append(
            Panel(
                f"{plain(model)}, {plain(rows.phenotype)}: r = {decimals(r)}",
                about,
                lambda axes, found=found: draw_density(axes, found, rows),  # type: ignore[misc]
                height=0.77,
                short=f"{plain(rows.phenotype if by_phenotype else model, 24)}, r = {decimals(r)}",
            )
        )
    return panels


def levels(most: int) -> list[float]:
    """Return the lower ends of the steps of a density: whole numbers of rows, each step a like factor."""
    # Counts of rows span orders of magnitude; a linear scale would show the densest cells only.
    steps = np.unique(np.round(np.geomspace(1, max(most, 1), len(DENSITY) + 1)[:-1]))
    return [float(step) for step in steps]


def draw_density(axes: Axes, found: Density, rows: PredictedRows) -> None:
    """Draw the cells of a density, all of one step as one shape, which keeps the drawing small."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import BoundaryNorm, ListedColormap
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    most = int(found.counts.max(initial=0))
    ends = [*levels(most), most + 1.0]
    count = len(ends) - 1
    colours = [DENSITY[i] for i in np.linspace(0, len(DENSITY) - 1, count).round().astype(int)]
    step = np.searchsorted(ends, found.counts, side="right") - 1  # -1: no row
    for i, colour in enumerate(colours):
        corners: list[tuple[float, float]] = []
        for column, line in enumerate((step == i).tolist()):
            left, right = found.measured[column], found.measured[column + 1]
            for low, high in _runs(line):
                bottom, top = found.predicted[low], found.predicted[high]
                corners += [(left, bottom), (right, bottom), (right, top), (left, top), (left, bottom)]
        if corners:
            codes = [Path.MOVETO, *[Path.LINETO] * 3, Path.CLOSEPOLY] * (len(corners) // 5)
            axes.add_patch(PathPatch(Path(corners, codes), facecolor=colour, linewidth=0, snap=False))
    ends_of = found.measured[[0, -1]], found.predicted[[0, -1]]
    axes.set(xlim=ends_of[0], ylim=ends_of[1])
    unit = f" ({plain(rows.unit, 28)})" if rows.unit else ""
    if rows.calls:
        axes.set_xticks([0, 1], ["no call", "call"])
        axes.set(xlabel=f"measured {plain(rows.phenotype)}", ylabel="predicted probability")
    else:
        axes.plot(ends_of[1], ends_of[1], color=LIGHT["other"], linestyle="--", linewidth=0.8, zorder=3)
        axes.set(
            aspect="equal",
            xlabel=f"measured {plain(rows.phenotype)}{unit}",
            ylabel=f"predicted {plain(rows.phenotype)}{unit}",
        )
    norm = BoundaryNorm(ends, count)
    scale = ScalarMappable(norm, ListedColormap(colours))
    assert axes.figure is not None
    bar = axes.figure.colorbar(scale, ax=axes, shrink=0.6, aspect=14, pad=0.03, spacing="uniform")
    spans = [(start, stop - 1) for start, stop in pairwise(ends)]
    labels = [f"{start:,.0f}" + (f" – {stop:,.0f}" if stop > start else "") for start, stop in spans]
    bar.set_ticks([(start + stop) / 2 for start, stop in pairwise(ends)], labels=labels)
    bar.ax.tick_params(length=0)
    bar.ax.set_title("rows", loc="left", fontsize="medium")
    bar.outline.set_visible(False)
    bar.minorticks_off()


def _runs(flags: list[bool]) -> list[tuple[int, int]]:
    """Return start and end of every run of true flags."""
    edges = np.flatnonzero(np.diff([0, *map(int, flags), 0])).tolist()
    return list(zip(edges[::2], edges[1::2], strict=True))
