"""Coding sequences of all ORFs (SGD), and the features that follow from them.

Legend: n genes · s sequences.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wildtype.datasets.reading import ReadReport
from wildtype.organism import FeatureBlock, GeneIndex
from wildtype.organism.sequence_features import SENSE, coding_blocks, count_codons
from wildtype.sources.text import REMEDY, count_reasons, match_genes
from wildtype.sources.yeast.genes.fasta import read_fasta
from wildtype.sources.yeast.genes.sgd import CODING_SEQUENCES
from wildtype.sources.yeast.names import one_row_per_gene

CODING = "orf_coding_all_R64-2-1.fasta.gz"
SHORT = "shorter than one codon"


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
    names, counts = _codon_counts(path)
    matched = match_genes(names, genes)
    total = counts[:, SENSE].sum(1)
    short = matched.found & (total == 0)
    positions, first, dropped = one_row_per_gene(matched, path, total > 0)
    release = next((word for word in path.name.split("_") if word.startswith("R64")), "").partition(".")[0]
    blocks = coding_blocks(
        counts[first],
        positions,
        len(genes),
        source=f"SGD coding sequences {release}".strip(),
        count=count,
        what=path.name,
    )
    dropped |= count_reasons({SHORT: short})
    return blocks, ReadReport(path.name, "codon_usage, protein", len(names), int(positions.size), dropped)


def _codon_counts(path: Path) -> tuple[list[str], NDArray[np.int64]]:
    """Return the names [s] and the codons in reading frame [s, 64]; a codon with an N counts nowhere."""
    records = read_fasta(path)
    rows = [
        count_codons(
            record.sequence,
            what=f"{path}, line {record.line}: the sequence of {record.name!r}",
            remedy=REMEDY,
        )
        for record in records
    ]
    return [record.name for record in records], np.stack(rows)
