"""From a description and its folder to an organism and its card: each part by the reader of its format."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Protocol

from wildtype.organism import GeneIndex
from wildtype.sources.user_organisms.description import AnyPart
from wildtype.sources.user_organisms.problems import Problems
from wildtype.sources.user_organisms.reading import Read

READERS = {
    "edges": "edges",
    "string": "string",
    "biogrid": "biogrid",
    "gmt": "gene_sets",
    "complexes": "gene_sets",
    "table": "gene_sets",
    "gaf": "annotations",
    "features": "features",
    "sequences": "sequences",
    "metabolism": "metabolism",
}
"""The module of the reader of every format, and of every key whose files have one format."""


class Reader(Protocol):
    """A module that reads the parts of one format."""

    def read(self, part: AnyPart, folder: Path, names: GeneIndex, problems: Problems) -> Read:
        """Return what a part gives the organism of the genes ``names``."""
        ...

    def names_in(self, part: AnyPart, folder: Path, problems: Problems) -> list[str]:
        """Return the names of genes in the file of a part, in their order, each once."""
        ...


def reader_of(key: str, part: AnyPart) -> Reader:
    """Return the reader of a part that stands under ``key``."""
    name = READERS[getattr(part, "format", key)]
    reader: Reader = import_module(f"wildtype.sources.user_organisms.{name}")
    return reader
