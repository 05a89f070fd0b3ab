"""Kuzmin et al. 2018 (Science 360:eaao1729): trigenic and digenic interactions of 182 double-mutant queries.

Three tables: the raw data set (S1), the thresholded calls (S2), and the strains the queries were made of.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from wildtype.datasets.measurements import Measurements
from wildtype.datasets.records import PhenotypeDefinition, Study
from wildtype.organism import GeneIndex
from wildtype.sources.columns import read_columns
from wildtype.sources.row_filter import Ints, RowFilter, repeated
from wildtype.sources.text import Collector, ignore, match_genes, read_bytes, read_rows
from wildtype.sources.yeast.files import find_copy, publisher, require_copy, study_of
from wildtype.sources.yeast.screens.parts import NO_SCORE, Screen, drop_genes, read_p_values, together
from wildtype.sources.yeast.screens.sga_strains import Side, StrainId, Strains, split_allele
from wildtype.sources.yeast.screens.trigenic_table import (
    ENVIRONMENT,
    HEADER,
    MUTANT_TYPES,
    TYPES,
    add_crosses,
    read_crosses,
    read_mutant_types,
    read_sides,
)

PUBLISHER = publisher("kuzmin2018")
RAW, SIGNIFICANT = PUBLISHER.files[:3], PUBLISHER.files[3:5]
"""Copies of Data File S1, the raw data set (of the laboratory, Dryad, the journal), and of S2, the calls."""
CALLS, ASSIGNMENT = PUBLISHER.files[5:]
"""S2 as others have reduced it to triplets of alleles (signs, no scores), and the strains of the queries."""
SCORE_OF_CALL, SIGN_OF_CALL = (
    {
        mutant: PhenotypeDefinition(
            name=f"{what} of significant {mutant} interaction",
            unit=unit,
            min_order=fewest,
            description="thresholded calls only: a combination that is not listed is not known to be zero",
        )
        for mutant, fewest in (("digenic", 2), ("trigenic", 3))
    }
    for what, unit in (("score", "fitness units"), ("sign", "-1 or 1"))
)
"""Phenotypes of the calls, by type of combined mutant."""
STUDY_OF_CALLS = f"{PUBLISHER.name}-calls"
"""Name of the calls in a store, beside the scores of S1."""
_SIGNIFICANT_HEADER = (*HEADER[:5], None, "P-value", None)
_SIGNIFICANT_TYPES = (str, str, str, str, str, float, float, str)
_CALLS_HEADER = (
    "type", "allele1", "allele2", "allele3", "orf1", "orf2", "orf3", "n_positive_or_null_rating0",
    "n_negative_rating1",
)  # fmt: skip
_ASSIGNMENT_HEADER = (
    "StrainID1", "ORF1", "StrainID2", "ORF2", "DMstrainID", "SM1strainID", "SM2strainID", "Annotation",
)  # fmt: skip
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


def read(folder: str | Path, genes: GeneIndex, *, collect: Collector = ignore) -> Measurements:
    """Return the scores and fitness of S1: tau, trigenic epsilon, epsilon and fitness.

    Raises
    ------
    SourceError
        If the file is missing, damaged or of another layout, or names no gene of the organism.
    """
    path = require_copy(folder, RAW)
    columns = read_columns(path, types=TYPES, header=HEADER)
    screen = Screen(study_of(PUBLISHER, [path]), genes, collect)
    add_crosses(screen, read_crosses(columns, genes))
    return together(screen.parts, genes, [path])


def read_calls(folder: str | Path, genes: GeneIndex, *, collect: Collector = ignore) -> Measurements:
    """Return the authors' thresholded calls: positives only, a combination not listed may not be tested.

    From S2 (8 columns, UTF-8 or the laboratory's UTF-16) with scores and p-values, or where the folder has
    only the reduced list, the sign of every triplet of alleles. A call that the reduced list counts with both
    signs gives two measurements; how often it counts a sign is not kept.

    Raises
    ------
    SourceError
        If there is neither file, or it is damaged or of another layout.
    """
    reduced = CALLS.find(folder)
    if reduced is not None and find_copy(folder, SIGNIFICANT) is None:
        return _read_signs(reduced, genes, collect)
    return _read_significant(require_copy(folder, SIGNIFICANT), genes, collect)


def _study_of_calls(path: Path) -> Study:
    return study_of(PUBLISHER, [path]).model_copy(update={"name": STUDY_OF_CALLS})


def _read_significant(path: Path, genes: GeneIndex, collect: Collector) -> Measurements:
    """Return the scores of S2; the replicate is the publisher's type of interaction and the query."""
    # The laboratory's copy is UTF-16 with a byte order mark, Dryad's is UTF-8.
    encoding = "utf-16" if read_bytes(path).startswith(_UTF16_MARKS) else "utf-8"
    columns = read_columns(path, types=_SIGNIFICANT_TYPES, header=_SIGNIFICANT_HEADER, encoding=encoding)
    sides = read_sides(columns, genes)
    trigenic, p = read_mutant_types(columns), read_p_values(columns, 6)
    score, kind = columns.numbers(5), columns.names(7)
    screen = Screen(_study_of_calls(path), genes, collect)
    for mutant, rows in (("digenic", ~trigenic), ("trigenic", trigenic)):
        phenotype = SCORE_OF_CALL[mutant]
        used = screen.select(
            path.name, phenotype.name, sides, drop_genes(RowFilter(rows), sides), {NO_SCORE: np.isnan(score)}
        )
        for code, name in enumerate(kind.names):
            mine, label = used & (kind.code == code), f"{name} query".lstrip()
            screen.add(phenotype, ENVIRONMENT, sides, score, mine, label=label, p=p)
    return together(screen.parts, genes, [path])


def _read_signs(path: Path, genes: GeneIndex, collect: Collector) -> Measurements:
    rows = read_rows(path, header=_CALLS_HEADER)
    mutants = np.array(rows.text(0), dtype=object)
    rows.refuse(0, ~np.isin(mutants, MUTANT_TYPES), "digenic or trigenic")
    alleles, orfs = (list(zip(*map(rows.names, at), strict=True)) for at in ((1, 2, 3), (4, 5, 6)))
    # The list names no strains: allele names alone give the kind of mutation; a pair has HO as its third
    # gene.
    strains = Strains.build(
        [StrainId("", triple, "") for triple in orfs],
        [[split_allele(name, "") for name in triple] for triple in alleles],
        genes,
        3,
    )
    counts = [rows.numbers(position) for position in (7, 8)]
    for count, position in zip(counts, (7, 8), strict=True):
        rows.refuse(position, (count < 0) | (count % 1 != 0), "how often the call has this sign")
    sides, screen = [Side(strains, np.arange(len(rows)))], Screen(_study_of_calls(path), genes, collect)
    for mutant in MUTANT_TYPES:
        phenotype = SIGN_OF_CALL[mutant]
        uncounted = {NO_SCORE: counts[0] + counts[1] == 0}
        mine = drop_genes(RowFilter(mutants == mutant), sides)
        used = screen.select(path.name, phenotype.name, sides, mine, uncounted)
        # A call counted with both signs gives two measurements; the counts are not kept.
        for count, sign in zip(counts, (1.0, -1.0), strict=True):
            value = np.full(len(rows), sign)
            screen.add(phenotype, ENVIRONMENT, sides, value, used & (count > 0), label="")
    return together(screen.parts, genes, [path])


@dataclass(frozen=True, eq=False)
class Assignment:
    """Which strains the double-mutant queries were made of: q queries.

    Attributes
    ----------
    gene : int64 [q, 2]
        Positions in the gene index.
    source : tuple of q pairs of str
        The single-mutant strains that were crossed, ``ORF_typeN``.
    query : tuple of q str
        Short identifiers of the double mutants (``tm2494``).
    control : tuple of q pairs of str
        Short identifiers of the control query ``gene + ho`` of either gene.
    annotation : tuple of q str
        Why the pair was chosen.
    """

    gene: Ints
    source: tuple[tuple[str, str], ...]
    query: tuple[str, ...]
    control: tuple[tuple[str, str], ...]
    annotation: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.query)


def read_query_assignment(folder: str | Path, genes: GeneIndex, *, collect: Collector = ignore) -> Assignment:
    """Return the strains behind the double-mutant queries, a tab-separated file in spite of its name.

    Raises
    ------
    SourceError
        If the file is missing, damaged or of another layout, or lists a double mutant twice.
    """
    rows = read_rows(ASSIGNMENT.require(folder), header=_ASSIGNMENT_HEADER)
    first, second = match_genes(rows.text(1), genes), match_genes(rows.text(3), genes)
    rows.refuse(4, repeated(rows.text(4)), "every query once")
    used = RowFilter(len(rows))
    used.drop_names(first, second)
    collect(used.report(rows.path.name, "strains of queries", first.renamed | second.renamed))
    at = np.flatnonzero(used.left)
    text = [[cell.strip() for cell in rows.cells[i]] for i in at]
    return Assignment(
        gene=np.stack([first.position, second.position], axis=1)[at],
        source=tuple((f"{row[1]}_{row[0]}", f"{row[3]}_{row[2]}") for row in text),
        query=tuple(row[4] for row in text),
        control=tuple((row[5], row[6]) for row in text),
        annotation=tuple(row[7] for row in text),
    )
