"""Figures per step from the events of a Chrome trace and the operator counts of one step.

Events are those that torch's profiler writes: times in microseconds; steps are the ranges ``ProfilerStep#n``,
phases the ranges ``phase: name``. Nothing here loads torch, so that a stored trace can be read anywhere.
"""

from __future__ import annotations

import re
import statistics
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from wildtype.phases import PHASES

Event = Mapping[str, Any]
Interval = tuple[float, float]

PHASE_MARK = "phase: "
SCALAR_READ = "aten::item"
COPIES = frozenset({"aten::clone", "aten::copy_", "aten::_to_copy", "aten::lift_fresh_copy"})
_STEP_MARK = "ProfilerStep#"
_NODE_MARK = "autograd::engine::evaluate_function: "
_KERNELS = frozenset({"kernel", "gpu_memcpy", "gpu_memset"})
_RUNTIME = frozenset({"cuda_runtime", "cuda_driver"})
# Phases whose tensors are on the host on every machine: their reads never wait for a GPU.
_ON_HOST = frozenset(PHASES[: PHASES.index("host to device")])
_GAPS = 10
SIZED_OR_READ = frozenset({SCALAR_READ, "aten::nonzero", "aten::masked_select", "aten::_unique2"})
"""Operators that make the processor wait for values; those inside others are not counted again."""
_FRAME = re.compile(r"^.*?([^/\\]+\.py)\((\d+)\): (.*)$")
_TORCHS = re.compile(r"(^|/)(torch|lightning|lightning_fabric|pytorch_lightning)/|^<|^nn\.Module")


@dataclass
class OperatorTotal:
    """Calls of one operator: number, seconds on the calling thread, MiB of new storage, float64 results."""

    calls: float = 0.0
    seconds: float = 0.0
    allocated_mib: float = 0.0
    float64: float = 0.0


@dataclass(frozen=True, order=True)
class Read:
    """A place where Python reads a value, or a size that depends on values.

    Attributes
    ----------
    where : str
        ``file.py:12 in function``, the innermost frame outside torch; ``<backward>`` where there is none.
    what : str
        The operator, or the method of a tensor.
    phase : str
        Where in the step.
    on_device : bool
        Whether a tensor lay on an accelerator, so that the processor did wait.
    """

    where: str
    what: str
    phase: str
    on_device: bool

    def effect(self, cuda: bool) -> str:
        """Return the cost of the read in words, if steps run on a GPU (``cuda``) or on a CPU."""
        if self.on_device:
            return "synchronises"
        return "stays on the host" if cuda or self.phase in _ON_HOST else "would synchronise on a GPU"


@dataclass
class OperatorCounts:
    """Operators and reads per step: phase to operator to `OperatorTotal`, and `Read` to calls."""

    operators: dict[str, dict[str, OperatorTotal]]
    reads: dict[Read, float]

    def counters(self, top: int = 5) -> dict[str, dict[str, Any]]:
        """Return JSON per phase: operators, scalar_reads (``.item()``, ``float(t)``, ``bool(t)``),
        allocated_mib, seconds, copies, float64 (operators that make such tensors), and ``top`` of the most
        called, and of the slowest.
        """
        report = {}
        for phase, totals in self.operators.items():
            ranked = sorted(totals.items(), key=lambda item: (-item[1].calls, -item[1].seconds, item[0]))
            scalars = [n for read, n in self.reads.items() if (read.phase, read.what) == (phase, SCALAR_READ)]
            report[phase] = {
                "operators": sum(total.calls for total in totals.values()),
                "scalar_reads": sum(scalars, start=0.0),
                "allocated_mib": sum(total.allocated_mib for total in totals.values()),
                "seconds": sum(total.seconds for total in totals.values()),
                "copies": sum(t.calls for name, t in totals.items() if name in COPIES),
                "float64": sum(total.float64 for total in totals.values()),
                "top": [{"name": name, "calls": t.calls, "seconds": t.seconds} for name, t in ranked[:top]],
                "slowest": [
                    {"name": name, "calls": t.calls, "seconds": t.seconds}
                    for name, t in sorted(ranked, key=lambda item: -item[1].seconds)[:top]
                ],
            }
        return report

    def reads_json(self) -> list[dict[str, Any]]:
        """Return JSON of where, what and calls, most called first."""
        calls: dict[tuple[str, str], float] = defaultdict(float)
        for read, count in self.reads.items():
            calls[read.where, read.what] += count
        ranked = sorted(calls.items(), key=lambda item: (-item[1], item[0]))
        return [{"where": where, "what": what, "calls": count} for (where, what), count in ranked]

    def to_json(self, top: int = 5) -> dict[str, Any]:
        """Return the fields ``counters`` and ``reads`` of a profile record."""
        return {"counters": self.counters(top), "reads": self.reads_json()}


@dataclass(frozen=True)
class TraceReport:
    """Analysis of the active steps of a trace; all figures per step, times in seconds.

    Attributes
    ----------
    name, trace : str
        What was traced, and the file of the Chrome trace.
    cuda : bool
        Whether a GPU took part.
    steps : int
        Active steps.
    seconds_per_step : float
        Mean wall time, the profiler's own cost included.
    autograd_nodes, launches, trace_events : float
        Nodes of the backward graph that ran, kernels launched, events in the trace.
    allocated_mib : float
        Memory asked for: the GPU's where there is one.
    operators : list of dict
        name, self_seconds (without the operators that it calls), calls, allocated_mib; by self_seconds.
    allocations : list of dict
        The same, by allocated_mib.
    kernels : list of dict
        name, seconds, calls, on the GPU.
    waits : list of dict
        name, seconds, calls of the runtime's calls in which the processor waits for the GPU.
    idle : dict
        ``where`` ("device": no kernel ran; "thread": no operator ran), ``seconds``, ``share`` of the time,
        ``phases`` (phase to seconds) and the longest ``gaps``: seconds, phase, after and before which event.
    reads : list of dict
        where, what, phase, calls and effect, from one counted step.
    counters : dict
        Per phase, from the same step; see `OperatorCounts.counters`.
    phases : dict
        Phase to seconds, of the thread that trains; empty where none is marked.
    shapes : list of dict
        name, shapes, self_seconds, calls of operators by the shapes of their operands, where recorded.
    marked : bool
        Whether steps are marked; else the whole recording counts as one.
    """

    name: str
    trace: str
    cuda: bool
    steps: int
    seconds_per_step: float
    autograd_nodes: float
    launches: float
    trace_events: float
    allocated_mib: float
    operators: list[dict[str, Any]]
    allocations: list[dict[str, Any]]
    kernels: list[dict[str, Any]]
    waits: list[dict[str, Any]]
    idle: dict[str, Any]
    reads: list[dict[str, Any]]
    counters: dict[str, dict[str, Any]]
    phases: dict[str, float] = field(default_factory=dict)
    shapes: list[dict[str, Any]] = field(default_factory=list)
    marked: bool = True

    def to_json(self) -> dict[str, Any]:
        """Return all fields, JSON-able."""
        return asdict(self)

    def to_text(self) -> str:
        """Return the analysis as plain text, a section per question."""
        nothing = {
            "device": "Idle: no kernel on the GPU",
            "thread": "Idle: no operator of torch on the processor, but Python, other code, or waiting",
        }
        count = (
            f"{self.steps} step{'s' if self.steps > 1 else ''}" if self.marked else "no step is marked, one"
        )
        lines = [
            f"Trace of {self.name or 'a training step'}: {count} of "
            f"{duration(self.seconds_per_step)}, profiler included",
            f"Per step: {self.autograd_nodes:g} autograd nodes, {self.launches:g} kernel launches, "
            f"{self.trace_events:g} trace events, {self.allocated_mib:.1f} MiB allocated",
            f"Chrome trace: {self.trace}",
        ]
        operators = [
            (
                duration(row["self_seconds"]),
                f"{row['calls']:g}",
                f"{row['allocated_mib']:.2f} MiB",
                row["name"],
            )
            for row in self.operators
        ]
        phases = [(duration(s), f"{s / self.seconds_per_step:.0%}", p) for p, s in self.phases.items()]
        lines += section("Phases, per step", phases) if phases else []
        lines += section("Operators, by their own time per step", operators)
        by_shape = [
            (duration(row["self_seconds"]), f"{row['calls']:g}", row["name"], row["shapes"])
            for row in self.shapes
        ]
        lines += section("Operators by the shapes of their operands, per step", by_shape) if by_shape else []
        for title, rows in (
            ("Kernels, by time per step", self.kernels),
            ("Calls that wait for the GPU, per step", self.waits),
        ):
            lines += section(title, [(duration(r["seconds"]), f"{r['calls']:g}", r["name"]) for r in rows])
        idle = f"{nothing[self.idle['where']]}: {duration(self.idle['seconds'])} per step, "
        idle += f"{self.idle['share']:.0%}"
        shares = ", ".join(f"{phase} {duration(seconds)}" for phase, seconds in self.idle["phases"].items())
        gaps = [
            (duration(gap["seconds"]), gap["phase"], f"after {gap['after']}", f"before {gap['before']}")
            for gap in self.idle["gaps"]
        ]
        lines += section(f"{idle}; by phase: {shares}" if shares else idle, gaps)
        reads = [(f"{r['calls']:g}", r["effect"], r["what"], r["phase"], r["where"]) for r in self.reads]
        lines += section("Reads of values by Python, calls per step", reads)
        allocations = [
            (f"{row['allocated_mib']:.2f} MiB", f"{row['calls']:g}", row["name"]) for row in self.allocations
        ]
        lines += section("Operators, by memory asked for per step", allocations)
        return "\n".join(lines) + "\n"


def analyse(
    events: Sequence[Event],
    counts: OperatorCounts | None = None,
    *,
    name: str = "",
    trace: str | Path = "",
    top: int | None = 15,
) -> TraceReport:
    """Return the figures of a trace's active steps.

    Parameters
    ----------
    events : sequence of dict
        ``traceEvents`` of a Chrome trace; without a ``ProfilerStep`` range all of it is one step.
    counts : OperatorCounts, optional
        Of one step, for reads and counters; without, reads are those that the events show.
    name, trace : str
        For the report.
    top : int, optional
        Rows per list; None: all.
    """
    spans = [e for e in events if e.get("ph") == "X" and e.get("cat") != "Trace"]
    marks = [e for e in spans if e.get("cat") == "user_annotation"]
    steps = sorted(_interval(e) for e in marks if str(e["name"]).startswith(_STEP_MARK))
    marked = bool(steps)
    if not marked:
        every = [_interval(e) for e in spans]
        steps = [(min(start for start, _ in every), max(end for _, end in every))]
    first, n = steps[0][0], len(steps)
    inside = [e for e in spans if first <= e["ts"] < steps[-1][1]]
    # Kernels end after the step that launched them; those that run at the end still belong to it.
    kernels = [e for e in spans if e.get("cat") in _KERNELS and e["ts"] >= first]
    operators = [e for e in inside if e.get("cat") == "cpu_op"]
    runtime = [e for e in inside if e.get("cat") in _RUNTIME]
    # Device Type 0 is the CPU. A run on a GPU is judged by the GPU's memory, others by the host's.
    memory = [
        e
        for e in events
        if e.get("name") == "[memory]" and e["args"]["Bytes"] > 0 and first <= e["ts"] < steps[-1][1]
        if (e["args"]["Device Type"] != 0) == bool(kernels)
    ]
    phases = sorted(
        (*_interval(e), str(e["name"]).removeprefix(PHASE_MARK))
        for e in marks
        if str(e["name"]).startswith(PHASE_MARK)
    )
    window = [(first, max([steps[-1][1], *(_interval(e)[1] for e in kernels)]))] if kernels else steps
    table = _operator_table(operators, memory, n)
    shaped = [{**e, "name": (e["name"], str(e["args"]["Input Dims"]))} for e in operators if _has_shapes(e)]
    by_shape = [
        {"name": name, "shapes": shapes, "self_seconds": row["self_seconds"], "calls": row["calls"]}
        for row in _operator_table(shaped, [], n)
        for name, shapes in [row["name"]]
    ]
    by_phase: dict[str, float] = defaultdict(float)
    for start, end in steps:
        for phase, length in _parts(start, end, phases).items():
            by_phase[phase] += length / 1e6 / n
    if counts is None:
        counts = OperatorCounts({}, _reads(operators, spans, runtime, phases, n))
    return TraceReport(
        name=name,
        trace=str(trace),
        cuda=bool(kernels),
        steps=n,
        seconds_per_step=statistics.fmean(end - start for start, end in steps) / 1e6,
        autograd_nodes=sum(str(e["name"]).startswith(_NODE_MARK) for e in operators) / n,
        launches=sum("LaunchKernel" in str(e["name"]) for e in runtime) / n,
        trace_events=sum(e.get("cat") != "user_annotation" for e in inside) / n,
        allocated_mib=sum(e["args"]["Bytes"] for e in memory) / 2**20 / n,
        operators=sorted(table, key=lambda row: -row["self_seconds"])[:top],
        allocations=sorted((r for r in table if r["allocated_mib"]), key=lambda r: -r["allocated_mib"])[:top],
        kernels=_totals(kernels, n)[:top],
        waits=_totals([e for e in runtime if _waits(str(e["name"]))], n)[:top],
        idle=_idle(kernels or operators, window, phases, n) | {"where": "device" if kernels else "thread"},
        reads=[
            {
                "where": r.where,
                "what": r.what,
                "phase": r.phase,
                "calls": c,
                "effect": r.effect(bool(kernels)),
            }
            for r, c in sorted(counts.reads.items(), key=lambda item: (-item[1], item[0]))
        ],
        counters=counts.counters(),
        phases=dict(by_phase),
        shapes=sorted(by_shape, key=lambda row: -float(row["self_seconds"]))[:top],
        marked=marked,
    )


def _has_shapes(event: Event) -> bool:
    return any((event.get("args") or {}).get("Input Dims") or ())


def _reads(
    operators: Iterable[Event],
    spans: Iterable[Event],
    runtime: Iterable[Event],
    phases: Sequence[tuple[float, float, str]],
    steps: int,
) -> dict[Read, float]:
    """Return the reads of values that events show, by line where call stacks were recorded."""
    waits = sorted(_interval(e) for e in runtime if _waits(str(e["name"])))
    frames: dict[Any, list[tuple[float, float, str]]] = defaultdict(list)
    for event in spans:
        if event.get("cat") == "python_function" and ".py(" in str(event["name"]):
            frames[event["tid"]].append((*_interval(event), str(event["name"])))
    for of_thread in frames.values():
        of_thread.sort()
    found: dict[Read, float] = defaultdict(float)
    for event in operators:
        if str(event["name"]) not in SIZED_OR_READ:
            continue
        start, end = _interval(event)
        # Frames nest: of those that are open at the read, the one that began last is the innermost.
        open_frames = frames[event["tid"]]
        at = bisect_right(open_frames, (start, float("inf")))
        inside = (f for b, e, f in reversed(open_frames[:at]) if e >= end and not _TORCHS.search(f))
        waited = bisect_right(waits, (end,)) > bisect_right(waits, (start,))
        at = max(bisect_right(phases, (start, float("inf"))) - 1, 0)
        phase = next((p for b, e, p in phases[at : at + 1] if b <= start < e), "no phase")
        where = _FRAME.sub(r"\1:\2 in \3", next(inside, "no call stack"))
        found[Read(where, str(event["name"]), phase, waited)] += 1 / steps
    return dict(found)


def _interval(event: Event) -> Interval:
    return float(event["ts"]), float(event["ts"]) + float(event["dur"])


def _waits(name: str) -> bool:
    """Whether a call of the runtime returns only when the GPU is done."""
    return "Synchronize" in name or (name.startswith("cudaMemcpy") and "Async" not in name)


def _totals(events: Iterable[Event], steps: int) -> list[dict[str, Any]]:
    seconds: dict[str, list[float]] = defaultdict(list)
    for event in events:
        seconds[str(event["name"])].append(float(event["dur"]) / 1e6)
    rows = [
        {"name": name, "seconds": sum(taken) / steps, "calls": len(taken) / steps}
        for name, taken in seconds.items()
    ]
    return sorted(rows, key=lambda row: -float(row["seconds"]))


def _operator_table(operators: Iterable[Event], memory: Iterable[Event], steps: int) -> list[dict[str, Any]]:
    """Return self time, calls and memory per operator: both belong to the innermost operator of a thread."""
    rows: dict[Any, dict[str, Any]] = {}
    threads: dict[Any, list[Event]] = defaultdict(list)
    for event in [*operators, *memory]:
        threads[event["pid"], event["tid"]].append(event)
    for events in threads.values():
        running: list[tuple[float, dict[str, Any]]] = []
        # Events nest within a thread: at equal starts the longer one is the outer one, so it comes first, and
        # the stack of running operators says to which one a time or an allocation belongs.
        for event in sorted(events, key=lambda e: (e["ts"], -e.get("dur", 0.0))):
            while running and running[-1][0] <= event["ts"]:
                running.pop()
            if event["name"] == "[memory]":
                if running:
                    running[-1][1]["allocated_mib"] += event["args"]["Bytes"] / 2**20
                continue
            name = event["name"]
            start, end = _interval(event)
            row = rows.setdefault(
                name, {"name": name, "self_seconds": 0.0, "calls": 0.0, "allocated_mib": 0.0}
            )
            if running:
                end = min(end, running[-1][0])  # rounded times may stick out
                running[-1][1]["self_seconds"] -= (end - start) / 1e6
            row["self_seconds"] += (end - start) / 1e6
            row["calls"] += 1
            running.append((end, row))
    return [
        {key: value if key == "name" else value / steps for key, value in row.items()}
        for row in rows.values()
    ]


def _idle(
    busy: Iterable[Event], window: Sequence[Interval], phases: Sequence[tuple[float, float, str]], steps: int
) -> dict[str, Any]:
    """Return the time of the window in which none of the events ran, by phase, and its longest parts."""
    gaps: list[tuple[float, float, str, str]] = []
    ordered = sorted(busy, key=lambda e: (e["ts"], -e["dur"]))
    starts = [float(e["ts"]) for e in ordered]
    for start, end in window:
        reached, after = start, "the step's beginning"
        for event in ordered[bisect_right(starts, start - 1e-9) : bisect_right(starts, end)]:
            begin, stop = _interval(event)
            if begin > reached:
                gaps.append((reached, begin, after, str(event["name"])))
            if stop > reached:
                reached, after = stop, str(event["name"])
        if end > reached:
            gaps.append((reached, end, after, "the step's end"))
    total = sum(end - start for start, end, _, _ in gaps)
    by_phase: dict[str, float] = defaultdict(float)
    longest = []
    for start, end, after, before in gaps:
        parts = _parts(start, end, phases)
        for phase, length in parts.items():
            by_phase[phase] += length / 1e6 / steps
        phase = max(parts, key=lambda p: parts[p], default="no phase")
        longest.append({"seconds": (end - start) / 1e6, "phase": phase, "after": after, "before": before})
    return {
        "seconds": total / 1e6 / steps,
        "share": total / sum(end - start for start, end in window),
        "phases": dict(sorted(by_phase.items(), key=lambda item: -item[1])),
        "gaps": sorted(longest, key=lambda gap: -float(str(gap["seconds"])))[:_GAPS],
    }


def _parts(start: float, end: float, phases: Sequence[tuple[float, float, str]]) -> dict[str, float]:
    """Return how much of an interval each phase covers; phases follow each other without overlap."""
    parts: dict[str, float] = defaultdict(float)
    at = max(bisect_right(phases, (start,)) - 1, 0)  # the phase before may reach into the interval
    while at < len(phases) and phases[at][0] < end:
        overlap = min(end, phases[at][1]) - max(start, phases[at][0])
        if overlap > 0:
            parts[phases[at][2]] += overlap
        at += 1
    return parts


def duration(seconds: float) -> str:
    """Return a duration for people: three figures and a unit."""
    for factor, unit in ((1.0, "s"), (1e3, "ms")):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e6:.3g} µs"


def section(title: str, rows: Sequence[Sequence[str]]) -> list[str]:
    """Return a titled block of aligned columns."""
    if not rows:
        return ["", f"{title}: none"]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["", title] + [
        "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
