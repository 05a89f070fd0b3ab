"""`ablate`: the runs of an ablation, the most informative first, within a budget of time.

What a run needs is estimated from finished runs whose settings differ in the seed alone, else from its first
steps; one that does not fit into the rest of the budget is skipped, and a shorter one may still follow. A run
that has begun is never cut short.

    ablation.json                         what was tried of every run, how long it took, what went wrong
    ablation.md                           the tables
    table.json                            the same, for programs
    <factor>/<level>/<split>/seed-<n>/    run directories
    .tasks/<number>/ablation.json         the same of one run, done by a task of a job array
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from wildtype.datasets import Dataset
from wildtype.errors import ConfigError
from wildtype.experiments.ablation_tables import AblationReport, tables_of, write_tables
from wildtype.experiments.data import load_for
from wildtype.experiments.estimate import estimate_run
from wildtype.experiments.folder import MARK
from wildtype.experiments.many import RunStates, check_settings, is_finished, run_many
from wildtype.experiments.run import Log, train
from wildtype.experiments.settings.ablation import Ablation, AblationRun
from wildtype.experiments.settings.schema import RunConfig, TrainConfig
from wildtype.locks import exclusive_lock
from wildtype.training.world import require_single_process

FILE, TASKS = "ablation.json", ".tasks"
Estimator = Callable[[TrainConfig, Dataset], float]
Trainer = Callable[[TrainConfig, Dataset], object]


@dataclass(frozen=True)
class RunPreview:
    """One run of the plan before anything is done: its name and state, and the seconds that it would take."""

    run: str
    state: str
    seconds: float | None


def preview(plan: Ablation, seeds: Sequence[int], folder: Path) -> list[RunPreview]:
    """Return the runs in their order, with the seconds that finished runs of their settings took.

    Raises
    ------
    ConfigError
        If a run in the directory was made with other settings.
    """
    runs = plan.runs(seeds, folder)
    check_settings(runs, "--folder")
    states = _states(folder)
    found = []
    for run in runs:
        state = "finished" if is_finished(run.directory) else states[run.name].state
        if state != "finished" and (run.directory / MARK).is_file():
            state = "begun"
        found.append(RunPreview(run.name, state, _known_seconds(run, runs, states)))
    return found


def ablate(
    plan: Ablation,
    seeds: Sequence[int],
    *,
    folder: Path,
    budget: float | None = None,
    replicates: int = 1000,
    only: int | None = None,
    tables_only: bool = False,
    dataset: Dataset | None = None,
    log: Log = lambda text: None,
    trainer: Trainer | None = None,
    estimator: Estimator | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> AblationReport:
    """Do the runs that are not finished, and write the tables of those that are.

    Parameters
    ----------
    plan : Ablation
        What to run.
    seeds : sequence of int
        The first one is run first.
    folder : Path
        Directory of the ablation; its tables are renewed after every run.
    budget : float, optional
        Seconds of this call; none: no limit.
    replicates : int
        Bootstrap replicates behind the intervals.
    only : int, optional
        Do only the run of this number in their order, from 0, beside others that do other runs; no tables are
        written.
    tables_only : bool
        Do no run.
    dataset : Dataset, optional
        Used instead of the one that the settings name.
    log : callable
        Receives a line for every step.
    trainer, estimator, clock : callable, optional
        Stand in for training, for the estimate of its seconds, and for the time.

    Raises
    ------
    ConfigError
        If a run in the directory was made with other settings, before anything runs, there is no run of the
        number ``only``, or several processes were started.
    CheckpointError
        If the record in the directory is damaged.
    LockedError
        If another process is running an ablation there, or the same single run.
    OutputError
        If the directory cannot be written.
    """
    require_single_process("an ablation")
    start, held = clock(), _HeldDataset(dataset)
    runs = plan.runs(seeds, folder)
    if only is not None and not 0 <= only < len(runs):
        raise ConfigError(f"only={only}: there are {len(runs)} runs, counted from 0")
    check_settings(runs if only is None else runs[only : only + 1], "--folder")
    estimator = estimator or (lambda config, data: estimate_run(config, dataset=data).total_seconds)
    trainer = trainer or (lambda config, data: train(config, dataset=data, log=log))

    def work(config: TrainConfig) -> None:
        trainer(config, held.of(config))

    def too_long(run: AblationRun) -> str:
        if budget is None:
            return ""
        left = budget - (clock() - start)
        if left <= 0:
            return "the budget is used up"
        needed = _known_seconds(run, runs, states)
        if needed is None:  # of all epochs, and training may stop earlier
            needed = estimator(run.config, held.of(run.config))
        if needed <= left:
            return ""
        return f"it would take about {_time(needed)} and {_time(left)} of the budget are left"

    if only is not None:
        place = folder / TASKS / str(only)
        with exclusive_lock(place, f"doing run {only} of an ablation in", log):
            states, own = RunStates(place / FILE), runs[only : only + 1]
            for _ in run_many(own, work, states, why_not=too_long, log=log, clock=clock):
                pass
            return AblationReport(folder, (), {own[0].name: states[own[0].name].state}, _why(own[0], states))
    with exclusive_lock(folder, "running an ablation in", log):
        states = _states(folder)
        if tables_only:
            for run in runs:
                if is_finished(run.directory):
                    states[run.name].state, states[run.name].why = "finished", ""
        for _ in () if tables_only else run_many(runs, work, states, why_not=too_long, log=log, clock=clock):
            write_tables(tables_of(plan, runs, folder, states, replicates))
        report = tables_of(plan, runs, folder, states, replicates)
        states.write()  # a finished run that turned out to be damaged counts as failed now
        write_tables(report)
    return report


def _states(folder: Path) -> RunStates:
    """Return what was tried of every run, here and by tasks of job arrays."""
    states = RunStates(folder / FILE)
    for path in sorted((folder / TASKS).glob(f"*/{FILE}")):
        states.adopt(RunStates(path))
    return states


def _why(run: AblationRun, states: RunStates) -> tuple[str, ...]:
    why = states[run.name].why
    return (f"{run.name}: {why}",) if why else ()


class _HeldDataset:
    """The dataset of the last run, so that the next run need not load it again."""

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


def _known_seconds(run: AblationRun, runs: Sequence[AblationRun], states: RunStates) -> float | None:
    """Return the mean time of finished runs whose settings differ from this one's in the seed alone."""
    seconds = [
        known
        for other in runs
        if (known := states[other.name].seconds) is not None and _but_seed(other) == _but_seed(run)
    ]
    return float(np.mean(seconds)) if seconds else None


def _but_seed(run: AblationRun) -> TrainConfig:
    return replace(run.config, seed=0, run=RunConfig())


def _time(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
