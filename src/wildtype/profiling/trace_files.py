"""Traces of torch's profiler on disk, read and compared, whoever wrote them. Nothing here loads torch."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from wildtype.errors import ConfigError, reason_of
from wildtype.profiling.trace_analysis import Event, TraceReport, analyse, duration, section
from wildtype.unpacking import opened

TOP = 15
"""Rows per list that are printed."""


def read_events(path: Path) -> list[Event]:
    """Return the events of a Chrome trace, JSON or compressed JSON.

    Raises
    ------
    ConfigError
        If there is no such file, or it is no trace of torch's profiler.
    """
    try:
        with opened(path) as stream:
            record = json.load(stream)
        events = record["traceEvents"] if isinstance(record, dict) else record
        found: list[Event] = [event for event in events if isinstance(event, dict)]
    except FileNotFoundError as error:
        raise ConfigError(f"there is no trace {str(path)!r}: check the path") from error
    except (OSError, EOFError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(
            f"{str(path)!r} is no Chrome trace ({reason_of(error)}): give a file that torch's profiler "
            f"wrote, as `wildtype profile trace` or training.trace_step do"
        ) from error
    if not any(event.get("cat") in ("cpu_op", "kernel") and event.get("ph") == "X" for event in found):
        raise ConfigError(
            f"{str(path)!r} holds no operators of torch's profiler: give a file that it wrote, as `wildtype "
            f"profile trace` or training.trace_step do"
        )
    return found


def analyse_file(path: Path, *, top: int | None = TOP) -> TraceReport:
    """Return the figures of a stored trace; errors as in `read_events`."""
    return analyse(read_events(path), name=path.name, trace=path, top=top)


@dataclass(frozen=True)
class TraceGap:
    """Two traces side by side; all figures per step, times in seconds, second minus first.

    Attributes
    ----------
    names : (str, str)
        Their files.
    seconds : (float, float)
        Of a step.
    facts : list of dict
        name, first and second: launches, autograd nodes, events, memory and idle time.
    phases, operators, kernels, waits, reads : list of dict
        name, first, second and added (seconds; of reads, calls), the largest difference first; operators also
        have calls in both, reads have where.
    """

    names: tuple[str, str]
    seconds: tuple[float, float]
    facts: list[dict[str, Any]]
    phases: list[dict[str, Any]]
    operators: list[dict[str, Any]]
    kernels: list[dict[str, Any]]
    waits: list[dict[str, Any]]
    reads: list[dict[str, Any]]

    @property
    def added(self) -> float:
        """Seconds that a step of the second trace takes longer."""
        return self.seconds[1] - self.seconds[0]

    def to_json(self) -> dict[str, Any]:
        """Return all fields, JSON-able."""
        return asdict(self) | {"added": self.added}

    def to_text(self, top: int = TOP) -> str:
        """Return the comparison as plain text: what a step of the second has more or less of."""
        first, second = self.seconds
        lines = [
            f"{self.names[1]} against {self.names[0]}: a step takes {duration(second)} instead of "
            f"{duration(first)}, {second / first:.2f} × (profiler included)"
        ]
        facts = [(row["name"], _shown(row["first"]), _shown(row["second"])) for row in self.facts]
        lines += section("Per step, first and second", facts)
        for title, rows in (
            ("Phases", self.phases),
            ("Operators, by their own time", self.operators),
            ("Kernels", self.kernels),
            ("Calls that wait for the GPU", self.waits),
        ):
            changed = [row for row in rows if row["added"]][:top]
            if changed:
                lines += section(f"{title}: added, share of the gap, first, second", self._rows(changed))
        reads = [
            (f"{row['added']:+g}", f"{row['first']:g}", f"{row['second']:g}", row["name"], row["where"])
            for row in self.reads
            if row["added"]
        ][:top]
        lines += section("Reads of values, calls: added, first, second", reads) if reads else []
        return "\n".join(lines) + "\n"

    def _rows(self, rows: Sequence[Mapping[str, Any]]) -> list[tuple[str, ...]]:
        out: list[tuple[str, ...]] = []
        for row in rows:
            share = f"{row['added'] / self.added:.0%}" if self.added else "–"
            calls = f"{row['calls'][0]:g} → {row['calls'][1]:g} calls" if "calls" in row else ""
            sign = "+" if row["added"] > 0 else "−"
            out.append(
                (
                    f"{sign}{duration(abs(row['added']))}",
                    share,
                    duration(row["first"]),
                    duration(row["second"]),
                    row["name"],
                    calls,
                )
            )
        return out


def compare_traces(first: TraceReport, second: TraceReport) -> TraceGap:
    """Compare two traces step by step; both analysed with ``top=None``, so that no row is missing in one."""
    facts = [
        ("kernel launches", first.launches, second.launches),
        ("autograd nodes", first.autograd_nodes, second.autograd_nodes),
        ("events", first.trace_events, second.trace_events),
        ("MiB asked for", first.allocated_mib, second.allocated_mib),
        (f"seconds without {_busy(first)}", first.idle["seconds"], second.idle["seconds"]),
    ]
    operators = _joined(_times(first.operators, "self_seconds"), _times(second.operators, "self_seconds"))
    calls = [{row["name"]: row["calls"] for row in report.operators} for report in (first, second)]
    for row in operators:
        row["calls"] = [of.get(row["name"], 0.0) for of in calls]
    reads = _joined(*({(r["what"], r["where"]): r["calls"] for r in t.reads} for t in (first, second)))
    return TraceGap(
        (first.trace, second.trace),
        (first.seconds_per_step, second.seconds_per_step),
        [{"name": name, "first": a, "second": b} for name, a, b in facts],
        _joined(first.phases, second.phases),
        operators,
        _joined(_times(first.kernels), _times(second.kernels)),
        _joined(_times(first.waits), _times(second.waits)),
        [row | {"name": row["name"][0], "where": row["name"][1]} for row in reads],
    )


def _busy(report: TraceReport) -> str:
    return "a kernel on the GPU" if report.idle["where"] == "device" else "an operator of torch"


def _times(rows: Sequence[Mapping[str, Any]], key: str = "seconds") -> dict[str, float]:
    return {str(row["name"]): float(row[key]) for row in rows}


def _joined(first: Mapping[Any, float], second: Mapping[Any, float]) -> list[dict[str, Any]]:
    """Return a row per name of either, the largest difference first."""
    rows = [
        {"name": name, "first": a, "second": b, "added": b - a}
        for name in {**first, **second}
        for a, b in [(first.get(name, 0.0), second.get(name, 0.0))]
    ]
    return sorted(rows, key=lambda row: (-abs(row["added"]), str(row["name"])))


def _shown(value: float) -> str:
    return f"{value:.4g}"
