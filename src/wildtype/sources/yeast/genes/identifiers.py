"""Lists of names: SGD identifiers to ORFs, ORFs to standard names."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from wildtype.datasets.reading import ReadReport
from wildtype.organism import GeneIndex
from wildtype.sources.text import match_genes, read_rows, read_text
from wildtype.sources.yeast.genes.sgd import STANDARD_NAMES, SYSTEMATIC_NAMES

HEADER = ("Systematic_name", "Standard_name")
NO_STANDARD = "no standard name"
DATE = "a spreadsheet's date in place of a name"
_DATE = re.compile(r"\d{1,2}-(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)")
"""What became of OCT1 and MAY24 in a list that went through a spreadsheet."""


def read_sgd_ids(folder: str | Path, genes: GeneIndex) -> tuple[dict[str, int], ReadReport]:
    """Return the gene of every SGD identifier (``S000002362``); features that are no genes are counted.

    Raises
    ------
    SourceError
        If the file is missing, damaged, or has an identifier that is none of SGD or stands twice.
    """
    path = SYSTEMATIC_NAMES.require(folder)
    # Columns are set apart by two blanks, in one copy of the list by a tab.
    rows = read_rows(path, separator="\t" if "\t" in read_text(path).partition("\n")[0] else " ", least=2)
    ids = rows.text(0)
    names = [cells[-1].strip() for cells in rows.cells]
    seen: set[str] = set()
    for row, sgd_id in enumerate(ids):
        if not (len(sgd_id) == 10 and sgd_id[0] == "S" and sgd_id[1:].isdigit()) or sgd_id in seen:
            raise rows.error(row, sgd_id, "an SGD identifier (S and nine digits) that no earlier row has")
        seen.add(sgd_id)
    matched = match_genes(names, genes)
    found = {a: int(p) for a, p in zip(ids, matched.position, strict=True) if p >= 0}
    return found, ReadReport(
        path.name, "SGD identifiers", len(rows), len(found), matched.dropped(), int(matched.renamed.sum())
    )


def read_standard_names(folder: str | Path, genes: GeneIndex) -> tuple[dict[str, str], ReadReport]:
    """Return systematic name to standard name of the genes that have one.

    Raises
    ------
    SourceError
        If the file is missing, damaged or not in the published layout.
    """
    path = STANDARD_NAMES.require(folder)
    rows = read_rows(path, header=HEADER)
    matched = match_genes(rows.text(0), genes)
    dropped: Counter[str] = Counter(matched.dropped())
    out: dict[str, str] = {}
    for position, standard in zip(matched.position, rows.text(1), strict=True):
        if position < 0:
            continue
        name = genes.names[position]
        if not standard:
            dropped[NO_STANDARD] += 1
        elif _DATE.fullmatch(standard):
            dropped[DATE] += 1
        elif name in out:
            dropped["listed twice"] += 1
        else:
            out[name] = standard
    return out, ReadReport(
        path.name, "standard names", len(rows), len(out), dict(dropped), int(matched.renamed.sum())
    )
