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

from markupsafe import Markup

from wildtype.phases import PHASES
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
            "#1e159a",
            "#181429",
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


def phase_label(name: str) -> Markup:
    """Return a phase as tables name it: colour, number, name."""
    return Markup('<span class="swatch {}"></span><span class="no">{}</span> {}').format(
        _phase_class(name), _phase_number(name), name
    )


def stacked_bar(record: Record, longest: float, scale: Scale) -> Markup:
    """Return a stacked bar of a step's phases whose full width is ``longest`` seconds."""
    pieces, at, whole = [], 0.0, mean_step(record)
    for name, seconds in mean_phases(record).items():
        share = seconds / longest
        # Percentages of the drawing's width: bars of all runs keep one scale in every window.
        pieces.append(
            Markup(
                '<g><title>{}</title><rect class="{}" data-seconds="{!r}" x="{:.4f}%" width="{:.4f}%" '
                'height="100%"/>{}</g>'
            ).format(
                f"{name}: {scale.show(seconds)} {scale.unit}, {percent(seconds, whole)} of a step",
                _phase_class(name),
                seconds,
                100 * at,
                100 * share,
                _inside(name, at + share / 2, share),
            )
        )
        at += share
    about = f"{record.get('name')}: {scale.show(whole)} {scale.unit} per step, by phase"
    return Markup('<svg class="bar" role="img" aria-label="{}" width="100%" height="36">{}</svg>').format(
        about, Markup("").join(pieces)
    )


def _inside(name: str, centre: float, share: float) -> Markup:
    """Return a phase's name and number where they fit: the name, or else the number, or else nothing."""

    def fits(width: float) -> int:
        return next((i for i, whole in enumerate(WIDTHS) if share * whole >= width), len(WIDTHS))

    by_name, by_number = fits(6.9 * len(name) + 10), fits(18.0)
    kind = "" if name == UNATTRIBUTED else " light" if _is_dark(COLOURS.get(name, OTHER)) else " dark"
    text, place = Markup('<text class="{}{}" x="{:.4f}%" y="50%">{}</text>'), 100 * centre
    texts = Markup("")
    if by_name < len(WIDTHS):
        texts += text.format(f"s{by_name}", kind, place, name)
    if by_number < by_name and _phase_number(name):
        texts += text.format(f"s{by_number} u{by_name}", kind, place, _phase_number(name))
    return texts


def _is_dark(colour: str) -> bool:
    """Whether white reads better than black on a colour (by relative luminance)."""
    # sRGB values to linear light (gamma about 2.2), weighted by the eye's sensitivity (Rec. 709).
    red, green, blue = ((int(colour[i : i + 2], 16) / 255) ** 2.2 for i in (1, 3, 5))
    luminance: float = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    return luminance < 0.18


def diverging_bar(gap: float, widest: float) -> Markup:
    """Return a bar to the right (longer) or to the left (shorter) of the middle."""
    share = gap / (widest or 1.0)
    return Markup(
        '<svg class="gap" aria-hidden="true" width="96" height="12">'
        '<rect class="{}" x="{:.2f}%" width="{:.2f}%" height="100%"/>'
        '<line x1="50%" x2="50%" y1="0" y2="100%"/></svg>'
    ).format("more" if share > 0 else "less", 50 + min(50 * share, 0), abs(50 * share))


def timeline(record: Record) -> Markup:
    """Return the recorded steps one after the other, a lane per phase."""
    steps = [step for step in record.get("timeline") or [] if step]
    lengths = [max(piece["end"] for piece in step) for step in steps]
    whole = sum(lengths)
    if not whole:
        return Markup("")
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
            Markup(
                '<rect class="band{}" x="{:.4f}%" width="{:.4f}%" height="{}"/>'
                '<text x="{:.4f}%" y="15" dx="4">{}</text>'
            ).format(i % 2, x, width, foot, x, title)
        )
        # Pieces closer than half a pixel or so would multiply the size of a page without being visible.
        for phase, since, until, pieces in _merged(step, whole / 2000):
            length_since = f"{scale.show(until - since)} {scale.unit}, from {scale.show(since)}"
            several = f", {pieces} pieces" if pieces > 1 else ""
            drawn.append(
                Markup(
                    '<rect class="{}" x="{:.4f}%" y="{}" width="{:.4f}%" height="{}"><title>{}</title></rect>'
                ).format(
                    _phase_class(phase),
                    100 * (start + since) / whole,
                    lane[phase] + 3,
                    100 * (until - since) / whole,
                    LANE - 6,
                    f"step {i + 1}, {phase}: {length_since}{several}",
                )
            )
        start += length
    for tick in _ticks(whole * scale.factor):
        x = 100 * tick / (whole * scale.factor)
        drawn.append(
            Markup(
                '<line x1="{:.4f}%" x2="{:.4f}%" y1="{}" y2="{}"/>'
                '<text x="{:.4f}%" y="{}" text-anchor="{}">{}</text>'
            ).format(
                x,
                x,
                HEAD,
                foot + 4,
                x,
                foot + 18,
                "start" if x < 2 else "end" if x > 96 else "middle",
                f"{tick:,g} {scale.unit}" if x == 0 else f"{tick:,g}",
            )
        )
    about = f"timeline of {record.get('name')}: {len(steps)} steps, {scale.show(whole)} {scale.unit}"
    return Markup(
        "<figure><figcaption>timeline of the last recorded steps, {}</figcaption>"
        '<div class="scroll" role="region" tabindex="0" aria-label="{}"><div class="gantt">'
        '<ol aria-hidden="true">{}</ol><svg role="img" aria-label="{}" width="100%" '
        'height="{}">{}</svg></div></div></figure>'
    ).format(
        scale.unit,
        about,
        Markup("").join(Markup("<li>{}</li>").format(phase_label(name)) for name in names),
        about,
        foot + FOOT,
        Markup("").join(drawn),
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


HATCH = Markup(
    '<svg width="0" height="0" aria-hidden="true" class="defs"><defs><pattern id="hatch" width="6" '
    'height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect class="h0" width="6" '
    'height="6"/><rect class="h1" width="2.2" height="6"/></pattern></defs></svg>'
)
"""The pattern of time that no phase covers; stands once on a page."""


def phase_colours() -> str:
    """Return the colours of phases as classes of a page's style."""
    phases = [*((f"p{i + 1}", colour) for i, colour in enumerate(COLOURS.values())), ("px", OTHER)]
    return "".join(f".{n}{{fill:{c};stroke:{c};background:{c}}}" for n, c in phases)
