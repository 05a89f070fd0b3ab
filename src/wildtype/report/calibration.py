"""Coverage of intervals: as a table, and as a drawing of what was promised against what came."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from wildtype.errors import ConfigError
from wildtype.evaluation.calibration import Coverage, MeanCoverage
from wildtype.report.figures.calibration import calibration_panels
from wildtype.report.figures.panel import save_panels
from wildtype.report.figures.style import check_target
from wildtype.report.table import NONE, decimals, plain_table, plain_text

LEGEND = (
    "unseen: genes that no training row has; width: mean, in the phenotype's unit; resting on: validation "
    "rows (clusters of them that share unseen genes, a gene set, or a held-out screen)"
)


def print_coverage(found: Sequence[Coverage], console: Console) -> None:
    """Print coverage and width of every group of one run's test rows."""
    columns = ["phenotype", "group", "level", "coverage [95 %]", "width", "test rows", "resting on"]
    table = plain_table(console, columns, range(2, len(columns)), "Intervals on test rows")
    for one in found:
        bounds = "" if math.isnan(one.low) else f" [{one.low:.2f}, {one.high:.2f}]"
        cells = [
            one.phenotype,
            one.group,
            f"{one.level:g}",
            decimals(one.coverage, 3) + bounds,
            _width(one.width),
            f"{one.rows:,}" + (f" ({one.without:,} without)" if one.without else ""),
            f"{one.calibration_rows:,} ({one.calibration_clusters:,})",
        ]
        table.add_row(*(plain_text(cell, console) for cell in cells))
    console.print(table)
    reasons = dict.fromkeys(f"{one.group}: {one.reason}" for one in found if one.reason)
    for fact in (*reasons, LEGEND):
        console.print(plain_text(fact, console, "dim"))


def print_mean_coverage(found: Sequence[MeanCoverage], console: Console) -> None:
    """Print mean coverage and width over several runs."""
    columns = ["phenotype", "group", "level", "coverage ± SD", "width", "runs", "test rows"]
    table = plain_table(console, columns, range(2, len(columns)), "Intervals on test rows, mean over runs")
    for one in found:
        spread = "" if math.isnan(one.coverage_sd) else f" ± {one.coverage_sd:.3f}"
        cells = [
            one.phenotype,
            one.group,
            f"{one.level:g}",
            decimals(one.coverage, 3) + spread,
            _width(one.width),
            f"{one.runs}",
            f"{one.rows:,}",
        ]
        table.add_row(*(plain_text(cell, console) for cell in cells))
    console.print(table)


def _width(width: float) -> str:
    return NONE if math.isnan(width) else f"{width:.3g}"


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
