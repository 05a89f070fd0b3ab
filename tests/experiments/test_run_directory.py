"""One writer per run directory, with real processes: a second one is refused, a killed one leaves no lock."""

from __future__ import annotations

import json
import multiprocessing
from collections.abc import Iterator
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext, ForkServerProcess
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


def hold(words: list[str], line: Connection) -> None:
    """Train in a process of its own; say when the directory is written, and wait before the first step."""

    def pause(text: str) -> None:
        if text.startswith("split"):
            line.send("training")
            line.recv()

    train(compose(words), dataset=tiny_dataset(), log=pause)


def settings(directory: Path, *overrides: str) -> TrainConfig:
    return compose([*QUICK, f"run.folder={directory}", *overrides])


@pytest.fixture(scope="module")
def processes() -> ForkServerContext:
    """Makes processes that have loaded what trains: once for all, which takes seconds."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    return context


@pytest.fixture
def trainer(tmp_path: Path, processes: ForkServerContext) -> Iterator[tuple[ForkServerProcess, Connection]]:
    """Another process that trains with seed 1 in ``run``, and waits for a word before its first step."""
    here, there = processes.Pipe()
    words = [*QUICK, f"run.folder={tmp_path / 'run'}", "seed=1"]
    process = processes.Process(target=hold, args=(words, there))
    process.start()
    there.close()
    assert here.recv() == "training"
    yield process, here
    process.kill()
    process.join()


@pytest.mark.parametrize("again", ["run.overwrite=true", "run.resume=true", "run.requeued=true"])
def test_a_second_training_in_a_run_directory_is_refused(
    trainer: tuple[ForkServerProcess, Connection], tmp_path: Path, again: str
) -> None:
    process, line = trainer
    with pytest.raises(OutputError, match=f"another process is training in .*process {process.pid} on"):
        train(settings(tmp_path / "run", "seed=2", again), dataset=tiny_dataset())
    line.send("go on")
    process.join()
    assert process.exitcode == 0
    run = Run(tmp_path / "run")
    assert (run.settings["seed"], run.predictor.checkpoint.origin["seed"]) == (1, 1)
    assert list((tmp_path / "run").glob(".*")) == []


def test_the_directory_of_a_killed_training_is_taken_over(
    trainer: tuple[ForkServerProcess, Connection], tmp_path: Path
) -> None:
    process, _ = trainer
    process.kill()
    process.join()
    said: list[str] = []
    run = train(
        settings(tmp_path / "run", "seed=2", "run.requeued=true"), dataset=tiny_dataset(), log=said.append
    )
    assert f"process {process.pid} on" in said[0]
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


def test_a_run_killed_while_it_wrote_its_mark_is_begun_anew(tmp_path: Path) -> None:
    # Killed at the first write, it left the temporary file of settings.json alone, of another machine here.
    left = tmp_path / "run" / ".settings.json.0123abcd-1-89abcdef.part"
    left.parent.mkdir()
    left.write_text('{"finger')
    done = train(settings(tmp_path / "run"), dataset=tiny_dataset())
    assert done.comparisons
    assert not left.exists()
