"""TFLink: transcription factor → target, merged from several databases of regulation."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from wildtype.datasets.reading import ReadReport
from wildtype.datasets.records import Publication
from wildtype.organism import GeneIndex, Relation
from wildtype.sources.columns import TextColumn, read_columns
from wildtype.sources.publisher import Publisher, RemoteFile
from wildtype.sources.text import GeneNames, add_counts, match_genes
from wildtype.sources.yeast.genes.uniprot import Accessions, base_accession
from wildtype.sources.yeast.names import match_pairs

ORGANISM = "Saccharomyces cerevisiae"
FOREIGN = "another organism"
MISSING = "-"
HEADER = (
    "UniprotID.TF", "UniprotID.Target", "NCBI.GeneID.TF", "NCBI.GeneID.Target", "Name.TF", "Name.Target",
    "Detection.method", "PubmedID", "Organism", "Source.database", "Small-scale.evidence", "TF.TFLink.ortho",
    "TF.nonTFLink.ortho", "Target.TFLink.ortho", "Target.nonTFLink.ortho",
)  # fmt: skip
ACCESSION, NAME, SPECIES = (0, 1), (4, 5), 8
FILE = RemoteFile(
    "TFLink_Saccharomyces_cerevisiae_interactions_All_simpleFormat_v1.0.tsv",
    (
        "https://cdn.netbiol.org/tflink/download_files/"
        "TFLink_Saccharomyces_cerevisiae_interactions_All_simpleFormat_v1.0.tsv",
    ),
)
PUBLISHER = Publisher(
    name="tflink",
    title="TFLink: transcription factor and target gene interactions, yeast, v1.0",
    publication=Publication(
        citation="Liska et al. 2022, TFLink: an integrated gateway to access transcription factor-target "
        "gene interactions for multiple species, Database 2022:baac083",
        doi="10.1093/database/baac083",
    ),
    licence="not stated",
    files=(FILE,),
    published={"bytes": 44_170_257},
    notes=(
        "holds YEASTRACT of 2020, GTRD 20.06 and ORegAnno 3; the number of rows is not confirmed",
        "names genes by UniProt accession and name, not by ORF: accessions are the safer of the two",
        "the header was read in the human file; the publisher says that all tables share it",
    ),
)


def read_tflink(
    folder: str | Path, genes: GeneIndex, uniprot: Accessions | None = None
) -> tuple[Relation, ReadReport]:
    """Return the directed, unweighted relation ``tflink``.

    Parameters
    ----------
    folder : path
        Holds the file under its publisher's name.
    genes : GeneIndex
        What the relation is over.
    uniprot : mapping of str to tuple of int, optional
        UniProt accession to genes (`read_accessions`); where an accession is not in it, the name decides. A
        field may list several, which must all mean one gene.

    Raises
    ------
    SourceError
        If the file is missing, damaged or not in the published layout.
    """
    path = FILE.require(folder)
    wanted = {*ACCESSION, *NAME, SPECIES}
    table = read_columns(
        path, types=[str if i in wanted else None for i in range(len(HEADER))], header=HEADER
    )
    own = table.text(SPECIES).map(lambda name: name == ORGANISM, bool)
    ends = [
        _genes(table.text(accession), table.text(name), genes, uniprot or {})
        for accession, name in zip(ACCESSION, NAME, strict=True)
    ]
    regulator, target = (GeneNames(end.position[own], end.renamed[own]) for end in ends)
    kept, dropped, renamed = match_pairs(regulator, target)
    foreign = {FOREIGN: int((~own).sum())} if not own.all() else {}
    how = "UniProt accession, else name" if uniprot else "name"
    relation = Relation.from_edges(
        "tflink",
        regulator.position[kept],
        target.position[kept],
        len(genes),
        directed=True,
        source="TFLink",
        version="1.0",
        note=f"binding or expression evidence; genes found by {how}",
        dropped=add_counts(foreign, dropped),
    )
    return relation, ReadReport(path.name, relation.name, len(own), relation.edges, relation.dropped, renamed)


def _genes(accession: TextColumn, name: TextColumn, genes: GeneIndex, uniprot: Accessions) -> GeneNames:
    listed = sorted({part for text in name.names for part in _parts(text)})
    matched = match_genes(listed, genes)
    position = dict(zip(listed, matched.position.tolist(), strict=True))
    older = dict(zip(listed, matched.renamed.tolist(), strict=True))
    first = accession.map(
        lambda text: _agreed(gene for part in _parts(text) for gene in uniprot.get(base_accession(part), ())),
        np.int64,
    )
    second = name.map(lambda text: _agreed(position[part] for part in _parts(text)), np.int64)
    renamed = name.map(lambda text: any(older[part] for part in _parts(text)), bool)
    return GeneNames(np.where(first == -1, second, first), (first == -1) & renamed)


def _agreed(found: Iterable[int]) -> int:
    """Return the one gene that all known members of a list mean; -1 if none is known, -2 if they differ."""
    known = set(found) - {-1}
    return -1 if not known else known.pop() if len(known) == 1 else -2


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(";") if part.strip() not in ("", MISSING)]
