"""`StackSampler`: where the training thread is, looked at by another thread some hundred times a second.

Phases say which part of a step takes long, and nothing of what lies between them. A sample is the stack of
Python at one moment: the functions of the project and of the user, outermost first, without those of torch,
Lightning, Python's library and other packages. A phase's time is divided among its stacks in proportion to
the time since the sample before.

A C function that holds the interpreter's lock is seen when it returns, at the line that called it. The
sampler's cost is that of handing the lock over: about 50 µs per sample. Python hands it over within 5 ms, and
within `HAND_OVER` while a sampler looks: a function that computes for less would otherwise never be seen, and
its time would be that of the next function that waits.
"""

from __future__ import annotations

import gc
import sys
import sysconfig
import threading
import time
from collections.abc import Callable, Iterable
from functools import cache, partial
from itertools import accumulate, chain, islice, repeat, starmap, takewhile
from operator import attrgetter, call, is_not, methodcaller
from pathlib import Path
from random import Random
from types import CodeType, FrameType
from typing import Any, cast

from wildtype.phases import current

PACKAGE = str(Path(__file__).parents[1])
LIBRARIES = tuple({str(Path(sysconfig.get_path(name))) for name in ("stdlib", "platstdlib")})
PACKAGES = ("/site-packages/", "/dist-packages/")
# Code that measures, and stands in the stack of everything that is measured.
OWN = tuple(
    str(Path(PACKAGE) / name)
    for name in (
        "phases.py",
        "training/phase_recorder.py",
        "training/phase_hooks.py",
        "training/stack_sampler.py",
        "training/thread_clock.py",
        "training/machine_load.py",
    )
)
HAND_OVER = 0.0002
"""Seconds that a thread keeps the interpreter's lock at most after the sampler asks for it."""
LOOP = "the training loop itself (Lightning)"
"""A stack without a function of the project: what the trainer does between its hooks."""

Stack = tuple[str, ...]
Line = tuple[CodeType, int]


class StackSampler:
    """Looks at one thread while it is started.

    Parameters
    ----------
    every : float
        Mean seconds between samples. They vary, so that no rhythm of the steps can hide from them.
    phase : callable
        Returns the phase of the thread, or None.
    counts : callable
        Whether a sample counts now, such as within timed steps.
    outside : callable
        Seconds so far that no sample can see, such as those of the garbage collector.

    Attributes
    ----------
    seconds, samples : dict of (phase or None, stack) to float and int
        Time that each stack stands for, and how often it was seen.
    others : dict of str to int
        How often another thread of Python was seen at work, by name and place.
    """

    def __init__(
        self,
        every: float = 0.004,
        *,
        phase: Callable[[], str | None] = current,
        counts: Callable[[], bool] = lambda: True,
        outside: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self.every = every
        self.phase = phase
        self.counts = counts
        self.outside = outside
        self.seconds: dict[tuple[str | None, Stack], float] = {}
        self.samples: dict[tuple[str | None, Stack], int] = {}
        self.others: dict[str, int] = {}
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()
        self._draw = Random(0)  # of the moments of samples: draws of the run are not touched

    def start(self, below: CodeType | None = None) -> None:
        """Look at the calling thread from now on; frames of ``below`` and further out are left out."""
        self._below = below
        self._watched = threading.get_ident()
        self._stop.clear()
        self._before = sys.getswitchinterval()
        sys.setswitchinterval(min(self._before, HAND_OVER))
        self._thread = threading.Thread(target=self._run, name="wildtype stack sampler", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End."""
        if self._thread is not None:
            self._stop.set()
            self._thread.join()
            self._thread = None
            sys.setswitchinterval(self._before)

    def _run(self) -> None:
        last, unseen = time.perf_counter(), self.outside()
        while not self._stop.wait(self.every * self._draw.uniform(0.5, 1.5)):
            lines = lines_of_thread(self._watched)
            name = self.phase()
            now, more = time.perf_counter(), self.outside()
            if lines and self.counts():
                key = (name, _places(lines, self._below))
                self.seconds[key] = self.seconds.get(key, 0.0) + max(now - last - (more - unseen), 0.0)
                self.samples[key] = self.samples.get(key, 0) + 1
                self._look_beside()
            last, unseen = now, more

    def _look_beside(self) -> None:
        own = {threading.get_ident(), self._watched}
        for ident in [thread.ident for thread in threading.enumerate() if thread.ident not in own]:
            # A thread that waits stands in a function of Python's library, such as Queue.get.
            for code, line in lines_of_thread(ident or 0, depth=1):
                if _counts(code):
                    place = place_of_code(code, line)
                    self.others[place] = self.others.get(place, 0) + 1


def lines_of_thread(ident: int, depth: int | None = None) -> list[Line]:
    """Return code and line of another thread's frames, innermost first; none if the thread has ended."""
    # C alone, and no garbage collector, whose callbacks are Python: the interpreter's lock is not handed
    # over while a frame is looked for. If the other thread went on while Python 3.11 makes the object of
    # one of its frames, that object would be written into memory that its functions have freed, and the
    # process would die. Nor is a frame kept, which would keep all its variables.
    innermost = map(methodcaller("get", ident), starmap(sys._current_frames, [()]))
    steps: Iterable[Any] = chain(innermost, repeat("f_back"))
    frames = takewhile(partial(is_not, None), accumulate(steps, cast(Callable[[Any, Any], Any], getattr)))
    look = partial(list[Line], map(attrgetter("f_code", "f_lineno"), islice(frames, depth)))
    # Reading `f_code` calls the audit hooks of the process. One that is Python lets the other thread go on,
    # between two frames: which does no harm unless that thread, too, puts the collector off and on.
    restore = gc.enable if gc.isenabled() else gc.disable
    lines: list[Line]
    _, lines, _ = map(cast(Callable[[Any], Any], call), (gc.disable, look, restore))
    return lines


def stack_of(frame: FrameType | None, below: CodeType | None = None) -> Stack:
    """Return the places of the calling thread that belong to the project or the user, outermost first.

    Frames of ``below`` and further out are left out.
    """
    lines: list[Line] = []
    while frame is not None:
        lines.append((frame.f_code, frame.f_lineno))
        frame = frame.f_back
    return _places(lines, below)


def _places(lines: list[Line], below: CodeType | None) -> Stack:
    inside = takewhile(lambda line: line[0] is not below, lines)
    return tuple(reversed([place_of_code(*line) for line in inside if _counts(line[0])]))


def place_of_code(code: CodeType, line: int) -> str:
    """Return ``file.py:12 in function``.

    A comprehension or lambda is named by the function that it is written in, which a reader can look up.
    """
    names = code.co_qualname.split(".")
    while len(names) > 1 and names[-1].startswith("<"):  # "made.<locals>.<listcomp>" is "made"
        names.pop()
    return f"{short_path(code.co_filename)}:{line} in {names[-1]}"


@cache
def _counts(code: CodeType) -> bool:
    """Return whether code is that of the project or the user, and not of libraries or the measurement."""
    file = code.co_filename
    if file.startswith("<frozen") or (file == "<string>" and code.co_name.startswith("__")):
        return False  # importlib, and methods that dataclasses make
    if file.startswith(PACKAGE):
        return file not in OWN
    return not file.startswith(LIBRARIES) and not any(part in Path(file).as_posix() for part in PACKAGES)


@cache
def short_path(file: str) -> str:
    """Return a source file's path from the top of its package on: ``wildtype/nn/sparse.py``."""
    path = Path(file)
    top = path.parent
    while (top / "__init__.py").is_file():
        top = top.parent
    return str(path.relative_to(top))
