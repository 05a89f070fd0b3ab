"""The rows of a settled table become measurements: one per row, or one per number of a row.

Legend: k perturbed genes of one row · v columns of values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from wildtype.datasets.measurements import Measurements
from wildtype.datasets.records import Environment, PhenotypeDefinition, Study
from wildtype.errors import SourceError, shown
from wildtype.sources.user_tables.grid import Grid
from wildtype.sources.user_tables.guess import Settled
from wildtype.sources.user_tables.layout import CROSSES, LONG, PROFILES
from wildtype.sources.user_tables.mutants import Mutant, MutantReader, Wrong
from wildtype.sources.user_tables.numbers import MISSING_NUMBER, is_missing
from wildtype.sources.user_tables.problems import HEADER, Problem
from wildtype.sources.user_tables.vocabulary import PHENOTYPES, define

EMPTY, SELF, TOTAL = "empty cells", "crosses of a gene with itself", "totals below the table"
NEGATIVE, NAME, PHENOTYPE, TOO_FEW = "negative sd", "name", "phenotype", "too few genes for the phenotype"


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

    Attributes
    ----------
    problems : list of Problem
        What is wrong with rows; nothing else is kept of these.
    left_out : dict of str to int
        Cells that are no measurement, by reason.
    renamed : int
        Measurements that name a gene by an older name or alias.
    value : list of float
        The numbers that were read.
    """

    def __init__(self, grid: Grid, settled: Settled, mutants: MutantReader) -> None:
        self.grid, self.at, self.settled, self.mutants = grid, settled.at, settled, mutants
        self.shape = settled.layout.shape
        self.numbers = settled.layout.numbers
        self.problems: list[Problem] = []
        self.left_out: dict[str, int] = {}
        self.renamed = self.of_nothing = self.neutral = 0
        self.gene: list[int] = []
        self.kind: list[int] = []
        self.allele: list[str] = []
        self.dose: list[float] = []
        self.count: list[int] = []
        self.value: list[float] = []
        self.sd: list[float] = []
        self.condition: list[str] = []
        self.phenotype: list[PhenotypeDefinition] = []
        self.replicate: list[str] = []
        self.trait: list[str] = []
        self._row_problems: list[Problem] = []
        self._of_column = {} if self.shape == LONG else {i: self._column_gene(i) for i in self.at["value"]}

    def read_all(self) -> None:
        """Read every row but totals at the end."""
        last = len(self.grid.cells)
        while last and self._is_total(last - 1):
            last -= 1
        if last < len(self.grid.cells):
            self._leave_out(TOTAL, (len(self.grid.cells) - last) * len(self.at["value"]))
        for i in range(last):
            self._row_problems = []
            self._read(i)
            self.problems += self._row_problems

    def remarks(self) -> list[str]:
        """Return what to look at twice, one line each."""
        lines = self.mutants.explanations()
        if self.of_nothing:
            lines.append(
                f"measurements of the wild type or of controls alone, which stay in the store and are left "
                f"out of datasets: {self.of_nothing:,}"
            )
        if self.neutral:
            lines.append(
                f"measurements of mutants with HO, which screens delete in their controls: "
                f"{self.neutral:,}; it counts as a gene; if it is a control, import with "
                f"--controls HO,YDL227C"
            )
        return lines

    def _leave_out(self, reason: str, count: int = 1) -> None:
        self.left_out[reason] = self.left_out.get(reason, 0) + count

    def _is_total(self, i: int) -> bool:
        cells = [self.grid.cells[i][at] for at in self.at["genes"]]
        first = next(filter(None, cells), self.grid.cells[i][0])
        return self.mutants.spellings.is_total(first)

    def _column_gene(self, column: int) -> Mutant:
        """Return the mutant that the name of a matrix's column names."""
        name = self.grid.header[column]
        mutant = self.mutants.read((name,), "")
        problems = mutant.problems
        if self.shape == PROFILES and not problems and len(mutant.genes) != 1:
            problems = (Wrong("genes", f"names {len(mutant.genes)} genes, expected one", NAME),)
        self.problems += [Problem(HEADER, 0, name, wrong.message, wrong.reason) for wrong in problems]
        return mutant

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
        kinds = self._cell(i, "kind")
        mutant = self.mutants.read(cells, kinds)
        self._wrong(i, mutant.problems)
        doses, problems = self.mutants.doses(self._cell(i, "dose"), mutant.named)
        self._wrong(i, problems)
        values = self._values(i)
        sd = self._number(i, self.at["sd"][0]) if "sd" in self.at else math.nan
        if sd < 0:
            message = f"received {sd:g}, expected a number of at least 0"
            self._report(i, self.at["sd"][0], message, NEGATIVE)
        condition, replicate = self._name(i, "condition"), self._name(i, "replicate")
        phenotype = self._phenotype(i)
        several = self.shape == LONG and len(self.at["value"]) > 1
        found = []
        for at, value in values:
            measured, dose, trait = mutant, doses, ""
            if self.shape == CROSSES and not self._row_problems:
                other = self._of_column[at]
                if set(other.genes) & set(mutant.genes):
                    self._leave_out(SELF)
                    continue
                measured = self.mutants.read((*cells, self.grid.header[at]), kinds)
                # The name of a column says no dose.
                dose = [*doses, *[math.nan] * (len(measured.genes) - len(mutant.genes))]
            elif self.shape == PROFILES and self._of_column[at].genes:
                trait = self.mutants.genes[self._of_column[at].genes[0]]
            label = self.grid.header[at] if several else ""
            found.append((measured, dose, value, trait, " ".join(filter(None, (replicate, label)))))
        if phenotype is not None and found:
            self._enough(i, found[0][0], phenotype)
        if self._row_problems or phenotype is None:
            return
        for measured, dose, value, trait, label in found:
            self._keep(measured, dose, phenotype)
            self.value.append(value)
            self.sd.append(sd)
            self.condition.append(condition)
            self.replicate.append(label)
            self.trait.append(trait)

    def _keep(self, mutant: Mutant, doses: Sequence[float], phenotype: PhenotypeDefinition) -> None:
        self.renamed += mutant.renamed
        self.of_nothing += not mutant.genes
        self.neutral += mutant.neutral
        self.gene += mutant.genes
        self.kind += mutant.kinds
        self.allele += mutant.alleles
        self.dose += doses
        self.count.append(len(mutant.genes))
        self.phenotype.append(phenotype)

    def _values(self, i: int) -> list[tuple[int, float]]:
        """Return the numbers of a row with their columns; empty cells beside others are counted."""
        columns, cells = self.at["value"], self.grid.cells[i]
        there = [at for at in columns if not is_missing(cells[at])]
        if len(columns) > 1 and (there or self.shape != LONG):
            if len(there) < len(columns):
                self._leave_out(EMPTY, len(columns) - len(there))
        elif not there:
            message = f"received {shown(cells[columns[0]])}, expected a number: give it, or leave the row out"
            self._report(i, columns[0], f"{message} (--skip-bad leaves out all such rows)", MISSING_NUMBER)
        return [(at, self._number(i, at)) for at in there]

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
        if not name.isprintable() and any(ord(c) < 32 for c in name):
            message = f"received {shown(name)}, expected a name on one line, without tabs"
            self._report(i, self.at[column][0], message, NAME)
            return ""
        return name

    def _phenotype(self, i: int) -> PhenotypeDefinition | None:
        unit = self.settled.unit
        name = self._cell(i, "phenotype") or self.settled.phenotype
        if not name:
            message = "is empty, expected a name: give it, or one for all with --phenotype"
            self._report(i, self.at["phenotype"][0], message, PHENOTYPE)
            return None
        try:
            return define(name, unit, "gene" if self.shape == PROFILES else "cell")
        except SourceError as error:
            at = self.at["phenotype"][0] if "phenotype" in self.at else self.at["value"][0]
            self._report(i, at, str(error), PHENOTYPE)
            return None

    def _enough(self, i: int, mutant: Mutant, definition: PhenotypeDefinition) -> None:
        """Report a mutant of fewer genes than its phenotype is about, unless the row says so on purpose."""
        order = mutant.named
        if 0 < order < definition.min_order and not mutant.nothing:
            message = (
                f"names {order} of the at least {definition.min_order} genes that {definition.name} is about"
            )
            self._report(i, self.at["genes"][0], message, TOO_FEW)

    def measurements(self, study: Study) -> Measurements:
        """Return what was read; raises ``SourceError`` if the unit that was given is that of no phenotype."""
        conditions, condition = _coded(self.condition)
        names, code = _coded([definition.name for definition in self.phenotype])
        phenotypes = {definition.name: definition for definition in self.phenotype}
        unit = self.settled.layout.unit
        if unit and all(name in PHENOTYPES for name in names):
            raise SourceError(
                f"the unit of {', '.join(names)} is fixed, received {unit!r}: call what is measured in "
                f"another unit by another name, with --phenotype"
            )
        return Measurements.build(
            study,
            genes=self.mutants.genes,
            gene=self.gene,
            offsets=np.concatenate([[0], np.cumsum(self.count, dtype=np.int64)]),
            kind=self.kind,
            allele=self.allele,
            dose=self.dose,
            value=self.value,
            sd=self.sd,
            environments=[Environment(medium=name) if name else Environment() for name in conditions],
            environment=condition,
            phenotypes=[phenotypes[name] for name in names],
            phenotype=code,
            trait=self.trait,
            replicate=self.replicate,
        )


def _coded(names: Sequence[str]) -> tuple[list[str], list[int]]:
    """Return the distinct names in order of appearance, and the position of every name among them."""
    position: dict[str, int] = {}
    codes = [position.setdefault(name, len(position)) for name in names]
    return list(position), codes
