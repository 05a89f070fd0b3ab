"""Which gene graphs an organism gets: the ones it always has, from whatever files are there, and others.

A relation is read from the first of its sources whose file is there, under one name of the relation; the
relation's source names the publisher.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from wildtype.errors import ConfigError, SourceError
from wildtype.organism import GeneGraphs, GeneIndex
from wildtype.sources.text import Collector
from wildtype.sources.yeast.genes.uniprot import Accessions, has_accessions, read_accessions
from wildtype.sources.yeast.graphs import complexes, interactions, pair_lists, regulation
from wildtype.sources.yeast.graphs.pair_lists import Graph
from wildtype.sources.yeast.graphs.string import VERSIONS, read_string, versions_in

Reader = Callable[[str | Path, GeneIndex, Accessions], list[Graph]]


def _simple(reader: Callable[[str | Path, GeneIndex], Graph]) -> Reader:
    return lambda folder, genes, uniprot: [reader(folder, genes)]


def _pair_list(name: str) -> Reader:
    return lambda folder, genes, uniprot: [pair_lists.read_pair_list(folder, genes, name)]


def _both(reader: Callable[[str | Path, GeneIndex], list[Graph]]) -> Reader:
    return lambda folder, genes, uniprot: reader(folder, genes)


_BIOGRID, _SGD = _both(interactions.read_biogrid), _both(interactions.read_sgd_interactions)
FURTHER: dict[str, Reader] = {
    "tflink": lambda folder, genes, uniprot: [regulation.read_tflink(folder, genes, uniprot)],
    "same_complex": lambda folder, genes, uniprot: [complexes.read_complexes(folder, genes, uniprot)],
    "regulatory_gold_standard": _simple(regulation.read_gold_standard),
    "regulatory_motifs": _simple(regulation.read_motifs),
    "regulatory_responses": _simple(regulation.read_responses),
    "biogrid_physical": _BIOGRID,
    "biogrid_genetic": _BIOGRID,
    "sgd_physical": _SGD,
    "sgd_genetic": _SGD,
    **{item.relation: _pair_list(item.relation) for item in pair_lists.LISTS},
}
"""The reader of each relation that is there on request. The genetic ones leak the labels of interactions."""
PHYSICAL = "physical"


def read_graphs(
    folder: str | Path,
    genes: GeneIndex,
    *,
    string: str | None = None,
    further: Sequence[str] = (),
    collect: Collector,
) -> tuple[GeneGraphs, list[str]]:
    """Return the relations of an organism, and the names of those left out since their file is not there.

    Always, in this order: ``physical`` (iRefIndex, else BioGRID, else SGD), ``regulatory`` and
    ``regulatory_documented`` where their files are there, the channels of STRING, ``tflink`` where its file
    is there.

    Parameters
    ----------
    folder : path
        Holds the files under their publishers' names.
    genes : GeneIndex
        What the relations are over.
    string : str, optional
        Version of STRING; by default the first of 11.5, 12.0, 11.0 and 9.1 that is there.
    further : sequence of str
        Names of ``FURTHER``.
    collect : callable
        Called with the report on the rows of every file.

    Raises
    ------
    ConfigError
        If a relation or a version is unknown.
    SourceError
        If there are no physical interactions, no regulation or no STRING, or a file is damaged.
    """
    unknown = [name for name in further if name not in FURTHER]
    if unknown:
        raise ConfigError(f"there is no gene graph {unknown[0]!r}: choose from {', '.join(FURTHER)}")
    read, absent = [_physical(folder, genes)], []
    if regulation.has_regulatory(folder):
        read.append(regulation.read_regulatory(folder, genes))
    else:
        absent.append(f"regulatory ({regulation.BOTH})")
    if regulation.has_documented(folder):
        read.append(regulation.read_documented(folder, genes))
    else:
        absent.append(f"regulatory_documented ({regulation.DOCUMENTED})")
    # TFLink is part of every organism whose folder holds it, and can take the place of YEASTRACT.
    usual = ["tflink"] if regulation.TFLINK_FILE.find(folder) is not None else []
    if len(read) == 1 and not usual:
        raise SourceError(
            f"no regulation of transcription is in {str(folder)!r}: put {regulation.BOTH}, "
            f"{regulation.DOCUMENTED} or {regulation.TFLINK_FILE.name} there"
        )
    read += read_string(folder, genes, string or (versions_in(folder) or VERSIONS)[0])
    read += _by_name(folder, genes, list(dict.fromkeys([*usual, *further])), collect)
    for _, report in read:
        collect(report)
    return GeneGraphs(relation for relation, _ in read), absent


def _physical(folder: str | Path, genes: GeneIndex) -> Graph:
    if pair_lists.IREFINDEX_FILE.find(folder) is not None:
        return pair_lists.read_physical(folder, genes)
    if interactions.find_biogrid(folder) is not None:
        relation, report = interactions.read_biogrid(folder, genes)[0]
    elif interactions.SGD_FILE.find(folder) is not None:
        relation, report = interactions.read_sgd_interactions(folder, genes)[0]
    else:
        raise SourceError(
            f"no physical interactions are in {str(folder)!r}: put {pair_lists.IREFINDEX}, "
            f"{interactions.BIOGRID_FILE.name} or {interactions.SGD_FILE.name} there"
        )
    # Models and presets name the relation "physical", whichever publisher it is from.
    return replace(relation, name=PHYSICAL), replace(report, use=PHYSICAL)


def _by_name(folder: str | Path, genes: GeneIndex, names: Sequence[str], collect: Collector) -> list[Graph]:
    """Return relations of ``FURTHER``; a file that gives several of them is read once."""
    accessions: Accessions = {}
    if "same_complex" in names or ("tflink" in names and has_accessions(folder)):
        accessions, report = read_accessions(folder, genes)
        collect(report)
    done: dict[str, Graph] = {}
    for name in names:
        if name not in done:
            found = FURTHER[name](folder, genes, accessions)
            # BioGRID and SGD give two relations from one reading of a large file.
            done |= {relation.name: (relation, report) for relation, report in found}
    return [done[name] for name in names]
