from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.command import assert_one_sentence, wildtype
from tests.tiny import tiny_dataset
from wildtype.datasets.storage import save_dataset
from wildtype.errors import ConfigError
from wildtype.experiments import many
from wildtype.experiments.run import train
from wildtype.experiments.settings.plans import PlannedRun, runs_of_line
from wildtype.experiments.settings.schema import TrainConfig
from wildtype.experiments.stored import Run
from wildtype.organism.storage import save_organism
from wildtype.sources.catalogue import dataset_folder, organism_folder

WORDS = [
    "data.name=tiny-growth", "model.width=8", "model.heads=4", "model.layers=0", "model.head.heads=0",
    "model.evidence.tokens=0", "training.epochs=2", "training.batch_size=64", "baselines=[mean]",
    "run.progress=false", "run.replicates=20",
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
