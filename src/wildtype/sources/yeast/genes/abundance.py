"""PaxDb: protein abundance in parts per million, the integrated dataset or one of spectral counts of 2012."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from wildtype.datasets.reading import ReadReport
from wildtype.datasets.records import Publication
from wildtype.errors import SourceError
from wildtype.organism import FeatureBlock, GeneIndex
from wildtype.organism.components import spread
from wildtype.sources.publisher import Publisher, RemoteFile
from wildtype.sources.text import REMEDY, Rows, count_reasons, match_genes, read_rows
from wildtype.sources.yeast.names import one_row_per_gene

PAXDB = "protein_abundance_paxdb_gpm2012.txt.gz"
TAXON = "4932."
_INTEGRATED = "4932-WHOLE_ORGANISM-integrated.txt"
FILE = RemoteFile(
    _INTEGRATED,
    tuple(
        f"https://pax-db.org/downloads/{release}/datasets/4932/{_INTEGRATED}"
        for release in ("latest", "5.0", "4.1")
    ),
    aliases=("4932-GPM_2012_09_Saccharomyces_cerevisiae.txt", PAXDB),
)
PUBLISHER = Publisher(
    name="paxdb",
    title="PaxDb: protein abundance over the whole organism",
    publication=Publication(
        citation="Wang et al. 2015, Version 4.0 of PaxDb: protein abundance data, integrated across model "
        "organisms, tissues, and cell-lines, Proteomics 15:3163",
        doi="10.1002/pmic.201400441",
    ),
    licence="CC BY 4.0, not confirmed",
    files=(FILE,),
    notes=(
        "columns differ between releases (an internal id or a gene name first) and are found by the header "
        "line; that of release 5.0 and later is not confirmed",
        "one dataset is read: the integrated one before that of spectral counts (GPM, October 2012)",
    ),
)


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
    positions, first, dropped = one_row_per_gene(matched, rows.path, ppm > 0)
    dropped |= count_reasons({"abundance 0": matched.found & (ppm == 0)})
    block = FeatureBlock(
        "abundance",
        spread(np.log10(ppm[first])[:, None], positions, len(genes)),
        ("log10_ppm",),
        source=f"PaxDb, {_dataset(rows)}",
        note="spectral counts: rare proteins are missing, not zero",
    )
    return block, ReadReport(
        rows.path.name, block.name, len(rows), int(positions.size), dropped, int(matched.renamed[first].sum())
    )


def _dataset(rows: Rows) -> str:
    """Return the name that the comments give the dataset; without one, that of the file."""
    names = [comment.partition(":")[2].strip() for comment in rows.comments if comment.startswith("name:")]
    return names[0] if names and names[0] else rows.path.name
