"""Reliability diagram of calls: observed share against predicted probability."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from wildtype.evaluation.reliability import ReliabilityBin, largest_gap
from wildtype.report.figures.panel import Panel, legend_below, shown
from wildtype.report.figures.style import DASHES, LIGHT, MARKERS, SERIES, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def reliability_panels(found: Sequence[ReliabilityBin]) -> list[Panel]:
    """Return one panel per phenotype, with a line per number of unseen genes; none without calls."""
    return [
        _panel(name, [one for one in found if one.phenotype == name])
        for name in dict.fromkeys(one.phenotype for one in found)
    ]


def _panel(name: str, bins: Sequence[ReliabilityBin]) -> Panel:
    farthest = largest_gap(bins)
    about = (
        f"Share of calls among test rows against the predicted probability, in bins of equal counts by "
        f"number of unseen genes. Farthest apart: {shown(farthest.observed)} were calls where "
        f"{shown(farthest.predicted)} was predicted ({farthest.group}, {farthest.rows:,} rows)."
    )
    rows = [
        [
            one.group,
            f"{one.rows:,}",
            shown(one.predicted),
            f"{shown(one.observed)} [{shown(one.low)}, {shown(one.high)}]",
        ]
        for one in bins
    ]
    return Panel(
        f"reliability of {name}",
        about,
        lambda axes: _draw(axes, bins),
        ("group", "test rows", "predicted", "observed [95 %]"),
        rows,
        height=0.95,
    )


def _draw(axes: Axes, bins: Sequence[ReliabilityBin]) -> None:
    # Calls are rare: axes to 1 would squeeze most bins into a corner.
    top = 1.05 * max(max(one.predicted, one.high) for one in bins) or 1.0
    axes.plot([0, top], [0, top], color=LIGHT["other"], linestyle="--", label="calibrated", linewidth=0.8)
    for i, unseen in enumerate(dict.fromkeys(one.unseen for one in bins)):
        points = [one for one in bins if one.unseen == unseen]
        observed = [one.observed for one in points]
        axes.errorbar(
            [one.predicted for one in points],
            observed,
            yerr=[
                [max(y - one.low, 0.0) for y, one in zip(observed, points, strict=True)],
                [max(one.high - y, 0.0) for y, one in zip(observed, points, strict=True)],
            ],
            color=SERIES[i % len(SERIES)],
            marker=MARKERS[i % len(MARKERS)],
            linestyle=DASHES[i % len(DASHES)],
            label=f"{plain(points[0].group, 34)} ({sum(one.rows for one in points):,} rows)",
        )
    axes.set(
        xlabel="predicted probability", ylabel="share of calls", xlim=(0, top), ylim=(0, top), aspect="equal"
    )
    axes.grid()
    axes.set_axisbelow(True)
    legend_below(axes, 1)
