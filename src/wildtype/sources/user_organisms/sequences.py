"""Sequences of genes from FASTA files: proteins, or coding sequences in frame.

Legend: s sequences of the file · n genes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from wildtype.errors import SourceError
from wildtype.organism import FeatureBlock, GeneIndex
from wildtype.organism.sequence_features import (
    AMINO_ACIDS,
    CODONS,
    SENSE,
    STANDARD_CODE,
    STOP,
    UNSURE,
    coding_blocks,
    count_codons,
    protein_blocks,
)
from wildtype.sources.fasta import FastaRecord, read_fasta
from wildtype.sources.row_filter import RowFilter
from wildtype.sources.text import GeneNames, match_genes
from wildtype.sources.user_organisms.description import SequencesPart
from wildtype.sources.user_organisms.gene_sets import lost_names
from wildtype.sources.user_organisms.problems import Problems
from wildtype.sources.user_organisms.reading import FileCard, Read, locate, no_gene_known

BASES = frozenset("ACGTUNRYKMSW")
LETTERS = frozenset(AMINO_ACIDS + UNSURE + STOP)
FRAME, INNER_STOP, EMPTY = "length no multiple of three", "a stop inside the sequence", "no usable letter"
SHORTER = "another sequence of the gene, of which the longest is read"
_STOPS = {codon for codon, letter in zip(CODONS, STANDARD_CODE, strict=True) if letter == STOP}
_TAGS = (
    re.compile(r"\[locus_tag=([^\]]+)\]"),  # NCBI
    re.compile(r"\blocus_tag[=:](\S+)"),
    re.compile(r"\bGN=(\S+)"),  # UniProt
    re.compile(r"\[gene=([^\]]+)\]"),
    re.compile(r"\bgene[=:](\S+)"),  # Ensembl
    re.compile(r"\bgene_symbol[=:](\S+)"),
    re.compile(r"\[protein_id=([^\]]+)\]"),
)
"""Where headers name genes, the most certain place first."""
_SWISS = re.compile(r"(?:sp|tr)\|([^|\s]+)\|([^|_\s]+)_\S+")
_RELEASE = re.compile(r"\.\d+$")


def identifiers(header: str) -> Iterator[str]:
    """Yield what a header may name its gene by, the most certain first.

    The first word; what follows ``locus_tag=``, ``GN=`` and ``gene=``; accession and entry name of UniProt;
    and the same without the number of a release, as in ``ENSG00000141510.18``.
    """
    word = header.split()[0]
    swiss = _SWISS.match(word)
    found = [word] if swiss is None else []
    found += [tag[1] for pattern in _TAGS for tag in pattern.finditer(header)]
    if swiss is not None:
        # The accession is of one protein for ever; the stem of the entry name is often an old symbol.
        found += [swiss[1], swiss[1].partition("-")[0], swiss[2]]
    elif "|" in word:
        found += [part for part in word.split("|") if len(part) > 3]
    names = [name.strip(" ;,") for name in found]
    yield from dict.fromkeys([*names, *(_RELEASE.sub("", name) for name in names)])


def read(part: SequencesPart, folder: Path, names: GeneIndex, problems: Problems) -> Read:
    """Return the blocks that follow from sequences, as those of yeast; of several of a gene the longest."""
    with problems.of(part.path):
        path = locate(part.path, folder, problems)
        if path is not None:
            return _read(part, path, names, problems)
    return Read()


def names_in(part: SequencesPart, folder: Path, problems: Problems) -> list[str]:
    """Return what headers name genes by: the tag of a locus or a gene where there is one, else the first
    word.
    """
    with problems.of(part.path):
        path = locate(part.path, folder, problems)
        if path is not None:
            out = set()
            for record in read_fasta(path):
                tags = (tag[1] for pattern in _TAGS for tag in pattern.finditer(record.header))
                out.add(next(tags, next(identifiers(record.header))))
            return sorted(out)
    return []


def _read(part: SequencesPart, path: Path, genes: GeneIndex, problems: Problems) -> Read:
    records = read_fasta(path)
    matched = _matched(records, genes)
    spelled = [record.name for record in records]
    if not matched.found.any():
        raise no_gene_known(part.path, spelled, genes.organism)
    coding = _is_coding(records)
    letters, what = (BASES, "bases") if coding else (LETTERS, "amino acids")
    for record in records:
        if strange := set(record.sequence) - letters:
            problems.add(
                part.path,
                record.line,
                f"the sequence of {record.name!r} has the letter {min(strange)!r}, expected {what}: correct "
                f"it, and give proteins and coding sequences as two files",
            )
    used = RowFilter(len(records))
    reason = np.array([_fault(record.sequence, coding) for record in records])
    for text in (EMPTY, FRAME, INNER_STOP):
        used.drop(text, reason == text)
    used.drop_names(matched)
    used.drop(SHORTER, _shorter(records, matched, used))
    at = np.flatnonzero(used.left)
    what = "coding sequences" if coding else "proteins"
    if not at.size:
        raise SourceError(f"no gene has a usable sequence ({used.dropped}): give {what} in frame")
    if problems:
        return Read()
    blocks = _blocks(part, [records[i] for i in at], matched.position[at], coding, genes)
    card = FileCard(
        part.path,
        f"features {', '.join(block.name for block in blocks)}",
        used.rows,
        int(used.left.sum()),
        used.dropped,
        f"read as {what}",
        lost_names(spelled, matched),
    )
    return Read((card,), features=tuple(blocks))


def _matched(records: list[FastaRecord], genes: GeneIndex) -> GeneNames:
    """Return the gene of every sequence: of the first identifier that names one."""
    given = [list(identifiers(record.header)) for record in records]
    known = sorted({name for names in given for name in names})
    each = match_genes(known, genes)
    found = {
        name: (int(position), bool(renamed))
        for name, position, renamed in zip(known, each.position, each.renamed, strict=True)
    }
    position, renamed = np.full(len(records), -1), np.zeros(len(records), bool)
    for i, names in enumerate(given):
        meant = [found[name] for name in names]
        # An ambiguous name decides only where no other one means a gene.
        best = next((one for one in meant if one[0] >= 0), (min((p for p, _ in meant), default=-1), False))
        position[i], renamed[i] = best
    return GeneNames(position, renamed)


def _is_coding(records: list[FastaRecord]) -> bool:
    """Say whether most letters are those of four bases."""
    text = "".join(record.sequence for record in records[:200])
    return sum(text.count(base) for base in "ACGTUN") > 0.9 * len(text)


def _fault(sequence: str, coding: bool) -> str:
    """Return why a sequence is not used; empty if it is."""
    if coding:
        if len(sequence) % 3:
            return FRAME
        codons = [sequence[i : i + 3].replace("U", "T") for i in range(0, len(sequence), 3)]
        if any(codon in _STOPS for codon in codons[:-1]):
            return INNER_STOP
        return "" if any(set(c) <= set("ACGT") and c not in _STOPS for c in codons) else EMPTY
    body = sequence.removesuffix(STOP)
    if STOP in body:
        return INNER_STOP
    return "" if set(body) & set(AMINO_ACIDS) else EMPTY


def _shorter(records: list[FastaRecord], matched: GeneNames, used: RowFilter) -> np.ndarray:
    """Return the sequences [s] of which their gene has a longer one, or an earlier one of that length."""
    longest: dict[int, int] = {}
    for i in np.flatnonzero(used.left).tolist():
        gene = int(matched.position[i])
        if gene not in longest or len(records[i].sequence) > len(records[longest[gene]].sequence):
            longest[gene] = i
    out = used.left.copy()
    out[list(longest.values())] = False
    return out


def _blocks(
    part: SequencesPart, records: list[FastaRecord], position: np.ndarray, coding: bool, genes: GeneIndex
) -> list[FeatureBlock]:
    source = part.source or Path(part.path).name
    if coding:
        counts = np.stack([count_codons(record.sequence) for record in records])
        assert counts[:, SENSE].sum(1).all()
        return coding_blocks(counts, position, len(genes), source=source, what=part.path)
    laid_out = [""] * len(genes)
    for record, gene in zip(records, position.tolist(), strict=True):
        laid_out[gene] = record.sequence.removesuffix(STOP)
    return protein_blocks(laid_out, source=source)
