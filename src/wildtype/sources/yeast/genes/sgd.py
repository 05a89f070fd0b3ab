"""Saccharomyces Genome Database: the reference gene list and its names; the essential genes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wildtype.errors import SourceError
from wildtype.organism import GeneIndex
from wildtype.phenotypes.reading import Reading
from wildtype.sources.text import REMEDY, Rows, match_genes, read_rows, require
from wildtype.sources.yeast.names import one_row_per_gene

FEATURES = "SGD_features_2020.tab.gz"
ESSENTIAL = "essential_orfs_sgdp_041902.txt.gz"
TYPE, QUALIFIER, SYSTEMATIC, STANDARD, ALIASES = 1, 2, 3, 4, 5


def read_genes(folder: str | Path) -> tuple[GeneIndex, Reading, str]:
    """Return the index of all ORFs (verified, uncharacterized, dubious), the row counts and a summary.

    The order is the file's: along the chromosomes. An alias that is the own name of another feature (a
    pseudogene, a tRNA, a gene of another strain) is left out, since the name does not mean the ORF.

    Raises
    ------
    SourceError
        If the file is missing, damaged, has no ORF, or names an ORF twice.
    """
    rows = read_rows(require(folder, FEATURES), fields=16)
    systematic, standard = rows.text(SYSTEMATIC), rows.text(STANDARD)
    types = np.array(rows.text(TYPE))
    orf = np.flatnonzero(types == "ORF")
    if not orf.size:
        raise SourceError(f"{rows.path} holds no row of type ORF in column 2, expected thousands: {REMEDY}")
    names = _unique_names(rows, systematic, orf)
    others = {n for i in np.flatnonzero(types != "ORF") for n in (systematic[i], standard[i]) if n} - set(
        names
    )
    aliases: dict[str, list[str]] = {}
    withheld = 0
    for i in orf:
        given = [alias for alias in rows.cells[i][ALIASES].strip().split("|") if alias]
        kept = [alias for alias in given if alias not in others]
        withheld += len(given) - len(kept)
        aliases[systematic[i]] = kept
    genes = GeneIndex(names, {systematic[i]: standard[i] for i in orf}, aliases, "yeast")
    kinds, counts = np.unique(
        [rows.cells[i][QUALIFIER].split("|")[0].lower() for i in orf], return_counts=True
    )
    what = ", ".join(f"{c:,} {k or 'unqualified'}" for k, c in zip(kinds, counts, strict=True))
    about = (
        f"{len(genes):,} ORFs of SGD ({what}); aliases left out since they name another feature: {withheld}"
    )
    dropped = {"not an ORF": len(rows) - orf.size} if len(rows) > orf.size else {}
    return genes, Reading(FEATURES, "genes", len(rows), int(orf.size), dropped), about


def _unique_names(rows: Rows, systematic: list[str], orf: NDArray[np.int64]) -> list[str]:
    seen: set[str] = set()
    for i in orf:
        if not systematic[i] or systematic[i] in seen:
            raise rows.error(int(i), systematic[i], "an ORF name in column 4 that no earlier ORF has")
        seen.add(systematic[i])
    return [systematic[i] for i in orf]


def read_essential(folder: str | Path, genes: GeneIndex) -> tuple[NDArray[np.bool_], Reading]:
    """Return which genes the Saccharomyces Genome Deletion Project found essential [n], and the row counts.

    The list is of 2002-04-19 (Giaever et al. 2002, Nature 418:387); a few dozen of its genes have since been
    deleted alive. Names are compared without regard to case.

    Raises
    ------
    SourceError
        If the file is missing, damaged or names no known gene.
    """
    # Notes at the end of a line bring further tabs, so only the first columns can be held to a number.
    rows = read_rows(
        require(folder, ESSENTIAL),
        header=("RECORD #", "ORF", "Strain", "PLATE", ...),
        least=2,
        blank_lines=True,
    )
    matched = match_genes([name.upper() for name in rows.text(1)], genes)
    found, first, dropped = one_row_per_gene(matched, rows.path)
    essential = np.zeros(len(genes), bool)
    essential[found] = True
    if rows.blank:
        dropped["blank line"] = rows.blank
    renamed = int(matched.renamed[first].sum())
    return essential, Reading(
        ESSENTIAL, "essential", len(rows) + rows.blank, int(found.size), dropped, renamed
    )
