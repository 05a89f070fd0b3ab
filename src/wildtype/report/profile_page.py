"""A page of profiles: where a step's time goes, one run or several side by side, in one HTML file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from markupsafe import Markup

from wildtype.errors import ConfigError
from wildtype.files import finite
from wildtype.report.page import (
    Block,
    Card,
    Cell,
    Details,
    Drawing,
    Group,
    Heading,
    Notes,
    Section,
    Table,
    Text,
    render,
)
from wildtype.report.page import lines as broken_lines
from wildtype.report.profile_drawing import (
    HATCH,
    diverging_bar,
    phase_colours,
    phase_label,
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
from wildtype.report.text_table import NONE

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
    # Profiles of killed runs may hold NaN, which no table can show.
    records = [finite(record) for record in records]
    scale = Scale.of(map(mean_step, records))
    runs = [(_letter(i) if len(records) > 1 else "", record) for i, record in enumerate(records)]
    timed = [run for run in runs if _is_timed(run[1])]
    names = ", ".join(NONE if record.get("name") is None else str(record["name"]) for record in records)
    sections = [
        *([_bars(timed, scale)] if timed else []),
        *([_differences(timed, scale)] if len(timed) > 1 else []),
        *(section for letter, record in runs if (section := _run(letter, record))),
        _facts(runs),
    ]
    return render(
        "profile.html",
        title=f"Profile: {names}",
        styles=["profile.css"],
        colours=phase_colours(),
        hatch=HATCH,
        cards=[_cards(runs, scale)],
        sections=sections,
    )


def profile_parts(record: Record) -> list[Block]:
    """Return what a profile shows within another page: bar, timeline and table.

    Nothing where no step was timed. The page needs ``HATCH``, ``profile.css`` and `phase_colours`.
    """
    record = finite(record)
    if not _is_timed(record):
        return []
    bar = _stacked([("", record)], Scale.of([mean_step(record)]))
    return [*bar, Drawing(timeline(record)), Details("numbers", _phases(record))]


# ----------------------------------------------------------------------------------------------- small things

Runs = Sequence[tuple[str, Record]]


def _is_timed(record: Record) -> bool:
    return mean_step(record) > 0 and bool(phases_of(record))


def _letter(i: int) -> str:
    return chr(ord("A") + i) if i < 26 else f"R{i + 1}"


def _name(letter: str, record: Record) -> Markup:
    mark = Markup('<span class="letter">{}</span> ').format(letter) if letter else ""
    early = "" if record.get("complete") else Markup(' <span class="early">stopped early</span>')
    name = record.get("name")
    return Markup("{}{}{}").format(mark, NONE if name is None else name, early)


def _ratio(value: float) -> str:
    """Return how many times as long: three digits, as many as can be told."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


# --------------------------------------------------------------------------------------------------- all runs


def _cards(runs: Runs, scale: Scale) -> Group:
    """Return a card per run: what ran where, the mean step, and what most of it went into."""
    timed = [(letter, mean_step(record)) for letter, record in runs if _is_timed(record)]
    first, base = timed[0] if timed else ("", 0.0)
    cards = []
    for letter, record in runs:
        work, size = record.get("workload") or {}, (record.get("workload") or {}).get("batch_size")
        big, about = Text("no step was timed", "none"), list[Cell]()
        if _is_timed(record):
            mean, median, p95 = mean_step(record), *_spread(record, "median", "p95")
            unit = f"{scale.unit} per step"
            big = Text(Markup("{} <small>{}</small>").format(scale.show(mean), unit), "big")
            name, most = max(mean_phases(record).items(), key=lambda item: item[1])
            about = [
                f"median {scale.show(median)}, p95 {scale.show(p95)} {scale.unit}",
                f"most of it: {name}, {percent(most, mean)}",
            ]
            about += [f"{number(size / mean)} mutants per second, in batches of {size:,}"] if size else []
            about += [_bold(f"{_ratio(mean / base)} × the step of {first}")] if letter != first else []
        what = f"{_or_none(work.get('model'))} on {_or_none(work.get('dataset'))}"
        what += f", {_or_none(record.get('execution'))}; {state(record)}"
        cards.append(
            Card(_name(letter, record), [Text(what), big, Text(broken_lines([*about, place(record)]))])
        )
    return Group("cards", cards)


def _or_none(value: object) -> object:
    return NONE if value is None else value


def _bold(text: object) -> Markup:
    return Markup("<b>{}</b>").format(text)


def _spread(record: Record, *keys: str) -> list[float | None]:
    step = record.get("seconds_per_step") or {}
    return [step.get(key) for key in keys]


def _bars(runs: Runs, scale: Scale) -> Section:
    return Section("bars", "Mean time of a step, by phase", _stacked(runs, scale), linked=False)


def _stacked(runs: Runs, scale: Scale) -> list[Block]:
    """Return stacked bars on one scale, for several runs also as shares, and the legend of all drawings."""
    sums = {letter: sum(mean_phases(record).values()) or 1.0 for letter, record in runs}
    blocks: list[Block] = [_run_bar(*run, max(sums.values()), scale) for run in runs]
    if len(runs) > 1:
        shares = [_run_bar(*run, sums[run[0]], scale) for run in runs]
        blocks += [Heading("The same as shares of each run’s step"), Group("shares", shares)]
    names = in_order({name for _, record in runs for name in mean_phases(record)})
    return [*blocks, Notes([phase_label(name) for name in names], "legend")]


def _run_bar(letter: str, record: Record, longest: float, scale: Scale) -> Group:
    """Return a run's name, its mean step, and its stacked bar, whose full width is ``longest`` seconds."""
    step = _bold(f"{scale.show(mean_step(record))} {scale.unit}")
    bar = stacked_bar(record, longest, scale)
    return Group("run", [Text(_name(letter, record) + step), Drawing(bar)])


def _differences(runs: Runs, scale: Scale) -> Section:
    """Return a table of the other runs against the first, with one sentence about each."""
    letter, first = runs[0]
    base, before = mean_phases(first), mean_step(first)
    names = in_order({name for _, record in runs for name in mean_phases(record)})
    head = ["phase", f"{letter}, {scale.unit}"]
    rows: list[list[Cell]] = [[phase_label(name), scale.show(base.get(name))] for name in names]
    total, epoch = ["", "a step", scale.show(before)], ["", "an epoch’s steps, s", _epoch(first)]
    sentences = []
    for other, record in runs[1:]:
        head += [f"{other}, {scale.unit}", f"{other} − {letter}", "", "of gap", f"{other} ÷ {letter}"]
        means, step = mean_phases(record), mean_step(record)
        whole = (
            step - before if abs(step - before) > 0.01 * before else 0.0
        )  # shares of a difference near 0 are noise
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
        sentence = Markup(
            "A step of <b>{}</b> takes {} × as long as one of <b>{}</b>: {} against {} {}."
        ).format(other, _ratio(step / before), letter, scale.show(step), scale.show(before), scale.unit)
        if gaps[most]:
            gap = f"{_signed(scale, gaps[most])} {scale.unit}"
            sentence += Markup(" The largest difference is in <b>{}</b>: {}.").format(most, gap)
        sentences.append(sentence)
    table = Table(f"mean {scale.unit} per step, against {letter}", head, [*rows, total, epoch])
    return Section(
        "differences", f"Differences to {letter}", [Notes(sentences, "sentences"), table], linked=False
    )


def _epoch(record: Record) -> str:
    """Return steps of an epoch × mean step, in seconds."""
    steps = (record.get("workload") or {}).get("steps_per_epoch")
    return f"{steps:,} steps: {number(steps * mean_step(record))}" if steps else NONE


def _signed(scale: Scale, seconds: float) -> str:
    return ("+" if seconds > 0 else "−" if seconds < 0 else "") + scale.show(abs(seconds))


def _facts(runs: Runs) -> Section:
    """Return what was run and where, as tables with a column per run; what differs is marked."""

    def rows(of: Callable[[Record], Mapping[str, Any]]) -> list[list[Cell]]:
        found = [{key: value for key, value in of(record).items() if value is not None} for _, record in runs]
        lines: list[list[Cell]] = []
        for key in dict.fromkeys(key for facts in found for key in facts):
            values = [facts.get(key) for facts in found]
            name = key.replace("_gib", ", GiB").replace("_", " ")
            shown = [f"{v:,}" if isinstance(v, int) else str(_or_none(v)) for v in values]
            lines.append([_bold(f"{name} ≠") if len(set(shown)) > 1 else name, *shown])
        return lines

    def measured(record: Record) -> dict[str, Any]:
        rest, overhead = record.get("unattributed") or {}, record.get("overhead_share")
        together = record.get("processes") or {}
        waits = together.get("wait")
        outside = {f"{name}, s": number(v) for name, v in (record.get("outside") or {}).items()}
        return {
            "execution": record.get("execution"),
            "timed steps": record.get("steps"),
            "unattributed": percent(rest.get("share"), 1.0),
            "measuring itself": percent(overhead, 1.0),
            "processes": together.get("count"),
            "of a step, waiting for the slowest process": waits
            and percent(sum(waits) / len(waits), mean_step(record)),
        } | outside

    head = ["", *(_name(letter, record) for letter, record in runs)]
    tables = [
        Table(caption, head, lines, "words")
        for caption, lines in {
            "Workload": rows(lambda record: record.get("workload") or {}),
            "Measured, and time outside of steps": rows(measured),
            "Machine": rows(lambda record: record.get("machine") or {}),
        }.items()
    ]
    return Section("facts", "Workload and machine", [Group("facts", tables)], linked=False)


# ---------------------------------------------------------------------------------------------------- one run


def _run(letter: str, record: Record) -> Section | None:
    drawn = timeline(record)
    blocks = [*_phases(record), *([Drawing(drawn)] if drawn else []), *_counters(record), *_reads(record)]
    return Section(f"run-{letter}", _name(letter, record), blocks, linked=False) if blocks else None


def _phases(record: Record) -> list[Block]:
    whole = mean_step(record)
    if not _is_timed(record):
        return []
    scale = Scale.of([whole])
    keys = ("mean", "median", "p95", "cpu")
    head = ["phase", "mean", "median", "p95", "cpu", "share", "peak MiB"]
    rows: list[list[Cell]] = [
        [
            phase_label(name),
            *(scale.show(phase.get(key)) for key in keys),
            percent(phase.get("mean"), whole),
            number(phase.get("peak_mib")),
        ]
        for name, phase in phases_of(record)
    ]
    rows.append(["", "a step", *map(scale.show, _spread(record, *keys)), percent(whole, whole), ""])
    return [Table(f"time of a step, by phase, {scale.unit}", head, rows)]


def _counters(record: Record) -> list[Block]:
    counters = record.get("counters")
    if not counters:
        return []
    rows: list[list[Cell]] = []
    for name in in_order(counters):
        counted = counters[name]
        top = broken_lines(
            Markup("<code>{}</code> {} calls, {:,.2f} ms").format(
                one["name"], number(one["calls"]), 1e3 * one["seconds"]
            )
            for one in counted.get("top") or []
        )
        keys = ("operators", "scalar_reads", "allocated_mib")
        rows.append([phase_label(name), *(number(counted.get(key)) for key in keys), top or NONE])
    head = ["phase", "operators", "scalar reads", "allocated MiB", "most of the time in"]
    return [Table("counted per step, in a short trace", head, rows, "last-words")]


def _reads(record: Record) -> list[Block]:
    reads = sorted(record.get("reads") or [], key=lambda read: -(read.get("calls") or 0))
    if not reads:
        return []
    code = Markup("<code>{}</code>")
    rows: list[list[Cell]] = [
        [code.format(_or_none(read.get("where"))), number(read.get("calls")), read.get("what")]
        for read in reads[:MOST_READS]
    ]
    rows += [["", f"and {len(reads) - MOST_READS} places more"]] if len(reads) > MOST_READS else []
    caption = "reads of single values, each of which makes a GPU wait"
    return [Table(caption, ["where", "calls per step", "what"], rows, "last-words")]
