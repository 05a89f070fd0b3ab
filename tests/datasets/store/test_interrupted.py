"""SIGKILL at random instants of an ingestion: the store is as before or complete, never between."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.datasets.store.examples import READINGS, drawn
from wildtype.datasets.store import Store
from wildtype.datasets.store.canonical import by_study, canonical, sha256, sha256_of_studies
from wildtype.seeds import generator

ROOT = Path(__file__).parents[3]
PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
from tests.datasets.store.examples import READINGS, drawn
from wildtype.datasets.store import Store
rows = drawn(int(sys.argv[3]), seed=1, name=sys.argv[4], genes=4000)
print("ready", flush=True)
with Store.open(sys.argv[2]) as store:
    store.ingest(rows, READINGS, replace=True)
"""


@dataclass
class Outcome:
    killed: bool
    complete: bool


def ingest(path: Path, rows: int, study: str, *, kill_after: float | None = None) -> tuple[bool, float]:
    """Ingest in another process, perhaps killed, and return whether it was and how long it took."""
    words = [sys.executable, "-c", PROGRAM, str(ROOT), str(path), str(rows), study]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        begun = time.perf_counter()
        try:
            process.wait(timeout=kill_after)
        except subprocess.TimeoutExpired:
            process.kill()
        code = process.wait()
    assert code in (0, -signal.SIGKILL)
    return code != 0, time.perf_counter() - begun


def interrupt(folder: Path, rows: int, kills: int, *, study: str) -> list[Outcome]:
    """Kill an ingestion over a store of two studies `kills` times and look at the store each time."""
    base, path = folder / "base.duckdb", folder / "store.duckdb"
    with Store.create(base) as store:
        for name in ("first", "second"):
            store.ingest(drawn(500, name=name), READINGS)
        before = {stored.name: stored for stored in store.studies()}
        hash_before = store.content_hash()
        others = store.select(f"SELECT id FROM measurements WHERE study <> '{study}'")
    new = drawn(rows, seed=1, name=study, genes=4000)
    hash_after = sha256_of_studies([*by_study(others), *by_study(canonical(new))])
    shutil.copy(base, path)
    _, seconds = ingest(path, rows, study)
    with Store.open(path) as store:
        assert store.content_hash() == hash_after
    outcomes: list[Outcome] = []
    for at in [0.0, *generator(0, "kill", rows).uniform(0, seconds, kills - 2), seconds]:
        shutil.copy(base, path)
        killed, _ = ingest(path, rows, study, kill_after=at)
        with Store.open(path, read_only=True) as store:
            found, studies = store.content_hash(), {stored.name: stored for stored in store.studies()}
        assert found in (hash_before, hash_after)
        complete = found == hash_after
        if complete:
            assert studies.pop(study).rows == rows
        assert studies == {name: s for name, s in before.items() if not (complete and name == study)}
        with Store.open(path) as store:
            if all(outcome.complete for outcome in outcomes):  # it takes the study as if nothing had been
                store.ingest(new, READINGS, replace=True)
                assert store.content_hash() == hash_after
        outcomes.append(Outcome(killed, complete))
        for file in folder.glob("store.duckdb*"):
            file.unlink()
    return outcomes


@pytest.mark.slow
def test_killed_three_times(tmp_path: Path) -> None:
    outcomes = interrupt(tmp_path, 3000, 3, study="second")
    assert any(outcome.killed and not outcome.complete for outcome in outcomes)


@pytest.mark.slow
@pytest.mark.faults
@pytest.mark.parametrize("study", ["third", "second"], ids=["new", "replaced"])
def test_killed_twenty_times(tmp_path: Path, study: str) -> None:
    outcomes = interrupt(tmp_path, 200_000, 20, study=study)
    assert sum(outcome.killed for outcome in outcomes) >= 5
    assert any(not outcome.complete for outcome in outcomes)


@pytest.mark.slow
def test_a_log_cut_at_any_byte(tmp_path: Path) -> None:
    """A machine that stops while a study is committed leaves part of the log of changes beside the store."""
    path, base = tmp_path / "store.duckdb", tmp_path / "base.duckdb"
    rows = drawn(2000, seed=1, name="second", genes=4000)
    with Store.create(base) as store:
        store.ingest(drawn(500, name="first"), READINGS)
        before = store.content_hash()
    killed = PROGRAM + "    import os, signal\n    os.kill(os.getpid(), signal.SIGKILL)\n"
    words = [sys.executable, "-c", killed, str(ROOT), str(base), "2000", "second"]
    assert subprocess.run(words, stdout=subprocess.PIPE).returncode == -signal.SIGKILL
    log = base.with_name("base.duckdb.wal").read_bytes()
    assert len(log) > 50_000
    after = sha256_of_studies([*by_study(canonical(drawn(500, name="first"))), *by_study(canonical(rows))])
    for end in [0, *generator(0, "cut").integers(1, len(log), 2).tolist(), len(log) - 1, len(log)]:
        shutil.copy(base, path)
        path.with_name("store.duckdb.wal").write_bytes(log[:end])
        with Store.open(path, read_only=True) as store:
            assert store.content_hash() == (after if end == len(log) else before)
        with Store.open(path) as store:
            assert store.content_hash() == (after if end == len(log) else before)
            store.ingest(rows, READINGS, replace=True)
        assert not path.with_name("store.duckdb.wal").exists()
        with Store.open(path) as store:
            assert store.content_hash() == after


def test_an_error_on_the_way_leaves_the_store_as_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every statement of an ingestion fails once; nothing of it stays."""
    from wildtype.datasets.store import ingest

    real = ingest._insert_staged
    with Store.create(tmp_path / "store.duckdb") as store:
        store.ingest(drawn(50), READINGS)
        before, studies = store.content_hash(), store.studies()
        reached = set()
        for fails_at in (
            "publication",
            "environment",
            "compound",
            "phenotype",
            "perturbation",
            "genotype",
            "measurement",
        ):

            def failing(connection: object, table: str, columns: object, at: str = fails_at) -> None:
                if table == at:
                    reached.add(at)
                    raise MemoryError
                real(connection, table, columns)  # type: ignore[arg-type]

            monkeypatch.setattr(ingest, "_insert_staged", failing)
            with pytest.raises(MemoryError):
                store.ingest(drawn(200, seed=9, genes=30), READINGS, replace=True)
            assert (store.content_hash(), store.studies()) == (before, studies)
        assert len(reached) == 7
        monkeypatch.setattr(ingest, "_insert_staged", real)
        rows = drawn(200, seed=9, genes=30)
        store.ingest(rows, READINGS, replace=True)
        assert store.content_hash() == sha256(rows)
