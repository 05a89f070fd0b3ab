"""Where the time of a step went, for publications; pages draw it with `profile_drawing`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from wildtype.files import finite
from wildtype.report.figures.panel import Panel
from wildtype.report.figures.style import LIGHT, plain
from wildtype.report.profile_drawing import COLOURS, OTHER
from wildtype.report.profile_text import Record, Scale, in_order, mean_phases, mean_step

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def time_panel(records: Sequence[Record]) -> Panel | None:
    """Return stacked bars of the phases of a mean step, one per run; None where no step was timed."""
    timed = [record for record in map(finite, records) if mean_step(record) > 0]
    if not timed:
        return None
    scale = Scale.of(map(mean_step, timed))
    told = "; ".join(f"{r.get('name')}: {scale.show(mean_step(r))} {scale.unit}" for r in timed)
    names = in_order({name for record in timed for name in mean_phases(record)})
    rows = [[name, *(scale.show(mean_phases(record).get(name)) for record in timed)] for name in names]
    return Panel(
        "mean time of a step, by phase", f"{told}.", lambda axes: _draw(axes, timed, names, scale),
        ("phase", *(str(record.get("name")) for record in timed)), rows,
        height=0.5 + 0.12 * len(timed),
    )  # fmt: skip


def _draw(axes: Axes, records: Sequence[Record], names: Sequence[str], scale: Scale) -> None:
    left = [0.0] * len(records)
    for name in names:
        widths = [mean_phases(record).get(name, 0.0) * scale.factor for record in records]
        axes.barh(range(len(records)), widths, left=left, height=0.6, color=COLOURS.get(name, OTHER),
                  edgecolor=LIGHT["paper"], linewidth=0.4, label=plain(name, 24),
                  hatch=None if name in COLOURS else "///")  # fmt: skip
        left = [a + b for a, b in zip(left, widths, strict=True)]
    axes.set_yticks(range(len(records)), [plain(record.get("name"), 26) for record in records])
    axes.set(xlabel=f"time per step ({scale.unit})", ylim=(len(records) - 0.5, -0.5))
    axes.tick_params(axis="y", length=0)
    axes.legend(loc="upper center", bbox_to_anchor=(0.4, -0.35), ncols=3)
