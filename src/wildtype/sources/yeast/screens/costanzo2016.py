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
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wildtype.datasets.measurements import Measurements
from wildtype.datasets.reading import ReadReport
from wildtype.datasets.records import PerturbationKind, Publication, Study
from wildtype.errors import SourceError
from wildtype.organism import GeneIndex
from wildtype.sources.columns import Columns, read_columns
from wildtype.sources.publisher import Publisher, RemoteFile
from wildtype.sources.text import REMEDY, Collector, add_counts, count_reasons, ignore, match_genes, read_rows
from wildtype.sources.yeast.genes.sgd import read_essential
from wildtype.sources.yeast.names import SAME_GENE, match_pairs
from wildtype.sources.yeast.screens.parts import RowFilter, study_of, together
from wildtype.sources.yeast.screens.sga_strains import parse_strain
from wildtype.sources.yeast.screens.single_fitness import (
    STRAIN_TABLE,
    archived,
    deleted_genes,
    expression_only,
    measure_strains,
    read_strains,
    sga_environment,
)
from wildtype.sources.yeast.screens.suppressors import SuppressedStrains, measured_apart
from wildtype.sources.yeast.screens.trigenic_table import EPSILON, FITNESS, NO_FITNESS, NO_SCORE

TABLES = ("SGA_NxN.txt", "SGA_ExN_NxE.txt", "SGA_ExE.txt", "SGA_DAmP.txt")
_HEADER = (
    "Query Strain ID", "Query allele name", "Array Strain ID", "Array allele name", "Arraytype/Temp",
    None, "P-value", "Query single mutant fitness (SMF)", "Array SMF", "Double mutant fitness",
    "Double mutant fitness standard deviation",
)  # fmt: skip
"""Column names; the score's holds an epsilon that copies spell differently."""
_TYPES = (str, str, str, str, str, float, float, None, None, float, float)
QUERY, ARRAY, CONDITION, SCORE, P_VALUE, DOUBLE, DOUBLE_SD = 0, 2, 4, 5, 6, 9, 10
_CONDITION = re.compile(r"(?:DMA|TSA)(\d\d)")
FILES = ("costanzo2016_dcell_GO0006281_train.txt.gz", "costanzo2016_dcell_GO0000790_train.txt.gz")
STRONG = 0.08
"""The authors' intermediate cut-off on the absolute value of epsilon."""
_DCELL = "https://raw.githubusercontent.com/idekerlab/DCell/567054dcb81c391c94603d507a1dd87cd063f7ac"


def _dcell_file(name: str, term: str) -> RemoteFile:
    url = f"{_DCELL}/training/TrainData/{term.replace(':', '%3A')}_training_data_2016_0"
    return RemoteFile(
        name.removesuffix(".gz"),
        (url,),
        aliases=(f"{term}_training_data_2016_0",),
        gated=f"fetch it from {url} (compressed, {name}, it is read too)",
    )


ALL = tuple(archived(name) for name in TABLES)
PUBLISHER = Publisher(
    name="costanzo2016",
    title="global digenic interaction network: epsilon and fitness of 20.7 million crosses of two mutants",
    publication=Publication(
        citation="Costanzo et al. 2016, A global genetic interaction network maps a wiring diagram of "
        "cellular function, Science 353:aaf1420",
        doi="10.1126/science.aaf1420",
        pubmed="27708008",
    ),
    licence="copy at Dryad (doi:10.5061/dryad.4291s) CC0; page of the laboratory: no statement seen",
    files=(*ALL, STRAIN_TABLE),
    published={
        "rows of SGA_NxN.txt": 12698939,
        "rows of SGA_ExN_NxE.txt": 5796145,
        "rows of SGA_ExE.txt": 818570,
        "rows of SGA_DAmP.txt": 1391958,
        "strains with or without a fitness": 10859,
        "fitness of a strain at a temperature": 20484,
    },
    notes=(
        "rows are pairs of strains: a pair of genes can stand in both orders, and with several alleles, "
        "arrays and temperatures",
        "the publisher removed reciprocal pairs that were both significant with opposite signs",
        "cut-off of the authors: p < 0.05 and |epsilon| > 0.08 (intermediate)",
        "4 colonies per cross; single-mutant fitness from 17 control screens (queries) or 350 (arrays)",
        "fitness of single mutants at 26 and 30 °C is one number for all but temperature-sensitive strains",
        "a suppressor is recorded as a second perturbation of the gene that it suppresses: where it lies is "
        "mostly not known",
    ),
)
DCELL = Publisher(
    name="costanzo2016-dcell",
    title="epsilon of Costanzo et al. 2016 among the genes of two GO terms, as DCell was trained on them",
    publication=Publication(
        citation="Ma et al. 2018, Using deep learning to model the hierarchical structure and function of a "
        "cell, Nat Methods 15:290; scores of Costanzo et al. 2016, Science 353:aaf1420"
    ),
    licence="MIT (repository idekerlab/DCell); for the scores see costanzo2016",
    files=tuple(map(_dcell_file, FILES, ("GO:0006281", "GO:0000790"))),
    published={"lines of GO:0006281": 8783, "lines of GO:0000790": 5092},
    notes=(
        "genes, not strains: an essential gene of which the study has no deletion strain is taken to be "
        "reduced, by a temperature-sensitive allele where there is one",
        "the same scores as in the tables of costanzo2016: not to be counted beside them",
    ),
)


def read(folder: str | Path, genes: GeneIndex, *, collect: Collector = ignore) -> Measurements:
    """Return epsilon and fitness of all crosses, and fitness of single mutants, of the files in `folder`.

    The four tables together are 20.7 million rows and 41 million measurements, which take about 18 GiB of
    memory; `read_tables` gives them one after the other.

    Raises
    ------
    SourceError
        If there is none of the files, or one is damaged, of another layout, or names no gene of the organism.
    """
    files = list(_files(folder, genes, collect))
    return together([part for _, parts in files for part in parts], genes, [path for path, _ in files])


def read_tables(
    folder: str | Path, genes: GeneIndex, *, collect: Collector = ignore
) -> Iterator[Measurements]:
    """Yield what every file in `folder` holds, single mutants first; raises ``SourceError`` as `read`."""
    for path, parts in _files(folder, genes, collect):
        yield together(parts, genes, [path])


def _files(
    folder: str | Path, genes: GeneIndex, collect: Collector
) -> Iterator[tuple[Path, list[Measurements]]]:
    tables = [path for path in (remote.find(folder) for remote in ALL) if path is not None]
    strains = STRAIN_TABLE.find(folder)
    if strains is None and not tables:
        ALL[0].require(folder)
    paths = tables if strains is None else [strains, *tables]
    study = study_of(PUBLISHER, paths)
    for path in paths:
        measure = measure_strains if path == strains else _measure_crosses
        parts = measure(path, genes, study, collect)
        if not parts:
            raise SourceError(f"{path}: no row is of genes of {genes.organism!r}, expected most: {REMEDY}")
        yield path, parts


def _measure_crosses(path: Path, genes: GeneIndex, study: Study, collect: Collector) -> list[Measurements]:
    columns = read_columns(path, types=_TYPES, header=_HEADER)
    sides = [_strains(columns, position, genes) for position in (QUERY, ARRAY)]
    temperature = _temperatures(columns)
    p, sd = columns.numbers(P_VALUE), columns.numbers(DOUBLE_SD)
    columns.refuse(P_VALUE, (p < 0) | (p > 1), "a p-value of 0 to 1")
    columns.refuse(DOUBLE_SD, sd < 0, "a standard deviation of at least 0")
    first = [(strains.first, code) for strains, code in sides]
    usable = RowFilter(np.ones(len(columns), bool))
    usable.drop_genes(first)
    parts = []
    for phenotype, use, value, why, given in (
        (EPSILON, EPSILON.name, columns.numbers(SCORE), NO_SCORE, {"p": p}),
        (FITNESS, "fitness of crosses", columns.numbers(DOUBLE), NO_FITNESS, {"sd": sd}),
    ):
        sieve = deepcopy(usable)
        sieve.drop(why, np.isnan(value))
        collect(sieve.reading(path.name, use, first))
        for degrees in np.unique(temperature):
            parts += measured_apart(
                study,
                genes,
                phenotype,
                sga_environment(float(degrees)),
                sides,
                value,
                sieve.left & (temperature == degrees),
                label="query",
                **given,
            )
    return parts


def _temperatures(columns: Columns) -> NDArray[np.int64]:
    """Return the degrees Celsius of every row [m]."""
    names = columns.text(CONDITION)
    found = [_CONDITION.fullmatch(name) for name in names.names]
    wrong = np.array([match is None for match in found])
    columns.refuse(CONDITION, wrong[names.code], "DMA or TSA and a temperature, such as DMA30")
    return np.array([int(match[1]) if match else 0 for match in found], np.int64)[names.code]


def _strains(
    columns: Columns, position: int, genes: GeneIndex
) -> tuple[SuppressedStrains, NDArray[np.int64]]:
    """Return the distinct strains of one side, and which of them each row has [m].

    One strain identifier with two allele names is two strains.
    """
    strain, allele = columns.text(position), columns.text(position + 1)
    parsed = [parse_strain(name) for name in strain.names]
    wrong = np.array([found is None or len(found.orfs) != 1 for found in parsed])
    columns.refuse(position, wrong[strain.code], "a strain such as ORF_snN, ORF_dmaN, ORF_tsqN or ORF_SN")
    ids = [found for found in parsed if found is not None]
    pair = strain.code.astype(np.int64) * len(allele.names) + allele.code
    distinct, code = np.unique(pair, return_inverse=True)
    names = [allele.names[i] for i in (distinct % len(allele.names)).tolist()]
    built = SuppressedStrains.build([ids[i] for i in (distinct // len(allele.names)).tolist()], names, genes)
    return built, code.reshape(-1).astype(np.int64)


@dataclass(frozen=True, eq=False)
class _Pairs:
    """The usable lines of one DCell file: `gene` [m, 2] and `value` [m], the others counted."""

    path: Path
    gene: NDArray[np.int64]
    value: NDArray[np.float64]
    rows: int
    dropped: dict[str, int]
    renamed: int


def _read_dcell(folder: str | Path, genes: GeneIndex) -> list[_Pairs]:
    out = []
    for remote in DCELL.files:
        rows = read_rows(remote.require(folder), separator=" ", fields=4)
        order = rows.numbers(0)
        rows.refuse(0, order != 2, "2, the number of genes")
        first, second = match_genes(rows.text(1), genes), match_genes(rows.text(2), genes)
        value = rows.numbers(3)
        kept, dropped, _ = match_pairs(first, second)
        same = kept & (first.position == second.position)
        kept = kept & ~same
        if not kept.any():
            raise SourceError(
                f"{rows.path} has no pair of two ORFs of the gene list, expected thousands: {REMEDY}"
            )
        gene = np.stack([first.position, second.position], axis=1)[kept]
        dropped = add_counts(dropped, count_reasons({SAME_GENE: same}))
        renamed = int((kept & (first.renamed | second.renamed)).sum())
        out.append(_Pairs(rows.path, gene, value[kept], len(rows), dropped, renamed))
    return out


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
    reduced = read_essential(folder, genes)[0] & ~deleted_genes(strains, n)
    kinds = np.full(n, PerturbationKind.DELETION, np.uint8)
    kinds[reduced] = PerturbationKind.TEMPERATURE_SENSITIVE
    kinds[reduced & expression_only(strains, n)] = PerturbationKind.REDUCED_EXPRESSION
    files = _read_dcell(folder, genes)
    study = study_of(DCELL, [file.path for file in files])
    parts = []
    for file in files:
        collect(
            ReadReport(file.path.name, EPSILON.name, file.rows, len(file.gene), file.dropped, file.renamed)
        )
        parts.append(
            Measurements.build(
                study,
                genes=genes.names,
                gene=file.gene,
                kind=kinds[file.gene],
                value=file.value,
                environments=(sga_environment(),),
                phenotypes=(EPSILON,),
            )
        )
    return Measurements.concatenate(parts)
