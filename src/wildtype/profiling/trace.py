"""A window of training steps under torch's profiler: when each operator and kernel ran, in which phase.

The lines of Python come from `count_operators`, which watches one step of the window through torch's
dispatcher and finds the line of every read. The phases of a step also become ranges for external profilers:
`nvtx_listener`.
"""

from __future__ import annotations

import gzip
import json
import tempfile
import warnings
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import torch
from torch.profiler import ProfilerActivity, profile, record_function, schedule

from wildtype.errors import ConfigError
from wildtype.files import writing
from wildtype.phases import current, listening
from wildtype.profiling.operators import OperatorCounter, Phase, Step
from wildtype.profiling.trace_analysis import PHASE_MARK, TraceReport, analyse


@dataclass(frozen=True)
class Window:
    """Steps of a trace: ``wait`` are not recorded, ``warm_up`` are recorded and discarded, ``active`` count.

    Reads are traced to their lines in the step before the active ones; if there is none, one more follows.
    """

    wait: int = 2
    warm_up: int = 2
    active: int = 5

    @property
    def steps(self) -> int:
        """Steps that the window takes in all."""
        return self.wait + self.warm_up + self.active + (self.wait + self.warm_up == 0)

    def check(self, steps_available: int | None = None) -> None:
        """Refuse a window that records nothing or does not fit.

        Parameters
        ----------
        steps_available : int, optional
            Steps there are; None where there is no end.

        Raises
        ------
        ConfigError
            If a part is negative, no step is active, or there are fewer steps than the window takes.
        """
        for part, steps in (("wait", self.wait), ("warm_up", self.warm_up), ("active", self.active)):
            if steps < 0:
                raise ConfigError(f"{part}={steps} in the trace window: give 0 steps or more")
        if self.active == 0:
            raise ConfigError("active=0 in the trace window records nothing: give 1 active step or more")
        if steps_available is not None and self.steps > steps_available:
            raise ConfigError(
                f"the trace window takes {self.steps} steps (wait={self.wait}, warm_up={self.warm_up}, "
                f"active={self.active}), but there are {steps_available}: "
                "shorten the window or take a smaller batch size"
            )


def trace(
    step: Step,
    window: Window,
    *,
    target: Path,
    cuda: bool | None = None,
    phase: Phase = current,
    name: str = "",
    steps_available: int | None = None,
    shapes: bool = False,
    stacks: bool = False,
) -> TraceReport:
    """Run a window of steps under torch's profiler; write a Chrome trace, phases included; analyse it.

    Parameters
    ----------
    step : callable
        One training step on the next batch.
    target : Path
        Of the Chrome trace, JSON; compressed if it ends in ``.gz``.
    cuda : bool, optional
        Whether to record the GPU; by default where there is one.
    phase : callable
        As for `count_operators`.
    name : str
        Of what is traced, for the report.
    steps_available : int, optional
        Checked before the first step runs.
    shapes, stacks : bool
        Also record the shapes of operands, and Python's call stacks; both slow the steps.

    Raises
    ------
    ConfigError
        If the window is not sound, the steps run out in it, or there is no GPU to record.
    OutputError
        If ``target`` cannot be written.
    """
    window.check(steps_available)
    if cuda and not torch.cuda.is_available():
        raise ConfigError("cuda=True for the trace, but no CUDA device is visible: leave cuda out")
    counter = OperatorCounter(phase)
    recorded = window.wait + window.warm_up + window.active
    # Counting slows a step several times, so the counted step is never an active one.
    counted = window.wait + window.warm_up - 1 if window.steps == recorded else recorded
    ranges = PhaseRanges(RecordedRanges())
    done = 0
    try:
        with profiler_of(window.wait, window.warm_up, window.active, cuda, shapes, stacks) as profiler:
            while done < recorded:
                with listening(ranges), counter if done == counted else nullcontext():
                    step()
                ranges.change(None)  # before the step's end, or its last range would reach into the next
                profiler.step()
                done += 1
        if counted == recorded:
            with counter:
                step()
    except StopIteration:
        raise ConfigError(
            f"the steps ran out after {done} of the {window.steps} that the trace window takes: "
            "shorten the window"
        ) from None
    content = write_trace(profiler, target)
    return analyse(json.loads(content)["traceEvents"], counter.counts(), name=name, trace=target)


def profiler_of(
    wait: int = 0,
    warm_up: int = 0,
    active: int = 1,
    cuda: bool | None = None,
    shapes: bool = False,
    stacks: bool = False,
) -> profile:
    """Return torch's profiler for a window of steps; parameters as in `Window` and `trace`."""
    activities = [ProfilerActivity.CPU]
    if torch.cuda.is_available() if cuda is None else cuda:
        activities.append(ProfilerActivity.CUDA)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Profiler won't be using warmup")  # chosen with warm_up=0
        cycle = schedule(wait=wait, warmup=warm_up, active=active, repeat=1)
    return profile(
        activities=activities, schedule=cycle, profile_memory=True, record_shapes=shapes, with_stack=stacks
    )


def write_trace(profiler: profile, target: Path) -> bytes:
    """Write what was recorded as a Chrome trace, compressed if ``target`` ends in ``.gz``; return the JSON.

    Raises
    ------
    OutputError
        If ``target`` cannot be written.
    """
    # The profiler writes plain JSON to a path only; the target is then written as one, compressed if asked.
    with tempfile.TemporaryDirectory() as folder:
        raw = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(raw))
        content = raw.read_bytes()
    with writing(target) as path:
        path.write_bytes(gzip.compress(content) if target.suffix == ".gz" else content)
    return content


class Ranges(Protocol):
    """Marks ranges of time, as ``torch.cuda.nvtx`` does."""

    def range_push(self, msg: str) -> object:
        """Begin a range."""

    def range_pop(self) -> object:
        """End the last range."""


class PhaseRanges:
    """A listener to phases that keeps one range open per phase."""

    def __init__(self, ranges: Ranges) -> None:
        self.ranges = ranges
        self.open = False

    def change(self, phase: str | None) -> None:
        """End the range of the last phase and begin that of ``phase``."""
        if self.open:
            self.ranges.range_pop()
        self.open = phase is not None
        if phase is not None:
            self.ranges.range_push(phase)


def nvtx_listener(nvtx: Ranges | None = None) -> PhaseRanges | None:
    """Return a listener that marks phases as NVTX ranges for external profilers; None without CUDA."""
    if nvtx is None and torch.cuda.is_available():
        nvtx = torch.cuda.nvtx
    return PhaseRanges(nvtx) if nvtx is not None else None


class RecordedRanges:
    """Ranges of torch's profiler."""

    def range_push(self, msg: str) -> None:
        """Begin a range."""
        self.last = record_function(PHASE_MARK + msg)
        self.last.__enter__()

    def range_pop(self) -> None:
        """End the last range."""
        self.last.__exit__(None, None, None)
