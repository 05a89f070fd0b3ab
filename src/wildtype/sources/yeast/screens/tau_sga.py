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

from wildtype.datasets.measurements import Measurements
from wildtype.datasets.reading import ReadReport
from wildtype.datasets.records import Environment, PerturbationKind
from wildtype.organism import GeneIndex
from wildtype.sources.columns import Columns, read_columns
from wildtype.sources.row_filter import Flags, Floats, RowFilter
from wildtype.sources.text import Collector, ignore, read_rows
from wildtype.sources.yeast.files import publisher, study_of
from wildtype.sources.yeast.screens import kuzmin2018
from wildtype.sources.yeast.screens.parts import (
    EPSILON,
    FITNESS,
    NO_FITNESS,
    Screen,
    Seen,
    drop_genes,
    read_p_values,
    read_sd,
    together,
)
from wildtype.sources.yeast.screens.sga_strains import (
    HO,
    Mutation,
    Side,
    StrainId,
    Strains,
    parse_strain,
    split_allele,
)
from wildtype.sources.yeast.screens.trigenic_table import ENVIRONMENT, TRIGENIC_EPSILON

PUBLISHER = publisher("tau-sga")
RESCORED, SCORED, SINGLES_26, SINGLES_30, MINI_ARRAY, QUERY_STANDARD, STRAINS = PUBLISHER.files
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
"""Strain types that leave open what was done to the gene."""
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
    alleles = read_alleles(folder, genes, collect=collect)
    reader = _Reader(Screen(study_of(PUBLISHER, paths.values()), genes, collect), alleles)
    for file, environment in SINGLE_STANDARDS:
        reader.standard(paths[file], environment, Seen())
    # One `Seen` for the standards and crosses of one medium and temperature, which repeat one another.
    seen = Seen()
    for file in (MINI_ARRAY, QUERY_STANDARD):
        reader.standard(paths[file], ENVIRONMENT, seen)
    reader.scored(paths[SCORED], reader.rescored(paths[RESCORED]), seen)
    return together(reader.screen.parts, genes, paths.values())


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

    def of(self, strain: StrainId) -> list[Mutation]:
        """Return the mutation of each ORF of a strain."""
        return [self._one(strain, orf) for orf in strain.orfs]

    def _one(self, strain: StrainId, orf: str) -> Mutation:
        source = strain.name
        if strain.type in QUERY_TYPES:
            source = self.source.get((strain.short, orf), "")
            if not source:
                # Not in the assignment: a deletion where one exists, since essential genes have none.
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
    # The table is the only source of alleles here: a strain under a wrong ORF would move an allele.
    wrong = np.array([found is None or found.orfs != (orf,) for found, orf in zip(parsed, orfs, strict=True)])
    rows.refuse(0, wrong, "a strain of the ORF beside it, ORF_typeN")
    names = rows.names(3)
    deletion = [found is not None and found.type in DELETION_TYPES for found in parsed]
    assignment = kuzmin2018.read_query_assignment(folder, genes, collect=collect)
    source = {}
    for query, controls, pair in zip(assignment.query, assignment.control, assignment.source, strict=True):
        for control, strain in zip(controls, pair, strict=True):
            orf = strain.partition("_")[0]
            source[query, orf] = source[control, orf] = strain
    return Alleles(
        dict(zip(strains, names, strict=True)),
        frozenset(orf for orf, deleted in zip(orfs, deletion, strict=True) if deleted),
        source,
    )


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
        (query, query_code), (array, array_code) = self.sides
        pairs = zip(query_code.tolist(), array_code.tolist(), strict=True)
        return [(query.ids[q].name, array.ids[a].name) for q, a in pairs]


@dataclass(frozen=True, eq=False)
class _Reader:
    """What all files of the study are read with."""

    screen: Screen
    alleles: Alleles

    def strains(self, columns: Columns, position: int, k: int) -> tuple[Side, Flags]:
        """Return the strains of k ORFs in a column, and the rows [m] that have one."""
        column = columns.text(position)
        parsed = [parse_strain(name) for name in column.names]
        columns.refuse(position, np.array([found is None for found in parsed])[column.code], STRAIN_FORM)
        mine = [found for found in parsed if found is not None and len(found.orfs) == k]
        has = np.array([found is not None and len(found.orfs) == k for found in parsed])
        strains = Strains.build(mine, [self.alleles.of(found) for found in mine], self.screen.genes, k)
        # Rows of other strains have the code of a neighbour, or -1, and are never used.
        return Side(strains, (np.cumsum(has) - 1)[column.code]), has[column.code]

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
    ) -> None:
        """Measure the fitness of strains, every distinct number of a strain once."""
        used = self.screen.select(
            file,
            use,
            [side],
            drop_genes(RowFilter(rows), [side]),
            {NO_FITNESS: np.isnan(value)},
            new=(seen, value),
        )
        self.screen.add(FITNESS, where, [side], value, used, label="strain", sd=sd)

    def standard(self, path: Path, where: Environment, seen: Seen) -> None:
        """Measure a standard of fitness: strain, fitness, standard deviation, without a header."""
        columns = read_columns(path, types=_STANDARD_TYPES)
        value, sd = columns.numbers(1), read_sd(columns, 2)
        for k, use in ((1, "fitness of strains of one ORF"), (2, "fitness of strains of two ORFs")):
            side, has = self.strains(columns, 0, k)
            if has.any():
                # Control queries have the fitness itself in the column of its standard deviation.
                known = np.where(side.controls & (k == 2) & (sd == value), np.nan, sd)
                self.fitness(path.name, use, side, has, value, known, seen, where)

    def crosses(self, given: _Crosses, listed: Flags) -> None:
        """Measure epsilon, trigenic epsilon and fitness of crosses, less those ``listed`` [m] elsewhere."""
        control = given.sides[0].controls
        for phenotype, use, rows, value, sd, p in (
            # The score is the fitness less a constant, and the sd of the one is that of the other: in the
            # 12-column output their scales have one quotient per query, to all digits.
            (EPSILON, EPSILON.name, control, given.score, given.sd, given.p),
            (TRIGENIC_EPSILON, TRIGENIC_EPSILON.name, ~control, given.score, given.sd, given.p),
            (FITNESS, "fitness of crosses", control | True, given.fitness, given.sd, None),
        ):
            reasons = {LISTED: listed, NO_FITNESS: np.isnan(value)}
            used = self.screen.select(
                given.file, use, given.sides, drop_genes(RowFilter(rows), given.sides), reasons
            )
            self.screen.add(phenotype, ENVIRONMENT, given.sides, value, used, label="query", sd=sd, p=p)

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

    def rescored(self, path: Path) -> _Crosses:
        """Measure and return the crosses of the published layout."""
        columns = read_columns(path, types=_RESCORED_TYPES, header=_RESCORED_HEADER)
        given = _Crosses(
            path.name,
            self.sides(columns),
            score=columns.numbers(2),
            p=read_p_values(columns, 3),
            fitness=columns.numbers(4),
            sd=read_sd(columns, 5),
        )
        self.crosses(given, np.zeros(len(columns), bool))
        return given

    def scored(self, path: Path, rescored: _Crosses, seen: Seen) -> None:
        """Measure what only the 12-column output has: crosses that the other lacks, fitness of strains."""
        columns = read_columns(path, types=_SCORED_TYPES)
        observed, expected = columns.numbers(10), columns.numbers(9)
        given = _Crosses(
            path.name,
            self.sides(columns),
            # The third column is a score on another scale; epsilon is the observed minus the expected
            # fitness.
            score=observed - expected,
            p=read_p_values(columns, 4),
            fitness=observed,
            sd=read_sd(columns, 11),
        )
        known = set(rescored.names())
        self.crosses(given, np.array([name in known for name in given.names()]))
        every = np.ones(len(columns), bool)
        for side, position, what in zip(given.sides, (5, 7), ("query", "array"), strict=True):
            value, sd = columns.numbers(position), read_sd(columns, position + 1)
            self.fitness(path.name, f"fitness of {what} strains", side, every, value, sd, seen, ENVIRONMENT)
