"""`PhaseRecorder`: how long every phase of every step took, measured on its own.

A step is cut wherever the innermost phase changes; a phase's time is the sum of its pieces, so that phases
exclude each other, and what lies in no phase is ``unattributed``: measured like a phase, and never called
one. On a CPU the clock on the wall is read, and the process's own (which stands still while it sleeps or
waits). The training thread has two clocks more: its seconds on a processor, and those in which it was ready
and other threads had all processors (`ThreadClock`). On a GPU an event is recorded at every cut, and read
when it is long past: nothing waits for it.

The garbage collector is a phase: it interrupts the one that it happens in. In a profile run (one that counts
operators) a `StackSampler` looks at where the training thread is.

The first steps warm up. In the last two of them memory is watched, phase by phase, and the one before may be
run inside of a context, to count its operators: both take time of their own. None of them count.
"""

from __future__ import annotations

import gc
import sys
import threading
import time
from array import array
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from wildtype.phases import COLLECTOR, PHASES, current, listening
from wildtype.training.machine_load import MachineLoad
from wildtype.training.stack_sampler import StackSampler, stack_of
from wildtype.training.thread_clock import ThreadClock

KEPT = 1000
"""Steps of which every phase's time is kept, the last ones."""
TIMELINES = 3
"""Steps of which the order of phases is kept, the last ones."""
WATCHED = 2
"""Steps in which memory is watched, the last of the warm-up."""
FEW = 8
"""Steps below which every one counts in a comparison."""
NONE = "unattributed"
FULL = 2
"""Generation of a full collection."""
CLOCKS = ("seconds", "cpu", "thread", "delay")


class Event(Protocol):
    """A mark on a GPU's stream, as `torch.cuda.Event`."""

    def query(self) -> bool:
        """Whether the GPU has passed it."""

    def elapsed_time(self, end: Any) -> float:
        """Milliseconds to a later one."""


class _Cuts:
    """The cuts of one step: clocks, the phase that begins, and the event on a GPU.

    Arrays of numbers and no objects: making objects can start the garbage collector, within a reading.
    """

    __slots__ = ("clocks", "events", "phases", "short")

    def __init__(self) -> None:
        self.clocks: tuple[array[float], ...] = tuple(array("d") for _ in CLOCKS)
        self.short: array[float] = array("d")  # seconds of short collections in the piece before each cut
        self.phases: list[str] = []
        self.events: list[Event | None] = []


@dataclass(slots=True)
class StepTimes:
    """One step: seconds per phase, ``unattributed`` among them.

    Attributes
    ----------
    seconds, cpu, thread, delay : dict of str to float
        On the wall (on a GPU: on its stream), of the process's own clock, of the training thread's, and in
        which that thread was ready and had no processor.
    pieces : list of (phase, start, end)
        Seconds from the beginning of the step.
    """

    seconds: dict[str, float]
    cpu: dict[str, float]
    thread: dict[str, float]
    delay: dict[str, float]
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
    thread_clock : ThreadClock, optional
        Of the training thread; one is made where the clock is the wall's.
    event : callable, optional
        Records a new event on the GPU's stream; without it, clocks are read.
    wait : callable, optional
        Waits until the GPU has passed all events; called when results are asked for.
    high_water : callable, optional
        MiB of memory at the highest since it was asked last.
    inside : context manager, optional
        What one step of the warm-up runs inside of, such as a counter of operators: a profile run.
    sampler : StackSampler, optional
        Looks at the training thread; one is made for a profile run.

    Attributes
    ----------
    collections : dict of (generation, place) to [int, float]
        Places are text, or code and line: how often garbage was collected in counted steps, and the seconds.
    load : MachineLoad or None
        What else the machine did meanwhile, where the wall's clock is read.
    """

    warm_up: int = 5
    clock: Callable[[], float] = time.perf_counter
    cpu_clock: Callable[[], float] = time.process_time
    event: Callable[[], Event] | None = None
    wait: Callable[[], None] | None = None
    high_water: Callable[[], float] | None = None
    inside: AbstractContextManager[Any] | None = None
    thread_clock: ThreadClock | None = None
    sampler: StackSampler | None = None
    begun: int = 0
    steps: int = 0
    outside: dict[str, float] = field(default_factory=dict)
    peaks: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._cuts: _Cuts | None = None
        self._pieces = 0
        self._watching = self._entered = self._cutting = False
        self._waiting: deque[_Cuts] = deque()
        self._sums: dict[str, dict[str, float]] = {name: {} for name in CLOCKS}
        self._kept: deque[StepTimes] = deque(maxlen=KEPT)
        self.collections: dict[tuple[Any, ...], list[float]] = {}
        real = self.clock is time.perf_counter
        self.load = MachineLoad() if real else None
        self._collecting: tuple[Any, ...] = ()
        self._began: float | None = None
        self._collected = 0.0  # seconds of the collector, also in steps that do not count
        self._short = 0.0  # of short collections since the last cut
        if self.thread_clock is None and real:
            self.thread_clock = ThreadClock()
        if self.sampler is None and self.inside is not None:
            self.sampler = StackSampler(
                counts=lambda: self._cuts is not None and self.begun > self.warm_up,
                outside=lambda: self._collected,
            )

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
        if self.load is not None and self.begun == self.warm_up + 1:
            self.load.begin()
        self._cuts = _Cuts()
        self._cut(current())

    def end(self) -> None:
        """End the step, if one is going on."""
        if self._cuts is None:
            return
        self._cut(None)
        self._leave(None)
        cuts, self._cuts = self._cuts, None
        if self.begun <= self.warm_up:
            return
        if self.load is not None:
            self.load.step()
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
        if self._cuts is not None:
            self._cut(phase)

    def _cut(self, phase: str | None) -> None:
        cuts = self._cuts
        if cuts is None:
            return
        self._cutting = True
        # A high-water mark belongs to the phase that ends here; asking for it starts the next.
        if self._watching and cuts.phases and self.high_water is not None:
            before = cuts.phases[-1]
            self.peaks[before] = max(self.peaks.get(before, 0.0), self.high_water())
        cuts.events.append(self.event() if self.event is not None else None)
        own = self.thread_clock
        if own is not None:
            own.read()
        wall, cpu, thread, delay = cuts.clocks
        wall.append(self.clock())
        cpu.append(self.cpu_clock())
        thread.append(own.cpu if own is not None else cpu[-1])
        delay.append(own.delay if own is not None else 0.0)
        cuts.short.append(self._short)
        self._short = 0.0
        cuts.phases.append(phase or NONE)
        self._cutting = False

    def _collector(self, what: str, about: dict[str, int]) -> None:
        """Take a report of the garbage collector: it starts or stops.

        A full collection interrupts the phase. The short ones may come a thousand times in a step: their
        seconds are taken out of the piece of the phase when it ends, since a cut costs more than they do.
        """
        if self._cutting or threading.get_ident() != self._thread:
            return
        full = about["generation"] == FULL
        if what == "start":
            self._began = self.clock() if full else time.thread_time()
            frame = sys._getframe(1)
            # Where an object too many was made, or gc.collect() was called.
            self._collecting = stack_of(frame, self._below)[-1:] if full else (frame.f_code, frame.f_lineno)
            if full:
                self.change(COLLECTOR)
        elif self._began is not None:
            if full:
                self.change(current())
            seconds, self._began = (self.clock() if full else time.thread_time()) - self._began, None
            self._collected += seconds
            if self._cuts is not None:
                # A GPU goes on computing meanwhile; and clocks that a test moves know no collector.
                if not full and self.thread_clock is not None and self.event is None:
                    self._short += seconds
                if self.begun > self.warm_up:
                    found = self.collections.setdefault((about["generation"], *self._collecting), [0, 0.0])
                    found[0] += 1
                    found[1] += seconds

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
        # The function that listens calls everything that is measured: it and its callers say nothing.
        frame = sys._getframe(2)
        self._below, self._thread, self._began = frame.f_code, threading.get_ident(), None
        del frame
        if self.thread_clock is not None:
            self.thread_clock.open()
        if self.sampler is not None:
            self.sampler.start(self._below)
        gc.callbacks.append(self._collector)
        try:
            with listening(self):
                yield
        except BaseException as error:
            self._leave(error)
            self._cuts = None
            raise
        finally:
            gc.callbacks.remove(self._collector)
            if self.sampler is not None:
                self.sampler.stop()
            self.end()
            if self.thread_clock is not None:
                self.thread_clock.close()

    # -------------------------------------------------------------------------------------------- results

    def _passed(self, cuts: _Cuts) -> bool:
        last = cuts.events[-1]
        return last is None or last.query()

    def _add(self, cuts: _Cuts) -> None:
        times = _times(cuts)
        self.steps += 1
        self._pieces += len(times.pieces)
        self._kept.append(times)
        if len(self._kept) > TIMELINES:
            self._kept[-TIMELINES - 1].pieces.clear()
        for clock, sums in self._sums.items():
            for name, value in getattr(times, clock).items():
                sums[name] = sums.get(name, 0.0) + value

    def finish(self) -> None:
        """End the step that is going on, and read all events."""
        self.end()
        if self._waiting and self.wait is not None:
            self.wait()
        while self._waiting:
            self._add(self._waiting.popleft())

    def totals(self, clock: str = "seconds") -> dict[str, float]:
        """Return seconds per phase of one of ``CLOCKS``, over all counted steps; `finish` first."""
        sums = self._sums[clock]
        return {name: sums[name] for name in (*PHASES, NONE) if name in sums}

    def step_seconds(self) -> NDArray[np.float64]:
        """Return seconds of the last counted steps [s]."""
        return np.array([times.total for times in self._kept])

    def phase_seconds(self, name: str) -> NDArray[np.float64]:
        """Return a phase's seconds in the last counted steps [s]."""
        return np.array([times.seconds.get(name, 0.0) for times in self._kept])

    def steady(self) -> tuple[dict[str, dict[str, float]], dict[str, float]]:
        """Return a mean step without the longest one, and the spread over steps, for comparisons of runs.

        One long step is an accident, and says nothing about the others. Of few steps none is left out.

        Returns
        -------
        Per phase, the mean seconds of each of ``CLOCKS``; and the standard deviation over steps of the
        seconds without those that other threads took, also of the whole step (``""``).
        """
        steps = list(self._kept)
        own = [sum(times.seconds.values()) - sum(times.delay.values()) for times in steps]
        if len(steps) >= FEW:
            longest = int(np.argmax(own))
            del steps[longest], own[longest]
        names = [name for name in (*PHASES, NONE) if name in self._sums["seconds"]]
        means = {
            name: {
                clock: sum(getattr(times, clock).get(name, 0.0) for times in steps) / max(len(steps), 1)
                for clock in CLOCKS
            }
            for name in names
        }
        spread = {
            name: _sd([times.seconds.get(name, 0.0) - times.delay.get(name, 0.0) for times in steps])
            for name in names
        }
        return means, spread | {"": _sd(own)}

    def timelines(self) -> list[list[tuple[str, float, float]]]:
        """Return the pieces of the last steps, a list per step."""
        return [times.pieces for times in list(self._kept)[-TIMELINES:]]

    def cuts_per_step(self) -> float:
        """Return the mean number of pieces of a step."""
        return self._pieces / self.steps if self.steps else 0.0


def _sd(seconds: list[float]) -> float:
    return float(np.std(seconds, ddof=1)) if len(seconds) > 1 else float("nan")


def _times(cuts: _Cuts) -> StepTimes:
    times = StepTimes({}, {}, {}, {}, [])
    sums = [getattr(times, clock) for clock in CLOCKS]
    at = 0.0
    for i, phase in enumerate(cuts.phases[:-1]):
        taken = [clock[i + 1] - clock[i] for clock in cuts.clocks]
        begins, ends = cuts.events[i], cuts.events[i + 1]
        if begins is not None:
            taken[0] = begins.elapsed_time(ends) / 1000
        short = min(cuts.short[i + 1], *taken[:3]) if cuts.short[i + 1] else 0.0
        for values, seconds, clock in zip(sums, taken, CLOCKS, strict=True):
            moved = 0.0 if clock == "delay" else short
            values[phase] = values.get(phase, 0.0) + seconds - moved
            if short:
                values[COLLECTOR] = values.get(COLLECTOR, 0.0) + moved
        times.pieces.append((phase, at, at + taken[0]))
        at += taken[0]
    return times


@cache
def seconds_per_cut(cuts: int = 4000) -> float:
    """Measure, once, what one cut costs on a CPU; no phase of this process is entered for it."""
    recorder = PhaseRecorder(warm_up=0)
    assert recorder.thread_clock is not None
    recorder.thread_clock.open()

    def run() -> float:
        recorder.begin()
        start = time.perf_counter()
        for _ in range(cuts):
            recorder.change("head")
        return time.perf_counter() - start

    # The smallest of three: whatever else the machine does only adds time.
    try:
        return min(run() for _ in range(3)) / cuts
    finally:
        recorder.thread_clock.close()
