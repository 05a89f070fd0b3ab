"""One writer per run directory, with real processes: a second one is refused, a killed one leaves no lock."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tiny import tiny_dataset
from wildtype.errors import OutputError
from wildtype.experiments import folder
from wildtype.experiments.folder import locked_run
from wildtype.experiments.run import train
from wildtype.experiments.settings.compose import compose
from wildtype.experiments.settings.schema import TrainConfig
from wildtype.experiments.stored import Run
from wildtype.locks import LOCK
from wildtype.training.world import World

QUICK = [
    "model.width=8", "model.heads=4", "model.layers=0", "model.head.heads=0", "model.evidence.tokens=0",
    "model.trees.bags=0", "training.epochs=1", "training.batch_size=64", "baselines=[]", "run.progress=false",
    "run.replicates=5", "data.name=tiny-growth",
]  # fmt: skip
HOLDER = """
import sys
from tests.tiny import tiny_dataset
from wildtype.experiments.run import train
from wildtype.experiments.settings.compose import compose

def pause(text):
    if text.startswith("split"):  # the run directory is written by now, and training has not begun
        print("training", flush=True)
        sys.stdin.readline()

train(compose(sys.argv[1:]), dataset=tiny_dataset(), log=pause)
"""


def settings(directory: Path, *overrides: str) -> TrainConfig:
    return compose([*QUICK, f"run.folder={directory}", *overrides])


@pytest.fixture
def trainer(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that trains with seed 1 in ``run``, and waits for a line before its first step."""
    words = [*QUICK, f"run.folder={tmp_path / 'run'}", "seed=1"]
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "training\n"
    yield process
    process.kill()
    process.communicate()


@pytest.mark.parametrize("again", ["run.overwrite=true", "run.resume=true", "run.requeued=true"])
def test_a_second_training_in_a_run_directory_is_refused(
    trainer: subprocess.Popen[str], tmp_path: Path, again: str
) -> None:
    with pytest.raises(OutputError, match=f"another process is training in .*process {trainer.pid} on"):
        train(settings(tmp_path / "run", "seed=2", again), dataset=tiny_dataset())
    trainer.communicate("go on\n")
    assert trainer.returncode == 0
    run = Run(tmp_path / "run")
    assert (run.settings["seed"], run.predictor.checkpoint.origin["seed"]) == (1, 1)
    assert list((tmp_path / "run").glob(".*")) == []


def test_the_directory_of_a_killed_training_is_taken_over(
    trainer: subprocess.Popen[str], tmp_path: Path
) -> None:
    trainer.send_signal(signal.SIGKILL)
    trainer.communicate()
    said: list[str] = []
    run = train(
        settings(tmp_path / "run", "seed=2", "run.requeued=true"), dataset=tiny_dataset(), log=said.append
    )
    assert f"process {trainer.pid} on" in said[0]
    assert "ended without releasing" in said[0]
    assert json.loads((run.path / "settings.json").read_text())["settings"]["seed"] == 2
    assert run.predictor.checkpoint.origin["seed"] == 2


def test_rank_zero_holds_the_lock_for_the_processes_of_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = settings(tmp_path / "run", "run.requeued=true")
    with locked_run(config, print) as first:
        assert (tmp_path / "run" / LOCK).is_file()
        monkeypatch.setattr(folder, "world", lambda: World(rank=1, size=2, local=2, started_by="torchrun"))
        with locked_run(config, print) as other:
            assert other == first
        assert (tmp_path / "run" / LOCK).is_file()
    assert not (tmp_path / "run").exists()  # made for the lock, and nothing was written there


def test_a_directory_without_a_name_is_numbered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    config = compose(QUICK)
    with locked_run(config, print) as first, locked_run(config, print) as second:
        assert second.run.folder == f"{first.run.folder}-2"
    (tmp_path / first.run.folder).mkdir(parents=True)
    config.run.overwrite = True
    with locked_run(config, print) as again:
        assert again.run.folder == first.run.folder
