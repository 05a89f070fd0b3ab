"""Seconds of Python by line, for the data pipeline, which torch's profiler shows as a gap.

The interpreter is asked to report every line of the watched files. A line's time is what passes until the
next watched line begins, on top of it or after it: calls into other packages, into torch and into compiled
code belong to the line that makes them, calls of watched functions to the lines of those. So lines add up.

Reporting a line costs about a microsecond, and so does every Python call meanwhile, watched or not. Most of
the former is kept out of the figures; a line that runs a million times still looks slower than it is, and
code in many short calls more so. Take ranks and counts from this table, and times from a run without it. Only
the calling thread is seen: iterate loaders without worker processes.
"""

from __future__ import annotations

import linecache
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType
from typing import Any

PACKAGE = Path(__file__).parents[1]
Key = tuple[str, int, str]


@dataclass(frozen=True)
class LineTime:
    """A line of a watched file: its number of runs, its seconds in all, and its text."""

    file: str
    line: int
    function: str
    calls: int
    seconds: float
    source: str


@dataclass(frozen=True)
class LineReport:
    """Lines by time, and the seconds of the run, with those outside of watched files."""

    lines: list[LineTime]
    seconds: float

    def to_json(self, top: int | None = None) -> dict[str, Any]:
        """Return the ``top`` lines as JSON, all by default."""
        return {"seconds": self.seconds, "lines": [asdict(line) for line in self.lines[:top]]}

    def to_text(self, top: int = 20) -> str:
        """Return a table of the ``top`` lines."""
        watched = sum(line.seconds for line in self.lines)
        title = f"{watched:.3f} s in {len(self.lines)} watched lines, of {self.seconds:.3f} s in all"
        rows = [f"{'seconds':>9} {'share':>6} {'calls':>9}  line"]
        for line in self.lines[:top]:
            share = line.seconds / self.seconds if self.seconds else 0.0
            rows.append(
                f"{line.seconds:9.4f} {share:6.1%} {line.calls:9d}  "
                f"{line.file}:{line.line} in {line.function}: {line.source}"
            )
        return "\n".join([title, *rows]) + "\n"


def time_lines(
    run: Callable[[], object],
    *,
    watch: Sequence[str | Path] = (PACKAGE,),
    clock: Callable[[], float] = time.perf_counter,
) -> LineReport:
    """Run a callable and return the time of each watched line that it executes.

    Parameters
    ----------
    run : callable
        For example, to iterate some batches of a loader.
    watch : sequence of paths
        Files, and folders with all that is below; by default this package.
    clock : callable
        Seconds.
    """
    tracer = _Tracer([Path(path).resolve() for path in watch], clock)
    before = sys.gettrace()
    start = clock()
    sys.settrace(tracer.call)
    try:
        run()
    finally:
        sys.settrace(before)
    seconds = clock() - start
    lines = [
        LineTime(_below(file, watch), line, function, calls, taken, linecache.getline(file, line).strip())
        for (file, line, function), (calls, taken) in tracer.lines.items()
    ]
    return LineReport(sorted(lines, key=lambda line: (-line.seconds, line.file, line.line)), seconds)


def _below(file: str, watch: Sequence[str | Path]) -> str:
    """Return a path as seen from beside the watched folder it lies in."""
    path = Path(file).resolve()
    for base in (Path(place).resolve() for place in watch):
        if path.is_relative_to(base):
            return str(path.relative_to(base.parent))
    return file


class _Tracer:
    """Adds the time between two reports to the line that was running in between."""

    def __init__(self, watch: Sequence[Path], clock: Callable[[], float]) -> None:
        self.watch = watch
        self.clock = clock
        self.lines: dict[Key, list[Any]] = {}  # calls, seconds
        self.stack: list[Key] = []
        self.watched: dict[str, bool] = {}
        self.last = 0.0

    def call(self, frame: FrameType, event: str, argument: object) -> Any:
        """Take a report of a new frame; only frames of watched files are asked for their lines."""
        file = frame.f_code.co_filename
        if file not in self.watched:
            path = Path(file).resolve()
            self.watched[file] = any(path.is_relative_to(base) for base in self.watch)
        if not self.watched[file]:
            return None  # no report of its lines: its time stays with the line that called it
        self._charge()
        # Until its first line is reported, a frame's time belongs to where it starts or goes on.
        self.stack.append((file, frame.f_lineno, frame.f_code.co_name))
        self.last = self.clock()
        return self.line

    def line(self, frame: FrameType, event: str, argument: object) -> Any:
        """Take a report of a line that begins, or of a frame that ends or pauses."""
        self._charge()
        if event == "return":  # also where a generator yields: it comes back through `call`
            self.stack.pop()
        elif event == "line":
            key = (frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)
            self.stack[-1] = key
            self.lines.setdefault(key, [0, 0.0])[0] += 1
        self.last = self.clock()  # read again at the end, so that the report itself is charged to no line
        return self.line

    def _charge(self) -> None:
        if self.stack:
            self.lines.setdefault(self.stack[-1], [0, 0.0])[1] += self.clock() - self.last
