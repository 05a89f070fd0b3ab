"""Interactions curated by SGD (`interaction_data.tab`), physical and genetic apart."""

from __future__ import annotations

from pathlib import Path

from wildtype.datasets.reading import ReadReport
from wildtype.datasets.records import Publication
from wildtype.organism import GeneIndex, Relation
from wildtype.sources.columns import read_columns
from wildtype.sources.publisher import Publisher, RemoteFile
from wildtype.sources.yeast.graphs.interactions import GENETIC, LEAKS, PHYSICAL, Interactions

FILE = RemoteFile(
    "interaction_data.tab",
    (
        "https://sgd-archive.yeastgenome.org/curation/literature/interaction_data.tab",
        "https://downloads.yeastgenome.org/curation/literature/interaction_data.tab",
    ),
)
PUBLISHER = Publisher(
    name="sgd-interactions",
    title="SGD: curated physical and genetic interactions",
    publication=Publication(
        citation="Cherry et al. 2012, Saccharomyces Genome Database: the genomics resource of budding yeast, "
        "Nucleic Acids Res 40:D700",
        doi="10.1093/nar/gkr1029",
    ),
    licence="CC BY 4.0, not confirmed",
    files=(FILE,),
    notes=("12 columns without header; changes weekly, so that no checksum can be given", LEAKS),
)
BAIT, HIT, TYPE = 0, 2, 5
FIELDS = 12


def read_sgd_interactions(folder: str | Path, genes: GeneIndex) -> list[tuple[Relation, ReadReport]]:
    """Return the undirected, unweighted relations ``sgd_physical`` and ``sgd_genetic``.

    Raises
    ------
    SourceError
        If the file is missing, damaged, or has an interaction that is neither genetic nor physical.
    """
    table = read_columns(
        FILE.require(folder), types=[str if i in (BAIT, HIT, TYPE) else None for i in range(FIELDS)]
    )
    column = table.text(TYPE)
    kind = column.map(_kind, "U8")
    table.refuse(TYPE, kind == "", "a genetic or physical interaction")
    return Interactions(
        table.path.name,
        "SGD",
        "curated",
        table.text(BAIT).match(genes),
        table.text(HIT).match(genes),
        kind,
        {},
    ).both("sgd", genes)


def _kind(text: str) -> str:
    """``physical interactions`` and ``genetic interactions``, in either number."""
    word = text.lower().partition(" ")[0]
    return word if word in (PHYSICAL, GENETIC) else ""
