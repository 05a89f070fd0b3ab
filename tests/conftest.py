"""Fixtures shared by all tests."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from _pytest.terminal import TerminalReporter
from hypothesis import settings

from wildtype import plugins

# Before numba is imported: tests have caches that begin empty, and would compile anew in every process.
os.environ.setdefault("NUMBA_CACHE_DIR", str(Path.home() / ".cache" / "wildtype" / "compiled"))
# Shared machines pause, and speed is no property. The same examples are tried every time: new ones are for
# whoever asks for them by number.
settings.register_profile("wildtype", deadline=None, derandomize="WILDTYPE_FUZZ_EXAMPLES" not in os.environ)
settings.load_profile("wildtype")


# Shells start jobs in the background with interrupts ignored, which programs that tests start would inherit.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Imports and rewritten assertions make millions of objects that stay: a quarter of the time of collecting
# tests went into looking for garbage among them.
gc.disable()


def pytest_collection_finish(session: pytest.Session) -> None:
    """Let the garbage collector pass over what was imported: in a worker it looks at little else.

    Tests that ask what takes the time run without workers, with the collector as it is.
    """
    gc.enable()
    if hasattr(session.config, "workerinput"):
        gc.collect()
        gc.freeze()


COUNTED = "counted"


@pytest.fixture
def tell(record_property: Callable[[str, object], None]) -> Callable[[str], None]:
    """Keep a line about what a test has done: it is printed when all have ended, whichever process ran it."""
    return lambda line: record_property(COUNTED, line)


def pytest_terminal_summary(terminalreporter: TerminalReporter) -> None:
    reports = (report for some in terminalreporter.stats.values() for report in some)
    lines = {
        (report.nodeid, str(value))
        for report in reports
        for name, value in getattr(report, "user_properties", ())
        if name == COUNTED
    }
    if lines:
        terminalreporter.section(COUNTED)
        for _, line in sorted(lines):
            terminalreporter.write_line(line)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep tests away from the user's cache; one cache serves the whole session."""
    base = tmp_path_factory.getbasetemp() / "cache"
    monkeypatch.setenv("WILDTYPE_CACHE", str(base))


@pytest.fixture(scope="session", autouse=True)
def _no_waiting_for_the_disk() -> Iterator[None]:
    """Leave out what only a power cut could show: a run waits some fifty times for the disk."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda handle: None)
        yield


@pytest.fixture(scope="module")
def few_trees() -> Iterator[None]:
    """One bag of 15 boosted trees at most: for files that ask what trees see, not how well they fit."""
    from wildtype.models import boosted_trees
    from wildtype.models.baselines import boosting

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(boosting, "BAGS", 1)
        for name in ("MAX_ITERATIONS", "DEFAULT_ITERATIONS"):
            patch.setattr(boosted_trees, name, 15)
        yield


@pytest.fixture(autouse=True)
def _own_plugins() -> Iterator[None]:
    """Forget the plug-ins that a test loads."""
    before = set(plugins._loaded)
    yield
    for module in set(plugins._loaded) - before:
        plugins._forget(module)


def _real_data() -> Path:
    return Path(os.environ.get("WILDTYPE_DATA") or Path(__file__).parents[2] / "shared/data")


@pytest.fixture(scope="session")
def mirror() -> Path:
    """Folder of publishers' files for yeast."""
    folder = Path(os.environ.get("WILDTYPE_MIRROR") or _real_data() / "yeast")
    if not folder.is_dir():
        pytest.skip(
            f"no publishers' files at {folder}: set WILDTYPE_MIRROR to a folder that holds them, or "
            "WILDTYPE_DATA to one that holds the folder yeast"
        )
    return folder


@pytest.fixture(scope="session")
def laboratories() -> Path:
    """Folder of the folders human, fly and pneumococcus, with tables as laboratories have them."""
    folder = _real_data()
    if not (folder / "human").is_dir():
        pytest.skip(f"no tables of other organisms at {folder}: set WILDTYPE_DATA to a folder of folders")
    return folder


@pytest.fixture(scope="session")
def tiny_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a finished run on the tiny dataset, with two baselines."""
    from tests.tiny import tiny_dataset
    from wildtype.experiments.run import train
    from wildtype.experiments.settings.compose import compose

    folder = tmp_path_factory.mktemp("runs") / "tiny"
    words = ["model.width=16", "model.heads=4", "model.layers=1", "model.head.heads=2", "training.epochs=3",
             "training.batch_size=64", "baselines=[mean,additive_ridge]", f"run.folder={folder}",
             "run.progress=false", "run.replicates=50", "data.name=tiny-growth"]  # fmt: skip
    train(compose(words), dataset=tiny_dataset())
    return folder
