"""Sequences of all genes and features that follow from them: codons of the ORFs (SGD), and their proteins.

Proteins are SGD's translations of the ORFs, or UniProt's reference proteome.

Legend: n genes · s sequences.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from wildtype.datasets.reading import ReadReport
from wildtype.errors import SourceError
from wildtype.organism import FeatureBlock, GeneIndex
from wildtype.organism.sequence_features import (
    AMINO_ACIDS,
    SENSE,
    STOP,
    UNSURE,
    coding_blocks,
    count_codons,
    protein_blocks,
)
from wildtype.sources.fasta import FastaRecord, read_fasta
from wildtype.sources.row_filter import LISTED_TWICE, RowFilter
from wildtype.sources.text import REMEDY, UNKNOWN, match_genes
from wildtype.sources.yeast.genes.sgd import CODING_SEQUENCES, PROTEIN_SEQUENCES
from wildtype.sources.yeast.genes.uniprot import PROTEOME, base_accession, parse_header, read_accessions

CODING = "orf_coding_all_R64-2-1.fasta.gz"
SHORT = "shorter than one codon"
LETTERS = frozenset(AMINO_ACIDS + UNSURE + STOP)
"""The twenty amino acids, two rare ones, four marks of doubt, and the end."""
INNER_STOP = "a stop inside the sequence"
EMPTY = "no amino acid"


def read_sequence_blocks(
    folder: str | Path, genes: GeneIndex, count: int = 24
) -> tuple[list[FeatureBlock], ReadReport]:
    """Return the blocks of ``coding_blocks``: codon usage and bias, the protein and its properties.

    The eight mitochondrial genes differ from the standard code in a few codons.

    Raises
    ------
    SourceError
        If the file is missing, damaged, or not FASTA of DNA letters.
    """
    path = CODING_SEQUENCES.require(folder)
    records = read_fasta(path)
    counts = np.stack(
        [
            count_codons(
                record.sequence,
                what=f"{path}, line {record.line}: the sequence of {record.name!r}",
                remedy=REMEDY,
            )
            for record in records
        ]
    )
    matched = match_genes([record.name for record in records], genes)
    used = RowFilter(len(records))
    used.drop_names(matched)
    # A codon with an N counts nowhere, so that a sequence of several bases can have no codon left.
    used.drop(SHORT, counts[:, SENSE].sum(1) == 0)
    positions, first = used.first_of_each(matched, path)
    release = next((word for word in path.name.split("_") if word.startswith("R64")), "").partition(".")[0]
    blocks = coding_blocks(
        counts[first],
        positions,
        len(genes),
        source=f"SGD coding sequences {release}".strip(),
        count=count,
        what=path.name,
    )
    return blocks, used.report(path.name, "codon_usage, protein")


@dataclass(frozen=True, eq=False)
class Proteins:
    """The sequence of every gene's product.

    Attributes
    ----------
    sequence : tuple of n str
        One-letter code without the stop; empty where there is none.
    source : str
        Where they come from.
    """

    sequence: tuple[str, ...]
    source: str

    def blocks(self) -> list[FeatureBlock]:
        """Return composition and length, and properties; see ``protein_blocks``."""
        return protein_blocks(self.sequence, source=self.source)


def has_proteins(folder: str | Path) -> bool:
    """Say whether `read_proteins` finds a file."""
    return PROTEIN_SEQUENCES.find(folder) is not None or PROTEOME.find(folder) is not None


def read_proteins(folder: str | Path, genes: GeneIndex) -> tuple[Proteins, ReadReport]:
    """Return the translations of SGD, else the sequences of UniProt's proteome.

    Sequences with a stop inside (a pseudogene, a blocked frame) are left out and counted.

    Raises
    ------
    SourceError
        If there is neither file, or it is damaged or has a letter that is no amino acid.
    """
    path = PROTEIN_SEQUENCES.find(folder)
    if path is not None:
        records = read_fasta(path)
        matched = match_genes([record.name for record in records], genes)
        meant: list[tuple[int, ...]] = [
            (int(position),) if position >= 0 else () for position in matched.position
        ]
        older, source = matched.renamed, "SGD translations of ORFs"
    else:
        path = PROTEOME.require(folder)
        records = read_fasta(path)
        known = read_accessions(folder, genes)[0]
        meant = [known.get(base_accession(parse_header(record, path)[0]), ()) for record in records]
        older, source = np.zeros(len(records), bool), "UniProt reference proteome"
    out = [""] * len(genes)
    kept = np.zeros(len(records), bool)
    dropped: Counter[str] = Counter()
    for i in np.argsort(older, kind="stable"):  # present names before older ones of the same gene
        reason, sequence = _sequence(records[i], path)
        # Identical proteins share an accession: one sequence may be of two genes (histones).
        free = [gene for gene in meant[i] if not out[gene]]
        kept[i] = bool(free) and not reason
        if not kept[i]:
            dropped[UNKNOWN if not meant[i] else reason or LISTED_TWICE] += 1
            continue
        for gene in free:
            out[gene] = sequence
    if not kept.any():
        raise SourceError(f"{path} has no sequence of a gene of the organism, expected thousands: {REMEDY}")
    return Proteins(tuple(out), source), ReadReport(
        path.name,
        "proteins",
        len(records),
        int(kept.sum()),
        dict(sorted(dropped.items())),
        int((kept & older).sum()),
    )


def _sequence(record: FastaRecord, path: Path) -> tuple[str, str]:
    """Return why a sequence is not used (empty if it is), and the sequence without its stop."""
    wrong = set(record.sequence) - LETTERS
    if wrong:
        raise SourceError(
            f"{path}, line {record.line}: the sequence of {record.name!r} has the letter {min(wrong)!r}, "
            f"expected amino acids; {REMEDY}"
        )
    sequence = record.sequence.removesuffix(STOP)
    # A stop at the end is part of every translation; one inside is a pseudogene or a shifted frame.
    return (INNER_STOP if STOP in sequence else "" if sequence else EMPTY), sequence
