"""UniProt: which gene an accession means, from the mapping file or from the headers of the proteome."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from wildtype.datasets.reading import ReadReport
from wildtype.errors import SourceError
from wildtype.organism import GeneIndex
from wildtype.sources.fasta import FastaRecord, read_fasta
from wildtype.sources.row_filter import LISTED_TWICE, RowFilter
from wildtype.sources.text import REMEDY, match_genes, read_rows
from wildtype.sources.yeast.files import publisher
from wildtype.sources.yeast.genes.coordinates import coding_spans
from wildtype.sources.yeast.genes.sgd import ANNOTATED_GENOME

TAXON = "559292"
FOREIGN = "another organism"
NAMELESS = "no gene name in the header"
OTHER = "another kind of identifier"
LOCUS, GENE = "Gene_OrderedLocusName", "Gene_Name"
USE = "UniProt accessions"
_HEADER = re.compile(r"(?:sp|tr)\|([A-Z0-9]+(?:-\d+)?)\|\S+ .*?OX=(\d+)(?: GN=(.+?))?(?: PE=\d.*)?")
Accessions = Mapping[str, tuple[int, ...]]
"""UniProt accession to the positions of its genes: several where identical proteins share it."""
PUBLISHER = publisher("uniprot")
PROTEOME, MAPPING = PUBLISHER.files


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
    accession, taxon, name = zip(*(parse_header(record, path) for record in records), strict=True)
    matched = match_genes(name, genes)
    used = RowFilter(len(records))
    used.drop(FOREIGN, np.array([of != TAXON for of in taxon]))
    used.drop(NAMELESS, np.array([not text for text in name]))
    used.drop_names(matched)
    out: dict[str, tuple[int, ...]] = {}
    again = np.zeros(len(records), bool)
    for i in np.flatnonzero(used.left).tolist():
        # Isoforms have accessions of their own, with a number, and are of the gene of their first form.
        base = base_accession(accession[i])
        again[i] = base in out
        out.setdefault(base, (int(matched.position[i]),))
    used.drop(LISTED_TWICE, again)
    return out, used.report(path.name, USE, matched.renamed)


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
    used = RowFilter(len(spans.names))
    used.drop_names(matched)
    used.drop("no accession", np.array([not accession for accession in spans.accession]))
    out: dict[str, tuple[int, ...]] = {}
    for i in np.flatnonzero(used.left).tolist():
        base = base_accession(spans.accession[i])
        out[base] = (*out.get(base, ()), int(matched.position[i]))
    return out, used.report(path.name, USE, matched.renamed)


def _from_mapping(path: Path, genes: GeneIndex) -> tuple[Accessions, ReadReport]:
    """Read ORF names; gene names decide for accessions without one that is known."""
    rows = read_rows(path, fields=3)
    kind = np.array(rows.text(1))
    accession = np.array([base_accession(text) for text in rows.text(0)])
    matched = match_genes(rows.text(2), genes)
    locus, gene = kind == LOCUS, kind == GENE
    # A gene name may have moved to another gene since; an ORF name never does, so it goes first.
    gene &= ~np.isin(accession, accession[locus & matched.found])
    used = RowFilter(len(rows))
    used.drop(OTHER, ~(locus | gene))
    used.drop_names(matched)
    out: dict[str, tuple[int, ...]] = {}
    again = np.zeros(len(rows), bool)
    for i in np.flatnonzero(used.left):
        earlier, position = out.get(str(accession[i]), ()), int(matched.position[i])
        again[i] = position in earlier
        if not again[i]:
            out[str(accession[i])] = (*earlier, position)
    used.drop(LISTED_TWICE, again)
    return out, used.report(path.name, USE, matched.renamed)
