"""`tune`: settings searched by their validation score, and what the best reach on rows that no trial saw.

    trials.journal       optuna's study: every trial with its settings, scores by epoch and state
    split.json           the split of every run here: its test rows are in no trial
    trial-0/ trial-1/    run directories of the trials, without tests
    tune.json · tune.md  the trials as a table
    test/                the base and the best trial, trained on several seeds and tested: an ablation

The base is the first trial where its values lie within the search. A search that was killed is continued:
finished trials stay, and one that was under way is resumed from its last epoch. Several processes, on several
machines, may work at one search.
"""

from __future__ import annotations

import contextlib
import importlib
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import Callback

from wildtype.datasets import Dataset
from wildtype.datasets.pinned import write_pinned
from wildtype.errors import ConfigError, LockedError, OutputError
from wildtype.evaluation.summary import Trial
from wildtype.experiments.ablation import ablate
from wildtype.experiments.ablation_tables import AblationReport
from wildtype.experiments.data import load_for, prepare
from wildtype.experiments.fitting import fit_members, make_checkpoint, post_fit
from wildtype.experiments.folder import claim, resumable, settings_of
from wildtype.experiments.many import run_many
from wildtype.experiments.record import environment, of_data
from wildtype.experiments.settings.ablation import BASE, Ablation
from wildtype.experiments.settings.schema import SplitConfig, TrainConfig
from wildtype.experiments.settings.tuning import Tuning
from wildtype.experiments.setup import build
from wildtype.experiments.start import Log
from wildtype.experiments.study import Study, TrialRun, TuningResult
from wildtype.files import content_hash, write_json
from wildtype.models.ensemble import Ensemble
from wildtype.training.fit import accelerator
from wildtype.training.task import FitTask
from wildtype.training.world import require_single_process

SPLIT, TEST = "split.json", "test"


def tune(
    plan: Tuning,
    *,
    folder: Path,
    trials: int = 30,
    grid: bool = False,
    seeds: Sequence[int] = (0, 1, 2),
    budget: float | None = None,
    replicates: int = 1000,
    dataset: Dataset | None = None,
    log: Log = lambda text: None,
    clock: Callable[[], float] = time.monotonic,
) -> TuningResult:
    """Search until ``trials`` have ended, then test the best of them and the base.

    Settings are proposed by tree-structured Parzen estimators (Bergstra et al. 2011, as optuna has them); a
    trial below the median of the others at the same epoch is cut short.

    Parameters
    ----------
    plan : Tuning
        What to search.
    folder : Path
        Directory of the search: a new one, or that of the same search to continue.
    trials : int
        Number of trials in the end, those of earlier calls and of other processes included.
    grid : bool
        Whether every combination is a trial, and none is cut short; ``trials`` is not used then.
    seeds : sequence of int
        Of the weights and the order of rows in the runs that are tested; none: nothing is tested. Trials have
        the base's own seed, and all runs its split.
    budget : float, optional
        Seconds after which no further trial is begun.
    replicates : int
        Bootstrap replicates behind the intervals of the test.
    dataset : Dataset, optional
        Used instead of the one that the settings name.
    log : callable
        Receives a line for every step.
    clock : callable
        Stands in for the time, in seconds.

    Raises
    ------
    ConfigError
        Without optuna, or if the directory holds another search.
    CheckpointError
        If the directory holds a damaged study.
    OutputError
        If the directory cannot be written.
    """
    if trials < 1:
        raise ConfigError(f"trials={trials}: take at least one")
    if len(set(seeds)) < len(seeds):
        raise ConfigError(f"seeds {list(seeds)}: give each once")
    require_single_process("a search")
    accelerator(plan.config.training)
    optuna = _optuna()
    start = clock()
    dataset = load_for(plan.config) if dataset is None else dataset
    if grid:
        trials = math.prod(len(values) for values in plan.grid().values())
    with contextlib.closing(Study(optuna, plan, folder, dataset, grid=grid)) as study:
        split = _pinned(plan, folder, dataset)

        def work(config: TrainConfig) -> float | None:
            try:
                return _validated(config, dataset, _Watch(optuna, study.trial), log)
            except optuna.TrialPruned:
                return None

        def proposals() -> Iterator[TrialRun]:
            while study.more(trials):
                if budget is not None and clock() - start >= budget:
                    log(f"the budget is used up after {study.count()} of {trials} trials")
                    return
                if (run := study.propose(trials, split, log)) is not None:
                    yield run

        # A full disk leaves the trial under way, for when there is space again.
        for tried in run_many(proposals(), work, passed_on=(OutputError,), log=log):
            study.tell(tried, log)
            study.write()
        found = study.found()
        if seeds and found.best is not None and study.count() >= trials:
            try:
                test = _test(plan, found.best, folder, split, seeds, replicates, dataset, log)
                found = replace(found, test=test)
            except LockedError as error:
                log(f"not tested here: {error}")
        elif seeds and found.under_way:
            log(
                f"{found.under_way} trials are under way elsewhere; the process that ends last tests the best"
            )
        study.write(found)
        return found


def _optuna() -> Any:
    try:
        optuna = importlib.import_module("optuna")
    except ImportError as error:
        raise ConfigError(
            "a search needs optuna, which is not installed: pip install 'wildtype[tune]'"
        ) from error
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna


def _pinned(plan: Tuning, folder: Path, dataset: Dataset) -> SplitConfig:
    """Write the split that all runs share, where it is not there yet: its test rows are in no trial."""
    path = folder / SPLIT
    if not path.is_file():
        data = prepare(plan.config, dataset)
        if data.grid is not None:  # a split of crosses follows from its settings alone, seed included
            return replace(plan.config.split, seed=data.split.seed)
        write_pinned(data.split, data.dataset, path)
    return SplitConfig(pinned=str(path))


class _Watch(Callback):
    """Reports every epoch's validation score to the study, and ends a trial that the study prunes.

    Only the first member of an ensemble is reported: the study compares scores by epoch, of one training.
    """

    def __init__(self, optuna: Any, trial: Any) -> None:
        self.optuna, self.trial = optuna, trial
        # Epochs of a resumed trial that the study knows already: it takes no second value.
        self.reported: set[int] = set(trial.storage.get_trial(trial._trial_id).intermediate_values)
        self.member = 0

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self.member += 1

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        assert isinstance(pl_module, FitTask)
        if self.member > 1 or pl_module.epoch in self.reported:
            return
        self.trial.report(pl_module.validation_score, pl_module.epoch)
        if self.trial.should_prune() and not trainer.should_stop:
            raise self.optuna.TrialPruned


def _validated(config: TrainConfig, dataset: Dataset, watch: _Watch, log: Log) -> float:
    """Return the validation score of a finished model; its test rows are not looked at."""
    config.training.check()
    data = prepare(config, dataset)
    model, tensors = build(config, data, config.seed)
    fingerprint = content_hash(resumable(settings_of(config)), data.dataset.sha256, data.split.to_json())
    folder = claim(config, fingerprint)  # of its locked directory
    write_json(folder / "record.json", environment() | of_data(data))
    members, reports = fit_members(config, data, model, tensors, folder, fingerprint, [watch])
    post_fit(config, data, tensors, members, log)
    whole = members[0] if len(members) == 1 else Ensemble(members).eval()
    metrics = make_checkpoint(config, data, whole, tensors, reports).metrics
    write_json(folder / "metrics.json", metrics)
    return float(metrics["validation_score"])


def _test(
    plan: Tuning,
    best: Trial,
    folder: Path,
    split: SplitConfig,
    seeds: Sequence[int],
    replicates: int,
    dataset: Dataset,
    log: Log,
) -> AblationReport:
    """Train the base and the best trial on several seeds, and compare them on the test rows."""
    overrides, name = plan.overrides(best.params), f"trial-{best.number}"
    configs = {
        (BASE, "", "pinned"): replace(plan.config, split=split),
        ("tuned", name, "pinned"): replace(plan.with_params(best.params), split=split),
    }
    both = Ablation(plan.name, plan.base, {"pinned": ()}, {"tuned": {name: overrides}}, configs)
    return ablate(both, seeds, folder=folder / TEST, replicates=replicates, dataset=dataset, log=log)
