"""Models compared by their headline metric, with intervals and the noise ceiling."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from wildtype.evaluation.comparison import HEADLINES, Comparison
from wildtype.evaluation.summary import Summary
from wildtype.report.figures.panel import Panel, shown
from wildtype.report.figures.style import LIGHT, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def comparison_panel(comparison: Comparison, ceiling: float = math.nan) -> Panel:
    """Return the panel of one comparison; the ceiling is a Pearson and drawn only where models have one."""
    name = HEADLINES[comparison.headline]
    # The ceiling is a correlation: beside an average precision it would be a wrong bound.
    ceiling = ceiling if comparison.headline != "average_precision" else math.nan
    points = []
    for score in comparison.scores:
        found = score.estimate(comparison.headline)
        points.append((score.model, score.baseline, found.value, found.low, found.high))
    told = f" The noise of the labels lets no model expect more than about {shown(ceiling, 2)}."
    about = (
        f"{name} of {len(points)} models on {comparison.rows:,} test rows with 95 % intervals, best on top. "
        f"{comparison.winner_sentence}{'' if math.isnan(ceiling) else told}"
    )
    return Panel(
        f"{plain(comparison.phenotype)}: {name} on test rows",
        about,
        lambda axes: _draw(axes, points, ceiling, f"{name} (95 % interval)"),
        ("model", name, "low", "high"),
        [(model, *(shown(value) for value in figures)) for model, _, *figures in points],
        height=_height(len(points)),
    )


def summary_panel(summary: Summary, ceiling: float = math.nan) -> Panel:
    """Return the panel of several runs of one question: means, and what lies one SD to either side."""
    name = HEADLINES[summary.headline]
    ceiling = ceiling if summary.headline != "average_precision" else math.nan
    points = []
    for model, metrics in summary.models.items():
        found = metrics[summary.headline]
        points.append(
            (model, model in summary.baselines, found.mean, found.mean - found.sd, found.mean + found.sd)
        )
    about = (
        f"{name} of {len(points)} models, mean and SD over {len(summary.seeds)} runs of {summary.dataset}, "
        f"split {summary.split}, best on top."
    )
    return Panel(
        f"{plain(summary.phenotype)}: {name}, {len(summary.seeds)} runs",
        about,
        lambda axes: _draw(axes, points, ceiling, f"{name} (mean ± SD over runs)"),
        ("model", name, "− SD", "+ SD"),
        [(model, *(shown(value) for value in figures)) for model, _, *figures in points],
        height=_height(len(points)),
    )


def _height(models: int) -> float:
    return min(max(0.2 + 0.06 * models, 0.45), 1.3)


def _draw(
    axes: Axes, points: list[tuple[str, bool, float, float, float]], ceiling: float, label: str
) -> None:
    low = min((p[3] if math.isfinite(p[3]) else p[2] for p in points if math.isfinite(p[2])), default=0.0)
    for i, (_, baseline, value, left, right) in enumerate(points):
        if not math.isfinite(value):
            axes.text(min(low, 0.0), i, "undefined", va="center", color=LIGHT["quiet"], fontsize="small")
            continue
        colour = LIGHT["baseline" if baseline else "model"]
        if math.isfinite(left):
            axes.plot([left, right], [i, i], color=colour, solid_capstyle="butt")
        axes.plot([value], [i], marker="s" if baseline else "o", color=colour, linestyle="none")
    if math.isfinite(ceiling):
        axes.axvline(ceiling, color=LIGHT["quiet"], linestyle=":")
        axes.annotate(
            "noise ceiling",
            (ceiling, 1),
            xycoords=("data", "axes fraction"),
            ha="right",
            xytext=(-3, 2),
            textcoords="offset points",
            fontsize="small",
            color=LIGHT["quiet"],
        )
    axes.axvline(0, color=LIGHT["line"], zorder=0)
    axes.set_yticks(range(len(points)), [plain(p[0], 24) for p in points])
    axes.set(ylim=(len(points) - 0.5, -0.5), xlabel=label)
    axes.grid(axis="x", zorder=-1)
    axes.set_axisbelow(True)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
