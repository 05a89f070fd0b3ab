"""UniProt: which gene an accession means, from the mapping file or from the headers of the proteome."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from wildtype.datasets.reading import ReadReport
from wildtype.datasets.records import Publication
from wildtype.errors import SourceError
from wildtype.organism import GeneIndex
from wildtype.sources.publisher import Publisher, RemoteFile
from wildtype.sources.text import AMBIGUOUS, REMEDY, UNKNOWN, count_reasons, match_genes, read_rows
from wildtype.sources.yeast.genes.fasta import FastaRecord, read_fasta
from wildtype.sources.yeast.genes.gff import coding_spans
from wildtype.sources.yeast.genes.sgd import ANNOTATED_GENOME

TAXON = "559292"
FOREIGN = "another organism"
NAMELESS = "no gene name in the header"
OTHER = "another kind of identifier"
LOCUS, GENE = "Gene_OrderedLocusName", "Gene_Name"
AGAIN = "listed twice"
_HEADER = re.compile(r"(?:sp|tr)\|([A-Z0-9]+(?:-\d+)?)\|\S+ .*?OX=(\d+)(?: GN=(.+?))?(?: PE=\d.*)?")
Accessions = Mapping[str, tuple[int, ...]]
"""UniProt accession to the positions of its genes: several where identical proteins share it."""
_HOST = "https://ftp.uniprot.org/pub/databases/uniprot"

PROTEOME = RemoteFile(
    "UP000002311_559292.fasta.gz",
    (
        f"{_HOST}/current_release/knowledgebase/reference_proteomes/Eukaryota/UP000002311/"
        "UP000002311_559292.fasta.gz",
    ),
    aliases=("UP000002311_559292.fasta", "uniprot_UP000002311_2023_11_30.fasta.gz"),
)
MAPPING = RemoteFile(
    "YEAST_559292_idmapping.dat.gz",
    (f"{_HOST}/knowledgebase/idmapping/by_organism/YEAST_559292_idmapping.dat.gz",),
    aliases=("YEAST_559292_idmapping.dat",),
)
PUBLISHER = Publisher(
    name="uniprot",
    title="UniProt: reference proteome UP000002311 and identifiers",
    publication=Publication(
        citation="The UniProt Consortium 2023, UniProt: the Universal Protein Knowledgebase in 2023, "
        "Nucleic Acids Res 51:D523",
        doi="10.1093/nar/gkac1052",
    ),
    licence="CC BY 4.0, not confirmed",
    files=(PROTEOME, MAPPING),
    published={"proteins, 2023-11-30": 6_060},
    notes=(
        "the layout of the mapping (accession, kind of identifier, identifier) is not confirmed",
        "headers of the proteome name genes by their present standard names, which an older gene list may "
        "not know; the mapping has the ORF names and misses none",
        "both change with every release, so that no checksum can be given",
    ),
)


def base_accession(accession: str) -> str:
    """Return an accession without the number of its isoform or chain (``P00410-PRO_0000006048``)."""
    return accession.partition("-")[0]


def has_accessions(folder: str | Path) -> bool:
    """Say whether `read_accessions` finds a file."""
    return any(file.find(folder) is not None for file in (MAPPING, ANNOTATED_GENOME, PROTEOME))


def read_accessions(folder: str | Path, genes: GeneIndex) -> tuple[Accessions, ReadReport]:
    """Return the genes of every accession.

    The first of these files that is there is read: UniProt's mapping; the annotated genome of SGD, whose
    coding rows name the product; the headers of the proteome, which name one gene of each protein (histone
    H3 has two) and may name it by a newer name than the gene list knows.

    Raises
    ------
    SourceError
        If none of the files is there, or it is damaged or not in the published layout.
    """
    if (path := MAPPING.find(folder)) is not None:
        return _from_mapping(path, genes)
    if (path := ANNOTATED_GENOME.find(folder)) is not None:
        return _from_genome(path, genes)
    return _from_headers(PROTEOME.require(folder), genes)


def _from_headers(path: Path, genes: GeneIndex) -> tuple[Accessions, ReadReport]:
    records = read_fasta(path)
    found = [parse_header(record, path) for record in records]
    own = [(base_accession(accession), name) for accession, taxon, name in found if taxon == TAXON and name]
    matched = match_genes([name for _, name in own], genes)
    out: dict[str, tuple[int, ...]] = {}
    for (accession, _), position in zip(own, matched.position, strict=True):
        if position >= 0:
            out.setdefault(accession, (int(position),))
    counts = {
        FOREIGN: sum(taxon != TAXON for _, taxon, _ in found),
        NAMELESS: sum(taxon == TAXON and not name for _, taxon, name in found),
        AGAIN: int(matched.found.sum()) - len(out),
    }
    dropped = {reason: count for reason, count in counts.items() if count} | matched.dropped()
    return out, ReadReport(
        path.name, "UniProt accessions", len(records), len(out), dropped, int(matched.renamed.sum())
    )


def parse_header(record: FastaRecord, path: Path) -> tuple[str, str, str]:
    """Return accession, taxon and gene name (empty if there is none) of a record of UniProt.

    Raises
    ------
    SourceError
        If the header is not one of UniProt.
    """
    found = _HEADER.fullmatch(record.header)
    if found is None:
        raise SourceError(
            f"{path}, line {record.line}: received {record.header[:60]!r}, expected a header of UniProt "
            f"(sp|accession|entry name OS= OX= GN=); {REMEDY}"
        )
    accession, taxon, name = found.groups()
    return accession, taxon, name or ""


def _from_genome(path: Path, genes: GeneIndex) -> tuple[Accessions, ReadReport]:
    spans = coding_spans(path)
    matched = match_genes(spans.names, genes)
    out: dict[str, tuple[int, ...]] = {}
    nameless = kept = 0
    for accession, position in zip(spans.accession, matched.position, strict=True):
        if position >= 0 and accession:
            out[base_accession(accession)] = (*out.get(base_accession(accession), ()), int(position))
            kept += 1
        nameless += position >= 0 and not accession
    dropped = matched.dropped() | ({"no accession": nameless} if nameless else {})
    return out, ReadReport(
        path.name, "UniProt accessions", len(spans.names), kept, dropped, int(matched.renamed.sum())
    )


def _from_mapping(path: Path, genes: GeneIndex) -> tuple[Accessions, ReadReport]:
    """Read ORF names; gene names decide for accessions without one that is known."""
    rows = read_rows(path, fields=3)
    kind = np.array(rows.text(1))
    accession = np.array([base_accession(text) for text in rows.text(0)])
    matched = match_genes(rows.text(2), genes)
    locus, gene = kind == LOCUS, kind == GENE
    gene &= ~np.isin(accession, accession[locus & matched.found])
    out: dict[str, tuple[int, ...]] = {}
    kept = np.zeros(len(rows), bool)
    for i in np.flatnonzero((locus | gene) & matched.found):
        earlier = out.get(str(accession[i]), ())
        if int(matched.position[i]) not in earlier:
            out[str(accession[i])] = (*earlier, int(matched.position[i]))
            kept[i] = True
    used = locus | gene
    dropped = count_reasons(
        {
            OTHER: ~used,
            UNKNOWN: used & (matched.position == -1),
            AMBIGUOUS: used & (matched.position == -2),
            AGAIN: used & matched.found & ~kept,
        }
    )
    return out, ReadReport(
        path.name, "UniProt accessions", len(rows), int(kept.sum()), dropped, int(matched.renamed[kept].sum())
    )
