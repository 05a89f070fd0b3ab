"""`ablate`: the runs of an ablation in their order, within a budget, each kept in a folder of its own.

A run that stands finished in its folder is taken, a killed one goes on where it stopped. What a run needs is
estimated from finished ones of its level, else from its first steps; one that does not fit what is left of
the budget is skipped, and a smaller one may still follow. A run that has begun is never cut short.
"""

from __future__ import annotations

import gc
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from wildtype.datasets import Dataset
from wildtype.errors import CheckpointError, WildtypeError, reason_of
from wildtype.experiments.ablation_state import Record, check_settings, is_finished
from wildtype.experiments.ablation_tables import AblationReport, tables_of, write_tables
from wildtype.experiments.data import load_for
from wildtype.experiments.estimate import estimate_run
from wildtype.experiments.folder import MARK, going_on
from wildtype.experiments.run import Log, train
from wildtype.experiments.settings.ablation import Ablation, PlannedRun
from wildtype.experiments.settings.schema import TrainConfig
from wildtype.training.world import require_single_process

MOST_TRIES = 3
"""A run that was killed so often, by want of memory say, is not begun again."""
Estimator = Callable[[TrainConfig, Dataset], float]
Trainer = Callable[[TrainConfig, Dataset], Any]


@dataclass(frozen=True)
class Step:
    """One run of the plan before anything is done: what stands in its folder, and what it would take."""

    room: str
    state: str
    seconds: float | None


def preview(plan: Ablation, seeds: Sequence[int], folder: Path) -> list[Step]:
    """Return the runs in their order, with the seconds that finished runs of their level took.

    Raises
    ------
    ConfigError
        If a run in the folder was made with other settings.
    """
    runs = plan.runs(seeds)
    for run in runs:
        check_settings(run, folder)
    record = Record(folder)
    steps = []
    for run in runs:
        state = "finished" if is_finished(folder / run.room) else record[run.room].state
        begun = state != "finished" and (folder / run.room / MARK).is_file()
        steps.append(Step(run.room, "begun" if begun else state, _known_seconds(run, runs, record)))
    return steps


def ablate(
    plan: Ablation,
    seeds: Sequence[int],
    *,
    folder: Path,
    budget: float | None = None,
    replicates: int = 1000,
    dataset: Dataset | None = None,
    log: Log = lambda text: None,
    trainer: Trainer | None = None,
    estimator: Estimator | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> AblationReport:
    """Run what is not there yet, and write the tables of what is.

    Parameters
    ----------
    plan : Ablation
        What to run.
    seeds : sequence of int
        The first one counts most.
    folder : Path
        Of the ablation; the tables are renewed after every run.
    budget : float, optional
        Seconds, of this call; none: without end.
    replicates : int
        Bootstrap replicates behind the intervals.
    dataset : Dataset, optional
        Used instead of the one that the settings name.
    log : callable
        Told, in a few words, what is going on.
    trainer, estimator, clock : callable, optional
        What runs, what tells the seconds that a run will take, and what tells the time.

    Raises
    ------
    ConfigError
        If a run in the folder was made with other settings, before anything runs, or several processes were
        started.
    CheckpointError
        If the record in the folder is damaged.
    OutputError
        If the folder cannot be written.
    """
    require_single_process("an ablation")
    start = clock()
    runs = plan.runs(seeds)
    for run in runs:
        check_settings(run, folder)
    record, held = Record(folder), _Held(dataset)
    trainer = trainer or (lambda config, data: _train(config, data, log))
    estimator = estimator or (lambda config, data: estimate_run(config, dataset=data).total_seconds)
    for number, run in enumerate(runs, 1):
        state = record[run.room]
        if is_finished(folder / run.room):
            state.state, state.why, state.trace = "finished", "", ""
            continue
        if state.tries >= MOST_TRIES:
            state.state = "failed"
            state.why = f"killed {state.tries} times; remove its folder's entry in ablation.json to try again"
            continue
        place = f"run {number} of {len(runs)}, {run.room}"
        try:
            if budget is not None:
                left = budget - (clock() - start)
                needed = _needed(run, runs, record, held, estimator) if left > 0 else None
                if needed is None or needed > left:
                    state.state, state.why = "skipped", _too_long(needed, left)
                    log(f"{place}: not run, {state.why}")
                    continue
            log(place)
            _one(run, folder, record, held, trainer, clock)
        except Exception as error:
            state.state, state.why = "failed", _sentence(error)
            state.trace = "" if isinstance(error, WildtypeError) else traceback.format_exc()
            state.tries = 0
            log(f"{place}: failed: {state.why}")
        finally:
            record.write()
        write_tables(tables_of(plan, runs, folder, record, replicates))
    report = tables_of(plan, runs, folder, record, replicates)
    record.write()
    write_tables(report)
    return report


class _Held:
    """The dataset of the last run, so that the next one need not load it again."""

    def __init__(self, given: Dataset | None) -> None:
        self.given = given
        self.name: tuple[str, str] | None = None
        self.dataset: Dataset | None = None

    def of(self, config: TrainConfig) -> Dataset:
        if self.given is not None:
            return self.given
        name = (config.data.name, config.data.organism)
        if self.dataset is None or self.name != name:
            self.dataset, self.name = None, None  # one at a time in memory
            self.dataset, self.name = load_for(config), name
        return self.dataset


def _one(
    run: PlannedRun, folder: Path, record: Record, held: _Held, trainer: Trainer, clock: Callable[[], float]
) -> None:
    """Do one run, from its start or from where it stopped."""
    room, state = folder / run.room, record[run.room]
    config = going_on(run.config, room)
    resume = config.run.resume
    state.state, state.why, state.trace = "running", "", ""
    state.tries += 1
    record.write()
    begin = clock()

    try:
        try:
            trainer(config, held.of(config))
        except CheckpointError:
            if not resume:
                raise
            resume = False  # nothing usable was left of it
            anew = replace(config.run, resume=False, overwrite=True)
            trainer(replace(config, run=anew), held.of(config))
    except (KeyboardInterrupt, SystemExit):
        state.state = "stopped"
        state.tries -= 1
        raise
    state.state, state.tries = "finished", 0
    state.resumed = resume
    state.seconds = None if resume else clock() - begin


def _train(config: TrainConfig, dataset: Dataset, log: Log) -> None:
    """Train after giving back what the run before held: it must not count as this one's memory."""
    import torch

    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    train(config, dataset=dataset, log=log)


def _sentence(error: Exception) -> str:
    if isinstance(error, WildtypeError):
        return " ".join(str(error).split())
    if isinstance(error, MemoryError):
        return "out of memory"
    return f"{type(error).__name__}: {reason_of(error)}"


def _known_seconds(run: PlannedRun, runs: Sequence[PlannedRun], record: Record) -> float | None:
    """Return what finished runs of the same level and split took."""
    same = [
        seconds
        for other in runs
        if (other.factor, other.level, other.split) == (run.factor, run.level, run.split)
        and (seconds := record[other.room].seconds) is not None
    ]
    return float(np.mean(same)) if same else None


def _needed(
    run: PlannedRun, runs: Sequence[PlannedRun], record: Record, held: _Held, estimator: Estimator
) -> float:
    """Return the seconds that a run will take: as those of its level, else estimated from its first steps.

    An estimate is of all epochs, and training may stop before.
    """
    known = _known_seconds(run, runs, record)
    return estimator(run.config, held.of(run.config)) if known is None else known


def _too_long(needed: float | None, left: float) -> str:
    if needed is None:
        return "the budget is used up"
    return f"it would take about {_time(needed)} and {_time(left)} of the budget are left"


def _time(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
