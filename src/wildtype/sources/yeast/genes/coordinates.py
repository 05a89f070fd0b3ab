"""Where the genes of yeast lie on its chromosomes, from three files that say so."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wildtype.datasets.reading import ReadReport
from wildtype.datasets.records import Publication
from wildtype.errors import SourceError
from wildtype.organism import Coordinates, GeneIndex
from wildtype.sources.publisher import Publisher, RemoteFile
from wildtype.sources.text import REMEDY, count_reasons, match_genes, read_rows
from wildtype.sources.yeast.genes.gff import coding_spans
from wildtype.sources.yeast.genes.sgd import ANNOTATED_GENOME, FEATURE_TABLE, SYSTEMATIC, TYPE
from wildtype.sources.yeast.names import one_row_per_gene

NUCLEAR = (
    "I",
    "II",
    "III",
    "IV",
    "V",
    "VI",
    "VII",
    "VIII",
    "IX",
    "X",
    "XI",
    "XII",
    "XIII",
    "XIV",
    "XV",
    "XVI",
)
CHROMOSOMES = (*NUCLEAR, "mt", "2-micron")
"""Names of chromosomes 1 to 18: sixteen nuclear ones, the mitochondrion's, the plasmid."""
MERGED = "ORF merged into a gene that has its own row"
UNPLACED = "no place on a chromosome"
PLACE, START, STOP, STRAND = 8, 9, 10, 11
KB = 1000.0
TABLE = RemoteFile(
    "chrom_coordinates_150617.tab",
    (
        "https://raw.githubusercontent.com/csbio/SGA_Public/"
        "9af61d1a12fcc42290393e5461ad1c0f70eb4a98/refdata/chrom_coordinates_150617.tab",
    ),
    aliases=("sga_chrom_coordinates_150617.tsv",),
)
PUBLISHER = Publisher(
    name="sga-coordinates",
    title="Coordinates of ORFs by which SGA scores of linked pairs are masked",
    publication=Publication(
        citation="Baryshnikova et al. 2010, Quantitative analysis of fitness and genetic interactions in "
        "yeast on a genome scale, Nat Methods 7:1017",
        doi="10.1038/nmeth.1534",
    ),
    licence="not stated",
    files=(TABLE,),
    notes=("ORF, chromosome, start and end in bases; start is beyond end on the reverse strand",),
)


def read_gff_coordinates(folder: str | Path, genes: GeneIndex) -> tuple[Coordinates, ReadReport]:
    """Return the span of the coding rows of every ORF of the annotated genome (GFF3 of SGD).

    Raises
    ------
    SourceError
        If the file is missing, damaged, or has no coding row of a gene.
    """
    path = ANNOTATED_GENOME.require(folder)
    spans = coding_spans(path)
    return _placed(
        path,
        spans.names,
        chromosome_numbers(spans.sequence),
        spans.start,
        spans.end,
        spans.strand,
        genes,
        "SGD annotated genome",
    )


def read_feature_coordinates(folder: str | Path, genes: GeneIndex) -> tuple[Coordinates, ReadReport]:
    """Return the places of the ORF rows of `SGD_features.tab`.

    Raises
    ------
    SourceError
        If the file is missing, damaged, or has no ORF with a place.
    """
    rows = read_rows(FEATURE_TABLE.require(folder), fields=16)
    orf = np.array([kind == "ORF" for kind in rows.text(TYPE)])
    marks = {str(i): name for i, name in enumerate(CHROMOSOMES, 1)}
    chromosome = chromosome_numbers([marks.get(text, text) for text in rows.text(PLACE)])
    sign = np.array([{"W": 1, "C": -1}.get(text, 0) for text in rows.text(STRAND)], dtype=np.int8)
    ends = [np.where(orf, rows.numbers(position, missing=("",)), np.nan) for position in (START, STOP)]
    at = np.flatnonzero(orf)
    names = rows.text(SYSTEMATIC)
    return _placed(
        rows.path,
        [names[i] for i in at],
        chromosome[at],
        ends[0][at],
        ends[1][at],
        sign[at],
        genes,
        "SGD features",
        others=len(rows) - at.size,
    )


def read_sga_coordinates(folder: str | Path, genes: GeneIndex) -> tuple[Coordinates, ReadReport]:
    """Return the places by which the SGA pipeline masks linked pairs: ORF, chromosome, start, end.

    Raises
    ------
    SourceError
        If the file is missing, damaged, has a chromosome other than 1 to 16, or a base that is no whole
        number.
    """
    rows = read_rows(TABLE.require(folder), fields=4)
    chromosome = rows.numbers(1)
    rows.refuse(1, ~np.isin(chromosome, range(1, len(NUCLEAR) + 1)), "a chromosome of 1 to 16")
    start, end = rows.numbers(2), rows.numbers(3)
    for position, base in ((2, start), (3, end)):
        rows.refuse(position, (base < 1) | (base % 1 != 0), "a base, a whole number of at least 1")
    strand = np.where(start <= end, 1, -1).astype(np.int8)
    return _placed(
        rows.path, rows.text(0), chromosome.astype(np.int64), start, end, strand, genes, "SGA pipeline"
    )


def chromosome_numbers(names: Sequence[str]) -> NDArray[np.int64]:
    """Return the numbers of chromosomes given as ``IV``, ``chrIV``, ``mt`` or ``2-micron``; 0 for others."""
    number = {name: i for i, name in enumerate(CHROMOSOMES, 1)}
    return np.array([number.get(name.removeprefix("chr"), 0) for name in names], dtype=np.int64)


def _placed(
    path: Path,
    names: Sequence[str],
    chromosome: NDArray[np.int64],
    start: NDArray[np.float64],
    end: NDArray[np.float64],
    strand: NDArray[np.int8],
    genes: GeneIndex,
    source: str,
    others: int = 0,
) -> tuple[Coordinates, ReadReport]:
    """Lay the rows of ORFs out over all n genes; ``others`` rows of the file are no ORFs."""
    n = len(genes)
    matched = match_genes(names, genes)
    usable = (chromosome > 0) & np.isfinite(start) & np.isfinite(end)
    if not usable.any():
        raise SourceError(f"{path} has no ORF with a place on a chromosome, expected thousands: {REMEDY}")
    # The place of an ORF that was merged into a gene is not that gene's, where the gene has its own row.
    own = np.isin(matched.position, matched.position[usable & matched.found & ~matched.renamed])
    merged = usable & matched.found & matched.renamed & own
    at, first, dropped = one_row_per_gene(matched, path, usable & ~merged)
    dropped |= count_reasons({UNPLACED: matched.found & ~usable, MERGED: merged})
    out = Coordinates(
        np.zeros(n, np.int64), np.full(n, np.nan), np.full(n, np.nan), np.zeros(n, np.int8), source
    )
    out.chromosome[at] = chromosome[first]
    out.start[at] = np.minimum(start[first], end[first]) / KB
    out.end[at] = np.maximum(start[first], end[first]) / KB
    out.strand[at] = strand[first]
    if others:
        dropped["not an ORF"] = others
    return out, ReadReport(
        path.name,
        "coordinates",
        len(names) + others,
        int(at.size),
        dropped,
        int(matched.renamed[first].sum()),
    )
