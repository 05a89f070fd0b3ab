"""`tune`: settings searched by their validation score, and what the best reach on rows that no trial saw.

    trials.db            optuna's study: every trial with its settings, scores by epoch and state
    split.json           the split of every run here: its test rows are in no trial
    trial-0/ trial-1/    run directories of the trials, without tests
    tune.json · tune.md  the trials as a table
    test/                the base and the best trial, trained on several seeds and tested: an ablation

The base is the first trial where its values lie within the search. A search that was killed is continued:
finished trials stay, and the one that was under way is resumed from its last epoch.
"""

from __future__ import annotations

import importlib
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import Callback

from wildtype.datasets import Dataset
from wildtype.datasets.pinned import write_pinned
from wildtype.errors import CheckpointError, ConfigError, OutputError, reason_of
from wildtype.evaluation.summary import Trial
from wildtype.experiments.ablation import ablate
from wildtype.experiments.ablation_tables import AblationReport
from wildtype.experiments.data import load_for, prepare
from wildtype.experiments.fitting import fit_members, make_checkpoint, post_fit
from wildtype.experiments.folder import claim, locked_run, resumable, settings_of
from wildtype.experiments.many import Tried, run_many
from wildtype.experiments.record import environment, of_data
from wildtype.experiments.settings.ablation import BASE, Ablation
from wildtype.experiments.settings.plans import Overrides, PlannedRun
from wildtype.experiments.settings.schema import SplitConfig, TrainConfig
from wildtype.experiments.settings.tuning import Choices, Tuning, Value
from wildtype.experiments.setup import build
from wildtype.experiments.start import Log
from wildtype.files import content_hash, write_json, write_text
from wildtype.locks import exclusive_lock
from wildtype.models.ensemble import Ensemble
from wildtype.report.search_tables import trials_to_markdown
from wildtype.seeds import derive
from wildtype.training.fit import accelerator
from wildtype.training.task import FitTask
from wildtype.training.world import require_single_process

STUDY, SPLIT, TABLE, DOCUMENT, TEST = "trials.db", "split.json", "tune.json", "tune.md", "test"
STARTUP = 5
"""Trials drawn at random before the search learns, and finished before it cuts others short."""
STATES = {"COMPLETE": "finished", "PRUNED": "cut short", "FAIL": "failed"}


@dataclass(frozen=True)
class TuningResult:
    """What a search found.

    Attributes
    ----------
    folder : Path
        Directory of the search.
    trials : tuple of Trial
        In order.
    best : Trial or None
        The finished one with the best score.
    base : Trial or None
        The base itself, if it was a trial.
    test : AblationReport or None
        Base and best on the test rows.
    """

    folder: Path
    trials: tuple[Trial, ...]
    best: Trial | None
    base: Trial | None
    test: AblationReport | None = None

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "trials": [asdict(trial) for trial in self.trials],
            "best": None if self.best is None else self.best.number,
            "base": None if self.base is None else self.base.number,
            "test": None if self.test is None else self.test.to_json(),
        }


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
        Number of trials in the end, those of earlier calls included.
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
        If the directory cannot be written, or another process is searching there.
    """
    if trials < 1:
        raise ConfigError(f"trials={trials}: take at least one")
    if len(set(seeds)) < len(seeds):
        raise ConfigError(f"seeds {list(seeds)}: give each once")
    require_single_process("a search")
    accelerator(plan.config.training)
    optuna = _optuna()
    with exclusive_lock(folder, "searching in", log):
        start = clock()
        dataset = load_for(plan.config) if dataset is None else dataset
        if grid:
            trials = math.prod(len(values) for values in plan.grid().values())
        study = _Study(optuna, plan, folder, dataset, grid=grid)
        split = _pinned(plan, folder, dataset)

        def work(config: TrainConfig) -> float | None:
            try:
                return _validated(config, dataset, _Watch(optuna, study.trial), log)
            except optuna.TrialPruned:
                return None

        def proposals() -> Iterator[_TrialRun]:
            while (trial := study.under_way()) is not None or study.count() < trials:
                if budget is not None and clock() - start >= budget:
                    log(f"the budget is used up after {study.count()} of {trials} trials")
                    return
                if (run := study.propose(trial, split, log)) is not None:
                    yield run

        # A full disk leaves the trial under way, for when there is space again.
        for tried in run_many(proposals(), work, passed_on=(OutputError,), log=log):
            study.tell(tried, log)
            _write(study.found())
        found = study.found()
        if seeds and found.best is not None and study.count() >= trials:
            found = replace(
                found, test=_test(plan, found.best, folder, split, seeds, replicates, dataset, log)
            )
        _write(found)
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


@dataclass(frozen=True)
class _TrialRun(PlannedRun):
    """The run of a trial, with the overrides that the study proposed."""

    overrides: Overrides

    @property
    def note(self) -> str:
        return ", ".join(self.overrides)


class _Study:
    """Optuna's study of a search in its file: proposes runs, and is told what they reached.

    A new one begins with the base. Raises ``CheckpointError`` on a damaged file and ``ConfigError`` on the
    study of another search.
    """

    def __init__(self, optuna: Any, plan: Tuning, folder: Path, dataset: Dataset, *, grid: bool) -> None:
        self.optuna, self.plan, self.folder = optuna, plan, folder
        self.trial: Any = None
        path = folder / STUDY
        try:
            url = importlib.import_module("sqlalchemy").URL.create("sqlite", database=str(path.absolute()))
            storage = optuna.storages.RDBStorage(url.render_as_string())
            # A median of few trials is chance; and of a grid every combination is wanted to its end.
            median = optuna.pruners.MedianPruner(n_startup_trials=STARTUP)
            pruner = optuna.pruners.NopPruner() if grid else median
            self.study = optuna.create_study(
                storage=storage, study_name="tune", direction="maximize", pruner=pruner, load_if_exists=True
            )
            stored = self.study.user_attrs.get("search")
        except Exception as error:
            raise CheckpointError(
                f"{str(path)!r} holds no study that can be read ({reason_of(error)}): search in another "
                f"directory"
            ) from error
        mark = content_hash(plan.describe(), grid, dataset.sha256)
        if stored is None:
            self._begin(grid)
            # Marked last: a study that was killed before is begun again, without repeating what was queued.
            self.study.set_user_attr("search", mark)
        elif stored != mark:
            raise ConfigError(
                f"{str(folder)!r} holds another search, or one of other data: choose another --folder"
            )
        # A sampler begins its draws anew in every process: with one seed it would propose the same again.
        seed = derive(plan.config.seed, "search", self.count())
        self.study.sampler = optuna.samplers.TPESampler(
            seed=seed % 2**32, n_startup_trials=STARTUP, multivariate=True
        )

    def _begin(self, grid: bool) -> None:
        base = self.plan.base_params()
        queue = [] if base is None else [base]
        for values in product(*self.plan.grid().values()) if grid else ():
            params = dict(zip(self.plan.space, values, strict=True))
            if params != base:
                queue.append(params)
        for params in queue:
            self.study.enqueue_trial(params, skip_if_exists=True)

    def count(self) -> int:
        """Return how many trials have ended."""
        return sum(trial.state.is_finished() for trial in self.study.get_trials(deepcopy=False))

    def under_way(self) -> Any | None:
        """Return the trial that had not ended when the last search did, if there is one."""
        states = [self.optuna.trial.TrialState.RUNNING]
        for trial in self.study.get_trials(deepcopy=False, states=states):
            return self.optuna.trial.Trial(self.study, trial._trial_id)
        return None

    def propose(self, under_way: Any | None, split: SplitConfig, log: Log) -> _TrialRun | None:
        """Return the run of the trial under way, or of a new one; None if its values do not go together."""
        self.trial = self.study.ask() if under_way is None else under_way
        name = f"trial-{self.trial.number}"
        params = _params(self.trial, self.plan)
        try:
            config = replace(self.plan.with_params(params), split=split, baselines=[])
        except ConfigError as error:
            self._failed(str(error))
            log(f"{name}: failed: {error}")
            return None
        config = replace(config, run=replace(config.run, folder=str(self.folder / name)))
        return _TrialRun(name, config, self.plan.overrides(params))

    def tell(self, tried: Tried[_TrialRun, float | None], log: Log) -> None:
        """Record what the last proposed run reached."""
        if tried.state.state == "failed":
            self._failed(tried.state.why)
        elif tried.result is None:
            self.study.tell(self.trial, state=self.optuna.trial.TrialState.PRUNED)
            log(f"{tried.run.name}: cut short")
        else:
            if tried.state.seconds is not None:
                self.trial.set_user_attr("seconds", tried.state.seconds)
            self.study.tell(self.trial, tried.result)
            log(f"{tried.run.name}: validation score {tried.result:.4f}")

    def _failed(self, why: str) -> None:
        self.trial.set_user_attr("why", why)
        self.study.tell(self.trial, state=self.optuna.trial.TrialState.FAIL)

    def found(self) -> TuningResult:
        """Return what the trials reached."""
        found, base = [], self.plan.base_params()
        for trial in self.study.get_trials(deepcopy=False):
            if not trial.state.is_finished():
                continue
            # Of a trial that was cut short, optuna's value is that of its last epoch, not of its best.
            scores = [value for value in trial.intermediate_values.values() if math.isfinite(value)]
            pruned = trial.state == self.optuna.trial.TrialState.PRUNED
            score = max(scores, default=None) if pruned or trial.value is None else trial.value
            found.append(
                Trial(
                    trial.number,
                    STATES[trial.state.name],
                    dict(trial.params),
                    score,
                    len(trial.intermediate_values),
                    trial.user_attrs.get("seconds"),
                    trial.user_attrs.get("why", ""),
                )
            )
        ended = [trial for trial in found if trial.state == "finished" and trial.score is not None]
        best = max(ended, key=lambda trial: (trial.score or -math.inf, -trial.number), default=None)
        first = next((trial for trial in found if base is not None and trial.params == base), None)
        return TuningResult(self.folder, tuple(found), best, first)


def _pinned(plan: Tuning, folder: Path, dataset: Dataset) -> SplitConfig:
    """Write the split that all runs share, where it is not there yet: its test rows are in no trial."""
    path = folder / SPLIT
    if not path.is_file():
        data = prepare(plan.config, dataset)
        if data.grid is not None:  # a split of crosses follows from its settings alone, seed included
            return replace(plan.config.split, seed=data.split.seed)
        write_pinned(data.split, data.dataset, path)
    return SplitConfig(pinned=str(path))


def _params(trial: Any, plan: Tuning) -> dict[str, Value]:
    """Return the values of a trial; those that it was given before stay."""
    found: dict[str, Value] = {}
    for key, dimension in plan.space.items():
        if isinstance(dimension, Choices):
            found[key] = trial.suggest_categorical(key, list(dimension.values))
            continue
        draw = trial.suggest_int if dimension.whole else trial.suggest_float
        step = 1 if dimension.whole and dimension.step is None else dimension.step
        found[key] = draw(key, dimension.low, dimension.high, log=dimension.log, step=step)
    return found


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
    with locked_run(config, log) as config:
        folder = claim(config, fingerprint)
        write_json(folder / "record.json", environment() | of_data(data))
        members, reports = fit_members(config, data, model, tensors, folder, fingerprint, [watch])
        post_fit(config, data, tensors, members, log)
        whole = members[0] if len(members) == 1 else Ensemble(members).eval()
        metrics = make_checkpoint(config, data, whole, tensors, reports).metrics
        write_json(folder / "metrics.json", metrics)
    return float(metrics["validation_score"])


def _write(found: TuningResult) -> None:
    write_json(found.folder / TABLE, found.to_json())
    write_text(found.folder / DOCUMENT, trials_to_markdown(found.trials, found.best, found.base))


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
