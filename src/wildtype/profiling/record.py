"""The record of a profile: seconds per step and phase, the machine and the workload; one JSON file per run.

Seconds are wall seconds (on a GPU: of its stream) per step, exclusive: the time of an inner phase does not
count in the outer one. ``unattributed`` is the time in no phase.
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
from wildtype.profiling.machine import machine
from wildtype.training.phase_recorder import NONE, PhaseRecorder, seconds_per_cut

if TYPE_CHECKING:
    from wildtype.profiling.trace_analysis import OperatorCounts

FORMAT = 1
FILE = "profile.json"
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
    totals, cpu, steps = recorder.totals(), recorder.cpu_totals(), recorder.steps
    whole = recorder.step_seconds()
    mean = sum(totals.values()) / steps if steps else float("nan")
    lost = totals.pop(NONE, 0.0) / steps if steps else float("nan")
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
        "phases": {
            phase: {
                "mean": seconds / steps,
                **_spread(recorder.phase_seconds(phase)),
                "cpu": cpu[phase] / steps,
                "peak_mib": recorder.peaks.get(phase),
            }
            for phase, seconds in totals.items()
        },
        "unattributed": {"mean": lost, "share": lost / mean if steps else float("nan")},
        "outside": dict(recorder.outside),
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
