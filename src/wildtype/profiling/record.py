"""The record of a profile: seconds per step and phase, the machine and the workload; one JSON file per run.

Seconds are wall seconds (on a GPU: of its stream) per step, exclusive: the time of an inner phase does not
count in the outer one. Time in no phase is ``between phases`` as far as samples of the stack say where it
went, and ``unattributed`` otherwise. Per phase there are also the seconds of the process (``cpu``), of the
training thread (``thread``), and those in which that thread was ready and had no processor (``delay``).
``steady`` holds the same clocks without the longest step, and the spread over steps, for comparisons.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wildtype.errors import ConfigError, reason_of
from wildtype.files import write_json
from wildtype.phases import BETWEEN
from wildtype.profiling.machine import machine
from wildtype.training.phase_recorder import NONE, PhaseRecorder, seconds_per_cut
from wildtype.training.stack_sampler import LOOP, place_of_code

if TYPE_CHECKING:
    from wildtype.profiling.trace_analysis import OperatorCounts

FORMAT = 1
FILE = "profile.json"
MOST_PLACES, MOST_OTHERS = 40, 5
"""Functions that are kept per phase, by time, and of other threads."""
NEEDED = {"name", "steps", "seconds_per_step", "phases", "unattributed", "workload", "counters", "reads"}


@dataclass(frozen=True)
class Workload:
    """Model, data and sizes of a profiled run.

    Attributes
    ----------
    model, dataset : str
        Names.
    genes, relations, edges : int
        Of the organism as the model sees it; stored edges of all relations.
    parameters : int
        Of the model.
    batch_size, steps_per_epoch : int
        Mutants per step, and steps.
    """

    model: str
    dataset: str
    genes: int
    relations: int
    edges: int
    parameters: int
    batch_size: int
    steps_per_epoch: int


def profile_record(
    recorder: PhaseRecorder,
    workload: Workload,
    *,
    name: str,
    execution: str = "training",
    complete: bool = True,
    counts: OperatorCounts | None = None,
    processes: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the findings of a recorder so far, as JSON-like values.

    Parameters
    ----------
    recorder
        It may still be listening.
    workload, name, execution
        The workload, the name of the record, and which part of each step was run.
    complete
        Whether the run came to its end.
    counts
        Operators of one step, if they were counted.
    processes
        What `of_processes` found, if several train together; the rest of the record is of the first.
    """
    totals, steps, whole = recorder.totals(), recorder.steps, recorder.step_seconds()
    clocks = {clock: recorder.totals(clock) for clock in ("cpu", "thread", "delay")}
    mean = sum(totals.values()) / steps if steps else float("nan")
    delay = sum(clocks["delay"].values()) / steps if steps else 0.0
    # Of a run that goes on this would be too long a look at its steps; comparisons then take their means.
    steady, spread = recorder.steady() if complete else ({}, {})
    places = _places(recorder)
    phases = {
        name: {
            "mean": seconds / steps,
            **_spread(recorder.phase_seconds(name)),
            **{clock: sums[name] / steps for clock, sums in clocks.items()},
            "peak_mib": recorder.peaks.get(name),
        }
        for name, seconds in totals.items()
    }
    lost = _share_out(phases, recorder, places)
    return {
        "format": FORMAT,
        "name": name,
        "complete": complete,
        "execution": execution,
        "clock": "wall" if recorder.event is None else "gpu",
        "machine": machine(),
        "workload": asdict(workload),
        "steps": steps,
        "seconds_per_step": {"mean": mean, **_spread(whole)},
        "steady": {"phases": steady, "sd": spread},
        "phases": phases,
        "unattributed": {"mean": lost, "share": lost / mean if steps else float("nan")},
        "outside": dict(recorder.outside),
        "load": {} if recorder.load is None else recorder.load.to_json(steps, delay, mean),
        "collections": _collections(recorder),
        "places": places,
        "other_threads": dict(
            sorted(recorder.sampler.others.items(), key=lambda item: -item[1])[:MOST_OTHERS]
        )
        if recorder.sampler is not None
        else {},
        # The listener's own cost, as a share: a profile of many short phases says more about itself.
        "overhead_share": recorder.cuts_per_step() * seconds_per_cut() / mean if steps else float("nan"),
        "counters": None if counts is None else counts.counters(top=12),
        "reads": None if counts is None else counts.reads_json(),
        "processes": processes,
        "timeline": [
            [{"phase": phase, "start": start, "end": end} for phase, start, end in pieces]
            for pieces in recorder.timelines()
        ],
    }


def _spread(seconds: NDArray[np.float64]) -> dict[str, float]:
    if not len(seconds):
        return {"median": float("nan"), "p95": float("nan")}
    return {"median": float(np.median(seconds)), "p95": float(np.quantile(seconds, 0.95))}


def _collections(recorder: PhaseRecorder) -> list[dict[str, Any]]:
    """Return the garbage collections of a mean step by generation and place, most time first."""
    ranked = sorted(recorder.collections.items(), key=lambda item: -item[1][1])[:MOST_PLACES]
    steps = max(recorder.steps, 1)
    return [
        {
            "generation": generation,
            "where": place_of_code(*place) if len(place) == 2 else "".join(place),
            "calls": calls / steps,
            "seconds": seconds / steps,
        }
        for (generation, *place), (calls, seconds) in ranked
    ]


def _places(recorder: PhaseRecorder) -> dict[str, list[dict[str, Any]]]:
    """Return, per phase, the functions that samples of the stack saw, by time with what they call.

    A phase's time is divided among its samples. ``depth`` counts from the outermost function; ``where`` is
    the line of the function that was seen longest; ``leaves`` are the innermost functions below it, with
    their seconds.
    """
    sampler, steps = recorder.sampler, recorder.steps
    if sampler is None or not steps:
        return {}
    totals, seen = recorder.totals(), list(sampler.seconds.items())
    whole: dict[str, float] = {}
    for (phase, _), seconds in seen:
        whole[phase or NONE] = whole.get(phase or NONE, 0.0) + seconds
    found: dict[str, dict[str, dict[str, Any]]] = {}
    lines: dict[tuple[str, str], dict[str, float]] = {}
    for (phase, stack), seconds in seen:
        name = phase or NONE
        part = totals.get(name, 0.0) / steps * seconds / whole[name] if whole[name] else 0.0
        # A function that calls itself counts once, where it is first.
        functions = {function_of(place): place for place in stack or (LOOP,)}
        leaf = list(functions)[-1]
        for depth, (function, where) in enumerate(functions.items()):
            place = found.setdefault(name, {}).setdefault(
                function, {"function": function, "seconds": 0.0, "samples": 0, "depth": depth, "leaves": {}}
            )
            place["seconds"] += part
            place["samples"] += sampler.samples[phase, stack]
            place["depth"] = max(place["depth"], depth)
            place["leaves"][leaf] = place["leaves"].get(leaf, 0.0) + part
            at = lines.setdefault((name, function), {})
            at[where] = at.get(where, 0.0) + part
    for (name, function), at in lines.items():
        found[name][function]["where"] = max(at, key=at.__getitem__)
    return {
        name: sorted(functions.values(), key=lambda place: -place["seconds"])[:MOST_PLACES]
        for name, functions in found.items()
    }


def function_of(place: str) -> str:
    """Return ``file.py in function`` of ``file.py:12 in function``: lines move from version to version."""
    file, _, function = place.partition(" in ")
    return f"{file.rpartition(':')[0]} in {function}" if function else place


def _share_out(
    phases: dict[str, dict[str, Any]], recorder: PhaseRecorder, places: dict[str, list[dict[str, Any]]]
) -> float:
    """Move the time in no phase to ``between phases``, as far as samples saw it; return the rest."""
    rest = phases.pop(NONE, None)
    if rest is None:
        return 0.0 if recorder.steps else float("nan")
    samples = sum(
        count
        for (phase, _), count in (recorder.sampler.samples if recorder.sampler else {}).items()
        if phase is None
    )
    # Of n samples, the share of time at places that none of them saw is 1 / (n + 1) (Laplace's rule).
    unseen = 1 / (samples + 1)
    if samples:
        phases[BETWEEN] = {
            key: value * (1 - unseen) if isinstance(value, float) else value for key, value in rest.items()
        }
        places[BETWEEN] = places.pop(NONE, [])
        for place in places[BETWEEN]:
            place["seconds"] *= 1 - unseen
            place["leaves"] = {leaf: seconds * (1 - unseen) for leaf, seconds in place["leaves"].items()}
    return float(rest["mean"]) * unseen


class RecordWriter:
    """Keeps a readable record on disk during a run, so that a killed run leaves its profile so far.

    Parameters
    ----------
    target : Path
        The file.
    recorder, workload, settings
        Of `profile_record`.
    every : float
        Seconds between two writings.
    """

    def __init__(
        self,
        target: Path,
        recorder: PhaseRecorder,
        workload: Workload,
        *,
        every: float = 10.0,
        **settings: Any,
    ) -> None:
        self.target = target
        self.recorder = recorder
        self.workload = workload
        self.every = every
        self.settings = settings
        self._last = time.perf_counter()

    def write(self, *, complete: bool, **found: Any) -> dict[str, Any]:
        """Write the record now, and return it; what was ``found`` is as in `profile_record`."""
        record = profile_record(self.recorder, self.workload, complete=complete, **found, **self.settings)
        write_json(self.target, record)
        self._last = time.perf_counter()
        return record

    def step(self) -> None:
        """Write the record if the last writing is long enough ago."""
        if time.perf_counter() - self._last >= self.every:
            self.write(complete=False)


def load_record(path: str | Path) -> dict[str, Any]:
    """Return the record of a run folder, or of a file.

    Raises
    ------
    ConfigError
        If there is none, it is damaged, or no step of it was timed.
    """
    place = Path(path)
    file = place / FILE if place.is_dir() else place
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(
            f"there is no profile at {str(file)!r}: make one with wildtype profile run --folder {place}"
        ) from None
    except ValueError as error:
        raise ConfigError(f"{str(file)!r} is damaged ({reason_of(error)}): profile the run again") from error
    if not isinstance(record, dict) or record.get("format") != FORMAT or not set(record) >= NEEDED:
        raise ConfigError(f"{str(file)!r} is no profile of format {FORMAT}: profile the run again")
    return record
