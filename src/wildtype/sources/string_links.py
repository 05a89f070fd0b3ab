"""STRING, any taxon and version: links of proteins with a score per channel, and what proteins are called.

Files are read some rows at a time, since those of larger organisms have more than ten million.

Legend: m rows of a file of links · p proteins.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wildtype.errors import SourceError, shown
from wildtype.organism import GeneIndex
from wildtype.sources.columns import Columns, ColumnType, Header, Only, column_blocks, first_lines
from wildtype.sources.text import GeneNames, match_genes

ENDS = ("protein1", "protein2")
COMBINED = "combined_score"
LARGEST_SCORE = 1000
TEXTMINING = "textmining"
LEAKING = ("experimental", "experiments", "database", TEXTMINING)
"""Channels of curated and text-mined evidence, which can restate genetic interactions."""
LEAK = "may contain knowledge of genetic interactions: report results with and without it"
OTHER, NO_NAME = "protein that is in no link, or known", "name of no gene"
PREFERRED = "preferred_name"
PREFERRED_VOTES = 1_000
"""More than any number of sources of aliases: the preferred name decides between equally good ones."""


@dataclass(frozen=True, eq=False)
class Links:
    """The rows of a file of links.

    Attributes
    ----------
    path : Path
        The file, for messages.
    proteins : tuple of p str
        Identifiers as the file has them, such as ``9606.ENSP00000000233``, each once.
    first, second : int32 [m]
        Positions of the two proteins of every row.
    scores : dict of str to uint16 [m]
        Scores of 0 to 1000 by channel.
    """

    path: Path
    proteins: tuple[str, ...]
    first: NDArray[np.int32]
    second: NDArray[np.int32]
    scores: dict[str, NDArray[np.uint16]]

    def __len__(self) -> int:
        return len(self.first)


def taxon_of(protein: str) -> str:
    """Return the taxon at the front of an identifier, with its dot; empty if there is none."""
    taxon, dot, _ = protein.partition(".")
    return taxon + dot if dot and taxon.isdigit() else ""


def channels_of(path: str | Path) -> tuple[str, ...]:
    """Return the columns of a file of links after the two proteins, the combined score included.

    Raises
    ------
    SourceError
        If the file is missing, or in another layout.
    """
    header = tuple(next(iter(first_lines(path, 1)), "").split(" "))
    if header[:2] != ENDS or len(header) < 3:
        raise SourceError(
            f"{path}, line 1: received the header {shown(' '.join(header))}, expected {' '.join(ENDS)} and "
            f"scores: give protein.links, protein.links.detailed or protein.physical.links of STRING"
        )
    return header[2:]


def read_links(path: str | Path, header: Header, channels: Sequence[str], *, taxon: str = "") -> Links:
    """Read ``protein.links``, ``protein.links.detailed``, ``protein.links.full`` or a physical one.

    Parameters
    ----------
    header : sequence of str
        Columns of the file.
    channels : sequence of str
        Those of its scores that are read.
    taxon : str
        What every identifier must begin with, as in ``9606.``; as that of the first row if not given.

    Raises
    ------
    SourceError
        If the file is missing, damaged, in another layout, of several taxa, or has a score outside its range.
    """
    path = Path(path)
    number: dict[str, int] = {}
    parts: list[tuple[NDArray[np.int32], NDArray[np.int32], list[NDArray[np.uint16]]]] = []

    def types(found: tuple[str, ...]) -> list[ColumnType]:
        return [str, str, *(float if name in channels else None for name in found[2:])]

    for block in column_blocks(path, types=types, separator=" ", header=header):
        taxon = taxon or taxon_of(block.text(0)[0])
        scores = [_scores(block, block.header.index(channel), channel) for channel in channels]
        one, other = (_numbered(block, position, taxon, number) for position in (0, 1))
        parts.append((one, other, scores))
    first, second = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
    joined = {name: np.concatenate([part[2][i] for part in parts]) for i, name in enumerate(channels)}
    return Links(path, tuple(number), first, second, joined)


def _numbered(block: Columns, position: int, taxon: str, number: dict[str, int]) -> NDArray[np.int32]:
    column = block.text(position)
    new = [name for name in column.names if name not in number]
    if not all(name.startswith(taxon) for name in new):
        # A file of another organism has the same layout, and its names would merely be unknown.
        foreign = column.map(lambda name: not name.startswith(taxon), bool)
        block.refuse(position, foreign, f"a protein of taxon {taxon.rstrip('.')}")
    number |= {name: i for i, name in enumerate(new, len(number))}
    codes = np.fromiter(map(number.__getitem__, column.names), np.int32, len(column.names))
    return codes[column.code]


def _scores(block: Columns, position: int, channel: str) -> NDArray[np.uint16]:
    scores = block.numbers(position)
    # Negated, so that a missing number is refused too.
    wrong = ~((scores >= 0) & (scores <= LARGEST_SCORE))
    block.refuse(position, wrong, f"a {channel} score of 0 to {LARGEST_SCORE}")
    out = scores.astype(np.uint16)
    block.refuse(position, out != scores, f"a {channel} score that is a whole number")
    return out


@dataclass(frozen=True, eq=False)
class Aliases:
    """What a file of names says of some proteins.

    Attributes
    ----------
    rows, used : int
        Rows of the file, and those that name a gene of the organism for one of the proteins.
    dropped : dict of str to int
        The others, by reason.
    votes : dict of int to dict of (int, int) to int
        For every protein, by its position: level (as ``GeneIndex.find_level``) and gene, and the number of
        rows that say so. Gene -2: the name is ambiguous.
    """

    rows: int
    used: int
    dropped: dict[str, int]
    votes: dict[int, dict[tuple[int, int], int]]


def read_aliases(path: str | Path, proteins: Iterable[str], genes: GeneIndex) -> Aliases:
    """Read ``protein.aliases`` or ``protein.info`` of any version for some proteins.

    Raises
    ------
    SourceError
        If the file is missing, damaged, or in another layout.
    """
    wanted = {name: i for i, name in enumerate(proteins)}
    votes: dict[int, dict[tuple[int, int], int]] = {}
    rows = used = other = 0
    lines = first_lines(path, 2)
    if not lines:
        raise SourceError(f"{path} is empty: give protein.aliases or protein.info of STRING")
    head, *below = lines
    weight = PREFERRED_VOTES if PREFERRED in head else 1
    # Versions up to 10 have the taxon in a column of its own.
    apart = int("species" in head or head.split("\t")[0].isdigit())

    def types(first: tuple[str, ...]) -> list[ColumnType]:
        if len(first) < 3 + apart:
            raise SourceError(
                f"{path} has {len(first)} columns, expected the protein, a name and its source: give "
                f"protein.aliases or protein.info of STRING"
            )
        # Most aliases are names of nothing here; each of millions as a text would take longer than reading.
        return [*[str] * (1 + apart), Only(genes.folded)]

    for block in column_blocks(path, types=types, skip_lines=int(bool(below) and _is_header(head))):
        name, protein = block.text(1 + apart), block.text(apart)
        taxon = f"{block.text(0)[0]}." if apart else ""
        places = [wanted.get(taxon + text, -1) for text in protein.names]
        at = np.array(places, dtype=np.int64)[protein.code]
        maybe = np.array([text != "" for text in name.names])[name.code]
        chosen = np.flatnonzero((at >= 0) & maybe)
        rows, used, other = rows + len(block), used + len(chosen), other + int((at < 0).sum())
        for (place, code), count in _counted(at[chosen], name.code[chosen]):
            level, found = genes.find_level(name.names[code])
            key = (level, found[0] if len(found) == 1 else -2)
            mine = votes.setdefault(place, {})
            mine[key] = mine.get(key, 0) + count * weight
    dropped = {OTHER: other, NO_NAME: rows - used - other}
    return Aliases(rows, used, {reason: count for reason, count in dropped.items() if count}, votes)


def preferred_names(path: str | Path) -> dict[str, str]:
    """Return the preferred name of every protein in ``protein.info``; none if the file is another one.

    Raises
    ------
    SourceError
        If the file is missing or damaged.
    """
    head = next(iter(first_lines(path, 1)), "")
    if PREFERRED not in head:
        return {}
    names: dict[str, str] = {}
    for block in column_blocks(path, types=lambda first: [str, str], skip_lines=1):
        protein, name = block.text(0), block.text(1)
        names |= {protein[row]: name[row] for row in range(len(block))}
    return names


def _is_header(line: str) -> bool:
    """Say whether the first line of a file of names is no row: versions spell it differently."""
    return line.startswith("#") or "protein" in line.partition("\t")[0]


def _counted(*codes: NDArray[np.integer]) -> Iterator[tuple[list[int], int]]:
    found, count = np.unique(np.stack(codes, axis=1), axis=0, return_counts=True)
    return zip(found.tolist(), count.tolist(), strict=True)


def resolve(
    proteins: Sequence[str], genes: GeneIndex, files: Sequence[str | Path] = ()
) -> tuple[GeneNames, list[Aliases]]:
    """Return the gene of every protein [p], and what became of the rows of the files of names.

    The identifier after the taxon decides if it is a name of a gene; else the best name that the files give:
    a systematic name before a standard name before an alias, of equally good ones that of most rows. A tie is
    ambiguous.

    Raises
    ------
    SourceError
        As ``read_aliases`` does.
    """
    matched = match_genes([name.removeprefix(taxon_of(name)) for name in proteins], genes)
    position, renamed = matched.position.copy(), matched.renamed.copy()
    unknown = [int(i) for i in np.flatnonzero(position == -1)]
    read = [read_aliases(path, [proteins[i] for i in unknown], genes) for path in files] if unknown else []
    for place, i in enumerate(unknown):
        votes: dict[tuple[int, int], int] = {}
        for one in read:
            for key, count in one.votes.get(place, {}).items():
                votes[key] = votes.get(key, 0) + count
        if votes:
            position[i] = _elected(votes)
            renamed[i] = position[i] >= 0
    return GeneNames(position, renamed), read


def _elected(votes: dict[tuple[int, int], int]) -> int:
    """Return the gene that most rows of the best level name; -2 where that is no single one."""
    best = min(level for level, _ in votes)
    count = {gene: n for (level, gene), n in votes.items() if level == best}
    most = [gene for gene, n in count.items() if n == max(count.values())]
    return most[0] if len(most) == 1 else -2
