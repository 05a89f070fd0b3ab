"""STRING: six channels of association (v11.5, combined score >= 900) or four full ones (v9.1)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wildtype.errors import ConfigError
from wildtype.organism import GeneIndex, Relation
from wildtype.phenotypes.reading import Reading
from wildtype.sources.text import GeneNames, add_counts, match_genes, read_rows, require
from wildtype.sources.yeast.names import match_pairs

CHANNELS = ("neighborhood", "fusion", "cooccurence", "coexpression", "experimental", "database")
"""Channel names as the publisher spells them."""
PAIRS = "string_v11.5_combined900_six_channels.tsv.gz"
NODES_91 = "string_v9.1_yeast_genes.txt.gz"
CHANNELS_91 = ("neighborhood", "fusion", "cooccurence", "database")
VERSIONS = ("11.5", "9.1")
NO_EVIDENCE = "score 0 in this channel"
LEAK = "may contain knowledge of genetic interactions: report results with and without it"


def read_string(
    folder: str | Path, genes: GeneIndex, version: str = "11.5"
) -> list[tuple[Relation, Reading]]:
    """Return the undirected, weighted relations ``string_<channel>`` of one version (Szklarczyk et al. 2021).

    Weights are scores / 1000, in (0, 1). Versions differ in method (r of 0.46 to 0.85 on shared pairs) and
    are never mixed.

    Raises
    ------
    ConfigError
        If ``version`` is neither ``"11.5"`` nor ``"9.1"``.
    SourceError
        If a file is missing, damaged, or has a score outside its range.
    """
    if version == "11.5":
        return _read_115(folder, genes)
    if version == "9.1":
        return _read_91(folder, genes)
    raise ConfigError(f"STRING {version!r} is not known: choose one of {', '.join(VERSIONS)}")


def _note(channel: str, cut: str) -> str:
    return "; ".join(part for part in (cut, LEAK if channel in ("experimental", "database") else "") if part)


def _relation(
    channel: str,
    ends: tuple[GeneNames, GeneNames],
    weights: NDArray[np.floating],
    genes: GeneIndex,
    labels: Mapping[str, str],
) -> tuple[Relation, Reading]:
    """Build one channel; rows without evidence in it are counted before names are looked at."""
    weights = weights.astype(np.float32)
    some = weights > 0
    first, second = (GeneNames(e.position[some], e.renamed[some]) for e in ends)
    kept, dropped, renamed = match_pairs(first, second)
    none = {NO_EVIDENCE: int((~some).sum())} if not some.all() else {}
    relation = Relation.from_edges(
        f"string_{channel}", first.position[kept], second.position[kept], len(genes), weights[some][kept],
        directed=False, source="STRING", version=labels["version"], note=_note(channel, labels["cut"]),
        dropped=add_counts(none, dropped),
    )  # fmt: skip
    return relation, Reading(
        labels["file"], relation.name, len(weights), relation.edges, relation.dropped, renamed
    )


def _read_115(folder: str | Path, genes: GeneIndex) -> list[tuple[Relation, Reading]]:
    rows = read_rows(require(folder, PAIRS), header=("protein1", "protein2", *CHANNELS))
    ends = match_genes(rows.text(0), genes), match_genes(rows.text(1), genes)
    labels = {
        "version": "11.5",
        "cut": "only pairs with combined score >= 900, a cut to which text mining contributed",
        "file": PAIRS,
    }
    out = []
    for position, channel in enumerate(CHANNELS, 2):
        scores = rows.numbers(position)
        wrong = np.flatnonzero((scores < 0) | (scores > 1000))
        if wrong.size:
            raise rows.error(int(wrong[0]), rows.cells[wrong[0]][position], f"a {channel} score of 0 to 1000")
        out.append(_relation(channel, ends, scores / 1000, genes, labels))
    return out


def _read_91(folder: str | Path, genes: GeneIndex) -> list[tuple[Relation, Reading]]:
    nodes = match_genes(read_rows(require(folder, NODES_91), fields=1).text(0), genes)
    out = []
    for channel in CHANNELS_91:
        name = f"string_v9.1_{channel}.tsv.gz"
        rows = read_rows(require(folder, name), fields=3)
        ends = []
        for position in (0, 1):
            node = rows.numbers(position)
            wrong = np.flatnonzero((node < 1) | (node > len(nodes.position)) | (node != np.floor(node)))
            if wrong.size:
                expected = f"a node number of 1 to {len(nodes.position):,}"
                raise rows.error(int(wrong[0]), rows.cells[wrong[0]][position], expected)
            at = node.astype(np.int64) - 1
            ends.append(GeneNames(nodes.position[at], nodes.renamed[at]))
        weights = rows.numbers(2)
        wrong = np.flatnonzero((weights < 0) | (weights > 1))
        if wrong.size:
            raise rows.error(int(wrong[0]), rows.cells[wrong[0]][2], f"a {channel} score of 0 to 1")
        labels = {"version": "9.1", "cut": "no cut-off; every pair stands in both orders", "file": name}
        out.append(_relation(channel, (ends[0], ends[1]), weights, genes, labels))
    return out
