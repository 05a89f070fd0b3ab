"""`StackSampler`: where the training thread is, looked at by another thread some hundred times a second.

Phases say which part of a step takes long, and nothing of what lies between them. A sample is the stack of
Python at one moment: the functions of the project and of the user, outermost first, without those of torch,
Lightning, Python's library and other packages. A phase's time is divided among its stacks in proportion to
the time since the sample before.

A C function that holds the interpreter's lock is seen when it returns, at the line that called it. The
sampler's cost is that of handing the lock over: about 50 µs per sample.
"""

from __future__ import annotations

import sys
import sysconfig
import threading
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random
from types import CodeType, FrameType

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
LOOP = "the training loop itself (Lightning)"
"""A stack without a function of the project: what the trainer does between its hooks."""

Stack = tuple[str, ...]


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
        self._thread = threading.Thread(target=self._run, name="wildtype stack sampler", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End."""
        if self._thread is not None:
            self._stop.set()
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        last, unseen = time.perf_counter(), self.outside()
        while not self._stop.wait(self.every * self._draw.uniform(0.5, 1.5)):
            frames = sys._current_frames()
            name = self.phase()
            now, more = time.perf_counter(), self.outside()
            frame = frames.pop(self._watched, None)
            if frame is not None and self.counts():
                key = (name, stack_of(frame, self._below))
                self.seconds[key] = self.seconds.get(key, 0.0) + max(now - last - (more - unseen), 0.0)
                self.samples[key] = self.samples.get(key, 0) + 1
                self._look_beside(frames)
            last, unseen = now, more
            del frames, frame  # a frame that is kept keeps all its variables

    def _look_beside(self, frames: dict[int, FrameType]) -> None:
        own = threading.get_ident()
        for ident, frame in frames.items():
            # A thread that waits stands in a function of Python's library, such as Queue.get.
            if ident != own and _counts(frame.f_code):
                place = where(frame)
                self.others[place] = self.others.get(place, 0) + 1


def stack_of(frame: FrameType | None, below: CodeType | None = None) -> Stack:
    """Return the places of a stack that belong to the project or the user, outermost first.

    Frames of ``below`` and further out are left out.
    """
    places: list[str] = []
    while frame is not None and frame.f_code is not below:
        if _counts(frame.f_code):
            places.append(where(frame))
        frame = frame.f_back
    return tuple(reversed(places))


def where(frame: FrameType) -> str:
    """Return ``file.py:12 in function``."""
    return place_of_code(frame.f_code, frame.f_lineno)


def place_of_code(code: CodeType, line: int) -> str:
    """Return the same of a line of code.

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
