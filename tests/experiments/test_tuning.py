"""Searches of settings: resumed where they were killed, judged by validation, tested on rows no trial saw."""

from __future__ import annotations

import contextlib
import json
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from tests.tiny import tiny_dataset
from wildtype.datasets.pinned import read_pinned
from wildtype.errors import CheckpointError, ConfigError
from wildtype.experiments import study, tuning
from wildtype.experiments.many import RunState, Tried
from wildtype.experiments.settings.schema import SplitConfig, TrainConfig
from wildtype.experiments.settings.tuning import Tuning, read_tuning
from wildtype.experiments.stored import Run
from wildtype.experiments.tuning import TuningResult, tune
from wildtype.locks import exclusive_lock

PLAN = """
base: [data.name=tiny-growth, model.width=16, model.heads=4, model.layers=0, model.head.heads=2,
       model.evidence.tokens=0, training.epochs=3, training.batch_size=64, training.deterministic=true,
       run.progress=false]
space:
  training.learning_rate: {low: 1.0e-3, high: 3.0e-2, log: true}
  model.layers: [0, 1]
"""


@pytest.fixture
def plan(tmp_path: Path) -> Tuning:
    path = tmp_path / "plan.yaml"
    path.write_text(PLAN)
    return read_tuning(str(path))


def search(plan: Tuning, folder: Path, trials: int, **options: Any) -> TuningResult:
    options = {"seeds": (), "dataset": tiny_dataset(), "replicates": 20} | options
    return tune(plan, folder=folder, trials=trials, **options)


@pytest.mark.slow
def test_the_base_comes_first_and_the_best_by_validation_is_chosen(plan: Tuning, tmp_path: Path) -> None:
    found = search(plan, tmp_path / "s", 3)
    assert [trial.number for trial in found.trials] == [0, 1, 2]
    assert found.base is found.trials[0]
    assert (
        found.base.params == {"training.learning_rate": 3e-3, "model.layers": "0"}
        or found.base.params["model.layers"] == "0"
    )
    assert all(trial.state == "finished" and trial.epochs == 3 for trial in found.trials)
    assert found.best is not None
    assert found.best.score == max(trial.score or 0 for trial in found.trials)
    assert found.test is None
    assert not list((tmp_path / "s").rglob("predictions.parquet"))  # nothing was tested
    record = json.loads((tmp_path / "s" / "tune.json").read_text())
    assert record["best"] == found.best.number
    assert "(best" in (tmp_path / "s" / "tune.md").read_text()


@pytest.mark.slow
def test_the_score_is_that_of_the_finished_model(plan: Tuning, tmp_path: Path) -> None:
    found = search(plan, tmp_path / "s", 1, seeds=(0,))
    assert found.test is not None
    assert found.test.failed == []
    (run,) = [Run(path.parent) for path in (tmp_path / "s" / "test").rglob("comparison.json")]
    metrics = run.metrics
    assert metrics["validation_score"] == pytest.approx(metrics["fit"]["best_score"], abs=1e-5)
    assert found.trials[0].score == pytest.approx(metrics["validation_score"], abs=1e-5)
    # The base was the best: it is tested once.
    assert [table.rows[0].factor for table in found.test.tables] == ["base"]


@pytest.mark.slow
def test_no_trial_sees_the_rows_that_are_tested(plan: Tuning, tmp_path: Path) -> None:
    found = search(plan, tmp_path / "s", 2, seeds=(0, 1))
    assert found.test is not None
    pinned = read_pinned(tmp_path / "s" / "split.json", tiny_dataset().select(["epsilon"])).split
    tested = [json.loads(path.read_text()) for path in (tmp_path / "s" / "test").rglob("split.json")]
    assert len(tested) in (2, 4)  # base and best on two seeds, or the base alone
    for split in tested:
        assert [i for i, mark in enumerate(split["rows"]) if mark == "e"] == sorted(pinned.test.tolist())
    records = [json.loads(path.read_text()) for path in (tmp_path / "s").rglob("record.json")]
    assert len(records) == 2 + len(tested)
    assert len({record["split_sha256"] for record in records}) == 1


@pytest.mark.slow
def test_a_killed_search_goes_on_as_if_it_had_not_been(
    plan: Tuning, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = search(plan, tmp_path / "whole", 2)
    seen = []

    def killed(self: Any, trainer: Any, module: Any) -> None:
        seen.append(module.epoch)
        if len(seen) == 5:  # in the second trial's second epoch
            raise KeyboardInterrupt
        told(self, trainer, module)

    told = tuning._Watch.on_train_epoch_end
    monkeypatch.setattr(tuning._Watch, "on_train_epoch_end", killed)
    with pytest.raises(KeyboardInterrupt):
        search(plan, tmp_path / "s", 2)
    monkeypatch.setattr(tuning._Watch, "on_train_epoch_end", told)
    found = search(plan, tmp_path / "s", 2)
    assert [(t.params, t.score, t.state) for t in found.trials] == [
        (t.params, t.score, t.state) for t in whole.trials
    ]
    assert found.trials[1].seconds is None  # not in one piece
    again = search(plan, tmp_path / "s", 2)
    assert again.trials == found.trials


@pytest.mark.slow
def test_hopeless_trials_are_cut_short_and_impossible_ones_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "plan.yaml"
    space = "training.learning_rate: [0.01, 1.0e-9]\n  model.heads: [4, 8]\n  model.width: [16, 20]\n"
    base = PLAN.partition("training.learning_rate")[0].replace("[data", "[training.learning_rate=0.01, data")
    path.write_text(base + space)  # one rate learns nothing, and 8 heads do not divide a width of 20
    plan = read_tuning(str(path))
    monkeypatch.setattr(study, "STARTUP", 1)
    found = search(plan, tmp_path / "s", 7)
    states = {trial.state for trial in found.trials}
    assert states == {"finished", "cut short", "failed"}
    for trial in found.trials:
        if trial.state == "cut short":
            assert 1 <= trial.epochs < 3
            assert trial.score is not None
        if trial.state == "failed":
            assert (trial.params["model.heads"], trial.params["model.width"]) == ("8", "20")
            assert "does not divide" in trial.why
    assert "a trial that was cut short" in (tmp_path / "s" / "tune.md").read_text()


@pytest.mark.slow
def test_a_grid_has_every_combination_once(tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    low = "training.learning_rate: {low: 1.0e-3, high: 3.0e-2, log: true}"
    path.write_text(PLAN.replace(low, "training.batch_size: {low: 32, high: 64, step: 32}"))
    plan = read_tuning(str(path), ["training.epochs=1"])
    first = search(plan, tmp_path / "s", 1, grid=True, budget=1, clock=iter([0.0, 0.0, 2.0]).__next__)
    assert len(first.trials) == 1
    found = search(plan, tmp_path / "s", 1, grid=True)
    pairs = {(trial.params["training.batch_size"], trial.params["model.layers"]) for trial in found.trials}
    assert pairs == {(32, "0"), (64, "0"), (32, "1"), (64, "1")}
    assert len(found.trials) == 4
    assert {trial.state for trial in found.trials} == {"finished"}
    assert found.base is not None


def test_what_is_refused(plan: Tuning, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="trials=0"):
        search(plan, tmp_path / "s", 0)
    with pytest.raises(ConfigError, match="give each once"):
        search(plan, tmp_path / "s", 1, seeds=(1, 1))
    with pytest.raises(ConfigError, match="'training.learning_rate': a range without a step"):
        search(plan, tmp_path / "s", 1, grid=True)
    search(plan, tmp_path / "s", 1)
    other = read_tuning(str(tmp_path / "plan.yaml"), ["model.dropout=0.3"])
    with pytest.raises(ConfigError, match="holds another search"):
        search(other, tmp_path / "s", 1)
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "trials.journal").write_bytes(b"not a database" * 100)
    with pytest.raises(CheckpointError, match="holds no study that can be read"):
        search(plan, tmp_path / "bad", 1)
    monkeypatch.setattr("importlib.import_module", _nothing)
    with pytest.raises(ConfigError, match=r"pip install 'wildtype\[tune\]'"):
        search(plan, tmp_path / "t", 1)


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the runs that a stand-in trains; a score follows from the settings."""
    names: list[str] = []

    def validated(config: TrainConfig, *_: object) -> float:
        names.append(Path(config.run.folder).name)
        (Path(config.run.folder) / "trained").write_text("")
        return 1 - abs(config.training.learning_rate - 0.004)

    monkeypatch.setattr(tuning, "_validated", validated)
    return names


@pytest.mark.slow
def test_a_second_process_takes_the_next_trials(
    plan: Tuning, tmp_path: Path, trained: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    alone = search(plan, tmp_path / "alone", 3)
    assert trained == ["trial-0", "trial-1", "trial-2"]
    trained.clear()
    validated = tuning._validated
    inner: list[TuningResult] = []

    def slow(config: TrainConfig, *rest: Any) -> float:
        # While the first trial trains, a second process begins, and ends all others.
        if not inner:
            monkeypatch.setattr(tuning, "_validated", validated)
            inner.append(search(plan, tmp_path / "s", 3, log=said.append, seeds=(0,)))
        return validated(config, *rest)

    monkeypatch.setattr(tuning, "_validated", slow)
    found = search(plan, tmp_path / "s", 3)
    assert trained == ["trial-1", "trial-2", "trial-0"]
    assert [trial.number for trial in inner[0].trials] == [1, 2]
    assert (inner[0].under_way, inner[0].test) == (1, None)
    assert said[-1] == "1 trials are under way elsewhere; the process that ends last tests the best"
    assert [trial.state for trial in found.trials] == ["finished"] * 3
    assert found.under_way == 0
    # Draws follow from the number of the trial, not from the process.
    assert [trial.params for trial in found.trials] == [trial.params for trial in alone.trials]
    assert json.loads((tmp_path / "s" / "tune.json").read_text())["best"] == found.best.number  # type: ignore[union-attr]


@pytest.mark.slow
def test_a_trial_whose_process_ended_is_resumed_by_another(
    plan: Tuning, tmp_path: Path, trained: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> float:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(tuning, "_validated", killed)
        search(plan, tmp_path / "s", 3)
    with exclusive_lock(tmp_path / "s" / "trial-0", "training in"):  # as long as it lives
        assert search(plan, tmp_path / "s", 2).under_way == 1
    assert trained == ["trial-1"]
    assert [trial.number for trial in search(plan, tmp_path / "s", 2).trials] == [0, 1]
    assert trained == ["trial-1", "trial-0"]


@pytest.mark.slow
def test_processes_share_the_trials(plan: Tuning, tmp_path: Path, trained: list[str]) -> None:
    """Three processes at once: every trial is begun once, and there are no more than were wanted."""
    processes = [get_context("fork").Process(target=search, args=(plan, tmp_path / "s", 7)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * 3
    found = search(plan, tmp_path / "s", 7)
    assert trained == []  # nothing was left to do
    assert [(trial.number, trial.state) for trial in found.trials] == [(n, "finished") for n in range(7)]
    assert len(list((tmp_path / "s").glob("trial-*/trained"))) == 7
    assert len({json.dumps(trial.params) for trial in found.trials}) == 7


def test_a_trial_that_has_just_ended_is_not_resumed(
    plan: Tuning, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the list of trials under way and the lock on one of them, its process may end it."""

    def begin() -> study.Study:
        return study.Study(tuning._optuna(), plan, tmp_path / "s", tiny_dataset(), grid=False)

    with contextlib.closing(begin()) as first, contextlib.closing(begin()) as second:
        run = first.propose(1, SplitConfig(), print)
        assert run is not None
        listed, before = second._running, second._running()
        assert [trial.number for trial in before] == [0]

        def just_ended() -> list[Any]:
            monkeypatch.setattr(second, "_running", listed)
            first.tell(Tried(run, RunState("finished", seconds=1.0), 0.5), print)
            return before

        monkeypatch.setattr(second, "_running", just_ended)
        assert second.propose(1, SplitConfig(), print) is None
        following = second.propose(2, SplitConfig(), print)
        assert following is not None
        assert following.name == "trial-1"
        second.tell(Tried(following, RunState("finished", seconds=1.0), 0.25), print)
        assert [trial.score for trial in second.found().trials] == [0.5, 0.25]


def test_only_one_process_tests(plan: Tuning, tmp_path: Path, trained: list[str]) -> None:
    said: list[str] = []
    with exclusive_lock(tmp_path / "s" / "test", "running an ablation in"):
        found = search(plan, tmp_path / "s", 2, seeds=(0,), log=said.append)
    assert found.test is None
    assert said[-1].startswith("not tested here: another process is running an ablation in")


@pytest.mark.slow
def test_a_line_that_was_cut_short_is_left_out(plan: Tuning, tmp_path: Path, trained: list[str]) -> None:
    search(plan, tmp_path / "s", 2)
    journal = tmp_path / "s" / "trials.journal"
    whole = journal.read_bytes()
    journal.write_bytes(whole + whole[:25])  # of a process that was killed in the middle of writing
    assert len(search(plan, tmp_path / "s", 3).trials) == 3
    assert journal.read_bytes().startswith(whole)
    assert len(search(plan, tmp_path / "s", 3).trials) == 3


def _nothing(name: str) -> None:
    raise ImportError(name)


def test_a_budget_ends_a_search_between_trials(plan: Tuning, tmp_path: Path) -> None:
    said: list[str] = []
    times = iter([0.0, 1.0, 100.0])
    found = search(plan, tmp_path / "s", 9, budget=50, clock=lambda: next(times), log=said.append, seeds=(0,))
    assert len(found.trials) == 1
    assert found.test is None
    assert said[-1] == "the budget is used up after 1 of 9 trials"
