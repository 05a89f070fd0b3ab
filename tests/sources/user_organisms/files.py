"""Files of organisms, written by hand, and what all readers promise."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from wildtype.organism import GeneIndex
from wildtype.sources.user_organisms.build import reader_of
from wildtype.sources.user_organisms.description import AnyPart
from wildtype.sources.user_organisms.problems import Problems
from wildtype.sources.user_organisms.reading import Read


def write(folder: Path, name: str, text: str) -> str:
    """Write a file, packed if its name ends so; return its name."""
    data = text.encode()
    (folder / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return name


def read(key: str, part: AnyPart, folder: Path, genes: GeneIndex) -> Read:
    """Read a part that has no problem; rows add up, and names that are found are names of the part."""
    problems = Problems()
    found = reader_of(key, part).read(part, folder, genes, problems)
    assert problems.lines() == []
    for card in found.cards:
        assert card.rows == card.used + sum(card.dropped.values())
        assert all(count > 0 for count in card.dropped.values())
    assert all(relation.n == len(genes) for relation in found.relations)
    assert all(len(block.values) == len(genes) for block in found.features)
    return found


def names_of(key: str, part: AnyPart, folder: Path) -> list[str]:
    problems = Problems()
    names = list(reader_of(key, part).names_in(part, folder, problems))
    assert problems.lines() == []
    assert names == sorted(set(names))
    return names


def refused(key: str, part: AnyPart, folder: Path, genes: GeneIndex) -> str:
    """Return the one sentence with which a part is refused."""
    problems = Problems()
    reader_of(key, part).read(part, folder, genes, problems)
    (line,) = problems.lines()
    return line


def data_folder(of: str) -> Path:
    """Return the folder of real files of an organism."""
    above = os.environ.get("WILDTYPE_DATA") or Path(__file__).parents[4] / "shared/data"
    folder = Path(above) / of
    if not folder.is_dir():
        pytest.skip(f"no files at {folder}: set WILDTYPE_DATA to the folder that holds {of}")
    return folder
