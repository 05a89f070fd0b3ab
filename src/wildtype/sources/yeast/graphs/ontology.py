"""Gene Ontology, biological process, 2014-08-19, propagated to ancestor terms: a 0/1 table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from wildtype.datasets.reading import ReadReport
from wildtype.datasets.records import Publication
from wildtype.errors import SourceError
from wildtype.organism import FeatureBlock, GeneIndex
from wildtype.organism.components import annotation_block
from wildtype.sources.publisher import Publisher, RemoteFile
from wildtype.sources.text import REMEDY, match_genes, read_text
from wildtype.sources.yeast.names import one_row_per_gene

GO = "go_bp_140819_gene_by_term.txt.gz"
FILE = RemoteFile(
    GO,
    (
        "https://raw.githubusercontent.com/baryshnikova-lab/safe-data/"
        "19b63f69fda614e9f2cbda55ec46a3f84a97a50f/attributes/go_bp_140819.txt.gz",
    ),
    aliases=("go_bp_140819_gene_by_term.txt", "go_bp_140819.txt"),
)
PUBLISHER = Publisher(
    name="go-process-2014",
    title="Gene Ontology biological process of 2014-08-19, propagated, as prepared for SAFE",
    publication=Publication(
        citation="Baryshnikova 2016, Systematic functional annotation and visualization of biological "
        "networks, Cell Syst 2:412"
    ),
    licence="CC BY 4.0 (Gene Ontology), not confirmed",
    files=(FILE,),
    published={"genes": 5_911, "terms": 4_373},
    notes=("evidence codes are lost: annotations inferred from genetic interactions may leak",),
)


@dataclass(frozen=True, eq=False)
class GoTable:
    """The table: m genes by t terms.

    Attributes
    ----------
    table : csr [m, t] of float64
        1 where a gene carries a term, its own or one above its own.
    genes : int64 [m]
        Positions of the rows.
    terms : tuple of t str
        Names.
    names, renamed : int
        Rows of the file, and how many of the kept were found by an older name.
    dropped : dict of str to int
        Rows that are not kept, by reason.
    file : str
        Its name.
    """

    table: sparse.csr_array
    genes: NDArray[np.int64]
    terms: tuple[str, ...]
    names: int
    renamed: int
    dropped: Mapping[str, int]
    file: str


def read_go_process(folder: str | Path, genes: GeneIndex, count: int = 64) -> tuple[FeatureBlock, ReadReport]:
    """Return the block ``go_process`` [n, 64]: components of annotations weighted by information.

    Terms are weighted as in ``annotation_block``. Genes that the table lacks are NaN; errors as in
    ``read_go_table``.
    """
    found = read_go_table(folder, genes)
    block = annotation_block(
        found.table,
        found.genes,
        len(genes),
        "go_process",
        source="Gene Ontology biological process, 2014-08-19",
        note="evidence codes are lost: annotations inferred from genetic interactions known before August "
        "2014 may leak",
        count=count,
        what=found.file,
    )
    return block, ReadReport(
        found.file, block.name, found.names, int(found.genes.size), found.dropped, found.renamed
    )


def read_go_table(folder: str | Path, genes: GeneIndex) -> GoTable:
    """Return the table as it is.

    Raises
    ------
    SourceError
        If the file is missing, damaged, or has an entry other than 0 and 1.
    """
    path = FILE.require(folder)
    lines = read_text(path).rstrip("\n").split("\n")
    terms = lines[0].split("\t")
    if terms[0] != "ORF" or len(terms) < 3:
        raise SourceError(f"{path}, line 1: received {lines[0][:40]!r}, expected ORF and the terms; {REMEDY}")
    width = len(terms) - 1
    names, entries = [], []
    # 26 million entries of one character each: checked as bytes, since splitting them would cost seconds.
    for number, line in enumerate(lines[1:], 2):
        name, _, rest = line.partition("\t")
        row = np.frombuffer(rest.encode(), np.uint8)
        if row.size != 2 * width - 1 or (row[1::2] != ord("\t")).any() or ((row[::2] | 1) != ord("1")).any():
            raise SourceError(
                f"{path}, line {number}: received {rest[:20]!r}…, expected {width:,} entries that are "
                f"0 or 1; {REMEDY}"
            )
        names.append(name.strip())
        entries.append(np.flatnonzero(row[::2] == ord("1")))
    matched = match_genes(names, genes)
    positions, first, dropped = one_row_per_gene(matched, path)
    chosen = [entries[i] for i in first]
    columns = np.concatenate(chosen)
    offsets = np.cumsum([0] + [len(e) for e in chosen])
    table = sparse.csr_array((np.ones(columns.size), columns, offsets), shape=(len(chosen), width))
    renamed = int(matched.renamed[first].sum())
    return GoTable(table, positions, tuple(terms[1:]), len(names), renamed, dropped, path.name)
