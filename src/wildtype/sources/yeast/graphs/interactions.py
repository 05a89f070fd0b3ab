"""Curated interactions of two kinds in one file, from BioGRID (`tab3`) and from SGD (`interaction_data.tab`).

Physical interactions are a gene graph like others. Genetic ones are what the interaction datasets measure, so
that no model sees them unless a user names them.

Legend: m rows of the file.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wildtype.errors import SourceError
from wildtype.organism import GeneIndex
from wildtype.sources.biogrid import FOREIGN, GENETIC, PHYSICAL, read_interactions
from wildtype.sources.columns import TextColumn, read_columns
from wildtype.sources.row_filter import Flags, RowFilter
from wildtype.sources.text import GeneNames
from wildtype.sources.yeast.files import find_release, publisher
from wildtype.sources.yeast.graphs.pair_lists import REPORTED, Graph, edges

LEAKS = (
    "genetic interactions are what the interaction datasets measure: as an input graph this relation leaks "
    "their labels, so it is never one by default"
)
INTERACTIONS = (
    "costanzo2010:epsilon", "costanzo2016:epsilon", "kuzmin2018", "kuzmin2018-calls", "kuzmin2020",
    "tau-sga", "collins2007", "schuldiner2005", "diazmejia2018", "jonikas2009:UPR interaction",
)  # fmt: skip
"""What databases of genetic interactions collect: studies, or of those that measured more, a phenotype."""
BIOGRID, SGD = publisher("biogrid"), publisher("sgd-interactions")
(BIOGRID_FILE,), (SGD_FILE,) = BIOGRID.files, SGD.files

TAXON = "559292"
STEM, STEM_ALL = "BIOGRID-ORGANISM-Saccharomyces_cerevisiae_S288c-", "BIOGRID-ALL-"
SUFFIX, RELEASE = ".tab3.txt", "5.0.261"
SGD_BAIT, SGD_HIT, SGD_TYPE, SGD_FIELDS = 0, 2, 5, 12


def find_biogrid(folder: str | Path) -> tuple[Path, str] | None:
    """Return the file of yeast, or the one of all organisms, and its release; None if there is neither."""
    # Both hold the rows of yeast; the file of yeast alone is read faster.
    return find_release(folder, STEM, SUFFIX) or find_release(folder, STEM_ALL, SUFFIX)


def read_biogrid(folder: str | Path, genes: GeneIndex) -> list[Graph]:
    """Return the undirected, unweighted relations ``biogrid_physical`` and ``biogrid_genetic``.

    Names are systematic ones, official symbols where there is none. Rows with a partner of another organism
    than S288C (taxon 559292) are dropped and counted.

    Raises
    ------
    SourceError
        If the file is missing, damaged, not in the published layout, or without any row of yeast.
    """
    path, release = find_biogrid(folder) or (BIOGRID_FILE.require(folder), RELEASE)
    found = read_interactions(path)
    foreign = found.foreign(TAXON)
    if foreign.all():
        raise SourceError(
            f"{path} holds no interaction within taxon {TAXON}: fetch the file of S. cerevisiae S288C"
        )
    (one, other), symbols = found.ends("systematic"), found.ends("symbol")
    ends = [_names(one, symbols[0], genes), _names(other, symbols[1], genes)]
    return _by_kind("biogrid", ends, found.kind, genes, path, "BioGRID", release, {FOREIGN: foreign})


def _names(systematic: TextColumn, symbol: TextColumn, genes: GeneIndex) -> GeneNames:
    # "-" marks a missing systematic name.
    nameless = systematic.map(lambda name: name == "-", bool)
    by_name, by_symbol = systematic.match(genes), symbol.match(genes)
    return GeneNames(
        np.where(nameless, by_symbol.position, by_name.position),
        np.where(nameless, by_symbol.renamed, by_name.renamed),
    )


def read_sgd_interactions(folder: str | Path, genes: GeneIndex) -> list[Graph]:
    """Return the undirected, unweighted relations ``sgd_physical`` and ``sgd_genetic``.

    Raises
    ------
    SourceError
        If the file is missing, damaged, or has an interaction that is neither genetic nor physical.
    """
    needed = (SGD_BAIT, SGD_HIT, SGD_TYPE)
    types = [str if i in needed else None for i in range(SGD_FIELDS)]
    table = read_columns(SGD_FILE.require(folder), types=types)
    kind = table.text(SGD_TYPE).map(_kind, "U8")
    table.refuse(SGD_TYPE, kind == "", "a genetic or physical interaction")
    ends = [table.text(position).match(genes) for position in (SGD_BAIT, SGD_HIT)]
    return _by_kind("sgd", ends, kind, genes, table.path, "SGD", "curated", {})


def _kind(text: str) -> str:
    """``physical interactions`` and ``genetic interactions``, in either number."""
    first = text.lower().partition(" ")[0]
    return first if first in (PHYSICAL, GENETIC) else ""


def _by_kind(
    prefix: str,
    ends: list[GeneNames],
    kind: NDArray[np.str_],
    genes: GeneIndex,
    path: Path,
    source: str,
    version: str,
    unused: dict[str, Flags],
) -> list[Graph]:
    """Return ``<prefix>_physical`` and ``<prefix>_genetic``; a pair is one edge however often reported."""
    out = []
    for chosen, other in ((PHYSICAL, GENETIC), (GENETIC, PHYSICAL)):
        used = RowFilter(len(kind))
        # The other kind is dropped before names are matched: its unknown genes are not counted twice.
        used.drop_all(unused | {f"{other} interaction": kind == other})
        out.append(
            edges(
                f"{prefix}_{chosen}",
                ends[0],
                ends[1],
                genes,
                file=path.name,
                used=used,
                source=source,
                version=version,
                note=LEAKS if chosen == GENETIC else REPORTED,
                measured=INTERACTIONS if chosen == GENETIC else (),
            )
        )
    return out
