"""Training that is killed, starved or told to stop: nothing recorded as done is lost, and nothing that is
half-written is taken for whole.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.faults.commands import QUICK, Running, finished, result, small_files, train, wildtype
from wildtype.seeds import generator

KILLS = int(os.environ.get("WILDTYPE_KILLS", "3"))
"""Runs that are killed; 30 by `make test-faults`."""
pytestmark = pytest.mark.slow
at_length = partial(pytest.param, marks=pytest.mark.faults)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def _one_cache(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WILDTYPE_CACHE", str(cache))


@pytest.fixture(scope="module")
def whole(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], float]:
    """What a run finds that nothing happens to, and how long it takes."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    os.environ["WILDTYPE_CACHE"] = str(cache)
    assert train(folder, "training.epochs=1").code == 0  # builds the dataset
    begun = time.perf_counter()
    done = train(folder, "run.overwrite=true")
    assert done.code == 0, done.err
    return result(folder), time.perf_counter() - begun


def again(folder: Path) -> tuple[str, ...]:
    """Return what a person says after a crash: go on where there is something to go on from."""
    if (folder / "resume" / "state.json").exists():
        return ("run.resume=true",)
    return ("run.overwrite=true",) if folder.exists() else ()


@pytest.mark.parametrize("number", range(KILLS))
def test_a_killed_run_ends_with_the_same_bits(
    number: int, whole: tuple[dict[str, Any], float], tmp_path: Path, tell: Callable[[str], None]
) -> None:
    expected, seconds = whole
    draw, folder, killed = generator(number, "instants of death"), tmp_path / "run", 0
    for share in draw.uniform(0.3, 1.0, 2):
        running = Running("train", *QUICK, f"run.folder={folder}", *again(folder))
        if running.ended(within=share * seconds) is None:
            done = running.signalled(signal.SIGKILL)
            assert done.code in (0, -signal.SIGKILL)  # it may have ended in between
            killed += done.code != 0
            if folder.exists() and not finished(folder):
                said = wildtype("evaluate", str(folder))
                assert said.code == 1
                assert said.sentence, said.err
    if not finished(folder):
        done = train(folder, *again(folder))
        assert done.code == 0, done.err
    assert result(folder) == expected
    assert not [path for path in folder.rglob("*.part")]
    assert killed or number
    tell(f"training {number}: {killed} kills, the same bits")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, at_length(signal.SIGHUP)])
def test_a_signal_ends_training_and_resume_finishes_it(
    number: int, whole: tuple[dict[str, Any], float], tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    heard = partial(signal.signal, number, signal.SIG_DFL)  # tests that nohup runs ignore SIGHUP
    running = Running("train", *QUICK, f"run.folder={folder}", before=heard)
    while running.ended(within=0.05) is None and not (folder / "resume" / "state.json").exists():
        continue
    done = running.signalled(number)
    if number == signal.SIGHUP:
        assert done.code == -signal.SIGHUP
    elif not finished(folder):
        assert done.code == {signal.SIGTERM: 143, signal.SIGINT: 130}[number]  # type: ignore[index]
        assert done.sentence.startswith("wildtype: stopped")
        assert "Traceback" not in done.err
    done = train(folder, *again(folder))
    assert done.code == 0, done.err
    assert result(folder) == whole[0]


@pytest.mark.parametrize("size", [at_length(1 << 10), 1 << 13, at_length(1 << 16)])
def test_a_full_disk_is_one_sentence_and_nothing_half_written(
    size: int, whole: tuple[dict[str, Any], float], tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    done = train(folder, before=small_files(size))
    assert done.code == 1
    assert done.sentence, done.err
    assert "Traceback" not in done.err
    assert not finished(folder)
    assert not list(tmp_path.rglob("*.part"))
    done = train(folder, *again(folder))
    assert done.code == 0, done.err
    assert result(folder) == whole[0]


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[Path]:
    """A folder that nobody may write in, root neither."""
    folder = tmp_path / "mounted"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "none", str(folder)], capture_output=True)
    if mounted.returncode:
        pytest.skip("nothing may be mounted here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_folder_that_may_not_be_written(read_only: Path) -> None:
    done = train(read_only / "run")
    assert done.code == 1
    assert str(read_only / "run") in done.sentence, done.err
    assert "read-only" in done.sentence
    assert "Traceback" not in done.err
    assert not list(read_only.iterdir())


def test_a_clock_that_is_set_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.experiments.test_models import run

    now = iter(np.arange(1e9, 0, -3600.0))
    monkeypatch.setattr(time, "time", lambda: float(next(now)))
    done = run("cell_transformer", tmp_path / "run")
    assert all(
        score.seconds is not None and score.seconds >= 0 for score in done.comparisons["epsilon"].scores
    )
