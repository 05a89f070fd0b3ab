"""Costanzo et al. 2010 (Science 327:425): a first large network of digenic interactions, by query and array.

Two tables without a header: the raw one, 13 columns for every cross, and a thresholded one, whose seven
columns are the first of the raw one and whose rows are the significant scores only.

Legend: m rows of a table · d distinct strains.
"""

from __future__ import annotations

import re
from copy import deepcopy
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wildtype.datasets.measurements import Measurements
from wildtype.datasets.records import PerturbationKind, PhenotypeDefinition, Publication
from wildtype.organism import GeneIndex
from wildtype.sources.columns import Columns, read_columns
from wildtype.sources.publisher import Publisher, RemoteFile
from wildtype.sources.text import Collector, ignore
from wildtype.sources.yeast.screens.parts import REPEATED, RowFilter, measured, study_of, together
from wildtype.sources.yeast.screens.sga_strains import StrainId, Strains
from wildtype.sources.yeast.screens.single_fitness import sga_environment
from wildtype.sources.yeast.screens.trigenic_table import EPSILON, FITNESS, NO_FITNESS, NO_SCORE

STRINGENT = "costanzo2010_sga_stringent_cutoff_101120.tsv.gz"
_HOST = "https://boonelab.ccbr.utoronto.ca/supplement/costanzo2009"
RAW_TABLE = RemoteFile(
    "sgadata_costanzo2009_rawdata_101120.txt.gz",
    urls=(f"{_HOST}/sgadata_costanzo2009_rawdata_101120.txt.gz",),
    aliases=("sgadata_costanzo2009_rawdata_101120.txt",),
)
STRINGENT_TABLE = RemoteFile(
    "sgadata_costanzo2009_stringentCutoff_101120.txt.gz",
    aliases=("sgadata_costanzo2009_stringentCutoff_101120.txt", STRINGENT.removesuffix(".gz")),
    gated=f"download it in a browser from the page of the study, {_HOST} ({STRINGENT} is the same table)",
)
PUBLISHER = Publisher(
    name="costanzo2010",
    title="digenic interactions of 1,711 queries with 3,885 arrays: epsilon and fitness",
    publication=Publication(
        citation="Costanzo et al. 2010, The genetic landscape of a cell, Science 327:425"
    ),
    licence="not stated",
    files=(RAW_TABLE, STRINGENT_TABLE),
    published={"queries": 1711, "arrays": 3885, "rows of the stringent cut-off": 74587},
    notes=(
        "the raw table is read where it is there, else the thresholded one, which is a part of it",
        "thresholded: epsilon <= -0.12 or >= 0.16, p < 0.05; a pair that is not listed was not measured to "
        "be zero",
        "a pair that was screened in both orders carries the identical number almost always: these are no "
        "replicates",
        "revised 2010-01-28 (fitness of 94 queries and 2 arrays) and 2010-11-20 (the clc1 screen removed)",
        "the temperature is not in the tables; the addresses were seen with http, the host elsewhere with "
        "https: not confirmed",
    ),
)
QUERY, ARRAY, SCORE, SD, P_VALUE, QUERY_FITNESS, ARRAY_FITNESS, DOUBLE = 0, 2, 4, 5, 6, 7, 9, 11
"""Columns of the raw table; a standard deviation follows every score and fitness."""
NEGATIVE, POSITIVE = -0.12, 0.16
"""The publisher's cut-offs (and p < 0.05): nothing between them is in the thresholded file."""
_STRAIN = re.compile(r"(?P<orf>[^_+]+)(?:_(?P<mark>(?P<type>tsq|damp)\d*))?")
_KINDS = {
    None: PerturbationKind.DELETION,
    "tsq": PerturbationKind.TEMPERATURE_SENSITIVE,
    "damp": PerturbationKind.REDUCED_EXPRESSION,
}
Side = tuple[Strains, NDArray[np.int64]]
EXPECTED = "an ORF name, alone or followed by _tsqN or _damp"


def parse_strain(text: str, allele: str = "") -> tuple[StrainId, PerturbationKind, str] | None:
    """Return what ``ORF``, ``ORF_tsqN`` or ``ORF_damp`` is, None if the text is none of them.

    Parameters
    ----------
    text : str
        A strain's name: alone it is a deletion.
    allele : str
        The name beside it, which is the gene's for deletions, else the allele's (``mtw1-ts``). Without it
        the strain's suffix names the allele.
    """
    found = _STRAIN.fullmatch(text)
    if found is None:
        return None
    kind = _KINDS[found["type"]]
    strain = StrainId(text, (found["orf"],), found["type"] or "")
    if kind is PerturbationKind.DELETION:
        return strain, kind, ""
    # DAmP strains have no allele but the one, which later tables of the laboratory spell in lower case
    name = allele.lower() if kind is PerturbationKind.REDUCED_EXPRESSION else allele
    return strain, kind, name or found["mark"]


def read(folder: str | Path, genes: GeneIndex, *, collect: Collector = ignore) -> Measurements:
    """Return the crosses of the raw table if it is in `folder`, else of the thresholded one.

    The raw table gives epsilon and fitness of double mutants, and the fitness of queries and arrays, which
    stands in every row of a strain: each distinct number of a strain is one measurement. The thresholded
    table gives epsilon only. A pair in both orders is two measurements, told apart by the query's name.

    Raises
    ------
    SourceError
        If there is neither file, or it is damaged, of another layout, or names no gene of the organism.
    """
    raw = RAW_TABLE.find(folder)
    path = raw or STRINGENT_TABLE.require(folder)
    columns = read_columns(path, types=(str,) * 4 + (float,) * (9 if raw else 3))
    p = columns.numbers(P_VALUE)
    columns.refuse(P_VALUE, (p < 0) | (p > 1), "a p-value of 0 to 1")
    for position in (SD, QUERY_FITNESS + 1, ARRAY_FITNESS + 1, DOUBLE + 1) if raw else (SD,):
        columns.refuse(position, columns.numbers(position) < 0, "a standard deviation of at least 0")
    query, array = _strains(columns, QUERY, genes), _strains(columns, ARRAY, genes)
    study, environment = study_of(PUBLISHER, [path]), sga_environment()
    crosses, parts = RowFilter(np.ones(len(columns), bool)), []
    crosses.drop_genes([query, array])

    def measure(
        sides: list[Side],
        phenotype: PhenotypeDefinition,
        use: str,
        position: int,
        sieve: RowFilter,
        label: str,
        p: NDArray[np.float64] | None = None,
    ) -> None:
        value, sd = columns.numbers(position), columns.numbers(position + 1)
        sieve.drop(NO_SCORE if phenotype is EPSILON else NO_FITNESS, np.isnan(value))
        if len(sides) == 1:
            sieve.drop(REPEATED, _listed_before(sides[0][1], value, sd, sieve.left))
        collect(sieve.reading(path.name, use, sides))
        parts.append(
            measured(study, genes, phenotype, environment, sides, value, sieve.left, label=label, sd=sd, p=p)
        )

    measure([query, array], EPSILON, EPSILON.name, SCORE, deepcopy(crosses), "query", p)
    if raw:
        measure([query, array], FITNESS, "fitness of crosses", DOUBLE, crosses, "query")
        for side, position, label in ((query, QUERY_FITNESS, "query"), (array, ARRAY_FITNESS, "array")):
            sieve = RowFilter(np.ones(len(columns), bool))
            sieve.drop_genes([side])
            measure([side], FITNESS, f"fitness of {label} strains", position, sieve, label)
    return together(parts, genes, [path])


def _strains(columns: Columns, position: int, genes: GeneIndex) -> Side:
    """Return the distinct strains of one side, and which of them each row has [m]."""
    strain, name = columns.text(position), columns.text(position + 1)
    wrong = np.array([_STRAIN.fullmatch(text) is None for text in strain.names])
    columns.refuse(position, wrong[strain.code], EXPECTED)
    pair = strain.code.astype(np.int64) * len(name.names) + name.code
    distinct, code = np.unique(pair, return_inverse=True)
    parsed = [
        parse_strain(strain.names[i], name.names[j])
        for i, j in zip(*(part.tolist() for part in np.divmod(distinct, len(name.names))), strict=True)
    ]
    found = [strain for strain in parsed if strain is not None]
    alleles = [[(kind, allele)] for _, kind, allele in found]
    return Strains.build([strain for strain, _, _ in found], alleles, genes, 1), code.reshape(-1)


def _listed_before(
    code: NDArray[np.int64], value: NDArray[np.float64], sd: NDArray[np.float64], rows: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Return which rows [m] of those marked repeat a strain's fitness and standard deviation."""
    at = np.flatnonzero(rows)
    # both numbers as one complex number, which is sorted by its two parts
    numbers, number = np.unique(value[at] + 1j * np.nan_to_num(sd[at], nan=-1.0), return_inverse=True)
    first = np.unique(code[at] * len(numbers) + number, return_index=True)[1]
    out = rows.copy()
    out[at[first]] = False
    return out
