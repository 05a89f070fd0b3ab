"""E-MAPs, epistatic miniarray profiles of dense sets of genes: S-scores of all pairs of strains.

Collins et al. 2007 (Nature 446:806) crossed strains of chromosome biology, Schuldiner et al. 2005 (Cell
123:507) those of the early secretory pathway. An S-score is a modified t statistic of the colony size: it
has no unit of fitness, and is never pooled with epsilon.

Legend: m lines of a table of pairs · s strains, one per row of the publisher's matrix.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from wildtype.datasets.measurements import Measurements
from wildtype.datasets.records import PerturbationKind, PhenotypeDefinition
from wildtype.errors import SourceError
from wildtype.organism import GeneIndex
from wildtype.sources.columns import Columns, read_columns
from wildtype.sources.publisher import Publisher
from wildtype.sources.row_filter import SAME_GENE, Flags, Ints, RowFilter
from wildtype.sources.text import REMEDY, Collector, ignore, match_genes, read_rows
from wildtype.sources.yeast.files import publisher, study_of
from wildtype.sources.yeast.genes.sgd import read_essential
from wildtype.sources.yeast.screens.parts import NO_SCORE
from wildtype.sources.yeast.traits.matrix import without_gene

COLLINS, SCHULDINER = publisher("collins2007"), publisher("schuldiner2005")
COLLINS_PAIRS, COLLINS_ALLELES = COLLINS.files
(SCHULDINER_PAIRS,) = SCHULDINER.files
S_SCORE = PhenotypeDefinition(
    name="s_score",
    unit="S-score (scale of a t statistic)",
    min_order=2,
    strong=2.5,
    description="digenic interaction by epistatic miniarray profile, colony size; negative is synthetic sick",
)
"""The phenotype of E-MAPs; the authors call a pair below -2.5 a negative interaction."""
STRONG_POSITIVE = 2.0
"""S-score from which the authors call a positive interaction; the scores of that sign reach less far."""
_PAIRS = ("row_a", "row_b", "name_a", "name_b", "s_score")
_ALLELES = ("row", "matrix_name", "systematic_name", "mutation")
_DELETED = re.compile(r"delta (?P<orf>y\S+)", re.IGNORECASE)
ROW_A, ROW_B, NAME_A, NAME_B, SCORE = range(5)


class Allele(NamedTuple):
    """The strain of one row of a matrix.

    Attributes
    ----------
    orf : str
        Name of the gene.
    kind : PerturbationKind
        How it was changed.
    name : str
        Name of the allele; empty for a deletion.
    replicate : str
        Which of several strains with one perturbation; empty where there is one.
    """

    orf: str
    kind: PerturbationKind
    name: str = ""
    replicate: str = ""


def parse_mutation(orf: str, mutation: str) -> tuple[PerturbationKind, str]:
    """Return the kind of a mutation of a gene, and the allele to record (none for a deletion).

    ``DELETION`` and ``DAMP`` name the usual strains, ``delta ORF`` the deletion of that ORF: of the gene
    itself, or of a neighbour that overlaps it, which leaves the gene an allele. Others are alleles by name.
    """
    deleted = _DELETED.fullmatch(mutation)
    if mutation == "DELETION" or (deleted and deleted["orf"].upper() == orf.upper()):
        return PerturbationKind.DELETION, ""
    if mutation == "DAMP":
        return PerturbationKind.REDUCED_EXPRESSION, "damp"
    return PerturbationKind.OTHER_ALLELE, mutation


def read_collins(folder: str | Path, genes: GeneIndex, *, collect: Collector = ignore) -> Measurements:
    """Return the S-scores of Collins et al. 2007, with the strains of their table of alleles.

    Raises
    ------
    SourceError
        If a file is missing or damaged, or the tables name different strains.
    """
    alleles = COLLINS_ALLELES.require(folder)
    rows = read_rows(alleles, header=_ALLELES)
    number, mutations = rows.numbers(0), rows.names(3)
    rows.refuse(0, number != np.arange(1, len(rows) + 1), "the rows 1, 2, 3 and so on")
    rows.refuse(3, np.array([not text for text in mutations]), "a mutation")
    strains: dict[int, tuple[str, Allele]] = {}
    seen: set[tuple[str, PerturbationKind, str]] = set()
    for row, (matrix_name, orf, mutation) in enumerate(
        zip(rows.text(1), rows.text(2), mutations, strict=True), 1
    ):
        kind, name = parse_mutation(orf, mutation)
        # A second strain of the same perturbation keeps its row number, so that both stay measurements.
        again = f"row {row}" if (orf, kind, name) in seen else ""
        seen.add((orf, kind, name))
        strains[row] = (matrix_name, Allele(orf, kind, name, again))
    matched, used = match_genes(rows.text(2), genes), RowFilter(len(rows))
    used.drop_names(matched)
    collect(used.report(alleles.name, "strains", matched.renamed))
    columns = _pairs(COLLINS_PAIRS.require(folder))
    return _measure(COLLINS, [columns.path, alleles], genes, strains, columns, collect)


def read_schuldiner(folder: str | Path, genes: GeneIndex, *, collect: Collector = ignore) -> Measurements:
    """Return the S-scores of Schuldiner et al. 2005; an essential gene is taken to be a DAmP allele.

    Raises
    ------
    SourceError
        If the file or the list of essential genes is missing or damaged.
    """
    columns = _pairs(SCHULDINER_PAIRS.require(folder))
    strains = _named(columns, genes, read_essential(folder, genes)[0])
    return _measure(SCHULDINER, [columns.path], genes, strains, columns, collect)


def _pairs(path: Path) -> Columns:
    columns = read_columns(path, types=(float, float, str, str, float), header=_PAIRS)
    first, second = columns.numbers(ROW_A), columns.numbers(ROW_B)
    for position, row in ((ROW_A, first), (ROW_B, second)):
        columns.refuse(position, ~((row >= 1) & (row % 1 == 0)), "a row number of the matrix, from 1")
    # Half of a symmetric matrix: a pair in both orders would be one number twice, no replicate.
    columns.refuse(ROW_B, first >= second, "a row below that of the first strain")
    return columns


def _named(columns: Columns, genes: GeneIndex, essential: Flags) -> dict[int, tuple[str, Allele]]:
    """Return the strain of every row by its first name; essential genes have no deletion strain."""
    found: dict[int, str] = {}
    for position, name in ((ROW_A, NAME_A), (ROW_B, NAME_B)):
        row, first = np.unique(columns.numbers(position), return_index=True)
        for number, line in zip(row.astype(int).tolist(), first.tolist(), strict=True):
            found.setdefault(number, columns.text(name)[line])
    matched = match_genes(list(found.values()), genes)
    reduced = matched.found & essential[matched.position]
    kinds = [
        (PerturbationKind.REDUCED_EXPRESSION, "damp") if low else (PerturbationKind.DELETION, "")
        for low in reduced.tolist()
    ]
    return {row: (name, Allele(name, *kind)) for (row, name), kind in zip(found.items(), kinds, strict=True)}


def _codes(columns: Columns, row: int, name: int, strains: Mapping[int, tuple[str, Allele]]) -> Ints:
    """Return which strain, in the order of ``strains``, each line has [m]; the line must name it so, too."""
    number = columns.numbers(row).astype(np.int64)
    distinct, of = np.unique(number, return_inverse=True)
    expected = np.array([strains[r][0] if r in strains else "" for r in distinct.tolist()], object)
    wrong = expected[of] != columns.text(name).map(str)
    columns.refuse(name, wrong, "the name that this row of the matrix has elsewhere")
    place = {row: at for at, row in enumerate(strains)}
    return np.array([place[r] for r in distinct.tolist()], np.int64)[of]


def _measure(
    source: Publisher,
    paths: list[Path],
    genes: GeneIndex,
    of_row: Mapping[int, tuple[str, Allele]],
    columns: Columns,
    collect: Collector,
) -> Measurements:
    """Return one measurement per line whose strains are of two known genes.

    ``of_row`` holds the name and the strain of every row of the matrix.
    """
    code = [_codes(columns, row, name, of_row) for row, name in ((ROW_A, NAME_A), (ROW_B, NAME_B))]
    strains = [strain for _, strain in of_row.values()]
    matched = match_genes([strain.orf for strain in strains], genes)
    sides = [matched.position[of] for of in code]
    value, used = columns.numbers(SCORE), RowFilter(len(columns))
    for reason, missing in without_gene(matched).items():
        used.drop(reason, missing[code[0]] | missing[code[1]])
    used.drop(SAME_GENE, sides[0] == sides[1])
    used.drop(NO_SCORE, np.isnan(value))
    if not used.left.any():
        raise SourceError(f"{paths[0]} has no pair of two known genes, expected thousands: {REMEDY}")
    renamed = matched.renamed[code[0]] | matched.renamed[code[1]]
    collect(used.report(paths[0].name, S_SCORE.name, renamed))
    kind = np.array([strain.kind for strain in strains], np.uint8)
    allele = np.array([strain.name for strain in strains], object)
    again = np.array([strain.replicate for strain in strains], object)
    left, right = (of[used.left] for of in code)
    replicate = [" × ".join(filter(None, pair)) for pair in zip(again[left], again[right], strict=True)]
    return Measurements.build(
        study_of(source, paths),
        genes=genes.names,
        gene=np.stack([matched.position[left], matched.position[right]], axis=1),
        kind=np.stack([kind[left], kind[right]], axis=1),
        allele=np.stack([allele[left], allele[right]], axis=1),
        phenotypes=(S_SCORE,),
        value=value[used.left],
        replicate=replicate,
    )
