"""STRING: one relation per channel of association, from the publisher's file or from derived ones.

The publisher's `protein.links.detailed` holds every pair with its score in each channel. Where that file is
not in the folder, two derived forms are read: v11.5 cut at combined score 900, and four full channels of
v9.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wildtype.datasets.reading import ReadReport
from wildtype.datasets.records import Publication
from wildtype.errors import ConfigError
from wildtype.organism import GeneIndex, Relation
from wildtype.sources.columns import TextColumn, read_columns
from wildtype.sources.publisher import Publisher, RemoteFile
from wildtype.sources.text import GeneNames, add_counts, match_genes, read_rows, require
from wildtype.sources.yeast.names import match_pairs

CHANNELS = ("neighborhood", "fusion", "cooccurence", "coexpression", "experimental", "database")
"""Channel names as the publisher spells them."""
TEXTMINING = "textmining"
"""The seventh channel of the publisher's file: read on request only."""
PAIRS = "string_v11.5_combined900_six_channels.tsv.gz"
NODES_91 = "string_v9.1_yeast_genes.txt.gz"
CHANNELS_91 = ("neighborhood", "fusion", "cooccurence", "database")
VERSIONS = ("11.5", "12.0", "11.0", "9.1")
"""In the order in which a version is chosen where none is asked for."""
TAXON = "4932."
DETAILED_HEADER = ("protein1", "protein2", *CHANNELS, TEXTMINING, "combined_score")
ALIAS_HEADER = ("#string_protein_id", "alias", "source")
NO_EVIDENCE = "score 0 in this channel"
LEAK = "may contain knowledge of genetic interactions: report results with and without it"


def _file(kind: str, version: str, host: str) -> RemoteFile:
    name = f"4932.protein.{kind}.v{version}.txt.gz"
    return RemoteFile(
        name, (f"https://{host}/download/protein.{kind}.v{version}/{name}",), aliases=(name[:-3],)
    )


DETAILED = {
    "12.0": _file("links.detailed", "12.0", "stringdb-downloads.org"),
    "11.5": _file("links.detailed", "11.5", "stringdb-static.org"),
    "11.0": _file("links.detailed", "11.0", "stringdb-static.org"),
    "9.1": RemoteFile(
        "4932.protein.links.detailed.v9.1.txt.gz",
        aliases=("4932.protein.links.detailed.v9.1.txt",),
        gated="its publisher gives it out without https (string91.embl.de), so fetch it by hand",
    ),
}
ALIASES = {
    "12.0": _file("aliases", "12.0", "stringdb-downloads.org"),
    "11.5": _file("aliases", "11.5", "stringdb-static.org"),
}
"""Optional: further names of proteins. The header of older versions is not confirmed."""
PUBLISHER = Publisher(
    name="string",
    title="STRING: functional associations of proteins in seven channels",
    publication=Publication(
        citation="Szklarczyk et al. 2021, The STRING database in 2021, Nucleic Acids Res 49:D605",
        doi="10.1093/nar/gkaa1074",
    ),
    licence="CC BY 4.0 (v11.0 and later); v9.1 an academic Creative Commons licence, not confirmed",
    files=(*DETAILED.values(), *ALIASES.values()),
    published={
        "9.1 neighborhood pairs": 45_610,
        "9.1 fusion pairs": 1_361,
        "9.1 cooccurence pairs": 2_664,
        "9.1 coexpression pairs": 314_013,
        "9.1 experimental pairs": 219_995,
        "9.1 database pairs": 33_486,
        "12.0 neighborhood pairs": 147_874,
        "12.0 fusion pairs": 11_810,
        "12.0 cooccurence pairs": 11_115,
        "12.0 coexpression pairs": 1_002_538,
        "12.0 experimental pairs": 825_101,
        "12.0 database pairs": 73_818,
    },
    notes=(
        "versions differ in method (r of 0.46 to 0.85 on shared pairs): one graph never mixes them",
        "whether a pair stands once or in both orders is not confirmed: both are read, and merged",
        "the experimental, database and textmining channels may contain genetic interactions",
        "edge counts of v11.0 and v11.5 and checksums of all files are not confirmed",
    ),
)
DERIVED = Publisher(
    name="string-derived",
    title="STRING v11.5 cut at combined score 900, and four channels of v9.1, as other studies prepared them",
    publication=PUBLISHER.publication,
    licence=PUBLISHER.licence,
    files=tuple(
        RemoteFile(file, gated="a file that only some collections hold: take protein.links.detailed instead")
        for file in (PAIRS, NODES_91, *(f"string_v9.1_{channel}.tsv.gz" for channel in CHANNELS_91))
    ),
    published={"11.5 pairs": 63_309, "9.1 nodes": 6_400},
    notes=(
        "v11.5: text mining contributed to the cut; a lossless join of the files of Surabhivj/BraneMF",
        "v9.1: the files of ma-compbio/DANGO; the channels coexpression and experimental are not there",
    ),
)
"""What is read where the publisher's file is not in a folder."""
PUBLISHERS = (PUBLISHER, DERIVED)


def read_string(
    folder: str | Path, genes: GeneIndex, version: str = "11.5", *, textmining: bool = False
) -> list[tuple[Relation, ReadReport]]:
    """Return the undirected, weighted relations ``string_<channel>`` of one version (Szklarczyk et al. 2021).

    Weights are scores / 1000, in (0, 1). Of a pair that stands in both orders the larger score counts.

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
        If the version is unknown, or text mining is asked of a derived file.
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
    files = {
        "11.5": (PAIRS,),
        "9.1": (NODES_91, *(f"string_v9.1_{channel}.tsv.gz" for channel in CHANNELS_91)),
    }.get(version, ())
    return any((Path(folder) / file).is_file() for file in files)


def _note(channel: str, cut: str) -> str:
    leaky = channel in ("experimental", "database", TEXTMINING)
    return "; ".join(part for part in (cut, LEAK if leaky else "") if part)


def _relation(
    channel: str,
    ends: tuple[GeneNames, GeneNames],
    weights: NDArray[np.floating],
    genes: GeneIndex,
    labels: Mapping[str, str],
) -> tuple[Relation, ReadReport]:
    """Build one channel; rows without evidence in it are counted before names are looked at."""
    weights = weights.astype(np.float32)
    some = weights > 0
    first, second = (GeneNames(e.position[some], e.renamed[some]) for e in ends)
    kept, dropped, renamed = match_pairs(first, second)
    none = {NO_EVIDENCE: int((~some).sum())} if not some.all() else {}
    relation = Relation.from_edges(
        f"string_{channel}",
        first.position[kept],
        second.position[kept],
        len(genes),
        weights[some][kept],
        directed=False,
        source="STRING",
        version=labels["version"],
        note=_note(channel, labels["cut"]),
        dropped=add_counts(none, dropped),
    )
    return relation, ReadReport(
        labels["file"], relation.name, len(weights), relation.edges, relation.dropped, renamed
    )


def _read_detailed(
    path: Path, folder: str | Path, genes: GeneIndex, version: str, textmining: bool
) -> list[tuple[Relation, ReadReport]]:
    channels = (*CHANNELS, TEXTMINING) if textmining else CHANNELS
    kinds = [float if name in channels else None for name in DETAILED_HEADER[2:]]
    table = read_columns(path, types=(str, str, *kinds), separator=" ", header=DETAILED_HEADER)
    for position in (0, 1):
        foreign = table.text(position).map(lambda name: not name.startswith(TAXON), bool)
        table.refuse(position, foreign, f"a protein of taxon 4932 ({TAXON}YAL001C)")
    aliases = ALIASES[version].find(folder) if version in ALIASES else None
    cut = "no cut-off" if aliases is None else f"no cut-off; unknown names looked up in {aliases.name}"
    ends = tuple(_proteins(table.text(position), genes, aliases) for position in (0, 1))
    labels = {"version": version, "cut": cut, "file": path.name}
    out = []
    for channel in channels:
        position = DETAILED_HEADER.index(channel)
        scores = table.numbers(position)
        table.refuse(position, ~((scores >= 0) & (scores <= 1000)), f"a {channel} score of 0 to 1000")
        out.append(_relation(channel, (ends[0], ends[1]), scores / 1000, genes, labels))
    return out


def _proteins(column: TextColumn, genes: GeneIndex, aliases: Path | None) -> GeneNames:
    """Match ``4932.YAL001C`` by the name after the taxon, and what is left by its aliases."""
    matched = match_genes([name.removeprefix(TAXON) for name in column.names], genes)
    unknown = {column.names[i]: int(i) for i in np.flatnonzero(matched.position == -1)}
    if aliases is not None and unknown:
        table = read_columns(aliases, types=(str, str, None), header=ALIAS_HEADER)
        protein = table.text(0)
        at = protein.map(lambda name: unknown.get(name, -1), np.int64)
        meant = table.text(1).match(genes).position
        listed = (at >= 0) & (meant != -1)
        for i in np.unique(at[listed]):
            candidates = np.unique(meant[listed & (at == i)])
            matched.position[i] = candidates[0] if candidates.size == 1 else -2
            matched.renamed[i] = matched.position[i] >= 0
    return GeneNames(matched.position[column.code], matched.renamed[column.code])


def _read_115(folder: str | Path, genes: GeneIndex) -> list[tuple[Relation, ReadReport]]:
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


def _read_91(folder: str | Path, genes: GeneIndex) -> list[tuple[Relation, ReadReport]]:
    listed = read_rows(require(folder, NODES_91), fields=1)
    names = listed.text(0)
    again = np.ones(len(names), bool)
    again[np.unique(names, return_index=True)[1]] = False
    listed.refuse(0, again, "every node once, since the other files number them")
    nodes = match_genes(names, genes)
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
