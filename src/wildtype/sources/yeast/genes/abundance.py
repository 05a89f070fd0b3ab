"""PaxDb: protein abundance in parts per million, the integrated dataset or one of spectral counts of 2012."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from wildtype.datasets.reading import ReadReport
from wildtype.errors import SourceError
from wildtype.organism import FeatureBlock, GeneIndex
from wildtype.organism.components import spread
from wildtype.sources.row_filter import RowFilter
from wildtype.sources.text import REMEDY, Rows, match_genes, read_rows
from wildtype.sources.yeast.files import publisher

PAXDB = "protein_abundance_paxdb_gpm2012.txt.gz"
TAXON = "4932."
PUBLISHER = publisher("paxdb")
(FILE,) = PUBLISHER.files


def read_abundance(folder: str | Path, genes: GeneIndex) -> tuple[FeatureBlock, ReadReport]:
    """Return the block ``abundance`` [n, 1]: log10 of parts per million; NaN where the protein was not seen.

    Columns are found by the last comment line, since their order differs between releases.

    Raises
    ------
    SourceError
        If the file is missing, damaged, or has an abundance that is not positive.
    """
    rows = read_rows(FILE.require(folder), comment="#", least=2)
    header = rows.comments[-1].split("\t") if rows.comments else []
    if "string_external_id" not in header or "abundance" not in header:
        raise SourceError(
            f"{rows.path} has no comment line that names the columns string_external_id and "
            f"abundance: {REMEDY}"
        )
    for row, cells in enumerate(rows.cells):
        if len(cells) < len(header):
            raise rows.error(row, len(cells), f"{len(header)} fields")
    ppm = rows.numbers(header.index("abundance"))
    rows.refuse(header.index("abundance"), ppm < 0, "an abundance of at least 0")
    matched = match_genes(
        [n.removeprefix(TAXON) for n in rows.text(header.index("string_external_id"))], genes
    )
    used = RowFilter(len(rows))
    used.drop_names(matched)
    # Mass spectrometry misses rare proteins, so that 0 means "not seen" and has no logarithm.
    used.drop("abundance 0", ppm == 0)
    positions, first = used.first_of_each(matched, rows.path)
    block = FeatureBlock(
        "abundance",
        spread(np.log10(ppm[first])[:, None], positions, len(genes)),
        ("log10_ppm",),
        source=f"PaxDb, {_dataset(rows)}",
        note="spectral counts: rare proteins are missing, not zero",
    )
    return block, used.report(rows.path.name, block.name, matched.renamed)


def _dataset(rows: Rows) -> str:
    """Return the name that the comments give the dataset; without one, that of the file."""
    names = [comment.partition(":")[2].strip() for comment in rows.comments if comment.startswith("name:")]
    return names[0] if names and names[0] else rows.path.name
