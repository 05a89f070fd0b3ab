"""STRING of any taxon and version: a relation per channel, its proteins found by the names of other files.

Legend: m rows · n genes.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wildtype.errors import SourceError, shown
from wildtype.organism import GeneIndex, Relation
from wildtype.sources.row_filter import RowFilter, take
from wildtype.sources.string_links import (
    COMBINED,
    ENDS,
    LARGEST_SCORE,
    LEAK,
    LEAKING,
    TEXTMINING,
    Links,
    channels_of,
    preferred_names,
    read_links,
    resolve,
    taxon_of,
)
from wildtype.sources.text import AMBIGUOUS, UNKNOWN, GeneNames
from wildtype.sources.user_organisms.description import String
from wildtype.sources.user_organisms.problems import Problems
from wildtype.sources.user_organisms.reading import SHOWN, FileCard, Read, locate

SELF, AGAIN = "self-loop", "duplicate"
_VERSION = re.compile(r"\.v(\d+(?:\.\d+)*)\.")


def read(part: String, folder: Path, names: GeneIndex, problems: Problems) -> Read:
    """Return a relation per channel; weights are scores / 1000, and of repeated pairs the largest counts."""
    with problems.of(part.path):
        path, others = _files(part, folder, problems)
        if path is not None and None not in others:
            return _read(part, path, [other for other in others if other is not None], names)
    return Read()


def names_in(part: String, folder: Path, problems: Problems) -> list[str]:
    """Return preferred names of the proteins where a file gives them, else their identifiers."""
    with problems.of(part.path):
        path, others = _files(part, folder, problems)
        if path is not None:
            proteins = read_links(path, (*ENDS, *channels_of(path)), ()).proteins
            preferred: dict[str, str] = {}
            for other in others:
                preferred |= {} if other is None else preferred_names(other)
            return sorted({preferred.get(name, name.removeprefix(taxon_of(name))) for name in proteins})
    return []


def _files(part: String, folder: Path, problems: Problems) -> tuple[Path | None, list[Path | None]]:
    return locate(part.path, folder, problems), [locate(name, folder, problems) for name in _aliases(part)]


def _aliases(part: String) -> list[str]:
    return [part.aliases] * bool(part.aliases) if isinstance(part.aliases, str) else part.aliases


def _read(part: String, path: Path, others: list[Path], genes: GeneIndex) -> Read:
    columns = channels_of(path)
    channels = _channels(part, columns)
    links = read_links(path, (*ENDS, *columns), channels)
    matched, aliases = resolve(links.proteins, genes, others)
    if not matched.found.any():
        shown_names = ", ".join(links.proteins[:SHOWN])
        raise SourceError(
            f"no protein is a gene of organism {genes.organism!r} (the first: {shown_names}): give STRING's "
            f"protein.aliases of this taxon as aliases, or the genes these names"
        )
    relations, used = _relations(part, path, links, channels, matched, genes)
    older = int(matched.renamed.sum())
    note = f"channels {', '.join(channels)}" + (
        f"; {older:,} proteins found by another name" if older else ""
    )
    use = f"relations {', '.join(relation.name for relation in relations)}"
    card = FileCard(
        part.path, use, used.rows, int(used.left.sum()), used.dropped, note, _lost(links.proteins, matched)
    )
    cards = [card]
    for name, found in zip(_aliases(part), aliases, strict=False):
        cards.append(
            FileCard(name, f"names of proteins in {part.path}", found.rows, found.used, found.dropped)
        )
    return Read(tuple(cards), relations)


def _channels(part: String, columns: tuple[str, ...]) -> list[str]:
    """Return the channels to read; the usual ones where none is named."""
    for channel in part.channels:
        if channel not in columns:
            raise SourceError(f"there is no channel {shown(channel)}: choose of {', '.join(columns)}")
    usual = [name for name in columns if name != COMBINED and not name.startswith(TEXTMINING)]
    return list(dict.fromkeys(part.channels)) or usual or [columns[-1]]


def _lost(proteins: tuple[str, ...], matched: GeneNames) -> dict[str, tuple[str, ...]]:
    out = {}
    for reason, code in ((UNKNOWN, -1), (AMBIGUOUS, -2)):
        at = np.flatnonzero(matched.position == code)
        if at.size:
            out[f"{reason} ({at.size:,} names)"] = tuple(proteins[i] for i in at[:SHOWN])
    return out


def _relations(
    part: String, path: Path, links: Links, channels: list[str], matched: GeneNames, genes: GeneIndex
) -> tuple[tuple[Relation, ...], RowFilter]:
    """Return the relation of every channel, and the rows that are an edge of any."""
    # A score of 0 is no evidence, and no weight of an edge, whatever the cut-off.
    cut = max(part.cutoff, 1)
    used = RowFilter(len(links))
    reached = np.logical_or.reduce([links.scores[channel] >= cut for channel in channels])
    used.drop(f"no channel with a score of {cut} or more", ~reached)
    first, second = take(matched, links.first), take(matched, links.second)
    used.drop_names(first, second)
    used.drop(SELF, first.position == second.position)
    rows = np.flatnonzero(used.left)
    a, b = first.position[rows], second.position[rows]
    # Files list every pair in both orders: sorted by pair, equal ones are neighbours.
    lower, upper = np.minimum(a, b), np.maximum(a, b)
    order = _stable_order(lower, upper, len(genes))
    rows, pair = rows[order], (lower * len(genes) + upper)[order]
    start = np.flatnonzero(np.diff(pair, prepend=-1))
    again = np.zeros(len(links), bool)
    again[rows] = True
    again[rows[start]] = False
    used.drop(AGAIN, again)
    lower, upper = np.divmod(pair[start], len(genes))
    found = _VERSION.search(path.name)
    relations = []
    for channel in channels:
        scores: NDArray[np.uint16] = links.scores[channel][rows]
        best = np.maximum.reduceat(scores, start) if start.size else scores
        kept = best >= cut
        below = int((~kept).sum())
        relations.append(
            Relation.from_edges(
                part.name if channel == COMBINED else f"{part.name}_{channel}",
                lower[kept],
                upper[kept],
                len(genes),
                (best[kept] / LARGEST_SCORE).astype(np.float32),
                directed=False,
                source=part.source or "STRING",
                version=part.version or (found[1] if found else ""),
                note="; ".join(filter(None, (part.note, f"cut-off {cut}", _leak(channel)))),
                dropped=used.dropped | ({"pair below the cut-off in this channel": below} if below else {}),
            )
        )
    return tuple(relations), used


def _stable_order(lower: NDArray[np.int64], upper: NDArray[np.int64], genes: int) -> NDArray[np.int64]:
    """Return what sorts pairs of genes, equal ones as they stand."""
    # Numbers of 16 bits are sorted by counting: linear in the rows, and several times faster than others.
    narrow = np.uint16 if genes <= 1 << 16 else np.int64
    return np.lexsort((upper.astype(narrow), lower.astype(narrow)))


def _leak(channel: str) -> str:
    return LEAK if channel.startswith((*LEAKING, COMBINED)) else ""
