"""Observed against nominal coverage of intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from wildtype.errors import ConfigError
from wildtype.evaluation.calibration import Coverage, MeanCoverage
from wildtype.report.figures.panel import Panel, legend_below, save_panels, shown
from wildtype.report.figures.style import DASHES, LIGHT, MARKERS, SERIES, check_target, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Found = Sequence[Coverage] | Sequence[MeanCoverage]
MOST_LINES = 8


def calibration_panels(found: Found) -> list[Panel]:
    """Return one panel with a line per phenotype and group, the groups of most test rows; none where no group
    has intervals.
    """
    lines: dict[str, list[Coverage | MeanCoverage]] = {}
    for one in found:
        if not math.isnan(one.coverage):
            lines.setdefault(f"{one.phenotype}: {one.group}", []).append(one)
    if not lines:
        return []
    chosen = sorted(lines.items(), key=lambda line: -line[1][0].rows)[:MOST_LINES]
    left = f" (the {len(chosen)} largest of {len(lines)} groups)" if len(lines) > len(chosen) else ""
    farthest = max((p for _, points in chosen for p in points), key=lambda p: abs(p.coverage - p.level))
    about = (
        f"Share of test rows inside of their intervals against the share that was promised{left}. Farthest "
        f"apart: {shown(farthest.coverage)} of {farthest.phenotype}, {farthest.group}, where "
        f"{farthest.level:g} was promised."
    )
    rows = [
        [f"{name}, {p.level:g}", f"{p.rows:,}", shown(p.coverage), shown(p.width)]
        for name, points in chosen
        for p in points
    ]
    return [
        Panel(
            f"coverage of intervals{left}",
            about,
            lambda axes: _draw(axes, chosen),
            ("group, promised", "test rows", "covered", "mean width"),
            rows,
            height=0.95,
        )
    ]


def _draw(axes: Axes, lines: Sequence[tuple[str, list[Coverage | MeanCoverage]]]) -> None:
    axes.plot([0, 1], [0, 1], color=LIGHT["other"], linestyle="--", label="as promised", linewidth=0.8)
    for i, (name, points) in enumerate(lines):
        label = f"{plain(name, 34)} ({points[0].rows:,} rows)"
        axes.plot(
            [p.level for p in points],
            [p.coverage for p in points],
            color=SERIES[i],
            marker=MARKERS[i],
            linestyle=DASHES[i % len(DASHES)],
            label=label,
        )
    axes.set(
        xlabel="nominal coverage", ylabel="coverage of test rows", xlim=(0, 1), ylim=(0, 1), aspect="equal"
    )
    axes.grid()
    axes.set_axisbelow(True)
    legend_below(axes, 1)


def draw_reliability(found: Sequence[Coverage] | Sequence[MeanCoverage], target: Path) -> None:
    """Draw observed coverage against nominal coverage, one line per phenotype and group.

    Parameters
    ----------
    found : sequence of Coverage or MeanCoverage
        At several levels.
    target : Path
        Of the drawing: .svg, .png or .pdf.

    Raises
    ------
    ConfigError
        If the format is not known, or there is nothing to draw.
    OutputError
        If the file cannot be written.
    """
    check_target(target)
    panels = calibration_panels(found)
    if not panels:
        raise ConfigError("there is nothing to draw: no group of test rows has intervals")
    save_panels(panels, target)
