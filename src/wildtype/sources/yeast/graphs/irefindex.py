"""Physical protein interactions: iRefIndex, which merges BioGRID, IntAct, DIP, MINT and others."""

from __future__ import annotations

from pathlib import Path

from wildtype.organism import GeneIndex, Relation
from wildtype.phenotypes.reading import Reading
from wildtype.sources.text import match_genes, read_rows, require
from wildtype.sources.yeast.names import match_pairs

IREFINDEX = "ppi_irefindex_pubmed.csv.gz"


def read_physical(folder: str | Path, genes: GeneIndex) -> tuple[Relation, Reading]:
    """Return the undirected, unweighted relation ``physical``; one row of the file per pair and publication.

    Raises
    ------
    SourceError
        If the file is missing, damaged or not in the published layout.
    """
    rows = read_rows(require(folder, IREFINDEX), separator=",", header=("PROTEIN_U", "PROTEIN_V", "PUBMED"))
    first, second = match_genes(rows.text(0), genes), match_genes(rows.text(1), genes)
    kept, dropped, renamed = match_pairs(first, second)
    relation = Relation.from_edges(
        "physical", first.position[kept], second.position[kept], len(genes), directed=False,
        source="iRefIndex", version="with PubMed ids",
        note="a pair that several publications report is one edge; complexes are listed as pairs",
        dropped=dropped,
    )  # fmt: skip
    return relation, Reading(IREFINDEX, relation.name, len(rows), relation.edges, relation.dropped, renamed)
