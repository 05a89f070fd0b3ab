"""Time of a step by phase, for publications; pages draw it with `profile_drawing`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from wildtype.files import finite
from wildtype.report.figures.panel import Panel, legend_below
from wildtype.report.figures.style import LIGHT, plain
from wildtype.report.profile_drawing import COLOURS, OTHER
from wildtype.report.profile_text import Record, Scale, in_order, mean_phases, mean_step

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SMALL = 0.01
"""Of a step: phases below this in every run are drawn as one."""


def time_panel(records: Sequence[Record]) -> Panel | None:
    """Return stacked bars of the phases of a mean step, one per run; None where no step was timed."""
    timed = [record for record in map(finite, records) if mean_step(record) > 0]
    if not timed:
        return None
    scale = Scale.of(map(mean_step, timed))
    about = "; ".join(f"{r.get('name')}: {scale.show(mean_step(r))} {scale.unit}" for r in timed)
    names = in_order({name for record in timed for name in mean_phases(record)})
    rows = [[name, *(scale.show(mean_phases(record).get(name)) for record in timed)] for name in names]
    return Panel(
        "mean time of a step, by phase",
        f"{about}.",
        lambda axes: _draw(axes, timed, names, scale),
        ("phase", *(str(record.get("name")) for record in timed)),
        rows,
        height=0.42 + 0.1 * len(timed),
    )


def _draw(axes: Axes, records: Sequence[Record], names: Sequence[str], scale: Scale) -> None:
    means = [mean_phases(record) for record in records]
    large = [
        name
        for name in names
        if any(mean_phases(record).get(name, 0.0) >= SMALL * mean_step(record) for record in records)
    ]
    parts = {name: [mean.get(name, 0.0) for mean in means] for name in large}
    if len(large) < len(names):
        # Bars must still add up to the step, so small phases are summed and not left out.
        rest = [sum(v for name, v in mean.items() if name not in large) for mean in means]
        parts[f"others, each below {SMALL:.0%}"] = rest
    left = np.zeros(len(records))
    for name, seconds in parts.items():
        widths = np.array(seconds) * scale.factor
        axes.barh(
            range(len(records)),
            widths,
            left=left,
            height=0.6,
            color=COLOURS.get(name, OTHER),
            edgecolor=LIGHT["paper"],
            linewidth=0.4,
            label=plain(name, 26),
            hatch=None if name in COLOURS else "///",
        )
        left += widths
    axes.set_yticks(range(len(records)), [plain(record.get("name"), 26) for record in records])
    axes.set(xlabel=f"time per step ({scale.unit})", ylim=(len(records) - 0.5, -0.5))
    axes.tick_params(axis="y", length=0)
    legend_below(axes, 3)
