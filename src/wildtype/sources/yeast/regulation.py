"""Regulation of transcription (YEASTRACT): regulator → target, by two kinds of evidence or by any documented one."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from wildtype.errors import SourceError
from wildtype.organism import GeneIndex, Relation
from wildtype.sources.text import (
    REMEDY,
    GeneNames,
    Reading,
    match_genes,
    match_pairs,
    protein_to_gene,
    read_rows,
    require,
)

BOTH = "regulatory_yeastract_20190713_both.tsv.gz"
DOCUMENTED = "regulatory_yeastract2020_documented_edges.csv.gz"


def read_regulatory(folder: str | Path, genes: GeneIndex) -> tuple[Relation, Reading]:
    """Return ``regulatory``: edges with both DNA-binding and expression evidence, from a 0/1 target × regulator matrix.

    Rows of the reading are the ones of the matrix.

    Raises
    ------
    SourceError
        If the file is missing, damaged, or has an entry other than 0 and 1.
    """
    rows = read_rows(require(folder, BOTH), header=("SystematicName", ...))
    matrix = np.array(rows.cells, dtype=np.str_)[:, 1:]
    wrong = np.argwhere((matrix != "0") & (matrix != "1"))
    if wrong.size:
        i, j = wrong[0]
        raise rows.error(int(i), str(matrix[i, j]), f"0 or 1 in {rows.header[j + 1]!r}")
    target, regulator = np.nonzero(matrix == "1")
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
    """Return ``regulatory_documented``: every documented regulation, from lines ``target ORF,regulator protein``.

    Raises
    ------
    SourceError
        If the file is missing, damaged or not in the published layout.
    """
    rows = read_rows(require(folder, DOCUMENTED), separator=",", fields=2)
    return _relation(
        "regulatory_documented",
        match_genes(protein_to_gene(rows.text(1)), genes),
        match_genes(rows.text(0), genes),
        genes,
        version="2020 export",
        note="documented-regulation stand-in for TFLink: binding or expression evidence, direct or not",
        file=DOCUMENTED,
    )


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
