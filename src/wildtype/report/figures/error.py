"""Where a model is wrong: error by number of genes, by measured effect, by query strain."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from wildtype.evaluation.bootstrap import IntervalEstimate
from wildtype.evaluation.predicted_rows import (
    LEAST_ROWS,
    GroupError,
    PredictedRows,
    error_by_effect,
    error_by_order,
    error_by_query,
)
from wildtype.report.figures.panel import Panel, legend_below, shown
from wildtype.report.figures.style import LIGHT, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SPREAD = 0.16
"""How far models of one group lie apart, in groups."""


def error_panels(rows: PredictedRows) -> list[Panel]:
    """Return panels by effect, by order of several, and by query where there are queries with enough rows."""
    unit = f" ({plain(rows.unit, 28)})" if rows.unit else ""
    label, name = f"RMSE{unit}", plain(rows.phenotype)
    by_order, by_effect, queries = error_by_order(rows), error_by_effect(rows), error_by_query(rows)
    panels = []
    if len(by_order) > 1:
        panels.append(
            _panel(
                f"{name}: error by number of genes",
                by_order,
                lambda axes: _draw_columns(axes, by_order, label, "perturbed genes"),
                f"{name}, by order",
            )
        )
    panels.append(
        _panel(
            f"{name}: error by measured effect",
            by_effect,
            lambda axes: _draw_effects(axes, by_effect, label, f"measured {name}{unit}", rows.calls),
            f"{name}, by effect",
        )
    )
    if queries.groups:
        many = "query" if queries.large == 1 else "queries"
        what = f"{queries.large:,} {many} with {LEAST_ROWS} or more test rows"
        if queries.large > len(queries.groups):
            what = f"the {len(queries.groups)} with the largest error of {what}"
        panels.append(
            _panel(
                f"{name}: error by query, {what}",
                queries.groups,
                lambda axes: _draw_rows(axes, queries.groups, label),
                f"{name}, by query",
                height=min(max(0.32 + 0.055 * len(queries.groups), 0.82), 1.1),
            )
        )
    return panels


def _panel(
    title: str, groups: Sequence[GroupError], draw: Callable[[Axes], None], short: str, height: float = 0.82
) -> Panel:
    models = list(groups[0].errors)
    table = [
        [group.label, f"{group.rows:,}", *(_with_bounds(group.errors[model]) for model in models)]
        for group in groups
    ]
    first = models[0]
    # A group without an error (NaN) must not become the worst: max compares NaN by position.
    worst = max(groups, key=lambda group: np.nan_to_num(group.errors[first].value, nan=-1.0))
    about = (
        f"Root mean squared error of {' and '.join(models)} with 95 % intervals. That of {first} is largest "
        f"at {worst.label}: {shown(worst.errors[first].value)}."
    )
    return Panel(title, about, draw, ("", "rows", *models), table, height, short)


def _with_bounds(found: IntervalEstimate) -> str:
    return f"{shown(found.value)} [{shown(found.low)}, {shown(found.high)}]"


def _styles(models: Sequence[str]) -> list[tuple[str, str, str]]:
    """Return (model, colour, marker): the run's own model, then the best baseline."""
    return list(zip(models, (LIGHT["model"], LIGHT["baseline"]), ("o", "s"), strict=False))


def _points(
    axes: Axes, at: Sequence[float], groups: Sequence[GroupError], apart: float, upright: bool
) -> None:
    """Draw values with intervals, models side by side."""
    styles = _styles(list(groups[0].errors))
    for i, (model, colour, marker) in enumerate(styles):
        place = np.asarray(at) + apart * (i - (len(styles) - 1) / 2)
        found = [group.errors[model] for group in groups]
        value, low, high = ([getattr(one, end) for one in found] for end in ("value", "low", "high"))
        (axes.vlines if upright else axes.hlines)(place, low, high, color=colour, linewidth=1.0)
        points = (place, value) if upright else (value, place)
        axes.plot(*points, marker=marker, color=colour, linestyle="none", label=plain(model, 24))
    (axes.set_ylim if upright else axes.set_xlim)(0, None)
    axes.grid(axis="y" if upright else "x")
    axes.set_axisbelow(True)


def _draw_columns(axes: Axes, groups: Sequence[GroupError], label: str, below: str) -> None:
    _points(axes, range(len(groups)), groups, SPREAD, upright=True)
    axes.set_xticks(range(len(groups)), [group.label.split()[0] for group in groups])
    axes.set(xlabel=below, ylabel=label, xlim=(-0.6, len(groups) - 0.4))
    legend_below(axes)


def _draw_effects(axes: Axes, groups: Sequence[GroupError], label: str, below: str, calls: bool) -> None:
    if calls:
        _draw_columns(axes, groups, label, below)
        axes.set_xticks(range(len(groups)), [group.label for group in groups])
        return
    means = [group.mean for group in groups]
    _points(axes, means, groups, 0.012 * (max(means) - min(means)), upright=True)
    axes.set(xlabel=below, ylabel=label)
    legend_below(axes)


def _draw_rows(axes: Axes, groups: Sequence[GroupError], label: str) -> None:
    _points(axes, range(len(groups)), groups, 2 * SPREAD, upright=False)
    axes.set_yticks(range(len(groups)), [plain(group.label, 22) for group in groups])
    axes.set(ylim=(len(groups) - 0.5, -0.5), xlabel=label)
    axes.tick_params(axis="y", length=0)
    legend_below(axes)
