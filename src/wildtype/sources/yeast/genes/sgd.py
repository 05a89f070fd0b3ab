"""Saccharomyces Genome Database: the reference gene list, lists of names, and the essential genes."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wildtype.datasets.reading import ReadReport
from wildtype.errors import SourceError
from wildtype.organism import GeneIndex
from wildtype.sources.row_filter import LISTED_TWICE, RowFilter, repeated
from wildtype.sources.text import REMEDY, match_genes, read_rows, read_text
from wildtype.sources.yeast.files import publisher

FEATURES = "SGD_features_2020.tab.gz"
ESSENTIAL = "essential_orfs_sgdp_041902.txt.gz"
NO_ORF = "not an ORF"
TYPE, QUALIFIER, SYSTEMATIC, STANDARD, ALIASES, DESCRIPTION = 1, 2, 3, 4, 5, 15
"""Columns of `SGD_features.tab`."""
PUBLISHER, DELETION_PROJECT = publisher("sgd"), publisher("sgdp-essential")
"""SGD, and the strain list of the deletion project, which SGD does not make itself."""
(FEATURE_TABLE, ANNOTATED_GENOME, CODING_SEQUENCES, PROTEIN_SEQUENCES, SYSTEMATIC_NAMES, STANDARD_NAMES) = (
    PUBLISHER.files
)
NO_STANDARD = "no standard name"
DATE = "a spreadsheet's date in place of a name"
_DATE = re.compile(r"\d{1,2}-(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)")
"""The form of OCT1 and MAY24 in a list that went through a spreadsheet program."""
_SGD_ID = re.compile(r"S[0-9]{9}")


def read_genes(folder: str | Path) -> tuple[GeneIndex, ReadReport, str]:
    """Return the index of all ORFs (verified, uncharacterized, dubious), the row counts and a summary.

    The order is that of the file: along the chromosomes. An alias that is the name of another feature (a
    pseudogene, a tRNA, a gene of another strain) is left out, since the name does not mean the ORF.

    Raises
    ------
    SourceError
        If the file is missing, damaged, has no ORF, or names an ORF twice.
    """
    rows = read_rows(FEATURE_TABLE.require(folder), fields=16)
    systematic, standard, further = map(rows.names, (SYSTEMATIC, STANDARD, ALIASES))
    types = np.array(rows.text(TYPE))
    used = RowFilter(len(rows))
    used.drop(NO_ORF, types != "ORF")
    orf = np.flatnonzero(used.left)
    if not orf.size:
        raise SourceError(f"{rows.path} holds no row of type ORF in column 2, expected thousands: {REMEDY}")
    names = [systematic[i] for i in orf]
    for i, again in zip(orf, repeated(names), strict=True):
        if again or not systematic[i]:
            raise rows.error(int(i), systematic[i], "an ORF name in column 4 that no earlier ORF has")
    others = {n for i in np.flatnonzero(~used.left) for n in (systematic[i], standard[i]) if n} - set(names)
    aliases: dict[str, list[str]] = {}
    withheld = 0
    for i in orf:
        given = [alias for alias in further[i].split("|") if alias]
        # A strain that is named so may lack the other feature: its measurements would go to the wrong gene.
        aliases[systematic[i]] = [alias for alias in given if alias not in others]
        withheld += len(given) - len(aliases[systematic[i]])
    described = {systematic[i]: rows.cells[i][DESCRIPTION].strip() for i in orf}
    genes = GeneIndex(names, {systematic[i]: standard[i] for i in orf}, aliases, "yeast", described)
    kinds, counts = np.unique(
        [rows.cells[i][QUALIFIER].split("|")[0].lower() for i in orf], return_counts=True
    )
    what = ", ".join(f"{c:,} {k or 'unqualified'}" for k, c in zip(kinds, counts, strict=True))
    about = (
        f"{len(genes):,} ORFs of SGD ({what}); aliases left out since they name another feature: {withheld}"
    )
    return genes, used.report(rows.path.name, "genes"), about


def read_dubious(folder: str | Path, genes: GeneIndex) -> NDArray[np.bool_]:
    """Return which genes SGD calls dubious [n]: ORFs that are unlikely to encode a protein.

    `read_genes` counts the rows of the same file.

    Raises
    ------
    SourceError
        If the file is missing or damaged.
    """
    rows = read_rows(FEATURE_TABLE.require(folder), fields=16)
    # "Dubious" stands alone or before further qualifiers, as in "Dubious|silenced_gene".
    named = {
        cells[SYSTEMATIC]
        for cells in rows.cells
        if cells[TYPE] == "ORF" and "dubious" in cells[QUALIFIER].lower().split("|")
    }
    return np.array([name in named for name in genes.names], bool)


def read_essential(folder: str | Path, genes: GeneIndex) -> tuple[NDArray[np.bool_], ReadReport]:
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
        DELETION_PROJECT.files[0].require(folder),
        header=("RECORD #", "ORF", "Strain", "PLATE", ...),
        least=2,
        blank_lines=True,
    )
    matched = match_genes([name.upper() for name in rows.text(1)], genes)
    used = RowFilter(len(rows))
    used.drop_names(matched)
    essential = np.zeros(len(genes), bool)
    essential[used.first_of_each(matched, rows.path)[0]] = True
    if rows.blank:
        used.rows += rows.blank
        used.dropped["blank line"] = rows.blank
    return essential, used.report(rows.path.name, "essential", matched.renamed)


def read_sgd_ids(folder: str | Path, genes: GeneIndex) -> tuple[dict[str, int], ReadReport]:
    """Return the gene of every SGD identifier (``S000002362``); features that are no genes are counted.

    Raises
    ------
    SourceError
        If the file is missing, damaged, or has an identifier that is none of SGD or is listed twice.
    """
    path = SYSTEMATIC_NAMES.require(folder)
    # Two blanks separate the columns, in one copy of the list a tab.
    rows = read_rows(path, separator="\t" if "\t" in read_text(path).partition("\n")[0] else " ", least=2)
    ids = rows.text(0)
    wrong = repeated(ids) | np.array([_SGD_ID.fullmatch(sgd_id) is None for sgd_id in ids])
    rows.refuse(0, wrong, "an SGD identifier (S and nine digits) that no earlier row has")
    matched = match_genes([cells[-1].strip() for cells in rows.cells], genes)
    used = RowFilter(len(rows))
    used.drop_names(matched)
    found = {a: int(p) for a, p in zip(ids, matched.position, strict=True) if p >= 0}
    return found, used.report(path.name, "SGD identifiers", matched.renamed)


def read_standard_names(folder: str | Path, genes: GeneIndex) -> tuple[dict[str, str], ReadReport]:
    """Return systematic name to standard name of the genes that have one.

    Raises
    ------
    SourceError
        If the file is missing, damaged or not in the published layout.
    """
    path = STANDARD_NAMES.require(folder)
    rows = read_rows(path, header=("Systematic_name", "Standard_name"))
    matched, standard = match_genes(rows.text(0), genes), rows.text(1)
    used = RowFilter(len(rows))
    used.drop_names(matched)
    used.drop(NO_STANDARD, np.array([not name for name in standard]))
    used.drop(DATE, np.array([_DATE.fullmatch(name) is not None for name in standard]))
    again = np.zeros(len(rows), bool)
    again[used.left] = repeated(matched.position[used.left])
    used.drop(LISTED_TWICE, again)
    out = {genes.names[matched.position[row]]: standard[row] for row in np.flatnonzero(used.left)}
    return out, used.report(path.name, "standard names", matched.renamed)
