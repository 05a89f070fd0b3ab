"""Many runs, one after the other: what `ablate`, `tune` and `train --multirun` have in common.

A run that is finished in its directory is taken as it is; one that was killed is resumed; one that fails ends
in a sentence, and the others follow. What was tried of every run is kept in a record.
"""

from __future__ import annotations

import gc
import json
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Generic, TypeVar

import torch

from wildtype.errors import CheckpointError, ConfigError, WildtypeError, reason_of
from wildtype.experiments.folder import DONE, changed_setting, continuing
from wildtype.experiments.run import train
from wildtype.experiments.settings.plans import PlannedRun
from wildtype.experiments.settings.schema import TrainConfig
from wildtype.experiments.start import Log
from wildtype.experiments.stored import Run
from wildtype.files import write_json

FORMAT = 1
MOST_TRIES = 3
"""A run that was killed so often, for lack of memory for example, is not begun again."""
R = TypeVar("R", bound=PlannedRun)
T = TypeVar("T")


@dataclass
class RunState:
    """What has been tried of one run.

    Attributes
    ----------
    state : str
        ``planned``, ``running`` (also if it was killed), ``stopped`` by a person or the system,
        ``finished``, ``failed``, or ``skipped`` for lack of time.
    tries : int
        How often it was begun without a proper end.
    seconds : float or None
        Wall time of a run that was not interrupted.
    resumed : bool
        Whether it was interrupted and resumed, so that its time is not known.
    why : str
        Why it failed or was skipped.
    trace : str
        The traceback of an error that the program does not raise itself.
    """

    state: str = "planned"
    tries: int = 0
    seconds: float | None = None
    resumed: bool = False
    why: str = ""
    trace: str = ""


class RunStates:
    """The states of many runs by name, on disk after every change.

    Parameters
    ----------
    path : Path, optional
        The record; none: it is kept in memory.

    Raises
    ------
    CheckpointError
        If the record is damaged.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self.states: dict[str, RunState] = {}
        if path is None:
            return
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
            self.states = {name: RunState(**state) for name, state in record["runs"].items()}
        except FileNotFoundError:
            pass
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise CheckpointError(
                f"{str(path)!r} is damaged ({reason_of(error)}): remove it, finished runs are kept"
            ) from error

    def __getitem__(self, name: str) -> RunState:
        return self.states.setdefault(name, RunState())

    def adopt(self, others: RunStates) -> None:
        """Take over the states of runs that were tried elsewhere, unless they are finished here."""
        for name, state in others.states.items():
            if self[name].state != "finished":
                self.states[name] = state

    def write(self) -> None:
        """Write the record; raises ``OutputError``."""
        if self.path is not None:
            runs = {name: asdict(state) for name, state in self.states.items()}
            write_json(self.path, {"format_version": FORMAT, "runs": runs})


@dataclass(frozen=True)
class Tried(Generic[R, T]):
    """A run that `run_many` has just tried.

    Attributes
    ----------
    run : PlannedRun
    state : RunState
        ``finished`` or ``failed``.
    result : optional
        What the work on it returned; None if it failed.
    """

    run: R
    state: RunState
    result: T | None


def run_many(
    runs: Iterable[R],
    work: Callable[[TrainConfig], T],
    states: RunStates | None = None,
    *,
    why_not: Callable[[R], str] = lambda run: "",
    passed_on: tuple[type[Exception], ...] = (),
    log: Log = lambda text: None,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[Tried[R, T]]:
    """Work on every run that is not finished; gives each as soon as it was tried.

    Parameters
    ----------
    runs : iterable of PlannedRun
        One that proposes the next run only when it is wanted may learn from those before.
    work : callable
        Does a run by its settings, which say whether to resume.
    states : RunStates, optional
        Record of what was tried, here and in earlier calls.
    why_not : callable
        Why a run is to be skipped, as when the time left does not suffice; empty: it is not.
    passed_on : tuple of exception types
        Those that end all runs, instead of one; the run is then resumed in the next call.
    log : callable
        Receives a line for every run.
    clock : callable
        Seconds, by which runs are timed.
    """
    states = states or RunStates()
    ends: tuple[type[BaseException], ...] = (KeyboardInterrupt, SystemExit, *passed_on)
    for number, run in enumerate(runs, 1):
        state, place = states[run.name], run.name
        if isinstance(runs, Sequence):
            place = f"{number} of {len(runs)}, {run.name}"
        # Who proposes runs one by one waits for the result of each, and has not proposed a finished one.
        if isinstance(runs, Sequence) and is_finished(run.directory):
            state.state, state.why, state.trace = "finished", "", ""
            log(f"{place}: finished before")
            continue
        if state.tries >= MOST_TRIES:
            state.state = "failed"
            state.why = f"killed {state.tries} times; remove its entry in {states.path} to try it again"
            log(f"{place}: not run, {state.why}")
            continue
        result, tries = None, state.tries
        try:
            if reason := why_not(run):
                state.state, state.why = "skipped", reason
                log(f"{place}: not run, {reason}")
                continue
            log(f"{place}: {run.note}" if run.note else place)
            state.state, state.why, state.trace = "running", "", ""
            # Counted and written before anything is done: a process that is killed cannot count afterwards.
            state.tries = tries + 1
            states.write()
            begin = clock()
            result, state.resumed = _continued(run, work)
            state.state, state.tries = "finished", 0
            state.seconds = None if state.resumed else clock() - begin
        except ends:
            # A person or the system stopped it, which says nothing about the run: not one of its tries.
            if state.state == "running":
                state.state, state.tries = "stopped", tries
            raise
        except Exception as error:
            state.state, state.why, state.tries = "failed", _sentence(error), 0
            state.trace = "" if isinstance(error, WildtypeError) else traceback.format_exc()
            log(f"{place}: failed: {state.why}")
        finally:
            states.write()
        yield Tried(run, state, result)


def _continued(run: PlannedRun, work: Callable[[TrainConfig], T]) -> tuple[T, bool]:
    """Return the result of a run, begun or resumed, and whether it was resumed."""
    gc.collect()  # what the run before held must not count as this one's memory
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    config = continuing(run.config, run.directory)
    try:
        return work(config), config.run.resume
    except CheckpointError:
        if not config.run.resume:
            raise
    # It was killed before a usable state was written: nothing is lost by beginning anew.
    return work(replace(config, run=replace(config.run, resume=False, overwrite=True))), False


def is_finished(directory: Path) -> bool:
    """Whether a run directory holds a finished run."""
    return (directory / DONE).is_file()


def check_settings(runs: Iterable[PlannedRun], option: str) -> None:
    """Refuse run directories that hold runs with other settings than planned.

    Parameters
    ----------
    runs : iterable of PlannedRun
    option : str
        By which another directory is chosen.

    Raises
    ------
    ConfigError
        Naming the run, the setting and both values.
    """
    for run in runs:
        if changed := changed_setting(run.directory, run.config):
            key, before, now = changed
            raise ConfigError(
                f"{str(run.directory)!r} was run with {key} {before}, and {run.described} now has {now}: "
                f"choose another {option}, or remove the runs that were made with other settings"
            )


def multirun(runs: Sequence[PlannedRun], log: Log = lambda text: None) -> list[Run]:
    """Train every run of a line that is not finished, and return them all; the first error ends them.

    Raises
    ------
    ConfigError
        If the directory of a run holds one with other settings; nothing is trained then.
    WildtypeError
        As ``train`` does; the same line again goes on there.
    """
    check_settings(runs, "run.folder")
    # Paths, not what `train` returns: that holds the model, for which the next run may need the memory.
    for _ in run_many(runs, lambda config: train(config, log=log).path, passed_on=(Exception,), log=log):
        pass
    return [Run(run.directory) for run in runs]


def _sentence(error: Exception) -> str:
    if isinstance(error, WildtypeError):
        return " ".join(str(error).split())
    if isinstance(error, MemoryError):
        return "out of memory"
    return f"{type(error).__name__}: {reason_of(error)}"
