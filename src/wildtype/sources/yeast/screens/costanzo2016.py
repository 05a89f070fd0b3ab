"""Costanzo et al. 2016 (Science 353:aaf1420): the global network of digenic interactions, strain by strain.

Four tables of crosses (non-essential × non-essential, essential × non-essential in both orders, essential ×
essential, DAmP), the fitness of single mutants, and what others have made of a part: the pairs of two GO
terms by Ma et al. 2018 (Nat Methods 15:290), lines ``2 ORF ORF epsilon`` without strains (DCell).

Legend: m rows of a table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path

import numpy as np

from wildtype.datasets.measurements import Measurements
from wildtype.datasets.reading import ReadReport
from wildtype.datasets.records import PerturbationKind
from wildtype.errors import SourceError
from wildtype.memory import release_memory
from wildtype.organism import GeneIndex
from wildtype.sources.columns import Columns, read_columns
from wildtype.sources.row_filter import SAME_GENE, Floats, Ints, RowFilter
from wildtype.sources.text import REMEDY, Collector, ignore, match_genes, read_rows
from wildtype.sources.yeast.files import publisher, study_of
from wildtype.sources.yeast.genes.sgd import read_essential
from wildtype.sources.yeast.screens.parts import (
    EPSILON,
    FITNESS,
    NO_FITNESS,
    NO_SCORE,
    Screen,
    drop_genes,
    read_p_values,
    read_sd,
)
from wildtype.sources.yeast.screens.sga_strains import read_side
from wildtype.sources.yeast.screens.single_fitness import (
    STRAIN_TABLE,
    deleted_genes,
    expression_only,
    measure_strains,
    read_strains,
    sga_environment,
)

PUBLISHER, DCELL = publisher("costanzo2016"), publisher("costanzo2016-dcell")
ALL = PUBLISHER.files[:-1]
"""The tables of crosses."""
TABLES = tuple(file.name for file in ALL)
FILES = ("costanzo2016_dcell_GO0006281_train.txt.gz", "costanzo2016_dcell_GO0000790_train.txt.gz")
REPAIR, CHROMATIN = TERMS = ("GO:0006281", "GO:0000790")
"""GO terms of the two DCell files: DNA repair, and nuclear chromatin. The replicate names a pair's term."""
_HEADER = (
    "Query Strain ID", "Query allele name", "Array Strain ID", "Array allele name", "Arraytype/Temp",
    None, "P-value", "Query single mutant fitness (SMF)", "Array SMF", "Double mutant fitness",
    "Double mutant fitness standard deviation",
)  # fmt: skip
"""Column names; the score's holds an epsilon that copies spell differently."""
_TYPES = (str, str, str, str, str, float, float, None, None, float, float)
QUERY, ARRAY, CONDITION, SCORE, P_VALUE, DOUBLE, DOUBLE_SD = 0, 2, 4, 5, 6, 9, 10
_CONDITION = re.compile(r"(?:DMA|TSA)(\d\d)")
STRONG = 0.08
"""The authors' intermediate cut-off on the absolute value of epsilon."""


def read(folder: str | Path, genes: GeneIndex, *, collect: Collector = ignore) -> Iterator[Measurements]:
    """Yield fitness of single mutants, and epsilon and fitness of all crosses, of the files in `folder`.

    The four tables have 20.7 million rows and 41 million measurements. They are read one after the other and
    yielded in blocks of rows, of some 45 bytes for each measurement.

    Raises
    ------
    SourceError
        If there is none of the files, or one is damaged, of another layout, or names no gene of the organism.
    """
    tables = [path for path in (remote.find(folder) for remote in ALL) if path is not None]
    strains = STRAIN_TABLE.find(folder)
    if strains is None and not tables:
        ALL[0].require(folder)
    paths = tables if strains is None else [strains, *tables]
    study = study_of(PUBLISHER, paths)
    for path in paths:
        screen = Screen(study, genes, collect)
        (measure_strains if path == strains else _measure_crosses)(screen, path)
        if not screen.parts:
            raise SourceError(f"{path}: no row is of genes of {genes.organism!r}, expected most: {REMEDY}")
        release_memory()
        yield from screen.parts


def _measure_crosses(screen: Screen, path: Path) -> None:
    columns = read_columns(path, types=_TYPES, header=_HEADER)
    form = "a strain such as ORF_snN, ORF_dmaN, ORF_tsqN or ORF_SN"
    sides = [read_side(columns, position, 1, screen.genes, form) for position in (QUERY, ARRAY)]
    temperature = _temperatures(columns)
    p, sd = read_p_values(columns, P_VALUE), read_sd(columns, DOUBLE_SD)
    # Matching genes is the costly step on 12.7 million rows: once, then a copy for each phenotype.
    usable = drop_genes(RowFilter(len(columns)), sides)
    for phenotype, use, value, why, sds, ps in (
        (EPSILON, EPSILON.name, columns.numbers(SCORE), NO_SCORE, None, p),
        (FITNESS, "fitness of crosses", columns.numbers(DOUBLE), NO_FITNESS, sd, None),
    ):
        used = screen.select(path.name, use, sides, deepcopy(usable), {why: np.isnan(value)})
        # Temperature is a condition: crosses of one pair at 26 and at 30 °C are no replicates.
        for degrees in np.unique(temperature).tolist():
            mine, where = used & (temperature == degrees), sga_environment(float(degrees))
            screen.add(phenotype, where, sides, value, mine, label="query", sd=sds, p=ps)


def _temperatures(columns: Columns) -> Ints:
    """Return the degrees Celsius of every row [m]."""
    names = columns.text(CONDITION)
    found = [_CONDITION.fullmatch(name) for name in names.names]
    wrong = np.array([match is None for match in found])
    columns.refuse(CONDITION, wrong[names.code], "DMA or TSA and a temperature, such as DMA30")
    return np.array([int(match[1]) if match else 0 for match in found], np.int64)[names.code]


def read_dcell(folder: str | Path, genes: GeneIndex, *, collect: Collector = ignore) -> Measurements:
    """Return the pairs of the two DCell files: genes without strains, at a temperature that is not stated.

    A gene is a deletion unless it is essential and the strain table has no deletion of it; then it is a
    temperature-sensitive allele, or reduced expression where the table has DAmP strains only. So the folder
    must hold the strain table and the list of essential genes too.

    Raises
    ------
    SourceError
        If a file is missing, damaged, has a label that is not a number, or no usable row.
    """
    strains = read_strains(folder, genes)
    n = len(genes)
    # Ma et al. kept gene names only: an essential gene that was screened without a deletion strain is taken
    # for a hypomorph.
    reduced = read_essential(folder, genes)[0] & ~deleted_genes(strains, n)
    kinds = np.full(n, PerturbationKind.DELETION, np.uint8)
    kinds[reduced] = PerturbationKind.TEMPERATURE_SENSITIVE
    kinds[reduced & expression_only(strains, n)] = PerturbationKind.REDUCED_EXPRESSION
    files = [_read_pairs(remote.require(folder), genes) for remote in DCELL.files]
    study = study_of(DCELL, [path for path, *_ in files])
    parts = []
    for term, (_, gene, value, report) in zip(TERMS, files, strict=True):
        collect(report)
        parts.append(
            Measurements.build(
                study,
                genes=genes.names,
                gene=gene,
                kind=kinds[gene],
                value=value,
                environments=(sga_environment(),),
                phenotypes=(EPSILON,),
                replicate=term,
            )
        )
    return Measurements.concatenate(parts)


def _read_pairs(path: Path, genes: GeneIndex) -> tuple[Path, Ints, Floats, ReadReport]:
    """Return genes [m, 2] and epsilon [m] of the usable lines of one DCell file."""
    rows = read_rows(path, separator=" ", fields=4)
    rows.refuse(0, rows.numbers(0) != 2, "2, the number of genes")
    first, second = match_genes(rows.text(1), genes), match_genes(rows.text(2), genes)
    value = rows.numbers(3)
    used = RowFilter(len(rows))
    used.drop_names(first, second)
    used.drop(SAME_GENE, first.position == second.position)
    if not used.left.any():
        raise SourceError(f"{path} has no pair of two ORFs of the gene list, expected thousands: {REMEDY}")
    gene = np.stack([first.position, second.position], axis=1)[used.left]
    report = used.report(path.name, EPSILON.name, first.renamed | second.renamed)
    return path, gene, value[used.left], report
