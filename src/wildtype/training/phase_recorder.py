"""`PhaseRecorder`: how long every phase of every step took, measured on its own.

A step is cut wherever the innermost phase changes; a phase's time is the sum of its pieces, so that phases
exclude each other, and what lies in no phase is ``unattributed``: measured like a phase, and never called
one. On a CPU the clock on the wall is read, and the process's own (which stands still while it sleeps or
waits). On a GPU an event is recorded at every cut, and read when it is long past: nothing waits for it.

The first steps warm up. In the last two of them memory is watched, phase by phase, and the one before may be
run inside of a context, to count its operators: both take time of their own. None of them count.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from wildtype.phases import PHASES, current, listening

KEPT = 1000
"""Steps of which every phase's time is kept, the last ones."""
TIMELINES = 3
"""Steps of which the order of phases is kept, the last ones."""
WATCHED = 2
"""Steps in which memory is watched, the last of the warm-up."""
NONE = "unattributed"


class Event(Protocol):
    """A mark on a GPU's stream, as `torch.cuda.Event`."""

    def query(self) -> bool:
        """Whether the GPU has passed it."""

    def elapsed_time(self, end: Any) -> float:
        """Milliseconds to a later one."""


@dataclass(slots=True)
class _Cut:
    wall: float
    cpu: float
    phase: str
    event: Event | None


@dataclass(slots=True)
class StepTimes:
    """One step: seconds per phase, ``unattributed`` among them.

    Attributes
    ----------
    seconds, cpu : dict of str to float
        On the wall (on a GPU: on its stream), and of the process's own clock.
    pieces : list of (phase, start, end)
        Seconds from the beginning of the step.
    """

    seconds: dict[str, float]
    cpu: dict[str, float]
    pieces: list[tuple[str, float, float]]

    @property
    def total(self) -> float:
        """Seconds of the whole step."""
        return sum(self.seconds.values())


@dataclass
class PhaseRecorder:
    """Listens to phases from ``begin`` to ``end`` of every step.

    Parameters
    ----------
    warm_up : int
        Steps that do not count.
    clock, cpu_clock : callable
        Seconds, on the wall and of this process.
    event : callable, optional
        Records a new event on the GPU's stream; without it, clocks are read.
    wait : callable, optional
        Waits until the GPU has passed all events; called when results are asked for.
    high_water : callable, optional
        MiB of memory at the highest since it was asked last.
    inside : context manager, optional
        What one step of the warm-up runs inside of.
    """

    warm_up: int = 5
    clock: Callable[[], float] = time.perf_counter
    cpu_clock: Callable[[], float] = time.process_time
    event: Callable[[], Event] | None = None
    wait: Callable[[], None] | None = None
    high_water: Callable[[], float] | None = None
    inside: AbstractContextManager[Any] | None = None
    begun: int = 0
    steps: int = 0
    outside: dict[str, float] = field(default_factory=dict)
    peaks: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._cuts: list[_Cut] = []
        self._pieces = 0
        self._watching = self._entered = False
        self._waiting: deque[list[_Cut]] = deque()
        self._sums: dict[str, float] = {}
        self._cpu_sums: dict[str, float] = {}
        self._kept: deque[StepTimes] = deque(maxlen=KEPT)

    # ------------------------------------------------------------------------------------------ listening

    def begin(self) -> None:
        """Begin a step; ends the one before."""
        self.end()
        self.begun += 1
        self._watching = self.high_water is not None and 0 <= self.warm_up - self.begun < WATCHED
        if self._watching and self.high_water is not None:
            self.high_water()
        self._entered = self.inside is not None and self.begun == max(self.warm_up - WATCHED, 0)
        if self._entered and self.inside is not None:
            self.inside.__enter__()
        self._cut(current())

    def end(self) -> None:
        """End the step, if one is going on."""
        if not self._cuts:
            return
        self._cut(None)
        self._leave(None)
        cuts, self._cuts = self._cuts, []
        if self.begun <= self.warm_up:
            return
        self._waiting.append(cuts)
        # Oldest first, and only those that the GPU has passed: reading an event too early would wait for it.
        while self._waiting and self._passed(self._waiting[0]):
            self._add(self._waiting.popleft())

    def _leave(self, error: BaseException | None) -> None:
        if self._entered and self.inside is not None:
            self._entered = False
            self.inside.__exit__(None if error is None else type(error), error, None)

    def change(self, phase: str | None) -> None:
        """Cut the step: another phase is the innermost now."""
        if self._cuts:
            self._cut(phase)

    def _cut(self, phase: str | None) -> None:
        # A high-water mark belongs to the phase that ends here; asking for it starts the next.
        if self._watching and self._cuts and self.high_water is not None:
            before = self._cuts[-1].phase
            self.peaks[before] = max(self.peaks.get(before, 0.0), self.high_water())
        event = self.event() if self.event is not None else None
        self._cuts.append(_Cut(self.clock(), self.cpu_clock(), phase or NONE, event))

    @contextmanager
    def apart(self, name: str) -> Iterator[None]:
        """Account for work that belongs to no step; a step that is going on ends."""
        self.end()
        start = self.clock()
        try:
            yield
        finally:
            self.outside[name] = self.outside.get(name, 0.0) + self.clock() - start

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Listen to the phases of this process; a step that ends in an error does not count."""
        try:
            with listening(self):
                yield
        except BaseException as error:
            self._leave(error)
            self._cuts = []
            raise

    # -------------------------------------------------------------------------------------------- results

    def _passed(self, cuts: list[_Cut]) -> bool:
        last = cuts[-1].event
        return last is None or last.query()

    def _add(self, cuts: list[_Cut]) -> None:
        times = _times(cuts)
        self.steps += 1
        self._pieces += len(times.pieces)
        self._kept.append(times)
        if len(self._kept) > TIMELINES:
            self._kept[-TIMELINES - 1].pieces.clear()
        for sums, values in ((self._sums, times.seconds), (self._cpu_sums, times.cpu)):
            for name, value in values.items():
                sums[name] = sums.get(name, 0.0) + value

    def finish(self) -> None:
        """End the step that is going on, and read all events."""
        self.end()
        if self._waiting and self.wait is not None:
            self.wait()
        while self._waiting:
            self._add(self._waiting.popleft())

    def totals(self) -> dict[str, float]:
        """Return seconds per phase over all counted steps, in the order of a step; `finish` first."""
        return {name: self._sums[name] for name in (*PHASES, NONE) if name in self._sums}

    def cpu_totals(self) -> dict[str, float]:
        """Return the same of the process's own clock."""
        return {name: self._cpu_sums[name] for name in (*PHASES, NONE) if name in self._cpu_sums}

    def step_seconds(self) -> NDArray[np.float64]:
        """Return seconds of the last counted steps [s]."""
        return np.array([times.total for times in self._kept])

    def phase_seconds(self, name: str) -> NDArray[np.float64]:
        """Return a phase's seconds in the last counted steps [s]."""
        return np.array([times.seconds.get(name, 0.0) for times in self._kept])

    def timelines(self) -> list[list[tuple[str, float, float]]]:
        """Return the pieces of the last steps, a list per step."""
        return [times.pieces for times in list(self._kept)[-TIMELINES:]]

    def cuts_per_step(self) -> float:
        """Return the mean number of pieces of a step."""
        return self._pieces / self.steps if self.steps else 0.0


def _times(cuts: list[_Cut]) -> StepTimes:
    times = StepTimes({}, {}, [])
    at = 0.0
    for cut, following in pairwise(cuts):
        seconds = following.wall - cut.wall
        if cut.event is not None:
            seconds = cut.event.elapsed_time(following.event) / 1000
        times.seconds[cut.phase] = times.seconds.get(cut.phase, 0.0) + seconds
        times.cpu[cut.phase] = times.cpu.get(cut.phase, 0.0) + following.cpu - cut.cpu
        times.pieces.append((cut.phase, at, at + seconds))
        at += seconds
    return times


@cache
def seconds_per_cut(cuts: int = 4000) -> float:
    """Measure, once, what one cut costs on a CPU; no phase of this process is entered for it."""
    recorder = PhaseRecorder(warm_up=0)

    def run() -> float:
        recorder.begin()
        start = time.perf_counter()
        for _ in range(cuts):
            recorder.change("head")
        return time.perf_counter() - start

    # The smallest of three: whatever else the machine does only adds time.
    return min(run() for _ in range(3)) / cuts
