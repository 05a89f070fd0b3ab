"""BioGRID (`tab3`): physical and genetic interactions of yeast, apart."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from wildtype.datasets.reading import ReadReport
from wildtype.datasets.records import Publication
from wildtype.errors import SourceError
from wildtype.organism import GeneIndex, Relation
from wildtype.sources.columns import Columns, TextColumn, read_columns
from wildtype.sources.publisher import Publisher, RemoteFile
from wildtype.sources.text import GeneNames
from wildtype.sources.yeast.graphs.interactions import GENETIC, LEAKS, PHYSICAL, Interactions
from wildtype.sources.yeast.graphs.releases import find_release

TAXON = "559292"
MISSING = "-"
FOREIGN = "partner of another organism"
STEM = "BIOGRID-ORGANISM-Saccharomyces_cerevisiae_S288c-"
STEM_ALL = "BIOGRID-ALL-"
SUFFIX = ".tab3.txt"
RELEASE = "5.0.261"
_ARCHIVE = (
    f"https://downloads.thebiogrid.org/Download/BioGRID/Release-Archive/BIOGRID-{RELEASE}/"
    f"BIOGRID-ORGANISM-{RELEASE}.tab3.zip"
)


def _both(*names: str) -> list[str]:
    return [f"{name} Interactor {side}" for name in names for side in "AB"]


HEADER = (
    "#BioGRID Interaction ID",
    *_both("Entrez Gene", "BioGRID ID", "Systematic Name", "Official Symbol", "Synonyms"),
    "Experimental System", "Experimental System Type", "Author", "Publication Source",
    *_both("Organism ID"),
    "Throughput", "Score", "Modification", "Qualifications", "Tags", "Source Database",
    *(f"{bank} Accessions Interactor {side}" for side in "AB" for bank in ("SWISS-PROT", "TREMBL", "REFSEQ")),
    "Ontology Term IDs", "Ontology Term Names", "Ontology Term Categories", "Ontology Term Qualifier IDs",
    "Ontology Term Qualifier Names", "Ontology Term Types",
    *_both("Organism Name"),
)  # fmt: skip
"""The 37 columns."""
SYSTEMATIC = HEADER.index("Systematic Name Interactor A"), HEADER.index("Systematic Name Interactor B")
SYMBOL = HEADER.index("Official Symbol Interactor A"), HEADER.index("Official Symbol Interactor B")
ORGANISM = HEADER.index("Organism ID Interactor A"), HEADER.index("Organism ID Interactor B")
TYPE = HEADER.index("Experimental System Type")

PUBLISHER = Publisher(
    name="biogrid",
    title="BioGRID: curated physical and genetic interactions",
    publication=Publication(
        citation="Oughtred et al. 2021, The BioGRID database, Protein Sci 30:187", doi="10.1002/pro.3978"
    ),
    licence="MIT",
    files=(
        RemoteFile(
            f"{STEM}{RELEASE}{SUFFIX}",
            (_ARCHIVE,),
            member=f"{STEM}{RELEASE}{SUFFIX}",
            agent="Mozilla/5.0 (wildtype)",
        ),
    ),
    published={f"rows over all organisms, {RELEASE}": 2_936_093},
    notes=(
        "a new release every month; any one is read, the name says which",
        "the name of the file inside the archive is by analogy with older forms, not confirmed",
        "the host refuses Python's own user agent",
        "A is bait and B is hit; the interaction id repeats, so that pairs are merged here",
        LEAKS,
    ),
)


def find_biogrid(folder: str | Path) -> tuple[Path, str] | None:
    """Return the file of yeast, or the one of all organisms, and its release; None if there is neither."""
    return find_release(folder, STEM, SUFFIX) or find_release(folder, STEM_ALL, SUFFIX)


def read_biogrid(folder: str | Path, genes: GeneIndex) -> list[tuple[Relation, ReadReport]]:
    """Return the undirected, unweighted relations ``biogrid_physical`` and ``biogrid_genetic``.

    Names are systematic ones, official symbols where there is none. Rows with a partner of another organism
    than S288C (taxon 559292) are dropped and counted.

    Raises
    ------
    SourceError
        If the file is missing, damaged, not in the published layout, or without any row of yeast.
    """
    path, release = find_biogrid(folder) or (PUBLISHER.files[0].require(folder), RELEASE)
    wanted = {*SYSTEMATIC, *SYMBOL, *ORGANISM, TYPE}
    table = read_columns(
        path, types=[str if i in wanted else None for i in range(len(HEADER))], header=HEADER
    )
    kind = table.text(TYPE).map(lambda text: text if text in (PHYSICAL, GENETIC) else "", "U8")
    table.refuse(TYPE, kind == "", f"{PHYSICAL} or {GENETIC}")
    foreign = np.zeros(len(table), bool)
    for position in ORGANISM:
        foreign |= table.text(position).map(lambda taxon: taxon != TAXON, bool)
    if foreign.all():
        raise SourceError(
            f"{path} holds no interaction within taxon {TAXON}: fetch the file of S. cerevisiae S288C"
        )
    first, second = (_names(table, side, genes) for side in (0, 1))
    return Interactions(path.name, "BioGRID", release, first, second, kind, {FOREIGN: foreign}).both(
        "biogrid", genes
    )


def _names(table: Columns, side: int, genes: GeneIndex) -> GeneNames:
    systematic, symbol = table.text(SYSTEMATIC[side]), table.text(SYMBOL[side])
    nameless = _missing(systematic)
    by_name, by_symbol = systematic.match(genes), symbol.match(genes)
    return GeneNames(
        np.where(nameless, by_symbol.position, by_name.position),
        np.where(nameless, by_symbol.renamed, by_name.renamed),
    )


def _missing(column: TextColumn) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    return column.map(lambda name: name == MISSING, bool)
