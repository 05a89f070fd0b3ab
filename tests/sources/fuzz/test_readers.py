"""A fuzz run over every reader: whatever befalls a file, it is read with every row accounted for, or refused.

Never anything but a `WildtypeError` in one line that names the file, never a warning, never a row lost
without a reason. `make test-faults` damages six times as many files as `make test-slow`, and more on demand:

    WILDTYPE_FUZZ_EXAMPLES=6000 pytest -m slow tests/sources/fuzz
"""

from __future__ import annotations

import faulthandler
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.sources.fuzz.harness import Case, Kit, find_cases, outcome
from tests.sources.fuzz.kits import build_heads
from tests.sources.fuzz.mutations import (
    IN_A_LINE,
    SEPARATORS,
    Damage,
    Step,
    damages,
    packed_like,
    separator,
    steps,
    unpacked,
)
from tests.sources.fuzz.readers import OTHER_READERS, Shelf, hold_to_small_sizes, published
from wildtype.errors import MissingFileError
from wildtype.sources.yeast.genes.sgd import read_genes
from wildtype.sources.yeast.readers import READERS

PUBLISHED = list(published())
ALL = [*PUBLISHED, *OTHER_READERS]
FEW, MANY = 8, int(os.environ.get("WILDTYPE_FUZZ_EXAMPLES", "100"))
HANG = 400 * max(MANY / 600, 1)
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
    by_name = {repr(case): case for case in cases}

    @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.sampled_from(sorted(by_name)), damages())
    def check(name: str, damage: Damage) -> None:
        case = by_name[name]
        outcome(case, damage.on(case.path.read_bytes()))

    check()


def test_no_reader_is_left_unfuzzed(shelf: Shelf) -> None:
    """A reader without a small valid file in kits.py is not fuzzed: write one."""
    assert [name for name in ALL if not shelf.cases(name)] == []
    assert {f"measured mutants: {name}" for name in READERS} <= set(PUBLISHED)
    for name, (_, kits) in OTHER_READERS.items():
        assert {case.kit.name for case in shelf.cases(name)} == set(kits)


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
def test_a_damaged_file_is_read_or_refused(shelf: Shelf, name: str) -> None:
    fuzz(shelf.cases(name), FEW)


OTHER_LINES = {
    "genes: accessions", "genes: coordinates (GFF)", "features: sequences", "features: proteins",
    "features: go_annotations",
}  # fmt: skip
"""Readers of files in which not every line is a row."""
ENTRIES = {
    "gene graphs: regulatory", "gene graphs: regulatory_gold_standard", "gene graphs: regulatory_motifs",
    "features: go_process",
}  # fmt: skip
"""Readers of matrices whose rows are the entries that are not zero: a line may have none."""
TABLES = [name for name in PUBLISHED if name not in OTHER_LINES and not name.startswith("metabolism")]


def tables(shelf: Shelf, name: str) -> dict[str, Case]:
    """Return the files of a reader that are delimited text."""
    starts = (b"PK", b"\xd0\xcf", b"MATLAB", b"\xff\xfe")
    found = [case for case in shelf.cases(name) if not unpacked(case.path.read_bytes()).startswith(starts)]
    return {repr(case): case for case in found if "UP000002311" not in case.file}


def is_number(cell: bytes) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("name", TABLES)
def test_no_row_is_lost_in_silence(shelf: Shelf, name: str) -> None:
    """One cell below the header changes, or two lines change places: as many rows are accounted for."""
    by_name = tables(shelf, name)
    junk = [cell for cell in IN_A_LINE if not any(mark in cell for mark in SEPARATORS)]
    if name in ENTRIES:  # a number there makes an entry or takes one away
        junk = [cell for cell in junk if not is_number(cell)]

    @settings(max_examples=FEW, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.sampled_from(sorted(by_name)), steps(["cell", "case", "swap lines"], junk))
    def check(key: str, step: Step) -> None:
        case = by_name[key]
        before = case.path.read_bytes()
        header, mark, rest = unpacked(before).rstrip(b"\r\n").partition(b"\n")
        rest = b"\n".join(line for line in rest.split(b"\n") if line.strip())
        whole = outcome(case, packed_like(before, header + mark + rest))
        found = outcome(case, packed_like(before, header + mark + step.on(rest)))
        assert found.message or found.rows == whole.rows

    check()


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in TABLES if name not in ENTRIES])
def test_a_row_that_stands_twice_is_counted_twice(shelf: Shelf, name: str) -> None:
    by_name = {key: case for key, case in tables(shelf, name).items() if case.file in case.reported}

    @settings(max_examples=FEW, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.sampled_from(sorted(by_name)), st.integers(0, 1000))
    def check(key: str, at: int) -> None:
        case = by_name[key]
        before = case.path.read_bytes()
        header, mark, rest = unpacked(before).rstrip(b"\n").partition(b"\n")
        lines = rest.split(b"\n")
        whole = [line for line in lines if line.strip()]
        again = whole[at % len(whole)]
        found = outcome(case, packed_like(before, header + mark + b"\n".join([*lines, again])))
        assert found.message or found.rows > case.rows

    check()


HIDDEN = ("\x1b[31m", "\u200b")
"""A mark that colours a terminal, and one that nobody sees: alone in a cell, and inside a name."""


@pytest.mark.slow
@pytest.mark.parametrize("name", PUBLISHED)
def test_hidden_characters_are_refused_with_their_file(shelf: Shelf, name: str) -> None:
    """Every cell of the first lines in turn: what becomes a name is refused where it stands."""
    for case in tables(shelf, name).values():
        before = case.path.read_bytes()
        lines = unpacked(before).split(b"\n")
        for at, line in enumerate(lines[:8]):
            mark = separator(line)
            cells = line.split(mark)
            for i, cell in enumerate(cells[:16]):
                for junk in (HIDDEN[0].encode(), cell[:1] + HIDDEN[1].encode() + cell[1:]):
                    changed = mark.join([*cells[:i], junk, *cells[i + 1 :]])
                    outcome(case, packed_like(before, b"\n".join([*lines[:at], changed, *lines[at + 1 :]])))


TORN = ("measured mutants: celaj2020",)
"""The first lines of one file name strains that the first lines of the other do not describe."""


@pytest.fixture(scope="module")
def heads(mirror: Path, tmp_path_factory: pytest.TempPathFactory) -> Kit:
    """The first lines of the real files, and the real genes."""
    folder = tmp_path_factory.mktemp("heads")
    build_heads(mirror, folder)
    return Kit("heads", folder, read_genes(mirror)[0])


@pytest.mark.slow
@pytest.mark.real
@pytest.mark.parametrize("name", [name for name in PUBLISHED if name not in TORN])
def test_the_real_files_first_lines_too(heads: Kit, name: str) -> None:
    """The first lines of the real files, where they make a whole: damaged, they are read or refused."""
    read = published()[name]
    try:
        read(heads.folder, heads.given, lambda reading: None)
    except MissingFileError as error:
        pytest.skip(str(error))
    fuzz(find_cases(name, read, [heads]), FEW)


@pytest.mark.slow
@pytest.mark.usefixtures("watched")
@pytest.mark.parametrize("name", ALL)
def test_a_damaged_file_is_read_or_refused_at_length(shelf: Shelf, name: str) -> None:
    fuzz(shelf.cases(name), MANY)
