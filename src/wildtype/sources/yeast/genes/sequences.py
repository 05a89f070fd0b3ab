"""Coding sequences of all ORFs (SGD): codon usage, amino-acid composition and length.

Legend: n genes · s sequences · 64 codons in the order TTT, TTC, TTA … of the genetic-code tables.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wildtype.errors import SourceError
from wildtype.organism import FeatureBlock, GeneIndex
from wildtype.phenotypes.reading import Reading
from wildtype.sources.text import REMEDY, count_reasons, match_genes
from wildtype.organism.components import components, spread
from wildtype.sources.yeast.genes.fasta import read_fasta
from wildtype.sources.yeast.genes.sgd import CODING_SEQUENCES
from wildtype.sources.yeast.names import one_row_per_gene

CODING = "orf_coding_all_R64-2-1.fasta.gz"
BASES = "TCAG"
STANDARD_CODE = "FFLLSSSSYY**CC*WLLLLPPPPHHQQRRRRIIIMTTTTNNKKSSRRVVVVAAAADDEEGGGG"
SENSE = np.array([aa != "*" for aa in STANDARD_CODE])
AMINO_ACIDS = "ACDEFGHIKLMNPQRSTVWY"
PROTEIN_COLUMNS = (*(f"fraction_{aa}" for aa in AMINO_ACIDS), "log10_length")
SHORT = "shorter than one codon"


def read_sequence_blocks(
    folder: str | Path, genes: GeneIndex, count: int = 24
) -> tuple[list[FeatureBlock], Reading]:
    """Return ``codon_usage`` [n, 24] and ``protein`` [n, 21] (amino-acid fractions, log10 length).

    Codon usage is the leading principal components of the relative frequencies of the 61 sense codons. The
    standard code is used throughout; the eight mitochondrial genes differ from it in a few codons.

    Raises
    ------
    SourceError
        If the file is missing, damaged, or not FASTA of DNA letters.
    """
    path = CODING_SEQUENCES.require(folder)
    names, counts = _codon_counts(path)
    matched = match_genes(names, genes)
    total = counts[:, SENSE].sum(1)
    short = matched.found & (total == 0)
    positions, first, dropped = one_row_per_gene(matched, path, total > 0)
    counts, total = counts[first], total[first]
    frequency = counts[:, SENSE] / total[:, None]
    scores = components(frequency - frequency.mean(0), count, path.name)
    letters = np.array(list(STANDARD_CODE))
    composition = np.stack([counts[:, letters == aa].sum(1) / total for aa in AMINO_ACIDS], axis=1)
    protein = np.concatenate([composition, np.log10(total)[:, None]], axis=1)
    release = next((word for word in path.name.split("_") if word.startswith("R64")), "").partition(".")[0]
    n, source = len(genes), f"SGD coding sequences {release}".strip()
    blocks = [
        FeatureBlock(
            "codon_usage", spread(scores, positions, n),
            tuple(f"component{i + 1}" for i in range(scores.shape[1])), source,
            note="61 sense codons, standard genetic code",
        ),
        FeatureBlock(
            "protein", spread(protein, positions, n),
            PROTEIN_COLUMNS, source,
            note="translated by the standard genetic code",
        ),
    ]  # fmt: skip
    dropped |= count_reasons({SHORT: short})
    return blocks, Reading(path.name, "codon_usage, protein", len(names), int(positions.size), dropped)


def _codon_counts(path: Path) -> tuple[list[str], NDArray[np.int64]]:
    """Return the names [s] and the codons in reading frame [s, 64]; a codon with an N counts nowhere."""
    code = np.full(256, 255, np.uint8)
    for value, base in enumerate(BASES):
        code[ord(base)] = value
    for ambiguous in "NRYKMSW":
        code[ord(ambiguous)] = 4
    names: list[str] = []
    rows: list[NDArray[np.int64]] = []
    for record in read_fasta(path):
        bases = code[np.frombuffer(record.sequence.encode(), np.uint8)]
        if (bases == 255).any():
            raise SourceError(
                f"{path}, line {record.line}: the sequence of {record.name!r} has a letter other than "
                f"A, C, G, T, N; {REMEDY}"
            )
        triplets = bases[: bases.size // 3 * 3].reshape(-1, 3).astype(np.int64)
        clear = (triplets < 4).all(1)
        rows.append(np.bincount(triplets[clear] @ np.array([16, 4, 1]), minlength=64))
        names.append(record.name)
    return names, np.stack(rows)
