from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.command import assert_one_sentence, wildtype
from tests.tiny import tiny_dataset
from wildtype.datasets.storage import save_dataset
from wildtype.errors import CheckpointError, ConfigError, OutputError
from wildtype.experiments import many
from wildtype.experiments.folder import DONE, MARK
from wildtype.experiments.many import RunStates, run_many
from wildtype.experiments.run import train
from wildtype.experiments.settings.plans import PlannedRun, runs_of_line
from wildtype.experiments.settings.schema import RunConfig, TrainConfig
from wildtype.experiments.stored import Run
from wildtype.organism.storage import save_organism
from wildtype.sources.catalogue import dataset_folder, organism_folder

WORDS = [
    "data.name=tiny-growth", "model=cell_transformer", "model.width=8", "model.heads=4", "model.layers=0",
    "model.head.heads=0", "model.evidence.tokens=0", "training.epochs=1", "training.batch_size=64",
    "baselines=[mean]", "run.progress=false", "run.replicates=20",
]  # fmt: skip


def line(folder: Path, *words: str) -> list[PlannedRun]:
    return runs_of_line([*WORDS, *words, f"run.folder={folder}"])


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the runs that were trained; the third is interrupted."""
    names: list[str] = []

    def counted(config: TrainConfig, log: Callable[[str], None]) -> Run:
        names.append(Path(config.run.folder).name)
        if len(names) == 3:
            raise KeyboardInterrupt
        return train(config, dataset=tiny_dataset(), log=log)

    monkeypatch.setattr(many, "train", counted)
    return names


@pytest.mark.slow
def test_runs_of_one_line_go_on_where_they_stopped(tmp_path: Path, trained: list[str]) -> None:
    runs, said = line(tmp_path, "seed=1,2", "split.name=random,one-unseen"), []
    with pytest.raises(KeyboardInterrupt):
        many.multirun(runs)
    found = many.multirun(runs, said.append)
    names = [one.name for one in runs]
    assert trained == [*names[:3], *names[2:]]
    assert said[0] == f"1 of 4, {names[0]}: finished before"
    assert [run.path for run in found] == [tmp_path / name for name in names]
    assert [run.predictor.checkpoint.origin["seed"] for run in found] == [1, 1, 2, 2]
    with pytest.raises(ConfigError, match=r"run with training\.learning_rate .* now has 0\.5"):
        many.multirun(
            line(tmp_path, "seed=1,2", "split.name=random,one-unseen", "training.learning_rate=0.5")
        )


@pytest.mark.slow
def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WILDTYPE_CACHE", str(tmp_path / "cache"))
    dataset = tiny_dataset()
    dataset = replace(dataset, organism=replace(dataset.organism, name="yeast"))  # a name that is known
    save_organism(dataset.organism, organism_folder("yeast"))
    save_dataset(dataset, dataset_folder("tiny-growth"))
    words = ["train", "--multirun", *WORDS, "seed=1,2", f"run.folder={tmp_path / 'runs'}"]
    one = wildtype(*words, "--only", "1")
    assert one.returncode == 0, one.stderr
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["seed=2"]
    both = wildtype(*words, "--json")
    assert both.returncode == 0, both.stderr
    assert "2 of 2, seed=2: finished before" in both.stderr
    assert {group["phenotype"] for group in json.loads(both.stdout)} >= {"epsilon"}
    assert_one_sentence(wildtype(*words, "--only", "2"), "--only 2: there are 2 runs")
    array = wildtype(*words, "--dry-run")
    assert "#SBATCH --array=0-1" in array.stdout


class Work:
    """Stands in for training: leaves the mark of a finished run, or fails as it is told."""

    def __init__(self, **errors: BaseException) -> None:
        self.errors, self.done = errors, list[tuple[str, bool]]()

    def __call__(self, config: TrainConfig) -> int:
        directory = Path(config.run.folder)
        self.done.append((directory.name, config.run.resume))
        directory.mkdir(parents=True, exist_ok=True)
        if directory.name in self.errors:
            raise self.errors.pop(directory.name)
        (directory / DONE).write_text("{}")
        return config.seed


def planned(folder: Path, *names: str) -> list[PlannedRun]:
    return [
        PlannedRun(name, TrainConfig(seed=seed, run=RunConfig(folder=str(folder / name))))
        for seed, name in enumerate(names)
    ]


@pytest.mark.slow
def test_every_run_ends_in_a_state_and_finished_ones_are_not_repeated(tmp_path: Path) -> None:
    runs, work = planned(tmp_path, "a", "b", "c", "d"), Work(b=MemoryError(), c=KeyError("x"))
    states = RunStates(tmp_path / "states.json")
    late = {"d": "the budget is used up"}
    said: list[str] = []
    tried = list(run_many(runs, work, states, why_not=lambda run: late.get(run.name, ""), log=said.append))
    assert [(one.run.name, one.state.state, one.result) for one in tried] == [
        ("a", "finished", 0),
        ("b", "failed", None),
        ("c", "failed", None),
    ]
    assert (states["b"].why, states["c"].why) == ("out of memory", "KeyError: 'x'")
    assert "Traceback" in states["c"].trace
    assert states["d"].state == "skipped"
    assert said[-1] == "4 of 4, d: not run, the budget is used up"
    again = list(run_many(runs, work, RunStates(tmp_path / "states.json")))
    assert [one.run.name for one in again] == ["b", "c", "d"]
    assert [name for name, _ in work.done] == ["a", "b", "c", "b", "c", "d"]
    assert {state.state for state in RunStates(tmp_path / "states.json").states.values()} == {"finished"}


@pytest.mark.slow
def test_a_run_learns_from_those_before(tmp_path: Path) -> None:
    reached: list[int | None] = []

    def proposals() -> Iterator[PlannedRun]:
        while len(reached) < 3:
            yield planned(tmp_path, *"abc"[: len(reached) + 1])[-1]

    for tried in run_many(proposals(), Work()):
        reached.append(tried.result)
    assert reached == [0, 1, 2]


def test_what_is_passed_on_leaves_the_run_to_be_resumed(tmp_path: Path) -> None:
    runs, path = planned(tmp_path, "a", "b"), tmp_path / "states.json"
    with pytest.raises(OutputError):
        list(run_many(runs, Work(a=OutputError("full")), RunStates(path), passed_on=(OutputError,)))
    assert (RunStates(path)["a"].state, RunStates(path)["a"].tries) == ("stopped", 0)

    def interrupted(run: PlannedRun) -> str:
        raise KeyboardInterrupt  # while the time of a run is estimated

    with pytest.raises(KeyboardInterrupt):
        list(run_many(runs, Work(), RunStates(path), why_not=interrupted))
    assert RunStates(path)["a"].tries == 0


def test_a_state_that_cannot_be_resumed_is_begun_anew_once(tmp_path: Path) -> None:
    (run,) = planned(tmp_path, "a")
    (run.directory / "resume").mkdir(parents=True)
    (run.directory / MARK).write_text("{}")
    (run.directory / "resume" / "state.json").write_text("{")
    work = Work(a=CheckpointError("damaged"))
    (tried,) = run_many([run], work)
    assert work.done == [("a", True), ("a", False)]
    assert (tried.state.state, tried.state.resumed) == ("finished", False)
    assert tried.state.seconds is not None
