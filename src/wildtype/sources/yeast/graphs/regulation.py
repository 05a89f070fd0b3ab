"""Regulation of transcription (YEASTRACT): regulator → target, by both kinds of evidence or by any."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from wildtype.errors import SourceError
from wildtype.organism import GeneIndex, Relation
from wildtype.phenotypes.reading import Reading
from wildtype.sources.text import REMEDY, GeneNames, match_genes, read_rows, require
from wildtype.sources.yeast.names import match_pairs

BOTH = "regulatory_yeastract_20190713_both.tsv.gz"
DOCUMENTED = "regulatory_yeastract2020_documented_edges.csv.gz"


def read_regulatory(folder: str | Path, genes: GeneIndex) -> tuple[Relation, Reading]:
    """Return ``regulatory``: edges with DNA-binding and expression evidence, from a 0/1 table.

    Rows of the reading are the ones of the matrix.

    Raises
    ------
    SourceError
        If the file is missing, damaged, or has an entry other than 0 and 1.
    """
    rows = read_rows(require(folder, BOTH), header=("SystematicName", ...))
    for i, cells in enumerate(rows.cells):
        if not {"0", "1"}.issuperset(cells[1:]):
            wrong = next(cell for cell in cells[1:] if cell not in ("0", "1"))
            raise rows.error(i, wrong, "entries that are 0 or 1")
    target, regulator = np.nonzero(np.array([[cell == "1" for cell in cells[1:]] for cells in rows.cells]))
    if not target.size:
        raise SourceError(f"{rows.path} holds no entry that is 1, expected thousands: {REMEDY}")
    return _relation(
        "regulatory",
        _take(match_genes(list(rows.header[1:]), genes), regulator),
        _take(match_genes(rows.text(0), genes), target),
        genes,
        version="2019-07-13",
        note="DNA-binding and expression evidence; a regulator's row holds its targets",
        file=BOTH,
    )


def read_documented(folder: str | Path, genes: GeneIndex) -> tuple[Relation, Reading]:
    """Return ``regulatory_documented``: every regulation, from lines ``target ORF,regulator protein``.

    Raises
    ------
    SourceError
        If the file is missing, damaged or not in the published layout.
    """
    rows = read_rows(require(folder, DOCUMENTED), separator=",", fields=2)
    return _relation(
        "regulatory_documented",
        match_genes(gene_of_protein(rows.text(1)), genes),
        match_genes(rows.text(0), genes),
        genes,
        version="2020 export",
        note="documented-regulation stand-in for TFLink: binding or expression evidence, direct or not",
        file=DOCUMENTED,
    )


def gene_of_protein(names: Iterable[str]) -> list[str]:
    """Return gene names for protein names: ``Gcn4p`` is the product of ``GCN4``; other names stay."""
    out = []
    for name in names:
        protein = len(name) > 1 and name.endswith("p") and name[0].isupper()
        out.append(name[:-1].upper() if protein else name)
    return out


def _take(names: GeneNames, at: np.ndarray[tuple[int], np.dtype[np.int64]]) -> GeneNames:
    return GeneNames(names.position[at], names.renamed[at])


def _relation(
    name: str,
    regulator: GeneNames,
    target: GeneNames,
    genes: GeneIndex,
    *,
    version: str,
    note: str,
    file: str,
) -> tuple[Relation, Reading]:
    kept, dropped, renamed = match_pairs(regulator, target)
    relation = Relation.from_edges(
        name, regulator.position[kept], target.position[kept], len(genes), directed=True,
        source="YEASTRACT", version=version, note=note, dropped=dropped,
    )  # fmt: skip
    return relation, Reading(file, name, len(kept), relation.edges, relation.dropped, renamed)
