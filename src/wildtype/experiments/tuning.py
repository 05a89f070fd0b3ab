"""`tune`: settings searched by their validation score, and what the best reach on rows that no trial saw.

    trials.db            optuna's study: every trial with its settings, scores by epoch and state
    split.json           the split of every run here: its test rows are in no trial
    trial-0/ trial-1/    run folders of the trials, without tests
    tune.json · tune.md  the trials as a table
    test/                the base and the best trial, trained on several seeds and tested: an ablation

The base is the first trial where its values lie within the search. A search that was killed goes on: finished
trials stay, and the one that was under way is resumed from its last epoch.
"""

from __future__ import annotations

import importlib
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import Callback

from wildtype.datasets import Dataset
from wildtype.datasets.pinned import write_pinned
from wildtype.errors import CheckpointError, ConfigError, OutputError, WildtypeError, reason_of
from wildtype.evaluation.summary import Trial
from wildtype.experiments.ablation import ablate
from wildtype.experiments.ablation_tables import AblationReport
from wildtype.experiments.data import load_for, prepare
from wildtype.experiments.fitting import fit_members, make_checkpoint
from wildtype.experiments.folder import claim, going_on, resumable, settings_of
from wildtype.experiments.post_fit import post_fit
from wildtype.experiments.record import environment, of_data
from wildtype.experiments.settings.ablation import BASE, Ablation
from wildtype.experiments.settings.schema import SplitConfig, TrainConfig
from wildtype.experiments.settings.tuning import Choices, Tuning, Value
from wildtype.experiments.setup import build
from wildtype.experiments.start import Log
from wildtype.files import content_hash, exclusive_lock, write_json, write_text
from wildtype.models.ensemble import Ensemble
from wildtype.report.tuning import trials_to_markdown
from wildtype.seeds import derive
from wildtype.training.fit import accelerator
from wildtype.training.task import FitTask
from wildtype.training.world import require_single_process

STUDY, SPLIT, TABLE, DOCUMENT, TEST = "trials.db", "split.json", "tune.json", "tune.md", "test"
STARTUP = 5
"""Trials drawn at random before the search learns, and finished before it cuts others short."""
STATES = {"COMPLETE": "finished", "PRUNED": "cut short", "FAIL": "failed"}


@dataclass(frozen=True)
class Search:
    """What a search found.

    Attributes
    ----------
    folder : Path
        Of the search.
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
) -> Search:
    """Search until there are so many trials, then test the best of them and the base.

    Settings are proposed by tree-structured Parzen estimators (Bergstra et al. 2011, as optuna has them); a
    trial below the median of the others at the same epoch is cut short.

    Parameters
    ----------
    plan : Tuning
        What to search.
    folder : Path
        Of the search, new or of the same search before.
    trials : int
        That there shall be at the end, those of calls before included.
    grid : bool
        Whether every combination is a trial instead, none of them cut short; ``trials`` does not count.
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
        Told, in a few words, what is going on.
    clock : callable
        Tells the time.

    Raises
    ------
    ConfigError
        Without optuna, if the folder holds another search, or another process is searching there.
    CheckpointError
        If the folder holds a damaged study.
    OutputError
        If the folder cannot be written.
    """
    if trials < 1:
        raise ConfigError(f"trials={trials}: take at least one")
    if len(set(seeds)) < len(seeds):
        raise ConfigError(f"seeds {list(seeds)}: give each once")
    require_single_process("a search")
    accelerator(plan.config.training)
    optuna = _optuna()
    with exclusive_lock(folder, "searching in"):
        start = clock()
        dataset = load_for(plan.config) if dataset is None else dataset
        if grid:
            trials = math.prod(len(values) for values in plan.grid().values())
        study = _study(optuna, plan, folder, dataset, grid=grid)
        split = _pinned(plan, folder, dataset)
        while (under_way := _under_way(optuna, study)) is not None or _count(study) < trials:
            if budget is not None and clock() - start >= budget:
                log(f"the budget is used up after {_count(study)} of {trials} trials")
                break
            trial = study.ask() if under_way is None else under_way
            _one(optuna, study, trial, plan, folder, split, dataset, log)
            _write(_search(optuna, study, plan, folder))
        found = _search(optuna, study, plan, folder)
        if seeds and found.best is not None and _count(study) >= trials:
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


def _study(optuna: Any, plan: Tuning, folder: Path, dataset: Dataset, *, grid: bool) -> Any:
    """Return the study in a folder, or a new one whose first trial is the base."""
    path = folder / STUDY
    mark = content_hash(plan.describe(), grid, dataset.sha256)
    try:
        url = importlib.import_module("sqlalchemy").URL.create("sqlite", database=str(path.absolute()))
        storage = optuna.storages.RDBStorage(url.render_as_string())
        median = optuna.pruners.MedianPruner(n_startup_trials=STARTUP)
        pruner = optuna.pruners.NopPruner() if grid else median
        study = optuna.create_study(
            storage=storage, study_name="tune", direction="maximize", pruner=pruner, load_if_exists=True
        )
        stored = study.user_attrs.get("search")
    except Exception as error:
        raise CheckpointError(
            f"{str(path)!r} holds no study that can be read ({reason_of(error)}): search in another folder"
        ) from error
    if stored is None:
        base = plan.base_params()
        every = product(*plan.grid().values()) if grid else ()
        asked = [] if base is None else [base]
        asked += [
            params for values in every if (params := dict(zip(plan.space, values, strict=True))) != base
        ]
        for params in asked:
            study.enqueue_trial(params, skip_if_exists=True)
        study.set_user_attr("search", mark)
    elif stored != mark:
        raise ConfigError(
            f"{str(folder)!r} holds another search, or one of other data: choose another --folder"
        )
    # A sampler begins its draws anew in every process: with one seed it would propose the same again.
    seed = derive(plan.config.seed, "search", _count(study))
    study.sampler = optuna.samplers.TPESampler(seed=seed % 2**32, n_startup_trials=STARTUP, multivariate=True)
    return study


def _pinned(plan: Tuning, folder: Path, dataset: Dataset) -> SplitConfig:
    """Write the split that all runs share, where it is not there yet."""
    path = folder / SPLIT
    if not path.is_file():
        data = prepare(plan.config, dataset)
        write_pinned(data.split, data.dataset, path)
    return SplitConfig(pinned=str(path))


def _count(study: Any) -> int:
    """Return how many trials have ended."""
    return sum(trial.state.is_finished() for trial in study.get_trials(deepcopy=False))


def _under_way(optuna: Any, study: Any) -> Any | None:
    """Return the trial that was under way when the search ended, if there is one."""
    for trial in study.get_trials(deepcopy=False, states=[optuna.trial.TrialState.RUNNING]):
        return optuna.trial.Trial(study, trial._trial_id)
    return None


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
    """Tells the study every epoch's validation score, and ends a trial that the study gives up."""

    def __init__(self, optuna: Any, trial: Any) -> None:
        self.optuna, self.trial = optuna, trial
        self.told: set[int] = set(trial.storage.get_trial(trial._trial_id).intermediate_values)
        self.member = 0

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self.member += 1

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        assert isinstance(pl_module, FitTask)
        if self.member > 1 or pl_module.epoch in self.told:
            return
        self.trial.report(pl_module.validation_score, pl_module.epoch)
        if self.trial.should_prune() and not trainer.should_stop:
            raise self.optuna.TrialPruned


def _one(
    optuna: Any,
    study: Any,
    trial: Any,
    plan: Tuning,
    folder: Path,
    split: SplitConfig,
    dataset: Dataset,
    log: Log,
) -> None:
    """Train with the settings of a trial, and tell the study what it reached."""
    states, room = optuna.trial.TrialState, folder / f"trial-{trial.number}"
    params = _params(trial, plan)
    log(f"trial {trial.number}: {', '.join(plan.words(params))}")
    begin, resumed = time.monotonic(), False
    try:
        config = going_on(replace(plan.with_params(params), split=split, baselines=[]), room)
        resumed = config.run.resume
        try:
            score = _reached(config, dataset, _Watch(optuna, trial), log)
        except CheckpointError:
            if not resumed:
                raise
            anew = replace(config.run, resume=False, overwrite=True)  # nothing usable was left of it
            score = _reached(replace(config, run=anew), dataset, _Watch(optuna, trial), log)
    except OutputError:  # the trial stays under way, for when there is room again
        raise
    except optuna.TrialPruned:
        study.tell(trial, state=states.PRUNED)
        log(f"trial {trial.number}: cut short")
    except (WildtypeError, ArithmeticError, ValueError, RuntimeError, MemoryError) as error:
        why = " ".join(str(error).split()) if isinstance(error, WildtypeError) else repr(error)
        trial.set_user_attr("why", why)
        study.tell(trial, state=states.FAIL)
        log(f"trial {trial.number}: failed: {why}")
    else:
        if not resumed:
            trial.set_user_attr("seconds", time.monotonic() - begin)
        study.tell(trial, score)
        log(f"trial {trial.number}: validation score {score:.4f}")


def _reached(config: TrainConfig, dataset: Dataset, watch: _Watch, log: Log) -> float:
    """Return the validation score of a finished model; its test rows are not looked at."""
    config.training.check()
    data = prepare(config, dataset)
    model, tensors = build(config, data, config.seed)
    fingerprint = content_hash(resumable(settings_of(config)), data.dataset.sha256, data.split.to_json())
    folder = claim(config, fingerprint)
    write_json(folder / "record.json", environment() | of_data(data))
    members, reports = fit_members(config, data, model, tensors, folder, fingerprint, [watch])
    post_fit(config, data, tensors, members, log)
    whole = members[0] if len(members) == 1 else Ensemble(members).eval()
    metrics = make_checkpoint(config, data, whole, tensors, reports).metrics
    write_json(folder / "metrics.json", metrics)
    return float(metrics["validation_score"])


def _search(optuna: Any, study: Any, plan: Tuning, folder: Path) -> Search:
    """Return what a study holds."""
    found, base = [], plan.base_params()
    for trial in study.get_trials(deepcopy=False):
        if not trial.state.is_finished():
            continue
        scores = [value for value in trial.intermediate_values.values() if math.isfinite(value)]
        score = trial.value if trial.value is not None else max(scores, default=None)
        if trial.state == optuna.trial.TrialState.PRUNED:
            score = max(scores, default=None)
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
    return Search(folder, tuple(found), best, first)


def _write(found: Search) -> None:
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
    words, name = plan.words(best.params), f"trial-{best.number}"
    configs = {
        (BASE, "", "pinned"): replace(plan.config, split=split),
        ("tuned", name, "pinned"): replace(plan.with_params(best.params), split=split),
    }
    both = Ablation(plan.name, plan.base, {"pinned": ()}, {"tuned": {name: words}}, configs)
    return ablate(both, seeds, folder=folder / TEST, replicates=replicates, dataset=dataset, log=log)
