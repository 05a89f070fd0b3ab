"""The table of a trigenic screen: every cross of a query strain with an array strain, 12 columns.

A double-mutant query gives triple mutants, whose adjusted score is tau; the control query of each of its
genes (``gene + ho``) gives double mutants, whose score is epsilon. One column is "epsilon or tau" and holds
both. The raw score of a triple mutant is its fitness minus the product of the query's and the array's:
digenic interactions are still in it, so it has a name of its own, ``trigenic epsilon``, and is never tau.

Legend: m rows of the table · d distinct strains · k genes of a strain.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wildtype.datasets.measurements import Measurements
from wildtype.datasets.records import Environment, PerturbationKind, PhenotypeDefinition, Study
from wildtype.organism import GeneIndex
from wildtype.sources.columns import Columns
from wildtype.sources.text import Collector
from wildtype.sources.yeast.screens.parts import REPEATED, RowFilter, Seen
from wildtype.sources.yeast.screens.sga_strains import HO, StrainId, Strains, parse_strain
from wildtype.sources.yeast.screens.suppressors import SuppressedStrains, measured_apart, split_allele

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Side = tuple[SuppressedStrains, Ints]
"""The distinct strains of one side of a cross, and which of them each row [m] has."""

HEADER = (
    "Query strain ID", "Query allele name", "Array strain ID", "Array allele name", "Combined mutant type",
    "Raw genetic interaction score (epsilon)", "Adjusted genetic interaction score (epsilon or tau)",
    "P-value", "Query single/double mutant fitness", "Array single mutant fitness", None, None,
)  # fmt: skip
"""Column names; the last two are spelled in one of the ways of `CROSS_FITNESS`."""
CROSS_FITNESS = (
    ("Combined mutant fitness", "Combined mutant fitness standard deviation"),
    ("Double/triple mutant fitness", "Double/triple mutant fitness standard deviation"),
)
TYPES = (str, str, str, str, str, float, float, float, float, float, float, float)
MUTANT_TYPES = ("digenic", "trigenic")

ENVIRONMENT = Environment(medium="SGA triple-mutant selection medium", temperature=26)
FITNESS = PhenotypeDefinition(
    name="fitness", direction="higher is fitter", description="colony size relative to wild type"
)
EPSILON = PhenotypeDefinition(
    name="epsilon",
    unit="fitness units: double-mutant fitness minus the product of the single ones",
    min_order=2,
    description="digenic interaction by synthetic genetic array, colony size",
)
TAU = PhenotypeDefinition(
    name="tau",
    unit="fitness units: triple-mutant fitness beyond what single mutants and digenic interactions expect",
    min_order=3,
    description="trigenic interaction by synthetic genetic array, colony size",
)
TRIGENIC_EPSILON = PhenotypeDefinition(
    name="trigenic epsilon",
    unit="fitness units: triple-mutant fitness minus the product of double-mutant query and array",
    min_order=3,
    description="raw score of a triple mutant, digenic interactions of query and array genes not taken off",
)

NO_SCORE = "no score given"
NO_FITNESS = "no fitness given"
CONTRADICTION = "mutant type that its query cannot have"
IN_STANDARD = "fitness of the query given in the fitness standard"


@dataclass(frozen=True, eq=False)
class Crosses:
    """The crosses of one table.

    Attributes
    ----------
    path : Path
        The file.
    query, array : (SuppressedStrains, int64 [m])
        The distinct strains of each side, with two and one gene, and which of them each row has.
    trigenic : bool [m]
        Rows whose combined mutant is a triple mutant.
    raw, adjusted, p : float64 [m]
        Scores and p-value.
    query_fitness, array_fitness, fitness, sd : float64 [m]
        Fitness of query, array and combined mutant, and the last one's standard deviation.
    """

    path: Path
    query: Side
    array: Side
    trigenic: Flags
    raw: Floats
    adjusted: Floats
    p: Floats
    query_fitness: Floats
    array_fitness: Floats
    fitness: Floats
    sd: Floats

    def __len__(self) -> int:
        return len(self.trigenic)


def read_crosses(columns: Columns, genes: GeneIndex) -> Crosses:
    """Check the columns of a table read with `HEADER` and `TYPES`, and name its strains.

    Raises
    ------
    SourceError
        Naming the line of a header, strain identifier, allele name, mutant type, p-value or standard
        deviation that cannot be.
    """
    if columns.header[10:] not in CROSS_FITNESS:
        raise columns.error(
            -1, ", ".join(columns.header[10:]), f"{' or '.join(repr(', '.join(n)) for n in CROSS_FITNESS)}"
        )
    query, array = read_strains(columns, genes)
    return Crosses(
        columns.path,
        query,
        array,
        trigenic=read_mutant_types(columns),
        raw=columns.numbers(5),
        adjusted=columns.numbers(6),
        p=read_p_values(columns, 7),
        query_fitness=columns.numbers(8),
        array_fitness=columns.numbers(9),
        fitness=columns.numbers(10),
        sd=read_sd(columns, 11),
    )


def read_mutant_types(columns: Columns) -> Flags:
    """Return the rows [m] whose combined mutant is a triple mutant; raises ``SourceError``."""
    mutant = columns.text(4)
    known = np.array([name in MUTANT_TYPES for name in mutant.names])
    columns.refuse(4, ~known[mutant.code], "digenic or trigenic")
    return np.array([name == "trigenic" for name in mutant.names])[mutant.code]


def read_p_values(columns: Columns, position: int) -> Floats:
    """Return a column of p-values [m], 0 included; raises ``SourceError``."""
    p = columns.numbers(position)
    columns.refuse(position, (p < 0) | (p > 1), "a p-value of 0 to 1")
    return p


def read_sd(columns: Columns, position: int) -> Floats:
    """Return a column of standard deviations [m], 0 included; raises ``SourceError``."""
    sd = columns.numbers(position)
    columns.refuse(position, sd < 0, "a standard deviation of at least 0")
    return sd


def read_strains(columns: Columns, genes: GeneIndex) -> tuple[Side, Side]:
    """Return the distinct queries and each row's query [m], then the same of the arrays.

    Identifier and allele name of the query are the columns 1 and 2, of the array 3 and 4. Raises
    ``SourceError``.
    """
    query = _strains(columns, 0, 2, "a query strain ORF1+ORF2_tmN", "two allele names joined by +", genes)
    return query, _strains(columns, 2, 1, "an array strain ORF_dmaN or ORF_tsaN", "an allele name", genes)


def _strains(
    columns: Columns, position: int, k: int, strain_form: str, allele_form: str, genes: GeneIndex
) -> Side:
    strain, allele = columns.text(position), columns.text(position + 1)
    parsed = [parse_strain(name) for name in strain.names]
    ids = [found for found in parsed if found is not None and len(found.orfs) == k]
    fits = np.array([found is not None and len(found.orfs) == k for found in parsed])
    columns.refuse(position, ~fits[strain.code], strain_form)
    named = [name.split("+") for name in allele.names]
    wrong = np.array([len(parts) != k or not all(parts) for parts in named])
    columns.refuse(position + 1, wrong[allele.code], allele_form)
    # One strain identifier with two allele names is two strains.
    pairs, code = np.unique(strain.code.astype(np.int64) * len(named) + allele.code, return_inverse=True)
    strains = [ids[pair // len(named)] for pair in pairs.tolist()]
    alleles = [
        [split_allele(name, found.type) for name in named[pair % len(named)]]
        for found, pair in zip(strains, pairs.tolist(), strict=True)
    ]
    return build_strains(strains, alleles, genes, k), code.reshape(-1).astype(np.int64)


def build_strains(
    strains: Sequence[StrainId],
    alleles: Sequence[Sequence[tuple[PerturbationKind, str, str]]],
    genes: GeneIndex,
    k: int,
) -> SuppressedStrains:
    """Return d strains of k genes each; `alleles` [d][k] as ``split_allele`` gives them."""
    at = [next((i for i, (_, _, name) in enumerate(one) if name), 0) for one in alleles]
    names = ["+".join(name for _, _, name in one if name) for one in alleles]
    suppressor = PerturbationKind.SUPPRESSOR
    return SuppressedStrains(
        Strains.build(strains, [[(kind, allele) for kind, allele, _ in one] for one in alleles], genes, k),
        Strains.build(
            [replace(strain, orfs=(strain.orfs[i],)) for strain, i in zip(strains, at, strict=True)],
            [[(suppressor, name)] for name in names],
            genes,
            1,
        ),
        np.array([bool(name) for name in names], bool),
    )


def measurements(
    crosses: Crosses,
    study: Study,
    genes: GeneIndex,
    collect: Collector,
    *,
    standards: Collection[str] = (),
    seen: Seen | None = None,
) -> list[Measurements]:
    """Return what a table measures: scores and fitness of the crosses, fitness of queries and arrays.

    The fitness of a query and of an array strain stands in every row of the strain: each distinct number of
    a strain is one measurement. The p-value is the publisher's for the adjusted score.

    Parameters
    ----------
    collect : callable
        Called once per phenotype, with the rows of the mutant type that it is defined for, and once each for
        queries and arrays.
    standards : collection of str
        Short identifiers (``tm461``) of queries whose fitness another file gives with a standard deviation.
    seen : Seen, optional
        Fitness that other tables of the study have given already, and that is not given again.
    """
    sides, file = [crosses.query, crosses.array], crosses.path.name
    both = first_mutations(sides)
    query, query_code = both[0]
    contradicts = crosses.trigenic == np.array([HO in strain.orfs for strain in query.ids])[query_code]
    every = np.ones(len(crosses), bool)
    parts = []
    for phenotype, use, rows, value, why, sd, p in (
        (TAU, TAU.name, crosses.trigenic, crosses.adjusted, NO_SCORE, None, crosses.p),
        (TRIGENIC_EPSILON, TRIGENIC_EPSILON.name, crosses.trigenic, crosses.raw, NO_SCORE, None, None),
        (EPSILON, EPSILON.name, ~crosses.trigenic, crosses.raw, NO_SCORE, None, crosses.p),
        (FITNESS, "fitness of crosses", every, crosses.fitness, NO_FITNESS, crosses.sd, None),
    ):
        sieve = RowFilter(rows)
        sieve.drop(CONTRADICTION, contradicts)
        sieve.drop_genes(both)
        sieve.drop(why, np.isnan(value))
        collect(sieve.reading(file, use, both))
        parts += measured_apart(
            study, genes, phenotype, ENVIRONMENT, sides, value, sieve.left, label="query", sd=sd, p=p
        )
    seen = Seen() if seen is None else seen
    given = np.array([strain.short in standards for strain in query.ids])[query_code]
    for side, value, label in (
        (crosses.query, crosses.query_fitness, "query"),
        (crosses.array, crosses.array_fitness, "array"),
    ):
        strains = first_mutations([side])
        sieve = RowFilter(every)
        sieve.drop_genes(strains)
        sieve.drop(NO_FITNESS, np.isnan(value))
        if label == "query":
            sieve.drop(IN_STANDARD, given)
        sieve.drop(REPEATED, seen.again(*strains[0], value, sieve.left))
        collect(sieve.reading(file, f"fitness of {label} strains", strains))
        parts += measured_apart(study, genes, FITNESS, ENVIRONMENT, [side], value, sieve.left, label=label)
    return parts


def first_mutations(sides: Sequence[Side]) -> list[tuple[Strains, Ints]]:
    """Return the sides without their suppressors, to decide which rows are used."""
    return [(strains.first, code) for strains, code in sides]
