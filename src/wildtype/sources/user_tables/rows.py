"""The rows of a settled table become measurements: one per row, or one per number of a row.

Legend: k perturbed genes of one row · v columns of values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np

from wildtype.characters import name_fault
from wildtype.datasets.measurements import Measurements
from wildtype.datasets.records import PhenotypeDefinition, Study
from wildtype.errors import SourceError, shown
from wildtype.sources.user_tables.gathered import Column, Gathered, spelled
from wildtype.sources.user_tables.grid import Grid
from wildtype.sources.user_tables.guess import Settled
from wildtype.sources.user_tables.layout import SINGLE
from wildtype.sources.user_tables.mutants import Mutant, MutantReader, Wrong
from wildtype.sources.user_tables.numbers import MISSING_NUMBER, is_missing
from wildtype.sources.user_tables.problems import HEADER, Problem
from wildtype.sources.user_tables.spellings import NEUTRAL, NO_CONTROLS
from wildtype.sources.user_tables.vocabulary import CENSORED, FLAGS, PHENOTYPES, define

EMPTY, TOTAL = "empty cells", "totals below the table"
CONTROL_PAIR = "a gene beside a control"
NEGATIVE, NAME, PHENOTYPE, TOO_FEW, FLAG = (
    "negative sd", "name", "phenotype", "too few genes for the phenotype", "flag",
)  # fmt: skip


class RowReader:
    """Reads row after row of a grid, and keeps what it finds and what is wrong.

    Parameters
    ----------
    grid : Grid
        The cells.
    settled : Settled
        Which column is what.
    mutants : MutantReader
        Reads the cells about genes.
    gathered : Gathered
        Where numbers are kept, also those of other tables that are read together.
    label : str
        Which of several tables of replicates this is.

    Attributes
    ----------
    problems : list of Problem
        What is wrong with rows; nothing else is kept of these.
    left_out : dict of str to int
        Cells that are no measurement, by reason.
    """

    level: str = "cell"
    """Whether a number is about the cell or about one gene of it."""

    def __init__(
        self, grid: Grid, settled: Settled, mutants: MutantReader, gathered: Gathered, label: str = ""
    ) -> None:
        self.grid, self.at, self.settled, self.mutants = grid, settled.at, settled, mutants
        self.gathered, self.label = gathered, label
        self.numbers = settled.layout.numbers
        self.problems: list[Problem] = []
        self.left_out: dict[str, int] = {}
        self.incomplete = 0
        """Rows with an empty cell beside other genes."""
        self._row_problems: list[Problem] = []
        several = len(self.at["value"]) > 1
        self.censored = 0
        """Measurements that are bounds."""
        columns = []
        for i, (phenotype, unit) in zip(self.at["value"], settled.measured, strict=False):
            definition = self._definition(phenotype, unit) if len(set(settled.measured)) > 1 else None
            columns.append(Column(replicate=grid.header[i] if several else "", phenotype=definition))
        self._columns = np.array([gathered.column(column) for column in columns], np.int64)
        bounds = [
            one if one.phenotype is None else replace(one, phenotype=bound(one.phenotype)) for one in columns
        ]
        self._bounds = np.array([gathered.column(column) for column in bounds], np.int64)

    def read_all(self) -> None:
        """Read every row but totals at the end."""
        last = len(self.grid.cells)
        while last and self._is_total(last - 1):
            last -= 1
        if last < len(self.grid.cells):
            self._leave_out(TOTAL, (len(self.grid.cells) - last) * self.width)
        for i in range(last):
            self._row_problems = []
            self._read(i)
            self.problems += self._row_problems

    @property
    def width(self) -> int:
        """How many numbers a row has."""
        return len(self._columns)

    @property
    def columns_kept(self) -> int:
        """How many columns of numbers have no problem."""
        return self.width

    def _leave_out(self, reason: str, count: int = 1) -> None:
        if count:
            self.left_out[reason] = self.left_out.get(reason, 0) + count

    def _is_total(self, i: int) -> bool:
        cells = [self.grid.cells[i][at] for at in self.at["genes"]]
        first = next(filter(None, cells), self.grid.cells[i][0])
        return self.mutants.spellings.is_total(first)

    def _cell(self, i: int, column: str) -> str:
        return self.grid.cells[i][self.at[column][0]] if column in self.at else ""

    def _report(self, i: int, at: int, message: str, reason: str) -> None:
        problem = Problem(self.grid.row[i], self.grid.line[i], self.grid.header[at], message, reason)
        self._row_problems.append(problem)

    def _wrong(self, i: int, problems: Sequence[Wrong]) -> None:
        for one in problems:
            column = self.at[one.column][one.cell if one.column == "genes" else 0]
            self._report(i, column, one.message, one.reason)

    def _read(self, i: int) -> None:
        """Read one row; nothing of it is kept where something is wrong with it."""
        cells = tuple(self.grid.cells[i][at] for at in self.at["genes"])
        mutant = self.mutants.read(cells, self._cell(i, "kind"))
        self._wrong(i, mutant.problems)
        doses, problems = self.mutants.doses(self._cell(i, "dose"), mutant.named)
        self._wrong(i, problems)
        values = self._values(i)
        sd = self._sd(i, [at for at, _ in values])
        condition, replicate = self._name(i, "condition"), self._name(i, "replicate")
        censored = self._is_censored(i, values)
        phenotype = self._phenotype(i)
        if phenotype is not None and values:
            self._enough(i, mutant, phenotype)
        if self._row_problems or phenotype is None:
            return
        if reason := self._not_kept(mutant):
            self._leave_out(reason, len(values))
            return
        self.censored += censored * len(values)
        columns = self._bounds if censored else self._columns
        self.incomplete += "" in cells
        if not values:
            return
        places = {at: place for place, at in enumerate(self.at["value"])}
        self.gathered.add(
            self.gathered.strain(mutant, doses),
            columns[[places[at] for at, _ in values]],
            np.array([value for _, value in values], np.float64),
            np.array(sd, np.float64),
            condition=condition,
            replicate=spelled(self.label, replicate),
            guides=mutant.guides,
            phenotype=bound(phenotype) if censored else phenotype,
        )

    def _is_censored(self, i: int, values: Sequence[tuple[int, float]]) -> bool:
        """Return whether a row, all replicates of it, is a bound: by a flag, or by a number at the limit."""
        limit, columns = self.settled.layout.censored_at, self.at.get("censored", [])
        if limit:
            numbers = [self._number(i, at) for at in columns] if columns else [value for _, value in values]
            return any(number <= float(limit) for number in numbers)
        found = False
        for at in columns:
            word = self.grid.cells[i][at].casefold()
            found |= word in FLAGS[True]
            if word not in (*FLAGS[True], *FLAGS[False]) and not is_missing(word):
                message = f"received {shown(word)}, expected yes or no, or a number with --censored-at"
                self._report(i, at, message, FLAG)
        return found

    def _not_kept(self, mutant: Mutant, *, pairs: bool = False) -> str:
        """Return why a mutant is none that one keeps: no pair, or one gene beside a control; else empty.

        A row of crosses (`pairs`) that names a control has a gene in every column.
        """
        if mutant.no_pair:
            return mutant.no_pair
        single = self.settled.layout.control_pairs == SINGLE
        return CONTROL_PAIR if mutant.control and mutant.genes and not (single or pairs) else ""

    def _values(self, i: int) -> list[tuple[int, float]]:
        """Return the numbers of a row with their columns; empty cells beside others are counted."""
        columns, cells = self.at["value"], self.grid.cells[i]
        there = [at for at in columns if not is_missing(cells[at])]
        if len(columns) > 1 and there:
            self._leave_out(EMPTY, len(columns) - len(there))
        elif not there:
            message = f"received {shown(cells[columns[0]])}, expected a number: give it, or leave the row out"
            self._report(i, columns[0], f"{message} (--skip-bad leaves out all such rows)", MISSING_NUMBER)
        return [(at, self._number(i, at)) for at in there]

    def _sd(self, i: int, columns: Sequence[int]) -> list[float]:
        """Return the sd of the numbers in some columns of values."""
        given = self.at.get("sd", [])
        of_value = dict(zip(self.at["value"], given, strict=False)) if len(given) > 1 else {}
        # An sd without a value is of nothing, but a single column of sd is checked in every row.
        numbers = {
            at: self._number(i, at) for at in ([of_value[at] for at in columns] if of_value else given)
        }
        for at, number in numbers.items():
            if number < 0:
                message = f"received {number:g}, expected a number of at least 0"
                self._report(i, at, message, NEGATIVE)
        if of_value:
            return [numbers[of_value[at]] for at in columns]
        return [numbers[given[0]] if given else math.nan] * len(columns)

    def _number(self, i: int, at: int) -> float:
        cell = self.grid.cells[i][at]
        if is_missing(cell):
            return math.nan
        value = self.numbers.parse(cell)
        if value is None:
            self._report(i, at, *self.numbers.fault(cell))
            return math.nan
        return value

    def _name(self, i: int, column: str) -> str:
        name = self._cell(i, column)
        if fault := name_fault(name):
            self._report(i, self.at[column][0], fault, NAME)
            return ""
        return name

    def _phenotype(self, i: int) -> PhenotypeDefinition | None:
        phenotype, unit = self.settled.measured[0]
        name = self._cell(i, "phenotype") or phenotype
        if not name:
            message = "is empty, expected a name: give it, or one for all with --phenotype"
            self._report(i, self.at["phenotype"][0], message, PHENOTYPE)
            return None
        try:
            return self._definition(name, unit)
        except SourceError as error:
            at = self.at["phenotype"][0] if "phenotype" in self.at else (self.at["value"] or [0])[0]
            self._report(i, at, str(error), PHENOTYPE)
            return None

    def _definition(self, name: str, unit: str) -> PhenotypeDefinition:
        fewest = self.settled.layout.fewest_genes
        return define(name, unit, "gene" if self.level == "gene" else "cell", fewest)

    def _enough(self, i: int, mutant: Mutant, definition: PhenotypeDefinition) -> None:
        """Report a mutant of fewer genes than its phenotype is about, unless the row says so on purpose."""
        order = mutant.named
        if 0 < order < definition.min_order and not mutant.nothing:
            message = (
                f"names {order} of the at least {definition.min_order} genes that {definition.name} is about"
            )
            self._report(i, self.at["genes"][0], message, TOO_FEW)

    def _refuse_column(self, column: str, wrong: Wrong) -> None:
        self.problems.append(Problem(HEADER, 0, column, wrong.message, wrong.reason))


def remarks(counts: tuple[int, int, int, int], mutants: MutantReader, left_out: dict[str, int]) -> list[str]:
    """Return what to look at twice, one line each; `counts` are those of `Gathered.counts`."""
    lines = mutants.explanations()
    _, of_nothing, neutral, _ = counts
    if of_nothing:
        lines.append(
            f"measurements of the wild type or of controls alone, which stay in the store and are left "
            f"out of datasets: {of_nothing:,}"
        )
    if neutral and not mutants.spellings.no_controls:
        known = [name for name in NEUTRAL if name in mutants.index]
        names = ",".join(known)
        lines.append(
            f"measurements of mutants with {known[0]}, which screens perturb in their controls: {neutral:,}; "
            f"it counts as a gene; if it is a control, import with --controls {names}, else with "
            f"--controls {NO_CONTROLS}"
        )
    if left_out.get(CONTROL_PAIR):
        lines.append(
            f"measurements of a gene beside a control, which are left out as controls: "
            f"{left_out[CONTROL_PAIR]:,}; --control-pairs single keeps them as mutants of one gene"
        )
    return lines


@cache
def bound(definition: PhenotypeDefinition) -> PhenotypeDefinition:
    """Return the phenotype under which values of another are kept that are bounds."""
    what = f"bounds of {definition.name}: the limit of the assay was reached"
    return definition.model_copy(update={"name": definition.name + CENSORED, "description": what})


def measured(gathered: Gathered, mutants: MutantReader, study: Study, unit: str) -> Measurements:
    """Return what was read.

    Raises
    ------
    SourceError
        If the unit that was given is that of no phenotype.
    """
    measurements = gathered.measurements(study, mutants.genes)
    names = [definition.name for definition in measurements.phenotypes]
    if unit and all(name in PHENOTYPES for name in names):
        raise SourceError(
            f"the unit of {', '.join(names)} is fixed, received {unit!r}: call what is measured in "
            f"another unit by another name, with --phenotype"
        )
    return measurements
