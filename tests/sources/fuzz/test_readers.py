"""A fuzz run over every reader: whatever befalls a file, it is read with every row accounted for, or refused.

Never anything but a `WildtypeError` in one line that names the file, never a warning, never a row lost
without a reason.
"""

from __future__ import annotations

import faulthandler
import gzip
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.sources.fuzz.harness import Case, find_cases, outcome
from tests.sources.fuzz.mutations import IN_A_LINE, Damage, damages, packed_like, steps, unpacked
from tests.sources.fuzz.readers import OTHER_READERS, Shelf, hold_to_small_sizes, published
from wildtype.organism import GeneIndex
from wildtype.sources.yeast.measured import READERS

PUBLISHED = list(published())
ALL = [*PUBLISHED, *OTHER_READERS]
FEW, MANY = 12, 300
HANG = 400
"""Seconds after which a test of the long run is taken to hang; a shared machine may be slow."""


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Shelf:
    """All kits, built when they are asked for."""
    return Shelf(tmp_path_factory.mktemp("fuzz"))


@pytest.fixture(autouse=True)
def _small_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    hold_to_small_sizes(monkeypatch)


@pytest.fixture
def watched() -> Iterator[None]:
    """End the run with the stacks of all threads if a reader hangs."""
    faulthandler.dump_traceback_later(HANG, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


def fuzz(cases: list[Case], examples: int) -> None:
    @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.sampled_from(cases), damages())
    def check(case: Case, damage: Damage) -> None:
        outcome(case, damage.on(case.path.read_bytes()))

    check()


def test_no_reader_is_left_unfuzzed(shelf: Shelf) -> None:
    """A reader without a small valid file in kits.py is not fuzzed: write one."""
    assert [name for name in ALL if not shelf.cases(name)] == []
    assert {f"measured mutants: {name}" for name in READERS} <= set(PUBLISHED)
    for name, (_, kits) in OTHER_READERS.items():
        assert {case.kit.name for case in shelf.cases(name)} == set(kits)


@pytest.mark.parametrize("name", ALL)
def test_a_damaged_file_is_read_or_refused(shelf: Shelf, name: str) -> None:
    fuzz(shelf.cases(name), FEW)


@pytest.mark.slow
@pytest.mark.usefixtures("watched")
@pytest.mark.parametrize("name", ALL)
def test_a_damaged_file_is_read_or_refused_at_length(shelf: Shelf, name: str) -> None:
    fuzz(shelf.cases(name), MANY)
