"""Drawings of a page of profiles, and the page's style: stacked bars, bars of differences, the timeline.

Drawings are SVG inside of HTML, without a script. A phase has the same number and the same colour in all of
them and in tables. Colours go by kind (blue: data; yellow and brown: forward; red: backward; violet:
optimizer; green: records), and were searched for the largest distance between any two, for common and for
colour-blind eyes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

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
from wildtype.report.table import NONE

COLOURS = dict(
    zip(
        PHASES,
        ["#648dd9", "#424da1", "#99adee", "#4e78a0", "#6ee5f7", "#c9a55c", "#8e5a24", "#ecd06a", "#ac7400",
         "#88251c", "#f693b2", "#68386c", "#c3dab0", "#7d8867"],
        strict=True,
    )
)  # fmt: skip
OTHER = "#777777"
LANE, HEAD, FOOT = 20, 24, 24
"""Pixels: the height of a lane of the timeline, and what stands above and below the lanes."""
WIDTHS = (320, 640, 1000)
"""Pixels that a drawing has at least in a narrow, a middling and a wide window."""


def html_text(value: object) -> str:
    """Return a value from a record as text of the page: escaped, and encodable."""
    return escape(NONE if value is None else str(value).encode("utf-8", "replace").decode())


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


def page_style() -> str:
    """Return the style: colours of phases, then everything else."""
    phases = [*((f"p{i + 1}", colour) for i, colour in enumerate(COLOURS.values())), ("px", OTHER)]
    return "".join(f".{n}{{fill:{c};stroke:{c};background:{c}}}" for n, c in phases) + STYLE


STYLE = """
:root{--paper:#fff;--ink:#1c2126;--quiet:#5b6570;--line:#dde1e6;--band:#f5f6f8;--more:#a8442a;
--less:#2c6fa8;--hatch:#aeb5bd;--early:#8a5a00;--early-paper:#fff3d6}
@media (prefers-color-scheme:dark){:root{--paper:#15181c;--ink:#e4e7ea;--quiet:#9aa4ae;--line:#333a42;
--band:#1c2025;--more:#e58a6f;--less:#7fb6e6;--hatch:#59626b;--early:#ffd98a;--early-paper:#3b2f12}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:15px/1.5 system-ui,"Segoe UI",Roboto,
"Helvetica Neue",Arial,sans-serif;font-variant-numeric:tabular-nums}
main{max-width:1120px;margin:0 auto;padding:32px 24px 48px}
h1{font-size:28px;font-weight:600;letter-spacing:-.01em;margin:0 0 20px}
h2{font-size:19px;font-weight:600;margin:0 0 12px;overflow-wrap:anywhere}
h3{font-size:14px;font-weight:500;color:var(--quiet);margin:20px 0 8px}
section{margin-top:44px} p{margin:0} svg{display:block} .defs{position:absolute}
code{font:12.5px ui-monospace,Menlo,Consolas,"DejaVu Sans Mono",monospace;overflow-wrap:anywhere}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,260px),1fr));gap:16px}
.card{border:1px solid var(--line);border-radius:8px;padding:16px 18px;min-width:0;overflow-wrap:anywhere}
.card h2{font-size:15px;margin:0} .card p{color:var(--quiet);font-size:13.5px}
.card .big{font-size:30px;font-weight:600;color:var(--ink);margin:8px 0 4px;letter-spacing:-.01em;
line-height:1.2}
.card .none{font-size:17px;color:var(--ink);margin:8px 0}
.big small{font-size:14px;font-weight:400;color:var(--quiet);letter-spacing:0} .card b{color:var(--ink)}
.letter{display:inline-block;min-width:22px;padding:0 6px;border-radius:4px;background:var(--ink);
color:var(--paper);text-align:center;font-size:.82em;font-weight:600;font-variant-numeric:normal}
.early{padding:1px 8px;border-radius:4px;background:var(--early-paper);color:var(--early);font-size:12px;
font-weight:600;white-space:nowrap}
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
.sentences{margin:0 0 14px;padding-left:18px}
.scroll{overflow-x:auto;margin:0 0 24px} .scroll:focus-visible{outline:2px solid var(--less);
outline-offset:2px}
table{border-collapse:collapse;width:100%;font-size:13.5px} caption,figcaption{text-align:left;
color:var(--quiet);font-size:13.5px;margin:0 0 6px} caption{white-space:nowrap}
th,td{padding:4px 0 4px 20px;text-align:right;white-space:nowrap;border-bottom:1px solid var(--line);
vertical-align:top} th{font-weight:400} thead th{color:var(--quiet);font-size:12.5px;vertical-align:bottom;
border-bottom-color:var(--quiet)} th:first-child{text-align:left;padding-left:0} .total>*{font-weight:600;
border-bottom:0} tr:has(+.total)>*{border-bottom-color:var(--quiet)}
.scroll th:first-child{position:sticky;left:0;background:var(--paper)}
.words td,.words th,.last-words td:last-child,.last-words th:last-child{text-align:left;white-space:normal}
.words td,.words th{overflow-wrap:anywhere;min-width:110px} .last-words td:last-child{min-width:220px}
.words th:first-child,.last-words td:first-child{color:var(--quiet)} .words th b{color:var(--ink);
font-weight:600}
.facts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,440px),1fr));gap:8px 40px;
align-items:start}
.gap{display:inline-block} .gap line{stroke:var(--quiet)} .more{fill:var(--more)} .less{fill:var(--less)}
figure{margin:0} .gantt{display:grid;grid-template-columns:auto minmax(480px,1fr);gap:16px}
.gantt ol{list-style:none;margin:0;padding:24px 0 0;font-size:12.5px} .gantt li{height:20px;
line-height:20px;white-space:nowrap} .gantt text{font-size:11.5px;fill:var(--quiet)}
.gantt line{stroke:var(--quiet);opacity:.25}
.band0{fill:var(--band)} .band1{fill:none}
footer{margin-top:44px;border-top:1px solid var(--line);padding-top:14px;color:var(--quiet);font-size:13px}
@media (max-width:560px){main{padding:20px 14px 32px} h1{font-size:23px} .card .big{font-size:26px}}
@media print{:root{--paper:#fff;--ink:#000;--quiet:#444;--line:#ccc;--band:#f3f3f3;--hatch:#999;
--more:#a8442a;--less:#2c6fa8;--early:#5c3c00;--early-paper:#fff} *{print-color-adjust:exact;
-webkit-print-color-adjust:exact}
body{font-size:12px} main{max-width:none;padding:0} section{margin-top:24px} .scroll{overflow:visible}
.card,.run,figure,tr{break-inside:avoid} h2,h3,caption{break-after:avoid} table{font-size:11px}
th,td{padding:2px 0 2px 10px} .gantt{grid-template-columns:auto minmax(300px,1fr)}}
"""
