"""Regulation as other studies prepared it: a gold standard, motifs in promoters, responses to deletions.

Two of the files are matrices (rows targets, columns regulators) whose header has no cell above the names of
the rows; the third lists one pair per line.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wildtype.datasets.reading import ReadReport
from wildtype.datasets.records import Publication
from wildtype.organism import GeneIndex, Relation
from wildtype.sources.publisher import Publisher, RemoteFile
from wildtype.sources.text import GeneNames, Rows, match_genes, read_rows
from wildtype.sources.yeast.names import match_pairs

_INFERELATOR = "https://raw.githubusercontent.com/flatironinstitute/inferelator"
GOLD = RemoteFile(
    "regulatory_gold_standard_inferelator.tsv",
    (f"{_INFERELATOR}/0c5e4453e00ed4706970a841640e098194d238e9/data/yeast/gold_standard.tsv",),
    aliases=("gold_standard.tsv",),
)
MOTIFS = RemoteFile(
    "regulatory_motif_prior_inferelator.tsv",
    (f"{_INFERELATOR}/c5b54bc5bf7511e06a070ed78edd2d34b8aa4e85/data/yeast/yeast-motif-prior.tsv",),
    aliases=("yeast-motif-prior.tsv",),
)
RESPONSES = RemoteFile(
    "regulatory_tf_gene_chip_kemmeren_zscores.tsv",
    aliases=("tf_gene_network_chip_only.tab",),
    gated="take files/tf_gene_network_chip_only.tab of the repository saezlab/yeast_phospho",
)
PUBLISHERS = (
    Publisher(
        "inferelator-yeast",
        "Gold standard and motif prior of yeast regulation, as given with the inferelator",
        Publication(
            citation="Tchourine, Vogel and Bonneau 2018, Condition-specific modeling of biophysical "
            "parameters advances inference of regulatory networks, Cell Rep 23:376"
        ),
        "not stated",
        (GOLD, MOTIFS),
        {"gold standard targets": 993, "motif targets": 6_600},
    ),
    Publisher(
        "tf-responses",
        "Targets bound by a transcription factor and their expression when it is deleted",
        Publication(
            citation="Kemmeren et al. 2014, Cell 157:740; Hu, Killion and Iyer 2007, Nat Genet 39:683; Chua "
            "et al. 2006, PNAS 103:12045"
        ),
        "repository GPL-3; terms of the articles not confirmed",
        (RESPONSES,),
        {"rows": 6_605},
        ("a z-score is a measurement of a deletion: no input for targets that are its expression profiles",),
    ),
)
_WHOLE = re.compile(r"-?[0-9]{1,6}")
RESPONSE_HEADER = ("tf", "target", "value", "pvalue", "study")


def read_gold_standard(folder: str | Path, genes: GeneIndex) -> tuple[Relation, ReadReport]:
    """Return ``regulatory_gold_standard``: directed, without sign. Rows of the reading are non-zero entries.

    Raises
    ------
    SourceError
        If the file is missing, damaged, or has an entry other than -1, 0 and 1.
    """
    rows, regulators, values = _matrix(GOLD.require(folder))
    _refuse(rows, ~np.isin(values, (-1, 0, 1)), "entries that are -1, 0 or 1")
    repressed = int((values < 0).sum())
    return _relation(
        "regulatory_gold_standard",
        rows,
        regulators,
        values,
        genes,
        weighted=False,
        note=f"{repressed:,} of the edges repress; the sign is not kept",
    )


def read_motifs(folder: str | Path, genes: GeneIndex) -> tuple[Relation, ReadReport]:
    """Return ``regulatory_motifs``: directed; the weight is the number of motifs of the regulator in the
    promoter of the target, without the sign that the file gives repressors. Rows of the reading are non-zero
    entries.

    Raises
    ------
    SourceError
        If the file is missing, damaged, or has an entry that is no whole number.
    """
    rows, regulators, values = _matrix(MOTIFS.require(folder))
    negative = int((values < 0).sum())
    return _relation(
        "regulatory_motifs",
        rows,
        regulators,
        values,
        genes,
        weighted=True,
        note=f"weight: motifs in the promoter, most of which are not bound; {negative:,} counts are negative "
        "in the file (repressors); the sign is not kept",
    )


def read_responses(folder: str | Path, genes: GeneIndex) -> tuple[Relation, ReadReport]:
    """Return ``regulatory_responses``: directed, from a deleted factor to a target that it binds; the weight
    is the absolute z-score of the target's expression, the largest over the studies.

    Raises
    ------
    SourceError
        If the file is missing, damaged or not in the published layout.
    """
    rows = read_rows(RESPONSES.require(folder), header=RESPONSE_HEADER)
    score = np.abs(rows.numbers(2)).astype(np.float32)
    some = score > 0
    regulator, target = (_take(match_genes(rows.text(i), genes), np.flatnonzero(some)) for i in (0, 1))
    kept, dropped, renamed = match_pairs(regulator, target)
    if not some.all():
        dropped["score 0"] = int((~some).sum())
    relation = Relation.from_edges(
        "regulatory_responses",
        regulator.position[kept],
        target.position[kept],
        len(genes),
        score[some][kept],
        directed=True,
        source="saezlab/yeast_phospho",
        note="weight: absolute z-score of expression in the deletion; a measurement of deletions",
        dropped=dropped,
    )
    return relation, ReadReport(
        rows.path.name, relation.name, len(rows), relation.edges, relation.dropped, renamed
    )


def _matrix(path: Path) -> tuple[Rows, list[str], NDArray[np.float64]]:
    """Return the rows (the first is the header), the regulators, and the entries [targets, regulators]."""
    rows = read_rows(path, least=2, quoted=True)
    regulators = [name.strip() for name in rows.cells[0]]
    for row in range(1, len(rows)):
        if len(rows.cells[row]) != len(regulators) + 1:
            raise rows.error(row, len(rows.cells[row]), f"{len(regulators) + 1} fields")
    values = np.zeros((len(rows) - 1, len(regulators)))
    for row, cells in enumerate(rows.cells[1:], 1):
        for column, cell in enumerate(cells[1:]):
            if cell != "0":
                if not _WHOLE.fullmatch(cell):
                    raise rows.error(row, cell, "whole numbers")
                values[row - 1, column] = int(cell)
    return rows, regulators, values


def _refuse(rows: Rows, wrong: NDArray[np.bool_], expected: str) -> None:
    """Raise the error for the first entry where ``wrong`` [targets, regulators] holds."""
    if wrong.any():
        row, column = (int(i) for i in np.argwhere(wrong)[0])
        raise rows.error(row + 1, rows.cells[row + 1][column + 1], expected)


def _relation(
    name: str,
    rows: Rows,
    regulators: list[str],
    values: NDArray[np.float64],
    genes: GeneIndex,
    *,
    weighted: bool,
    note: str,
) -> tuple[Relation, ReadReport]:
    at, column = np.nonzero(values)
    regulator = _take(match_genes(regulators, genes), column)
    target = _take(match_genes(rows.text(0)[1:], genes), at)
    kept, dropped, renamed = match_pairs(regulator, target)
    relation = Relation.from_edges(
        name,
        regulator.position[kept],
        target.position[kept],
        len(genes),
        np.abs(values[at, column][kept]) if weighted else None,
        directed=True,
        source="inferelator",
        note=note,
        dropped=dropped,
    )
    return relation, ReadReport(rows.path.name, name, len(kept), relation.edges, relation.dropped, renamed)


def _take(names: GeneNames, at: NDArray[np.int64]) -> GeneNames:
    return GeneNames(names.position[at], names.renamed[at])
