"""Optuna's study of a search, at which several processes on several machines work.

A trial is under way as long as a process holds the lock of its run directory; one without a lock is resumed.

    trials.journal         every trial with its settings, scores by epoch and state
    search.lock            held while a trial is chosen
    tune.json · tune.md    the trials as a table
"""

from __future__ import annotations

import contextlib
import importlib
import math
import os
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from wildtype.datasets import Dataset
from wildtype.errors import CheckpointError, ConfigError, LockedError, reason_of
from wildtype.evaluation.summary import Trial
from wildtype.experiments.ablation_tables import AblationReport
from wildtype.experiments.many import Tried
from wildtype.experiments.settings.plans import Overrides, PlannedRun
from wildtype.experiments.settings.schema import SplitConfig
from wildtype.experiments.settings.tuning import Choices, Tuning, Value
from wildtype.experiments.start import Log
from wildtype.files import content_hash, write_json, write_text, writing_refused
from wildtype.locks import exclusive_lock
from wildtype.report.search_tables import trials_to_markdown
from wildtype.seeds import derive

STUDY, TABLE, DOCUMENT = "trials.journal", "tune.json", "tune.md"
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
    under_way : int
        Trials that other processes are training.
    """

    folder: Path
    trials: tuple[Trial, ...]
    best: Trial | None
    base: Trial | None
    test: AblationReport | None = None
    under_way: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "trials": [asdict(trial) for trial in self.trials],
            "best": None if self.best is None else self.best.number,
            "base": None if self.base is None else self.base.number,
            "test": None if self.test is None else self.test.to_json(),
            "under_way": self.under_way,
        }


@dataclass(frozen=True)
class TrialRun(PlannedRun):
    """The run of a trial, with the overrides that the study proposed."""

    overrides: Overrides

    @property
    def note(self) -> str:
        """The overrides, which are logged beside its name."""
        return ", ".join(self.overrides)


class Study:
    """Optuna's study of a search in its file: proposes runs, and is told what they reached.

    A new one begins with the base. Raises ``CheckpointError`` on a damaged file and ``ConfigError`` on the
    study of another search.
    """

    def __init__(self, optuna: Any, plan: Tuning, folder: Path, dataset: Dataset, *, grid: bool) -> None:
        self.optuna, self.plan, self.folder = optuna, plan, folder
        self.trial: Any = None
        self._held = contextlib.ExitStack()
        path, journal = folder / STUDY, importlib.import_module("optuna.storages.journal")
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise writing_refused(error, folder) from error
        # Optuna's lock waits, and breaks one that a killed process left: what is done under it takes seconds.
        self._alone: Callable[[], contextlib.AbstractContextManager[None]] = lambda: _locked(
            journal.JournalFileOpenLock(str(folder / "search")), folder
        )
        mark = content_hash(plan.describe(), grid, dataset.sha256)
        with self._alone():
            try:
                _drop_unfinished_line(path, journal)
                storage = optuna.storages.JournalStorage(journal.JournalFileBackend(str(path)))
                # A median of few trials is chance; and of a grid every combination is wanted to its end.
                median = optuna.pruners.MedianPruner(n_startup_trials=STARTUP)
                self.study = optuna.create_study(
                    storage=storage,
                    study_name="tune",
                    direction="maximize",
                    pruner=optuna.pruners.NopPruner() if grid else median,
                    load_if_exists=True,
                )
                stored = self.study.user_attrs.get("search")
            except OSError as error:
                raise writing_refused(error, path) from error
            except Exception as error:
                raise CheckpointError(
                    f"{str(path)!r} holds no study that can be read ({reason_of(error)}): search in another "
                    f"directory"
                ) from error
            if stored is None:
                self._begin(grid)
                # Marked last: a study that was killed before is begun again, without repeating the queue.
                self.study.set_user_attr("search", mark)
            elif stored != mark:
                raise ConfigError(
                    f"{str(folder)!r} holds another search, or one of other data: choose another --folder"
                )

    def close(self) -> None:
        """Let go of the trial under way, which another process may resume then."""
        self._held.close()

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

    def more(self, trials: int) -> bool:
        """Whether a trial can be begun, of so many in all, or resumed."""
        with self._alone():  # which of the trials are locked must not change meanwhile
            return self._begun() < trials or any(self._is_free(trial) for trial in self._running())

    def _begun(self) -> int:
        return sum(trial.state.name != "WAITING" for trial in self.study.get_trials(deepcopy=False))

    def _running(self) -> list[Any]:
        states = [self.optuna.trial.TrialState.RUNNING]
        found: list[Any] = self.study.get_trials(deepcopy=False, states=states)
        return found

    def _is_free(self, trial: Any) -> bool:
        """Whether the process of a trial that did not end has ended itself."""
        try:
            with self._locked_run(trial.number):
                return True
        except LockedError:
            return False

    @contextlib.contextmanager
    def _locked_run(self, number: int) -> Iterator[None]:
        directory = self.folder / f"trial-{number}"
        made = not directory.exists()
        try:
            with exclusive_lock(directory, "training in"):
                yield
        finally:
            if made:
                with contextlib.suppress(OSError):  # only an empty one can be removed: nothing was trained
                    directory.rmdir()

    def propose(self, trials: int, split: SplitConfig, log: Log) -> TrialRun | None:
        """Return the run of an abandoned trial, or of a new one.

        None if its values do not go together, or other processes have begun the last of ``trials``.
        """
        with self._alone():
            if not self._take(trials):
                return None
            name = f"trial-{self.trial.number}"
            params = _params(self.trial, self.plan)
        try:
            config = replace(self.plan.with_params(params), split=split, baselines=[])
        except ConfigError as error:
            self._failed(str(error))
            log(f"{name}: failed: {error}")
            return None
        config = replace(config, run=replace(config.run, folder=str(self.folder / name)))
        return TrialRun(name, config, self.plan.overrides(params))

    def _take(self, trials: int) -> bool:
        """Lock the run directory of the next trial, and make it the present one; False if there is none."""
        for trial in self._running():
            with contextlib.suppress(LockedError), contextlib.ExitStack() as held:
                held.enter_context(self._locked_run(trial.number))
                # Its process may have ended it, and only then let go of it, since the list was read.
                if trial.number not in {running.number for running in self._running()}:
                    continue
                self._held.push(held.pop_all())
                self._seed(trial.number)
                self.trial = self.optuna.trial.Trial(self.study, trial._trial_id)
                return True
        if self._begun() >= trials:
            return False
        self._seed(len(self.study.get_trials(deepcopy=False)))
        self.trial = self.study.ask()
        self._held.enter_context(self._locked_run(self.trial.number))
        return True

    def _seed(self, number: int) -> None:
        """Let the draws of a trial follow from its number, whichever process makes them."""
        seed = derive(self.plan.config.seed, "search", number)
        # With a constant liar, trials under way count as poor ones: processes search at different places.
        self.study.sampler = self.optuna.samplers.TPESampler(
            seed=seed % 2**32, n_startup_trials=STARTUP, multivariate=True, constant_liar=True
        )

    def tell(self, tried: Tried[TrialRun, float | None], log: Log) -> None:
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
        self._held.close()

    def _failed(self, why: str) -> None:
        self.trial.set_user_attr("why", why)
        self.study.tell(self.trial, state=self.optuna.trial.TrialState.FAIL)
        self._held.close()

    def write(self, found: TuningResult | None = None) -> None:
        """Write the tables of what was found, by default until now; raises ``OutputError``."""
        with self._alone():
            found = self.found() if found is None else found
            write_json(self.folder / TABLE, found.to_json())
            write_text(self.folder / DOCUMENT, trials_to_markdown(found.trials, found.best, found.base))

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
        running = [
            trial for trial in self._running() if self.trial is None or trial.number != self.trial.number
        ]
        return TuningResult(self.folder, tuple(found), best, first, under_way=len(running))


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


def _drop_unfinished_line(path: Path, journal: Any) -> None:
    """Remove what a process wrote last, if it was killed or the disk was full in the middle of a line.

    Optuna ignores such a line at the end of the file, and refuses the file once another line follows.
    """
    if not path.exists():
        return
    lock = journal.JournalFileSymlinkLock(str(path))  # that of the journal itself: nobody is writing now
    lock.acquire()
    try:
        whole = path.read_bytes().rfind(b"\n") + 1
        if 0 < whole < path.stat().st_size:
            os.truncate(path, whole)
    finally:
        lock.release()


@contextlib.contextmanager
def _locked(lock: Any, folder: Path) -> Iterator[None]:
    try:
        lock.acquire()
    except OSError as error:
        raise writing_refused(error, folder) from error
    try:
        yield
    finally:
        lock.release()
