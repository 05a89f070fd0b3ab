"""Sets of genes as people write them: ``SGS1,SRS2``, ``CDC28:reduced``, a column of a table, lines of text.

Commas, semicolons or blanks separate the genes of a set; ``gene:kind`` names the perturbation of a gene.
Every error names its row, and a file is read to its end before anything is predicted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wildtype.errors import GeneSetError, SourceError
from wildtype.mutants import Kind, MutantTable
from wildtype.organism import GeneIndex
from wildtype.organism.genes import SEPARATORS
from wildtype.tables import read_frame

COLUMN = "genes"


def written(table: MutantTable, names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the genes, by ``names``, and the kinds of perturbation of every mutant [m], commas between."""
    kinds = [kind.name.lower() for kind in Kind]
    spans = list(zip(table.offsets[:-1], table.offsets[1:], strict=True))
    return (
        [",".join(names[g] for g in table.gene[a:b]) for a, b in spans],
        [",".join(kinds[k] for k in table.kind[a:b]) for a, b in spans],
    )


def parse_set(text: str) -> list[str]:
    """Split one written set into its genes; an empty text gives an empty list."""
    return [part for part in SEPARATORS.split(text.strip()) if part]


def names_of(genes: Any) -> list[str]:
    """Return the genes of a table's cell: a text or a list; a missing cell gives an empty list."""
    if isinstance(genes, list | tuple | np.ndarray):
        return [str(gene) for gene in genes]
    return [] if genes is None or genes != genes else parse_set(str(genes))


def read_sets(path: str | Path) -> list[list[str]]:
    """Read one set per row from the column ``genes`` of a CSV or Parquet file.

    Raises
    ------
    SourceError
        If the file is missing, unreadable, empty, or has no such column.
    """
    frame = read_frame(path, "gene sets")
    if COLUMN not in frame.columns:
        found = ", ".join(map(repr, frame.columns))
        raise SourceError(
            f"{str(path)!r} has no column {COLUMN!r} (it has {found}): name the gene column {COLUMN!r}"
        )
    if frame.empty:
        raise SourceError(f"{str(path)!r} has no rows: give at least one gene set")
    return [names_of(genes) for genes in frame[COLUMN]]


def read_lines(lines: Iterable[str], *, where: str = "standard input") -> list[list[str]]:
    """Read one set per line, without blank lines.

    Raises
    ------
    SourceError
        If there is no set at all.
    """
    sets = [parse_set(line) for line in lines if line.strip()]
    if not sets:
        raise SourceError(f"{where} holds no gene set: give one per line")
    return sets


def named_sets(text: str) -> list[list[str]]:
    """Return the sets of a file (CSV or Parquet with a column ``genes``, else one per line), or of a text.

    Raises
    ------
    SourceError
        If the text ends like a file name and the file is missing, or the file holds no set.
    """
    path = Path(text)
    if path.suffix in (".csv", ".parquet"):
        return read_sets(path)
    if path.is_file():
        try:
            return read_lines(path.read_text(encoding="utf-8").splitlines(), where=repr(text))
        except UnicodeDecodeError as error:
            raise SourceError(f"{text!r} is no text in UTF-8: give one gene set per line") from error
    if path.suffix == ".txt":
        raise SourceError(f"there is no file {text!r} to read gene sets from: check the path")
    return [parse_set(text)]


def named_genes(text: str) -> list[str]:
    """Return the genes of all sets that a file or a text names; see ``named_sets``."""
    return [gene for genes in named_sets(text) for gene in genes]


def default_kinds(known: MutantTable, genes: int, essential: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """Return the perturbation [n] assumed for each gene that a set names without one.

    It is the gene's most frequent one in the training data; for a gene without data a deletion, or
    ``reduced`` for an essential gene, whose deletion is lethal.
    """
    counts = np.zeros((genes, len(Kind)), np.int64)
    np.add.at(counts, (known.gene, known.kind), 1)
    unseen = np.where(essential, Kind.REDUCED, Kind.ABSENT)
    return np.where(counts.any(1), counts.argmax(1), unseen).astype(np.uint8)


def to_table(
    sets: Sequence[Sequence[str]],
    genes: GeneIndex,
    kinds: NDArray[np.uint8],
    *,
    what: str = "row",
    find: Callable[[str], int] | None = None,
    empty: bool = False,
) -> MutantTable:
    """Return named sets as a table; messages count rows from 1.

    ``find`` finds the position of a name, as ``genes.find`` by default. A set without genes, the wild type,
    is refused unless ``empty``.

    Raises
    ------
    UnknownGeneError, AmbiguousGeneError, GeneSetError, ConfigError
        Naming the first row that does not fit.
    """
    positions: list[int] = []
    done: list[int] = []
    offsets = [0]
    find = find or genes.find
    cache: dict[str, tuple[int, int]] = {}  # a file of many rows names the same genes again and again
    for number, members in enumerate(sets, start=1):
        row: dict[int, int] = {}
        if isinstance(members, str) or not (len(members) or empty):
            row_text = "is empty" if not members else "is a text, not a list of genes"
            raise GeneSetError(f"{what} {number} {row_text}: name at least one gene")
        for member in members:
            if member not in cache:
                name, _, kind = member.partition(":")
                try:
                    position = find(name)
                    cache[member] = (position, Kind.parse(kind) if kind else int(kinds[position]))
                except Exception as error:
                    raise type(error)(f"{what} {number}: {error}") from None
            position, state = cache[member]
            if position in row:
                raise GeneSetError(
                    f"{what} {number} names {genes.names[position]} more than once: "
                    f"a gene counts once in a mutant"
                )
            row[position] = state
        positions += row.keys()
        done += row.values()
        offsets.append(len(positions))
    return MutantTable.build(positions, offsets, kind=np.array(done, dtype=np.uint8))
