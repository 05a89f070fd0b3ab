"""Measurements from a user's table: every row is checked, and all problems are reported together.

Legend: m rows · k perturbed genes of one row · Σk of all.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from wildtype.datasets.measurements import Measurements
from wildtype.datasets.reading import ReadReport
from wildtype.datasets.records import Environment, Publication, Study
from wildtype.errors import SourceError, shown
from wildtype.files import sha256_of_file
from wildtype.organism import GeneIndex, Organism
from wildtype.sources.text import Collector, ignore
from wildtype.sources.user_tables.grid import Grid, Problem, TableProblems, read_grid
from wildtype.sources.user_tables.mutants import MutantReader
from wildtype.sources.user_tables.vocabulary import PHENOTYPES, Columns, define, is_missing, parse_number

USE = "own data"
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")
_ENDINGS = re.compile(r"(\.(csv|tsv|tab|txt|parquet|pq|xlsx|xls|gz))+$", re.IGNORECASE)


def study_name(path: str | Path, name: str = "") -> str:
    """Return the name of a study: as given, or made from the name of its file.

    Raises
    ------
    SourceError
        If the name given has other characters than a name may have.
    """
    if not name:
        stem = _ENDINGS.sub("", Path(path).name).lower()
        return re.sub(r"[^a-z0-9._-]+", "-", stem).strip("._-") or "own-data"
    if not _NAME.fullmatch(name):
        raise SourceError(
            f"{name!r} cannot name a study: write lower-case letters and digits, then also '.', '_' and '-'"
        )
    return name


def read_table(
    path: str | Path,
    organism: Organism,
    columns: Columns | None = None,
    *,
    name: str = "",
    phenotype: str = "",
    unit: str = "",
    separator: str = "",
    gene_separator: str = "",
    sheet: str = "",
    collect: Collector = ignore,
) -> Measurements:
    """Read a table of one's own measurements, one per row.

    Parameters
    ----------
    path : path
        CSV, TSV, Parquet or a spreadsheet; see `read_grid`.
    organism : Organism
        Whose genes are meant, by systematic name, standard name or alias.
    columns : Columns, optional
        Names of the columns. ``genes`` names one or several genes, ``kind`` one kind for all of them or one
        each (a deletion where it says nothing), ``dose`` one number each; ``condition``, ``phenotype`` and
        ``replicate`` are names, ``value`` and ``sd`` numbers. Further columns are not read.
    name : str
        Name of the study; made from the file's name if not given.
    phenotype : str
        What the values are where no column says it; the name of their column if not given.
    unit : str
        Of phenotypes other than fitness, epsilon and tau, whose unit is fixed.
    separator, sheet : str
        See `read_grid`.
    gene_separator : str
        Between the members of a set; found out cell by cell if not given, see `members`.
    collect : callable
        Called with the `ReadReport` of the file.

    Returns
    -------
    Measurements
        All rows in the order of the file, replicates apart. A gene that the organism lacks is foreign where
        its kind says that it was added, else unknown.

    Raises
    ------
    TableProblems
        A ``SourceError`` that lists every problem of every row.
    SourceError
        If the file cannot be read or lacks a column, or a name or unit is refused.
    """
    name = study_name(path, name)
    grid = read_grid(path, separator=separator, sheet=sheet)
    at = (columns or Columns()).positions(grid.header, grid.path)
    # A column called "epsilon" names its phenotype, so that a table of two columns is enough.
    default = phenotype or ("" if "phenotype" in at else grid.header[at["value"]])
    if default:
        define(default, unit)
    reader = _RowReader(grid, at, organism.genes, gene_separator, default)
    for i in range(len(grid.cells)):
        reader.read(i)
    problems = sorted([*grid.problems, *reader.problems], key=lambda problem: problem.row)
    if problems:
        raise TableProblems(grid.path, problems, grid.rows)
    unused = ", ".join(known for i, known in enumerate(grid.header) if i not in at.values() and known)
    # Line breaks and tabs in a file name would break the tables of the report.
    file = " ".join(grid.path.name.split())
    study = Study(
        name=name,
        publication=Publication(citation=f"own data: {file}"),
        organism=organism.name,
        licence=USE,
        files={file: sha256_of_file(grid.path)},
        notes=(f"columns of the table that are not used: {' '.join(unused.split())}",) if unused else (),
    )
    measurements = reader.measurements(study, unit)
    collect(ReadReport(file, USE, grid.rows, len(measurements), renamed=reader.renamed))
    return measurements


class _RowReader:
    """Reads row after row of a grid, and keeps what it finds and what is wrong.

    Parameters
    ----------
    grid : Grid
        The cells.
    at : dict of str to int
        Which column is what.
    index : GeneIndex
        The organism's genes.
    separator : str
        Between the members of a set.
    default : str
        The phenotype where no cell says it.
    """

    def __init__(
        self, grid: Grid, at: dict[str, int], index: GeneIndex, separator: str, default: str
    ) -> None:
        self.grid, self.at, self.default = grid, at, default
        self.mutants = MutantReader(index, separator)
        self.problems: list[Problem] = []
        self.renamed = 0
        self.gene: list[int] = []
        self.kind: list[int] = []
        self.dose: list[float] = []
        self.count: list[int] = []
        self.value: list[float] = []
        self.sd: list[float] = []
        self.condition: list[str] = []
        self.phenotype: list[str] = []
        self.replicate: list[str] = []

    def _cell(self, i: int, column: str) -> str:
        return self.grid.cells[i][self.at[column]] if column in self.at else ""

    def _report(self, i: int, problems: Iterable[tuple[str, str]]) -> None:
        for column, message in problems:
            name = self.grid.header[self.at[column]]
            self.problems.append(Problem(self.grid.row[i], self.grid.line[i], name, message))

    def read(self, i: int) -> None:
        """Read one row; what it holds is kept also where something is wrong with it."""
        mutant = self.mutants.read(self._cell(i, "genes"), self._cell(i, "kind"))
        self._report(i, mutant.problems)
        self.renamed += mutant.renamed
        self.gene += mutant.genes
        self.kind += mutant.kinds
        self.count.append(len(mutant.genes))
        doses, problems = self.mutants.doses(self._cell(i, "dose"), len(mutant.kinds))
        self._report(i, problems)
        self.dose += doses
        self.value.append(self._number(i, "value"))
        self.sd.append(self._number(i, "sd"))
        if self.sd[-1] < 0:
            self._report(i, [("sd", f"received {self.sd[-1]:g}, expected a number of at least 0")])
        self.condition.append(self._name(i, "condition"))
        self.replicate.append(self._name(i, "replicate"))
        self.phenotype.append(self._phenotype(i, len(mutant.kinds)))

    def _number(self, i: int, column: str) -> float:
        cell = self._cell(i, column)
        if is_missing(cell):
            if column == "value":
                message = f"received {shown(cell)}, expected a number: give it, or leave the row out"
                self._report(i, [(column, message)])
            return math.nan
        value = parse_number(cell)
        if value is None:
            # Decimal commas are refused, not read: 1,234 is 1.234 in one country and 1234 in another.
            hint = ", with a decimal point" if re.fullmatch(r"[-+]?\d*,\d+", cell) else ""
            self._report(i, [(column, f"received {shown(cell)}, expected a number{hint}")])
            return math.nan
        return value

    def _name(self, i: int, column: str) -> str:
        name = self._cell(i, column)
        if not name.isprintable() and any(ord(c) < 32 for c in name):
            self._report(i, [(column, f"received {shown(name)}, expected a name on one line, without tabs")])
            return ""
        return name

    def _phenotype(self, i: int, order: int) -> str:
        name = self._cell(i, "phenotype") or self.default
        if not name:
            self._report(i, [("phenotype", "is empty, expected a name: give it, or one for all")])
            return name
        try:
            definition = define(name)
        except SourceError as error:
            self._report(i, [("phenotype", str(error))])
            return name
        if 0 < order < definition.min_order:
            message = f"names {order} of the at least {definition.min_order} genes that {name} is about"
            self._report(i, [("genes", message)])
        return definition.name

    def measurements(self, study: Study, unit: str) -> Measurements:
        """Return what was read; raises ``SourceError`` if `unit` is that of no phenotype."""
        conditions, condition = _coded(self.condition)
        phenotypes, phenotype = _coded(self.phenotype)
        if unit and all(name in PHENOTYPES for name in phenotypes):
            raise SourceError(
                f"the unit of {', '.join(phenotypes)} is fixed, received {unit!r}: call what is measured in "
                f"another unit by another name, with --phenotype"
            )
        return Measurements.build(
            study,
            genes=self.mutants.genes,
            gene=self.gene,
            offsets=np.concatenate([[0], np.cumsum(self.count, dtype=np.int64)]),
            kind=self.kind,
            dose=self.dose,
            value=self.value,
            sd=self.sd,
            environments=[Environment(medium=name) if name else Environment() for name in conditions],
            environment=condition,
            phenotypes=[define(name, unit) for name in phenotypes],
            phenotype=phenotype,
            replicate=self.replicate,
        )


def _coded(names: Sequence[str]) -> tuple[list[str], list[int]]:
    """Return the distinct names in order of appearance, and the position of every name among them."""
    position: dict[str, int] = {}
    codes = [position.setdefault(name, len(position)) for name in names]
    return list(position), codes
