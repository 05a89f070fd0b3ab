"""Where the genes of yeast lie on its chromosomes, from three files: SGD's GFF3 and feature table, and SGA's.

Coordinates from GFF3 are those of the CDS rows: a gene row spans introns, and in recent releases the
untranslated ends of all its transcripts too. Everything from the line ``##FASTA`` on is sequence and is not
read.

Legend: n genes · s ORFs with a coding row.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from wildtype.datasets.reading import ReadReport
from wildtype.errors import SourceError, shown
from wildtype.organism import Coordinates, GeneIndex
from wildtype.sources.row_filter import Floats, Ints, RowFilter
from wildtype.sources.text import REMEDY, match_genes, read_rows, read_text
from wildtype.sources.yeast.files import publisher
from wildtype.sources.yeast.genes.sgd import ANNOTATED_GENOME, FEATURE_TABLE, NO_ORF, SYSTEMATIC, TYPE

PUBLISHER = publisher("sga-coordinates")
(TABLE,) = PUBLISHER.files
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
CODING = "CDS"
FIELDS = 9
MAX_DEPTH = 8
"""Parents above a coding row (a transcript, a gene); more goes in a circle."""
SIGN = {"+": 1, "-": -1, ".": 0, "?": 0}
UNIPROT = "UniProtKB:"
_BASE = re.compile(r"[0-9]{1,12}")


def read_gff_coordinates(folder: str | Path, genes: GeneIndex) -> tuple[Coordinates, ReadReport]:
    """Return the span of the coding rows of every ORF of the annotated genome (GFF3 of SGD).

    Raises
    ------
    SourceError
        If the file is missing, damaged, or has no coding row of a gene.
    """
    path = ANNOTATED_GENOME.require(folder)
    spans = coding_spans(path)
    chromosome = chromosome_numbers(spans.sequence)
    used = RowFilter(len(spans.names))
    return _place(
        path,
        "SGD annotated genome",
        genes,
        used,
        spans.names,
        chromosome,
        spans.start,
        spans.end,
        spans.strand,
    )


def read_feature_coordinates(folder: str | Path, genes: GeneIndex) -> tuple[Coordinates, ReadReport]:
    """Return the places of the ORF rows of `SGD_features.tab`.

    Raises
    ------
    SourceError
        If the file is missing, damaged, or has no ORF with a place.
    """
    rows = read_rows(FEATURE_TABLE.require(folder), fields=16)
    used = RowFilter(len(rows))
    used.drop(NO_ORF, np.array([kind != "ORF" for kind in rows.text(TYPE)]))
    marks = {str(i): name for i, name in enumerate(CHROMOSOMES, 1)}
    chromosome = chromosome_numbers([marks.get(text, text) for text in rows.text(PLACE)])
    start, end = (rows.numbers(position, missing=("",)) for position in (START, STOP))
    strand = np.array([{"W": 1, "C": -1}.get(text, 0) for text in rows.text(STRAND)], dtype=np.int8)
    return _place(
        rows.path, "SGD features", genes, used, rows.text(SYSTEMATIC), chromosome, start, end, strand
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
    # The table has no strand: an ORF on the reverse strand starts beyond its end.
    strand = np.where(start <= end, 1, -1).astype(np.int8)
    used, number = RowFilter(len(rows)), chromosome.astype(np.int64)
    return _place(rows.path, "SGA pipeline", genes, used, rows.text(0), number, start, end, strand)


def chromosome_numbers(names: Sequence[str]) -> Ints:
    """Return the numbers of chromosomes given as ``IV``, ``chrIV``, ``mt`` or ``2-micron``; 0 for others."""
    number = {name: i for i, name in enumerate(CHROMOSOMES, 1)}
    return np.array([number.get(name.removeprefix("chr"), 0) for name in names], dtype=np.int64)


def _place(
    path: Path,
    source: str,
    genes: GeneIndex,
    used: RowFilter,
    names: Sequence[str],
    chromosome: Ints,
    start: Floats,
    end: Floats,
    strand: NDArray[np.int8],
) -> tuple[Coordinates, ReadReport]:
    """Return the places [n] of all genes from the rows that are left, in kb; NaN where a gene has none."""
    n = len(genes)
    matched = match_genes(names, genes)
    placed = (chromosome > 0) & np.isfinite(start) & np.isfinite(end)
    if not (used.left & placed).any():
        raise SourceError(f"{path} has no ORF with a place on a chromosome, expected thousands: {REMEDY}")
    # The place of an ORF that was merged into a gene is not that gene's, where the gene has its own row.
    present = matched.position[used.left & placed & matched.found & ~matched.renamed]
    used.drop_names(matched)
    used.drop(UNPLACED, ~placed)
    used.drop(MERGED, matched.renamed & np.isin(matched.position, present))
    at, first = used.first_of_each(matched, path)
    out = Coordinates(
        np.zeros(n, np.int64), np.full(n, np.nan), np.full(n, np.nan), np.zeros(n, np.int8), source
    )
    out.chromosome[at] = chromosome[first]
    # Left and right end whatever the strand, so that a distance between genes needs no case.
    out.start[at] = np.minimum(start[first], end[first]) / KB
    out.end[at] = np.maximum(start[first], end[first]) / KB
    out.strand[at] = strand[first]
    return out, used.report(path.name, "coordinates", matched.renamed)


@dataclass(frozen=True, eq=False)
class CodingSpans:
    """The spans of the coding rows of s ORFs, in the order of the file.

    Attributes
    ----------
    names : tuple of s str
        Systematic names.
    sequence : tuple of s str
        Chromosomes as the file names them (``chrIV``, ``chrmt``).
    start, end : float64 [s]
        First and last base, from 1.
    strand : int8 [s]
        1 forward, -1 reverse, 0 where neither is given.
    accession : tuple of s str
        UniProt accession of the product; empty where none is given.
    rows : int
        Coding rows in the file.
    """

    names: tuple[str, ...]
    sequence: tuple[str, ...]
    start: NDArray[np.float64]
    end: NDArray[np.float64]
    strand: NDArray[np.int8]
    accession: tuple[str, ...]
    rows: int


class _Coding(NamedTuple):
    line: int
    sequence: str
    start: int
    end: int
    strand: str
    attributes: dict[str, str]


def coding_spans(path: str | Path) -> CodingSpans:
    """Return the span of the coding rows of every ORF.

    A coding row belongs to the uppermost feature above it (its transcript's gene); without one, its name
    contains that of the ORF (``YAL001C_CDS``).

    Raises
    ------
    SourceError
        If the file is damaged, has no coding row, or one that belongs to no ORF or to two chromosomes.
    """
    path = Path(path)
    coding, above = _read(path)
    if not coding:
        raise SourceError(f"{path} holds no row of type {CODING}, expected thousands: {REMEDY}")
    spans: dict[str, tuple[str, int, int, str, str]] = {}
    for row in coding:
        name = _owner(row, above, path)
        product = row.attributes.get("protein_id", "")
        product = product.removeprefix(UNIPROT) if product.startswith(UNIPROT) else ""
        # Exons of one ORF: the span from its first to its last coding base, introns included.
        sequence, start, end, strand, earlier = spans.get(
            name, (row.sequence, row.start, row.end, row.strand, "")
        )
        if sequence != row.sequence:
            raise _wrong(
                path, row.line, f"{shown(name)} on {shown(row.sequence)}", f"it on {shown(sequence)}"
            )
        spans[name] = (sequence, min(start, row.start), max(end, row.end), strand, earlier or product)
    values = list(spans.values())
    return CodingSpans(
        tuple(spans),
        tuple(value[0] for value in values),
        np.array([value[1] for value in values], dtype=np.float64),
        np.array([value[2] for value in values], dtype=np.float64),
        np.array([SIGN[value[3]] for value in values], dtype=np.int8),
        tuple(value[4] for value in values),
        len(coding),
    )


def _read(path: Path) -> tuple[list[_Coding], dict[str, tuple[str, str]]]:
    """Return the coding rows, and name and first parent of every feature with an id."""
    coding: list[_Coding] = []
    above: dict[str, tuple[str, str]] = {}
    for number, line in enumerate(read_text(path).split("\n"), 1):
        if line.startswith(("##FASTA", ">")):
            break
        if not line.strip() or line.startswith("#"):
            continue
        cells = line.split("\t")
        if len(cells) != FIELDS:
            raise _wrong(path, number, f"{len(cells)} fields", f"{FIELDS}")
        attributes = _attributes(cells[8])
        if feature := attributes.get("ID"):
            above[feature] = attributes.get("Name", feature), _first(attributes.get("Parent", ""))
        if cells[2] != CODING:
            continue
        first, last = (int(cell) if _BASE.fullmatch(cell) else 0 for cell in cells[3:5])
        if not 1 <= first <= last:
            raise _wrong(
                path, number, f"bases {shown(cells[3])} to {shown(cells[4])}", "a first and a later last base"
            )
        if cells[6] not in SIGN:
            raise _wrong(path, number, f"strand {shown(cells[6])}", "+, - or .")
        coding.append(_Coding(number, unquote(cells[0]), first, last, cells[6], attributes))
    return coding, above


def _attributes(text: str) -> dict[str, str]:
    """Return the pairs of ``key=value;key=value``; values are percent-encoded."""
    pairs = (part.partition("=") for part in text.strip().split(";"))
    return {unquote(key.strip()): value for key, equals, value in pairs if equals}


def _first(parents: str) -> str:
    return unquote(parents.partition(",")[0])


def _owner(row: _Coding, above: dict[str, tuple[str, str]], path: Path) -> str:
    name, parent = "", _first(row.attributes.get("Parent", ""))
    # Up from the coding row over its transcript to the gene, whose name is the ORF.
    for _ in range(MAX_DEPTH):
        if parent not in above:
            break
        name, parent = above[parent]
    else:
        raise _wrong(path, row.line, "a coding row whose parents go in a circle", "a gene above it")
    listed = row.attributes.get("Name", "")
    name = unquote(name) or unquote(listed).removesuffix(f"_{CODING}")
    if not name:
        raise _wrong(path, row.line, "a coding row without parent or name", "either")
    return name


def _wrong(path: Path, line: int, received: str, expected: str) -> SourceError:
    return SourceError(f"{path}, line {line}: received {received}, expected {expected}; {REMEDY}")
