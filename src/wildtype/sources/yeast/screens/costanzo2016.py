"""Costanzo et al. 2016 (Science 353:aaf1420): unselected digenic interactions of two GO terms (DCell).

The two files of Ma et al. 2018 (Nat Methods 15:290) hold lines ``2 ORF ORF epsilon``, without strains.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wildtype.errors import SourceError
from wildtype.mutants import Kind
from wildtype.organism import GeneIndex
from wildtype.sources.text import REMEDY, add_counts, count_reasons, match_genes, read_rows, require
from wildtype.sources.yeast.names import match_pairs
from wildtype.sources.yeast.screens.digenic import SAME_GENE, Screen, StrainPairs

FILES = ("costanzo2016_dcell_GO0006281_train.txt.gz", "costanzo2016_dcell_GO0000790_train.txt.gz")
STRONG = 0.08
"""The authors' intermediate cut-off on the absolute value of epsilon."""


def present(folder: str | Path) -> bool:
    """Say whether both files are in the folder."""
    return all((Path(folder) / name).is_file() for name in FILES)


def read_pairs(folder: str | Path, genes: GeneIndex, never_deleted: NDArray[np.bool_]) -> Screen:
    """Return the pairs of both files, one strain per gene.

    Parameters
    ----------
    folder : path
        Where the files are.
    genes : GeneIndex
        The n genes.
    never_deleted : bool [n]
        Genes that the study perturbed by hypomorphs only: ``reduced``; all others are ``absent``.

    Raises
    ------
    SourceError
        If a file is missing, damaged, has a label that is not a number, or no usable row.
    """
    parts: list[tuple[NDArray[np.int64], NDArray[np.float64]]] = []
    excluded: dict[str, int] = {}
    count = renamed = 0
    for name in FILES:
        rows = read_rows(require(folder, name), separator=" ", fields=4)
        order = rows.numbers(0)
        rows.refuse(0, order != 2, "2, the number of genes")
        first, second = match_genes(rows.text(1), genes), match_genes(rows.text(2), genes)
        value = rows.numbers(3)
        kept, dropped, _ = match_pairs(first, second)
        same = kept & (first.position == second.position)
        kept = kept & ~same
        if not kept.any():
            raise SourceError(
                f"{rows.path} has no pair of two ORFs of the gene list, expected thousands: {REMEDY}"
            )
        excluded = add_counts(excluded, dropped, count_reasons({SAME_GENE: same}))
        parts.append((np.stack([first.position, second.position], axis=1)[kept], value[kept]))
        count += len(rows)
        renamed += int((kept & (first.renamed | second.renamed)).sum())
    gene = np.concatenate([part[0] for part in parts])
    value = np.concatenate([part[1] for part in parts])
    kind = np.where(never_deleted[gene], Kind.REDUCED, Kind.ABSENT).astype(np.uint8)
    pairs = StrainPairs(gene, kind, gene, value, np.full(len(value), np.nan))
    return Screen(pairs, excluded, count, renamed, FILES)
