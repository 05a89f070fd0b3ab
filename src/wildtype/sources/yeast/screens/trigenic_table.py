"""The table of a trigenic screen: every cross of a query strain with an array strain, 12 columns.

A double-mutant query gives triple mutants, whose adjusted score is tau; the control query of each of its
genes (``gene + ho``) gives double mutants, whose score is epsilon. One column is "epsilon or tau" and holds
both. The raw score of a triple mutant is its fitness minus the product of the query's and the array's:
digenic interactions are still in it, so it has another name, ``trigenic epsilon``, and is never tau.

Legend: m rows of the table · d distinct strains · k genes of a strain.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from wildtype.datasets.records import Environment, PhenotypeDefinition
from wildtype.organism import GeneIndex
from wildtype.sources.columns import Columns
from wildtype.sources.row_filter import Flags, Floats, RowFilter
from wildtype.sources.yeast.screens.parts import (
    EPSILON,
    FITNESS,
    NO_FITNESS,
    NO_SCORE,
    Screen,
    Seen,
    drop_genes,
    read_p_values,
    read_sd,
)
from wildtype.sources.yeast.screens.sga_strains import Side, read_side

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
CONTRADICTION = "mutant type that its query cannot have"
IN_STANDARD = "fitness of the query given in the fitness standard"


@dataclass(frozen=True, eq=False)
class Crosses:
    """The crosses of one table.

    Attributes
    ----------
    path : Path
        The file.
    query, array : Side
        The strains of each side, with two genes and with one.
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
    # Copies of the laboratory, the journal and Dryad spell the last two names in two ways.
    if columns.header[10:] not in CROSS_FITNESS:
        raise columns.error(
            -1, ", ".join(columns.header[10:]), f"{' or '.join(repr(', '.join(n)) for n in CROSS_FITNESS)}"
        )
    query, array = read_sides(columns, genes)
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
    columns.refuse(4, mutant.map(lambda name: name not in MUTANT_TYPES, bool), "digenic or trigenic")
    return mutant.map(lambda name: name == "trigenic", bool)


def read_sides(columns: Columns, genes: GeneIndex) -> tuple[Side, Side]:
    """Return queries and arrays.

    Identifier and allele name of the query are the columns 1 and 2, of the array 3 and 4. Raises
    ``SourceError``.
    """
    query = read_side(columns, 0, 2, genes, "a query strain ORF1+ORF2_tmN", "two allele names joined by +")
    return query, read_side(columns, 2, 1, genes, "an array strain ORF_dmaN or ORF_tsaN", "an allele name")


def add_crosses(
    screen: Screen, crosses: Crosses, *, standards: Collection[str] = (), seen: Seen | None = None
) -> None:
    """Measure a table: scores and fitness of the crosses, fitness of queries and arrays.

    The fitness of a query and of an array strain is repeated in every row of the strain: each distinct number
    of a strain is one measurement. The p-value is the publisher's for the adjusted score.

    Parameters
    ----------
    screen : Screen
        Reports once per phenotype, on the rows of the mutant type that it is defined for, and once each on
        queries and arrays.
    standards : collection of str
        Short identifiers (``tm461``) of queries whose fitness another file gives with a standard deviation.
    seen : Seen, optional
        Fitness that other tables of the study have given already, and that is not given again.
    """
    sides, file, query = [crosses.query, crosses.array], crosses.path.name, crosses.query
    # A control query deletes one gene and HO: with an array strain it makes a double mutant, never a triple.
    contradicts = crosses.trigenic == query.controls
    every = np.ones(len(crosses), bool)
    # The p-value is of the adjusted score, so that the raw score of a triple mutant has none.
    for phenotype, use, of_type, value, why, sd, p in (
        (TAU, TAU.name, crosses.trigenic, crosses.adjusted, NO_SCORE, None, crosses.p),
        (TRIGENIC_EPSILON, TRIGENIC_EPSILON.name, crosses.trigenic, crosses.raw, NO_SCORE, None, None),
        (EPSILON, EPSILON.name, ~crosses.trigenic, crosses.raw, NO_SCORE, None, crosses.p),
        (FITNESS, "fitness of crosses", every, crosses.fitness, NO_FITNESS, crosses.sd, None),
    ):
        rows = RowFilter(of_type)
        rows.drop(CONTRADICTION, contradicts)
        used = screen.select(file, use, sides, drop_genes(rows, sides), {why: np.isnan(value)})
        screen.add(phenotype, ENVIRONMENT, sides, value, used, label="query", sd=sd, p=p)
    seen = Seen() if seen is None else seen
    given = np.array([strain.short in standards for strain in query.strains.ids], bool)[query.code]
    for side, value, label, reasons in (
        (query, crosses.query_fitness, "query", {IN_STANDARD: given}),
        (crosses.array, crosses.array_fitness, "array", {}),
    ):
        reasons = {NO_FITNESS: np.isnan(value)} | reasons
        use = f"fitness of {label} strains"
        rows = drop_genes(RowFilter(every), [side])
        used = screen.select(file, use, [side], rows, reasons, new=(seen, value))
        screen.add(FITNESS, ENVIRONMENT, [side], value, used, label=label)
