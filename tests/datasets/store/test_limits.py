"""What a query may use: it ends when it is interrupted, and at its limits, and leaves nothing behind."""

from __future__ import annotations

import inspect
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.datasets.store.examples import drawn
from wildtype.cli.data.query import query as command
from wildtype.datasets.store import Store
from wildtype.datasets.store.connection import plainly
from wildtype.datasets.store.limits import Limits, scratch_of
from wildtype.errors import DatasetError

# Each runs for minutes to hours: one before it gives its first batch, the other between batches.
ENDLESS = [
    "SELECT count(*) FROM range(10000000) a, range(10000000) b WHERE hash(a.range * b.range) % 7 = 3",
    "SELECT a.range FROM range(10000000) a, range(10000000) b WHERE hash(a.range * b.range) % 1000000007 = 3",
    "SELECT a.range FROM range(10000000) a, range(10000000) b",
]
LARGE = "SELECT length(string_agg(md5(range::VARCHAR))) FROM range(5000000)"


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("limits") / "store.duckdb"
    with Store.create(path) as store:
        store.ingest(drawn(30))
    return path


@pytest.mark.parametrize("sql", ENDLESS)
def test_an_interrupt_ends_a_query(path: Path, sql: str) -> None:
    """A query that ignored it would not end at all."""
    with Store.open(path, read_only=True) as store:
        timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt), store.query(sql) as batches:
            for _ in batches:
                pass
        timer.join()
        assert len(store.select()) == 30  # the connection goes on
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_what_duckdb_makes_of_an_interrupt_is_an_interrupt(path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), plainly(path):
        raise RuntimeError("Query interrupted")


@pytest.mark.parametrize("sql", ENDLESS)
def test_a_query_ends_at_its_time(path: Path, sql: str) -> None:
    with (
        Store.open(path, read_only=True, limits=Limits(seconds=0.2)) as store,
        pytest.raises(DatasetError, match=r"stopped after 0.2 seconds: .*--seconds"),
        store.query(sql) as batches,
    ):
        for _ in batches:
            pass


def test_ids_are_selected_within_the_same_time(path: Path) -> None:
    with (
        Store.open(path, read_only=True, limits=Limits(seconds=0.2)) as store,
        pytest.raises(DatasetError, match="stopped after"),
    ):
        store.select(ENDLESS[1].replace("a.range FROM", "a.range AS id FROM"))


def test_a_query_keeps_to_its_memory_and_scratch_space(path: Path) -> None:
    sql = "SELECT current_setting('memory_limit'), current_setting('max_temp_directory_size')"
    with Store.open(path, read_only=True, limits=Limits(memory_mib=64, scratch_mib=20)) as store:
        with store.query(sql) as batches:
            assert [column[0].as_py() for column in batches.read_all().columns] == ["64.0 MiB", "20.0 MiB"]
        with (
            pytest.raises(DatasetError, match=r"more memory or scratch space.*--memory, --scratch"),
            store.query(LARGE) as batches,
        ):
            batches.read_all()
    assert [file.name for file in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("wrong", [{"memory_mib": 0}, {"seconds": float("nan")}, {"scratch_mib": -1}])
def test_a_limit_is_a_number_above_0(wrong: dict[str, float]) -> None:
    with pytest.raises(DatasetError, match=next(iter(wrong))):
        Limits(**wrong)  # type: ignore[arg-type]


def test_the_command_has_the_same_limits() -> None:
    options = inspect.signature(command).parameters
    assert Limits() == Limits(*(options[name].default for name in ("memory", "scratch", "seconds")))


READER = """
import sys
from wildtype.datasets.store import Store
with Store.open(sys.argv[1], read_only=True) as store, store.query("SELECT 1") as batches:
    print("reading", flush=True)
    sys.stdin.readline()
"""


def test_readers_do_not_lock_out_readers_and_a_killed_one_leaves_no_scratch(path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", READER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "reading\n"
    with Store.open(path, read_only=True) as store:
        assert len(store.select()) == 30
        # Two folders: DuckDB's scratch files have the same names in every process.
        assert len(list(path.parent.glob(".*.scratch"))) == 2
    with pytest.raises(DatasetError, match=r"in use by another process \(PID \d+\)"):
        Store.open(path)
    process.kill()
    process.communicate()
    assert len(list(path.parent.glob(".*.scratch"))) == 1
    Store.open(path).close()
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_scratch_is_private_and_elsewhere_where_nothing_can_be_written(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with scratch_of(path) as folder:
        assert (folder.parent, folder.stat().st_mode & 0o777) == (path.parent, 0o700)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with scratch_of(path.parent / "not there" / "store.duckdb") as folder:
        assert folder.parent == tmp_path
    assert not list(tmp_path.iterdir())
