"""STRING: one relation per channel of association, from the publisher's file or from derived ones.

The publisher's `protein.links.detailed` holds every pair with its score in each channel. Where that file is
not in the folder, two derived forms are read: v11.5 cut at combined score 900, and four full channels of
v9.1.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from wildtype.errors import ConfigError
from wildtype.organism import GeneIndex
from wildtype.sources.row_filter import Floats, RowFilter, repeated, take
from wildtype.sources.string_links import COMBINED, ENDS, LEAK, LEAKING, TEXTMINING, read_links, resolve
from wildtype.sources.text import GeneNames, match_genes, read_rows, require
from wildtype.sources.yeast.files import publisher
from wildtype.sources.yeast.graphs.pair_lists import Graph, edges

CHANNELS = ("neighborhood", "fusion", "cooccurence", "coexpression", "experimental", "database")
"""Channel names as the publisher spells them."""
PAIRS = "string_v11.5_combined900_six_channels.tsv.gz"
NODES_91 = "string_v9.1_yeast_genes.txt.gz"
CHANNELS_91 = ("neighborhood", "fusion", "cooccurence", "database")
VERSIONS = ("11.5", "12.0", "11.0", "9.1")
"""In the order in which a version is chosen where none is named."""
TAXON = "4932."
DETAILED_HEADER = (*ENDS, *CHANNELS, TEXTMINING, COMBINED)
NO_EVIDENCE = "score 0 in this channel"


PUBLISHER, DERIVED = publisher("string"), publisher("string-derived")
"""The publisher's files, and those that are read where these are not in a folder."""
PUBLISHERS = (PUBLISHER, DERIVED)
_BY_NAME = {file.name: file for file in PUBLISHER.files}
DETAILED = {v: _BY_NAME[f"4932.protein.links.detailed.v{v}.txt.gz"] for v in VERSIONS}
ALIASES = {v: _BY_NAME[f"4932.protein.aliases.v{v}.txt.gz"] for v in ("12.0", "11.5")}
"""Optional: further names of proteins. The header of older versions is not confirmed."""


def read_string(
    folder: str | Path, genes: GeneIndex, version: str = "11.5", *, textmining: bool = False
) -> list[Graph]:
    """Return the undirected, weighted relations ``string_<channel>`` of one version (Szklarczyk et al. 2021).

    Weights are scores / 1000, in (0, 1). Of a pair in both orders the larger score counts.

    Parameters
    ----------
    folder : path
        Holds the publisher's file, or the derived ones of v11.5 or v9.1.
    genes : GeneIndex
        What the relations are over.
    version : str
        One of ``VERSIONS``.
    textmining : bool
        Whether to return the channel of text mining too, which only the publisher's file has.

    Raises
    ------
    ConfigError
        If the version is unknown, or a derived file is to give the channel of text mining.
    SourceError
        If a file is missing, damaged, or has a score outside its range or a protein of another species.
    """
    if version not in VERSIONS:
        raise ConfigError(f"STRING {version!r} is not known: choose one of {', '.join(VERSIONS)}")
    path = DETAILED[version].find(folder)
    if path is not None:
        return _read_detailed(path, folder, genes, version, textmining)
    if not _derived(folder, version):
        DETAILED[version].require(folder)
    if textmining:
        raise ConfigError(
            f"the derived files of STRING {version} have no textmining channel: put "
            f"{DETAILED[version].name} into the folder or leave the channel out"
        )
    return _read_115(folder, genes) if version == "11.5" else _read_91(folder, genes)


def versions_in(folder: str | Path) -> list[str]:
    """Return the versions that a folder holds in any form, in the order of ``VERSIONS``."""
    return [v for v in VERSIONS if DETAILED[v].find(folder) is not None or _derived(folder, v)]


def _derived(folder: str | Path, version: str) -> bool:
    files = {"11.5": (PAIRS,), "9.1": (NODES_91, *map(_file_91, CHANNELS_91))}.get(version, ())
    return any((Path(folder) / file).is_file() for file in files)


def _file_91(channel: str) -> str:
    return f"string_v9.1_{channel}.tsv.gz"


def _channel(
    channel: str,
    first: GeneNames,
    second: GeneNames,
    weights: Floats,
    genes: GeneIndex,
    version: str,
    cut: str,
    file: str,
) -> Graph:
    """Return one channel; rows without evidence in it are counted before names are looked at."""
    # Before the comparison: a score that rounds to 0 as a weight would be refused as an edge.
    weights = weights.astype(np.float32)
    used = RowFilter(len(weights))
    used.drop(NO_EVIDENCE, weights <= 0)
    # Curated and text-mined evidence can restate the genetic interactions that a model is to predict.
    leaky = channel in LEAKING
    return edges(
        f"string_{channel}",
        first,
        second,
        genes,
        file=file,
        weights=weights,
        used=used,
        source="STRING",
        version=version,
        note="; ".join(part for part in (cut, LEAK if leaky else "") if part),
    )


def _read_detailed(
    path: Path, folder: str | Path, genes: GeneIndex, version: str, textmining: bool
) -> list[Graph]:
    channels = (*CHANNELS, TEXTMINING) if textmining else CHANNELS
    links = read_links(path, DETAILED_HEADER, channels, taxon=TAXON)
    aliases = ALIASES[version].find(folder) if version in ALIASES else None
    cut = "no cut-off" if aliases is None else f"no cut-off; unknown names looked up in {aliases.name}"
    proteins, _ = resolve(links.proteins, genes, [] if aliases is None else [aliases])
    first, second = take(proteins, links.first), take(proteins, links.second)
    return [
        _channel(channel, first, second, links.scores[channel] / 1000, genes, version, cut, path.name)
        for channel in channels
    ]


def _read_115(folder: str | Path, genes: GeneIndex) -> list[Graph]:
    rows = read_rows(require(folder, PAIRS), header=("protein1", "protein2", *CHANNELS))
    first, second = (match_genes(rows.text(position), genes) for position in (0, 1))
    cut = "only pairs with combined score >= 900, a cut to which text mining contributed"
    out = []
    for position, channel in enumerate(CHANNELS, 2):
        scores = rows.numbers(position)
        rows.refuse(position, (scores < 0) | (scores > 1000), f"a {channel} score of 0 to 1000")
        out.append(_channel(channel, first, second, scores / 1000, genes, "11.5", cut, PAIRS))
    return out


def _read_91(folder: str | Path, genes: GeneIndex) -> list[Graph]:
    listed = read_rows(require(folder, NODES_91), fields=1)
    names = listed.text(0)
    listed.refuse(0, repeated(names), "every node once, since the other files number them")
    nodes = match_genes(names, genes)
    cut = "no cut-off; every pair stands in both orders"
    out = []
    for channel in CHANNELS_91:
        rows = read_rows(require(folder, _file_91(channel)), fields=3)
        ends = []
        for position in (0, 1):
            node = rows.numbers(position)
            wrong = (node < 1) | (node > len(names)) | (node != np.floor(node))
            rows.refuse(position, wrong, f"a node number of 1 to {len(names):,}")
            ends.append(take(nodes, node.astype(np.int64) - 1))
        weights = rows.numbers(2)
        rows.refuse(2, (weights < 0) | (weights > 1), f"a {channel} score of 0 to 1")
        out.append(_channel(channel, ends[0], ends[1], weights, genes, "9.1", cut, _file_91(channel)))
    return out
