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

from wildtype.datasets.measurements import Measurements
from wildtype.datasets.records import PerturbationKind
from wildtype.organism import GeneIndex
from wildtype.sources.columns import Columns, read_columns
from wildtype.sources.text import Collector, ignore
from wildtype.sources.yeast.files import publisher, study_of
from wildtype.sources.yeast.rows import Flags, Floats, Ints, RowFilter
from wildtype.sources.yeast.screens.parts import (
    EPSILON,
    FITNESS,
    NO_FITNESS,
    NO_SCORE,
    REPEATED,
    Screen,
    drop_genes,
    read_p_values,
    read_sd,
    together,
)
from wildtype.sources.yeast.screens.sga_strains import Mutation, Side, StrainId, Strains, distinct_pairs
from wildtype.sources.yeast.screens.single_fitness import sga_environment

STRINGENT = "costanzo2010_sga_stringent_cutoff_101120.tsv.gz"
PUBLISHER = publisher("costanzo2010")
RAW_TABLE, STRINGENT_TABLE = PUBLISHER.files
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
EXPECTED = "an ORF name, alone or followed by _tsqN or _damp"


def parse_strain(text: str, allele: str = "") -> tuple[StrainId, Mutation] | None:
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
        return strain, (kind, "", "")
    # DAmP strains have no allele but the one, which later tables of the laboratory spell in lower case.
    name = allele.lower() if kind is PerturbationKind.REDUCED_EXPRESSION else allele
    return strain, (kind, name or found["mark"], "")


def read(folder: str | Path, genes: GeneIndex, *, collect: Collector = ignore) -> Measurements:
    """Return the crosses of the raw table if it is in `folder`, else of the thresholded one.

    The raw table gives epsilon and fitness of double mutants, and the fitness of queries and arrays, which
    is repeated in every row of a strain: each distinct number of a strain is one measurement. The thresholded
    table gives epsilon only. A pair in both orders is two measurements, distinguished by the query's name.

    Raises
    ------
    SourceError
        If there is neither file, or it is damaged, of another layout, or names no gene of the organism.
    """
    raw = RAW_TABLE.find(folder)
    path = raw or STRINGENT_TABLE.require(folder)
    columns = read_columns(path, types=(str,) * 4 + (float,) * (9 if raw else 3))
    p = read_p_values(columns, P_VALUE)
    value_columns = (SCORE, QUERY_FITNESS, ARRAY_FITNESS, DOUBLE) if raw else (SCORE,)
    sd = {position: read_sd(columns, position + 1) for position in value_columns}
    query, array = _side(columns, QUERY, genes), _side(columns, ARRAY, genes)
    screen, where = Screen(study_of(PUBLISHER, [path]), genes, collect), sga_environment()
    both = [query, array]
    # A pair in both orders is two rows: the name of the query, as replicate, distinguishes them.
    crosses = drop_genes(RowFilter(len(columns)), both)
    value = columns.numbers(SCORE)
    used = screen.select(path.name, EPSILON.name, both, deepcopy(crosses), {NO_SCORE: np.isnan(value)})
    screen.add(EPSILON, where, both, value, used, label="query", sd=sd[SCORE], p=p)
    if raw:
        for sides, position, label, use in (
            (both, DOUBLE, "query", "fitness of crosses"),
            ([query], QUERY_FITNESS, "query", "fitness of query strains"),
            ([array], ARRAY_FITNESS, "array", "fitness of array strains"),
        ):
            value = columns.numbers(position)
            # The filter whose copy gave epsilon; a fitness of one side needs the genes of that side only.
            rows = crosses if sides is both else drop_genes(RowFilter(len(columns)), sides)
            rows.drop(NO_FITNESS, np.isnan(value))
            if len(sides) == 1:
                rows.drop(REPEATED, _listed_before(sides[0].code, value, sd[position], rows.left))
            used = screen.select(path.name, use, sides, rows, {})
            screen.add(FITNESS, where, sides, value, used, label=label, sd=sd[position])
    return together(screen.parts, genes, [path])


def _side(columns: Columns, position: int, genes: GeneIndex) -> Side:
    strain, name = columns.text(position), columns.text(position + 1)
    columns.refuse(position, strain.map(lambda text: _STRAIN.fullmatch(text) is None, bool), EXPECTED)
    pairs, code = distinct_pairs(strain, name)
    found = [parsed for pair in pairs if (parsed := parse_strain(*pair)) is not None]
    ids, mutations = [strain for strain, _ in found], [[mutation] for _, mutation in found]
    return Side(Strains.build(ids, mutations, genes, 1), code)


def _listed_before(code: Ints, value: Floats, sd: Floats, rows: Flags) -> Flags:
    """Return which rows [m] of those marked repeat a strain's fitness and standard deviation."""
    at = np.flatnonzero(rows)
    # Both numbers as one complex number: numpy sorts millions of these far faster than rows of a matrix.
    numbers, number = np.unique(value[at] + 1j * np.nan_to_num(sd[at], nan=-1.0), return_inverse=True)
    first = np.unique(code[at] * len(numbers) + number, return_index=True)[1]
    out = rows.copy()
    out[at[first]] = False
    return out
