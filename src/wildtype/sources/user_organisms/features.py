"""Vectors by gene name as feature blocks; the formats are those of `wildtype.organism.embeddings`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from wildtype.organism import GeneIndex
from wildtype.organism.embeddings import Embeddings, read_embeddings, read_names
from wildtype.sources.text import AMBIGUOUS, UNKNOWN
from wildtype.sources.user_organisms.description import FeaturesPart
from wildtype.sources.user_organisms.problems import Problems
from wildtype.sources.user_organisms.reading import SHOWN, FileCard, Read, locate

REPEATED = "further row of a gene"


def read(part: FeaturesPart, folder: Path, names: GeneIndex, problems: Problems) -> Read:
    """Return the feature block of a file, over the genes ``names``."""
    with problems.of(part.path):
        path = locate(part.path, folder, problems)
        if path is None:
            return Read()
        found = read_embeddings(path, names, name=part.name, columns=part.columns)
        block = replace(
            found.block,
            source=part.source or found.block.source,
            note=part.note or found.block.note,
            measured=tuple(part.measured),
            comparable=part.comparable,
        )
        return Read((_card(part, found),), features=(block,))
    return Read()


def names_in(part: FeaturesPart, folder: Path, problems: Problems) -> list[str]:
    """Return the names of a file, ascending, each once."""
    with problems.of(part.path):
        path = locate(part.path, folder, problems)
        if path is not None:
            return sorted(set(read_names(path, part.columns)))
    return []


def _card(part: FeaturesPart, found: Embeddings) -> FileCard:
    lost = {UNKNOWN: found.unknown, AMBIGUOUS: found.ambiguous, REPEATED: found.repeated}
    dropped = {reason: len(names) for reason, names in lost.items() if names}
    return FileCard(
        part.path,
        f"features {part.name}",
        found.rows,
        found.rows - sum(dropped.values()),
        dropped,
        f"{len(found.block.columns):,} columns; {found.without:,} genes without values",
        {reason: names[:SHOWN] for reason, names in lost.items() if names},
    )
