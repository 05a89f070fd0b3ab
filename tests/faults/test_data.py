"""Own data whose import is killed, starved or doubled: the dataset is whole, or it is not there."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path

import pandas as pd
import pytest

from tests.faults.commands import Done, Running, small_files, wildtype
from wildtype.seeds import generator
from wildtype.sources.catalogue import load_organism

pytestmark = pytest.mark.slow
KILLS = 4
ROWS = 4_000


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def _one_cache(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WILDTYPE_CACHE", str(cache))


@pytest.fixture(scope="module")
def table(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    draw = generator(0, "own data")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WILDTYPE_CACHE", str(cache))
        genes = load_organism("ecoli-core").genes.names
    pairs = [sorted(draw.choice(len(genes), 2, replace=False)) for _ in range(ROWS)]
    frame = pd.DataFrame({"genes": [f"{genes[a]};{genes[b]}" for a, b in pairs]})
    frame["value"] = draw.normal(size=ROWS)
    path = tmp_path_factory.mktemp("table") / "mine.csv"
    frame.drop_duplicates("genes").to_csv(path, index=False)
    return path


def words(table: Path, name: str) -> tuple[str, ...]:
    return (
        "data",
        "import",
        str(table),
        "--organism",
        "ecoli-core",
        "--name",
        name,
        "--phenotype",
        "epsilon",
        "--yes",
    )


def card(name: str) -> Done:
    return wildtype("data", "show", name, "--json")


def rows(done: Done) -> int:
    assert done.code == 0, done.err
    found: int = json.loads(done.out)["rows"]
    return found


def test_a_killed_import_is_whole_or_not_there(table: Path) -> None:
    begun = time.perf_counter()
    done = wildtype(*words(table, "whole"))
    assert done.code == 0, done.err
    seconds = time.perf_counter() - begun
    expected, killed = rows(card("whole")), 0
    for number, share in enumerate(generator(1, "instants").uniform(0.3, 1.0, KILLS)):
        name = f"killed{number}"
        running = Running(*words(table, name))
        if running.ended(within=share * seconds) is None:
            killed += running.signalled(signal.SIGKILL).code == -signal.SIGKILL  # else it was just done
            shown = card(name)
            if shown.code:
                assert name in shown.sentence
                again = wildtype(*words(table, name))
                assert again.code == 0, again.err
        assert rows(card(name)) == expected
    assert killed


@pytest.mark.parametrize("size", [1 << 10, 20 << 10])
def test_a_disk_that_is_full(table: Path, size: int) -> None:
    name = f"full{size}"
    done = wildtype(*words(table, name), before=small_files(size))
    assert done.code == 1
    assert done.sentence, done.err
    assert "Traceback" not in done.err
    assert card(name).code == 1
    assert wildtype(*words(table, name)).code == 0


def test_two_at_once(table: Path) -> None:
    ended = [running.ended() for running in [Running(*words(table, "twice")) for _ in range(2)]]
    codes = sorted(done.code for done in ended if done is not None)
    assert codes in ([0, 0], [0, 1])
    assert all(done is not None and (done.code == 0 or done.sentence) for done in ended)
    frame = pd.read_csv(table)
    assert rows(card("twice")) == len(frame)
