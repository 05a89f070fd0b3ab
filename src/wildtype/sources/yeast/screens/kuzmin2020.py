"""Kuzmin et al. 2020 (Science 368:eaaz5667): trigenic interactions of paralogs of the genome duplication.

Table S1 holds the main screens, Table S3 the pilot ones in the same layout, Table S5 the fitness of the query
strains with its standard deviation.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wildtype.datasets.measurements import Measurements, coded
from wildtype.datasets.records import Publication, Study
from wildtype.organism import GeneIndex
from wildtype.sources.columns import MISSING, Columns, TextColumn, read_columns
from wildtype.sources.publisher import Publisher, RemoteFile
from wildtype.sources.sheets import read_sheet
from wildtype.sources.text import Collector, ignore
from wildtype.sources.yeast.screens.parts import RowFilter, Seen, require_copy, study_of, together
from wildtype.sources.yeast.screens.sga_strains import HO, StrainId
from wildtype.sources.yeast.screens.suppressors import measured_apart, split_allele
from wildtype.sources.yeast.screens.trigenic_table import (
    ENVIRONMENT,
    FITNESS,
    HEADER,
    NO_FITNESS,
    TYPES,
    build_strains,
    first_mutations,
    measurements,
    read_crosses,
)

JOURNAL = (
    "another copy, not needed beside Dryad's: take it out of aaz5667-tables_s1_to_s13.zip of the journal, "
    "doi:10.1126/science.aaz5667, downloaded in a browser"
)


def _copies(name: str, stream: int, sha256: str, book: str) -> tuple[RemoteFile, RemoteFile]:
    """Return a table's copies at Dryad and at the journal, both gated."""
    address = f"https://datadryad.org/downloads/file_stream/{stream}"
    dryad = f"download {address} in a browser (doi:10.5061/dryad.g79cnp5m9; the host refuses scripts)"
    return RemoteFile(name, sha256=sha256, gated=dryad), RemoteFile(book, gated=JOURNAL)


MAIN = _copies(
    "TableS1.tsv",
    251101,
    "2213866487547648fe3546fac033d6df9ac5e353bd169dfd5b6f527e1951b087",
    "aaz5667-Table-S1.xlsx",
)
PILOT = _copies(
    "TableS3.tsv",
    251100,
    "f90d3a1683797b4bf8d514029919b36f7757e0bcfd7a4fc195fc8e999df3951e",
    "aaz5667-Table-S3.xlsx",
)
QUERIES = _copies(
    "TableS5.xlsx",
    345151,
    "632405396de8e78807c6e94023780344ff53b2bfe4579a2a7609a4309693c6c0",
    "aaz5667-Table-S5.xlsx",
)
PUBLISHER = Publisher(
    name="kuzmin2020",
    title="trigenic and digenic interactions of about 240 pairs of whole-genome-duplicate paralogs",
    publication=Publication(
        citation="Kuzmin et al. 2020, Exploring whole-genome duplicate gene retention with complex genetic "
        "interaction analysis, Science 368:eaaz5667",
        doi="10.1126/science.aaz5667",
        pubmed="32586993",
    ),
    licence="CC0 (Dryad)",
    files=(*MAIN, *PILOT, *QUERIES),
    published={
        "rows of S1": 794774,
        "digenic rows of S1 and S3": 632797,
        "trigenic rows of S1 and S3": 301798,
        "single mutants with fitness in S5": 472,
    },
    notes=(
        "tau has both signs here, other than in the 2018 study",
        "a few fitness values are slightly negative, down to about -0.13: they are kept as published",
        "some standard deviations are exactly 0: they are kept as published",
        "strain identifiers of Table S5 are the part of the others after the last underscore",
        "the checksums are of the files at Dryad; the workbooks of the journal hold the same tables",
    ),
)

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
    standard = next(filter(None, (copy.find(folder) for copy in QUERIES)), None)
    files = tables if standard is None else [*tables, standard]
    study = study_of(PUBLISHER, files)
    parts: list[Measurements] = []
    given: set[str] = set()
    if standard is not None:
        parts, given = _read_queries(standard, study, genes, collect)
    seen = Seen()
    for path in tables:
        crosses = read_crosses(_columns(path), genes)
        parts += measurements(crosses, study, genes, collect, standards=given, seen=seen)
    return together(parts, genes, files)


def _columns(path: Path) -> Columns:
    """Read a table, its title in the first line, from text or from a workbook."""
    if not path.name.removesuffix(".gz").endswith(".xlsx"):
        return read_columns(path, types=TYPES, header=HEADER, skip_lines=1)
    rows = read_sheet(path, header=HEADER, skip_rows=1)
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
    return StrainId(f"{'+'.join(orfs)}_{name.rpartition('_')[2]}", orfs, "tm")


def _read_queries(
    path: Path, study: Study, genes: GeneIndex, collect: Collector
) -> tuple[list[Measurements], set[str]]:
    """Return the fitness of query strains, and the short identifiers of those that have one."""
    rows = read_sheet(path, header=_QUERIES_HEADER, skip_rows=1)
    mutant = np.array(rows.text(7), dtype=object)
    rows.refuse(7, (mutant != _MUTANTS[0]) & (mutant != _MUTANTS[1]), " or ".join(_MUTANTS))
    value, sd = rows.numbers(8, missing=MISSING), rows.numbers(9, missing=MISSING)
    rows.refuse(9, sd < 0, "a standard deviation of at least 0")
    names = rows.text(0)
    mutations = [
        [(orf, allele) for orf, allele in (row[1:6:4], row[2:7:4]) if orf not in MISSING]
        for row in ([cell.strip() for cell in cells] for cells in rows.cells)
    ]
    # A single mutant may or may not list the deletion of the neutral locus that it carries besides.
    counts = np.array([len({orf for orf, _ in mutation} - {HO}) for mutation in mutations])
    blank = np.array([any(allele in MISSING for _, allele in mutation) for mutation in mutations])
    rows.refuse(5, (counts == 0) | blank, "an ORF and its allele")
    rows.refuse(7, mutant != np.where(counts == 1, *_MUTANTS), "what its ORFs are")
    parts: list[Measurements] = []
    given: set[str] = set()
    for k in (1, 2):
        mine = np.flatnonzero([len(mutation) == k for mutation in mutations])
        if not mine.size:
            continue
        strains = build_strains(
            [_query(names[i], tuple(orf for orf, _ in mutations[i])) for i in mine.tolist()],
            [[split_allele(allele, "tm") for _, allele in mutations[i]] for i in mine.tolist()],
            genes,
            k,
        )
        side = (strains, np.arange(mine.size))
        first = first_mutations([side])
        sieve = RowFilter(np.ones(mine.size, bool))
        sieve.drop_genes(first)
        sieve.drop(NO_FITNESS, np.isnan(value[mine]))
        collect(sieve.reading(path.name, f"fitness of query strains listed with {k} ORF(s)", first))
        parts += measured_apart(
            study, genes, FITNESS, ENVIRONMENT, [side], value[mine], sieve.left, label="query", sd=sd[mine]
        )
        given |= {strains.first.ids[i].short for i in np.flatnonzero(sieve.left).tolist()}
    return parts, given
