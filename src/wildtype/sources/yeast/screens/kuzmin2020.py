"""Kuzmin et al. 2020 (Science 368:eaaz5667): trigenic interactions of paralogs of the genome duplication.

Table S1 holds the main screens, Table S3 the pilot ones in the same layout, Table S5 the fitness of the query
strains with its standard deviation.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wildtype.datasets.measurements import Measurements, coded
from wildtype.organism import GeneIndex
from wildtype.sources.columns import MISSING, Columns, TextColumn, read_columns
from wildtype.sources.row_filter import RowFilter
from wildtype.sources.sheets import read_sheet
from wildtype.sources.text import Collector, ignore
from wildtype.sources.yeast.files import find_copy, publisher, require_copy, study_of
from wildtype.sources.yeast.screens.parts import FITNESS, NO_FITNESS, Screen, Seen, drop_genes, together
from wildtype.sources.yeast.screens.sga_strains import HO, Side, StrainId, Strains, split_allele
from wildtype.sources.yeast.screens.trigenic_table import (
    ENVIRONMENT,
    HEADER,
    TYPES,
    add_crosses,
    read_crosses,
)

PUBLISHER = publisher("kuzmin2020")
MAIN, PILOT, QUERIES = PUBLISHER.files[:2], PUBLISHER.files[2:4], PUBLISHER.files[4:]
"""Copies of Tables S1, S3 and S5, each of Dryad and of the journal."""
_QUERIES_HEADER = (
    "Query Strain ID", "ORF1", "ORF2", "Gene1", "Gene2", "Allele1", "Allele2", "Mutant type", "Fitness",
    "St.dev.", ...,
)  # fmt: skip
_MUTANTS = ("Single mutant", "Double mutant")


def read(folder: str | Path, genes: GeneIndex, *, collect: Collector = ignore) -> Measurements:
    """Return the scores and fitness of Tables S1 and S3, and the fitness of Table S5 where it is there.

    With Table S5 the fitness of its queries is taken from there, where it has a standard deviation, and not
    from the column that repeats it, rounded, in Tables S1 and S3.

    Raises
    ------
    SourceError
        If Table S1 or S3 is missing, or a file is damaged or of another layout, or names no gene of the
        organism.
    """
    tables = [require_copy(folder, MAIN), require_copy(folder, PILOT)]
    standard = find_copy(folder, QUERIES)
    files = tables if standard is None else [*tables, standard]
    screen = Screen(study_of(PUBLISHER, files), genes, collect)
    given = set() if standard is None else _add_queries(screen, standard)
    seen = Seen()
    for path in tables:
        add_crosses(screen, read_crosses(_columns(path), genes), standards=given, seen=seen)
    return together(screen.parts, genes, files)


def _columns(path: Path) -> Columns:
    """Read a table, its title in the first line, from text or from a workbook."""
    if not path.name.removesuffix(".gz").endswith(".xlsx"):
        return read_columns(path, types=TYPES, header=HEADER, skip_lines=1)
    rows = read_sheet(path, header=HEADER, skip_rows=1)
    # A workbook is read into the same columns as the text, so that one parser checks both copies.
    columns: list[TextColumn | NDArray[np.float64]] = []
    for position, kind in enumerate(TYPES):
        if kind is str:
            names, code = coded(rows.text(position))
            columns.append(TextColumn(names, code.astype(np.int32)))
        else:
            columns.append(rows.numbers(position, missing=MISSING))
    return Columns(path, rows.header, int(rows.line[0]), tuple(columns))


def _query(name: str, orfs: tuple[str, ...]) -> StrainId:
    """Return the identifier as Tables S1 and S3 have it, from the one of Table S5, which lacks the ORFs."""
    # The same identifier in both tables lets `standards` and `Seen` recognise a strain.
    return StrainId(f"{'+'.join(orfs)}_{name.rpartition('_')[2]}", orfs, "tm")


def _add_queries(screen: Screen, path: Path) -> set[str]:
    """Measure the fitness of query strains; return the short identifiers of those that have one."""
    rows = read_sheet(path, header=_QUERIES_HEADER, skip_rows=1)
    mutant = np.array(rows.text(7), dtype=object)
    rows.refuse(7, (mutant != _MUTANTS[0]) & (mutant != _MUTANTS[1]), " or ".join(_MUTANTS))
    value, sd = rows.numbers(8, missing=MISSING), rows.numbers(9, missing=MISSING)
    rows.refuse(9, sd < 0, "a standard deviation of at least 0")
    names = rows.names(0)
    # ORF1 with Allele1, and ORF2 with Allele2.
    first, second = (zip(rows.text(orf), rows.names(orf + 4), strict=True) for orf in (1, 2))
    mutations = [
        [(orf, allele) for orf, allele in pair if orf not in MISSING]
        for pair in zip(first, second, strict=True)
    ]
    # A single mutant may or may not list the deletion of the neutral locus that it carries besides.
    counts = np.array([len({orf for orf, _ in mutation} - {HO}) for mutation in mutations])
    blank = np.array([any(allele in MISSING for _, allele in mutation) for mutation in mutations])
    rows.refuse(5, (counts == 0) | blank, "an ORF and its allele")
    rows.refuse(7, mutant != np.where(counts == 1, *_MUTANTS), "what its ORFs are")
    given: set[str] = set()
    for k in (1, 2):
        mine = np.flatnonzero([len(mutation) == k for mutation in mutations]).tolist()
        if not mine:
            continue
        strains = Strains.build(
            [_query(names[i], tuple(orf for orf, _ in mutations[i])) for i in mine],
            [[split_allele(allele, "tm") for _, allele in mutations[i]] for i in mine],
            screen.genes,
            k,
        )
        sides, use = [Side(strains, np.arange(len(mine)))], f"fitness of query strains listed with {k} ORF(s)"
        no_value = {NO_FITNESS: np.isnan(value[mine])}
        used = screen.select(path.name, use, sides, drop_genes(RowFilter(len(mine)), sides), no_value)
        screen.add(FITNESS, ENVIRONMENT, sides, value[mine], used, label="query", sd=sd[mine])
        given |= {strains.ids[i].short for i in np.flatnonzero(used).tolist()}
    return given
