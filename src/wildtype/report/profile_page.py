"""A page of profiles: where a step's time goes, one run or several side by side, in one HTML file.

The page asks for nothing from outside and runs no script: style and drawings stand in it, and every text that
comes from a record is escaped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from wildtype.errors import ConfigError
from wildtype.files import finite
from wildtype.report.page import html_page, html_table, html_text
from wildtype.report.profile_drawing import (
    HATCH,
    diverging_bar,
    phase_label,
    profile_style,
    stacked_bar,
    timeline,
)
from wildtype.report.profile_text import (
    Record,
    Scale,
    in_order,
    mean_phases,
    mean_step,
    number,
    percent,
    phases_of,
    place,
    state,
)
from wildtype.report.table import NONE

MOST_READS = 40


def profile_page(records: Sequence[Record]) -> str:
    """Return a page about profiles, whole in itself; all are compared with the first that has timed steps.

    Parameters
    ----------
    records : sequence of mapping
        Profiles, as ``profile.json`` holds them; of runs that were stopped early too.

    Raises
    ------
    ConfigError
        If there is none.
    """
    if not records:
        raise ConfigError("there is no profile to show; name at least one run that has a profile.json")
    records = [finite(record) for record in records]
    scale = Scale.of(map(mean_step, records))
    runs = [(_letter(i) if len(records) > 1 else "", record) for i, record in enumerate(records)]
    timed = [run for run in runs if _is_timed(run[1])]
    names = ", ".join(NONE if record.get("name") is None else str(record["name"]) for record in records)
    parts = [
        f"<header><h1>Where a step’s time goes</h1>{_cards(runs, scale)}</header>",
        _bars(timed, scale) if timed else "",
        _differences(timed, scale) if len(timed) > 1 else "",
        *(_run(letter, record) for letter, record in runs),
        _facts(runs),
        "<footer><p>A moment belongs to one phase only, the innermost. What no phase covers is measured like "
        "a phase and shown as unattributed. Mean, median and 95th percentile are over the timed steps; cpu "
        "is the time of the process’s own threads.</p></footer>",
    ]
    body = "\n".join(part for part in parts if part)
    return html_page(f"Profile: {names}", f"{HATCH}<main>\n{body}\n</main>", profile_style())


def profile_parts(record: Record) -> str:
    """Return what a profile has to show within another page: bar, timeline and table; nothing where no step
    was timed. The page needs ``HATCH`` and `profile_style`.
    """
    record = finite(record)
    if not _is_timed(record):
        return ""
    bar = _stacked([("", record)], Scale.of([mean_step(record)]))
    return f"{bar}{timeline(record)}<details><summary>numbers</summary>{_phases(record)}</details>"


# ----------------------------------------------------------------------------------------------- small things

Runs = Sequence[tuple[str, Record]]


def _is_timed(record: Record) -> bool:
    return mean_step(record) > 0 and bool(phases_of(record))


def _letter(i: int) -> str:
    return chr(ord("A") + i) if i < 26 else f"R{i + 1}"


def _name(letter: str, record: Record) -> str:
    early = "" if record.get("complete") else ' <span class="early">stopped early</span>'
    mark = f'<span class="letter">{letter}</span> ' if letter else ""
    return mark + html_text(record.get("name")) + early


def _ratio(value: float) -> str:
    """Return how many times as long: three digits, as many as can be told."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


# --------------------------------------------------------------------------------------------------- all runs


def _cards(runs: Runs, scale: Scale) -> str:
    """Return a card per run: what ran where, the mean step, and what most of it went into."""
    timed = [(letter, mean_step(record)) for letter, record in runs if _is_timed(record)]
    first, base = timed[0] if timed else ("", 0.0)
    cards = []
    for letter, record in runs:
        work, size = record.get("workload") or {}, (record.get("workload") or {}).get("batch_size")
        big, lines = '<p class="none">no step was timed</p>', list[str]()
        if _is_timed(record):
            mean, median, p95 = mean_step(record), *_spread(record, "median", "p95")
            big = f'<p class="big">{scale.show(mean)} <small>{scale.unit} per step</small></p>'
            name, most = max(mean_phases(record).items(), key=lambda item: item[1])
            lines = [
                f"median {scale.show(median)}, p95 {scale.show(p95)} {scale.unit}",
                f"most of it: {html_text(name)}, {percent(most, mean)}",
            ]
            lines += [f"{number(size / mean)} mutants per second, in batches of {size:,}"] if size else []
            lines += [f"<b>{_ratio(mean / base)} × the step of {first}</b>"] if letter != first else []
        about = f"{html_text(work.get('model'))} on {html_text(work.get('dataset'))}"
        cards.append(
            f'<article class="card"><h2>{_name(letter, record)}</h2>'
            f"<p>{about}, {html_text(record.get('execution'))}; {html_text(state(record))}</p>{big}"
            f"<p>{'<br>'.join([*lines, html_text(place(record))])}</p></article>"
        )
    return f'<div class="cards">{"".join(cards)}</div>'


def _spread(record: Record, *keys: str) -> list[float | None]:
    step = record.get("seconds_per_step") or {}
    return [step.get(key) for key in keys]


def _bars(runs: Runs, scale: Scale) -> str:
    return (
        '<section aria-labelledby="bars"><h2 id="bars">Mean time of a step, by phase</h2>'
        f"{_stacked(runs, scale)}</section>"
    )


def _stacked(runs: Runs, scale: Scale) -> str:
    """Return stacked bars on one scale, for several runs also as shares, and the legend of all drawings."""
    sums = {letter: sum(mean_phases(record).values()) or 1.0 for letter, record in runs}
    parts = [_run_bar(*run, max(sums.values()), scale) for run in runs]
    if len(runs) > 1:
        parts.append('<h3>The same as shares of each run’s step</h3><div class="shares">')
        parts += [_run_bar(*run, sums[run[0]], scale) for run in runs]
        parts.append("</div>")
    names = in_order({name for _, record in runs for name in mean_phases(record)})
    legend = "".join(f"<li>{phase_label(name)}</li>" for name in names)
    return f'{"".join(parts)}<ul class="legend" aria-label="phases">{legend}</ul>'


def _run_bar(letter: str, record: Record, longest: float, scale: Scale) -> str:
    """Return a run's name, its mean step, and its stacked bar, whose full width is ``longest`` seconds."""
    step = f"{scale.show(mean_step(record))} {scale.unit}"
    return (
        f'<div class="run"><p>{_name(letter, record)}<b>{step}</b></p>'
        f"{stacked_bar(record, longest, scale)}</div>"
    )


def _differences(runs: Runs, scale: Scale) -> str:
    """Return a table of the other runs against the first, with one sentence about each."""
    letter, first = runs[0]
    base, before = mean_phases(first), mean_step(first)
    names = in_order({name for _, record in runs for name in mean_phases(record)})
    head = ["phase", f"{letter}, {scale.unit}"]
    rows = [[phase_label(name), scale.show(base.get(name))] for name in names]
    total, epoch = ["", "a step", scale.show(before)], ["", "an epoch’s steps, s", _epoch(first)]
    sentences = []
    for other, record in runs[1:]:
        head += [f"{other}, {scale.unit}", f"{other} − {letter}", "", "of gap", f"{other} ÷ {letter}"]
        means, step = mean_phases(record), mean_step(record)
        whole = step - before if abs(step - before) > 0.01 * before else 0.0  # no shares of nothing
        gaps = {name: means.get(name, 0.0) - base.get(name, 0.0) for name in names}
        most = max(names, key=lambda name: abs(gaps[name]))
        for row, name in zip(rows, names, strict=True):
            old = base.get(name, 0.0)
            row += [
                scale.show(means.get(name)),
                _signed(scale, gaps[name]),
                diverging_bar(gaps[name], abs(gaps[most])),
                percent(gaps[name], whole).replace("-", "−"),
                _ratio(means.get(name, 0.0) / old) if old else NONE,
            ]
        total += [scale.show(step), _signed(scale, step - before), "", "", _ratio(step / before)]
        epoch += [_epoch(record), "", "", "", ""]
        sentence = (
            f"A step of <b>{other}</b> takes {_ratio(step / before)} × as long as one of <b>{letter}</b>: "
            f"{scale.show(step)} against {scale.show(before)} {scale.unit}."
        )
        if gaps[most]:
            gap = _signed(scale, gaps[most])
            sentence += f" The largest difference is in <b>{html_text(most)}</b>: {gap} {scale.unit}."
        sentences.append(f"<li>{sentence}</li>")
    return (
        f'<section aria-labelledby="differences"><h2 id="differences">Differences to {letter}</h2>'
        f'<ul class="sentences">{"".join(sentences)}</ul>'
        + html_table(f"mean {scale.unit} per step, against {letter}", head, [*rows, total, epoch])
        + "</section>"
    )


def _epoch(record: Record) -> str:
    """Return steps of an epoch × mean step, in seconds."""
    steps = (record.get("workload") or {}).get("steps_per_epoch")
    return f"{steps:,} steps: {number(steps * mean_step(record))}" if steps else NONE


def _signed(scale: Scale, seconds: float) -> str:
    return ("+" if seconds > 0 else "−" if seconds < 0 else "") + scale.show(abs(seconds))


def _facts(runs: Runs) -> str:
    """Return what was run and where, as tables with a column per run; what differs is marked."""

    def rows(of: Callable[[Record], Mapping[str, Any]]) -> list[list[str]]:
        facts = [{key: value for key, value in of(record).items() if value is not None} for _, record in runs]
        lines = []
        for key in dict.fromkeys(key for fact in facts for key in fact):
            values = [fact.get(key) for fact in facts]
            name = key.replace("_gib", ", GiB").replace("_", " ")
            shown = [f"{v:,}" if isinstance(v, int) else html_text(v) for v in values]
            lines.append([f"<b>{html_text(name)} ≠</b>" if len(set(shown)) > 1 else html_text(name), *shown])
        return lines

    def measured(record: Record) -> dict[str, Any]:
        rest, overhead = record.get("unattributed") or {}, record.get("overhead_share")
        outside = {f"{name}, s": number(v) for name, v in (record.get("outside") or {}).items()}
        return {
            "execution": record.get("execution"),
            "timed steps": record.get("steps"),
            "unattributed": percent(rest.get("share"), 1.0),
            "measuring itself": percent(overhead, 1.0),
        } | outside

    head = ["", *(_name(letter, record) for letter, record in runs)]
    tables = {
        "Workload": rows(lambda record: record.get("workload") or {}),
        "Measured, and time outside of steps": rows(measured),
        "Machine": rows(lambda record: record.get("machine") or {}),
    }
    return (
        '<section aria-labelledby="facts"><h2 id="facts">Workload and machine</h2><div class="facts">'
        + "".join(html_table(caption, head, lines, "words") for caption, lines in tables.items())
        + "</div></section>"
    )


# ---------------------------------------------------------------------------------------------------- one run


def _run(letter: str, record: Record) -> str:
    parts = [_phases(record), timeline(record), _counters(record), _reads(record)]
    heading = f'<h2 id="run-{letter}">{_name(letter, record)}</h2>'
    if not any(parts):
        return ""
    return f'<section aria-labelledby="run-{letter}">{heading}{"".join(parts)}</section>'


def _phases(record: Record) -> str:
    whole = mean_step(record)
    if not _is_timed(record):
        return ""
    scale = Scale.of([whole])
    keys = ("mean", "median", "p95", "cpu")
    head = ["phase", "mean", "median", "p95", "cpu", "share", "peak MiB"]
    rows = [
        [
            phase_label(name),
            *(scale.show(phase.get(key)) for key in keys),
            percent(phase.get("mean"), whole),
            number(phase.get("peak_mib")),
        ]
        for name, phase in phases_of(record)
    ]
    rows.append(["", "a step", *map(scale.show, _spread(record, *keys)), percent(whole, whole), ""])
    return html_table(f"time of a step, by phase, {scale.unit}", head, rows)


def _counters(record: Record) -> str:
    counters = record.get("counters")
    if not counters:
        return ""
    rows = []
    for name in in_order(counters):
        counted = counters[name]
        top = "<br>".join(
            f"<code>{html_text(one['name'])}</code> {number(one['calls'])} calls, "
            f"{1e3 * one['seconds']:,.2f} ms"
            for one in counted.get("top") or []
        )
        keys = ("operators", "scalar_reads", "allocated_mib")
        rows.append([phase_label(name), *(number(counted.get(key)) for key in keys), top or NONE])
    head = ["phase", "operators", "scalar reads", "allocated MiB", "most of the time in"]
    return html_table("counted per step, in a short trace", head, rows, "last-words")


def _reads(record: Record) -> str:
    reads = sorted(record.get("reads") or [], key=lambda read: -(read.get("calls") or 0))
    if not reads:
        return ""
    rows = [
        [
            f"<code>{html_text(read.get('where'))}</code>",
            number(read.get("calls")),
            html_text(read.get("what")),
        ]
        for read in reads[:MOST_READS]
    ]
    rows += [["", f"and {len(reads) - MOST_READS} places more"]] if len(reads) > MOST_READS else []
    caption = "reads of single values, each of which makes a GPU wait"
    return html_table(caption, ["where", "calls per step", "what"], rows, "last-words")
