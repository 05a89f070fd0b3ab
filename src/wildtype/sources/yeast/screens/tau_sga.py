"""The tau-SGA pipeline's reference data and test output: fitness standards, and crosses of five queries.

The rescored trigenic file calls its score "Adjusted genetic interaction score (epsilon or tau)", but for its
triple mutants it is the observed minus the expected fitness: the raw trigenic epsilon. The second control of
each query is not among its crosses, so tau cannot be computed from it, and nothing here is called tau.

Legend: n genes · m rows of a file · d distinct strains.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wildtype.datasets.measurements import Measurements
from wildtype.datasets.reading import ReadReport
from wildtype.datasets.records import Environment, PerturbationKind, Study
from wildtype.organism import GeneIndex
from wildtype.sources.columns import Columns, read_columns
from wildtype.sources.publisher import Publisher, RemoteFile
from wildtype.sources.text import Collector, ignore, read_rows
from wildtype.sources.yeast.screens import kuzmin2018
from wildtype.sources.yeast.screens.parts import REPEATED, RowFilter, Seen, study_of, together
from wildtype.sources.yeast.screens.sga_strains import HO, StrainId, parse_strain
from wildtype.sources.yeast.screens.suppressors import measured_apart, split_allele
from wildtype.sources.yeast.screens.trigenic_table import (
    ENVIRONMENT,
    EPSILON,
    FITNESS,
    NO_FITNESS,
    TRIGENIC_EPSILON,
    Side,
    build_strains,
    first_mutations,
    read_p_values,
    read_sd,
)

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

_SITE = "https://raw.githubusercontent.com/csbio/SGA_Public"


def _file(commit: str, path: str, alias: str) -> RemoteFile:
    name = path.rpartition("/")[2]
    return RemoteFile(name, urls=(f"{_SITE}/{commit}/{path}",), aliases=(alias,))


RESCORED = _file(
    "e130d3743e951eea5a61c03334e16372cfe920f8",
    "test/trigenic_scoring_test/scored_triple_test_small_trigenic.txt",
    "kuzmin_tausga_rescored_trigenic.tsv",
)
SCORED = _file(
    "e130d3743e951eea5a61c03334e16372cfe920f8",
    "test/trigenic_scoring_test/scored_triple_test_small_digenic.txt.txt",
    "kuzmin_tausga_rescored_digenic12col.tsv",
)
SINGLES_26 = _file(
    "b561bd40ce27659ddac8ddcf6fd5087e6afbc2a8", "refdata/smf_t26_150803.txt", "sga_smf_t26_150803.tsv"
)
SINGLES_30 = _file(
    "5442009c6ecfd7a6cd8e9f44236263593a31c006", "refdata/smf_t30_150803.txt", "sga_smf_t30_150803.tsv"
)
MINI_ARRAY = _file(
    "62dac317cd58cc94024e3e9a5ea79048e46acb89",
    "refdata/smf_DmQueryStd_MiniArray_180208.tsv",
    "sga_smf_dmquery_miniarray_180208.tsv",
)
QUERY_STANDARD = _file(
    "3579566fde805283ff037b1cac7cea24c484c983",
    "refdata/dmf_tr_150226_fromSGAonly-B.txt",
    "sga_double_mutant_query_fitness.tsv",
)
STRAINS = _file(
    "3579566fde805283ff037b1cac7cea24c484c983",
    "refdata/strain_orf_common_allele_160425.txt",
    "sga_strain_orf_common_allele_160425.tsv",
)
PUBLISHER = Publisher(
    name="tau-sga",
    title="fitness standards and test output of the pipeline that scores the trigenic screens",
    publication=kuzmin2018.PUBLISHER.publication,
    licence="not stated",
    files=(RESCORED, SCORED, SINGLES_26, SINGLES_30, MINI_ARRAY, QUERY_STANDARD, STRAINS),
    published={"rescored triple mutants": 4606, "rescored double mutants": 5826, "strains": 18636},
    notes=(
        "the score of the rescored triple mutants is the raw trigenic epsilon, whatever its column is called",
        "the fitness standard of double-mutant queries repeats the fitness as its standard deviation for "
        "every control query (gene + ho): read as not known",
        "queries whose strains are not in the assignment table are taken for deletions where the strain "
        "table has a deletion strain of the gene, else for temperature-sensitive alleles",
        "the temperature of the single-mutant standards is the one in the file's name; their medium is not "
        "stated",
    ),
)

_RESCORED_HEADER = (
    "Query Strain ID", "Array Strain ID", "Adjusted genetic interaction score (epsilon or tau)", "P-value",
    "Double/triple mutant fitness", "Double/triple mutant fitness standard deviation",
)  # fmt: skip
_RESCORED_TYPES = (str, str, float, float, float, float)
_SCORED_TYPES = (str, str, *[float] * 10)
_STANDARD_TYPES = (str, float, float)
_STRAINS_HEADER = ("Strain", "Orf", "Common", "Allele")
STRAIN_FORM = "a strain ORF_typeN or ORF1+ORF2_typeN"
QUERY_TYPES = ("tm", "y")
"""Types that do not say what was done to the gene."""
DELETION_TYPES = ("sn", "dma")
LISTED = "the same cross as in the other file"
"""The 12-column output and the published layout list the same crosses."""
SINGLE_STANDARDS = ((SINGLES_26, Environment(temperature=26)), (SINGLES_30, Environment(temperature=30)))


def read(folder: str | Path, genes: GeneIndex, *, collect: Collector = ignore) -> Measurements:
    """Return all scores and fitness: epsilon, trigenic epsilon, and fitness of strains and crosses.

    Raises
    ------
    SourceError
        If a file is missing, damaged or of another layout, or no row is of genes of the organism.
    """
    named = (RESCORED, SCORED, *(file for file, _ in SINGLE_STANDARDS), MINI_ARRAY, QUERY_STANDARD)
    paths = {file: file.require(folder) for file in named}
    study = study_of(PUBLISHER, paths.values())
    reader = _Reader(study, genes, read_alleles(folder, genes, collect=collect), collect)
    parts: list[Measurements] = []
    for file, environment in SINGLE_STANDARDS:
        parts += reader.standard(paths[file], environment, Seen())
    seen = Seen()
    for file in (MINI_ARRAY, QUERY_STANDARD):
        parts += reader.standard(paths[file], ENVIRONMENT, seen)
    rescored, scores = reader.rescored(paths[RESCORED])
    parts += scores + reader.scored(paths[SCORED], rescored, seen)
    return together(parts, genes, paths.values())


@dataclass(frozen=True, eq=False)
class Alleles:
    """What the strains of these files, which name no alleles, carry.

    Attributes
    ----------
    name : mapping of str to str
        Allele by strain.
    deleted : set of str
        ORFs that there is a deletion strain of.
    source : mapping of (str, str) to str
        Strain that a query (by its short identifier) has an ORF's allele from.
    """

    name: Mapping[str, str]
    deleted: frozenset[str]
    source: Mapping[tuple[str, str], str]

    def of(self, strain: StrainId) -> list[tuple[PerturbationKind, str, str]]:
        """Return kind, allele and suppressor (or ``""``) of each ORF of a strain."""
        return [self._one(strain, orf) for orf in strain.orfs]

    def _one(self, strain: StrainId, orf: str) -> tuple[PerturbationKind, str, str]:
        source = strain.name
        if strain.type in QUERY_TYPES:
            source = self.source.get((strain.short, orf), "")
            if not source:
                deleted = orf == HO or orf in self.deleted
                kinds = PerturbationKind
                return (kinds.DELETION if deleted else kinds.TEMPERATURE_SENSITIVE), "", ""
        parsed = parse_strain(source)
        return split_allele(self.name.get(source, ""), parsed.type if parsed else "")


def read_alleles(folder: str | Path, genes: GeneIndex, *, collect: Collector = ignore) -> Alleles:
    """Read the strain table and the assignment of queries; raises ``SourceError``."""
    rows = read_rows(STRAINS.require(folder), header=_STRAINS_HEADER)
    collect(ReadReport(rows.path.name, "alleles of strains", len(rows), len(rows)))
    strains, orfs = rows.text(0), rows.text(1)
    parsed = [parse_strain(name) for name in strains]
    wrong = np.array([found is None or found.orfs != (orf,) for found, orf in zip(parsed, orfs, strict=True)])
    rows.refuse(0, wrong, "a strain of the ORF beside it, ORF_typeN")
    deletion = [found is not None and found.type in DELETION_TYPES for found in parsed]
    assignment = kuzmin2018.read_query_assignment(folder, genes, collect=collect)
    source = {}
    for query, controls, pair in zip(assignment.query, assignment.control, assignment.source, strict=True):
        for control, strain in zip(controls, pair, strict=True):
            orf = strain.partition("_")[0]
            source[query, orf] = source[control, orf] = strain
    return Alleles(
        dict(zip(strains, rows.text(3), strict=True)),
        frozenset(orf for orf, deleted in zip(orfs, deletion, strict=True) if deleted),
        source,
    )


@dataclass(frozen=True, eq=False)
class _Reader:
    """What all files of the study are read with."""

    study: Study
    genes: GeneIndex
    alleles: Alleles
    collect: Collector

    def strains(self, columns: Columns, position: int, k: int) -> tuple[Side, Flags]:
        """Return the distinct strains of k ORFs in a column, the strain of each row [m], and who has one."""
        column = columns.text(position)
        parsed = [parse_strain(name) for name in column.names]
        columns.refuse(position, np.array([found is None for found in parsed])[column.code], STRAIN_FORM)
        mine = [found for found in parsed if found is not None and len(found.orfs) == k]
        has = np.array([found is not None and len(found.orfs) == k for found in parsed])
        strains = build_strains(mine, [self.alleles.of(found) for found in mine], self.genes, k)
        return (strains, (np.cumsum(has) - 1)[column.code]), has[column.code]

    def fitness(
        self,
        file: str,
        use: str,
        side: Side,
        rows: Flags,
        value: Floats,
        sd: Floats,
        seen: Seen,
        where: Environment,
    ) -> list[Measurements]:
        """Return the fitness of strains, every distinct number of a strain once."""
        first = first_mutations([side])
        sieve = RowFilter(rows)
        sieve.drop_genes(first)
        sieve.drop(NO_FITNESS, np.isnan(value))
        sieve.drop(REPEATED, seen.again(*first[0], value, sieve.left))
        self.collect(sieve.reading(file, use, first))
        return measured_apart(
            self.study, self.genes, FITNESS, where, [side], value, sieve.left, label="strain", sd=sd
        )

    def standard(self, path: Path, where: Environment, seen: Seen) -> list[Measurements]:
        """Return the fitness of a standard: strain, fitness, standard deviation, without a header."""
        columns = read_columns(path, types=_STANDARD_TYPES)
        value, sd = columns.numbers(1), read_sd(columns, 2)
        parts = []
        for k, use in ((1, "fitness of strains of one ORF"), (2, "fitness of strains of two ORFs")):
            side, has = self.strains(columns, 0, k)
            if has.any():
                known = np.where(_controls(side) & (k == 2) & (sd == value), np.nan, sd)
                parts += self.fitness(path.name, use, side, has, value, known, seen, where)
        return parts

    def crosses(self, given: _Crosses, listed: Flags) -> list[Measurements]:
        """Return epsilon, trigenic epsilon and fitness of crosses, less those ``listed`` [m] elsewhere."""
        control, both = _controls(given.sides[0]), first_mutations(given.sides)
        parts = []
        for phenotype, use, rows, value, sd, p in (
            (EPSILON, EPSILON.name, control, given.score, None, given.p),
            (TRIGENIC_EPSILON, TRIGENIC_EPSILON.name, ~control, given.score, None, given.p),
            (FITNESS, "fitness of crosses", control | True, given.fitness, given.sd, None),
        ):
            sieve = RowFilter(rows)
            sieve.drop_genes(both)
            sieve.drop(LISTED, listed)
            sieve.drop(NO_FITNESS, np.isnan(value))
            self.collect(sieve.reading(given.file, use, both))
            parts += measured_apart(
                self.study,
                self.genes,
                phenotype,
                ENVIRONMENT,
                given.sides,
                value,
                sieve.left,
                label="query",
                sd=sd,
                p=p,
            )
        return parts

    def sides(self, columns: Columns) -> list[Side]:
        """Return queries and arrays of crosses, the first two columns."""
        sides = []
        for position, k, form in (
            (0, 2, "a query strain ORF1+ORF2_tmN"),
            (1, 1, "an array strain ORF_typeN"),
        ):
            side, has = self.strains(columns, position, k)
            columns.refuse(position, ~has, form)
            sides.append(side)
        return sides

    def rescored(self, path: Path) -> tuple[_Crosses, list[Measurements]]:
        """Return the crosses of the published layout."""
        columns = read_columns(path, types=_RESCORED_TYPES, header=_RESCORED_HEADER)
        given = _Crosses(
            path.name,
            self.sides(columns),
            score=columns.numbers(2),
            p=read_p_values(columns, 3),
            fitness=columns.numbers(4),
            sd=read_sd(columns, 5),
        )
        return given, self.crosses(given, np.zeros(len(columns), bool))

    def scored(self, path: Path, rescored: _Crosses, seen: Seen) -> list[Measurements]:
        """Return what only the 12-column output has: crosses the other file lacks, and fitness of strains.

        Its third column is a score on another scale; epsilon is the observed minus the expected fitness.
        """
        columns = read_columns(path, types=_SCORED_TYPES)
        observed, expected = columns.numbers(10), columns.numbers(9)
        given = _Crosses(
            path.name,
            self.sides(columns),
            score=observed - expected,
            p=read_p_values(columns, 4),
            fitness=observed,
            sd=read_sd(columns, 11),
        )
        known = set(rescored.names())
        parts = self.crosses(given, np.array([name in known for name in given.names()]))
        every = np.ones(len(columns), bool)
        for side, position, what in zip(given.sides, (5, 7), ("query", "array"), strict=True):
            value, sd = columns.numbers(position), read_sd(columns, position + 1)
            use = f"fitness of {what} strains"
            parts += self.fitness(path.name, use, side, every, value, sd, seen, ENVIRONMENT)
        return parts


def _controls(side: Side) -> Flags:
    """Return which rows [m] have a strain that deletes the neutral locus."""
    (strains, code) = side
    return np.array([HO in strain.orfs for strain in strains.first.ids])[code]


@dataclass(frozen=True, eq=False)
class _Crosses:
    """The crosses of a file: columns [m] of score, p-value, fitness and its standard deviation."""

    file: str
    sides: list[Side]
    score: Floats
    p: Floats
    fitness: Floats
    sd: Floats

    def names(self) -> list[tuple[str, str]]:
        """Return the identifiers of query and array of every row."""
        (query, query_code), (array, array_code) = first_mutations(self.sides)
        pairs = zip(query_code.tolist(), array_code.tolist(), strict=True)
        return [(query.ids[q].name, array.ids[a].name) for q, a in pairs]
