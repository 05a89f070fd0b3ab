"""Drawings of profiles, and what they add to a page's style: stacked bars, bars of differences, the timeline.

Drawings are SVG inside of HTML, without a script. A phase has the same number and the same colour in all of
them and in tables. Colours go by kind (blue: data; yellow and brown: forward; red: backward; violet:
optimizer; green: records), and were searched for the largest distance between any two, for common and for
colour-blind eyes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from wildtype.phases import PHASES
from wildtype.report.page import html_text
from wildtype.report.profile_text import (
    UNATTRIBUTED,
    Record,
    Scale,
    in_order,
    mean_phases,
    mean_step,
    percent,
)

COLOURS = dict(
    zip(
        PHASES,
        [
            "#648dd9",
            "#424da1",
            "#99adee",
            "#4e78a0",
            "#6ee5f7",
            "#c9a55c",
            "#8e5a24",
            "#ecd06a",
            "#ac7400",
            "#88251c",
            "#f693b2",
            "#68386c",
            "#c3dab0",
            "#7d8867",
        ],
        strict=True,
    )
)
OTHER = "#777777"
LANE, HEAD, FOOT = 20, 24, 24
"""Pixels: the height of a lane of the timeline, and what stands above and below the lanes."""
WIDTHS = (320, 640, 1000)
"""Pixels that a drawing has at least in a narrow, a middling and a wide window."""


def _phase_class(name: str) -> str:
    return "p0" if name == UNATTRIBUTED else f"p{PHASES.index(name) + 1}" if name in COLOURS else "px"


def _phase_number(name: str) -> str:
    return str(PHASES.index(name) + 1) if name in COLOURS else ""


def phase_label(name: str) -> str:
    """Return a phase as tables name it: colour, number, name."""
    return (
        f'<span class="swatch {_phase_class(name)}"></span><span class="no">{_phase_number(name)}</span> '
        f"{html_text(name)}"
    )


def stacked_bar(record: Record, longest: float, scale: Scale) -> str:
    """Return a stacked bar of a step's phases whose full width is ``longest`` seconds."""
    pieces, at, whole = [], 0.0, mean_step(record)
    for name, seconds in mean_phases(record).items():
        share = seconds / longest
        told = html_text(f"{name}: {scale.show(seconds)} {scale.unit}, {percent(seconds, whole)} of a step")
        pieces.append(
            f'<g><title>{told}</title><rect class="{_phase_class(name)}" data-seconds="{seconds!r}" '
            f'x="{100 * at:.4f}%" width="{100 * share:.4f}%" height="100%"/>'
            f"{_inside(name, at + share / 2, share)}</g>"
        )
        at += share
    about = html_text(f"{record.get('name')}: {scale.show(whole)} {scale.unit} per step, by phase")
    return (
        f'<svg class="bar" role="img" aria-label="{about}" width="100%" height="36">{"".join(pieces)}</svg>'
    )


def _inside(name: str, centre: float, share: float) -> str:
    """Return a phase's name and number where they fit: the name, or else the number, or else nothing."""

    def fits(width: float) -> int:
        return next((i for i, whole in enumerate(WIDTHS) if share * whole >= width), len(WIDTHS))

    by_name, by_number = fits(6.9 * len(name) + 10), fits(18.0)
    place = f'x="{100 * centre:.4f}%" y="50%"'
    kind = "" if name == UNATTRIBUTED else " light" if _is_dark(COLOURS.get(name, OTHER)) else " dark"
    texts = []
    if by_name < len(WIDTHS):
        texts.append(f'<text class="s{by_name}{kind}" {place}>{html_text(name)}</text>')
    if by_number < by_name and _phase_number(name):
        texts.append(f'<text class="s{by_number} u{by_name}{kind}" {place}>{_phase_number(name)}</text>')
    return "".join(texts)


def _is_dark(colour: str) -> bool:
    """Whether white reads better than black on a colour (by relative luminance)."""
    red, green, blue = ((int(colour[i : i + 2], 16) / 255) ** 2.2 for i in (1, 3, 5))
    luminance: float = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    return luminance < 0.18


def diverging_bar(gap: float, widest: float) -> str:
    """Return a bar to the right (longer) or to the left (shorter) of the middle."""
    share = gap / (widest or 1.0)
    x, width = 50 + min(50 * share, 0), abs(50 * share)
    return (
        '<svg class="gap" aria-hidden="true" width="96" height="12">'
        f'<rect class="{"more" if share > 0 else "less"}" x="{x:.2f}%" width="{width:.2f}%" height="100%"/>'
        '<line x1="50%" x2="50%" y1="0" y2="100%"/></svg>'
    )


def timeline(record: Record) -> str:
    """Return the recorded steps one after the other, a lane per phase."""
    steps = [step for step in record.get("timeline") or [] if step]
    lengths = [max(piece["end"] for piece in step) for step in steps]
    whole = sum(lengths)
    if not whole:
        return ""
    names = in_order({piece["phase"] for step in steps for piece in step})
    lane = {name: HEAD + LANE * i for i, name in enumerate(names)}
    foot = HEAD + LANE * len(names)
    scale = Scale.of([whole / len(steps)])
    drawn, start = [], 0.0
    for i, (step, length) in enumerate(zip(steps, lengths, strict=True)):
        x, width = 100 * start / whole, 100 * length / whole
        title = f"step {i + 1}" if width > 9 else str(i + 1)
        title += f": {scale.show(length)} {scale.unit}" if width > 22 else ""
        drawn.append(
            f'<rect class="band{i % 2}" x="{x:.4f}%" width="{width:.4f}%" height="{foot}"/>'
            f'<text x="{x:.4f}%" y="15" dx="4">{title}</text>'
        )
        for phase, since, until, pieces in _merged(step, whole / 2000):
            told = (
                f"step {i + 1}, {phase}: {scale.show(until - since)} {scale.unit}, from {scale.show(since)}"
            )
            told += f", {pieces} pieces" if pieces > 1 else ""
            drawn.append(
                f'<rect class="{_phase_class(phase)}" x="{100 * (start + since) / whole:.4f}%" '
                f'y="{lane[phase] + 3}" width="{100 * (until - since) / whole:.4f}%" height="{LANE - 6}">'
                f"<title>{html_text(told)}</title></rect>"
            )
        start += length
    for tick in _ticks(whole * scale.factor):
        x = 100 * tick / (whole * scale.factor)
        anchor = "start" if x < 2 else "end" if x > 96 else "middle"
        label = f"{tick:,g} {scale.unit}" if x == 0 else f"{tick:,g}"
        drawn.append(
            f'<line x1="{x:.4f}%" x2="{x:.4f}%" y1="{HEAD}" y2="{foot + 4}"/>'
            f'<text x="{x:.4f}%" y="{foot + 18}" text-anchor="{anchor}">{label}</text>'
        )
    lanes = "".join(f"<li>{phase_label(name)}</li>" for name in names)
    about = html_text(
        f"timeline of {record.get('name')}: {len(steps)} steps, {scale.show(whole)} {scale.unit}"
    )
    return (
        f"<figure><figcaption>timeline of the last recorded steps, {scale.unit}</figcaption>"
        f'<div class="scroll" role="region" tabindex="0" aria-label="{about}"><div class="gantt">'
        f'<ol aria-hidden="true">{lanes}</ol><svg role="img" aria-label="{about}" width="100%" '
        f'height="{foot + FOOT}">{"".join(drawn)}</svg></div></div></figure>'
    )


def _merged(step: Sequence[Mapping[str, Any]], gap: float) -> list[tuple[str, float, float, int]]:
    """Return (phase, start, end, pieces): pieces of a phase no more than ``gap`` apart are drawn as one."""
    last: dict[str, int] = {}
    merged: list[tuple[str, float, float, int]] = []
    for piece in step:
        phase, start, end = piece["phase"], piece["start"], piece["end"]
        i = last.get(phase)
        if i is not None and start - merged[i][2] <= gap:
            merged[i] = (phase, merged[i][1], max(end, merged[i][2]), merged[i][3] + 1)
        else:
            last[phase] = len(merged)
            merged.append((phase, start, end, 1))
    return merged


def _ticks(end: float) -> list[float]:
    """Return up to eight round figures from 0 to ``end``."""
    size = 10.0 ** math.floor(math.log10(end / 8))
    step = next(size * k for k in (1, 2, 5, 10) if size * k * 8 >= end)
    return [i * step for i in range(int(end / step) + 1)]


# ------------------------------------------------------------------------------------------------------ style

HATCH = (
    '<svg width="0" height="0" aria-hidden="true" class="defs"><defs><pattern id="hatch" width="6" '
    'height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect class="h0" width="6" '
    'height="6"/><rect class="h1" width="2.2" height="6"/></pattern></defs></svg>'
)


def profile_style() -> str:
    """Return what drawings of profiles add to the style of a page: colours of phases, then the rest."""
    phases = [*((f"p{i + 1}", colour) for i, colour in enumerate(COLOURS.values())), ("px", OTHER)]
    return "".join(f".{n}{{fill:{c};stroke:{c};background:{c}}}" for n, c in phases) + STYLE


STYLE = """
.run{margin:0 0 14px} .run p{display:flex;flex-wrap:wrap;gap:0 8px;align-items:baseline;margin-bottom:4px;
overflow-wrap:anywhere} .run b{margin-left:auto;font-weight:600;white-space:nowrap}
.bar{border-radius:3px;background:var(--band)} .bar rect{stroke:none} .shares .run b{display:none}
.bar text{display:none;font-size:12px;text-anchor:middle;dominant-baseline:central;fill:var(--ink);
pointer-events:none} .bar text.light{fill:#fff} .bar text.dark{fill:#14171a} .bar text.s0{display:inline}
@media (min-width:690px){.bar text.s1{display:inline} .bar text.u1{display:none}}
@media (min-width:1050px){.bar text.s2{display:inline} .bar text.u2{display:none}}
.p0{fill:url(#hatch);stroke:none;background:repeating-linear-gradient(45deg,var(--hatch) 0 2px,
transparent 2px 5px)}
.h0{fill:var(--band)} .h1{fill:var(--hatch)}
.swatch{display:inline-block;width:12px;height:12px;border-radius:2px;margin-right:6px;vertical-align:-1px;
border:1px solid color-mix(in srgb,var(--ink) 18%,transparent)}
.no{display:inline-block;min-width:17px;color:var(--quiet);font-size:12px;text-align:right;font-weight:400}
.legend{list-style:none;display:flex;flex-wrap:wrap;gap:4px 20px;margin:14px 0 0;padding:0;font-size:13.5px}
.gap{display:inline-block} .gap line{stroke:var(--quiet)} .more{fill:var(--more)} .less{fill:var(--less)}
.gantt{display:grid;grid-template-columns:auto minmax(480px,1fr);gap:16px}
.gantt ol{list-style:none;margin:0;padding:24px 0 0;font-size:12.5px} .gantt li{height:20px;
line-height:20px;white-space:nowrap} .gantt text{font-size:11.5px;fill:var(--quiet)}
.gantt line{stroke:var(--quiet);opacity:.25}
.band0{fill:var(--band)} .band1{fill:none}
@media print{.run{break-inside:avoid} .gantt{grid-template-columns:auto minmax(300px,1fr)}}
"""
