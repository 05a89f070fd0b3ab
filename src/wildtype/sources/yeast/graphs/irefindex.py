"""Physical protein interactions: iRefIndex, which merges BioGRID, IntAct, DIP, MINT and others."""

from __future__ import annotations

from pathlib import Path

from wildtype.datasets.reading import ReadReport
from wildtype.datasets.records import Publication
from wildtype.organism import GeneIndex, Relation
from wildtype.sources.publisher import Publisher, RemoteFile
from wildtype.sources.text import match_genes, read_rows
from wildtype.sources.yeast.names import match_pairs

IREFINDEX = "ppi_irefindex_pubmed.csv.gz"
FILE = RemoteFile(
    IREFINDEX.removesuffix(".gz"),
    (
        "https://raw.githubusercontent.com/avancayetano/cs199-bioinformatics/"
        "c3bca8be3a21bd4848a6f833556e5b5db49d69a3/data/preprocessed/irefindex_pubmed.csv",
    ),
    aliases=("irefindex_pubmed.csv",),
)
PUBLISHER = Publisher(
    name="irefindex",
    title="iRefIndex: physical interactions of BioGRID, IntAct, DIP, MINT and others, merged",
    publication=Publication(
        citation="Razick, Magklaras and Donaldson 2008, iRefIndex: a consolidated protein interaction "
        "database with provenance, BMC Bioinformatics 9:405",
        doi="10.1186/1471-2105-9-405",
    ),
    licence="that of the databases it merges",
    files=(FILE,),
    published={"rows": 97_810, "pairs": 68_651},
    notes=("as prepared by others: one row per pair of ORFs and publication",),
)


def read_physical(folder: str | Path, genes: GeneIndex) -> tuple[Relation, ReadReport]:
    """Return the undirected, unweighted relation ``physical``; one row of the file per pair and publication.

    Raises
    ------
    SourceError
        If the file is missing, damaged or not in the published layout.
    """
    rows = read_rows(FILE.require(folder), separator=",", header=("PROTEIN_U", "PROTEIN_V", "PUBMED"))
    first, second = match_genes(rows.text(0), genes), match_genes(rows.text(1), genes)
    kept, dropped, renamed = match_pairs(first, second)
    relation = Relation.from_edges(
        "physical",
        first.position[kept],
        second.position[kept],
        len(genes),
        directed=False,
        source="iRefIndex",
        version="with PubMed ids",
        note="a pair that several publications report is one edge; complexes are listed as pairs",
        dropped=dropped,
    )
    return relation, ReadReport(
        rows.path.name, relation.name, len(rows), relation.edges, relation.dropped, renamed
    )
