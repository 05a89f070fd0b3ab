"""Every reader there is, under one signature: those that the survey lists, and those of other files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.sources.fuzz.harness import Case, Kit, Read, find_cases
from tests.sources.fuzz.kits import KITS, OTHERS
from tests.sources.fuzz.mutations import LIMIT
from wildtype.datasets.pinned import read_pinned
from wildtype.datasets.storage import read_dataset
from wildtype.organism import metabolism
from wildtype.organism.storage import read_organism
from wildtype.sources import archive, columns, sheets, text
from wildtype.sources.text import Collector
from wildtype.sources.user_tables.table import read_table
from wildtype.sources.yeast.genes import sgd
from wildtype.sources.yeast.readers import all_readers
from wildtype.sources.yeast.screens import mat5
from wildtype.unpacking import UnpackingLimits


def published() -> dict[str, Read]:
    """Return the readers of publishers' files by name, numbered where a name stands for several."""
    found: dict[str, Read] = {
        "genes: genes": lambda folder, genes, collect: collect(sgd.read_genes(folder)[1])
    }
    for group, name, read in all_readers():
        key = f"{group}: {name}"
        number = sum(known.partition(" #")[0] == key for known in found)
        found[f"{key} #{number + 1}" if number else key] = read
    return found


def _own(folder: Path, given: Any, collect: Collector) -> None:
    path, organism = given
    read_table(path, organism, name="mine", collect=collect)


def _archive(folder: Path, name: str, collect: Collector) -> None:
    limits = UnpackingLimits(small=LIMIT, total=2 * LIMIT)
    archive.list_members(folder / name, limits=limits)
    archive.read_member(folder / name, "three.txt", limits=limits)
    target = folder.parent / f"{folder.name}.unpacked"
    for path in archive.extract(folder / name, target, limits=limits):
        assert path.resolve().is_relative_to(target.resolve())
        path.unlink()
    for inner in sorted(target.rglob("*"), reverse=True):
        inner.rmdir()


def _sheet(folder: Path, given: Any, collect: Collector) -> None:
    rows = sheets.read_sheet(given[0], header=("gene", "value"))
    rows.numbers(1, missing=("",))


def _pinned(folder: Path, given: Any, collect: Collector) -> None:
    path, dataset = given
    reused = read_pinned(path, dataset)
    split = reused.split
    listed = sum(len(getattr(split, part)) for part in ("train", "validation", "test"))
    assert listed + sum(split.dropped.values()) == split.total == len(dataset)


OTHER_READERS: dict[str, tuple[Read, tuple[str, ...]]] = {
    "own table": (_own, ("own CSV", "own TSV, packed", "own Parquet", "own workbook", "own old workbook")),
    "archive": (_archive, ("zip", "tar", "tgz")),
    "sheet": (_sheet, ("workbook", "old workbook")),
    "pinned split": (_pinned, ("pinned split", "pinned split as Parquet")),
    "dataset": (lambda folder, given, collect: read_dataset(folder, given.organism), ("dataset",)),
    "organism": (lambda folder, given, collect: read_organism(folder), ("organism",)),
}
"""Readers of other files, and the kits that each must read."""


class Shelf:
    """Kits and cases, each built once, when first asked for."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self._kits: dict[str, Kit] = {}
        self._cases: dict[str, list[Case]] = {}

    def kit(self, name: str) -> Kit:
        """Return a kit."""
        if name not in self._kits:
            folder = self.base / f"kit{len(self._kits)}"
            folder.mkdir()
            self._kits[name] = Kit(name, folder, (KITS | OTHERS)[name](folder))
        return self._kits[name]

    def cases(self, reader: str) -> list[Case]:
        """Return every file that a reader reads."""
        if reader not in self._cases:
            read, names = OTHER_READERS.get(reader) or (published()[reader], tuple(KITS))
            self._cases[reader] = find_cases(reader, read, [self.kit(name) for name in names])
        return self._cases[reader]


def hold_to_small_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no reader unpack more than a megabyte, so that a small bomb is one."""
    for function in (
        text.read_bytes,
        text.read_text,
        text.read_rows,
        columns.read_columns,
        sheets.read_sheet,
    ):
        assert function.__kwdefaults__ is not None
        monkeypatch.setitem(function.__kwdefaults__, "limit", LIMIT)
    monkeypatch.setattr(mat5, "LIMIT", LIMIT)
    monkeypatch.setattr(metabolism, "LARGEST_MODEL", LIMIT)
