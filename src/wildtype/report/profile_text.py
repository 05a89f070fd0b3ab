"""A profile for the terminal: the time of a step, phase by phase.

It also holds functions shared with the profile's page: order and share of phases, and the format of seconds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress_bar import ProgressBar

from wildtype.files import finite
from wildtype.phases import PHASES
from wildtype.report.text_table import NONE, plain_table, plain_text
from wildtype.terminal import PlainConsole

if TYPE_CHECKING:
    from rich.table import Table

Record = Mapping[str, Any]
UNATTRIBUTED = "unattributed"
READS_SHOWN = 10
SIZES = ("genes", "relations", "edges", "parameters")
"""Of a workload, in the order in which they are told."""


def phases_of(record: Record) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the phases that occurred, in the order of a step, and last what no phase covers."""
    phases = record.get("phases") or {}
    rest = record.get("unattributed")
    return [(name, phases[name]) for name in in_order(phases)] + ([(UNATTRIBUTED, rest)] if rest else [])


def mean_phases(record: Record) -> dict[str, float]:
    """Return the mean seconds per step of every part that `phases_of` names, 0 where there is no figure."""
    return {name: phase.get("mean") or 0.0 for name, phase in phases_of(record)}


def in_order(names: Iterable[str]) -> list[str]:
    """Return names of phases in the order of a step, unknown ones last and ``unattributed`` after them."""
    place = {name: i for i, name in enumerate(PHASES)}
    return sorted(names, key=lambda name: (name == UNATTRIBUTED, place.get(name, len(place)), name))


def mean_step(record: Record) -> float:
    """Return the mean seconds of a step, 0 where no step was timed."""
    mean = (record.get("seconds_per_step") or {}).get("mean")
    return float(sum(phase.get("mean") or 0.0 for _, phase in phases_of(record)) if mean is None else mean)


def percent(part: float | None, whole: float) -> str:
    """Return a part as per cent of a whole, a dash where either is not known."""
    return NONE if part is None or whole == 0 else f"{100 * part / whole:.1f} %"


def number(value: float | None) -> str:
    """Return a number with three significant digits, or all digits of its integer part."""
    if value is None:
        return NONE
    if value == 0 or float(value).is_integer():
        return f"{value:,.0f}"
    return f"{value:,.{min(max(2 - math.floor(math.log10(abs(value))), 0), 6)}f}"


def state(record: Record) -> str:
    """Return how many steps were timed, and whether the run was stopped early."""
    steps = record.get("steps") or 0
    count = f"{steps:,} timed step" + ("" if steps == 1 else "s")
    return count if record.get("complete") else f"stopped early, {count}"


def place(record: Record) -> str:
    """Return the machine in one line: processor, threads, accelerator."""
    machine = record.get("machine") or {}
    threads, accelerator = machine.get("threads"), machine.get("accelerator")
    parts = [machine.get("processor"), threads and f"{threads} thread" + ("s" if threads != 1 else "")]
    parts += [accelerator if accelerator != "none" else None]
    return ", ".join(str(part) for part in parts if part) or "machine not known"


@dataclass(frozen=True)
class Scale:
    """How seconds are written in one place: one unit and one number of decimals, so that they line up.

    Attributes
    ----------
    factor : float
        Units per second.
    unit : str
        ``ms`` or ``s``.
    decimals : int
        Of every figure.
    """

    factor: float
    unit: str
    decimals: int

    @classmethod
    def of(cls, steps: Iterable[float]) -> Scale:
        """Fit steps of these mean seconds: the longest sets the unit, the shortest the decimals."""
        known = [seconds for seconds in steps if seconds > 0] or [1.0]
        factor, unit = (1.0, "s") if max(known) >= 10 else (1e3, "ms")
        return cls(factor, unit, min(max(3 - math.floor(math.log10(min(known) * factor)), 2), 4))

    def show(self, seconds: float | None) -> str:
        """Return seconds in the unit, without it; a dash for None."""
        if seconds is None:
            return NONE
        value, smallest = seconds * self.factor, 10.0**-self.decimals
        if 0 < abs(value) < smallest / 2:
            return f"<{smallest:.{self.decimals}f}"
        return f"{value:,.{self.decimals}f}"


def phase_table(record: Record, console: Console | None = None) -> Table:
    """Return a table of phases: seconds per step, share of a step as number and bar, peak memory.

    Parameters
    ----------
    record : mapping
        A profile, as ``profile.json`` holds it.
    console : Console, optional
        Whose width and encoding the table fits.
    """
    console = console or PlainConsole()
    whole = mean_step(record)
    scale = Scale.of([whole])
    columns = ["phase", f"mean {scale.unit}", "median", "p95", "cpu", "share", "", "peak MiB"]
    table = plain_table(console, columns, (1, 2, 3, 4, 5, 7), title="time of a step, by phase")
    for name, phase in phases_of(record):
        times = [scale.show(phase.get(key)) for key in ("mean", "median", "p95", "cpu")]
        cells = [name, *times, percent(phase.get("mean"), whole)]
        peak = plain_text(number(phase.get("peak_mib")), console)
        bar = ProgressBar(
            total=1.0,
            completed=(phase.get("mean") or 0.0) / (whole or 1.0),
            width=12,
            complete_style="cyan",
            finished_style="cyan",
        )
        style = "dim" if name == UNATTRIBUTED else ""
        table.add_row(*(plain_text(cell, console, style) for cell in cells), bar, peak)
    step = record.get("seconds_per_step") or {}
    total = ["a step", *(scale.show(step.get(key)) for key in ("mean", "median", "p95"))]
    table.add_section()
    table.add_row(*(plain_text(cell, console, "bold") for cell in total))
    return table


def print_record(record: Record, console: Console | None = None) -> None:
    """Print a profile: its phases, what lies outside of steps, counters, and reads of single values."""
    console, record = console or PlainConsole(), finite(record)
    work = record.get("workload") or {}
    title = f"{record.get('name')}: {work.get('model', NONE)} on {work.get('dataset', NONE)}"
    console.print(plain_text(title, console, "bold"))
    about = [str(record.get("execution") or NONE), state(record)]
    about += [f"batches of {number(work['batch_size'])}"] if work.get("batch_size") else []
    console.print(plain_text(", ".join(about), console, "" if record.get("complete") else "yellow"))
    console.print()
    if mean_step(record) > 0:
        console.print(phase_table(record, console))
        console.print()
    for fact in _facts(record):
        console.print(plain_text(fact, console, "dim"))
    if record.get("counters"):
        console.print()
        console.print(_counters(record["counters"], console))
    if record.get("reads"):
        console.print()
        console.print(_reads(record["reads"], console))


def _facts(record: Record) -> list[str]:
    outside = "; ".join(f"{name} {seconds:,.3g} s" for name, seconds in (record.get("outside") or {}).items())
    overhead = record.get("overhead_share")
    work = record.get("workload") or {}
    sizes = [f"{number(work[name])} {name}" for name in SIZES if work.get(name) is not None]
    seconds = mean_step(record)
    rate = number(round(work["batch_size"] / seconds)) if seconds and work.get("batch_size") else NONE
    return [
        *_processes(record.get("processes"), Scale.of([seconds])),
        f"{', '.join(sizes) or 'sizes not known'}; {rate} mutants/s",
        f"outside of steps, in all: {outside or 'nothing'}",
        f"measuring itself takes {percent(overhead, 1.0)} of a step",
        place(record),
    ]


def _processes(processes: Mapping[str, Any] | None, scale: Scale) -> list[str]:
    """Return a line about the processes of a run, if there were several."""
    if processes is None:
        return []
    if processes["gradient_sync"] is None:
        return [f"{processes['count']} processes, which exchange no gradients here"]

    def each(name: str) -> str:
        return ", ".join(scale.show(value) for value in processes[name])

    count, share = processes["count"], max(processes["slowest"])
    return [
        f"{count} processes; gradient sync of each, {scale.unit} per step: {each('gradient_sync')}",
        f"of it {scale.show(processes['exchange'])} exchange, and waiting for the slowest: {each('wait')}; "
        f"the slowest is process {processes['slowest'].index(share)} in {percent(share, 1.0)} of the steps",
    ]


def _counters(counters: Mapping[str, Mapping[str, Any]], console: Console) -> Table:
    columns = ["phase", "operators", "scalar reads", "allocated MiB", "most of the time in"]
    table = plain_table(console, columns, (1, 2, 3), title="counted per step, in a short trace")
    for name in in_order(counters):
        counted = counters[name]
        cells = [name, *(number(counted.get(k)) for k in ("operators", "scalar_reads", "allocated_mib"))]
        top = ", ".join(f"{one['name']} ({number(one['calls'])})" for one in (counted.get("top") or [])[:3])
        table.add_row(*(plain_text(cell, console) for cell in [*cells, top or NONE]))
    return table


def _reads(reads: Sequence[Mapping[str, Any]], console: Console) -> Table:
    title = "reads of single values, which make a GPU wait"
    table = plain_table(console, ["where", "what", "calls per step"], (2,), title=title)
    ordered = sorted(reads, key=lambda read: -(read.get("calls") or 0))
    for read in ordered[:READS_SHOWN]:
        cells = [read.get("where"), read.get("what"), number(read.get("calls"))]
        table.add_row(*(plain_text(cell, console) for cell in cells))
    if len(ordered) > READS_SHOWN:
        table.add_row(plain_text(f"and {len(ordered) - READS_SHOWN} places more", console, "dim"))
    return table
