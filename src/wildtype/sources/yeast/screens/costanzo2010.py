"""Costanzo et al. 2010 (Science 327:425): a first large network of digenic interactions, by query and array.

Three tables without a header: the raw one, 13 columns for every cross, and two lists of significant scores,
whose seven columns are the first of the raw one. The intermediate list has |epsilon| >= 0.08; the stringent
one is a part of it. Two more files name crosses and genes that are set aside for a blind test.

Legend: m rows of a table · d distinct strains.
"""

from __future__ import annotations

import re
from copy import deepcopy
from pathlib import Path
from typing import NamedTuple

import numpy as np

from wildtype.datasets.measurements import Measurements
from wildtype.datasets.reading import ReadReport
from wildtype.datasets.records import PerturbationKind, PhenotypeDefinition, Study
from wildtype.organism import GeneIndex
from wildtype.sources.columns import Columns, read_columns
from wildtype.sources.row_filter import LISTED_TWICE, SAME_GENE, Flags, Floats, Ints, RowFilter, repeated
from wildtype.sources.text import Collector, ignore, match_genes, read_rows
from wildtype.sources.yeast.files import find_copy, publisher, study_of
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

INTERMEDIATE = "costanzo2010_sga_intermediate_cutoff_101120.tsv.gz"
STRINGENT = "costanzo2010_sga_stringent_cutoff_101120.tsv.gz"
PUBLISHER = publisher("costanzo2010")
RAW_TABLE, INTERMEDIATE_TABLE, STRINGENT_TABLE, RESERVED_CROSSES, RESERVED_GENES = PUBLISHER.files
STUDY_OF_STRINGENT, STUDY_OF_RESERVED = (f"{PUBLISHER.name}-{part}" for part in ("stringent", "reserved"))
"""Names in a store of the stringent list and of what is set aside, beside the widest table of scores."""
QUERY, ARRAY, SCORE, SD, P_VALUE, QUERY_FITNESS, ARRAY_FITNESS, DOUBLE = 0, 2, 4, 5, 6, 7, 9, 11
"""Columns of the raw table; a standard deviation follows every score and fitness."""


class CutOff(NamedTuple):
    """The scores between which nothing is listed: one at most ``negative``, one at least ``positive``."""

    negative: float
    positive: float


INTERMEDIATE_CUT, STRINGENT_CUT = CutOff(-0.08, 0.08), CutOff(-0.12, 0.16)
"""The publisher's cut-offs; the p-value of a listed score is at most 0.05 as printed."""
WEAKER = "score between the cut-offs of the list"
RESERVED = PhenotypeDefinition(
    name="reserved",
    unit="1 set aside",
    description="a cross, or a gene with all its crosses, that is set aside for a blind test: never a label",
)
"""What marks crosses (two genes) and genes whose measurements nobody may use."""
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
    """Return the crosses of the raw table if it is in `folder`, else of the intermediate or stringent list.

    The raw table gives epsilon and fitness of double mutants, and the fitness of queries and arrays, which
    is repeated in every row of a strain: each distinct number of a strain is one measurement. The lists give
    epsilon only. A pair in both orders is two measurements, distinguished by the query's name.

    Raises
    ------
    SourceError
        If there is none of the files, or it is damaged, of another layout, or names no gene of the organism.
    """
    raw = RAW_TABLE.find(folder)
    path = (
        raw or find_copy(folder, (INTERMEDIATE_TABLE, STRINGENT_TABLE)) or INTERMEDIATE_TABLE.require(folder)
    )
    return _read_crosses(path, genes, study_of(PUBLISHER, [path]), collect, raw=path == raw)


def read_stringent(folder: str | Path, genes: GeneIndex, *, collect: Collector = ignore) -> Measurements:
    """Return epsilon of the stringent list, or of the rows of a wider table beyond the stringent cut-offs.

    The intermediate list prints 40 more scores at the stringent cut-offs than the stringent list has, because
    scores are rounded: the list itself goes first.

    Raises
    ------
    SourceError
        If there is none of the files, or it is damaged, of another layout, or names no gene of the organism.
    """
    path = find_copy(folder, (STRINGENT_TABLE, RAW_TABLE, INTERMEDIATE_TABLE)) or STRINGENT_TABLE.require(
        folder
    )
    raw, study = path == RAW_TABLE.find(folder), _named(STUDY_OF_STRINGENT, path)
    return _read_crosses(path, genes, study, collect, raw=raw, cut=STRINGENT_CUT)


def _named(name: str, *paths: Path) -> Study:
    return study_of(PUBLISHER, paths).model_copy(update={"name": name})


def _read_crosses(
    path: Path, genes: GeneIndex, study: Study, collect: Collector, *, raw: bool, cut: CutOff | None = None
) -> Measurements:
    """Return the crosses of one table, raw or a list; with ``cut`` significant scores only, no fitness."""
    columns = read_columns(path, types=(str,) * 4 + (float,) * (9 if raw else 3))
    p = read_p_values(columns, P_VALUE)
    fitness = raw and cut is None
    value_columns = (SCORE, QUERY_FITNESS, ARRAY_FITNESS, DOUBLE) if fitness else (SCORE,)
    sd = {position: read_sd(columns, position + 1) for position in value_columns}
    query, array = _side(columns, QUERY, genes), _side(columns, ARRAY, genes)
    screen, where = Screen(study, genes, collect), sga_environment()
    both = [query, array]
    # A pair in both orders is two rows: the name of the query, as replicate, distinguishes them.
    crosses = drop_genes(RowFilter(len(columns)), both)
    value = columns.numbers(SCORE)
    reasons = {NO_SCORE: np.isnan(value)}
    if cut is not None:
        # Not (p < 0.05), so that a score without a p-value is not listed either.
        reasons[WEAKER] = ((value > cut.negative) & (value < cut.positive)) | ~(p < 0.05)
    used = screen.select(path.name, EPSILON.name, both, deepcopy(crosses), reasons)
    screen.add(EPSILON, where, both, value, used, label="query", sd=sd[SCORE], p=p)
    if fitness:
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


def read_reserved(folder: str | Path, genes: GeneIndex, *, collect: Collector = ignore) -> Measurements:
    """Return the crosses and genes that are set aside: two genes for a cross, one for all crosses of a gene.

    The file of genes is optional beside that of crosses.

    Raises
    ------
    SourceError
        If the file of crosses is missing, or a file is damaged or names no gene of the organism.
    """
    crosses = read_columns(RESERVED_CROSSES.require(folder), types=(str, str), header=("orf_a", "orf_b"))
    left, right = crosses.text(0).match(genes), crosses.text(1).match(genes)
    used = RowFilter(len(crosses))
    used.drop_names(left, right)
    used.drop(SAME_GENE, left.position == right.position)
    pair = np.sort(np.stack([left.position, right.position], axis=1), axis=1)
    # Two names of one gene make two lines of one cross.
    lines = np.flatnonzero(used.left)
    again = np.zeros(len(crosses), bool)
    again[lines] = repeated(pair[lines, 0] * len(genes) + pair[lines, 1])
    used.drop(LISTED_TWICE, again)
    collect(used.report(crosses.path.name, RESERVED.name, left.renamed | right.renamed))
    paths, parts = [crosses.path], [pair[used.left]]
    if (path := RESERVED_GENES.find(folder)) is not None:
        gene, report = _reserved_genes(path, genes)
        collect(report)
        paths.append(path)
        parts.append(gene[:, None])
    study = _named(STUDY_OF_RESERVED, *paths)
    return together(
        [
            Measurements.build(
                study, genes=genes.names, gene=part, value=np.ones(len(part)), phenotypes=(RESERVED,)
            )
            for part in parts
        ],
        genes,
        paths,
    )


def _reserved_genes(path: Path, genes: GeneIndex) -> tuple[Ints, ReadReport]:
    rows = read_rows(path, fields=1)
    matched, used = match_genes(rows.text(0), genes), RowFilter(len(rows))
    used.drop_names(matched)
    gene, _ = used.first_of_each(matched, path)
    return gene, used.report(path.name, RESERVED.name, matched.renamed)


def _side(columns: Columns, position: int, genes: GeneIndex) -> Side:
    strain, name = columns.text(position), columns.names(position + 1)
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
