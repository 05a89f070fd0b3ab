"""PaxDb: protein abundance in parts per million (whole organism, spectral counting, GPM October 2012)."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from wildtype.errors import SourceError
from wildtype.organism import FeatureBlock, GeneIndex
from wildtype.phenotypes.reading import Reading
from wildtype.sources.text import REMEDY, count_reasons, match_genes, read_rows, require
from wildtype.sources.yeast.components import spread
from wildtype.sources.yeast.names import one_row_per_gene

PAXDB = "protein_abundance_paxdb_gpm2012.txt.gz"
TAXON = "4932."


def read_abundance(folder: str | Path, genes: GeneIndex) -> tuple[FeatureBlock, Reading]:
    """Return the block ``abundance`` [n, 1]: log10 of parts per million; NaN where the protein was not seen.

    Columns are found by the last comment line, since their order differs between releases.

    Raises
    ------
    SourceError
        If the file is missing, damaged, or has an abundance that is not positive.
    """
    rows = read_rows(require(folder, PAXDB), comment="#", least=3)
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
    positions, first, dropped = one_row_per_gene(matched, rows.path, ppm > 0)
    dropped |= count_reasons({"abundance 0": matched.found & (ppm == 0)})
    block = FeatureBlock(
        "abundance", spread(np.log10(ppm[first])[:, None], positions, len(genes)), ("log10_ppm",),
        source="PaxDb, GPM October 2012", note="spectral counts: rare proteins are missing, not zero",
    )  # fmt: skip
    return block, Reading(
        PAXDB, block.name, len(rows), int(positions.size), dropped, int(matched.renamed[first].sum())
    )
